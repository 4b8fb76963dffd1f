//! Tool inputs with which an agent's own tool makes exactly the approved content.
//!
//! The tools do not write bytes as given. `Edit` of Claude Code normalizes the line endings of a file, and Codex ends every file
//! with a newline. `claude.rs` and `codex.rs` model the effect of each tool on bytes.
//!
//! 1. If the model predicts the approved bytes for the original input, the input stays unchanged.
//! 2. Otherwise an input is compiled from the approved bytes, and checked against the model.
//! 3. If no input makes these bytes, the call is denied.
//!
//! A model that cannot predict the result with certainty returns `None`, which leads to step 2.

mod claude;
mod codex;

use sayso_review::{ErrorKind, FileState, PlanStep};
use serde_json::{Value, json};
use thiserror::Error;

use super::intent::{FileCall, PatchForm};
use super::parse::HookCall;
use super::{HookEvent, here_document};
use claude::Replacement;

/// Input of a tool that makes the approved content.
#[derive(Clone, Debug, PartialEq)]
pub enum Rewrite {
    /// The original input.
    AsIs,
    /// A replacement for the original input.
    Input(Value),
}

/// Reason why an agent's tool cannot make the approved content. The text is shown to the model with the denial.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CannotRewrite {
    #[error("nothing of this change was approved")]
    Nothing,
    #[error("this call does not change the content of files")]
    NotFiles,
    /// The tool changes one file, and the approved change has another number of files.
    #[error("the approved change is about {count} files, and this tool changes one")]
    OtherFiles { count: usize },
    #[error("the removal of `{path}` was approved, and this tool cannot remove files")]
    Removal { path: String },
    /// The path is a symbolic link before or after the change.
    #[error("`{path}` is a symbolic link, before or after, and this tool writes files only")]
    Link { path: String },
    #[error("`{path}` was approved with permissions that this tool does not set")]
    Permissions { path: String },
    #[error("`{path}` is not in an encoding that this tool preserves")]
    NotText { path: String },
    #[error("`{path}` was approved without a newline at its end, and this tool always writes one")]
    FinalNewline { path: String },
    #[error("`{path}` was approved with line endings that this tool does not write")]
    LineEndings { path: String },
    #[error("the name `{path}` cannot be written in a patch")]
    Name { path: String },
}

impl CannotRewrite {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Nothing => ErrorKind::ToolDenied,
            Self::NotFiles | Self::OtherFiles { .. } => ErrorKind::InvalidArgs,
            _ => ErrorKind::ToolFailed,
        }
    }

    /// Advice for the model.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Nothing => "do not repeat it; ask the user for another instruction",
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

/// Returns an input with which the agent's own tool makes the content of an approved [`Plan`](sayso_review::Plan).
///
/// `steps` are the steps of the plan, and `root` is the root of the workspace.
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
            // A script in another form may change the directory, so its patch is always rewritten with absolute paths.
            if form != PatchForm::Script && codex::makes(patch, &directory, steps, root) {
                return Ok(Rewrite::AsIs);
            }
            let patch = codex::patch(steps, &directory, root)?;
            let command = if form == PatchForm::Tool { patch } else { here_document::script(&patch) };
            Ok(Rewrite::Input(with_field(call, "command", command.into())))
        }
        FileCall::Write { content, .. } => {
            let approved = one_file(steps)?;
            if claude::written(approved.before, content) == approved.after {
                return Ok(Rewrite::AsIs);
            }
            let content = claude::content(approved)?;
            Ok(Rewrite::Input(with_field(call, "content", content.into())))
        }
        FileCall::Edit { edit, .. } => {
            let approved = one_file(steps)?;
            if claude::edited(approved.before, &edit).as_deref() == Some(approved.after) {
                return Ok(Rewrite::AsIs);
            }
            let Replacement { old_string, new_string } = claude::edit(approved)?;
            let mut input = with_field(call, "old_string", old_string.into());
            input["new_string"] = new_string.into();
            input["replace_all"] = false.into();
            Ok(Rewrite::Input(input))
        }
        // Not measured, so the original input is never left unchanged.
        FileCall::MultiEdit { .. } => {
            let approved = one_file(steps)?;
            let Replacement { old_string, new_string } = claude::edit(approved)?;
            let edit = json!({"old_string": old_string, "new_string": new_string, "replace_all": false});
            Ok(Rewrite::Input(with_field(call, "edits", json!([edit]))))
        }
    }
}

/// Returns the call's input with another value of one field.
fn with_field(call: &HookCall, field: &str, value: Value) -> Value {
    let mut input = if let HookEvent::PreToolUse { input, .. } = &call.event { input.clone() } else { json!({}) };
    input[field] = value;
    input
}

/// Rejects changes of links and permissions, which no tool makes.
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

/// Approved content of one file.
#[derive(Clone, Copy)]
struct Approved<'s> {
    /// `None` for a new file.
    before: Option<&'s [u8]>,
    after: &'s [u8],
    path: &'s str,
}

/// Returns the only step, if it does not remove the file.
fn one_file(steps: &[PlanStep]) -> Result<Approved<'_>, CannotRewrite> {
    let [step] = steps else { return Err(CannotRewrite::OtherFiles { count: steps.len() }) };
    let path = step.path.as_str();
    let after = step.after.bytes().ok_or_else(|| CannotRewrite::Removal { path: path.to_owned() })?;
    Ok(Approved { before: step.before.bytes(), after, path })
}
