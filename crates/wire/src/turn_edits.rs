//! Edits that stay for the rest of a turn.
//!
//! An agent sends its whole history again with every request of a turn. An edit of the first one would be undone by the second,
//! so it is laid over each of them: found by what the section said before, and dropped once that is no longer there.

use serde::{Deserialize, Serialize};

use crate::conversation::{hash, write_lasting};
use crate::dialect::{Role, Saying};
use crate::edit::{EditError, EditTargetKind, Step};
use crate::json::{Document, Target};
use crate::overrides::{Drift, Override, Overrides, Scope};
use crate::request::ModelRequest;
use crate::section::NodeType;

/// The edits of one request, for the following requests of its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEdits {
    /// Edits of sections.
    edits: Vec<Override>,
    /// Messages that were added.
    added: Vec<AddedMessage>,
    /// Prompts in the history when the edits were made. With one more, another turn has begun.
    prompts: usize,
}

/// A message that a person added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AddedMessage {
    path: String,
    /// The message before it, by its hash and how many alike come before that; `None` at the beginning.
    after: Option<(String, usize)>,
    /// The message as JSON.
    value: String,
}

/// The outcome of laying [`TurnEdits`] over a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnOutcome {
    /// Paths of the edits that were made again.
    pub applied: Vec<String>,
    /// Edits that were dropped: the path, and the reason.
    pub dropped: Vec<(String, String)>,
}

/// The reason for dropping an edit whose text is not in the request.
const GONE: &str = "the text that it was made for is no longer in the request";

impl TurnEdits {
    /// The edits of a request beyond those of `since`. Edits of settings are for one request and left out, as are those that
    /// are saved `elsewhere`. `None` if none is left.
    pub fn capture(request: &ModelRequest, since: Option<&ModelRequest>, elsewhere: &[Override]) -> Option<Self> {
        let mut overrides = Overrides::default();
        overrides.capture_since(since, request, elsewhere, Scope::Session, 0);
        overrides.edits.retain(|edit| edit.anchor.node != NodeType::RequestOption);
        let added = added_messages(request);
        let some = !overrides.edits.is_empty() || !added.is_empty();
        some.then(|| Self { edits: overrides.edits, added, prompts: request.prompts() })
    }

    /// The number of edits.
    pub fn len(&self) -> usize {
        self.edits.len() + self.added.len()
    }

    /// Edits of sections. Added messages are not among them.
    pub fn sections(&self) -> &[Override] {
        &self.edits
    }

    /// Whether no edit is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a request belongs to a later turn.
    pub fn is_over_at(&self, request: &ModelRequest) -> bool {
        request.prompts() > self.prompts
    }

    /// Makes the edits again in another request of the turn. Those whose text is gone are dropped for good.
    pub fn apply(&mut self, request: &mut ModelRequest) -> TurnOutcome {
        let mut outcome = TurnOutcome::default();
        let overrides = Overrides { edits: std::mem::take(&mut self.edits), preview_limit: None };
        let made = overrides.apply(request);
        for (place, edit) in overrides.edits.into_iter().enumerate() {
            let path = edit.anchor.path.clone();
            match made.drifted.iter().find(|(drifted, _)| *drifted == place).map(|(_, drift)| drift) {
                // A saved edit has done the same before.
                None | Some(Drift::Refused(EditError::Already { .. })) => {
                    outcome.applied.push(path);
                    self.edits.push(edit);
                }
                Some(Drift::Refused(error)) => outcome.dropped.push((path, error.to_string())),
                Some(Drift::Changed(_) | Drift::Gone) => outcome.dropped.push((path, GONE.to_owned())),
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
    /// The number of prompts in the history: runs of messages between two answers of the model in which the user says
    /// something and no tool answers.
    pub fn prompts(&self) -> usize {
        let (Some(dialect), Some(body)) = (self.dialect(), self.document()) else { return 0 };
        let items = dialect.messages(&body.as_came());
        let runs = items.split(|item| item.role == Role::Assistant);
        runs.filter(|run| {
            let answers = run.iter().any(|item| matches!(item.saying, Saying::Result { .. }));
            !answers && run.iter().any(|item| item.role == Role::User && item.saying == Saying::Content)
        })
        .count()
    }

    fn insert_message(&mut self, added: &AddedMessage) -> Result<(), String> {
        let gone = || GONE.to_owned();
        let dialect = self.dialect().ok_or_else(gone)?;
        let document = self.document_mut().ok_or_else(gone)?;
        let came = messages(dialect, &document.as_came());
        let list = came.first().and_then(|(first, _)| document.parent(*first)).ok_or_else(gone)?;
        let next = match &added.after {
            None => 0,
            Some((wanted, occurrence)) => {
                let alike = came.iter().enumerate().filter(|(_, (_, hash))| hash == wanted);
                alike.map(|(place, _)| place).nth(*occurrence).ok_or_else(gone)? + 1
            }
        };
        let before = came.get(next).map(|(target, _)| *target);
        let change = document.add_element(list, before, added.value.as_bytes()).map_err(|error| error.to_string())?;
        let (_, change) = change.ok_or_else(gone)?;
        self.make(EditTargetKind::Addition, added.path.clone(), vec![Step::Body(change)]);
        Ok(())
    }
}

/// The messages of a body, each with its hash.
fn messages(dialect: &dyn crate::dialect::Dialect, body: &Document) -> Vec<(Target, String)> {
    let mut messages: Vec<(Target, String)> = Vec::new();
    for item in dialect.messages(body) {
        if messages.last().is_none_or(|(last, _)| *last != item.message) {
            let mut text = Vec::new();
            write_lasting(body, item.message, &mut text);
            messages.push((item.message, hash(&text)));
        }
    }
    messages
}

/// The messages of a request that did not come with it.
fn added_messages(request: &ModelRequest) -> Vec<AddedMessage> {
    let (Some(dialect), Some(body)) = (request.dialect(), request.document()) else { return Vec::new() };
    let came = messages(dialect, &body.as_came());
    let Some(list) = came.first().and_then(|(first, _)| body.parent(*first)) else { return Vec::new() };
    let mut added = Vec::new();
    let mut last = None;
    for message in body.children(list) {
        if let Some(place) = came.iter().position(|(target, _)| *target == message) {
            last = Some(place);
        } else if request.is_added(message) {
            let after = last.map(|place: usize| {
                let hash = &came[place].1;
                (hash.clone(), came[..place].iter().filter(|(_, other)| other == hash).count())
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
    use crate::Head;

    fn request(messages: &str) -> ModelRequest {
        let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{messages}]}}"#);
        ModelRequest::new("1", Head::new("/v1/messages"), body.into_bytes())
    }

    const PROMPT: &str = r#"{"role":"user","content":[{"type":"text","text":"Drop it."}]}"#;
    const CALL: &str = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Read","input":{}}]}"#;
    const RESULT: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"},{"type":"text","text":"note"}]}"#;
    const ANSWER: &str = r#"{"role":"assistant","content":"Done."}"#;

    fn text(request: &ModelRequest) -> String {
        String::from_utf8(request.to_bytes().into_owned()).unwrap()
    }

    #[test]
    fn edit_is_made_again_until_the_next_prompt() {
        let mut first = request(PROMPT);
        first.edit_path("messages[0].content[0].text", "Count it.").unwrap();
        first.edit_path("max_tokens", "7").unwrap();
        let mut edits = TurnEdits::capture(&first, None, &[]).unwrap();
        assert_eq!(edits.len(), 1, "a setting is for one request");
        let mut second = request(&[PROMPT, CALL, RESULT].join(","));
        assert!(!edits.is_over_at(&second));
        assert_eq!(edits.apply(&mut second).applied, ["messages[0].content[0]"]);
        assert_eq!(text(&second), text(&request(&[PROMPT, CALL, RESULT].join(","))).replace("Drop it.", "Count it."));
        assert!(edits.is_over_at(&request(&[PROMPT, CALL, RESULT, ANSWER, PROMPT].join(","))));
    }

    #[test]
    fn added_message_stays_where_it_was_added() {
        let mut first = request(PROMPT);
        first.append("Be brief.").unwrap();
        let mut edits = TurnEdits::capture(&first, None, &[]).unwrap();
        let mut second = request(&[PROMPT, CALL, RESULT].join(","));
        edits.apply(&mut second);
        let added = r#"{"role":"user","content":[{"type":"text","text":"Be brief."}]}"#;
        assert_eq!(text(&second), text(&request(&[PROMPT, added, CALL, RESULT].join(","))));
    }

    #[test]
    fn deletion_is_made_again() {
        let mut first = request(&[PROMPT, CALL, RESULT].join(","));
        let note = first.at("messages[2].content[1]").unwrap();
        first.delete(note.into()).unwrap();
        let mut edits = TurnEdits::capture(&first, None, &[]).unwrap();
        let mut second = request(&[PROMPT, CALL, RESULT, CALL, RESULT].join(","));
        assert_eq!(edits.apply(&mut second).dropped, []);
        assert_eq!(text(&second).matches("note").count(), 1);
    }

    #[test]
    fn edit_whose_text_is_gone_is_dropped_for_good() {
        let mut first = request(PROMPT);
        first.edit_path("messages[0].content[0].text", "Count it.").unwrap();
        first.append("Be brief.").unwrap();
        let mut edits = TurnEdits::capture(&first, None, &[]).unwrap();
        let mut other = request(r#"{"role":"user","content":"A summary."}"#);
        let outcome = edits.apply(&mut other);
        assert_eq!(outcome.dropped.iter().map(|(_, why)| why.as_str()).collect::<Vec<_>>(), [GONE, GONE]);
        assert!(edits.is_empty() && !other.is_dirty());
    }

    #[test]
    fn edit_that_is_taken_back_leaves_nothing() {
        let mut first = request(PROMPT);
        first.edit_path("messages[0].content[0].text", "Count it.").unwrap();
        first.reset().unwrap();
        assert_eq!(TurnEdits::capture(&first, None, &[]), None);
    }
}
