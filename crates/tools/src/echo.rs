//! `Echo`: returns its input.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments;
use crate::context::Context;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::Step;

pub(crate) struct Echo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The text to return.
    text: String,
}

impl Tool for Echo {
    fn name(&self) -> &'static str {
        "Echo"
    }

    fn description(&self) -> &'static str {
        "Returns its text, to test that calls arrive."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::None, files: FileAccess::None }
    }

    fn prepare(&self, arguments: &Value, _: &Context<'_>) -> Result<Step, ToolError> {
        let Arguments { text } = arguments::parse(arguments)?;
        Ok(Step::Done(ToolOutput::text(text)))
    }
}
