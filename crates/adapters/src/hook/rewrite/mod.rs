//! What was approved, as an input with which the agent's own tool makes exactly that.
//!
//! An agent's tools have habits: Claude Code's Edit makes all line endings of a file the same, Codex ends every file with a
//! newline. So each tool has a model here of what it does to bytes (`claude.rs`, `codex.rs`). An input is let through only where the
//! model gives exactly what was approved, and what is compiled is checked against the model before it is handed out. Where the
//! model is not sure it says so, and the answer is a rewritten input, or that there is none.

mod claude;
mod codex;

use sayso_review::{ErrorKind, FileState, PlanStep};
use serde_json::{Value, json};
use thiserror::Error;

use super::intent::{FileCall, PatchForm};
use super::parse::HookCall;
use super::{HookEvent, here_document};
use claude::Edit;

/// What to do with a tool's input, so that what was approved happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Rewrite {
    /// Its own input makes exactly that.
    AsIs,
    /// This input does.
    Input(Value),
}

/// Why an agent's tool cannot make what was approved. The text is for the model, which is denied the call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CannotRewrite {
    /// Nothing was approved.
    #[error("nothing of this change was approved")]
    Nothing,
    /// The call changes no files.
    #[error("this call is not about the content of files")]
    NotFiles,
    /// The tool changes one file, and what was approved is about others.
    #[error("what was approved is about {count} files, and this tool changes one")]
    OtherFiles {
        /// How many.
        count: usize,
    },
    /// A file would have to go.
    #[error("`{path}` was approved to be removed, which this tool cannot do")]
    Removal {
        /// The file.
        path: String,
    },
    /// A link, or a file in place of one.
    #[error("`{path}` is a symbolic link, before or after, and this tool writes files")]
    Link {
        /// The file.
        path: String,
    },
    /// Permissions that the tool does not set.
    #[error("`{path}` was approved with permissions that this tool would not give it")]
    Permissions {
        /// The file.
        path: String,
    },
    /// Bytes that are no text to the tool.
    #[error("`{path}` is not in an encoding that this tool keeps")]
    NotText {
        /// The file.
        path: String,
    },
    /// A last line without its newline.
    #[error("`{path}` was approved without a newline at its end, and this tool always writes one")]
    FinalNewline {
        /// The file.
        path: String,
    },
    /// Line endings that the tool does not keep.
    #[error("`{path}` was approved with line endings that this tool would not write")]
    LineEndings {
        /// The file.
        path: String,
    },
    /// A name that the tool's format has no way to say.
    #[error("the name `{path}` cannot be written in a patch")]
    Name {
        /// The file.
        path: String,
    },
}

impl CannotRewrite {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Nothing => ErrorKind::ToolDenied,
            Self::NotFiles | Self::OtherFiles { .. } => ErrorKind::InvalidArgs,
            _ => ErrorKind::ToolFailed,
        }
    }

    /// What a model can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Nothing => "do not repeat it; ask the user what they want instead",
            Self::NotFiles | Self::OtherFiles { .. } => "change one file at a time",
            Self::Removal { .. } | Self::Permissions { .. } | Self::Link { .. } | Self::Name { .. } => {
                "use a shell command for it, which is reviewed as well"
            }
            Self::NotText { .. } | Self::FinalNewline { .. } | Self::LineEndings { .. } => {
                "nothing was written; write the file with a shell command that keeps its bytes, which is reviewed as well"
            }
        }
    }
}

/// Compiles what was approved of a call's files into an input for the agent's own tool.
///
/// `steps` are those of the approved [`Plan`](sayso_review::Plan), and `root` is the directory of the workspace.
pub fn rewrite(call: &HookCall, steps: &[PlanStep], root: &str) -> Result<Rewrite, CannotRewrite> {
    let file_call = call.file_call().ok_or(CannotRewrite::NotFiles)?;
    if steps.is_empty() {
        return Err(CannotRewrite::Nothing);
    }
    for step in steps {
        check_kind(step)?;
    }
    match file_call {
        FileCall::Patch { patch, directory, form, .. } => {
            // Where a script's directory is hidden in it, the paths of the patch are written out instead.
            let is_as_approved = || codex::makes(patch, &directory, steps, root);
            if form != PatchForm::Script && is_as_approved() {
                return Ok(Rewrite::AsIs);
            }
            let patch = codex::patch(steps, &directory, root)?;
            let command = if form == PatchForm::Tool { patch } else { here_document::script(&patch) };
            Ok(Rewrite::Input(with(call, "command", command.into())))
        }
        FileCall::Write { content, .. } => {
            let approved = one_file(steps)?;
            if claude::written(approved.before, content) == approved.after {
                return Ok(Rewrite::AsIs);
            }
            let content = claude::content(approved)?;
            Ok(Rewrite::Input(with(call, "content", content.into())))
        }
        FileCall::Edit { edit, .. } => {
            let approved = one_file(steps)?;
            if claude::edited(approved.before, &edit).as_deref() == Some(approved.after) {
                return Ok(Rewrite::AsIs);
            }
            let Edit { old_string, new_string } = claude::edit(approved)?;
            let mut input = with(call, "old_string", old_string.into());
            input["new_string"] = new_string.into();
            input["replace_all"] = false.into();
            Ok(Rewrite::Input(input))
        }
        // Of a version that was not tried: nothing is said about what its own input makes.
        FileCall::MultiEdit { .. } => {
            let approved = one_file(steps)?;
            let Edit { old_string, new_string } = claude::edit(approved)?;
            let edit = json!({"old_string": old_string, "new_string": new_string, "replace_all": false});
            Ok(Rewrite::Input(with(call, "edits", json!([edit]))))
        }
    }
}

/// The call's input with another value for one field.
fn with(call: &HookCall, field: &str, value: Value) -> Value {
    let mut input = if let HookEvent::Before { input, .. } = &call.event { input.clone() } else { json!({}) };
    input[field] = value;
    input
}

/// Refuses what no tool of an agent does: links and permissions.
fn check_kind(step: &PlanStep) -> Result<(), CannotRewrite> {
    let path = || step.path.to_string();
    match (&step.before, &step.after) {
        (FileState::Link { .. }, _) | (_, FileState::Link { .. }) => Err(CannotRewrite::Link { path: path() }),
        (FileState::File { mode: before, .. }, FileState::File { mode: after, .. }) if before != after => {
            Err(CannotRewrite::Permissions { path: path() })
        }
        (FileState::Absent, FileState::File { mode, .. }) if mode.is_executable() => {
            Err(CannotRewrite::Permissions { path: path() })
        }
        _ => Ok(()),
    }
}

/// What was approved of one file.
#[derive(Clone, Copy)]
struct Approved<'s> {
    before: Option<&'s [u8]>,
    after: &'s [u8],
    path: &'s str,
}

/// What was approved, where it is about one file that is there afterwards.
fn one_file(steps: &[PlanStep]) -> Result<Approved<'_>, CannotRewrite> {
    let [step] = steps else { return Err(CannotRewrite::OtherFiles { count: steps.len() }) };
    let path = step.path.as_str();
    let after = step.after.bytes().ok_or_else(|| CannotRewrite::Removal { path: path.to_owned() })?;
    Ok(Approved { before: step.before.bytes(), after, path })
}
