//! `Write`: replaces the whole content of a file, or creates it.

use sayso_review::{ErrorKind, FileIntent, NewContent, Proposal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments;
use crate::context::Context;
use crate::error::ToolError;
use crate::proposal_check;
use crate::read_log::ReadState;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::{FileStep, Step};

pub(crate) struct Write;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace or absolute. Missing directories are created.
    path: String,
    /// The whole new content.
    content: String,
    /// Sets or clears the executable bit; by default it stays.
    executable: Option<bool>,
}

impl Tool for Write {
    fn name(&self) -> &'static str {
        "Write"
    }

    fn description(&self) -> &'static str {
        "Creates a file, or replaces its whole content; use Edit to change parts. Line endings and encoding of an existing file are \
         kept. A person or a rule decides about the diff before it is written."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Write }
    }

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<Step, ToolError> {
        let Arguments { path, content, executable } = arguments::parse(arguments)?;
        let base_content = base(&path, context);
        let content = NewContent { path, new_content: content, exact: false, executable, base_content };
        let proposal = Proposal { changes: vec![FileIntent::Write(content)] };
        proposal_check::check(&proposal, context)?;
        Ok(Step::ChangeFiles(FileStep { proposal, notes: Vec::new(), proposed: None }))
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let Arguments { path, .. } = arguments::parse(arguments)?;
        let path = context.locate(&path)?;
        Err(ToolError::new(
            ErrorKind::Unavailable,
            format!("`{path}` was not written: no gate is running to review it"),
        )
        .hint("propose it with `sayso propose`, which shows the diff and asks"))
    }
}

/// Returns the text that the model read. With it, the gate merges edits that someone makes before the verdict.
fn base(path: &str, context: &Context<'_>) -> Option<String> {
    let file = context.read(&context.readable(path).ok()?).ok()?;
    let is_current = context.read_state(&file.location, &file.bytes) == ReadState::Current;
    let text = sayso_diff::plain_text(&file.bytes).filter(|_| is_current)?;
    Some(text.into_owned())
}
