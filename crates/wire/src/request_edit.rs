//! Edit operations on a request.

use std::sync::Arc;

use crate::edit::{EditError, EditId, EditOp, EditStep, EditTargetKind};
use crate::json::{Document, DocumentChange, JsonKind, PathError, Target, text};
use crate::request::{ModelRequest, RequestBody};
use crate::section::{ContentKind, Editable, NodeType, Section, SectionId};
use crate::validate::Repair;

/// Number of bytes to keep when a text is truncated in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShrinkLimits {
    /// Bytes at the start.
    pub head: usize,
    /// Bytes at the end.
    pub tail: usize,
}

impl Default for ShrinkLimits {
    fn default() -> Self {
        Self { head: 2_000, tail: 1_000 }
    }
}

/// Prefix of the displayed paths of settings; it is not part of the body.
const OPTION_PREFIX: &str = "requestOptions.";

impl ModelRequest {
    /// Returns the value at a path.
    pub fn resolve(&self, path: &str) -> Result<Target, EditError> {
        let document = self.document().ok_or(EditError::UnknownFormat)?;
        // A member of the body with this name takes precedence over the prefix.
        let found = document.resolve(path);
        Ok(match path.strip_prefix(OPTION_PREFIX) {
            Some(option) if found.is_err() => document.resolve(option)?,
            _ => found?,
        })
    }

    /// Replaces the value at a path. A string takes text, any other value JSON. A missing setting is added.
    pub fn edit_path(&mut self, path: &str, value: &str) -> Result<&EditOp, EditError> {
        match self.resolve(path) {
            Ok(target) => self.edit(target, value),
            Err(EditError::NoSuchPath(PathError::NotFound { .. })) if is_option(path) => {
                self.add_option(path.strip_prefix(OPTION_PREFIX).unwrap_or(path), value)
            }
            Err(error) => Err(error),
        }
    }

    /// Replaces a value. A string takes text, any other value JSON.
    pub fn edit(&mut self, target: Target, value: &str) -> Result<&EditOp, EditError> {
        let document = self.document_with(target)?;
        let kind = document.kind(target);
        if kind == JsonKind::String {
            return self.edit_raw(target, &text::encode(value));
        }
        // Invalid JSON is rejected below. A container may change its type, because most APIs allow several forms; a
        // setting may not.
        let given = Document::parse(value.as_bytes()).map_or(kind, |given| given.kind(given.root()));
        if given != kind && given != JsonKind::Null && matches!(kind, JsonKind::Bool | JsonKind::Number) {
            let value = value.chars().take(MAX_SHOWN_CHARS).collect();
            return Err(EditError::WrongType { path: document.path(target), kind: kind.name(), value });
        }
        self.edit_raw(target, value.as_bytes())
    }

    /// Replaces a value of any type with JSON.
    pub fn edit_json(&mut self, target: Target, value: &str) -> Result<&EditOp, EditError> {
        self.edit_raw(target, value.as_bytes())
    }

    /// Returns the document if it contains the value, deleted or not.
    fn document_with(&self, target: Target) -> Result<&Document, EditError> {
        let document = self.document().ok_or(EditError::UnknownFormat)?;
        if document.contains(target) { Ok(document) } else { Err(EditError::NoSuchSection(target.to_string())) }
    }

    fn edit_raw(&mut self, target: Target, raw: &[u8]) -> Result<&EditOp, EditError> {
        let document = self.document_with(target)?;
        let path = document.path(target);
        if let Some(why) = self.read_only_reason(target) {
            return Err(EditError::ReadOnly { path, why });
        }
        let kind = self.edit_kind(target);
        let document = self.document_mut().ok_or(EditError::UnknownFormat)?;
        let change = document.replace(target, raw).map_err(|error| not_json(&path, raw, error))?;
        Ok(self.commit_steps(kind, path, vec![EditStep::Body(change)]))
    }

    /// Replaces the displayed text of a section.
    pub fn edit_section(&mut self, id: SectionId, value: &str) -> Result<&EditOp, EditError> {
        let section = self.find_section(id)?.clone();
        if let Editable::No(why) = section.editable {
            return Err(EditError::ReadOnly { path: self.raw_path(&section), why });
        }
        if let RequestBody::Raw { .. } = self.body {
            return Ok(self.replace_raw_body(Arc::from(value.as_bytes())));
        }
        let leaf = section.leaf.ok_or_else(|| EditError::NotALeaf { path: self.raw_path(&section) })?;
        match section.range {
            None => self.edit(leaf, value),
            Some(range) => {
                let mut inner = Vec::new();
                text::encode_unquoted(value, &mut inner);
                self.replace_range(leaf, range, &inner)
            }
        }
    }

    fn replace_raw_body(&mut self, bytes: Arc<[u8]>) -> &EditOp {
        let (old, new) = match &self.body {
            RequestBody::Raw { received, now, .. } => (now.clone(), (bytes != *received).then_some(bytes)),
            _ => (None, None),
        };
        self.commit_steps(EditTargetKind::Raw, String::new(), vec![EditStep::Raw { old, new }])
    }

    /// Replaces a range of a text in JSON notation; the rest keeps its bytes.
    fn replace_range(
        &mut self,
        leaf: Target,
        range: std::ops::Range<usize>,
        inner: &[u8],
    ) -> Result<&EditOp, EditError> {
        let document = self.document().ok_or(EditError::UnknownFormat)?;
        let raw = document.raw(leaf);
        let gone = || EditError::NoSuchSection(leaf.to_string());
        let before = raw.get(..=range.start).ok_or_else(gone)?;
        let after = raw.get(range.end + 1..).ok_or_else(gone)?;
        let whole = [before, inner, after].concat();
        self.edit_raw(leaf, &whole)
    }

    pub fn delete(&mut self, id: SectionId) -> Result<&EditOp, EditError> {
        let section = self.find_section(id)?.clone();
        let path = self.raw_path(&section);
        if !section.deletable {
            return Err(EditError::NotDeletable { path });
        }
        if section.deleted {
            return Err(EditError::Already { path, state: "deleted" });
        }
        if let (Some(range), Some(leaf)) = (section.range, section.leaf) {
            // Include the tags themselves.
            let name = section.label.len();
            return self.replace_range(leaf, range.start - name..range.end + name + 1, b"");
        }
        self.edit_children(EditTargetKind::Deletion, path, |document| document.delete(id.target))
    }

    /// Restores a deleted section.
    pub fn restore(&mut self, id: SectionId) -> Result<&EditOp, EditError> {
        let section = self.find_section(id)?;
        let path = self.raw_path(section);
        if !section.deleted {
            return Err(EditError::Already { path, state: "there" });
        }
        if !self.document().is_some_and(|document| document.is_deleted(id.target)) {
            let why = "it is part of a section that was deleted; restore that one";
            return Err(EditError::ReadOnly { path, why });
        }
        self.edit_children(EditTargetKind::Restoration, path, |document| document.restore(id.target))
    }

    /// Appends a user message, which leaves the preceding content valid and cached.
    pub fn append(&mut self, prompt: &str) -> Result<&EditOp, EditError> {
        let dialect = self.dialect().ok_or(EditError::UnknownFormat)?;
        let document = self.document_mut().ok_or(EditError::UnknownFormat)?;
        let appended = dialect.user_message(document, prompt).ok_or(EditError::UnknownFormat)?;
        let path = document.path(appended.to);
        let broken = |error| not_json(&path, &appended.value, error);
        let change = if document.kind(appended.to) == JsonKind::Array {
            let added = document.add_element(appended.to, None, &appended.value).map_err(broken)?;
            added.ok_or(EditError::NotALeaf { path: path.clone() })?.1
        } else {
            document.replace(appended.to, &appended.value).map_err(broken)?
        };
        Ok(self.commit_steps(EditTargetKind::Addition, path, vec![EditStep::Body(change)]))
    }

    fn add_option(&mut self, name: &str, value: &str) -> Result<&EditOp, EditError> {
        let document = self.document_mut().ok_or(EditError::UnknownFormat)?;
        let raw = value.as_bytes();
        let added = document.add_member(Target::WHOLE, name, raw).map_err(|error| not_json(name, raw, error))?;
        let (_, change) = added.ok_or(EditError::UnknownFormat)?;
        Ok(self.commit_steps(EditTargetKind::RequestOption, name.to_owned(), vec![EditStep::Body(change)]))
    }

    /// Truncates a tool result in the middle and inserts a marker.
    pub fn shrink(&mut self, id: SectionId, keep: ShrinkLimits) -> Result<&EditOp, EditError> {
        let section = self.find_section(id)?.clone();
        let path = self.raw_path(&section);
        let (Some(dialect), Some(document)) = (self.dialect(), self.document()) else {
            return Err(EditError::UnknownFormat);
        };
        let within = |target: Target| dialect.result_text(document, target);
        let mut target = Some(section.id.target);
        // Find the text within a part of a result.
        let leaf = loop {
            let Some(own) = target else { return Err(EditError::NotShrinkable { path }) };
            if let Some(leaf) = within(own) {
                break leaf;
            }
            target = document.parent(own);
        };
        // Prefer the selected text if a result has several.
        let own = section.leaf.filter(|leaf| document.kind(*leaf) == JsonKind::String);
        let leaf = own.unwrap_or(leaf);
        let whole = document.text(leaf).unwrap_or_default();
        let Some(shrink_text) = shrink_text(&whole, keep) else {
            return Err(EditError::Already { path, state: "short" });
        };
        let path = document.path(leaf);
        let raw = text::encode(&shrink_text);
        let document = self.document_mut().ok_or(EditError::UnknownFormat)?;
        let change = document.replace(leaf, &raw).map_err(|error| not_json(&path, &raw, error))?;
        Ok(self.commit_steps(EditTargetKind::Shrinking, path, vec![EditStep::Body(change)]))
    }

    /// Reverts all edits at once. The reset can be undone.
    pub fn reset(&mut self) -> Option<&EditOp> {
        let steps: Vec<EditStep> = match &self.body {
            RequestBody::Raw { now, .. } => {
                now.iter().map(|now| EditStep::Raw { old: Some(now.clone()), new: None }).collect()
            }
            RequestBody::Known { document, .. } | RequestBody::Json { document } => {
                document.reset_changes().into_iter().map(EditStep::Body).collect()
            }
        };
        if steps.is_empty() { None } else { Some(self.commit_steps(EditTargetKind::Reset, String::new(), steps)) }
    }

    pub fn repair(&mut self, repair: Repair) -> Result<&EditOp, EditError> {
        let (Repair::Delete(target) | Repair::Restore(target) | Repair::MoveBefore(target, _)) = repair;
        let document = self.document_with(target)?;
        match repair {
            Repair::Delete(target) => {
                let path = document.path(target);
                self.edit_children(EditTargetKind::Deletion, path, |document| document.delete(target))
            }
            Repair::Restore(target) => {
                let path = document.path(target);
                self.edit_children(EditTargetKind::Restoration, path, |document| document.restore(target))
            }
            Repair::MoveBefore(target, before) => {
                let path = document.path(target);
                self.edit_children(EditTargetKind::Order, path, |document| document.reorder(target, Some(before)))
            }
        }
    }

    /// Pins a section before another pinned one or after all. The request to send is unchanged.
    pub fn pin(&mut self, id: SectionId, before: Option<SectionId>) -> Result<&EditOp, EditError> {
        self.find_section(id)?;
        let mut pins: Vec<SectionId> = self.pins.iter().copied().filter(|pin| *pin != id).collect();
        let place = match before {
            Some(before) => {
                let place = pins.iter().position(|pin| *pin == before);
                place.ok_or_else(|| EditError::NoSuchSection(before.to_string()))?
            }
            None => pins.len(),
        };
        pins.insert(place, id);
        Ok(self.repin(id, pins))
    }

    pub fn unpin(&mut self, id: SectionId) -> Result<&EditOp, EditError> {
        let path = self.raw_path(self.find_section(id)?);
        if !self.pins.contains(&id) {
            return Err(EditError::Already { path, state: "not pinned" });
        }
        let pins = self.pins.iter().copied().filter(|pin| *pin != id).collect();
        Ok(self.repin(id, pins))
    }

    fn repin(&mut self, id: SectionId, new: Vec<SectionId>) -> &EditOp {
        let path = self.section(id).map(|section| self.raw_path(section)).unwrap_or_default();
        let old = self.pins.clone();
        self.commit_steps(EditTargetKind::Pins, path, vec![EditStep::Pins { old, new }])
    }

    fn edit_children(
        &mut self,
        kind: EditTargetKind,
        path: String,
        change: impl FnOnce(&Document) -> Option<DocumentChange>,
    ) -> Result<&EditOp, EditError> {
        let change = change(self.document().ok_or(EditError::UnknownFormat)?);
        let change = change.ok_or_else(|| EditError::NotDeletable { path: path.clone() })?;
        Ok(self.commit_steps(kind, path, vec![EditStep::Body(change)]))
    }

    pub(crate) fn commit_steps(
        &mut self,
        target_kind: EditTargetKind,
        target_path: String,
        steps: Vec<EditStep>,
    ) -> &EditOp {
        let id = EditId { request: self.id.clone(), version: self.version + 1 };
        self.commit(EditOp { id, target_kind, target_path, steps })
    }

    fn find_section(&self, id: SectionId) -> Result<&Section, EditError> {
        self.section(id).ok_or_else(|| EditError::NoSuchSection(id.to_string()))
    }

    /// Returns the reason why a value is read-only; `None` if it is editable.
    pub(crate) fn read_only_reason(&self, target: Target) -> Option<&'static str> {
        let document = self.document()?;
        // A container of a read-only value must not be replaced either.
        if !document.kind(target).is_leaf() {
            let kept = self.sections().filter(|section| section.content == ContentKind::Opaque || !section.deletable);
            let mut within = kept.filter(|section| section.id.target != target && !section.deleted);
            if let Some(Section { editable: Editable::No(why), .. }) = within.find(|section| {
                matches!(section.editable, Editable::No(_)) && is_within(document, section.id.target, Some(target))
            }) {
                return Some(why);
            }
        }
        let mut next = Some(target);
        while let Some(target) = next {
            if let Some(section) = self.section(target.into())
                && section.content != ContentKind::Image
                && let Editable::No(why) = section.editable
            {
                return Some(why);
            }
            next = document.parent(target);
        }
        None
    }

    fn edit_kind(&self, target: Target) -> EditTargetKind {
        let Some(document) = self.document() else { return EditTargetKind::Raw };
        let mut next = Some(target);
        while let Some(own) = next {
            if let Some(section) = self.section(own.into()) {
                return match section.node {
                    NodeType::ToolCall
                        if section.tool.as_ref().is_some_and(|tool| is_within(document, target, tool.arguments)) =>
                    {
                        EditTargetKind::ToolArguments
                    }
                    NodeType::ToolSchema => EditTargetKind::ToolSchema,
                    NodeType::RequestOption | NodeType::Remote => EditTargetKind::RequestOption,
                    NodeType::Raw => EditTargetKind::Raw,
                    _ if section.leaf == Some(target) && section.content == ContentKind::Text => {
                        EditTargetKind::ContentText
                    }
                    _ => EditTargetKind::MessageField,
                };
            }
            next = document.parent(own);
        }
        EditTargetKind::MessageField
    }
}

/// `true` if the value equals `of` or is contained in it.
fn is_within(document: &Document, target: Target, of: Option<Target>) -> bool {
    let mut next = Some(target);
    while let Some(own) = next {
        if Some(own) == of {
            return true;
        }
        next = document.parent(own);
    }
    false
}

fn is_option(path: &str) -> bool {
    let name = path.strip_prefix(OPTION_PREFIX).unwrap_or(path);
    !name.is_empty() && !name.contains(['.', '['])
}

/// Maximum length of a value in an error message, in characters.
const MAX_SHOWN_CHARS: usize = 60;

fn not_json(path: &str, raw: &[u8], error: crate::json::ParseError) -> EditError {
    let value: String = String::from_utf8_lossy(raw).chars().take(MAX_SHOWN_CHARS).collect();
    EditError::NotJson { path: path.to_owned(), value, error }
}

/// Truncates a text in the middle; `None` if that would not shorten it.
fn shrink_text(whole: &str, keep: ShrinkLimits) -> Option<String> {
    let boundary = |mut at: usize| {
        while !whole.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    if whole.len() <= keep.head.saturating_add(keep.tail) {
        return None;
    }
    let head = boundary(keep.head);
    // Prefer a line end near the limit.
    let head = whole[..head].rfind('\n').filter(|at| *at >= head / 2).map_or(head, |at| at + 1);
    let tail = boundary(whole.len() - keep.tail);
    let tail = whole[tail..].find('\n').filter(|at| *at <= keep.tail / 2).map_or(tail, |at| tail + at + 1);
    let left_out = &whole[head..tail];
    let lines = left_out.lines().count();
    let marker = format!("[… {lines} lines, {} bytes left out here by the user …]", left_out.len());
    let line_break = if whole[..head].ends_with('\n') || head == 0 { "" } else { "\n" };
    let shrink_text = format!("{}{line_break}{marker}\n{}", &whole[..head], &whole[tail..]);
    (shrink_text.len() < whole.len()).then_some(shrink_text)
}
