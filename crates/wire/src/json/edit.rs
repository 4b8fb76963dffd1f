//! Overlays of a document: applying and reverting edits.

use std::borrow::Cow;
use std::sync::Arc;

use super::document::{Attachment, Child, Document, Presence, SourceText, Target};
use super::tape::{self, JsonKind, ParseError};
use super::text;

/// An overlay with the state before it.
#[derive(Clone, Debug, PartialEq)]
pub enum DocumentChange {
    /// A replacement of a value.
    Value {
        target: Target,
        /// Previous replacement; `None` for the original value.
        old: Option<Target>,
        /// New replacement; `None` for the original value.
        new: Option<Target>,
    },
    /// Another list of children of a container.
    Children {
        container: Target,
        /// Previous list; `None` for the original list.
        old: Option<Arc<[Child]>>,
        /// New list; `None` for the original list.
        new: Option<Arc<[Child]>>,
    },
}

impl DocumentChange {
    /// Returns the inverse change.
    #[must_use]
    pub fn inverted(&self) -> Self {
        match self.clone() {
            Self::Value { target, old, new } => Self::Value { target, old: new, new: old },
            Self::Children { container, old, new } => Self::Children { container, old: new, new: old },
        }
    }
}

impl Document {
    pub fn apply(&mut self, change: &DocumentChange) {
        match change {
            DocumentChange::Value { target, new, .. } => match new {
                Some(new) => drop(self.values.insert(*target, *new)),
                None => drop(self.values.remove(target)),
            },
            DocumentChange::Children { container, new, .. } => match new {
                Some(new) => drop(self.children.insert(*container, Arc::clone(new))),
                None => drop(self.children.remove(container)),
            },
        }
    }

    /// Prepares the replacement of a value. The document changes when the result is applied.
    pub fn replace(&mut self, target: Target, value: &[u8]) -> Result<DocumentChange, ParseError> {
        let old = self.values.get(&target).copied();
        // The original value needs no overlay.
        let received = self.original_raw(target) == value && !self.has_edits_within(target);
        let new = if received { None } else { Some(self.add_source(value, Attachment::Replacement(target))?) };
        Ok(DocumentChange::Value { target, old, new })
    }

    /// Prepares the deletion of a value from its container.
    pub fn delete(&self, target: Target) -> Option<DocumentChange> {
        self.with_presence(target, Presence::Deleted)
    }

    /// Prepares the restoration of a deleted value.
    pub fn restore(&self, target: Target) -> Option<DocumentChange> {
        self.with_presence(target, Presence::Present)
    }

    fn with_presence(&self, target: Target, presence: Presence) -> Option<DocumentChange> {
        self.with_children(self.parent(target)?, |list| {
            let child = list.iter_mut().find(|child| child.value == target)?;
            child.presence = presence;
            Some(())
        })
    }

    /// Prepares moving a value within its container, before another or to the end.
    pub fn reorder(&self, target: Target, before: Option<Target>) -> Option<DocumentChange> {
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

    /// Prepares adding an element to a list, before another or at the end.
    pub fn add_element(
        &mut self,
        array: Target,
        before: Option<Target>,
        value: &[u8],
    ) -> Result<Option<(Target, DocumentChange)>, ParseError> {
        let added = self.add_source(value, Attachment::Element(array))?;
        Ok(self.insert(array, before, added))
    }

    /// Prepares adding a member at the end of an object.
    pub fn add_member(
        &mut self,
        object: Target,
        name: &str,
        value: &[u8],
    ) -> Result<Option<(Target, DocumentChange)>, ParseError> {
        // Reject a text that is not exactly one value but would still fit between the braces.
        tape::index(value)?;
        let raw = [b"{", &text::encode(name)[..], b":", value, b"}"].concat();
        let whole = self.add_source(&raw, Attachment::Member(object))?;
        Ok(self.insert(object, None, Target { node: 1, ..whole }))
    }

    fn insert(&self, container: Target, before: Option<Target>, added: Target) -> Option<(Target, DocumentChange)> {
        let wanted = if self.raw_key(added).is_some() { JsonKind::Object } else { JsonKind::Array };
        if self.kind(container) != wanted {
            return None;
        }
        let change = self.with_children(container, |list| {
            let to = match before {
                Some(before) => list.iter().position(|child| child.value == before)?,
                None => list.len(),
            };
            list.insert(to, Child { value: added, presence: Presence::Present });
            Some(())
        });
        Some((added, change?))
    }

    fn with_children(
        &self,
        container: Target,
        edit: impl FnOnce(&mut Vec<Child>) -> Option<()>,
    ) -> Option<DocumentChange> {
        let current = self.current(container);
        let mut list: Vec<Child> = self.all_children(container).collect();
        edit(&mut list)?;
        let old = self.children.get(&current).cloned();
        // The original list needs no overlay.
        let new = if self.original_children(current).eq(list.iter().copied()) { None } else { Some(list.into()) };
        Some(DocumentChange::Children { container: current, old, new })
    }

    /// Returns the document with all deleted values restored, for displaying them.
    pub fn with_deleted(&self) -> Cow<'_, Self> {
        let gone = |child: &Child| child.presence == Presence::Deleted;
        if !self.children.values().any(|list| list.iter().any(gone)) {
            return Cow::Borrowed(self);
        }
        let mut whole = self.clone();
        for list in whole.children.values_mut() {
            *list = list.iter().map(|child| Child { presence: Presence::Present, ..*child }).collect();
        }
        Cow::Owned(whole)
    }

    /// `true` if the value was deleted from its container.
    pub fn is_deleted(&self, target: Target) -> bool {
        let Some(parent) = self.parent(target).filter(|_| !self.children.is_empty()) else { return false };
        self.all_children(parent).any(|child| child.value == target && child.presence == Presence::Deleted)
    }

    /// Returns the inverse of all overlays.
    pub fn reset_changes(&self) -> Vec<DocumentChange> {
        let values = self.values.iter().map(|(target, old)| DocumentChange::Value {
            target: *target,
            old: Some(*old),
            new: None,
        });
        let lists = self.children.iter();
        let lists = lists.map(|(container, old)| DocumentChange::Children {
            container: *container,
            old: Some(Arc::clone(old)),
            new: None,
        });
        values.chain(lists).collect()
    }

    /// Adds the source texts of another version of the document.
    pub(crate) fn adopt_sources(&mut self, other: &Self) {
        self.sources.clone_from(&other.sources);
    }

    /// `true` if the value has a replacement.
    pub(crate) fn is_replaced(&self, target: Target) -> bool {
        self.values.contains_key(&target)
    }

    /// Returns the values with a replacement.
    pub(crate) fn replaced_values(&self) -> impl Iterator<Item = Target> + '_ {
        self.values.keys().copied()
    }

    /// Returns the containers with another list of children.
    pub(crate) fn relisted_containers(&self) -> impl Iterator<Item = Target> + '_ {
        self.children.keys().copied()
    }

    /// `true` if the value is in the received text.
    pub fn is_original_value(&self, target: Target) -> bool {
        target.source == 0
    }

    /// Returns the received children of a container of the received text.
    pub(crate) fn original_values(&self, container: Target) -> impl Iterator<Item = Target> + '_ {
        self.original_children(container).map(|child| child.value)
    }

    /// `true` if a value within the original value has an overlay.
    fn has_edits_within(&self, target: Target) -> bool {
        let end = Target { node: self.node(target).next, ..target };
        let first_inner = Target { node: target.node + 1, ..target };
        self.children.range(target..end).next().is_some() || self.values.range(first_inner..end).next().is_some()
    }

    fn add_source(&mut self, value: &[u8], attachment: Attachment) -> Result<Target, ParseError> {
        let nodes = tape::index(value)?;
        let around = match attachment {
            Attachment::Root => 0,
            Attachment::Replacement(target) | Attachment::Element(target) | Attachment::Member(target) => {
                self.steps(target).len() + 1
            }
        };
        if tape::depth(&nodes) + around > tape::MAX_DEPTH {
            return Err(ParseError { position: 0, what: "too deep a nesting" });
        }
        let source = self.sources.len() as u32;
        self.sources.push(Arc::new(SourceText { bytes: value.into(), nodes, attachment }));
        Ok(Target { source, node: 0 })
    }
}
