//! Intents: file changes, commands and tool calls.

use sayso_review::{Bytes, FileIntent, Intent, NewContent, Proposal};

use super::field::{json, list, oneof};
use super::{BadMessage, messages};
use crate::proto;
use crate::proto::oneof as choice;

/// Encodes a request to a model as an empty intent: the protocol has none.
impl From<&Intent> for proto::Intent {
    fn from(intent: &Intent) -> Self {
        let intent = match intent {
            Intent::ChangeFiles(proposal) => proto::Proposal::from(proposal).into(),
            Intent::RunCommand { command, directory, description } => proto::RunCommand {
                command: command.clone(),
                directory: directory.clone(),
                description: description.clone(),
                ..Default::default()
            }
            .into(),
            Intent::CallTool { name, arguments } => {
                proto::CallTool { name: name.clone(), arguments_json: arguments.to_string(), ..Default::default() }
                    .into()
            }
            Intent::SendRequest { .. } => None,
        };
        Self { intent, ..Default::default() }
    }
}

impl TryFrom<proto::Intent> for Intent {
    type Error = BadMessage;

    fn try_from(intent: proto::Intent) -> Result<Self, BadMessage> {
        use choice::intent::Intent as Choice;
        match oneof(intent.intent, "intent")? {
            Choice::ChangeFiles(proposal) => {
                (*proposal).try_into().map_err(|error: BadMessage| error.within("change_files"))
            }
            Choice::RunCommand(run) => Ok((*run).into()),
            Choice::CallTool(call) => (*call).try_into().map_err(|error: BadMessage| error.within("call_tool")),
        }
    }
}

impl TryFrom<proto::Proposal> for Intent {
    type Error = BadMessage;

    fn try_from(proposal: proto::Proposal) -> Result<Self, BadMessage> {
        proposal.try_into().map(Self::ChangeFiles)
    }
}

impl From<proto::RunCommand> for Intent {
    fn from(run: proto::RunCommand) -> Self {
        Self::RunCommand { command: run.command, directory: run.directory, description: run.description }
    }
}

/// Ignores `schema_json`, which is not part of the intent.
impl TryFrom<proto::CallTool> for Intent {
    type Error = BadMessage;

    fn try_from(call: proto::CallTool) -> Result<Self, BadMessage> {
        Ok(Self::CallTool { arguments: json(&call.arguments_json, "arguments_json")?, name: call.name })
    }
}

impl From<&Proposal> for proto::Proposal {
    fn from(proposal: &Proposal) -> Self {
        Self { changes: messages(&proposal.changes), ..Default::default() }
    }
}

impl TryFrom<proto::Proposal> for Proposal {
    type Error = BadMessage;

    fn try_from(proposal: proto::Proposal) -> Result<Self, BadMessage> {
        Ok(Self { changes: list(proposal.changes, "changes")? })
    }
}

impl From<&FileIntent> for proto::FileIntent {
    fn from(intent: &FileIntent) -> Self {
        use choice::file_intent::Operation;
        use proto::file_intent::{Delete, Edit, Rename};
        let operation = match intent {
            FileIntent::Create(content) => Operation::Create(Box::new(content.into())),
            FileIntent::Update(content) => Operation::Update(Box::new(content.into())),
            FileIntent::Write(content) => Operation::Write(Box::new(content.into())),
            FileIntent::Edit { path, old_string, new_string, replace_all } => Edit {
                path: path.clone(),
                old_string: old_string.clone(),
                new_string: new_string.clone(),
                replace_all: *replace_all,
                ..Default::default()
            }
            .into(),
            FileIntent::Patch { patch } => Operation::Patch(patch.as_bytes().to_vec()),
            FileIntent::Delete { path } => Delete { path: path.clone(), ..Default::default() }.into(),
            FileIntent::Rename { path, to } => {
                Rename { path: path.clone(), to: to.clone(), ..Default::default() }.into()
            }
        };
        Self { operation: Some(operation), ..Default::default() }
    }
}

impl TryFrom<proto::FileIntent> for FileIntent {
    type Error = BadMessage;

    fn try_from(intent: proto::FileIntent) -> Result<Self, BadMessage> {
        use choice::file_intent::Operation;
        Ok(match oneof(intent.operation, "operation")? {
            Operation::Create(content) => Self::Create((*content).into()),
            Operation::Update(content) => Self::Update((*content).into()),
            Operation::Write(content) => Self::Write((*content).into()),
            Operation::Edit(edit) => Self::Edit {
                path: edit.path,
                old_string: edit.old_string,
                new_string: edit.new_string,
                replace_all: edit.replace_all,
            },
            Operation::Patch(patch) => Self::Patch { patch: Bytes::new(patch) },
            Operation::Delete(delete) => Self::Delete { path: delete.path },
            Operation::Rename(rename) => Self::Rename { path: rename.path, to: rename.to },
        })
    }
}

impl From<&NewContent> for proto::file_intent::NewContent {
    fn from(content: &NewContent) -> Self {
        Self {
            path: content.path.clone(),
            new_content: content.new_content.clone(),
            exact: content.exact,
            executable: content.executable,
            base_content: content.base_content.clone(),
            ..Default::default()
        }
    }
}

impl From<proto::file_intent::NewContent> for NewContent {
    fn from(content: proto::file_intent::NewContent) -> Self {
        Self {
            path: content.path,
            new_content: content.new_content,
            exact: content.exact,
            executable: content.executable,
            base_content: content.base_content,
        }
    }
}
