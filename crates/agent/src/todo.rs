//! The todo list of a session. The user and the agent write it; the last write of an item wins.

use sayso_tools::{TodoState, TodoWrite};
use serde::{Deserialize, Serialize};

/// An item of a todo list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// Unique in the session.
    pub id: String,
    pub text: String,
    pub state: TodoState,
    pub writer: TodoWriter,
    /// Time of the last write, in milliseconds since 1970.
    pub updated_ms: i64,
}

/// The author of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoWriter {
    Agent,
    User,
}

/// Writes to a todo list, with all ids chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoChange {
    pub writes: Vec<TodoWrite>,
    /// Ids in their new order. Items that it does not name follow in their old order. Empty: unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
}

/// A write to an item that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TodoError {
    #[error("there is no todo item `{id}`")]
    Unknown { id: String },
    #[error("a new todo item has no text")]
    NoText,
    #[error("the todo list has {MAX_TODOS} items: remove some before adding more")]
    TooMany,
}

/// Maximum number of items.
pub const MAX_TODOS: usize = 200;

/// The todo list of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct TodoItems {
    items: Vec<Todo>,
}

impl TodoItems {
    pub fn items(&self) -> &[Todo] {
        &self.items
    }

    /// Checks writes and chooses the ids of new items. A user's write of an unknown id creates it.
    pub(crate) fn check(&self, mut change: TodoChange, writer: TodoWriter) -> Result<TodoChange, TodoError> {
        let mut known: Vec<String> = self.items.iter().map(|item| item.id.clone()).collect();
        for write in &mut change.writes {
            match write {
                TodoWrite::Put { id, text, .. } => {
                    let exists = id.as_ref().is_some_and(|id| known.contains(id));
                    if !exists {
                        if let (Some(id), TodoWriter::Agent) = (&id, writer) {
                            return Err(TodoError::Unknown { id: id.clone() });
                        }
                        if text.as_ref().is_none_or(|text| text.trim().is_empty()) {
                            return Err(TodoError::NoText);
                        }
                        if known.len() >= MAX_TODOS {
                            return Err(TodoError::TooMany);
                        }
                        known.push(id.get_or_insert_with(|| free_id(&known)).clone());
                    }
                }
                TodoWrite::Remove { id } => {
                    let Some(at) = known.iter().position(|known| known == id) else {
                        return Err(TodoError::Unknown { id: id.clone() });
                    };
                    known.remove(at);
                }
            }
        }
        Ok(change)
    }

    /// Applies checked writes. Writes that no longer fit are skipped.
    pub(crate) fn apply(&mut self, change: &TodoChange, writer: TodoWriter, updated_ms: i64) {
        for write in &change.writes {
            match write {
                TodoWrite::Put { id: Some(id), text, state } => {
                    self.put(id, text.as_deref(), *state, writer, updated_ms);
                }
                TodoWrite::Put { id: None, .. } => {}
                TodoWrite::Remove { id } => self.items.retain(|item| item.id != *id),
            }
        }
        if !change.order.is_empty() {
            let place = |item: &Todo| change.order.iter().position(|id| *id == item.id).unwrap_or(usize::MAX);
            self.items.sort_by_key(place);
        }
    }

    fn put(&mut self, id: &str, text: Option<&str>, state: Option<TodoState>, writer: TodoWriter, updated_ms: i64) {
        if let Some(item) = self.items.iter_mut().find(|item| item.id == id) {
            if let Some(text) = text {
                text.clone_into(&mut item.text);
            }
            item.state = state.unwrap_or(item.state);
            (item.writer, item.updated_ms) = (writer, updated_ms);
        } else if let Some(text) = text {
            let state = state.unwrap_or(TodoState::Pending);
            self.items.push(Todo { id: id.to_owned(), text: text.to_owned(), state, writer, updated_ms });
        }
    }

    /// Returns the list as the model reads it.
    pub fn text(&self) -> String {
        if self.items.is_empty() {
            return "The todo list is empty.".to_owned();
        }
        let line = |item: &Todo| {
            let mark = match item.state {
                TodoState::Pending => "[ ]",
                TodoState::InProgress => "[~]",
                TodoState::Done => "[x]",
            };
            format!("{mark} {}: {}", item.id, item.text)
        };
        self.items.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Returns the smallest free number as an id.
fn free_id(known: &[String]) -> String {
    let mut number = 1;
    while known.contains(&number.to_string()) {
        number += 1;
    }
    number.to_string()
}
