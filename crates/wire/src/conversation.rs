//! Requests of one conversation beside each other: what they share, and what is new in one.

use std::ops::Range;

use crate::dialect::{Item, Role};
use crate::json::{Document, Kind, Target};
use crate::request::ModelRequest;
use crate::stream::Api;
use crate::stream::scan::{Broken, Scan, members};

/// What the beginning of a body tells, without reading all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// The model.
    pub model: Option<String>,
    /// The hash of what the user said first, by which a conversation is known that has no name.
    pub first_words: Option<String>,
    /// The bytes of the model's name between its quotes, unless the name has escapes.
    pub model_range: Option<Range<usize>>,
}

impl Glance {
    /// How much of a body is looked at to find out whose it is.
    pub const MOST: usize = 256 << 10;

    /// Looks for the model alone, which most agents name first.
    pub fn for_model(body: &[u8]) -> Self {
        Self::new(body, Self::MOST, |glance| glance.model.is_some())
    }

    /// Looks for the model and for what the user said first.
    pub fn for_conversation(body: &[u8]) -> Self {
        Self::new(body, Self::MOST, |glance| glance.model.is_some() && glance.first_words.is_some())
    }

    /// Bytes at the end of a body in which [`Self::session_in_tail`] looks.
    pub const TAIL: usize = 4 << 10;

    /// The session that Claude Code and Codex name in `metadata.user_id` and `client_metadata.session_id`, which come last
    /// in their bodies. `tail` is the end of a body. Quotes inside texts are escaped, so a match is a member.
    pub fn session_in_tail(api: Api, tail: &[u8]) -> Option<String> {
        let tail = &tail[tail.len().saturating_sub(Self::TAIL)..];
        let member = |name: &[u8]| {
            let value = tail.get(memchr::memmem::rfind(tail, name)? + name.len()..)?;
            serde_json::Deserializer::from_slice(value).into_iter::<serde_json::Value>().next()?.ok()
        };
        match api {
            Api::AnthropicMessages => session_of_user(member(br#""metadata":"#)?.get("user_id")?.as_str()?),
            Api::OpenAiResponses => Some(member(br#""client_metadata":"#)?.get("session_id")?.as_str()?.to_owned()),
            Api::OpenAiChat | Api::Gemini => None,
        }
    }

    /// Looks for the first user message and stops there. The model is known only if it comes before.
    pub fn for_session(body: &[u8]) -> Self {
        Self::new(body, Self::MOST, |glance| glance.first_words.is_some())
    }

    /// Looks for the model in a whole body of any size.
    pub fn for_model_anywhere(body: &[u8]) -> Self {
        let mut glance = Self::default();
        let _ = members(std::str::from_utf8(body).unwrap_or_default(), |name, scan| glance.read_model(name, scan));
        glance
    }

    /// Reads the value of a member if it is the model, and skips it otherwise.
    fn read_model(&mut self, name: &str, scan: &mut Scan<'_>) -> Result<(), Broken> {
        if name != "model" {
            return scan.skip();
        }
        self.model = scan.string()?.map(Into::into);
        self.model_range = self.model.as_deref().and_then(|model| scan.range_of_last_string(model));
        Err(Broken { at: 0 })
    }

    fn new(body: &[u8], most: usize, enough: impl Fn(&Self) -> bool) -> Self {
        let mut glance = Self::default();
        let beginning = &body[..body.len().min(most)];
        let text = match std::str::from_utf8(beginning) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&beginning[..error.valid_up_to()]).unwrap_or_default(),
        };
        // It ends where the beginning does, in the middle of something, or as soon as enough is known.
        let _ = members(text, |name, scan| {
            match name {
                "model" => {
                    // Ends the walk only if the caller has enough.
                    let _ = glance.read_model(name, scan);
                }
                "messages" | "contents" | "input" => glance.first_words = first_words(scan)?,
                _ => scan.skip()?,
            }
            if enough(&glance) { Err(Broken { at: 0 }) } else { Ok(()) }
        });
        glance
    }
}

/// The session in `metadata.user_id`: JSON with `session_id`, or `user_…_session_<id>`.
pub(crate) fn session_of_user(user: &str) -> Option<String> {
    let value: Option<serde_json::Value> = serde_json::from_str(user).ok();
    let inside = value.as_ref().and_then(|value| value.get("session_id")?.as_str()).map(str::to_owned);
    inside.or_else(|| user.rsplit_once("session_").map(|(_, session)| session.to_owned()))
}

/// What the first message of a user says, by its hash.
fn first_words(scan: &mut Scan<'_>) -> Result<Option<String>, Broken> {
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
            found = Some(hash(before.until(message).as_bytes()));
            return Err(Broken { at: 0 });
        }
        Ok(())
    });
    match (walked, found) {
        // Found, but where the list ends is not known.
        (_, Some(found)) => Ok(Some(found)),
        (Ok(()), None) => Ok(None),
        (Err(broken), None) => Err(broken),
    }
}

impl ModelRequest {
    /// Whether the model is offered tools: what an agent does for its own sake, such as finding a title, comes without.
    pub fn has_tools(&self) -> bool {
        let Some(body) = self.document() else { return false };
        let filled = |name: &str| {
            let tools = body.member(body.root(), name);
            tools.is_some_and(|tools| body.kind(tools) == Kind::Array && body.children(tools).next().is_some())
        };
        filled("tools") || filled("functions")
    }

    /// Whether the history holds an answer of the model.
    pub fn has_answers(&self) -> bool {
        let (Some(dialect), Some(body)) = (self.dialect(), self.document()) else { return false };
        dialect.messages(&body.as_came()).iter().any(|item| item.role == Role::Assistant)
    }

    /// The messages as they came, each by its hash. Where something is to be kept on the server moves with every request, and does
    /// not count.
    pub fn conversation(&self) -> Vec<String> {
        let (Some(dialect), Some(body)) = (self.dialect(), self.document()) else { return Vec::new() };
        let came = body.as_came();
        let mut hashes = Vec::new();
        let mut last = None;
        for item in dialect.messages(&came) {
            if last.replace(item.message) != Some(item.message) {
                let mut text = Vec::new();
                write_lasting(&came, item.message, &mut text);
                hashes.push(hash(&text));
            }
        }
        hashes
    }

    /// What it is, by its hash: the same for one that is sent again, with or without a stream.
    pub fn identity(&self) -> String {
        let Some(body) = self.document() else { return hash(self.original()) };
        let came = body.as_came();
        let mut text = self.head().route().as_bytes().to_vec();
        for member in came.children(came.root()) {
            if came.key(member).is_none_or(|key| key != "stream") {
                write_lasting(&came, member, &mut text);
            }
        }
        hash(&text)
    }

    /// What is said in the messages after the model's last answer: what is new in this request.
    pub fn news(&self) -> Vec<Item> {
        let (Some(dialect), Some(body)) = (self.dialect(), self.document()) else { return Vec::new() };
        let mut items = dialect.messages(body);
        let answered = items.iter().rposition(|item| item.role == Role::Assistant);
        items.drain(..answered.map_or(0, |place| place + 1));
        items
    }

    /// The results of tools that are new in this request.
    pub fn new_results(&self) -> Vec<Target> {
        let (Some(dialect), Some(body)) = (self.dialect(), self.document()) else { return Vec::new() };
        self.news().into_iter().filter_map(|item| dialect.result_text(body, item.target)).collect()
    }
}

/// Writes the leaves of a value, but for those that move.
pub(crate) fn write_lasting(body: &Document, value: Target, text: &mut Vec<u8>) {
    let mut next = vec![value];
    while let Some(target) = next.pop() {
        if body.kind(target).is_leaf() {
            text.extend_from_slice(body.raw_key(target).unwrap_or_default());
            text.push(b':');
            text.extend_from_slice(body.raw(target));
            text.push(b'\n');
        }
        let lasting = |child: &Target| body.key(*child).is_none_or(|key| key != "cache_control");
        let children: Vec<Target> = body.children(target).filter(lasting).collect();
        next.extend(children.into_iter().rev());
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Head;

    fn request(body: &str) -> ModelRequest {
        ModelRequest::new("1", Head::new("/v1/messages"), body.as_bytes().to_vec())
    }

    const FIRST: &str = r#"{"model":"m","max_tokens":9,"messages":[
        {"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}"#;
    const SECOND: &str = r#"{"model":"m","max_tokens":9,"messages":[
        {"role":"user","content":[{"type":"text","text":"a"}]},
        {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Read","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"long"},{"type":"text","text":"b"}]}],
        "tools":[{"name":"Read","input_schema":{}}]}"#;

    #[test]
    fn a_request_that_goes_on_extends_what_was_said() {
        let (first, second) = (request(FIRST), request(SECOND));
        assert_eq!(first.conversation().len(), 1);
        assert!(second.conversation().starts_with(&first.conversation()));
        assert!(
            !request(&SECOND.replace(r#""text":"a""#, r#""text":"A""#))
                .conversation()
                .starts_with(&first.conversation())
        );
    }

    #[test]
    fn what_is_sent_again_without_a_stream_is_the_same() {
        let with = |rest: &str| request(&format!(r#"{{"model":"m","messages":[]{rest}}}"#)).identity();
        assert_eq!(with(""), with(r#","stream":true"#));
        assert_ne!(with(""), with(r#","max_tokens":1"#));
    }

    #[test]
    fn what_is_new_comes_after_the_models_last_answer() {
        let second = request(SECOND);
        assert_eq!(second.news().len(), 2);
        assert_eq!(second.new_results().len(), 1);
        assert_eq!(request(FIRST).new_results().len(), 0);
        assert_eq!([request(FIRST).has_tools(), second.has_tools()], [false, true]);
    }

    #[test]
    fn a_glance_tells_the_model_and_the_conversation() {
        let (first, second) = (Glance::for_conversation(FIRST.as_bytes()), Glance::for_conversation(SECOND.as_bytes()));
        assert_eq!(first.model.as_deref(), Some("m"));
        assert!(second.first_words.is_some());
        let late =
            format!(r#"{{"contents":[{{"role":"user","parts":[{{"text":"hi"}}]}}],"x":"{}"#, "é".repeat(Glance::MOST));
        assert!(Glance::for_conversation(late.as_bytes()).first_words.is_some());
        for broken in ["", "[", "{\"model\":", "{\"messages\":[{\"role\":", "\u{feff}{}", "{\"input\":\"text\"}"] {
            assert_eq!(Glance::for_conversation(broken.as_bytes()).first_words, None, "{broken}");
        }
        let whole = Glance::for_model_anywhere(br#"{"messages":[{"model":"no"}],"model":"m"}"#);
        assert_eq!((whole.model.as_deref(), whole.model_range), (Some("m"), Some(38..39)));
        assert_eq!(Glance::for_model_anywhere(br#"{"model":"a\"b"}"#).model_range, None);
        let model = Glance::for_model(SECOND.as_bytes());
        assert_eq!((model.model.as_deref(), model.first_words), (Some("m"), None));
    }

    #[test]
    fn session_in_tail_is_the_one_that_the_agent_names_last() {
        let tail = |api, tail: &str| Glance::session_in_tail(api, tail.as_bytes());
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
