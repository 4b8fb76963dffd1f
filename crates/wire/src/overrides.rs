//! Overrides: saved edits that are applied to later requests automatically.
//!
//! An agent sends its whole history with every request. A saved edit therefore finds its section by the hash of the
//! original content, wherever the section is now. A section with other content has drifted; it is left unchanged and
//! reported.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::edit::EditError;
use crate::json::Target;
use crate::request::ModelRequest;
use crate::request_diff::SectionDiff;
use crate::section::{NodeType, Section, SectionId, SectionKind};

/// The scope of a saved edit. The narrowest scope wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    Global,
    Workspace,
    Session,
}

/// The section that a saved edit applies to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Anchor {
    /// Hash of the section's original content.
    pub hash: String,
    /// Index among the sections with the same hash.
    pub occurrence: usize,
    /// Path at the time of saving.
    pub path: String,
    pub kind: SectionKind,
    /// Position in the structure of the request.
    pub node: NodeType,
    #[serde(default)]
    pub part: AnchorPart,
}

/// The value of a section that a saved edit replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AnchorPart {
    /// The content of the section.
    #[default]
    Whole,
    /// One of several values in the section, at the anchor's path.
    Inner,
}

/// A saved edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    pub scope: Scope,
    pub anchor: Anchor,
    /// New content; `None` deletes the section.
    pub content: Option<String>,
    #[serde(default)]
    pub form: OverrideFormat,
    /// Time of saving, in milliseconds since 1970.
    pub updated_at: i64,
}

/// The notation of a saved edit's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OverrideFormat {
    /// As displayed in the section.
    #[default]
    Shown,
    /// As JSON, because the type of the value was changed.
    Json,
}

/// The saved edits of all scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Overrides {
    pub edits: Vec<Override>,
    /// Number of leading sections whose edits are saved; `None` for all.
    pub preview_limit: Option<usize>,
}

/// The result of applying saved edits to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverrideOutcome {
    /// Applied edits by index, with their sections.
    pub applied: Vec<(usize, SectionId)>,
    /// Skipped edits by index, with the reason.
    pub drifted: Vec<(usize, Drift)>,
}

/// The reason why a saved edit was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    /// The content at the anchor's path has changed.
    Changed(SectionId),
    /// Neither the content nor the path was found.
    Missing,
    /// The section was found, but rejects the edit.
    Refused(EditError),
}

/// The result of saving the edits of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounts {
    /// Number of saved edits.
    pub saved: usize,
    /// Number of removed edits, because their sections were restored.
    pub removed: usize,
}

impl Overrides {
    /// Saves the edits of a request, replacing saved edits of the same sections in the same scope.
    pub fn capture(&mut self, request: &ModelRequest, scope: Scope, updated_at: i64) -> usize {
        self.capture_since(None, request, &[], scope, updated_at).saved
    }

    /// Saves the edits of a request made after the state `before`. Edits that are saved in `elsewhere` are excluded.
    pub fn capture_since(
        &mut self,
        before: Option<&ModelRequest>,
        request: &ModelRequest,
        elsewhere: &[Override],
        scope: Scope,
        updated_at: i64,
    ) -> CaptureCounts {
        let old = before.map(|before| self.differences(before)).unwrap_or_default();
        let mut new = self.differences(request);
        let is_gone = |one: &&CapturedEdit| !new.iter().any(|other| other.target == one.target);
        let gone: Vec<Anchor> = old.iter().filter(is_gone).map(|one| one.anchor.clone()).collect();
        new.retain(|one| !old.iter().any(|other| one.equals_edit(other)));
        new.retain(|one| !elsewhere.iter().any(|edit| one.is_saved_by(edit)));
        let count = self.edits.len();
        self.edits
            .retain(|edit| edit.scope != scope || !gone.iter().any(|anchor| edit.anchor.anchors_same_section(anchor)));
        let removed = count - self.edits.len();
        CaptureCounts { saved: self.capture_all(new, scope, updated_at), removed }
    }

    fn capture_all(&mut self, captured: Vec<CapturedEdit>, scope: Scope, updated_at: i64) -> usize {
        let count = captured.len();
        for CapturedEdit { anchor, content, form, .. } in captured {
            self.edits.retain(|edit| edit.scope != scope || !edit.anchor.anchors_same_section(&anchor));
            self.edits.push(Override { scope, anchor, content, form, updated_at });
        }
        count
    }

    /// Returns the edits of a request that can be saved.
    fn differences(&self, request: &ModelRequest) -> Vec<CapturedEdit> {
        let shown = self.preview_limit.unwrap_or(usize::MAX);
        let candidates: Vec<&Section> = anchorable_sections(request).collect();
        // A section that was deleted or added as a whole is saved as a whole.
        let differences = request.diff();
        let mut captured = Vec::new();
        for (place, section) in candidates.iter().enumerate().take(shown) {
            let own = differences.iter().filter(|difference| difference.id == section.id);
            let own = own.filter(|_| !request.is_added(section.id.target));
            captured
                .extend(own.filter_map(|difference| captured_edit(request, &candidates[..place], section, difference)));
        }
        captured
    }

    /// Returns the number of sections whose edits are saved; `None` for all.
    pub fn captured_sections(request: &ModelRequest, preview_limit: Option<usize>) -> Option<usize> {
        let last = anchorable_sections(request).nth(preview_limit?.checked_sub(1)?)?;
        let place = request.sections().position(|section| section.id == last.id)?;
        Some(place + 1).filter(|count| *count < request.sections().count())
    }

    /// Removes the saved edits of a scope.
    pub fn remove(&mut self, scope: Scope) {
        self.edits.retain(|edit| edit.scope != scope);
    }

    /// Applies the saved edits to an unedited request.
    pub fn apply(&self, request: &mut ModelRequest) -> OverrideOutcome {
        let mut outcome = OverrideOutcome::default();
        if self.edits.is_empty() {
            return outcome;
        }
        let anchor_text = SectionIndex::of(request);
        for (place, edit) in self.edits.iter().enumerate() {
            let narrower =
                |other: &Override| other.scope > edit.scope && other.anchor.anchors_same_section(&edit.anchor);
            if self.edits.iter().any(narrower) {
                continue;
            }
            match anchor_text.find(request, &edit.anchor) {
                Err(drift) => outcome.drifted.push((place, drift)),
                Ok((id, target)) => match edit.apply_to(request, id, target) {
                    Ok(()) => outcome.applied.push((place, id)),
                    Err(error) => outcome.drifted.push((place, Drift::Refused(error))),
                },
            }
        }
        outcome
    }
}

impl Anchor {
    /// `true` if another saved edit has the same section.
    fn anchors_same_section(&self, other: &Self) -> bool {
        let same = self.hash == other.hash && self.occurrence == other.occurrence && self.node == other.node;
        same && (!self.is_anchored_by_path() || self.path == other.path)
    }

    /// `true` for settings, which are anchored by their path because many have the same content.
    fn is_anchored_by_path(&self) -> bool {
        self.node == NodeType::RequestOption || self.part == AnchorPart::Inner
    }
}

impl Override {
    fn apply_to(&self, request: &mut ModelRequest, id: SectionId, target: Target) -> Result<(), EditError> {
        match (&self.content, self.form, self.anchor.part) {
            (None, ..) => request.delete(id).map(|_| ()),
            (Some(content), OverrideFormat::Json, _) => request.edit_json(target, content).map(|_| ()),
            (Some(content), OverrideFormat::Shown, AnchorPart::Inner) => request.edit(target, content).map(|_| ()),
            (Some(content), OverrideFormat::Shown, AnchorPart::Whole) => request.edit_section(id, content).map(|_| ()),
        }
    }
}

/// An edit that can be saved.
struct CapturedEdit {
    target: Target,
    anchor: Anchor,
    content: Option<String>,
    form: OverrideFormat,
}

impl CapturedEdit {
    fn equals_edit(&self, other: &Self) -> bool {
        self.target == other.target && self.content == other.content && self.form == other.form
    }

    fn is_saved_by(&self, edit: &Override) -> bool {
        self.anchor == edit.anchor && self.content == edit.content && self.form == edit.form
    }
}

fn captured_edit(
    request: &ModelRequest,
    before: &[&Section],
    section: &Section,
    difference: &SectionDiff,
) -> Option<CapturedEdit> {
    let document = request.document()?;
    let find_inner_value = difference.target != section.leaf.unwrap_or(section.id.target);
    let part = if find_inner_value { AnchorPart::Inner } else { AnchorPart::Whole };
    let said_before = if find_inner_value { difference.old.clone() } else { anchor_text(request, section)? };
    let same = |other: &&&Section| {
        !find_inner_value
            && other.node == section.node
            && anchor_text(request, other).is_some_and(|anchor_text| anchor_text == said_before)
    };
    let occurrence = before.iter().filter(same).count();
    let anchor = Anchor {
        hash: hash(&said_before),
        occurrence,
        path: difference.path.clone(),
        kind: section.kind,
        node: section.node,
        part,
    };
    let other_kind = document.kind(difference.target) != document.original_kind(difference.target);
    let raw = || String::from_utf8_lossy(&document.value_bytes(difference.target)).into_owned();
    let content = (!section.deleted).then(|| if other_kind { raw() } else { difference.new.clone() });
    Some(CapturedEdit {
        target: difference.target,
        anchor,
        content,
        form: if other_kind { OverrideFormat::Json } else { OverrideFormat::Shown },
    })
}

/// Returns the original content of a section for its hash, without cache markers, which move with every request.
fn anchor_text(request: &ModelRequest, section: &Section) -> Option<String> {
    let received = request.document()?.as_received();
    // A value may have been split into parts or joined by an edit; then the original content is not comparable.
    if section.leaf.is_some() || received.contains(section.id.target) && received.kind(section.id.target).is_leaf() {
        return request.original_content(section).map(Cow::into_owned);
    }
    let mut text = String::new();
    let mut next = vec![section.id.target];
    while let Some(target) = next.pop() {
        if received.kind(target).is_leaf() {
            text.push_str(&String::from_utf8_lossy(received.raw(target)));
            text.push('\n');
        }
        let children: Vec<Target> = received.children(target).collect();
        let is_stable = |child: &&Target| received.key(**child).is_none_or(|key| key != "cache_control");
        next.extend(children.iter().rev().filter(is_stable));
    }
    Some(text)
}

/// The contents of all sections, computed once for all saved edits.
struct SectionIndex {
    by_hash: BTreeMap<(NodeType, String), Vec<SectionId>>,
    by_path: BTreeMap<String, SectionId>,
}

impl SectionIndex {
    fn of(request: &ModelRequest) -> Self {
        let (mut by_hash, mut by_path) = (BTreeMap::<_, Vec<SectionId>>::new(), BTreeMap::new());
        for section in anchorable_sections(request) {
            if let Some(anchor_text) = anchor_text(request, section) {
                by_hash.entry((section.node, hash(&anchor_text))).or_default().push(section.id);
            }
            by_path.insert(request.raw_path(section), section.id);
        }
        Self { by_hash, by_path }
    }

    /// Finds the section of a saved edit.
    fn find(&self, request: &ModelRequest, anchor: &Anchor) -> Result<(SectionId, Target), Drift> {
        if anchor.part == AnchorPart::Inner {
            return find_inner_value(request, anchor);
        }
        let section_at_path = self.by_path.get(&anchor.path).copied();
        let equal = self.by_hash.get(&(anchor.node, anchor.hash.clone())).map(Vec::as_slice).unwrap_or_default();
        let match_at_path = section_at_path.filter(|match_at_path| equal.contains(match_at_path));
        // Among equal sections the index decides. If it is out of range, use the section at the anchor's path.
        let counted = equal.get(anchor.occurrence).copied();
        let found = if anchor.is_anchored_by_path() { match_at_path } else { counted.or(match_at_path) };
        let found = found.ok_or(section_at_path.map_or(Drift::Missing, Drift::Changed))?;
        let leaf = request.section(found).and_then(|section| section.leaf);
        Ok((found, leaf.unwrap_or(found.target)))
    }
}

/// Finds one of several values in a section by its path, if it still has the original content.
fn find_inner_value(request: &ModelRequest, anchor: &Anchor) -> Result<(SectionId, Target), Drift> {
    let (Some(document), Ok(target)) = (request.document(), request.resolve(&anchor.path)) else {
        return Err(Drift::Missing);
    };
    let mut around = std::iter::successors(Some(target), |own| document.parent(*own));
    let section = around.find_map(|own| request.section(own.into())).map(|section| section.id);
    let section = section.unwrap_or(target.into());
    let anchor_text = document.text(target).unwrap_or_else(|| String::from_utf8_lossy(document.raw(target)));
    if hash(&anchor_text) == anchor.hash { Ok((section, target)) } else { Err(Drift::Changed(section)) }
}

/// Returns the sections that can be anchors: sections with content, and whole messages.
fn anchorable_sections(request: &ModelRequest) -> impl Iterator<Item = &Section> {
    request.sections().filter(|section| section.node != NodeType::Tag && section.node != NodeType::Metadata)
}

fn hash(anchor_text: &str) -> String {
    blake3::hash(anchor_text.as_bytes()).to_hex().to_string()
}
