//! What a command appears to do.

use buffa::MessageField;
use sayso_review::{CommandPreview, DryRun, ShownCommand, Syntax};

use super::field::{enumeration, list, not_said, path, required};
use super::{BadMessage, messages};
use crate::proto;
use crate::proto::command_preview::syntax::Verdict;

impl From<&CommandPreview> for proto::CommandPreview {
    fn from(preview: &CommandPreview) -> Self {
        Self {
            script: preview.script.clone(),
            directory: preview.directory.to_string(),
            description: preview.description.clone(),
            commands: messages(&preview.commands),
            effects: messages(&preview.effects),
            doubts: messages(&preview.doubts),
            dry_run: preview.dry_run.as_ref().map(|dry_run| dry_run.argv.clone()).unwrap_or_default(),
            syntax: MessageField::some((&preview.syntax).into()),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::CommandPreview> for CommandPreview {
    type Error = BadMessage;

    fn try_from(preview: proto::CommandPreview) -> Result<Self, BadMessage> {
        Ok(Self {
            directory: path(&preview.directory, "directory")?,
            script: preview.script,
            description: preview.description,
            commands: preview.commands.into_iter().map(ShownCommand::from).collect(),
            effects: list(preview.effects, "effects")?,
            doubts: list(preview.doubts, "doubts")?,
            dry_run: if preview.dry_run.is_empty() { None } else { Some(DryRun { argv: preview.dry_run }) },
            syntax: required(preview.syntax, "syntax")?,
        })
    }
}

impl From<&ShownCommand> for proto::command_preview::ShownCommand {
    fn from(command: &ShownCommand) -> Self {
        Self { text: command.text.clone(), through: command.through.clone(), ..Default::default() }
    }
}

impl From<proto::command_preview::ShownCommand> for ShownCommand {
    fn from(command: proto::command_preview::ShownCommand) -> Self {
        Self { text: command.text, through: command.through }
    }
}

impl From<&Syntax> for proto::command_preview::Syntax {
    fn from(syntax: &Syntax) -> Self {
        let (verdict, message, line) = match syntax {
            Syntax::Fine => (Verdict::Fine, "", None),
            Syntax::Wrong { message, line } => (Verdict::Wrong, message.as_str(), *line),
            Syntax::Unchecked { reason } => (Verdict::Unchecked, reason.as_str(), None),
        };
        Self {
            verdict: verdict.into(),
            message: message.to_owned(),
            line: line.map(|line| u32::try_from(line).unwrap_or(u32::MAX)),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::command_preview::Syntax> for Syntax {
    type Error = BadMessage;

    fn try_from(syntax: proto::command_preview::Syntax) -> Result<Self, BadMessage> {
        Ok(match enumeration::<_, Verdict>(syntax.verdict, "verdict")? {
            Verdict::Unspecified => return Err(not_said().within("verdict")),
            Verdict::Fine => Self::Fine,
            Verdict::Wrong => Self::Wrong { message: syntax.message, line: syntax.line.map(|line| line as usize) },
            Verdict::Unchecked => Self::Unchecked { reason: syntax.message },
        })
    }
}
