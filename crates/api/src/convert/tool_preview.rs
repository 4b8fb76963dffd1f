//! What a call of a tool says.

use buffa::MessageField;
use sayso_review::{DelegationPreview, ShownArgument, ToolPreview, Touch};

use super::field::{json, list, optional};
use super::{BadMessage, messages};
use crate::proto;

impl From<&ToolPreview> for proto::ToolPreview {
    fn from(preview: &ToolPreview) -> Self {
        let guessed_from = preview.guessed_from.as_ref();
        Self {
            name: preview.name.clone(),
            arguments: messages(&preview.arguments),
            problems: messages(&preview.problems),
            changes: preview.changes.as_ref().map(|changes| MessageField::some(changes.into())).unwrap_or_default(),
            // Of data that always serialises; were it not to, it could not be read on the other side, which is safe.
            guessed_from_json: guessed_from.map(|from| serde_json::to_string(from).unwrap_or_default()),
            delegation: preview.delegation.as_ref().map(|work| MessageField::some(work.into())).unwrap_or_default(),
            paths: preview.paths.clone(),
            touch: touch_name(preview.touch).to_owned(),
            command: preview.command.clone(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::ToolPreview> for ToolPreview {
    type Error = BadMessage;

    fn try_from(preview: proto::ToolPreview) -> Result<Self, BadMessage> {
        let guessed_from = preview.guessed_from_json.as_deref();
        Ok(Self {
            name: preview.name,
            arguments: list(preview.arguments, "arguments")?,
            problems: list(preview.problems, "problems")?,
            changes: optional(preview.changes, "changes")?,
            guessed_from: guessed_from.map(|text| json(text, "guessed_from_json")).transpose()?,
            delegation: optional(preview.delegation, "delegation")?,
            paths: preview.paths,
            touch: read_touch(&preview.touch)?,
            command: preview.command,
        })
    }
}

fn touch_name(touch: Touch) -> &'static str {
    match touch {
        Touch::Reads => "reads",
        Touch::Writes => "writes",
    }
}

fn read_touch(name: &str) -> Result<Touch, BadMessage> {
    match name {
        "reads" => Ok(Touch::Reads),
        "writes" => Ok(Touch::Writes),
        other => Err(BadMessage::new("touch", format!("this version does not know `{}`", other.escape_debug()))),
    }
}

impl From<&ShownArgument> for proto::tool_preview::Argument {
    fn from(argument: &ShownArgument) -> Self {
        Self {
            name: argument.name.clone(),
            value_json: argument.value.to_string(),
            r#type: argument.kind.clone(),
            description: argument.description.clone(),
            required: argument.required,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::tool_preview::Argument> for ShownArgument {
    type Error = BadMessage;

    fn try_from(argument: proto::tool_preview::Argument) -> Result<Self, BadMessage> {
        Ok(Self {
            value: json(&argument.value_json, "value_json")?,
            name: argument.name,
            kind: argument.r#type,
            description: argument.description,
            required: argument.required,
        })
    }
}

impl From<&DelegationPreview> for proto::tool_preview::Delegation {
    fn from(work: &DelegationPreview) -> Self {
        Self {
            agent: work.agent.clone(),
            prompt: work.prompt.clone(),
            tools: work.tools.clone(),
            description: work.description.clone(),
            ..Default::default()
        }
    }
}

impl From<proto::tool_preview::Delegation> for DelegationPreview {
    fn from(work: proto::tool_preview::Delegation) -> Self {
        Self { agent: work.agent, prompt: work.prompt, tools: work.tools, description: work.description }
    }
}
