//! A request as a person sees it: what is in it, piece by piece, each known by a name that outlives edits around it.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::json::{NoSuchTarget, Target};

/// A section's name: the value that it shows and, if it is a tag within a text, which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId {
    /// The value.
    pub target: Target,
    /// Which of the tags in it, in the order in which they begin.
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

/// What a section is for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SectionKind {
    /// Instructions.
    System,
    /// What the user says.
    User,
    /// What the model said.
    Assistant,
    /// What the agent adds by itself.
    Context,
    /// A tool's description, call or result.
    Tool,
    /// What was said earlier and is not in this request.
    History,
    /// What the answer is expected to be.
    Prediction,
    /// Anything else.
    Other,
}

/// Where a section is in the structure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeType {
    /// A message, or a block of instructions.
    Message,
    /// A part of what a message says.
    ContentPart,
    /// A call of a tool.
    ToolCall,
    /// A field of a message besides what it says.
    Metadata,
    /// A piece of a text between tags.
    Tag,
    /// The description of a tool.
    ToolSchema,
    /// A setting of the request.
    RequestOption,
    /// Something that lives on the server.
    Remote,
    /// The whole request, where nothing in it is understood.
    Raw,
}

/// What a part of a message holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ContentKind {
    /// Text.
    Text,
    /// A picture.
    Image,
    /// What only the model's maker can read, or what is signed.
    Opaque,
    /// The end of what is to be kept for the next request.
    CacheBreakpoint,
    /// Anything else.
    Other,
}

/// Whether a section can be edited, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Editable {
    /// It can.
    Yes,
    /// It holds others that can.
    InParts,
    /// It cannot: changing it would make the request invalid, or change nothing.
    No(&'static str),
}

/// A tool's call, or its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The call's name.
    pub id: Option<String>,
    /// The tool's.
    pub name: Option<String>,
    /// What the tool is called with.
    pub arguments: Option<Target>,
}

/// Something in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name, which stays the same whatever is edited around it.
    pub id: SectionId,
    /// The section that it is part of.
    pub parent: Option<SectionId>,
    /// Where it is in the structure.
    pub node: NodeType,
    /// What it is for the model.
    pub kind: SectionKind,
    /// What it is for a person.
    pub label: String,
    /// What it holds.
    pub content: ContentKind,
    /// The leaf that is edited where it is edited as a whole.
    pub leaf: Option<Target>,
    /// Of a tag: its bytes within the leaf as it is written, without the quotes.
    pub range: Option<Range<usize>>,
    /// The tool's call that it is about.
    pub tool: Option<Invocation>,
    /// Whether it can be edited.
    pub editable: Editable,
    /// Whether it can be taken out.
    pub deletable: bool,
    /// Whether it was.
    pub deleted: bool,
    /// Which message it belongs to, as they are counted now; `None` of what belongs to none.
    pub message_index: Option<usize>,
    /// Which part of the message.
    pub content_index: Option<usize>,
    /// Which call of the message.
    pub tool_call_index: Option<usize>,
    /// Whether a person sees no more than its label at first.
    pub collapsed: bool,
}

impl Section {
    /// A section of a value; the rest is what most are.
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

    /// A part of another section.
    pub(crate) fn within(mut self, parent: &Self) -> Self {
        self.parent = Some(parent.id);
        self.message_index = parent.message_index;
        self.deleted |= parent.deleted;
        self
    }

    /// One that shows a text.
    pub(crate) fn with_text(mut self, leaf: Target) -> Self {
        (self.content, self.leaf, self.editable) = (ContentKind::Text, Some(leaf), Editable::Yes);
        self
    }

    /// One that cannot be edited.
    pub(crate) fn fixed(mut self, why: &'static str) -> Self {
        self.editable = Editable::No(why);
        self
    }
}
