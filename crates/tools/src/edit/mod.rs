//! `Edit`: replaces a piece of text in a file.

pub(crate) mod nearest;
mod search;

use sayso_review::{ErrorKind, FileIntent, Note, Proposal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, invalid};
use crate::context::{Context, FileContent};
use crate::edit::search::{Mismatch, TextMatch};
use crate::error::ToolError;
use crate::proposal_check;
use crate::read_log::ReadState;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::{FileStep, Step, StepNote};

pub(crate) struct EditTool;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace or absolute.
    path: String,
    /// The text to replace, exactly as in the file, without line numbers. It must occur once, unless `replace_all` is set. Give
    /// the lines around it to make it unique. If it is empty, the file must be absent or empty.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replaces every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl Tool for EditTool {
    fn name(&self) -> &'static str {
        "Edit"
    }

    fn description(&self) -> &'static str {
        "Replaces a piece of text in a file. Line endings and encoding of the file are kept. A person or a rule decides about the \
         diff before it is written."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::Write }
    }

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<Step, ToolError> {
        let Arguments { path, old_string, new_string, replace_all } = arguments::parse(arguments)?;
        if old_string == new_string {
            return Err(invalid("`old_string` and `new_string` are equal, so nothing would change"));
        }
        let mut notes = Vec::new();
        let (mut old, mut new) = (old_string, new_string);
        if !old.is_empty() {
            let file = context.read(&context.readable(&path)?)?;
            if context.read_state(&file.location, &file.bytes) == ReadState::Stale {
                return Err(proposal_check::stale(&file.location));
            }
            if let Some(tolerant) = find(&path, &file, &old, &new, replace_all)? {
                (old, new) = (tolerant.old, tolerant.new);
                notes.push(StepNote {
                    path: file.location.clone(),
                    text: format!(
                        "`old_string` matched at line {} only after ignoring {}; the file's own text was replaced",
                        tolerant.line, tolerant.ignored
                    ),
                    note: Some(Note::Loosened { hunk: 1, ignored: tolerant.ignored.to_owned() }),
                });
            }
        }
        let edit = FileIntent::Edit { path, old_string: old, new_string: new, replace_all };
        let proposal = Proposal { changes: vec![edit] };
        proposal_check::check(&proposal, context)?;
        Ok(Step::ChangeFiles(FileStep { proposal, notes, proposed: None }))
    }
}

/// Checks that the text occurs as the call requires. Returns other texts if it occurs only with other white space.
fn find(
    path: &str,
    file: &FileContent,
    old: &str,
    new: &str,
    replace_all: bool,
) -> Result<Option<search::Tolerant>, ToolError> {
    let Some(text) = sayso_diff::plain_text(&file.bytes) else {
        return Err(ToolError::new(
            ErrorKind::ToolFailed,
            format!("`{path}` is not text, so text in it cannot be replaced"),
        )
        .hint("leave the file as it is, or replace it with a command"));
    };
    let amount = if replace_all { search::Amount::All } else { search::Amount::One };
    match search::find(&text, old, new, amount) {
        Ok(TextMatch::Exact) => Ok(None),
        Ok(TextMatch::Tolerant(tolerant)) => Ok(Some(tolerant)),
        Err(Mismatch::Several { lines }) => {
            let count = lines.len();
            let shown = nearest::places(&text, &lines, old.lines().count());
            Err(ToolError::new(
                ErrorKind::Conflict,
                format!(
                    "`old_string` occurs {count} times in `{path}`; nothing was changed. The occurrences:\n{shown}"
                ),
            )
            .hint("add lines before or after it to `old_string` until it is unique, or set `replace_all`"))
        }
        Err(Mismatch::Absent) => {
            let old: Vec<&str> = old.lines().collect();
            let nearest = nearest::describe(&text, &old).unwrap_or_else(|| ". No line is similar".to_owned());
            Err(ToolError::new(
                ErrorKind::Conflict,
                format!("`old_string` is not in `{path}`; nothing was changed{nearest}"),
            )
            .hint("copy the text from the output of Read, without its line numbers"))
        }
    }
}
