//! `List`: lists a directory.

use sayso_workspace::{EntryKind, Listing, WsPath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments;
use crate::context::Context;
use crate::error::ToolError;
use crate::glob::matcher;
use crate::output::ToolOutput;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::Step;

pub(crate) struct List;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The directory, relative to the workspace or absolute; by default the workspace.
    path: Option<String>,
    /// Patterns of entries to omit, such as `*.log` or `node_modules`.
    #[serde(default)]
    ignore: Vec<String>,
}

/// Maximum number of entries in a result for a model.
const MAX_SHOWN_ENTRIES: usize = 1_000;

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

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<Step, ToolError> {
        let (path, listing) = list(arguments, context)?;
        let mut text = String::new();
        for entry in listing.entries.iter().take(MAX_SHOWN_ENTRIES) {
            // A line break in a name would look like another entry.
            let name = sayso_diff::one_line(&entry.name);
            text.push_str(&match entry.kind {
                EntryKind::File => format!("{name} ({} bytes)\n", entry.size),
                EntryKind::Directory => format!("{name}/\n"),
                EntryKind::Symlink => format!("{name} (symbolic link)\n"),
                EntryKind::Special => format!("{name} (special file)\n"),
            });
        }
        if listing.entries.is_empty() {
            text = format!("`{path}` has no entries to show.\n");
        } else if listing.entries.len() > MAX_SHOWN_ENTRIES {
            let more = listing.entries.len() - MAX_SHOWN_ENTRIES;
            text.push_str(&format!("[{more} more entries; use Glob with a pattern]\n"));
        }
        if listing.unnameable > 0 {
            text.push_str(&format!("[{} names are not UTF-8 and not shown]\n", listing.unnameable));
        }
        Ok(Step::Done(ToolOutput::text(text)))
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let (path, listing) = list(arguments, context)?;
        let entries: Vec<Value> = listing
            .entries
            .into_iter()
            .map(|entry| json!({ "name": entry.name, "type": kind_name(entry.kind), "size": entry.size }))
            .collect();
        Ok(json!({ "path": path.to_string(), "entries": entries, "unnameable": listing.unnameable }))
    }
}

fn list(arguments: &Value, context: &Context<'_>) -> Result<(WsPath, Listing), ToolError> {
    let Arguments { path, ignore } = arguments::parse(arguments)?;
    let path = context.locate(path.as_deref().unwrap_or("."))?;
    let ignored = ignore.iter().map(|pattern| matcher(pattern.trim_end_matches('/'))).collect::<Result<Vec<_>, _>>()?;
    let mut listing = context.list(&path)?;
    listing
        .entries
        .retain(|entry| !ignored.iter().any(|glob| glob.is_match(&entry.name) || glob.is_match(entry.path.as_str())));
    Ok((path, listing))
}

fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Symlink => "symlink",
        EntryKind::Special => "special",
    }
}
