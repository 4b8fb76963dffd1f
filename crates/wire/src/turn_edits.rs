//! Turn edits: edits that stay in effect for the rest of a turn.
//!
//! An agent sends its whole history with every request of a turn, so the second request would lose the edits of the
//! first. The edits are applied to each request of the turn, located by the original content, and dropped once that
//! content is missing.

use serde::{Deserialize, Serialize};

use crate::conversation::{hash, write_stable_leaves};
use crate::dialect::{ItemKind, MessageRole};
use crate::edit::{EditError, EditStep, EditTargetKind};
use crate::json::{Document, Target};
use crate::overrides::{Drift, Override, Overrides, Scope};
use crate::request::ModelRequest;
use crate::section::NodeType;

/// The edits of one request, for the following requests of its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEdits {
    edits: Vec<Override>,
    added: Vec<AddedMessage>,
    /// Number of prompts in the history at the time of the edits. A further prompt starts another turn.
    prompts: usize,
}

/// A message added by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AddedMessage {
    path: String,
    /// Hash of the preceding message and its index among equal ones; `None` at the start.
    after: Option<(String, usize)>,
    /// The message as JSON.
    value: String,
}

/// The result of applying [`TurnEdits`] to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnOutcome {
    /// Paths of applied edits.
    pub applied: Vec<String>,
    /// Dropped edits: path and reason.
    pub dropped: Vec<(String, String)>,
}

/// The reason for dropping an edit whose original content is missing.
const TEXT_MISSING: &str = "the original text is no longer in the request";

impl TurnEdits {
    /// Captures the edits made after the state `since`. Edits of settings, which apply to one request only, and edits
    /// saved in `elsewhere` are excluded. Returns `None` if no edit remains.
    pub fn capture(request: &ModelRequest, since: Option<&ModelRequest>, elsewhere: &[Override]) -> Option<Self> {
        let mut overrides = Overrides::default();
        overrides.capture_since(since, request, elsewhere, Scope::Session, 0);
        overrides.edits.retain(|edit| edit.anchor.node != NodeType::RequestOption);
        let added = added_messages(request);
        let some = !overrides.edits.is_empty() || !added.is_empty();
        some.then(|| Self { edits: overrides.edits, added, prompts: request.prompts() })
    }

    /// Returns the number of edits.
    pub fn len(&self) -> usize {
        self.edits.len() + self.added.len()
    }

    /// Returns the edits of sections, without added messages.
    pub fn sections(&self) -> &[Override] {
        &self.edits
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `true` if a request belongs to a later turn.
    pub fn is_expired_for(&self, request: &ModelRequest) -> bool {
        request.prompts() > self.prompts
    }

    /// Applies the edits to another request of the turn. Edits whose original content is missing are dropped
    /// permanently.
    pub fn apply(&mut self, request: &mut ModelRequest) -> TurnOutcome {
        let mut outcome = TurnOutcome::default();
        let overrides = Overrides { edits: std::mem::take(&mut self.edits), preview_limit: None };
        let made = overrides.apply(request);
        for (place, edit) in overrides.edits.into_iter().enumerate() {
            let path = edit.anchor.path.clone();
            match made.drifted.iter().find(|(drifted, _)| *drifted == place).map(|(_, drift)| drift) {
                // A saved edit already has the same effect.
                None | Some(Drift::Refused(EditError::Already { .. })) => {
                    outcome.applied.push(path);
                    self.edits.push(edit);
                }
                Some(Drift::Refused(error)) => outcome.dropped.push((path, error.to_string())),
                Some(Drift::Changed(_) | Drift::Missing) => outcome.dropped.push((path, TEXT_MISSING.to_owned())),
            }
        }
        for added in std::mem::take(&mut self.added) {
            let path = added.path.clone();
            match request.insert_message(&added) {
                Ok(()) => {
                    outcome.applied.push(path);
                    self.added.push(added);
                }
                Err(why) => outcome.dropped.push((path, why)),
            }
        }
        outcome
    }
}

impl ModelRequest {
    /// Counts the prompts in the history: runs of messages between two responses that contain a user text and no tool
    /// result.
    pub fn prompts(&self) -> usize {
        let (Some(dialect), Some(body)) = (self.dialect(), self.document()) else { return 0 };
        let items = dialect.messages(&body.as_received());
        let runs = items.split(|item| item.role == MessageRole::Assistant);
        runs.filter(|run| {
            let answers = run.iter().any(|item| matches!(item.kind, ItemKind::Result { .. }));
            !answers && run.iter().any(|item| item.role == MessageRole::User && item.kind == ItemKind::Content)
        })
        .count()
    }

    fn insert_message(&mut self, added: &AddedMessage) -> Result<(), String> {
        let gone = || TEXT_MISSING.to_owned();
        let dialect = self.dialect().ok_or_else(gone)?;
        let document = self.document_mut().ok_or_else(gone)?;
        let received = messages(dialect, &document.as_received());
        let list = received.first().and_then(|(first, _)| document.parent(*first)).ok_or_else(gone)?;
        let next = match &added.after {
            None => 0,
            Some((wanted, occurrence)) => {
                let equal = received.iter().enumerate().filter(|(_, (_, hash))| hash == wanted);
                equal.map(|(place, _)| place).nth(*occurrence).ok_or_else(gone)? + 1
            }
        };
        let before = received.get(next).map(|(target, _)| *target);
        let change = document.add_element(list, before, added.value.as_bytes()).map_err(|error| error.to_string())?;
        let (_, change) = change.ok_or_else(gone)?;
        self.commit_steps(EditTargetKind::Addition, added.path.clone(), vec![EditStep::Body(change)]);
        Ok(())
    }
}

/// Returns the messages of a body with their hashes.
fn messages(dialect: &dyn crate::dialect::Dialect, body: &Document) -> Vec<(Target, String)> {
    let mut messages: Vec<(Target, String)> = Vec::new();
    for item in dialect.messages(body) {
        if messages.last().is_none_or(|(last, _)| *last != item.message) {
            let mut text = Vec::new();
            write_stable_leaves(body, item.message, &mut text);
            messages.push((item.message, hash(&text)));
        }
    }
    messages
}

/// Returns the messages that were added to a request.
fn added_messages(request: &ModelRequest) -> Vec<AddedMessage> {
    let (Some(dialect), Some(body)) = (request.dialect(), request.document()) else { return Vec::new() };
    let received = messages(dialect, &body.as_received());
    let Some(list) = received.first().and_then(|(first, _)| body.parent(*first)) else { return Vec::new() };
    let mut added = Vec::new();
    let mut last = None;
    for message in body.children(list) {
        if let Some(place) = received.iter().position(|(target, _)| *target == message) {
            last = Some(place);
        } else if request.is_added(message) {
            let after = last.map(|place: usize| {
                let hash = &received[place].1;
                (hash.clone(), received[..place].iter().filter(|(_, other)| other == hash).count())
            });
            let value = String::from_utf8_lossy(&body.value_bytes(message)).into_owned();
            added.push(AddedMessage { path: body.path(message), after, value });
        }
    }
    added
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;
    use crate::RequestHead;

    fn request(messages: &str) -> ModelRequest {
        let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{messages}]}}"#);
        ModelRequest::new("1", RequestHead::new("/v1/messages"), body.into_bytes())
    }

    const PROMPT: &str = r#"{"role":"user","content":[{"type":"text","text":"Drop it."}]}"#;
    const CALL: &str = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Read","input":{}}]}"#;
    const RESULT: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"},{"type":"text","text":"note"}]}"#;
    const ANSWER: &str = r#"{"role":"assistant","content":"Done."}"#;

    fn text(request: &ModelRequest) -> String {
        String::from_utf8(request.to_bytes().into_owned()).unwrap()
    }

    #[test]
    fn turn_edit_applies_until_next_prompt() {
        let mut first = request(PROMPT);
        first.edit_path("messages[0].content[0].text", "Count it.").unwrap();
        first.edit_path("max_tokens", "7").unwrap();
        let mut edits = TurnEdits::capture(&first, None, &[]).unwrap();
        assert_eq!(edits.len(), 1, "a setting is for one request");
        let mut second = request(&[PROMPT, CALL, RESULT].join(","));
        assert!(!edits.is_expired_for(&second));
        assert_eq!(edits.apply(&mut second).applied, ["messages[0].content[0]"]);
        assert_eq!(text(&second), text(&request(&[PROMPT, CALL, RESULT].join(","))).replace("Drop it.", "Count it."));
        assert!(edits.is_expired_for(&request(&[PROMPT, CALL, RESULT, ANSWER, PROMPT].join(","))));
    }

    #[test]
    fn added_message_keeps_its_position() {
        let mut first = request(PROMPT);
        first.append("Be brief.").unwrap();
        let mut edits = TurnEdits::capture(&first, None, &[]).unwrap();
        let mut second = request(&[PROMPT, CALL, RESULT].join(","));
        edits.apply(&mut second);
        let added = r#"{"role":"user","content":[{"type":"text","text":"Be brief."}]}"#;
        assert_eq!(text(&second), text(&request(&[PROMPT, added, CALL, RESULT].join(","))));
    }

    #[test]
    fn deletion_is_reapplied() {
        let mut first = request(&[PROMPT, CALL, RESULT].join(","));
        let note = first.resolve("messages[2].content[1]").unwrap();
        first.delete(note.into()).unwrap();
        let mut edits = TurnEdits::capture(&first, None, &[]).unwrap();
        let mut second = request(&[PROMPT, CALL, RESULT, CALL, RESULT].join(","));
        assert_eq!(edits.apply(&mut second).dropped, []);
        assert_eq!(text(&second).matches("note").count(), 1);
    }

    #[test]
    fn edit_without_original_text_is_dropped() {
        let mut first = request(PROMPT);
        first.edit_path("messages[0].content[0].text", "Count it.").unwrap();
        first.append("Be brief.").unwrap();
        let mut edits = TurnEdits::capture(&first, None, &[]).unwrap();
        let mut other = request(r#"{"role":"user","content":"A summary."}"#);
        let outcome = edits.apply(&mut other);
        assert_eq!(
            outcome.dropped.iter().map(|(_, why)| why.as_str()).collect::<Vec<_>>(),
            [TEXT_MISSING, TEXT_MISSING]
        );
        assert!(edits.is_empty() && !other.is_dirty());
    }

    #[test]
    fn undone_edit_leaves_no_turn_edit() {
        let mut first = request(PROMPT);
        first.edit_path("messages[0].content[0].text", "Count it.").unwrap();
        first.reset().unwrap();
        assert_eq!(TurnEdits::capture(&first, None, &[]), None);
    }
}
