//! What a tool is about to do, in our words.

use sayso_diff::{Section, SectionAction, SectionPatch, is_begin_patch};
use sayso_review::{Bytes, FileIntent, Intent, NewContent, Proposal};
use serde_json::Value;

use super::agent::Agent;
use super::here_document;
use super::parse::{HookCall, HookEvent};

/// What a call is about to change, as its tool says it.
pub(super) enum FileCall<'c> {
    /// Claude Code's Write.
    Write { path: &'c str, content: &'c str },
    /// Claude Code's Edit.
    Edit { path: &'c str, edit: EditCall<'c> },
    /// Claude Code's MultiEdit of earlier versions.
    MultiEdit { path: &'c str, edits: Vec<EditCall<'c>> },
    /// Codex's apply_patch, and where its relative paths start; also with paths that are not relative.
    Patch { patch: &'c str, directory: String, whole: String, form: PatchForm },
}

/// One replacement of Claude Code.
#[derive(Clone, Copy)]
pub(super) struct EditCall<'c> {
    pub(super) old_string: &'c str,
    pub(super) new_string: &'c str,
    pub(super) replace_all: bool,
}

/// How a patch is handed over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchForm {
    /// As the tool's input.
    Tool,
    /// As a script that is written as ours would be.
    PlainScript,
    /// As a script that says it in another way.
    Script,
}

impl HookCall {
    /// What the agent is about to do; nothing, unless this comes before a tool is used.
    pub fn intent(&self) -> Option<Intent> {
        let HookEvent::Before { tool, input, .. } = &self.event else { return None };
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

    /// The command that a tool is about to run, or ran.
    pub(super) fn command(&self) -> Option<&str> {
        match &self.event {
            HookEvent::Before { tool, input, .. }
            | HookEvent::After { tool, input, .. }
            | HookEvent::Failed { tool, input, .. }
                if tool == "Bash" && self.file_call().is_none() =>
            {
                text(input, "command")
            }
            _ => None,
        }
    }

    /// The input with another command in it, where a command is about to be run.
    pub fn with_command(&self, command: &str) -> Option<Value> {
        match &self.event {
            HookEvent::Before { tool, input, .. } if tool == "Bash" && text(input, "command").is_some() => {
                let mut input = input.clone();
                input["command"] = command.into();
                Some(input)
            }
            _ => None,
        }
    }

    /// What the call is about to change, where its tool changes files and its input is as that tool wants it.
    pub(super) fn file_call(&self) -> Option<FileCall<'_>> {
        let HookEvent::Before { tool, input, .. } = &self.event else { return None };
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
                Some(FileCall::Patch { patch, whole: with_whole_paths(patch, &directory)?, directory, form })
            }
            (Agent::Codex, "Bash") => {
                let document = here_document::read(text(input, "command")?)?;
                let directory = document.directory.map_or_else(|| self.cwd.clone(), |path| beneath(&self.cwd, path));
                let form = if document.is_plain { PatchForm::PlainScript } else { PatchForm::Script };
                let patch = Some(document.patch).filter(|patch| is_begin_patch(patch))?;
                Some(FileCall::Patch { patch, whole: with_whole_paths(patch, &directory)?, directory, form })
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
            FileCall::Patch { whole, .. } => vec![FileIntent::Patch { patch: Bytes::Text(whole.clone()) }],
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

/// A path as seen from a directory. Nothing is looked up: what `..` leads to is for whoever opens it.
pub(super) fn beneath(directory: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", directory.trim_end_matches('/')) }
}

/// What names a file in a patch. Lines of files never start like this: they come after a sign.
const NAMES: [&str; 4] = ["*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"];

/// A patch whose relative paths are those of a directory, with paths that need none; nothing where it is written so loosely that a
/// relative path stays, which would then be taken for one of the workspace.
fn with_whole_paths(patch: &str, directory: &str) -> Option<String> {
    let line = |line: &str| match NAMES.into_iter().find_map(|name| Some((name, line.strip_prefix(name)?))) {
        Some((name, path)) if !path.trim().is_empty() => format!("{name} {}", beneath(directory, path.trim_start())),
        _ => line.to_owned(),
    };
    let whole: String = patch.split_inclusive('\n').map(line).collect();
    let is_whole = |section: &Section| {
        let moved = if let SectionAction::Update { move_to, .. } = &section.action { move_to.as_deref() } else { None };
        [Some(section.path.as_str()), moved].into_iter().flatten().all(|path| path.starts_with('/'))
    };
    SectionPatch::parse(&whole).sections.iter().all(is_whole).then_some(whole)
}
