//! `Delegate`: gives a task to a subagent.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, invalid};
use crate::context::Context;
use crate::error::ToolError;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::{Delegation, Step};

pub(crate) struct Delegate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The task in three to six words, for display.
    description: String,
    /// The whole task. The subagent sees nothing else of this conversation; its last message is the result.
    prompt: String,
    /// Names of the tools that it may use; by default those of its scenario. It cannot use more than this agent.
    tools: Option<Vec<String>>,
    /// Name of its scenario, such as `ASK`; by default the current one.
    scenario: Option<String>,
}

impl Tool for Delegate {
    fn name(&self) -> &'static str {
        "Delegate"
    }

    fn description(&self) -> &'static str {
        "Gives a task to a subagent with a conversation of its own, and returns its last message. Use it for a search or a separate \
         piece of work whose details this conversation does not need."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::None }
    }

    fn prepare(&self, arguments: &Value, _: &Context<'_>) -> Result<Step, ToolError> {
        let Arguments { description, prompt, tools, scenario } = arguments::parse(arguments)?;
        for (name, text) in [("description", &description), ("prompt", &prompt)] {
            if text.trim().is_empty() {
                return Err(invalid(format!("`{name}` is empty")));
            }
        }
        if tools.as_ref().is_some_and(Vec::is_empty) {
            return Err(invalid("`tools` is empty: name at least one tool, or leave it out"));
        }
        Ok(Step::Delegate(Delegation { description, prompt, tools, scenario }))
    }
}
