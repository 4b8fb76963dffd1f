//! The edits of one request.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use sayso_gate::ChunkedBody;
use sayso_review::{OverrideReport, RequestId, SkippedEdit};
use sayso_wire::{Drift, ModelRequest, Overrides, RequestHead};

/// A request as received. It is parsed on first use: a thousand held requests that no surface displays would cost too much memory.
#[derive(Debug)]
pub(super) struct OriginalRequest {
    request: RequestId,
    head: RequestHead,
    body: Arc<[u8]>,
    parsed: OnceLock<Arc<ModelRequest>>,
}

impl OriginalRequest {
    pub(super) fn new(request: RequestId, head: RequestHead, body: Arc<[u8]>) -> Arc<Self> {
        Arc::new(Self { request, head, body, parsed: OnceLock::new() })
    }

    fn parsed(&self) -> Arc<ModelRequest> {
        let parse = || ModelRequest::new(self.request.to_string(), self.head.clone(), Arc::clone(&self.body));
        Arc::clone(self.parsed.get_or_init(|| Arc::new(parse())))
    }
}

/// All edits of a request, by overrides, turn edits and people.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestEdits {
    /// The request with all edits; `None` if it has none.
    pub(super) edited: Option<Arc<ModelRequest>>,
    /// The request with the overrides alone. A person's own edits are the difference to it.
    pub(super) with_overrides: Option<Arc<ModelRequest>>,
    pub(super) overrides: OverrideReport,
    /// The first problem for which the upstream would reject the request with its overrides. Ignored if the request is held: a person
    /// can repair it.
    pub(super) override_rejection: Option<String>,
    /// Failure to restore the edits that another engine recorded.
    pub(super) reapply_error: Option<String>,
}

impl RequestEdits {
    /// Applies overrides to a request.
    pub(super) fn from_overrides(overrides: &Overrides, request: &ModelRequest) -> Self {
        if overrides.edits.is_empty() {
            return Self::default();
        }
        let mut request = request.clone();
        let outcome = overrides.apply(&mut request);
        let path = |at: usize| overrides.edits.get(at).map(|edit| edit.anchor.path.clone()).unwrap_or_default();
        let skipped = |(at, drift): &(usize, Drift)| match drift {
            Drift::Refused(error) => SkippedEdit::failed(path(*at), error.to_string()),
            Drift::Changed(_) | Drift::Missing => SkippedEdit::drifted(path(*at)),
        };
        let report = OverrideReport {
            applied: outcome.applied.iter().map(|(at, _)| path(*at)).collect(),
            skipped: outcome.drifted.iter().map(skipped).collect(),
            turn: None,
        };
        if !request.is_dirty() {
            return Self { overrides: report, ..Self::default() };
        }
        let override_rejection = request.blocking_problems().into_iter().next().map(|problem| problem.message);
        let request = Arc::new(request);
        Self {
            edited: Some(Arc::clone(&request)),
            with_overrides: Some(request),
            overrides: report,
            override_rejection,
            reapply_error: None,
        }
    }

    /// Applies the same edits to a retry of the request. `None` if they do not fit.
    pub(super) fn reapply_to(&self, request: &ModelRequest) -> Option<Self> {
        let reapply = |edited: &Arc<ModelRequest>| {
            if edited.original() == request.original() {
                return Some(Arc::clone(edited));
            }
            let mut request = request.clone();
            request.apply_patch(&edited.to_patch().ok()?).ok()?;
            Some(Arc::new(request))
        };
        let edited = match &self.edited {
            Some(edited) => Some(reapply(edited)?),
            None => None,
        };
        let with_overrides = self.with_overrides.as_ref().and_then(reapply);
        Some(Self { edited, with_overrides, overrides: self.overrides.clone(), ..Self::default() })
    }

    pub(super) fn is_edited(&self) -> bool {
        self.edited.as_ref().is_some_and(|edited| edited.is_dirty())
    }

    /// The edited request; `None` if its bytes equal the received ones.
    pub(super) fn dirty(&self) -> Option<&Arc<ModelRequest>> {
        self.edited.as_ref().filter(|edited| edited.is_dirty())
    }
}

/// A held request at one moment, independent of the state lock.
#[derive(Clone, Debug)]
pub(super) struct RequestSnapshot {
    pub(super) original: Arc<OriginalRequest>,
    pub(super) edited: Option<Arc<ModelRequest>>,
}

impl RequestSnapshot {
    pub(super) fn parsed(&self) -> Arc<ModelRequest> {
        self.edited.clone().unwrap_or_else(|| self.original.parsed())
    }
}

/// The edits as a recorded JSON Patch; `None` without edits.
pub(super) fn patch(edited: Option<&Arc<ModelRequest>>) -> Option<ChunkedBody> {
    let edited = edited.filter(|edited| edited.is_dirty())?;
    edited.to_patch().ok().map(|patch| ChunkedBody::new(Bytes::from(patch)))
}
