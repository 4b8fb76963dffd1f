//! `Write`: asks for a file's content to be replaced.

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
    /// The file, relative to the workspace or by its full path.
    path: String,
    /// Its whole new content.
    #[serde(rename = "content")]
    _content: String,
}

impl Tool for Write {
    fn name(&self) -> &'static str {
        "Write"
    }

    fn description(&self) -> &'static str {
        "Proposes a file's whole new content. A person sees the diff and decides before anything is written."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Write }
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let Arguments { path, .. } = arguments::parse(arguments)?;
        let path = context.locate(&path)?;
        // Writes happen only through the gate, where they are shown first. A tool has no way to ask anybody yet, so there is no write.
        Err(ToolError::new(
            ErrorKind::Unavailable,
            format!("`{path}` was not written: no gate is running to review it"),
        )
        .hint("propose it with `sayso propose`, which shows the diff and asks"))
    }
}
