//! Saved edits, applied to later requests by themselves: to what they were made for, and to nothing else.
//!
//! An agent sends its whole history again with every request, so that an edit has to find what it was made for there: by what
//! that said, wherever it is by now. What says something else by now has drifted, and is left alone and reported.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::compare::SectionDiff;
use crate::edit::EditError;
use crate::json::Target;
use crate::request::ModelRequest;
use crate::section::{NodeType, Section, SectionId, SectionKind};

/// Where a saved edit counts. The narrower wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Everywhere.
    Global,
    /// In one workspace.
    Workspace,
    /// In one session.
    Session,
}

/// What a saved edit is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Anchor {
    /// What the section said, by its hash.
    pub hash: String,
    /// Which of those that said so.
    pub occurrence: usize,
    /// Where it was.
    pub path: String,
    /// What it is for the model.
    pub kind: SectionKind,
    /// Where it is in the structure.
    pub node: NodeType,
    /// Which value it is of.
    #[serde(default)]
    pub part: AnchorPart,
}

/// Which value of a section a saved edit is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AnchorPart {
    /// The section itself: what it says.
    #[default]
    Whole,
    /// One of several values in it, at the anchor's path.
    Inner,
}

/// A saved edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    /// Where it counts.
    pub scope: Scope,
    /// What it is for.
    pub anchor: Anchor,
    /// What the section is to say; `None` if it is to be left out.
    pub content: Option<String>,
    /// How that is written.
    #[serde(default)]
    pub form: Form,
    /// When it was saved, in milliseconds since 1970.
    pub updated_at: i64,
}

/// How what a saved edit says is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// As a section shows it.
    #[default]
    Shown,
    /// As JSON: the value is of another sort than what came.
    Json,
}

/// Saved edits, and how many sections are shown when more are captured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Overrides {
    /// The edits.
    pub edits: Vec<Override>,
    /// How many sections, from the first on, can be captured; all, if not said.
    pub preview_limit: Option<usize>,
}

/// What became of saved edits in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Which edits were applied, by their place, and to what.
    pub applied: Vec<(usize, SectionId)>,
    /// Which were not, and why.
    pub drifted: Vec<(usize, Drift)>,
}

/// Why a saved edit was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    /// Where it was made, something else is said by now.
    Changed(SectionId),
    /// Nothing is there, and nothing says what it was made for.
    Gone,
    /// It was found, and cannot be edited.
    Refused(EditError),
}

/// What became of saved edits when those of a request were captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// How many were saved.
    pub saved: usize,
    /// How many are no longer: what they were for is as it came again.
    pub removed: usize,
}

impl Overrides {
    /// Saves what was edited in a request, in the place of what was saved for the same sections in the same scope.
    pub fn capture(&mut self, request: &ModelRequest, scope: Scope, updated_at: i64) -> usize {
        self.capture_since(None, request, &[], scope, updated_at).saved
    }

    /// The same of what was edited in a request since it was as `before`, if it ever was: what was edited by then is saved elsewhere, or
    /// was not meant to be. Nor is what is saved `elsewhere` by now.
    pub fn capture_since(
        &mut self,
        before: Option<&ModelRequest>,
        request: &ModelRequest,
        elsewhere: &[Override],
        scope: Scope,
        updated_at: i64,
    ) -> Captured {
        let old = before.map(|before| self.differences(before)).unwrap_or_default();
        let mut new = self.differences(request);
        let is_gone = |one: &&Captive| !new.iter().any(|other| other.target == one.target);
        let gone: Vec<Anchor> = old.iter().filter(is_gone).map(|one| one.anchor.clone()).collect();
        new.retain(|one| !old.iter().any(|other| one.is_the_same(other)));
        new.retain(|one| !elsewhere.iter().any(|edit| one.is_saved_by(edit)));
        let count = self.edits.len();
        self.edits.retain(|edit| edit.scope != scope || !gone.iter().any(|anchor| edit.anchor.is_for_the_same(anchor)));
        let removed = count - self.edits.len();
        Captured { saved: self.capture_all(new, scope, updated_at), removed }
    }

    fn capture_all(&mut self, captives: Vec<Captive>, scope: Scope, updated_at: i64) -> usize {
        let count = captives.len();
        for Captive { anchor, content, form, .. } in captives {
            self.edits.retain(|edit| edit.scope != scope || !edit.anchor.is_for_the_same(&anchor));
            self.edits.push(Override { scope, anchor, content, form, updated_at });
        }
        count
    }

    /// What was edited in a request, as far as it can be saved.
    fn differences(&self, request: &ModelRequest) -> Vec<Captive> {
        let shown = self.preview_limit.unwrap_or(usize::MAX);
        let candidates: Vec<&Section> = anchored(request).collect();
        // What is gone as a whole is saved as a whole.
        let differences = request.diff();
        let mut captives = Vec::new();
        for (place, section) in candidates.iter().enumerate().take(shown) {
            let own = differences.iter().filter(|difference| difference.id == section.id);
            let own = own.filter(|_| !request.is_added(section.id.target));
            captives.extend(own.filter_map(|difference| captured(request, &candidates[..place], section, difference)));
        }
        captives
    }

    /// How many sections of a request, counted from the first, are looked at when its edits are saved; nothing, if all are.
    pub fn captured_sections(request: &ModelRequest, preview_limit: Option<usize>) -> Option<usize> {
        let last = anchored(request).nth(preview_limit?.checked_sub(1)?)?;
        let place = request.sections().position(|section| section.id == last.id)?;
        Some(place + 1).filter(|count| *count < request.sections().count())
    }

    /// Forgets what was saved in a scope.
    pub fn remove(&mut self, scope: Scope) {
        self.edits.retain(|edit| edit.scope != scope);
    }

    /// Applies the edits to a request that has none yet, each where it belongs.
    pub fn apply(&self, request: &mut ModelRequest) -> Applied {
        let mut outcome = Applied::default();
        if self.edits.is_empty() {
            return outcome;
        }
        let said = Said::of(request);
        for (place, edit) in self.edits.iter().enumerate() {
            let narrower = |other: &Override| other.scope > edit.scope && other.anchor.is_for_the_same(&edit.anchor);
            if self.edits.iter().any(narrower) {
                continue;
            }
            match said.find(request, &edit.anchor) {
                Err(drift) => outcome.drifted.push((place, drift)),
                Ok((id, target)) => match edit.make(request, id, target) {
                    Ok(()) => outcome.applied.push((place, id)),
                    Err(error) => outcome.drifted.push((place, Drift::Refused(error))),
                },
            }
        }
        outcome
    }
}

impl Anchor {
    /// Whether another is for the same section.
    fn is_for_the_same(&self, other: &Self) -> bool {
        let same = self.hash == other.hash && self.occurrence == other.occurrence && self.node == other.node;
        same && (!self.is_by_path() || self.path == other.path)
    }

    /// Whether it is known by where it is: what settings say is the same for many.
    fn is_by_path(&self) -> bool {
        self.node == NodeType::RequestOption || self.part == AnchorPart::Inner
    }
}

impl Override {
    fn make(&self, request: &mut ModelRequest, id: SectionId, target: Target) -> Result<(), EditError> {
        match (&self.content, self.form, self.anchor.part) {
            (None, ..) => request.delete(id).map(|_| ()),
            (Some(content), Form::Json, _) => request.edit_json(target, content).map(|_| ()),
            (Some(content), Form::Shown, AnchorPart::Inner) => request.edit(target, content).map(|_| ()),
            (Some(content), Form::Shown, AnchorPart::Whole) => request.edit_section(id, content).map(|_| ()),
        }
    }
}

/// What can be saved of a difference.
struct Captive {
    /// What was edited, wherever it is by now.
    target: Target,
    anchor: Anchor,
    content: Option<String>,
    form: Form,
}

impl Captive {
    fn is_the_same(&self, other: &Self) -> bool {
        self.target == other.target && self.content == other.content && self.form == other.form
    }

    fn is_saved_by(&self, edit: &Override) -> bool {
        self.anchor == edit.anchor && self.content == edit.content && self.form == edit.form
    }
}

fn captured(
    request: &ModelRequest,
    before: &[&Section],
    section: &Section,
    difference: &SectionDiff,
) -> Option<Captive> {
    let document = request.document()?;
    let inner = difference.target != section.leaf.unwrap_or(section.id.target);
    let part = if inner { AnchorPart::Inner } else { AnchorPart::Whole };
    let said_before = if inner { difference.old.clone() } else { said(request, section)? };
    let same = |other: &&&Section| {
        !inner && other.node == section.node && said(request, other).is_some_and(|said| said == said_before)
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
    Some(Captive {
        target: difference.target,
        anchor,
        content,
        form: if other_kind { Form::Json } else { Form::Shown },
    })
}

/// What a section said when it came, as far as it stays the same when it comes again: places to keep move with every request.
fn said(request: &ModelRequest, section: &Section) -> Option<String> {
    let came = request.document()?.as_came();
    // What is one value may have been several when it came, and the other way round.
    if section.leaf.is_some() || came.knows(section.id.target) && came.kind(section.id.target).is_leaf() {
        return request.original_content(section).map(Cow::into_owned);
    }
    let mut text = String::new();
    let mut next = vec![section.id.target];
    while let Some(target) = next.pop() {
        if came.kind(target).is_leaf() {
            text.push_str(&String::from_utf8_lossy(came.raw(target)));
            text.push('\n');
        }
        let children: Vec<Target> = came.children(target).collect();
        let lasting = |child: &&Target| came.key(**child).is_none_or(|key| key != "cache_control");
        next.extend(children.iter().rev().filter(lasting));
    }
    Some(text)
}

/// What the sections of a request say, looked at once for all saved edits.
struct Said {
    by_hash: BTreeMap<(NodeType, String), Vec<SectionId>>,
    by_path: BTreeMap<String, SectionId>,
}

impl Said {
    fn of(request: &ModelRequest) -> Self {
        let (mut by_hash, mut by_path) = (BTreeMap::<_, Vec<SectionId>>::new(), BTreeMap::new());
        for section in anchored(request) {
            if let Some(said) = said(request, section) {
                by_hash.entry((section.node, hash(&said))).or_default().push(section.id);
            }
            by_path.insert(request.raw_path(section), section.id);
        }
        Self { by_hash, by_path }
    }

    /// The section that an edit is for.
    fn find(&self, request: &ModelRequest, anchor: &Anchor) -> Result<(SectionId, Target), Drift> {
        if anchor.part == AnchorPart::Inner {
            return inner(request, anchor);
        }
        let at_the_place = self.by_path.get(&anchor.path).copied();
        let alike = self.by_hash.get(&(anchor.node, anchor.hash.clone())).map(Vec::as_slice).unwrap_or_default();
        let here = at_the_place.filter(|here| alike.contains(here));
        // Among several that say the same, the one that was meant; one that is alone may be another.
        let counted = alike.get(anchor.occurrence).copied();
        let found = if anchor.is_by_path() { here } else { counted.or(here) };
        let found = found.ok_or(at_the_place.map_or(Drift::Gone, Drift::Changed))?;
        let leaf = request.section(found).and_then(|section| section.leaf);
        Ok((found, leaf.unwrap_or(found.target)))
    }
}

/// One of several values in a section, where it was and if it says what it said.
fn inner(request: &ModelRequest, anchor: &Anchor) -> Result<(SectionId, Target), Drift> {
    let (Some(document), Ok(target)) = (request.document(), request.at(&anchor.path)) else { return Err(Drift::Gone) };
    let mut around = std::iter::successors(Some(target), |own| document.parent(*own));
    let section = around.find_map(|own| request.section(own.into())).map(|section| section.id);
    let section = section.unwrap_or(target.into());
    let said = document.text(target).unwrap_or_else(|| String::from_utf8_lossy(document.raw(target)));
    if hash(&said) == anchor.hash { Ok((section, target)) } else { Err(Drift::Changed(section)) }
}

/// The sections that a saved edit can be for: those that say something themselves, and messages as a whole.
fn anchored(request: &ModelRequest) -> impl Iterator<Item = &Section> {
    request.sections().filter(|section| section.node != NodeType::Tag && section.node != NodeType::Metadata)
}

fn hash(said: &str) -> String {
    blake3::hash(said.as_bytes()).to_hex().to_string()
}
