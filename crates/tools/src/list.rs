//! `List`: what a directory holds.

use sayso_workspace::{EntryKind, OpenError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments;
use crate::context::{Context, not_granted};
use crate::error::ToolError;
use crate::registry::{Capability, FileAccess, Needs, Tool};

pub(crate) struct List;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The directory, relative to the workspace or by its full path; the workspace itself if left out.
    path: Option<String>,
}

impl Tool for List {
    fn name(&self) -> &'static str {
        "List"
    }

    fn description(&self) -> &'static str {
        "Lists a directory: names, types and sizes of what may be read."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Read }
    }

    fn run(&self, arguments: &Value, context: &Context<'_>) -> Result<Value, ToolError> {
        let Arguments { path } = arguments::parse(arguments)?;
        let path = context.workspace().locate(path.as_deref().unwrap_or("."))?;
        let granted = context.check(&path).is_ok();
        let listing = context.workspace().open_path(&path).and_then(|opened| opened.list());
        let listing = match listing {
            Ok(listing) => listing,
            // Whether an ungranted directory exists is nobody's business.
            Err(OpenError::NotFound(_) | OpenError::NotADirectory(_)) if !granted => return Err(not_granted(&path)),
            Err(OpenError::NotADirectory(path)) => {
                let message = format!("`{path}` is not a directory");
                return Err(ToolError::new(sayso_review::ErrorKind::ToolFailed, message).hint("Read shows a file"));
            }
            Err(error) => return Err(error.into()),
        };
        // A grant such as `src/*.rs` shows those files of `src` and no others.
        let visible: Vec<_> = listing.entries.into_iter().filter(|entry| context.check(&entry.path).is_ok()).collect();
        if visible.is_empty() && !granted {
            return Err(not_granted(&path));
        }
        let entries: Vec<Value> = visible
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
