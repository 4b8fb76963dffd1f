//! Saving the edits of a request as overrides.

use sayso_review::{Event, OverridesSet, RequestId, RequestMode};
use sayso_wire::{CaptureCounts, Scope};

use super::Interceptor;
use super::edits::RequestEdits;
use super::override_store::{CapturedEdits, Duplicates, StateFileError};
use super::resume::{ExpectedRevision, HeldSnapshot, ResumeError};
use crate::recorder::Flush;

/// A mode that was switched because overrides were saved and the previous mode would not apply them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeSwitch {
    pub mode: RequestMode,
    /// Scope of the overrides. For [`Scope::Session`] only the session is switched, otherwise all sessions and the session's own mode.
    pub scope: Scope,
}

/// Result of saving the edits of a held request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveReport {
    /// Number of saved overrides.
    pub saved: usize,
    pub switched: Option<ModeSwitch>,
}

impl Interceptor {
    /// Saves all edits of a held request, including edits by overrides: this promotes a session's override to a wider scope.
    pub fn save_overrides(&self, request: RequestId, scope: Scope, now: i64) -> Result<SaveReport, ResumeError> {
        let HeldSnapshot { edits, session, .. } = self.held_snapshot(request, ExpectedRevision::Any)?;
        let captured = self.captured_edits(&edits).map(|edits| CapturedEdits {
            since: None,
            duplicates: Duplicates::Keep,
            ..edits
        });
        let Some(captured) = captured else { return Ok(SaveReport::default()) };
        let counts = self.save_edits(request, &session, &captured, scope, now)?;
        Ok(SaveReport { saved: counts.saved, switched: self.switch_mode_for(counts, scope, &session) })
    }

    /// The edits that a person made on top of the overrides, for saving. `None` if the request is unedited.
    pub(super) fn captured_edits<'e>(&self, edits: &'e RequestEdits) -> Option<CapturedEdits<'e>> {
        let preview_limit = self.settings().preview_limit;
        let (request, since) = (edits.edited.as_deref()?, edits.with_overrides.as_deref());
        Some(CapturedEdits { request, since, duplicates: Duplicates::Skip, preview_limit })
    }

    /// Saves edits in a scope, and journals it. Signed requests cannot be edited, so no check for a signature is needed.
    pub(super) fn save_edits(
        &self,
        request: RequestId,
        session: &str,
        edits: &CapturedEdits<'_>,
        scope: Scope,
        now: i64,
    ) -> Result<CaptureCounts, ResumeError> {
        let (counts, total) = self.overrides.capture(edits, scope, session, now)?;
        if counts != CaptureCounts::default() {
            self.record_overrides(scope, session, total, Some(request));
        }
        Ok(counts)
    }

    /// Switches to "auto-apply" if overrides were saved and requests are sent normally.
    pub(super) fn switch_mode_for(&self, counts: CaptureCounts, scope: Scope, session: &str) -> Option<ModeSwitch> {
        if counts.saved == 0 {
            return None;
        }
        let mode = RequestMode::AutoOverride;
        let is_off = |of| self.effective(of).mode == RequestMode::Off;
        let mut switched = None;
        for of in [None, Some(session)].into_iter().skip(usize::from(scope == Scope::Session)) {
            if is_off(of) {
                self.set_mode(of, Some(mode));
                switched = Some(ModeSwitch { mode, scope });
            }
        }
        switched
    }

    /// Removes the overrides of a scope and returns their number. In "auto-apply" the next turn is then held for new ones.
    pub fn remove_overrides(&self, scope: Scope, session: &str) -> Result<usize, StateFileError> {
        let count = self.overrides.remove(scope, session)?;
        self.record_overrides(scope, session, 0, None);
        Ok(count)
    }

    fn record_overrides(&self, scope: Scope, session: &str, count: usize, from: Option<RequestId>) {
        let set = OverridesSet {
            scope: scope_name(scope).to_owned(),
            session: (scope == Scope::Session).then(|| session.to_owned()),
            count: count as u64,
            from,
        };
        self.recorder.event(Event::Overrides(set), Flush::Immediate);
    }
}

/// The name of a scope in the journal and on the command line.
fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Global => "global",
        Scope::Workspace => "workspace",
        Scope::Session => "session",
    }
}
