//! `Echo`: returns its input.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments;
use crate::context::Context;
use crate::error::ToolError;
use crate::registry::{Capability, FileAccess, Needs, Tool};

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

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<crate::step::Step, ToolError> {
        self.run(arguments, context)
            .map(|value| crate::step::Step::Done(crate::output::ToolOutput::text(value.to_string())))
    }

    fn run(&self, arguments: &Value, _: &Context<'_>) -> Result<Value, ToolError> {
        let Arguments { text } = arguments::parse(arguments)?;
        Ok(json!({ "text": text }))
    }
}
