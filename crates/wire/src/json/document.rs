//! A JSON text that can be edited without being written anew.
//!
//! What came stays as it came. An edit lays something over it: another value in the place of one, or another list of what is in a
//! container. A value is known by where it was first, a [`Target`], so that it stays the same value whatever is taken away or
//! moved around it, and taking an edit back takes away what was laid over.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::tape::{self, Kind, Node, ParseError};
use super::text;

/// A value of a document, whatever becomes of those around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Which text it came with: the first, or one that an edit brought.
    pub(super) part: u32,
    /// Where in it.
    pub(super) node: u32,
}

impl Target {
    /// The whole of a document.
    pub const WHOLE: Self = Self { part: 0, node: 0 };
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.part, self.node)
    }
}

impl FromStr for Target {
    type Err = NoSuchTarget;

    fn from_str(text: &str) -> Result<Self, NoSuchTarget> {
        let read = || {
            let (part, node) = text.split_once(':')?;
            Some(Self { part: part.parse().ok()?, node: node.parse().ok()? })
        };
        read().ok_or_else(|| NoSuchTarget(text.to_owned()))
    }
}

/// No value has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no target of this document")]
pub struct NoSuchTarget(pub String);

/// A text with its index.
pub(super) struct Part {
    pub(super) bytes: Arc<[u8]>,
    pub(super) nodes: Vec<Node>,
    /// What it belongs to.
    pub(super) place: Place,
}

/// What a text that an edit brought belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the first.
    Whole,
    /// It is in the place of a value.
    Of(Target),
    /// It was added to a list.
    Element(Target),
    /// It was added to an object: the value that is in it, with its name.
    Member(Target),
}

/// Something in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// The value.
    pub value: Target,
    /// Whether it is there.
    pub presence: Presence,
}

/// Whether something is there, or was taken out and can be put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is there.
    Here,
    /// It was taken out.
    Deleted,
}

/// A JSON text with what was laid over it.
#[derive(Clone)]
pub struct Document {
    pub(super) parts: Vec<Arc<Part>>,
    pub(super) values: BTreeMap<Target, Target>,
    pub(super) children: BTreeMap<Target, Arc<[Child]>>,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("bytes", &self.original().len()).finish_non_exhaustive()
    }
}

impl Document {
    /// Indexes a text.
    pub fn parse(bytes: impl Into<Arc<[u8]>>) -> Result<Self, ParseError> {
        let bytes = bytes.into();
        let nodes = tape::index(&bytes)?;
        let first = Part { bytes, nodes, place: Place::Whole };
        Ok(Self { parts: vec![Arc::new(first)], values: BTreeMap::new(), children: BTreeMap::new() })
    }

    /// The text as it came.
    pub fn original(&self) -> &Arc<[u8]> {
        &self.parts[0].bytes
    }

    /// The whole.
    pub fn root(&self) -> Target {
        Target::WHOLE
    }

    /// Whether nothing is laid over it.
    pub fn is_original(&self) -> bool {
        self.values.is_empty() && self.children.is_empty()
    }

    /// The same document with nothing laid over it.
    pub fn as_came(&self) -> Cow<'_, Self> {
        if self.is_original() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self { values: BTreeMap::new(), children: BTreeMap::new(), parts: self.parts.clone() })
    }

    /// Whether a value with this name was ever there.
    pub fn knows(&self, target: Target) -> bool {
        self.parts.get(target.part as usize).is_some_and(|part| (target.node as usize) < part.nodes.len())
    }

    /// What stands for a value now.
    pub(crate) fn current(&self, target: Target) -> Target {
        if self.values.is_empty() { target } else { self.values.get(&target).copied().unwrap_or(target) }
    }

    pub(super) fn part(&self, target: Target) -> &Part {
        &self.parts[target.part as usize]
    }

    pub(super) fn node(&self, target: Target) -> &Node {
        &self.part(target).nodes[target.node as usize]
    }

    /// What a value is now.
    pub fn kind(&self, target: Target) -> Kind {
        self.node(self.current(target)).kind
    }

    /// What a value was before anything was laid over it.
    pub fn original_kind(&self, target: Target) -> Kind {
        self.node(target).kind
    }

    /// A leaf as it is written now; of a container, what it was when it came.
    pub fn raw(&self, target: Target) -> &[u8] {
        let current = self.current(target);
        let node = self.node(current);
        &self.part(current).bytes[node.start as usize..node.end as usize]
    }

    /// A leaf as it was written before anything was laid over it.
    pub fn original_raw(&self, target: Target) -> &[u8] {
        let node = self.node(target);
        &self.part(target).bytes[node.start as usize..node.end as usize]
    }

    /// The bytes of the first text in which a value came; `None` if an edit brought it.
    pub fn span(&self, target: Target) -> Option<std::ops::Range<usize>> {
        let node = (target.part == 0).then(|| self.node(target))?;
        Some(node.start as usize..node.end as usize)
    }

    /// The text of a string.
    pub fn text(&self, target: Target) -> Option<Cow<'_, str>> {
        (self.kind(target) == Kind::String).then(|| text::decode(inside(self.raw(target))))
    }

    /// Whether a value is this string. Decodes nothing where that is not needed.
    pub fn is_text(&self, target: Target, wanted: &str) -> bool {
        self.kind(target) == Kind::String && same(inside(self.raw(target)), wanted)
    }

    /// A whole number that fits.
    pub fn number(&self, target: Target) -> Option<u64> {
        std::str::from_utf8(self.raw(target)).ok()?.parse().ok()
    }

    /// Whether a value is `true`.
    pub fn is_true(&self, target: Target) -> bool {
        self.raw(target) == b"true"
    }

    /// The name of a member as it is written, without the quotes.
    pub fn raw_key(&self, target: Target) -> Option<&[u8]> {
        let node = self.node(target);
        (node.key_end > node.key_start)
            .then(|| inside(&self.part(target).bytes[node.key_start as usize..node.key_end as usize]))
    }

    /// The name of a member.
    pub fn key(&self, target: Target) -> Option<Cow<'_, str>> {
        self.raw_key(target).map(text::decode)
    }

    /// What is in a container now, with what was taken out.
    pub fn all_children(&self, container: Target) -> Children<'_> {
        let current = self.current(container);
        let listed = if self.children.is_empty() { None } else { self.children.get(&current) };
        listed.map_or_else(|| self.came(current), |list| Children(Source::Listed(list.iter())))
    }

    /// What was in a container when it came.
    pub(super) fn came(&self, container: Target) -> Children<'_> {
        let node = self.node(container);
        let next = container.node + 1;
        let end = if node.kind.is_leaf() { next } else { node.next };
        Children(Source::AsCame { nodes: &self.part(container).nodes, part: container.part, next, end })
    }

    /// What is in a container now.
    pub fn children(&self, container: Target) -> impl Iterator<Item = Target> + '_ {
        self.all_children(container).filter(|child| child.presence == Presence::Here).map(|child| child.value)
    }

    /// A member by its name. Of several, the last, as those who read JSON take it.
    pub fn member(&self, object: Target, name: &str) -> Option<Target> {
        let wanted = |target: &Target| self.raw_key(*target).is_some_and(|key| same(key, name));
        self.children(object).filter(wanted).last()
    }

    /// The text of a member.
    pub fn member_text(&self, object: Target, name: &str) -> Option<Cow<'_, str>> {
        self.text(self.member(object, name)?)
    }

    /// The container that a value is in.
    pub fn parent(&self, target: Target) -> Option<Target> {
        let node = self.node(target);
        if node.parent != target.node {
            let parent = Target { part: target.part, node: node.parent };
            return Some(match self.part(target).place {
                // It comes in braces of its own, which are not part of what was added.
                Place::Member(container) if node.parent == 0 => container,
                Place::Of(standing) if node.parent == 0 => standing,
                _ => parent,
            });
        }
        match self.part(target).place {
            Place::Whole => None,
            Place::Of(standing) => self.parent(standing),
            Place::Element(container) | Place::Member(container) => Some(container),
        }
    }

    /// Whether a value is there: neither it nor what it is in was taken out or replaced.
    pub fn is_here(&self, target: Target) -> bool {
        let mut target = target;
        while let Some(parent) = self.parent(target) {
            let found =
                self.all_children(parent).any(|child| child.value == target && child.presence == Presence::Here);
            if !found {
                return false;
            }
            target = parent;
        }
        target == self.root()
    }
}

/// What is in a container.
#[derive(Clone, Debug)]
pub struct Children<'d>(Source<'d>);

#[derive(Clone, Debug)]
enum Source<'d> {
    /// As it came.
    AsCame { nodes: &'d [Node], part: u32, next: u32, end: u32 },
    /// As it was laid over that.
    Listed(std::slice::Iter<'d, Child>),
}

impl Iterator for Children<'_> {
    type Item = Child;

    fn next(&mut self) -> Option<Child> {
        match &mut self.0 {
            Source::Listed(list) => list.next().copied(),
            Source::AsCame { nodes, part, next, end } => {
                if next >= end {
                    return None;
                }
                let value = Target { part: *part, node: *next };
                *next = nodes[*next as usize].next;
                Some(Child { value, presence: Presence::Here })
            }
        }
    }
}

/// A string without its quotes.
fn inside(raw: &[u8]) -> &[u8] {
    raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default()
}

fn same(raw: &[u8], wanted: &str) -> bool {
    raw == wanted.as_bytes() || (raw.contains(&b'\\') && text::decode(raw) == wanted)
}
