//! What is laid over a document, and how it is taken away again.

use std::borrow::Cow;
use std::sync::Arc;

use super::document::{Child, Document, Part, Place, Presence, Target};
use super::tape::{self, Kind, ParseError};
use super::text;

/// One thing that was laid over a document, with what was there before.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Another value in the place of one.
    Value {
        /// The value.
        target: Target,
        /// What stood for it; nothing, if it was what came.
        old: Option<Target>,
        /// What stands for it.
        new: Option<Target>,
    },
    /// Another list of what is in a container.
    Children {
        /// The container.
        container: Target,
        /// The list before; nothing, if it was the one that came.
        old: Option<Arc<[Child]>>,
        /// The list after.
        new: Option<Arc<[Child]>>,
    },
}

impl Change {
    /// The same change the other way round.
    #[must_use]
    pub fn inverted(&self) -> Self {
        match self.clone() {
            Self::Value { target, old, new } => Self::Value { target, old: new, new: old },
            Self::Children { container, old, new } => Self::Children { container, old: new, new: old },
        }
    }
}

impl Document {
    /// Lays something over it, or takes it away.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Value { target, new, .. } => match new {
                Some(new) => drop(self.values.insert(*target, *new)),
                None => drop(self.values.remove(target)),
            },
            Change::Children { container, new, .. } => match new {
                Some(new) => drop(self.children.insert(*container, Arc::clone(new))),
                None => drop(self.children.remove(container)),
            },
        }
    }

    /// Puts another value in the place of one. Nothing happens before the change is applied.
    pub fn replace(&mut self, target: Target, value: &[u8]) -> Result<Change, ParseError> {
        let old = self.values.get(&target).copied();
        // What it was when it came needs nothing laid over it.
        let came = self.original_raw(target) == value && !self.is_laid_over_within(target);
        let new = if came { None } else { Some(self.add_part(value, Place::Of(target))?) };
        Ok(Change::Value { target, old, new })
    }

    /// Takes something out of its container.
    pub fn delete(&self, target: Target) -> Option<Change> {
        self.with_presence(target, Presence::Deleted)
    }

    /// Puts it back.
    pub fn restore(&self, target: Target) -> Option<Change> {
        self.with_presence(target, Presence::Here)
    }

    fn with_presence(&self, target: Target, presence: Presence) -> Option<Change> {
        self.with_children(self.parent(target)?, |list| {
            let child = list.iter_mut().find(|child| child.value == target)?;
            child.presence = presence;
            Some(())
        })
    }

    /// Moves something within its container, to before another or to the end.
    pub fn reorder(&self, target: Target, before: Option<Target>) -> Option<Change> {
        self.with_children(self.parent(target)?, |list| {
            let from = list.iter().position(|child| child.value == target)?;
            let child = list.remove(from);
            let to = match before {
                Some(before) => list.iter().position(|child| child.value == before)?,
                None => list.len(),
            };
            list.insert(to, child);
            Some(())
        })
    }

    /// Adds a value to a list, before another or at the end.
    pub fn add_element(
        &mut self,
        array: Target,
        before: Option<Target>,
        value: &[u8],
    ) -> Result<Option<(Target, Change)>, ParseError> {
        let added = self.add_part(value, Place::Element(array))?;
        Ok(self.insert(array, before, added))
    }

    /// Adds a member to an object, at its end.
    pub fn add_member(
        &mut self,
        object: Target,
        name: &str,
        value: &[u8],
    ) -> Result<Option<(Target, Change)>, ParseError> {
        // One value, and not more that would fit between the braces.
        tape::index(value)?;
        let raw = [b"{", &text::encode(name)[..], b":", value, b"}"].concat();
        let whole = self.add_part(&raw, Place::Member(object))?;
        Ok(self.insert(object, None, Target { node: 1, ..whole }))
    }

    fn insert(&self, container: Target, before: Option<Target>, added: Target) -> Option<(Target, Change)> {
        let wanted = if self.raw_key(added).is_some() { Kind::Object } else { Kind::Array };
        if self.kind(container) != wanted {
            return None;
        }
        let change = self.with_children(container, |list| {
            let to = match before {
                Some(before) => list.iter().position(|child| child.value == before)?,
                None => list.len(),
            };
            list.insert(to, Child { value: added, presence: Presence::Here });
            Some(())
        });
        Some((added, change?))
    }

    fn with_children(&self, container: Target, edit: impl FnOnce(&mut Vec<Child>) -> Option<()>) -> Option<Change> {
        let current = self.current(container);
        let mut list: Vec<Child> = self.all_children(container).collect();
        edit(&mut list)?;
        let old = self.children.get(&current).cloned();
        // The list that came needs nothing laid over it.
        let new = if self.came(current).eq(list.iter().copied()) { None } else { Some(list.into()) };
        Some(Change::Children { container: current, old, new })
    }

    /// The same document with everything that was taken out, for those who show what that was.
    pub fn with_deleted(&self) -> Cow<'_, Self> {
        let gone = |child: &Child| child.presence == Presence::Deleted;
        if !self.children.values().any(|list| list.iter().any(gone)) {
            return Cow::Borrowed(self);
        }
        let mut whole = self.clone();
        for list in whole.children.values_mut() {
            *list = list.iter().map(|child| Child { presence: Presence::Here, ..*child }).collect();
        }
        Cow::Owned(whole)
    }

    /// Whether a value was taken out of its container.
    pub fn is_deleted(&self, target: Target) -> bool {
        let Some(parent) = self.parent(target).filter(|_| !self.children.is_empty()) else { return false };
        self.all_children(parent).any(|child| child.value == target && child.presence == Presence::Deleted)
    }

    /// Everything that is laid over it, the other way round.
    pub fn resetting(&self) -> Vec<Change> {
        let values =
            self.values.iter().map(|(target, old)| Change::Value { target: *target, old: Some(*old), new: None });
        let lists = self.children.iter();
        let lists = lists.map(|(container, old)| Change::Children {
            container: *container,
            old: Some(Arc::clone(old)),
            new: None,
        });
        values.chain(lists).collect()
    }

    /// Knows the values that another version of the same document was brought by edits.
    pub(crate) fn learn(&mut self, other: &Self) {
        self.parts.clone_from(&other.parts);
    }

    /// Whether something else stands for a value.
    pub(crate) fn is_replaced(&self, target: Target) -> bool {
        self.values.contains_key(&target)
    }

    /// The values that something else stands for.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = Target> + '_ {
        self.values.keys().copied()
    }

    /// The containers whose list is not the one that came.
    pub(crate) fn relisted(&self) -> impl Iterator<Item = Target> + '_ {
        self.children.keys().copied()
    }

    /// Whether a value came with the first text.
    pub fn came_first(&self, target: Target) -> bool {
        target.part == 0
    }

    /// What was in a container of the first text when it came.
    pub(crate) fn came_with(&self, container: Target) -> impl Iterator<Item = Target> + '_ {
        self.came(container).map(|child| child.value)
    }

    /// Whether something is laid over what came in a value.
    fn is_laid_over_within(&self, target: Target) -> bool {
        let end = Target { node: self.node(target).next, ..target };
        let inside = Target { node: target.node + 1, ..target };
        self.children.range(target..end).next().is_some() || self.values.range(inside..end).next().is_some()
    }

    fn add_part(&mut self, value: &[u8], place: Place) -> Result<Target, ParseError> {
        let nodes = tape::index(value)?;
        let around = match place {
            Place::Whole => 0,
            Place::Of(target) | Place::Element(target) | Place::Member(target) => self.steps(target).len() + 1,
        };
        if tape::depth(&nodes) + around > tape::DEEPEST {
            return Err(ParseError { position: 0, what: "too deep a nesting" });
        }
        let part = self.parts.len() as u32;
        self.parts.push(Arc::new(Part { bytes: value.into(), nodes, place }));
        Ok(Target { part, node: 0 })
    }
}
