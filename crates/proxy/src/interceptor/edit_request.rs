//! Edits that a person makes in a held request.

use std::sync::Arc;

use sayso_gate::{ChunkedBody, RequestEntry};
use sayso_review::{EditKind, ErrorKind, RequestId, RequestStep};
use sayso_wire::{CaptureCounts, Edit, EditError, EditImpact, EditOp, EditTarget, ModelRequest, Scope, SectionId};
use thiserror::Error;

use super::edits::patch;
use super::override_capture::ModeSwitch;
use super::override_store::{CapturedEdits, Duplicates};
use super::resume::{ExpectedRevision, ResumeError};
use super::{BodySignature, Interceptor, entry, lock};
use crate::recorder::Flush;

/// The requests that an edit applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyScope {
    ThisRequest,
    /// This request and, as an override of the scope, all following ones.
    FromNowOn(Scope),
}

/// Effects of an edit.
#[derive(Clone, Debug)]
pub struct EditReport {
    /// Number of edits, including undone ones.
    pub revision: u64,
    /// Path of the edited value.
    pub path: String,
    /// `true` if the value was missing before.
    pub added: bool,
    /// Tokens that the edit removes; negative if it adds some.
    pub tokens_saved: i64,
    /// Top-level members that the edit added and that the API does not document.
    pub unknown_members: Vec<String>,
    /// Impact of all edits so far on prompt caching; `None` without edits.
    pub impact: Option<EditImpact>,
    pub captured: CaptureCounts,
    pub switched: Option<ModeSwitch>,
}

/// Failure to edit a request.
#[derive(Debug, Error)]
pub enum EditRequestError {
    #[error("request {0} is not paused; only a paused request can be edited")]
    NotPaused(RequestId),
    #[error("request {0} is signed; the upstream would reject an edited body")]
    Signed(RequestId),
    /// No edit to undo, redo or reset.
    #[error("there is no edit to {0}")]
    NoEdit(&'static str),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Save(ResumeError),
    /// Another surface edited the request after the caller read it.
    #[error(transparent)]
    EditedSince(ResumeError),
}

impl EditRequestError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Save(error) | Self::EditedSince(error) => error.kind(),
            _ => ErrorKind::InvalidArgs,
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotPaused(_) => Some("pause the next request with `sayso request mode pause-next`".to_owned()),
            Self::Signed(_) => Some("resume or cancel it without edits".to_owned()),
            Self::NoEdit(_) => None,
            Self::Edit(error) => error.hint().map(str::to_owned),
            Self::Save(error) | Self::EditedSince(error) => Some(error.hint()),
        }
    }
}

impl Interceptor {
    /// Edits a held request at any revision.
    pub fn edit(
        &self,
        request: RequestId,
        edit: &Edit,
        apply_to: ApplyScope,
        now: i64,
    ) -> Result<EditReport, EditRequestError> {
        self.edit_expecting(request, edit, ExpectedRevision::Any, apply_to, now)
    }

    /// Edits a held request, if it is at the expected revision.
    pub fn edit_expecting(
        &self,
        request: RequestId,
        edit: &Edit,
        expected: ExpectedRevision,
        apply_to: ApplyScope,
        now: i64,
    ) -> Result<EditReport, EditRequestError> {
        let AppliedEdit { before, parsed, path, revision, session } = loop {
            if let Some(applied) = self.try_edit(request, edit, expected)? {
                break applied;
            }
        };
        let (mut captured, mut switched) = (CaptureCounts::default(), None);
        if let ApplyScope::FromNowOn(scope) = apply_to {
            // Saves this edit alone: earlier edits were for this request. The limit does not apply to an edit by name.
            let edits = CapturedEdits {
                request: &parsed,
                since: Some(&before),
                duplicates: Duplicates::Keep,
                preview_limit: None,
            };
            captured = self.save_edits(request, &session, &edits, scope, now).map_err(EditRequestError::Save)?;
            switched = self.switch_mode_for(captured, scope, &session);
        }
        let counter = &mut self.read_model.counter();
        let impact = parsed.edit_impact(counter);
        let tokens_saved =
            before.total_tokens(counter).count.cast_signed() - parsed.total_tokens(counter).count.cast_signed();
        let added = matches!(edit, Edit::Set { .. } | Edit::SetJson { .. }) && before.resolve(&path).is_err();
        let mut unknown_members = parsed.unknown_members();
        let known_before = before.unknown_members();
        unknown_members.retain(|name| !known_before.contains(name));
        Ok(EditReport { revision, path, added, tokens_saved, unknown_members, impact, captured, switched })
    }

    /// Applies an edit without the state lock. Returns `None` if another surface edited the request in the meantime.
    fn try_edit(
        &self,
        request: RequestId,
        edit: &Edit,
        expected: ExpectedRevision,
    ) -> Result<Option<AppliedEdit>, EditRequestError> {
        let not_held = || EditRequestError::NotPaused(request);
        let (snapshot, signed, expected_revision) = {
            let state = lock(&self.state);
            let held = state.held.get(&request).ok_or_else(not_held)?;
            expected.check(request, held.revision).map_err(EditRequestError::EditedSince)?;
            (held.snapshot(), held.metadata.signed, held.revision)
        };
        if signed == BodySignature::Signed && !matches!(edit, Edit::Pin { .. } | Edit::Unpin { .. }) {
            return Err(EditRequestError::Signed(request));
        }
        let before = snapshot.parsed();
        let mut parsed = ModelRequest::clone(&before);
        let path = apply(&mut parsed, edit)?;
        let parsed = Arc::new(parsed);
        let mut state = lock(&self.state);
        let held = state.held.get_mut(&request).ok_or_else(not_held)?;
        if held.revision != expected_revision {
            return Ok(None);
        }
        held.revision += 1;
        held.edits.edited = Some(Arc::clone(&parsed));
        let (revision, session) = (held.revision, held.attribution.session.clone());
        let (edited, step_path, edit) = (Arc::clone(&parsed), path.clone(), kind(edit));
        self.recorder.build_later(request, Flush::Immediate, None, move || {
            let patch = patch(Some(&edited));
            let recorded = patch.as_ref().map(ChunkedBody::record);
            let step = RequestStep::Edited { version: revision, path: step_path, edit, patch: recorded };
            vec![RequestEntry { bodies: patch.into_iter().collect(), ..entry(request, step) }]
        });
        Ok(Some(AppliedEdit { before, parsed, path, revision, session }))
    }
}

/// An edit in the hold table.
struct AppliedEdit {
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

/// Applies an edit, and returns the path of the edited value.
fn apply(request: &mut ModelRequest, edit: &Edit) -> Result<String, EditRequestError> {
    let path = |op: &EditOp| op.target_path.clone();
    Ok(match edit {
        Edit::Set { at: EditTarget::Path(at), value } => match text_at(request, at) {
            Some(id) => path(request.edit_section(id, value)?),
            None => path(request.edit_path(at, value)?),
        },
        Edit::Set { at: EditTarget::Section(id), value } => path(request.edit_section(*id, value)?),
        // A missing setting is added.
        Edit::SetJson { at: EditTarget::Path(at), value } if request.resolve(at).is_err() => {
            path(request.edit_path(at, value)?)
        }
        Edit::SetJson { at, value } => {
            let target = match at {
                EditTarget::Path(at) => request.resolve(at)?,
                EditTarget::Section(id) => request.section(*id).and_then(|section| section.leaf).unwrap_or(id.target),
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
        Edit::Undo => path(request.undo().ok_or(EditRequestError::NoEdit("undo"))?),
        Edit::Redo => path(request.redo().ok_or(EditRequestError::NoEdit("redo"))?),
        Edit::Reset => path(request.reset().ok_or(EditRequestError::NoEdit("reset"))?),
    })
}

/// Returns the section at a path if it displays a single text inside the value. Setting the value then replaces that text.
fn text_at(request: &ModelRequest, path: &str) -> Option<SectionId> {
    let section = request.section(request.resolve(path).ok()?.into())?;
    section.leaf.filter(|leaf| *leaf != section.id.target).map(|_| section.id)
}

/// Returns the innermost section that contains a target.
fn section(request: &ModelRequest, at: &EditTarget) -> Result<SectionId, EditRequestError> {
    match at {
        EditTarget::Section(id) => Ok(*id),
        EditTarget::Path(path) => {
            let (target, document) = (request.resolve(path)?, request.document().ok_or(EditError::UnknownFormat)?);
            let mut around = std::iter::successors(Some(target), |own| document.parent(*own));
            Ok(around.find(|own| request.section((*own).into()).is_some()).unwrap_or(target).into())
        }
    }
}
