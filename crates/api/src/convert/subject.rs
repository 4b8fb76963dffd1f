//! Subjects of changes: files, commands and tool calls.

use buffa::MessageField;
use sayso_review::{Subject, WsPath};
use serde_json::Value;

use super::BadMessage;
use super::field::{json, oneof, path, required};
use crate::proto;
use crate::proto::oneof as choice;

impl From<&Subject> for proto::Subject {
    fn from(subject: &Subject) -> Self {
        use proto::subject::{Command, Files, Tool};
        let subject = match subject {
            Subject::Files => Files::default().into(),
            Subject::Command { command, directory, description, preview } => Command {
                command: command.clone(),
                directory: directory.to_string(),
                description: description.clone(),
                preview: MessageField::some((&**preview).into()),
                ..Default::default()
            }
            .into(),
            Subject::Tool { name, arguments, preview } => Tool {
                name: name.clone(),
                arguments_json: arguments.to_string(),
                preview: MessageField::some((&**preview).into()),
                ..Default::default()
            }
            .into(),
        };
        Self { subject, ..Default::default() }
    }
}

impl TryFrom<proto::Subject> for Subject {
    type Error = BadMessage;

    fn try_from(subject: proto::Subject) -> Result<Self, BadMessage> {
        use choice::subject::Subject as Choice;
        match oneof(subject.subject, "subject")? {
            Choice::Files(_) => Ok(Self::Files),
            Choice::Command(command) => read_command(*command).map_err(|error| error.within("command")),
            Choice::Tool(tool) => read_tool(*tool).map_err(|error| error.within("tool")),
        }
    }
}

fn read_command(command: proto::subject::Command) -> Result<Subject, BadMessage> {
    let directory: WsPath = path(&command.directory, "directory")?;
    let preview = Box::new(required(command.preview, "preview")?);
    Ok(Subject::Command { command: command.command, directory, description: command.description, preview })
}

fn read_tool(tool: proto::subject::Tool) -> Result<Subject, BadMessage> {
    let arguments: Value = json(&tool.arguments_json, "arguments_json")?;
    let preview = Box::new(required(tool.preview, "preview")?);
    Ok(Subject::Tool { name: tool.name, arguments, preview })
}
