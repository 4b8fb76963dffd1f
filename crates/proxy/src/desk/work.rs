//! A request in sections, and what was made of it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use sayso_gate::CutBody;
use sayso_review::{RequestId, SavedEdits as SavedOutcome};
use sayso_wire::{Head, ModelRequest};

/// A request as it came. Its sections are made when somebody looks: those of a thousand requests that nobody looks at cost too much.
#[derive(Debug)]
pub(super) struct Original {
    request: RequestId,
    head: Head,
    pub(super) body: Arc<[u8]>,
    sections: OnceLock<Arc<ModelRequest>>,
}

impl Original {
    pub(super) fn new(request: RequestId, head: Head, body: Arc<[u8]>) -> Arc<Self> {
        Arc::new(Self { request, head, body, sections: OnceLock::new() })
    }

    fn sections(&self) -> Arc<ModelRequest> {
        let parse = || ModelRequest::new(self.request.to_string(), self.head.clone(), Arc::clone(&self.body));
        Arc::clone(self.sections.get_or_init(|| Arc::new(parse())))
    }
}

/// What was made of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    /// With all edits; `None` as long as it is as it came.
    pub(super) edited: Option<Arc<ModelRequest>>,
    /// With those saved edits alone that were applied when it came.
    pub(super) laid: Option<Arc<ModelRequest>>,
    /// What became of saved edits.
    pub(super) saved: SavedOutcome,
    /// Why it would be refused with those, as long as nobody looks at it.
    pub(super) refused: Option<String>,
    /// Why what was made of it before could not be made again.
    pub(super) unmade: Option<String>,
}

impl Work {
    pub(super) fn is_edited(&self) -> bool {
        self.edited.as_ref().is_some_and(|edited| edited.is_dirty())
    }

    /// The request with its edits, if there are any.
    pub(super) fn dirty(&self) -> Option<&Arc<ModelRequest>> {
        self.edited.as_ref().filter(|edited| edited.is_dirty())
    }
}

/// A request as it is now, for somebody to look at without anybody waiting for them.
#[derive(Clone, Debug)]
pub(super) struct Current {
    pub(super) original: Arc<Original>,
    pub(super) edited: Option<Arc<ModelRequest>>,
}

impl Current {
    pub(super) fn sections(&self) -> Arc<ModelRequest> {
        self.edited.clone().unwrap_or_else(|| self.original.sections())
    }
}

/// What was edited in a request, as it is recorded.
pub(super) fn patch(edited: Option<&Arc<ModelRequest>>) -> Option<CutBody> {
    let edited = edited.filter(|edited| edited.is_dirty())?;
    edited.to_patch().ok().map(|patch| CutBody::new(Bytes::from(patch)))
}
