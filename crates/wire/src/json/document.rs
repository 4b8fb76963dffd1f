//! An editable JSON text that keeps its bytes.
//!
//! The received text never changes. An edit is an overlay: a replacement for a value, or another list of children for a
//! container. A [`Target`] identifies a value by its original position, so it remains valid when values around it are
//! deleted or moved. Undoing an edit removes its overlay.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::tape::{self, JsonKind, JsonNode, ParseError};
use super::text;

/// The id of a value in a document, stable across edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Index of the source text: 0 for the received text, higher for texts added by edits.
    pub(super) source: u32,
    /// Index of the node within the source text.
    pub(super) node: u32,
}

impl Target {
    /// The root of a document.
    pub const WHOLE: Self = Self { source: 0, node: 0 };
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.node)
    }
}

impl FromStr for Target {
    type Err = NoSuchTarget;

    fn from_str(text: &str) -> Result<Self, NoSuchTarget> {
        let read = || {
            let (source, node) = text.split_once(':')?;
            Some(Self { source: source.parse().ok()?, node: node.parse().ok()? })
        };
        read().ok_or_else(|| NoSuchTarget(text.to_owned()))
    }
}

/// An invalid id of a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no target of this document")]
pub struct NoSuchTarget(pub String);

/// A source text with its index.
pub(super) struct SourceText {
    pub(super) bytes: Arc<[u8]>,
    pub(super) nodes: Vec<JsonNode>,
    /// Position of the text within the document.
    pub(super) attachment: Attachment,
}

/// The position of a source text within the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attachment {
    Root,
    /// A replacement for a value.
    Replacement(Target),
    /// An element added to a list.
    Element(Target),
    /// A member added to an object: a text with braces that contains only this member.
    Member(Target),
}

/// A child of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    pub value: Target,
    pub presence: Presence,
}

/// The presence of a value in its container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Present,
    /// Deleted; it can be restored.
    Deleted,
}

/// A JSON text with its overlays.
#[derive(Clone)]
pub struct Document {
    pub(super) sources: Vec<Arc<SourceText>>,
    pub(super) values: BTreeMap<Target, Target>,
    pub(super) children: BTreeMap<Target, Arc<[Child]>>,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("bytes", &self.original().len()).finish_non_exhaustive()
    }
}

impl Document {
    pub fn parse(bytes: impl Into<Arc<[u8]>>) -> Result<Self, ParseError> {
        let bytes = bytes.into();
        let nodes = tape::index(&bytes)?;
        let first = SourceText { bytes, nodes, attachment: Attachment::Root };
        Ok(Self { sources: vec![Arc::new(first)], values: BTreeMap::new(), children: BTreeMap::new() })
    }

    /// Returns the received text.
    pub fn original(&self) -> &Arc<[u8]> {
        &self.sources[0].bytes
    }

    /// Returns the root value.
    pub fn root(&self) -> Target {
        Target::WHOLE
    }

    /// `true` if the document has no overlay.
    pub fn is_original(&self) -> bool {
        self.values.is_empty() && self.children.is_empty()
    }

    /// Returns the document without overlays.
    pub fn as_received(&self) -> Cow<'_, Self> {
        if self.is_original() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self { values: BTreeMap::new(), children: BTreeMap::new(), sources: self.sources.clone() })
    }

    /// `true` if the value exists in any source text, deleted or not.
    pub fn contains(&self, target: Target) -> bool {
        self.sources.get(target.source as usize).is_some_and(|source| (target.node as usize) < source.nodes.len())
    }

    /// Returns the replacement of a value, or the value itself.
    pub(crate) fn current(&self, target: Target) -> Target {
        if self.values.is_empty() { target } else { self.values.get(&target).copied().unwrap_or(target) }
    }

    pub(super) fn source(&self, target: Target) -> &SourceText {
        &self.sources[target.source as usize]
    }

    pub(super) fn node(&self, target: Target) -> &JsonNode {
        &self.source(target).nodes[target.node as usize]
    }

    /// Returns the current type of a value.
    pub fn kind(&self, target: Target) -> JsonKind {
        self.node(self.current(target)).kind
    }

    /// Returns the type of a value before edits.
    pub fn original_kind(&self, target: Target) -> JsonKind {
        self.node(target).kind
    }

    /// Returns the current notation of a leaf. For a container, returns its original notation.
    pub fn raw(&self, target: Target) -> &[u8] {
        let current = self.current(target);
        let node = self.node(current);
        &self.source(current).bytes[node.start as usize..node.end as usize]
    }

    /// Returns the original notation of a value.
    pub fn original_raw(&self, target: Target) -> &[u8] {
        let node = self.node(target);
        &self.source(target).bytes[node.start as usize..node.end as usize]
    }

    /// Returns the byte range of a value in the received text; `None` for a value added by an edit.
    pub fn span(&self, target: Target) -> Option<std::ops::Range<usize>> {
        let node = (target.source == 0).then(|| self.node(target))?;
        Some(node.start as usize..node.end as usize)
    }

    /// Returns the decoded string of a value.
    pub fn text(&self, target: Target) -> Option<Cow<'_, str>> {
        (self.kind(target) == JsonKind::String).then(|| text::decode(unquoted(self.raw(target))))
    }

    /// `true` if the value is this string; decodes only if it has escapes.
    pub fn is_text(&self, target: Target, wanted: &str) -> bool {
        self.kind(target) == JsonKind::String && equals_decoded(unquoted(self.raw(target)), wanted)
    }

    /// Returns the value as a non-negative integer, if it is one.
    pub fn number(&self, target: Target) -> Option<u64> {
        std::str::from_utf8(self.raw(target)).ok()?.parse().ok()
    }

    /// `true` if the value is the literal `true`.
    pub fn is_true(&self, target: Target) -> bool {
        self.raw(target) == b"true"
    }

    /// Returns the name of a member in JSON notation, without the quotes.
    pub fn raw_key(&self, target: Target) -> Option<&[u8]> {
        let node = self.node(target);
        (node.key_end > node.key_start)
            .then(|| unquoted(&self.source(target).bytes[node.key_start as usize..node.key_end as usize]))
    }

    /// Returns the decoded name of a member.
    pub fn key(&self, target: Target) -> Option<Cow<'_, str>> {
        self.raw_key(target).map(text::decode)
    }

    /// Returns the current children of a container, including deleted ones.
    pub fn all_children(&self, container: Target) -> Children<'_> {
        let current = self.current(container);
        let listed = if self.children.is_empty() { None } else { self.children.get(&current) };
        listed.map_or_else(|| self.original_children(current), |list| Children(ChildSource::Listed(list.iter())))
    }

    /// Returns the original children of a container.
    pub(super) fn original_children(&self, container: Target) -> Children<'_> {
        let node = self.node(container);
        let next = container.node + 1;
        let end = if node.kind.is_leaf() { next } else { node.next };
        Children(ChildSource::Original { nodes: &self.source(container).nodes, source: container.source, next, end })
    }

    /// Returns the current children of a container.
    pub fn children(&self, container: Target) -> impl Iterator<Item = Target> + '_ {
        self.all_children(container).filter(|child| child.presence == Presence::Present).map(|child| child.value)
    }

    /// Returns a member by name. Of duplicates the last one counts, as in most JSON parsers.
    pub fn member(&self, object: Target, name: &str) -> Option<Target> {
        let wanted = |target: &Target| self.raw_key(*target).is_some_and(|key| equals_decoded(key, name));
        self.children(object).filter(wanted).last()
    }

    /// Returns the decoded string of a member.
    pub fn member_text(&self, object: Target, name: &str) -> Option<Cow<'_, str>> {
        self.text(self.member(object, name)?)
    }

    /// Returns the container of a value.
    pub fn parent(&self, target: Target) -> Option<Target> {
        let node = self.node(target);
        if node.parent != target.node {
            let parent = Target { source: target.source, node: node.parent };
            return Some(match self.source(target).attachment {
                // The source text of an added member has its own braces, which are not part of the document.
                Attachment::Member(container) if node.parent == 0 => container,
                Attachment::Replacement(standing) if node.parent == 0 => standing,
                _ => parent,
            });
        }
        match self.source(target).attachment {
            Attachment::Root => None,
            Attachment::Replacement(standing) => self.parent(standing),
            Attachment::Element(container) | Attachment::Member(container) => Some(container),
        }
    }

    /// `true` if neither the value nor a container around it was deleted or replaced.
    pub fn is_present(&self, target: Target) -> bool {
        let mut target = target;
        while let Some(parent) = self.parent(target) {
            let found =
                self.all_children(parent).any(|child| child.value == target && child.presence == Presence::Present);
            if !found {
                return false;
            }
            target = parent;
        }
        target == self.root()
    }
}

/// An iterator over the children of a container.
#[derive(Clone, Debug)]
pub struct Children<'d>(ChildSource<'d>);

#[derive(Clone, Debug)]
enum ChildSource<'d> {
    Original {
        nodes: &'d [JsonNode],
        source: u32,
        next: u32,
        end: u32,
    },
    /// The list of an overlay.
    Listed(std::slice::Iter<'d, Child>),
}

impl Iterator for Children<'_> {
    type Item = Child;

    fn next(&mut self) -> Option<Child> {
        match &mut self.0 {
            ChildSource::Listed(list) => list.next().copied(),
            ChildSource::Original { nodes, source, next, end } => {
                if next >= end {
                    return None;
                }
                let value = Target { source: *source, node: *next };
                *next = nodes[*next as usize].next;
                Some(Child { value, presence: Presence::Present })
            }
        }
    }
}

/// Strips the quotes of a string.
fn unquoted(raw: &[u8]) -> &[u8] {
    raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default()
}

fn equals_decoded(raw: &[u8], wanted: &str) -> bool {
    raw == wanted.as_bytes() || (raw.contains(&b'\\') && text::decode(raw) == wanted)
}
