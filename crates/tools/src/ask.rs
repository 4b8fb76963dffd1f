//! `Ask`: asks the user a question.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, invalid};
use crate::context::Context;
use crate::error::ToolError;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::{Question, Step};

pub(crate) struct Ask;

/// Maximum number of suggested answers.
const MAX_OPTIONS: usize = 10;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The question, with everything that the user needs to answer it.
    question: String,
    /// Suggested answers, up to 10. The user may answer with any text.
    #[serde(default)]
    options: Vec<String>,
}

impl Tool for Ask {
    fn name(&self) -> &'static str {
        "Ask"
    }

    fn description(&self) -> &'static str {
        "Asks the user a question and returns the answer. Use it only if the task cannot go on without the answer."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::None }
    }

    fn prepare(&self, arguments: &Value, _: &Context<'_>) -> Result<Step, ToolError> {
        let Arguments { question, options } = arguments::parse(arguments)?;
        if question.trim().is_empty() {
            return Err(invalid("`question` is empty"));
        }
        if options.len() > MAX_OPTIONS {
            return Err(invalid(format!("`options` has {} answers; give up to {MAX_OPTIONS}", options.len())));
        }
        Ok(Step::Ask(Question { question, options }))
    }
}
