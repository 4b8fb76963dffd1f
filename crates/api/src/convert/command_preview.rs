//! Previews of commands, with effects and uncertainties.

use buffa::MessageField;
use sayso_review::{CommandPreview, DryRun, ShownCommand, Syntax, UncertainSpan};

use super::field::{enumeration, list, path, required, unspecified};
use super::{BadMessage, messages};
use crate::proto;
use crate::proto::command_preview::syntax::Result as SyntaxResult;

impl From<&CommandPreview> for proto::CommandPreview {
    fn from(preview: &CommandPreview) -> Self {
        Self {
            script: preview.script.clone(),
            directory: preview.directory.to_string(),
            description: preview.description.clone(),
            commands: messages(&preview.commands),
            effects: messages(&preview.effects),
            uncertainties: uncertainties(preview),
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
            uncertain_spans: uncertain_spans(&preview.uncertainties),
            uncertainties: list(preview.uncertainties, "uncertainties")?,
            dry_run: if preview.dry_run.is_empty() { None } else { Some(DryRun { argv: preview.dry_run }) },
            syntax: required(preview.syntax, "syntax")?,
        })
    }
}

/// Joins each uncertainty with the part of the script that causes it.
fn uncertainties(preview: &CommandPreview) -> Vec<proto::command_preview::Uncertainty> {
    let mut uncertainties: Vec<proto::command_preview::Uncertainty> = messages(&preview.uncertainties);
    for span in &preview.uncertain_spans {
        if let Some(uncertainty) = uncertainties.get_mut(span.uncertainty) {
            uncertainty.start = u32::try_from(span.start).ok();
            uncertainty.end = u32::try_from(span.end).ok();
        }
    }
    uncertainties
}

fn uncertain_spans(uncertainties: &[proto::command_preview::Uncertainty]) -> Vec<UncertainSpan> {
    let span = |(uncertainty, message): (usize, &proto::command_preview::Uncertainty)| {
        let (start, end) = (usize::try_from(message.start?).ok()?, usize::try_from(message.end?).ok()?);
        Some(UncertainSpan { uncertainty, start, end })
    };
    uncertainties.iter().enumerate().filter_map(span).collect()
}

impl From<&ShownCommand> for proto::command_preview::ParsedCommand {
    fn from(command: &ShownCommand) -> Self {
        Self { text: command.text.clone(), wrappers: command.wrappers.clone(), ..Default::default() }
    }
}

impl From<proto::command_preview::ParsedCommand> for ShownCommand {
    fn from(command: proto::command_preview::ParsedCommand) -> Self {
        Self { text: command.text, wrappers: command.wrappers }
    }
}

impl From<&Syntax> for proto::command_preview::Syntax {
    fn from(syntax: &Syntax) -> Self {
        let (result, message, line) = match syntax {
            Syntax::Valid => (SyntaxResult::Valid, "", None),
            Syntax::Invalid { message, line } => (SyntaxResult::Invalid, message.as_str(), *line),
            Syntax::Unchecked { reason } => (SyntaxResult::Unchecked, reason.as_str(), None),
        };
        Self {
            result: result.into(),
            message: message.to_owned(),
            line: line.map(|line| u32::try_from(line).unwrap_or(u32::MAX)),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::command_preview::Syntax> for Syntax {
    type Error = BadMessage;

    fn try_from(syntax: proto::command_preview::Syntax) -> Result<Self, BadMessage> {
        Ok(match enumeration::<_, SyntaxResult>(syntax.result, "result")? {
            SyntaxResult::Unspecified => return Err(unspecified().within("result")),
            SyntaxResult::Valid => Self::Valid,
            SyntaxResult::Invalid => {
                Self::Invalid { message: syntax.message, line: syntax.line.map(|line| line as usize) }
            }
            SyntaxResult::Unchecked => Self::Unchecked { reason: syntax.message },
        })
    }
}
