//! `Write`: proposes the whole new content of a file.

use sayso_review::ErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments;
use crate::context::Context;
use crate::error::ToolError;
use crate::registry::{Capability, FileAccess, Needs, Tool};

pub(crate) struct Write;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace or absolute.
    path: String,
    /// The whole new content.
    #[serde(rename = "content")]
    _content: String,
}

impl Tool for Write {
    fn name(&self) -> &'static str {
        "Write"
    }

    fn description(&self) -> &'static str {
        "Proposes the whole new content of a file. A person reviews the diff before it is written."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Write }
    }

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<crate::step::Step, ToolError> {
        self.run(arguments, context)
            .map(|value| crate::step::Step::Done(crate::output::ToolOutput::text(value.to_string())))
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let Arguments { path, .. } = arguments::parse(arguments)?;
        let path = context.locate(&path)?;
        // Only the gate writes, after a review. Tools have no access to the gate yet, so this tool always fails.
        Err(ToolError::new(
            ErrorKind::Unavailable,
            format!("`{path}` was not written: no gate is running to review it"),
        )
        .hint("propose it with `sayso propose`, which shows the diff and asks"))
    }
}
