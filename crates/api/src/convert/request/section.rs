//! Sections and their differences.

use buffa::MessageField;

use super::wire::section_id;
use crate::convert::field::{enumeration, list, optional, required, unspecified};
use crate::convert::{BadMessage, messages};
use crate::proto;
use crate::proto::diff_request_response::{SectionDiff, section_diff};
use crate::proto::section;
use crate::request::{AppliedOverride, Editability, RequestDiff, RequestSection, SectionDifference, SectionTool};

impl From<&AppliedOverride> for section::AppliedOverride {
    fn from(edit: &AppliedOverride) -> Self {
        let scope = proto::OverrideScope::from(edit.scope).into();
        Self { scope, saved_ms: edit.saved, ..Default::default() }
    }
}

impl TryFrom<section::AppliedOverride> for AppliedOverride {
    type Error = BadMessage;

    fn try_from(edit: section::AppliedOverride) -> Result<Self, BadMessage> {
        Ok(Self { scope: enumeration(edit.scope, "scope")?, saved: edit.saved_ms })
    }
}

impl From<&SectionTool> for section::Invocation {
    fn from(tool: &SectionTool) -> Self {
        let SectionTool { id, name, arguments } = tool.clone();
        Self { id, name, arguments, ..Default::default() }
    }
}

impl From<section::Invocation> for SectionTool {
    fn from(tool: section::Invocation) -> Self {
        Self { id: tool.id, name: tool.name, arguments: tool.arguments }
    }
}

impl From<&RequestSection> for proto::Section {
    fn from(section: &RequestSection) -> Self {
        let (editable, read_only_reason) = match &section.editability {
            Editability::Yes => (section::Editable::Yes, None),
            Editability::InParts => (section::Editable::InParts, None),
            Editability::No { reason } => (section::Editable::No, reason.clone()),
        };
        Self {
            id: section.id.to_string(),
            parent: section.parent.map(|parent| parent.to_string()),
            node: section::NodeType::from(section.node).into(),
            kind: section::Kind::from(section.kind).into(),
            label: section.label.clone(),
            raw_path: section.raw_path.clone(),
            content_kind: section::ContentKind::from(section.content_kind).into(),
            content: section.content.clone(),
            content_size: section.content_size,
            tokens: MessageField::some(section.tokens.into()),
            share: section.share,
            editable: editable.into(),
            read_only_reason,
            deletable: section.deletable,
            deleted: section.deleted,
            pinned: section.pinned,
            collapsed: section.collapsed,
            edited: section.edited,
            applied_override: section.applied_edit.as_ref().map(Into::into).into(),
            tool: section.tool.as_ref().map(Into::into).into(),
            message_index: section.message_index,
            content_index: section.content_index,
            tool_call_index: section.tool_call_index,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::Section> for RequestSection {
    type Error = BadMessage;

    fn try_from(section: proto::Section) -> Result<Self, BadMessage> {
        let editability = match enumeration::<_, section::Editable>(section.editable, "editable")? {
            section::Editable::Unspecified => return Err(unspecified().within("editable")),
            section::Editable::Yes => Editability::Yes,
            section::Editable::InParts => Editability::InParts,
            section::Editable::No => Editability::No { reason: section.read_only_reason },
        };
        Ok(Self {
            id: section_id(&section.id, "id")?,
            parent: section.parent.map(|parent| section_id(&parent, "parent")).transpose()?,
            node: enumeration(section.node, "node")?,
            kind: enumeration(section.kind, "kind")?,
            label: section.label,
            raw_path: section.raw_path,
            content_kind: enumeration(section.content_kind, "content_kind")?,
            content: section.content,
            content_size: section.content_size,
            tokens: required(section.tokens, "tokens")?,
            share: section.share,
            editability,
            deletable: section.deletable,
            deleted: section.deleted,
            pinned: section.pinned,
            collapsed: section.collapsed,
            edited: section.edited,
            applied_edit: optional(section.applied_override, "applied_override")?,
            tool: optional(section.tool, "tool")?,
            message_index: section.message_index,
            content_index: section.content_index,
            tool_call_index: section.tool_call_index,
        })
    }
}

impl From<&SectionDifference> for SectionDiff {
    fn from(diff: &SectionDifference) -> Self {
        Self {
            section: diff.section.to_string(),
            path: diff.path.clone(),
            label: diff.label.clone(),
            change: section_diff::SectionChange::from(diff.change).into(),
            old: diff.old.clone(),
            new: diff.new.clone(),
            unified: diff.unified.clone(),
            applied_override: diff.applied_edit.as_ref().map(Into::into).into(),
            ..Default::default()
        }
    }
}

impl TryFrom<SectionDiff> for SectionDifference {
    type Error = BadMessage;

    fn try_from(diff: SectionDiff) -> Result<Self, BadMessage> {
        Ok(Self {
            section: section_id(&diff.section, "section")?,
            path: diff.path,
            label: diff.label,
            change: enumeration(diff.change, "change")?,
            old: diff.old,
            new: diff.new,
            unified: diff.unified,
            applied_edit: optional(diff.applied_override, "applied_override")?,
        })
    }
}

impl From<&RequestDiff> for proto::DiffRequestResponse {
    fn from(diff: &RequestDiff) -> Self {
        Self { sections: messages(&diff.sections), unified: diff.unified.clone(), ..Default::default() }
    }
}

impl TryFrom<proto::DiffRequestResponse> for RequestDiff {
    type Error = BadMessage;

    fn try_from(diff: proto::DiffRequestResponse) -> Result<Self, BadMessage> {
        Ok(Self { sections: list(diff.sections, "sections")?, unified: diff.unified })
    }
}
