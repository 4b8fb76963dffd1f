//! Comparison of requests of one conversation: shared history and new items.

use std::ops::Range;

use crate::dialect::{MessageItem, MessageRole};
use crate::json::{Document, JsonKind, Target};
use crate::request::ModelRequest;
use crate::stream::Api;
use crate::stream::scan::{JsonCursor, ScanError, members};

/// Identifying values in the first bytes of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefixScan {
    pub model: Option<String>,
    /// Hash of the first user message, which identifies a conversation without an id.
    pub first_user_message_hash: Option<String>,
    /// Bytes of the model's name without its quotes; `None` if the name has escapes.
    pub model_range: Option<Range<usize>>,
}

impl PrefixScan {
    /// Maximum number of leading bytes of a body to scan, in bytes.
    pub const MAX_PREFIX_BYTES: usize = 256 << 10;

    /// Scans for the model only, which most agents send first.
    pub fn for_model(body: &[u8]) -> Self {
        Self::new(body, Self::MAX_PREFIX_BYTES, |prefix| prefix.model.is_some())
    }

    /// Scans for the model and the first user message.
    pub fn for_conversation(body: &[u8]) -> Self {
        Self::new(body, Self::MAX_PREFIX_BYTES, |prefix| {
            prefix.model.is_some() && prefix.first_user_message_hash.is_some()
        })
    }

    /// Number of trailing bytes of a body that [`Self::session_in_tail`] scans.
    pub const MAX_TAIL_BYTES: usize = 4 << 10;

    /// Returns the session in `metadata.user_id` (Claude Code) or `client_metadata.session_id` (Codex), which are near
    /// the end of the body. Quotes inside strings are escaped, so a match is always a member.
    pub fn session_in_tail(api: Api, tail: &[u8]) -> Option<String> {
        let tail = &tail[tail.len().saturating_sub(Self::MAX_TAIL_BYTES)..];
        let member = |name: &[u8]| {
            let value = tail.get(memchr::memmem::rfind(tail, name)? + name.len()..)?;
            serde_json::Deserializer::from_slice(value).into_iter::<serde_json::Value>().next()?.ok()
        };
        match api {
            Api::AnthropicMessages => session_from_user_id(member(br#""metadata":"#)?.get("user_id")?.as_str()?),
            Api::OpenAiResponses => Some(member(br#""client_metadata":"#)?.get("session_id")?.as_str()?.to_owned()),
            Api::OpenAiChat | Api::Gemini => None,
        }
    }

    /// Scans up to the first user message. The model is found only if it precedes the message.
    pub fn for_session(body: &[u8]) -> Self {
        Self::new(body, Self::MAX_PREFIX_BYTES, |prefix| prefix.first_user_message_hash.is_some())
    }

    /// Scans a whole body of any size for the model.
    pub fn for_model_anywhere(body: &[u8]) -> Self {
        let mut prefix = Self::default();
        let _ = members(std::str::from_utf8(body).unwrap_or_default(), |name, scan| prefix.read_model(name, scan));
        prefix
    }

    /// Reads the value of a member if it is the model, and skips it otherwise.
    fn read_model(&mut self, name: &str, scan: &mut JsonCursor<'_>) -> Result<(), ScanError> {
        if name != "model" {
            return scan.skip();
        }
        self.model = scan.string()?.map(Into::into);
        self.model_range = self.model.as_deref().and_then(|model| scan.range_of_last_string(model));
        Err(ScanError { at: 0 })
    }

    fn new(body: &[u8], limit: usize, is_complete: impl Fn(&Self) -> bool) -> Self {
        let mut prefix = Self::default();
        let beginning = &body[..body.len().min(limit)];
        let text = match std::str::from_utf8(beginning) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&beginning[..error.valid_up_to()]).unwrap_or_default(),
        };
        // The scanned bytes may end within a value, and the walk ends early once `is_complete` is reached. Both return
        // an error.
        let _ = members(text, |name, scan| {
            match name {
                "model" => {
                    // Returns an error only to end the walk.
                    let _ = prefix.read_model(name, scan);
                }
                "messages" | "contents" | "input" => prefix.first_user_message_hash = first_user_message_hash(scan)?,
                _ => scan.skip()?,
            }
            if is_complete(&prefix) { Err(ScanError { at: 0 }) } else { Ok(()) }
        });
        prefix
    }
}

/// Extracts the session from `metadata.user_id`: JSON with `session_id`, or `user_…_session_<id>`.
pub(crate) fn session_from_user_id(user: &str) -> Option<String> {
    let value: Option<serde_json::Value> = serde_json::from_str(user).ok();
    let inside = value.as_ref().and_then(|value| value.get("session_id")?.as_str()).map(str::to_owned);
    inside.or_else(|| user.rsplit_once("session_").map(|(_, session)| session.to_owned()))
}

/// Returns the hash of the first user message.
fn first_user_message_hash(scan: &mut JsonCursor<'_>) -> Result<Option<String>, ScanError> {
    let mut found = None;
    let walked = scan.elements(&mut |message| {
        let mut role = None;
        let before = message.clone();
        message.members(&mut |name, value| {
            if name == "role" {
                role = value.string()?;
            } else {
                value.skip()?;
            }
            Ok(())
        })?;
        if role.is_none_or(|role| role == "user") {
            found = Some(hash(before.text_until(message).as_bytes()));
            return Err(ScanError { at: 0 });
        }
        Ok(())
    });
    match (walked, found) {
        // The message was found before the scanned bytes ended.
        (_, Some(found)) => Ok(Some(found)),
        (Ok(()), None) => Ok(None),
        (Err(broken), None) => Err(broken),
    }
}

impl ModelRequest {
    /// `true` if the request offers tools. Auxiliary requests of agents, such as title generation, have none.
    pub fn has_tools(&self) -> bool {
        let Some(body) = self.document() else { return false };
        let filled = |name: &str| {
            let tools = body.member(body.root(), name);
            tools.is_some_and(|tools| body.kind(tools) == JsonKind::Array && body.children(tools).next().is_some())
        };
        filled("tools") || filled("functions")
    }

    /// `true` if the history contains a response of the model.
    pub fn has_answers(&self) -> bool {
        let (Some(dialect), Some(body)) = (self.dialect(), self.document()) else { return false };
        dialect.messages(&body.as_received()).iter().any(|item| item.role == MessageRole::Assistant)
    }

    /// Returns the hash of each message. Cache markers are ignored, because they move with every request.
    pub fn message_hashes(&self) -> Vec<String> {
        let (Some(dialect), Some(body)) = (self.dialect(), self.document()) else { return Vec::new() };
        let received = body.as_received();
        let mut hashes = Vec::new();
        let mut last = None;
        for item in dialect.messages(&received) {
            if last.replace(item.message) != Some(item.message) {
                let mut text = Vec::new();
                write_stable_leaves(&received, item.message, &mut text);
                hashes.push(hash(&text));
            }
        }
        hashes
    }

    /// Returns a hash that ignores streaming options, so that a retry has the same key.
    pub fn retry_key(&self) -> String {
        let Some(body) = self.document() else { return hash(self.original()) };
        let received = body.as_received();
        let mut text = self.head().route().as_bytes().to_vec();
        for member in received.children(received.root()) {
            if received.key(member).is_none_or(|key| key != "stream") {
                write_stable_leaves(&received, member, &mut text);
            }
        }
        hash(&text)
    }

    /// Returns the items after the model's last response, which are new in this request.
    pub fn new_items(&self) -> Vec<MessageItem> {
        let (Some(dialect), Some(body)) = (self.dialect(), self.document()) else { return Vec::new() };
        let mut items = dialect.messages(body);
        let answered = items.iter().rposition(|item| item.role == MessageRole::Assistant);
        items.drain(..answered.map_or(0, |place| place + 1));
        items
    }

    /// Returns the tool results that are new in this request.
    pub fn new_results(&self) -> Vec<Target> {
        let (Some(dialect), Some(body)) = (self.dialect(), self.document()) else { return Vec::new() };
        self.new_items().into_iter().filter_map(|item| dialect.result_text(body, item.target)).collect()
    }
}

/// Appends the leaves of a value without its cache markers.
pub(crate) fn write_stable_leaves(body: &Document, value: Target, text: &mut Vec<u8>) {
    let mut next = vec![value];
    while let Some(target) = next.pop() {
        if body.kind(target).is_leaf() {
            text.extend_from_slice(body.raw_key(target).unwrap_or_default());
            text.push(b':');
            text.extend_from_slice(body.raw(target));
            text.push(b'\n');
        }
        let is_stable = |child: &Target| body.key(*child).is_none_or(|key| key != "cache_control");
        let children: Vec<Target> = body.children(target).filter(is_stable).collect();
        next.extend(children.into_iter().rev());
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestHead;

    fn request(body: &str) -> ModelRequest {
        ModelRequest::new("1", RequestHead::new("/v1/messages"), body.as_bytes().to_vec())
    }

    const FIRST: &str = r#"{"model":"m","max_tokens":9,"messages":[
        {"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}"#;
    const SECOND: &str = r#"{"model":"m","max_tokens":9,"messages":[
        {"role":"user","content":[{"type":"text","text":"a"}]},
        {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Read","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"long"},{"type":"text","text":"b"}]}],
        "tools":[{"name":"Read","input_schema":{}}]}"#;

    #[test]
    fn continued_request_extends_messages() {
        let (first, second) = (request(FIRST), request(SECOND));
        assert_eq!(first.message_hashes().len(), 1);
        assert!(second.message_hashes().starts_with(&first.message_hashes()));
        assert!(
            !request(&SECOND.replace(r#""text":"a""#, r#""text":"A""#))
                .message_hashes()
                .starts_with(&first.message_hashes())
        );
    }

    #[test]
    fn retry_without_stream_has_same_key() {
        let with = |rest: &str| request(&format!(r#"{{"model":"m","messages":[]{rest}}}"#)).retry_key();
        assert_eq!(with(""), with(r#","stream":true"#));
        assert_ne!(with(""), with(r#","max_tokens":1"#));
    }

    #[test]
    fn new_items_follow_last_response() {
        let second = request(SECOND);
        assert_eq!(second.new_items().len(), 2);
        assert_eq!(second.new_results().len(), 1);
        assert_eq!(request(FIRST).new_results().len(), 0);
        assert_eq!([request(FIRST).has_tools(), second.has_tools()], [false, true]);
    }

    #[test]
    fn prefix_scan_finds_model_and_conversation() {
        let (first, second) =
            (PrefixScan::for_conversation(FIRST.as_bytes()), PrefixScan::for_conversation(SECOND.as_bytes()));
        assert_eq!(first.model.as_deref(), Some("m"));
        assert!(second.first_user_message_hash.is_some());
        let late = format!(
            r#"{{"contents":[{{"role":"user","parts":[{{"text":"hi"}}]}}],"x":"{}"#,
            "é".repeat(PrefixScan::MAX_PREFIX_BYTES)
        );
        assert!(PrefixScan::for_conversation(late.as_bytes()).first_user_message_hash.is_some());
        for broken in ["", "[", "{\"model\":", "{\"messages\":[{\"role\":", "\u{feff}{}", "{\"input\":\"text\"}"] {
            assert_eq!(PrefixScan::for_conversation(broken.as_bytes()).first_user_message_hash, None, "{broken}");
        }
        let whole = PrefixScan::for_model_anywhere(br#"{"messages":[{"model":"no"}],"model":"m"}"#);
        assert_eq!((whole.model.as_deref(), whole.model_range), (Some("m"), Some(38..39)));
        assert_eq!(PrefixScan::for_model_anywhere(br#"{"model":"a\"b"}"#).model_range, None);
        let model = PrefixScan::for_model(SECOND.as_bytes());
        assert_eq!((model.model.as_deref(), model.first_user_message_hash), (Some("m"), None));
    }

    #[test]
    fn session_in_tail_is_last_named() {
        let tail = |api, tail: &str| PrefixScan::session_in_tail(api, tail.as_bytes());
        let named = r#","metadata": {"user_id": "user_1_account__session_abc"},"max_tokens":9}"#;
        assert_eq!(tail(Api::AnthropicMessages, named).as_deref(), Some("abc"));
        let inside = r#"],"metadata":{"user_id":"{\"session_id\":\"abc\"}"}}"#;
        assert_eq!(tail(Api::AnthropicMessages, inside).as_deref(), Some("abc"));
        let codex = r#""client_metadata":{"session_id":"s","turn_id":"t"}}"#;
        assert_eq!(tail(Api::OpenAiResponses, codex).as_deref(), Some("s"));
        for other in ["", "}", r#""metadata":{"user_id":"someone"}}"#, r#"\"metadata\":{\"user_id\":\"session_x\"}""#] {
            assert_eq!(tail(Api::AnthropicMessages, other), None, "{other}");
        }
        assert_eq!(tail(Api::Gemini, codex), None);
    }
}
