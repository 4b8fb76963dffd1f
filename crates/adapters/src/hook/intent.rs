//! Translation of tool calls into intents.

use sayso_diff::{Section, SectionAction, SectionPatch, is_begin_patch};
use sayso_review::{Bytes, FileIntent, Intent, NewContent, Proposal};
use serde_json::Value;

use super::here_document;
use super::parse::{HookCall, HookEvent};
use crate::Agent;

/// A call that changes files, in the terms of its tool.
pub(super) enum FileCall<'c> {
    /// `Write` of Claude Code.
    Write { path: &'c str, content: &'c str },
    /// `Edit` of Claude Code.
    Edit { path: &'c str, edit: EditCall<'c> },
    /// `MultiEdit` of earlier versions of Claude Code.
    MultiEdit { path: &'c str, edits: Vec<EditCall<'c>> },
    /// `apply_patch` of Codex.
    Patch {
        patch: &'c str,
        /// Base of the relative paths in `patch`.
        directory: String,
        /// The patch with absolute paths.
        absolute: String,
        form: PatchForm,
    },
}

/// One replacement by a tool of Claude Code.
#[derive(Clone, Copy)]
pub(super) struct EditCall<'c> {
    pub(super) old_string: &'c str,
    pub(super) new_string: &'c str,
    pub(super) replace_all: bool,
}

/// Transport of a patch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchForm {
    /// Input of the `apply_patch` tool.
    Tool,
    /// Script in the form that sayso itself writes.
    PlainScript,
    /// Script in any other form.
    Script,
}

impl HookCall {
    /// Returns the intent of a `PreToolUse` event, and `None` for other events.
    pub fn intent(&self) -> Option<Intent> {
        let HookEvent::PreToolUse { tool, input, .. } = &self.event else { return None };
        if let Some(call) = self.file_call() {
            return Some(Intent::ChangeFiles(Proposal { changes: self.changes(&call) }));
        }
        match (tool.as_str(), text(input, "command")) {
            ("Bash", Some(command)) => Some(Intent::RunCommand {
                command: command.to_owned(),
                directory: Some(self.cwd.clone()),
                description: text(input, "description").map(str::to_owned),
            }),
            _ => Some(Intent::CallTool { name: tool.clone(), arguments: input.clone() }),
        }
    }

    /// Returns the shell command of an event about a tool call.
    #[cfg(feature = "engine")]
    pub(super) fn command(&self) -> Option<&str> {
        match &self.event {
            HookEvent::PreToolUse { tool, input, .. }
            | HookEvent::PostToolUse { tool, input, .. }
            | HookEvent::PostToolUseFailure { tool, input, .. }
                if tool == "Bash" && self.file_call().is_none() =>
            {
                text(input, "command")
            }
            _ => None,
        }
    }

    /// Returns the tool's input with another command, for a `PreToolUse` event of a shell command.
    pub fn with_command(&self, command: &str) -> Option<Value> {
        match &self.event {
            HookEvent::PreToolUse { tool, input, .. } if tool == "Bash" && text(input, "command").is_some() => {
                let mut input = input.clone();
                input["command"] = command.into();
                Some(input)
            }
            _ => None,
        }
    }

    /// Parses the call of a tool that changes files. Returns `None` for another tool and for malformed input.
    pub(super) fn file_call(&self) -> Option<FileCall<'_>> {
        let HookEvent::PreToolUse { tool, input, .. } = &self.event else { return None };
        match (self.agent, tool.as_str()) {
            (Agent::Claude, "Write") => {
                Some(FileCall::Write { path: text(input, "file_path")?, content: text(input, "content")? })
            }
            (Agent::Claude, "Edit") => Some(FileCall::Edit { path: text(input, "file_path")?, edit: edit(input)? }),
            (Agent::Claude, "MultiEdit") => {
                let edits = input.get("edits")?.as_array()?.iter().map(edit).collect::<Option<Vec<_>>>()?;
                let path = text(input, "file_path")?;
                (!edits.is_empty()).then_some(FileCall::MultiEdit { path, edits })
            }
            (Agent::Codex, "apply_patch") => {
                let patch = text(input, "command")?;
                let (directory, form) = (self.cwd.clone(), PatchForm::Tool);
                Some(FileCall::Patch { patch, absolute: with_absolute_paths(patch, &directory)?, directory, form })
            }
            (Agent::Codex, "Bash") => {
                let document = here_document::read(text(input, "command")?)?;
                let directory = document.directory.map_or_else(|| self.cwd.clone(), |path| beneath(&self.cwd, path));
                let form = if document.is_plain { PatchForm::PlainScript } else { PatchForm::Script };
                let patch = Some(document.patch).filter(|patch| is_begin_patch(patch))?;
                Some(FileCall::Patch { patch, absolute: with_absolute_paths(patch, &directory)?, directory, form })
            }
            _ => None,
        }
    }

    fn changes(&self, call: &FileCall<'_>) -> Vec<FileIntent> {
        let change = |path: &str, edit: &EditCall<'_>| FileIntent::Edit {
            path: beneath(&self.cwd, path),
            old_string: edit.old_string.to_owned(),
            new_string: edit.new_string.to_owned(),
            replace_all: edit.replace_all,
        };
        match call {
            FileCall::Write { path, content } => vec![FileIntent::Write(NewContent {
                path: beneath(&self.cwd, path),
                new_content: (*content).to_owned(),
                exact: false,
                executable: None,
                base_content: None,
            })],
            FileCall::Edit { path, edit } => vec![change(path, edit)],
            FileCall::MultiEdit { path, edits } => edits.iter().map(|edit| change(path, edit)).collect(),
            FileCall::Patch { absolute, .. } => vec![FileIntent::Patch { patch: Bytes::Text(absolute.clone()) }],
        }
    }
}

fn text<'v>(input: &'v Value, field: &str) -> Option<&'v str> {
    input.get(field)?.as_str()
}

fn edit(input: &Value) -> Option<EditCall<'_>> {
    Some(EditCall {
        old_string: text(input, "old_string")?,
        new_string: text(input, "new_string")?,
        replace_all: input.get("replace_all").and_then(Value::as_bool).unwrap_or(false),
    })
}

/// Joins a path to a directory textually. `..` and links are resolved when the path is opened.
pub(super) fn beneath(directory: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", directory.trim_end_matches('/')) }
}

/// Lines of a patch that name a file. Content lines cannot start with these words because each starts with a sign.
const PATH_PREFIXES: [&str; 4] = ["*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"];

/// Makes the relative paths of a patch absolute. The parser is lenient and may accept a path line that this function
/// does not rewrite, for example an indented one. A path that stays relative would be resolved against the workspace, so the
/// result is then `None`.
fn with_absolute_paths(patch: &str, directory: &str) -> Option<String> {
    let line = |line: &str| match PATH_PREFIXES.into_iter().find_map(|name| Some((name, line.strip_prefix(name)?))) {
        Some((name, path)) if !path.trim().is_empty() => format!("{name} {}", beneath(directory, path.trim_start())),
        _ => line.to_owned(),
    };
    let absolute: String = patch.split_inclusive('\n').map(line).collect();
    let is_absolute = |section: &Section| {
        let moved = if let SectionAction::Update { move_to, .. } = &section.action { move_to.as_deref() } else { None };
        [Some(section.path.as_str()), moved].into_iter().flatten().all(|path| path.starts_with('/'))
    };
    SectionPatch::parse(&absolute).sections.iter().all(is_absolute).then_some(absolute)
}
