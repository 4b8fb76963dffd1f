//! The edits that a person makes.

use std::sync::Arc;

use crate::edit::{EditError, EditId, EditOp, EditTargetKind, Step};
use crate::json::{Change, Document, Kind, NoSuchPath, Target, text};
use crate::request::{Body, ModelRequest};
use crate::section::{ContentKind, Editable, NodeType, Section, SectionId};
use crate::validate::Repair;

/// How much of a text stays when the rest is left out, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// At its beginning.
    pub head: usize,
    /// At its end.
    pub tail: usize,
}

impl Default for Keep {
    fn default() -> Self {
        Self { head: 2_000, tail: 1_000 }
    }
}

/// The name under which settings are shown, which is not in the body itself.
const OPTIONS: &str = "requestOptions.";

impl ModelRequest {
    /// The value at a path.
    pub fn at(&self, path: &str) -> Result<Target, EditError> {
        let document = self.document().ok_or(EditError::NotUnderstood)?;
        // As it is written, should there be such a member.
        let found = document.at(path);
        Ok(match path.strip_prefix(OPTIONS) {
            Some(option) if found.is_err() => document.at(option)?,
            _ => found?,
        })
    }

    /// Edits the value at a path: a text where a text is, JSON elsewhere. A setting that is not there yet is added.
    pub fn edit_path(&mut self, path: &str, value: &str) -> Result<&EditOp, EditError> {
        match self.at(path) {
            Ok(target) => self.edit(target, value),
            Err(EditError::NoSuchPath(NoSuchPath::Nothing { .. })) if is_option(path) => {
                self.add_option(path.strip_prefix(OPTIONS).unwrap_or(path), value)
            }
            Err(error) => Err(error),
        }
    }

    /// Edits one value: a text where a text is, JSON elsewhere.
    pub fn edit(&mut self, target: Target, value: &str) -> Result<&EditOp, EditError> {
        let document = self.known_document(target)?;
        let kind = document.kind(target);
        if kind == Kind::String {
            return self.edit_raw(target, &text::encode(value));
        }
        // What is no JSON at all is refused below. Structures have several forms in most APIs, settings have one.
        let given = Document::parse(value.as_bytes()).map_or(kind, |given| given.kind(given.root()));
        if given != kind && given != Kind::Null && matches!(kind, Kind::Bool | Kind::Number) {
            let value = value.chars().take(SHOWN).collect();
            return Err(EditError::OtherKind { path: document.path(target), kind: kind.name(), value });
        }
        self.edit_raw(target, value.as_bytes())
    }

    /// Edits one value, whatever it was, with JSON.
    pub fn edit_json(&mut self, target: Target, value: &str) -> Result<&EditOp, EditError> {
        self.edit_raw(target, value.as_bytes())
    }

    /// The body, in which a value of that name is or was.
    fn known_document(&self, target: Target) -> Result<&Document, EditError> {
        let document = self.document().ok_or(EditError::NotUnderstood)?;
        if document.knows(target) { Ok(document) } else { Err(EditError::NoSuchSection(target.to_string())) }
    }

    fn edit_raw(&mut self, target: Target, raw: &[u8]) -> Result<&EditOp, EditError> {
        let document = self.known_document(target)?;
        let path = document.path(target);
        if let Some(why) = self.fixed(target) {
            return Err(EditError::Fixed { path, why });
        }
        let kind = self.kind_of_edit(target);
        let document = self.document_mut().ok_or(EditError::NotUnderstood)?;
        let change = document.replace(target, raw).map_err(|error| not_json(&path, raw, error))?;
        Ok(self.make(kind, path, vec![Step::Body(change)]))
    }

    /// Edits a section as a whole: the text that it shows.
    pub fn edit_section(&mut self, id: SectionId, value: &str) -> Result<&EditOp, EditError> {
        let section = self.known(id)?.clone();
        if let Editable::No(why) = section.editable {
            return Err(EditError::Fixed { path: self.raw_path(&section), why });
        }
        if let Body::Raw { .. } = self.body {
            return Ok(self.replace_all(Arc::from(value.as_bytes())));
        }
        let leaf = section.leaf.ok_or_else(|| EditError::NotALeaf { path: self.raw_path(&section) })?;
        match section.range {
            None => self.edit(leaf, value),
            Some(range) => {
                let mut inner = Vec::new();
                text::encode_inside(value, &mut inner);
                self.splice(leaf, range, &inner)
            }
        }
    }

    fn replace_all(&mut self, bytes: Arc<[u8]>) -> &EditOp {
        let (old, new) = match &self.body {
            Body::Raw { came, now, .. } => (now.clone(), (bytes != *came).then_some(bytes)),
            _ => (None, None),
        };
        self.make(EditTargetKind::Raw, String::new(), vec![Step::Raw { old, new }])
    }

    /// Replaces a piece of a text as it is written, and leaves the rest of it as it is written.
    fn splice(&mut self, leaf: Target, range: std::ops::Range<usize>, inner: &[u8]) -> Result<&EditOp, EditError> {
        let document = self.document().ok_or(EditError::NotUnderstood)?;
        let raw = document.raw(leaf);
        let gone = || EditError::NoSuchSection(leaf.to_string());
        let before = raw.get(..=range.start).ok_or_else(gone)?;
        let after = raw.get(range.end + 1..).ok_or_else(gone)?;
        let whole = [before, inner, after].concat();
        self.edit_raw(leaf, &whole)
    }

    /// Takes a section out.
    pub fn delete(&mut self, id: SectionId) -> Result<&EditOp, EditError> {
        let section = self.known(id)?.clone();
        let path = self.raw_path(&section);
        if !section.deletable {
            return Err(EditError::NotDeletable { path });
        }
        if section.deleted {
            return Err(EditError::Already { path, state: "deleted" });
        }
        if let (Some(range), Some(leaf)) = (section.range, section.leaf) {
            // With the tags themselves.
            let name = section.label.len();
            return self.splice(leaf, range.start - name..range.end + name + 1, b"");
        }
        self.relist(EditTargetKind::Deletion, path, |document| document.delete(id.target))
    }

    /// Puts a section back that was taken out.
    pub fn restore(&mut self, id: SectionId) -> Result<&EditOp, EditError> {
        let section = self.known(id)?;
        let path = self.raw_path(section);
        if !section.deleted {
            return Err(EditError::Already { path, state: "there" });
        }
        if !self.document().is_some_and(|document| document.is_deleted(id.target)) {
            let why = "it is part of a section that was deleted; restore that one";
            return Err(EditError::Fixed { path, why });
        }
        self.relist(EditTargetKind::Restoration, path, |document| document.restore(id.target))
    }

    /// Adds a message of the user at the end, which never makes anything before it invalid.
    pub fn append(&mut self, said: &str) -> Result<&EditOp, EditError> {
        let dialect = self.dialect().ok_or(EditError::NotUnderstood)?;
        let document = self.document_mut().ok_or(EditError::NotUnderstood)?;
        let appended = dialect.appended(document, said).ok_or(EditError::NotUnderstood)?;
        let path = document.path(appended.to);
        let broken = |error| not_json(&path, &appended.value, error);
        let change = if document.kind(appended.to) == Kind::Array {
            let added = document.add_element(appended.to, None, &appended.value).map_err(broken)?;
            added.ok_or(EditError::NotALeaf { path: path.clone() })?.1
        } else {
            document.replace(appended.to, &appended.value).map_err(broken)?
        };
        Ok(self.make(EditTargetKind::Addition, path, vec![Step::Body(change)]))
    }

    fn add_option(&mut self, name: &str, value: &str) -> Result<&EditOp, EditError> {
        let document = self.document_mut().ok_or(EditError::NotUnderstood)?;
        let raw = value.as_bytes();
        let added = document.add_member(Target::WHOLE, name, raw).map_err(|error| not_json(name, raw, error))?;
        let (_, change) = added.ok_or(EditError::NotUnderstood)?;
        Ok(self.make(EditTargetKind::RequestOption, name.to_owned(), vec![Step::Body(change)]))
    }

    /// Leaves out the middle of a tool's result, and says so there.
    pub fn shrink(&mut self, id: SectionId, keep: Keep) -> Result<&EditOp, EditError> {
        let section = self.known(id)?.clone();
        let path = self.raw_path(&section);
        let (Some(dialect), Some(document)) = (self.dialect(), self.document()) else {
            return Err(EditError::NotUnderstood);
        };
        let within = |target: Target| dialect.result_text(document, target);
        let mut target = Some(section.id.target);
        // A part of a result is shrunk like the result.
        let leaf = loop {
            let Some(own) = target else { return Err(EditError::NotShrinkable { path }) };
            if let Some(leaf) = within(own) {
                break leaf;
            }
            target = document.parent(own);
        };
        // The text that was meant, where a result has several.
        let own = section.leaf.filter(|leaf| document.kind(*leaf) == Kind::String);
        let leaf = own.unwrap_or(leaf);
        let whole = document.text(leaf).unwrap_or_default();
        let Some(shrunk) = shrunk(&whole, keep) else { return Err(EditError::Already { path, state: "short" }) };
        let path = document.path(leaf);
        let raw = text::encode(&shrunk);
        let document = self.document_mut().ok_or(EditError::NotUnderstood)?;
        let change = document.replace(leaf, &raw).map_err(|error| not_json(&path, &raw, error))?;
        Ok(self.make(EditTargetKind::Shrinking, path, vec![Step::Body(change)]))
    }

    /// Takes everything back at once. This can be undone like any edit.
    pub fn reset(&mut self) -> Option<&EditOp> {
        let steps: Vec<Step> = match &self.body {
            Body::Raw { now, .. } => now.iter().map(|now| Step::Raw { old: Some(now.clone()), new: None }).collect(),
            Body::Known { document, .. } | Body::Json { document } => {
                document.resetting().into_iter().map(Step::Body).collect()
            }
        };
        if steps.is_empty() { None } else { Some(self.make(EditTargetKind::Reset, String::new(), steps)) }
    }

    /// Mends what a problem says is wrong.
    pub fn repair(&mut self, repair: Repair) -> Result<&EditOp, EditError> {
        let (Repair::Delete(target) | Repair::Restore(target) | Repair::MoveBefore(target, _)) = repair;
        let document = self.known_document(target)?;
        match repair {
            Repair::Delete(target) => {
                let path = document.path(target);
                self.relist(EditTargetKind::Deletion, path, |document| document.delete(target))
            }
            Repair::Restore(target) => {
                let path = document.path(target);
                self.relist(EditTargetKind::Restoration, path, |document| document.restore(target))
            }
            Repair::MoveBefore(target, before) => {
                let path = document.path(target);
                self.relist(EditTargetKind::Order, path, |document| document.reorder(target, Some(before)))
            }
        }
    }

    /// Keeps a section at the top for the person, before another that is there or after all of them. What is sent stays the same.
    pub fn pin(&mut self, id: SectionId, before: Option<SectionId>) -> Result<&EditOp, EditError> {
        self.known(id)?;
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

    /// Lets a section go back to its place.
    pub fn unpin(&mut self, id: SectionId) -> Result<&EditOp, EditError> {
        let path = self.raw_path(self.known(id)?);
        if !self.pins.contains(&id) {
            return Err(EditError::Already { path, state: "not pinned" });
        }
        let pins = self.pins.iter().copied().filter(|pin| *pin != id).collect();
        Ok(self.repin(id, pins))
    }

    fn repin(&mut self, id: SectionId, new: Vec<SectionId>) -> &EditOp {
        let path = self.section(id).map(|section| self.raw_path(section)).unwrap_or_default();
        let old = self.pins.clone();
        self.make(EditTargetKind::Pins, path, vec![Step::Pins { old, new }])
    }

    fn relist(
        &mut self,
        kind: EditTargetKind,
        path: String,
        change: impl FnOnce(&Document) -> Option<Change>,
    ) -> Result<&EditOp, EditError> {
        let change = change(self.document().ok_or(EditError::NotUnderstood)?);
        let change = change.ok_or_else(|| EditError::NotDeletable { path: path.clone() })?;
        Ok(self.make(kind, path, vec![Step::Body(change)]))
    }

    pub(crate) fn make(&mut self, target_kind: EditTargetKind, target_path: String, steps: Vec<Step>) -> &EditOp {
        let id = EditId { request: self.id.clone(), version: self.version + 1 };
        self.commit(EditOp { id, target_kind, target_path, steps })
    }

    fn known(&self, id: SectionId) -> Result<&Section, EditError> {
        self.section(id).ok_or_else(|| EditError::NoSuchSection(id.to_string()))
    }

    /// Why a value must stay as it is, if it must.
    pub(crate) fn fixed(&self, target: Target) -> Option<&'static str> {
        let document = self.document()?;
        // Nor may what must stay be replaced together with what is around it.
        if !document.kind(target).is_leaf() {
            let kept = self.sections().filter(|section| section.content == ContentKind::Opaque || !section.deletable);
            let mut within = kept.filter(|section| section.id.target != target && !section.deleted);
            if let Some(Section { editable: Editable::No(why), .. }) = within.find(|section| {
                matches!(section.editable, Editable::No(_)) && is_in(document, section.id.target, Some(target))
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

    fn kind_of_edit(&self, target: Target) -> EditTargetKind {
        let Some(document) = self.document() else { return EditTargetKind::Raw };
        let mut next = Some(target);
        while let Some(own) = next {
            if let Some(section) = self.section(own.into()) {
                return match section.node {
                    NodeType::ToolCall
                        if section.tool.as_ref().is_some_and(|tool| is_in(document, target, tool.arguments)) =>
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

/// Whether a value is another, or in it.
fn is_in(document: &Document, target: Target, of: Option<Target>) -> bool {
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
    let name = path.strip_prefix(OPTIONS).unwrap_or(path);
    !name.is_empty() && !name.contains(['.', '['])
}

/// Characters of a value that are shown where it is refused.
const SHOWN: usize = 60;

fn not_json(path: &str, raw: &[u8], error: crate::json::ParseError) -> EditError {
    let value: String = String::from_utf8_lossy(raw).chars().take(SHOWN).collect();
    EditError::NotJson { path: path.to_owned(), value, error }
}

/// A text with its middle left out; `None` if that would not make it shorter.
fn shrunk(whole: &str, keep: Keep) -> Option<String> {
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
    // At the end of a line where there is one near.
    let head = whole[..head].rfind('\n').filter(|at| *at >= head / 2).map_or(head, |at| at + 1);
    let tail = boundary(whole.len() - keep.tail);
    let tail = whole[tail..].find('\n').filter(|at| *at <= keep.tail / 2).map_or(tail, |at| tail + at + 1);
    let left_out = &whole[head..tail];
    let lines = left_out.lines().count();
    let marker = format!("[… {lines} lines, {} bytes left out here by the user …]", left_out.len());
    let line_break = if whole[..head].ends_with('\n') || head == 0 { "" } else { "\n" };
    let shrunk = format!("{}{line_break}{marker}\n{}", &whole[..head], &whole[tail..]);
    (shrunk.len() < whole.len()).then_some(shrunk)
}
