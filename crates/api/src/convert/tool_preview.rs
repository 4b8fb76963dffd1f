//! Previews of tool calls.

use sayso_review::{DelegationPreview, FileAccess, ShownArgument, ToolPreview};

use super::field::{json, list, optional};
use super::{BadMessage, messages};
use crate::proto;

impl From<&ToolPreview> for proto::ToolPreview {
    fn from(preview: &ToolPreview) -> Self {
        let guessed_from = preview.guessed_from.as_ref();
        Self {
            name: preview.name.clone(),
            arguments: messages(&preview.arguments),
            mismatches: messages(&preview.problems),
            changes: preview.changes.as_ref().map(proto::Proposal::from).into(),
            // The value always serialises. If it did not, the receiver would reject the message.
            inferred_from_json: guessed_from.map(|from| serde_json::to_string(from).unwrap_or_default()),
            delegation: preview.delegation.as_ref().map(proto::tool_preview::Delegation::from).into(),
            paths: preview.paths.clone(),
            access: access_name(preview.access).to_owned(),
            command: preview.command.clone(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::ToolPreview> for ToolPreview {
    type Error = BadMessage;

    fn try_from(preview: proto::ToolPreview) -> Result<Self, BadMessage> {
        let guessed_from = preview.inferred_from_json.as_deref();
        Ok(Self {
            name: preview.name,
            arguments: list(preview.arguments, "arguments")?,
            problems: list(preview.mismatches, "mismatches")?,
            changes: optional(preview.changes, "changes")?,
            guessed_from: guessed_from.map(|text| json(text, "inferred_from_json")).transpose()?,
            delegation: optional(preview.delegation, "delegation")?,
            paths: preview.paths,
            access: read_access(&preview.access)?,
            command: preview.command,
        })
    }
}

fn access_name(access: FileAccess) -> &'static str {
    match access {
        FileAccess::Reads => "reads",
        FileAccess::Writes => "writes",
    }
}

fn read_access(name: &str) -> Result<FileAccess, BadMessage> {
    match name {
        "reads" => Ok(FileAccess::Reads),
        "writes" => Ok(FileAccess::Writes),
        other => Err(BadMessage::new("access", format!("this version does not know value `{}`", other.escape_debug()))),
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
