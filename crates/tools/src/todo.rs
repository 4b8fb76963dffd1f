//! `TodoWrite` and `TodoRead`: the todo list of the session.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, invalid};
use crate::context::Context;
use crate::error::ToolError;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::{self, Step, TodoState};

pub(crate) struct TodoWriteTool;
pub(crate) struct TodoReadTool;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Items to create or change. Items that are not named stay as they are.
    #[serde(default)]
    todos: Vec<TodoItem>,
    /// Ids of items to remove.
    #[serde(default)]
    remove: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodoItem {
    /// Id of the item to change. Without an id a new item is created.
    id: Option<String>,
    /// One line.
    text: Option<String>,
    /// The state of the work; a new item is pending.
    state: Option<TodoState>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

impl Tool for TodoWriteTool {
    fn name(&self) -> &'static str {
        "TodoWrite"
    }

    fn description(&self) -> &'static str {
        "Creates, changes and removes items of the todo list, which the user sees and may change too. Returns the list with ids."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::None }
    }

    fn prepare(&self, arguments: &Value, _: &Context<'_>) -> Result<Step, ToolError> {
        let Arguments { todos, remove } = arguments::parse(arguments)?;
        if todos.is_empty() && remove.is_empty() {
            return Err(invalid("both `todos` and `remove` are empty: give at least one item"));
        }
        let mut writes = Vec::with_capacity(todos.len() + remove.len());
        for (index, TodoItem { id, text, state }) in todos.into_iter().enumerate() {
            let is_blank = text.as_ref().is_some_and(|text| text.trim().is_empty());
            if is_blank || (id.is_none() && text.is_none()) {
                return Err(invalid(format!("`todos[{index}].text` is missing or empty: a new item needs a text")));
            }
            if id.as_ref().is_some_and(String::is_empty) {
                return Err(invalid(format!("`todos[{index}].id` is empty: leave it out to create an item")));
            }
            // A line break would look like another item.
            let text = text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
            writes.push(step::TodoWrite::Put { id, text, state });
        }
        writes.extend(remove.into_iter().map(|id| step::TodoWrite::Remove { id }));
        Ok(Step::WriteTodos(writes))
    }
}

impl Tool for TodoReadTool {
    fn name(&self) -> &'static str {
        "TodoRead"
    }

    fn description(&self) -> &'static str {
        "Returns the todo list with ids and states."
    }

    fn schema(&self) -> Value {
        arguments::schema::<NoArguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::None }
    }

    fn prepare(&self, arguments: &Value, _: &Context<'_>) -> Result<Step, ToolError> {
        let NoArguments {} = arguments::parse(arguments)?;
        Ok(Step::ReadTodos)
    }
}
