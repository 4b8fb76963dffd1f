//! What a person makes of a request that waits.

use std::sync::Arc;

use sayso_gate::{CutBody, RequestEntry};
use sayso_review::{EditKind, ErrorKind, RequestId, RequestStep, SavedEdits as SavedOutcome};
use sayso_wire::{
    Captured, Consequences, Drift, EditError, EditOp, Keep, ModelRequest, Overrides, Repair, Scope, SectionId,
};
use thiserror::Error;

use super::end::{EndError, Expected, Switched};
use super::saved::{Again, Edits};
use super::work::patch;
use super::{Desk, Signed, Work, entry, lock};
use crate::log::Haste;

/// Where an edit is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a path, such as `messages[3].content[1].text`.
    Path(String),
    /// At a section.
    Section(SectionId),
}

/// What is to be done to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Gives a value another content: as text where it is one, else as JSON.
    Set {
        /// Where.
        at: Place,
        /// The content.
        value: String,
    },
    /// Puts another JSON value in its place.
    SetJson {
        /// Where.
        at: Place,
        /// The value.
        value: String,
    },
    /// Leaves something out.
    Delete {
        /// What.
        at: Place,
    },
    /// Puts back what was left out.
    Restore {
        /// What.
        at: Place,
    },
    /// Adds a message of the user.
    Append {
        /// What it says.
        text: String,
    },
    /// Keeps the beginning and the end of a tool's result.
    Shrink {
        /// Which.
        at: Place,
        /// How much.
        keep: Keep,
    },
    /// Mends what would be refused.
    Repair(Repair),
    /// Applies a JSON patch.
    Patch(Vec<u8>),
    /// Has a section come first, for the person alone.
    Pin {
        /// Which.
        at: Place,
        /// The pinned one that it comes before.
        before: Option<SectionId>,
    },
    /// No longer does so.
    Unpin {
        /// Which.
        at: Place,
    },
    /// Takes the last edit back.
    Undo,
    /// Makes it again.
    Redo,
    /// Takes all edits back.
    Reset,
}

/// Whether an edit is made from now on, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromNowOn {
    /// For this request only.
    No,
    /// It is saved in a scope, and applied to what comes.
    Yes(Scope),
}

/// What an edit led to.
#[derive(Clone, Debug)]
pub struct Edited {
    /// How many edits there were, undone ones included.
    pub revision: u64,
    /// Where it was made.
    pub path: String,
    /// Whether nothing was there before.
    pub added: bool,
    /// How many tokens fewer it makes the request.
    pub fewer: i64,
    /// Members at the top of the body that this edit added and that the API does not document.
    pub unknown_members: Vec<String>,
    /// What the edits so far mean for the server.
    pub consequences: Option<Consequences>,
    /// What became of saved edits.
    pub captured: Captured,
    /// The mode that was switched to, so that they are applied.
    pub switched: Option<Switched>,
}

/// Why a request could not be edited.
#[derive(Debug, Error)]
pub enum EditRequestError {
    /// It does not wait.
    #[error("request {0} does not wait, and only one that does can be edited")]
    NotWaiting(RequestId),
    /// Its body is signed.
    #[error("request {0} is signed, and would be refused with any other body")]
    Signed(RequestId),
    /// There is nothing to take back, or to make again.
    #[error("there is nothing to {0}")]
    Nothing(&'static str),
    /// The edit is refused.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// It could not be saved.
    #[error(transparent)]
    Save(EndError),
    /// Somebody edited it after it was seen.
    #[error(transparent)]
    EditedSince(EndError),
}

impl EditRequestError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Save(error) | Self::EditedSince(error) => error.kind(),
            _ => ErrorKind::InvalidArgs,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotWaiting(_) => Some("have the next one wait with `sayso request mode pause-next`".to_owned()),
            Self::Signed(_) => Some("resume or cancel it as it is".to_owned()),
            Self::Nothing(_) => None,
            Self::Edit(error) => error.hint().map(str::to_owned),
            Self::Save(error) | Self::EditedSince(error) => Some(error.hint()),
        }
    }
}

impl Desk {
    /// Edits a request that waits, whatever others have made of it.
    pub fn edit(
        &self,
        request: RequestId,
        edit: &Edit,
        from_now_on: FromNowOn,
        now: i64,
    ) -> Result<Edited, EditRequestError> {
        self.edit_seen(request, edit, Expected::Any, from_now_on, now)
    }

    /// Edits a request that waits, if it is still what somebody has seen.
    pub fn edit_seen(
        &self,
        request: RequestId,
        edit: &Edit,
        expected: Expected,
        from_now_on: FromNowOn,
        now: i64,
    ) -> Result<Edited, EditRequestError> {
        let Made { before, parsed, path, revision, session } = loop {
            if let Some(made) = self.make_edit(request, edit, expected)? {
                break made;
            }
        };
        let (mut captured, mut switched) = (Captured::default(), None);
        if let FromNowOn::Yes(scope) = from_now_on {
            // It is named, wherever it is; what was edited before it was meant for this request alone.
            let edits = Edits { request: &parsed, since: Some(&before), again: Again::Yes, preview_limit: None };
            captured = self.save_edits(request, &session, &edits, scope, now).map_err(EditRequestError::Save)?;
            switched = self.switch_for(captured, scope, &session);
        }
        let counter = &mut lock(&self.counter);
        let consequences = parsed.consequences(counter);
        let fewer = before.total_tokens(counter).count.cast_signed() - parsed.total_tokens(counter).count.cast_signed();
        let added = matches!(edit, Edit::Set { .. } | Edit::SetJson { .. }) && before.at(&path).is_err();
        let mut unknown_members = parsed.unknown_members();
        let before_it = before.unknown_members();
        unknown_members.retain(|name| !before_it.contains(name));
        Ok(Edited { revision, path, added, fewer, unknown_members, consequences, captured, switched })
    }

    /// Makes an edit of a request as it is now; nothing, if somebody else made one meanwhile. It takes a while, and nobody waits for it.
    fn make_edit(&self, request: RequestId, edit: &Edit, expected: Expected) -> Result<Option<Made>, EditRequestError> {
        let not_waiting = || EditRequestError::NotWaiting(request);
        let (current, signed, seen) = {
            let state = lock(&self.state);
            let waiting = state.waiting.get(&request).ok_or_else(not_waiting)?;
            expected.check(request, waiting.revision).map_err(EditRequestError::EditedSince)?;
            (waiting.current(), waiting.came.signed, waiting.revision)
        };
        if signed == Signed::Yes && !matches!(edit, Edit::Pin { .. } | Edit::Unpin { .. }) {
            return Err(EditRequestError::Signed(request));
        }
        let before = current.sections();
        let mut parsed = ModelRequest::clone(&before);
        let path = make(&mut parsed, edit)?;
        let parsed = Arc::new(parsed);
        let mut state = lock(&self.state);
        let waiting = state.waiting.get_mut(&request).ok_or_else(not_waiting)?;
        if waiting.revision != seen {
            return Ok(None);
        }
        waiting.revision += 1;
        waiting.work.edited = Some(Arc::clone(&parsed));
        let (revision, session) = (waiting.revision, waiting.whose.session.clone());
        let (edited, step_path, edit) = (Arc::clone(&parsed), path.clone(), kind(edit));
        self.log.later(Haste::Now, None, move || {
            let patch = patch(Some(&edited));
            let recorded = patch.as_ref().map(CutBody::record);
            let step = RequestStep::Edited { version: revision, path: step_path, edit, patch: recorded };
            vec![RequestEntry { bodies: patch.into_iter().collect(), ..entry(request, step) }]
        });
        Ok(Some(Made { before, parsed, path, revision, session }))
    }
}

/// An edit that was made.
struct Made {
    before: Arc<ModelRequest>,
    parsed: Arc<ModelRequest>,
    path: String,
    revision: u64,
    session: String,
}

fn kind(edit: &Edit) -> EditKind {
    match edit {
        Edit::Set { .. } | Edit::SetJson { .. } => EditKind::Set,
        Edit::Delete { .. } => EditKind::Delete,
        Edit::Restore { .. } => EditKind::Restore,
        Edit::Append { .. } => EditKind::Append,
        Edit::Shrink { .. } => EditKind::Shrink,
        Edit::Repair(_) => EditKind::Repair,
        Edit::Patch(_) => EditKind::Patch,
        Edit::Pin { .. } | Edit::Unpin { .. } => EditKind::Pin,
        Edit::Undo => EditKind::Undo,
        Edit::Redo => EditKind::Redo,
        Edit::Reset => EditKind::Reset,
    }
}

/// Makes an edit, and says where.
fn make(request: &mut ModelRequest, edit: &Edit) -> Result<String, EditRequestError> {
    let path = |op: &EditOp| op.target_path.clone();
    Ok(match edit {
        Edit::Set { at: Place::Path(at), value } => match text_at(request, at) {
            Some(id) => path(request.edit_section(id, value)?),
            None => path(request.edit_path(at, value)?),
        },
        Edit::Set { at: Place::Section(id), value } => path(request.edit_section(*id, value)?),
        // A setting that is not there yet is added.
        Edit::SetJson { at: Place::Path(at), value } if request.at(at).is_err() => path(request.edit_path(at, value)?),
        Edit::SetJson { at, value } => {
            let target = match at {
                Place::Path(at) => request.at(at)?,
                Place::Section(id) => request.section(*id).and_then(|section| section.leaf).unwrap_or(id.target),
            };
            path(request.edit_json(target, value)?)
        }
        Edit::Delete { at } => path(request.delete(section(request, at)?)?),
        Edit::Restore { at } => path(request.restore(section(request, at)?)?),
        Edit::Append { text } => path(request.append(text)?),
        Edit::Shrink { at, keep } => path(request.shrink(section(request, at)?, *keep)?),
        Edit::Repair(repair) => path(request.repair(*repair)?),
        Edit::Patch(patch) => path(request.apply_patch(patch)?),
        Edit::Pin { at, before } => path(request.pin(section(request, at)?, *before)?),
        Edit::Unpin { at } => path(request.unpin(section(request, at)?)?),
        Edit::Undo => path(request.undo().ok_or(EditRequestError::Nothing("undo"))?),
        Edit::Redo => path(request.redo().ok_or(EditRequestError::Nothing("redo"))?),
        Edit::Reset => path(request.reset().ok_or(EditRequestError::Nothing("reset"))?),
    })
}

/// The section at a path that shows one text: what is set there is that text, as a person reads it.
fn text_at(request: &ModelRequest, path: &str) -> Option<SectionId> {
    let section = request.section(request.at(path).ok()?.into())?;
    section.leaf.filter(|leaf| *leaf != section.id.target).map(|_| section.id)
}

/// The section at a place: the one that is there, or the one around it.
fn section(request: &ModelRequest, at: &Place) -> Result<SectionId, EditRequestError> {
    match at {
        Place::Section(id) => Ok(*id),
        Place::Path(path) => {
            let (target, document) = (request.at(path)?, request.document().ok_or(EditError::NotUnderstood)?);
            let mut around = std::iter::successors(Some(target), |own| document.parent(*own));
            Ok(around.find(|own| request.section((*own).into()).is_some()).unwrap_or(target).into())
        }
    }
}

impl Work {
    /// The same made of another request that is the same but for how it is to be answered; nothing, if it cannot be.
    pub(super) fn go_on(&self, request: &ModelRequest) -> Option<Self> {
        let again = |edited: &Arc<ModelRequest>| {
            if edited.original() == request.original() {
                return Some(Arc::clone(edited));
            }
            let mut request = request.clone();
            request.apply_patch(&edited.to_patch().ok()?).ok()?;
            Some(Arc::new(request))
        };
        let edited = match &self.edited {
            Some(edited) => Some(again(edited)?),
            None => None,
        };
        Some(Self { edited, laid: self.laid.as_ref().and_then(again), saved: self.saved.clone(), ..Self::default() })
    }
}

/// Applies saved edits, and says what became of each.
pub(super) fn lay_over(overrides: &Overrides, request: &ModelRequest) -> Work {
    if overrides.edits.is_empty() {
        return Work::default();
    }
    let mut request = request.clone();
    let outcome = overrides.apply(&mut request);
    let path = |place: usize| overrides.edits.get(place).map(|edit| edit.anchor.path.clone()).unwrap_or_default();
    let drifted = |(place, drift): &(usize, Drift)| match drift {
        Drift::Refused(error) => format!("{}: {error}", path(*place)),
        Drift::Changed(_) | Drift::Gone => path(*place),
    };
    let saved = SavedOutcome {
        applied: outcome.applied.iter().map(|(place, _)| path(*place)).collect(),
        drifted: outcome.drifted.iter().map(drifted).collect(),
        turn: None,
    };
    if !request.is_dirty() {
        return Work { saved, ..Work::default() };
    }
    let refused = request.blocking().into_iter().next().map(|problem| problem.message);
    let request = Arc::new(request);
    Work { edited: Some(Arc::clone(&request)), laid: Some(request), saved, refused, unmade: None }
}

/// What people call a scope.
pub(crate) fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Global => "global",
        Scope::Workspace => "workspace",
        Scope::Session => "session",
    }
}
