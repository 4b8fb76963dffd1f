//! Saved edits, applied to later requests by themselves: to what they were made for, and to nothing else.
//!
//! An agent sends its whole history again with every request, so that an edit has to find what it was made for there: by what
//! that said, wherever it is by now. What says something else by now has drifted, and is left alone and reported.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::edit::EditError;
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
    /// When it was saved, in milliseconds since 1970.
    pub updated_at: i64,
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

impl Overrides {
    /// Saves what was edited in a request, in the place of what was saved for the same sections in the same scope.
    pub fn capture(&mut self, request: &ModelRequest, scope: Scope, updated_at: i64) -> usize {
        let mut count = 0;
        let shown = self.preview_limit.unwrap_or(usize::MAX);
        let candidates: Vec<&Section> = anchored(request).collect();
        // What is gone as a whole is saved as a whole.
        let differences = request.diff();
        for (place, section) in candidates.iter().enumerate().take(shown) {
            let difference = differences.iter().find(|difference| difference.id == section.id);
            let Some(difference) = difference.filter(|_| !request.is_added(section.id.target)) else { continue };
            let hash = hash(&difference.old);
            let same = |other: &&&Section| request.original_content(other).is_some_and(|said| said == difference.old);
            let occurrence = candidates[..place].iter().filter(same).count();
            let anchor =
                Anchor { hash, occurrence, path: difference.path.clone(), kind: section.kind, node: section.node };
            self.edits.retain(|edit| edit.scope != scope || !edit.anchor.is_for_the_same(&anchor));
            let content = (!section.deleted).then(|| difference.new.clone());
            self.edits.push(Override { scope, anchor, content, updated_at });
            count += 1;
        }
        count
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
            match said.find(&edit.anchor) {
                Err(drift) => outcome.drifted.push((place, drift)),
                Ok(id) => {
                    let made = match &edit.content {
                        Some(content) => request.edit_section(id, content).map(|_| ()),
                        None => request.delete(id).map(|_| ()),
                    };
                    match made {
                        Ok(()) => outcome.applied.push((place, id)),
                        Err(error) => outcome.drifted.push((place, Drift::Refused(error))),
                    }
                }
            }
        }
        outcome
    }
}

impl Anchor {
    /// Whether another is for the same section.
    fn is_for_the_same(&self, other: &Self) -> bool {
        let same = self.hash == other.hash && self.occurrence == other.occurrence && self.node == other.node;
        same && (!is_named(self.node) || self.path == other.path)
    }
}

/// Whether a section is known by its name: what settings say is the same for many.
fn is_named(node: NodeType) -> bool {
    matches!(node, NodeType::RequestOption | NodeType::ToolSchema)
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
            if let Some(said) = request.original_content(section) {
                by_hash.entry((section.node, hash(&said))).or_default().push(section.id);
            }
            by_path.insert(request.raw_path(section), section.id);
        }
        Self { by_hash, by_path }
    }

    /// The section that an edit is for.
    fn find(&self, anchor: &Anchor) -> Result<SectionId, Drift> {
        let at_the_place = self.by_path.get(&anchor.path).copied();
        let alike = self.by_hash.get(&(anchor.node, anchor.hash.clone())).map(Vec::as_slice).unwrap_or_default();
        let found = if is_named(anchor.node) {
            at_the_place.filter(|here| alike.contains(here))
        } else {
            alike.get(anchor.occurrence).or(alike.last()).copied()
        };
        found.ok_or(at_the_place.map_or(Drift::Gone, Drift::Changed))
    }
}

/// The sections that a saved edit can be for: those that say something themselves, and messages as a whole.
fn anchored(request: &ModelRequest) -> impl Iterator<Item = &Section> {
    request.sections().filter(|section| section.node != NodeType::Tag && section.node != NodeType::Metadata)
}

fn hash(said: &str) -> String {
    blake3::hash(said.as_bytes()).to_hex().to_string()
}
