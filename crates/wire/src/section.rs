//! Sections: the displayed parts of a request, with ids that remain valid across edits.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::json::{NoSuchTarget, Target};

/// The id of a section: its value and, for a tag within a text, the index of the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId {
    pub target: Target,
    /// Index of the tag within the text, in order of the opening tags.
    pub tag: Option<u32>,
}

impl From<Target> for SectionId {
    fn from(target: Target) -> Self {
        Self { target, tag: None }
    }
}

impl fmt::Display for SectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag {
            Some(tag) => write!(f, "{}#{tag}", self.target),
            None => self.target.fmt(f),
        }
    }
}

impl FromStr for SectionId {
    type Err = NoSuchTarget;

    fn from_str(text: &str) -> Result<Self, NoSuchTarget> {
        let bad = || NoSuchTarget(text.to_owned());
        match text.split_once('#') {
            Some((target, tag)) => Ok(Self { target: target.parse()?, tag: Some(tag.parse().map_err(|_| bad())?) }),
            None => Ok(Self::from(text.parse::<Target>()?)),
        }
    }
}

/// The role of a section for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SectionKind {
    System,
    User,
    /// A response of the model.
    Assistant,
    /// Context that the agent added.
    Context,
    /// The description, call or result of a tool.
    Tool,
    /// Earlier conversation stored on the server.
    History,
    Prediction,
    Other,
}

/// The position of a section in the structure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeType {
    /// A message or a block of instructions.
    Message,
    /// A part of a message's content.
    ContentPart,
    ToolCall,
    /// A field of a message other than its content.
    Metadata,
    /// A text between tags.
    Tag,
    ToolSchema,
    RequestOption,
    /// A reference to content stored on the server.
    Remote,
    /// The whole body of an unknown format.
    Raw,
}

/// The kind of content of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ContentKind {
    Text,
    Image,
    /// Encrypted or signed content.
    Opaque,
    CacheBreakpoint,
    Other,
}

/// The editability of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Editable {
    Yes,
    /// Only its parts are editable.
    InParts,
    /// Read-only, with the reason.
    No(&'static str),
}

/// A tool call or its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// Id of the call.
    pub id: Option<String>,
    /// Name of the tool.
    pub name: Option<String>,
    pub arguments: Option<Target>,
}

/// A section of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Id, stable across edits.
    pub id: SectionId,
    /// Section that contains it.
    pub parent: Option<SectionId>,
    pub node: NodeType,
    pub kind: SectionKind,
    pub label: String,
    pub content: ContentKind,
    /// Value that is replaced when the section is edited as a whole.
    pub leaf: Option<Target>,
    /// For a tag, its byte range within the leaf's JSON notation, without the quotes.
    pub range: Option<Range<usize>>,
    /// Tool call that the section belongs to.
    pub tool: Option<Invocation>,
    pub editable: Editable,
    /// `true` if the section can be deleted.
    pub deletable: bool,
    /// `true` if the section was deleted.
    pub deleted: bool,
    /// Current index of the message; `None` outside of messages.
    pub message_index: Option<usize>,
    /// Index of the part within the message.
    pub content_index: Option<usize>,
    /// Index of the call within the message.
    pub tool_call_index: Option<usize>,
    /// `true` if the section is collapsed initially.
    pub collapsed: bool,
}

impl Section {
    /// Creates a read-only section with default values.
    pub(crate) fn new(target: Target, node: NodeType, kind: SectionKind, label: impl Into<String>) -> Self {
        Self {
            id: target.into(),
            parent: None,
            node,
            kind,
            label: label.into(),
            content: ContentKind::Other,
            leaf: None,
            range: None,
            tool: None,
            editable: Editable::InParts,
            deletable: false,
            deleted: false,
            message_index: None,
            content_index: None,
            tool_call_index: None,
            collapsed: false,
        }
    }

    /// Makes it a part of another section.
    pub(crate) fn within(mut self, parent: &Self) -> Self {
        self.parent = Some(parent.id);
        self.message_index = parent.message_index;
        self.deleted |= parent.deleted;
        self
    }

    /// Sets the editable text.
    pub(crate) fn with_text(mut self, leaf: Target) -> Self {
        (self.content, self.leaf, self.editable) = (ContentKind::Text, Some(leaf), Editable::Yes);
        self
    }

    /// Makes it read-only, for the given reason.
    pub(crate) fn fixed(mut self, why: &'static str) -> Self {
        self.editable = Editable::No(why);
        self
    }
}
