//! `List`: lists a directory.

use sayso_workspace::EntryKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments;
use crate::context::Context;
use crate::error::ToolError;
use crate::registry::{Capability, FileAccess, Needs, Tool};

pub(crate) struct List;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The directory, relative to the workspace or absolute; by default the workspace.
    path: Option<String>,
}

impl Tool for List {
    fn name(&self) -> &'static str {
        "List"
    }

    fn description(&self) -> &'static str {
        "Lists names, types and sizes of the readable entries of a directory."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Read }
    }

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<crate::step::Step, ToolError> {
        self.run(arguments, context)
            .map(|value| crate::step::Step::Done(crate::output::ToolOutput::text(value.to_string())))
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let Arguments { path } = arguments::parse(arguments)?;
        let path = context.locate(path.as_deref().unwrap_or("."))?;
        let listing = context.list(&path)?;
        let entries: Vec<Value> = listing
            .entries
            .into_iter()
            .map(|entry| {
                let kind = match entry.kind {
                    EntryKind::File => "file",
                    EntryKind::Directory => "directory",
                    EntryKind::Symlink => "symlink",
                    EntryKind::Special => "special",
                };
                json!({ "name": entry.name, "type": kind, "size": entry.size })
            })
            .collect();
        Ok(json!({ "path": path.to_string(), "entries": entries, "unnameable": listing.unnameable }))
    }
}
