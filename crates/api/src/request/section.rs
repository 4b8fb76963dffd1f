//! Sections of a request, and their differences from the received request.

use sayso_wire::tokens::Tokens;
use sayso_wire::{ContentKind, NodeType, Scope, SectionChange, SectionId, SectionKind};

/// A part of a request for display.
#[expect(clippy::struct_excessive_bools, reason = "the facts about a section are independent")]
#[derive(Clone, Debug, PartialEq)]
pub struct RequestSection {
    /// Stable while other sections are edited.
    pub id: SectionId,
    /// `None` at the top.
    pub parent: Option<SectionId>,
    pub node: NodeType,
    pub kind: SectionKind,
    /// Display name.
    pub label: String,
    /// Current path. For a deleted section, its former place.
    pub raw_path: String,
    pub content_kind: ContentKind,
    /// Text, or JSON if the value is no text. Truncated to the requested limit.
    pub content: String,
    /// Size of the whole content in bytes.
    pub content_size: u64,
    /// Tokens as sent, child sections included.
    pub tokens: Tokens,
    /// Fraction of all tokens, from 0 to 1.
    pub share: f64,
    /// Applies while the request is held.
    pub editability: Editability,
    pub deletable: bool,
    pub deleted: bool,
    /// `true` if it is shown at the top. Display only.
    pub pinned: bool,
    /// `true` if it is initially shown as its label only.
    pub collapsed: bool,
    /// `true` if it differs from the received content, or was added.
    pub edited: bool,
    pub applied_edit: Option<AppliedOverride>,
    /// `None` unless the section is a tool call or result.
    pub tool: Option<SectionTool>,
    pub message_index: Option<u32>,
    pub content_index: Option<u32>,
    pub tool_call_index: Option<u32>,
}

/// Permitted edits of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Editability {
    Yes,
    /// Only its child sections.
    InParts,
    No {
        /// For a person.
        reason: Option<String>,
    },
}

/// A saved edit that was applied to a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedOverride {
    pub scope: Scope,
    /// In milliseconds since 1970.
    pub saved: i64,
}

/// The tool call that a section belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionTool {
    /// Tool call id.
    pub id: Option<String>,
    /// Tool name.
    pub name: Option<String>,
    /// Arguments as written. Truncated like the content.
    pub arguments: Option<String>,
}

/// The difference between a request and the received one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestDiff {
    /// Filled for a held request only.
    pub sections: Vec<SectionDifference>,
    /// One unified diff of all sections. Empty if equal.
    pub unified: String,
}

/// A section that differs from the received one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionDifference {
    pub section: SectionId,
    pub path: String,
    /// Display name of the section.
    pub label: String,
    pub change: SectionChange,
    /// Received content.
    pub old: String,
    /// Present content.
    pub new: String,
    /// Unified diff.
    pub unified: String,
    /// `None` if no saved edit made the difference.
    pub applied_edit: Option<AppliedOverride>,
}
