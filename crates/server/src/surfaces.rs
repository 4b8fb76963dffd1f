//! Surfaces that are attached to the engine, as their peers are shown them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sayso_api::proto::{self, AttachedSurface};
use sayso_review::Surface;
use tokio::sync::watch;

use crate::host::now;

/// The attached surfaces of one engine, in the order of attachment.
#[derive(Debug, Default)]
pub(crate) struct Surfaces {
    attached: watch::Sender<Arc<Vec<AttachedSurface>>>,
    last_id: AtomicU64,
}

/// An attachment, which ends on drop.
#[derive(Debug)]
pub(crate) struct SurfaceAttachment {
    surfaces: Arc<Surfaces>,
    id: u64,
}

impl Surfaces {
    pub(crate) fn list(&self) -> Vec<AttachedSurface> {
        self.attached.borrow().to_vec()
    }

    pub(crate) fn attach(self: &Arc<Self>, surface: &Surface) -> SurfaceAttachment {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let surface = Some(proto::Surface::from(surface)).into();
        let attached = AttachedSurface { id, surface, since_ms: now(), ..Default::default() };
        self.attached.send_modify(|list| Arc::make_mut(list).push(attached));
        SurfaceAttachment { surfaces: Arc::clone(self), id }
    }

    /// Follows the surfaces from the present ones on.
    pub(crate) fn follow(&self) -> FollowedSurfaces {
        let mut receiver = self.attached.subscribe();
        let seen = Arc::clone(&receiver.borrow_and_update());
        FollowedSurfaces { receiver, seen }
    }
}

impl Drop for SurfaceAttachment {
    fn drop(&mut self) {
        self.surfaces.attached.send_modify(|list| Arc::make_mut(list).retain(|attached| attached.id != self.id));
    }
}

/// A change of the attached surfaces.
#[derive(Clone, Debug)]
pub(crate) enum SurfaceChange {
    Attached(AttachedSurface),
    Detached(AttachedSurface),
}

/// Position of one watcher in the changes of the attached surfaces.
#[derive(Debug)]
pub(crate) struct FollowedSurfaces {
    receiver: watch::Receiver<Arc<Vec<AttachedSurface>>>,
    /// Surfaces that the watcher knows.
    seen: Arc<Vec<AttachedSurface>>,
}

impl FollowedSurfaces {
    /// Waits for the next changes. Cancel-safe. Surfaces that were attached only in between are left out.
    pub(crate) async fn next(&mut self) -> Vec<SurfaceChange> {
        if self.receiver.changed().await.is_err() {
            // The engine is gone; the stream of events ends by itself.
            return std::future::pending().await;
        }
        let current = Arc::clone(&self.receiver.borrow_and_update());
        let is_in = |list: &[AttachedSurface], id| list.iter().any(|other| other.id == id);
        let detached = self.seen.iter().filter(|known| !is_in(&current, known.id)).cloned();
        let attached = current.iter().filter(|new| !is_in(&self.seen, new.id)).cloned();
        let changes = detached.map(SurfaceChange::Detached).chain(attached.map(SurfaceChange::Attached)).collect();
        self.seen = current;
        changes
    }
}
