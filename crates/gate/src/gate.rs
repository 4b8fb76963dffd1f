//! [`Gate`]: the engine behind one lock, shared by all clients of the process.
//!
//! - `gate/commands.rs`: what agents and people ask for, one method per command.
//! - `gate/maintenance.rs`: rule changes, abandoned changes and the collection of old contents.

mod commands;
mod maintenance;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sayso_journal::Reader;
use sayso_review::{ChangeId, RequestId, WsPath};

pub use self::commands::{Reversal, VerdictResult};
pub use self::maintenance::MaintenanceReport;
use crate::editor::{BufferUpdate, Editors};
use crate::engine::Engine;
use crate::error::GateError;
use crate::feed::{Feed, Subscription};
use crate::history::History;
use crate::notify::{Notification, NotificationSubject, Notify};
use crate::pending_change::PendingChange;
use crate::pending_index::TickReport;
use crate::rules::Rules;

/// Shared handle to the engine of one workspace. Clones refer to the same engine.
#[derive(Clone, Debug)]
pub struct Gate {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    feed: Arc<Feed>,
    /// Journal connection for reads, so that they never wait for the engine's lock. Opened on first use.
    reader: Mutex<Option<Reader>>,
    surfaces: AtomicUsize,
    /// Number of paused requests to models.
    paused_requests: AtomicUsize,
    notifier: Box<dyn Notify>,
    editors: Arc<dyn Editors>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine: Engine,
    pub(crate) rules: Rules,
}

/// Registration of an attached surface, which ends on drop. While one exists, pending changes trigger no notification.
#[derive(Debug)]
pub struct SurfaceGuard {
    shared: Arc<Shared>,
}

impl Drop for SurfaceGuard {
    fn drop(&mut self) {
        self.shared.surfaces.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Gate {
    /// Shares an engine. Snapshots that the engine before it took from model answers, and that no tool used, are freed.
    pub fn new(mut engine: Engine, rules: Rules, notifier: Box<dyn Notify>, now: i64) -> Result<Self, GateError> {
        engine.free_answer_orphans(now)?;
        engine.settle_lost_orders(now)?;
        let editors = Arc::clone(&engine.editors);
        let feed = Arc::clone(&engine.feed);
        let shared = Shared {
            state: Mutex::new(State { engine, rules }),
            feed,
            reader: Mutex::new(None),
            surfaces: AtomicUsize::new(0),
            paused_requests: AtomicUsize::new(0),
            notifier,
            editors,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves no half-written state: the journal, which is the truth, takes a batch whole or not at all.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn editors(&self) -> &dyn Editors {
        &*self.shared.editors
    }

    /// Returns the engine with the unsaved text of files as it is now. Editors are asked while the engine's lock is free, and only
    /// about files with unsaved changes.
    pub(crate) fn state_with_buffers(
        &self,
        files: impl FnOnce(&mut Engine) -> Result<BTreeSet<WsPath>, GateError>,
    ) -> Result<MutexGuard<'_, State>, GateError> {
        let dirty = self.editors().dirty_files();
        let mut state = self.state();
        if dirty.is_empty() {
            if !state.engine.buffers.is_empty() {
                state.engine.buffers.update(BufferUpdate::default());
            }
            return Ok(state);
        }
        let asked: BTreeSet<WsPath> = files(&mut state.engine)?.intersection(&dirty).cloned().collect();
        if !asked.is_empty() {
            drop(state);
            let reads = self.editors().read_buffers(&asked);
            state = self.state();
            state.engine.buffers.update(BufferUpdate { dirty, reads });
        }
        Ok(state)
    }

    /// Reads the journal without waiting for the engine.
    pub fn read<T>(&self, read: impl FnOnce(History<'_>) -> Result<T, GateError>) -> Result<T, GateError> {
        // A panic cannot corrupt a read-only connection, so a poisoned lock is fine.
        let mut reader = self.shared.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = match &mut *reader {
            Some(reader) => reader,
            none => none.insert(Reader::open(self.shared.feed.folder())?),
        };
        read(History::with_cache(reader, &self.shared.feed))
    }

    /// Returns the number of attached surfaces.
    pub fn surfaces(&self) -> usize {
        self.shared.surfaces.load(Ordering::Acquire)
    }

    /// Returns the number of the last event.
    pub fn last_event(&self) -> u64 {
        self.shared.feed.last()
    }

    /// Ends the stream. Each subscription ends once it has delivered all events.
    pub fn end_stream(&self) {
        self.shared.feed.end();
    }

    /// Subscribes to the events after the one with number `after`. Never waits for the engine.
    pub fn subscribe(&self, after: u64) -> Subscription {
        Subscription::new(Arc::clone(&self.shared.feed), after)
    }

    /// Attaches a surface until the guard is dropped.
    pub fn attach(&self) -> SurfaceGuard {
        self.shared.surfaces.fetch_add(1, Ordering::AcqRel);
        SurfaceGuard { shared: Arc::clone(&self.shared) }
    }

    /// Returns the journal file that another program removed or replaced, if any. The engine can then write no more.
    pub fn displaced(&self) -> Option<std::path::PathBuf> {
        self.state().engine.journal.displaced().cloned()
    }

    /// `true` while a permitted command or writing tool has not ended, or if the journal cannot tell.
    pub fn has_running_writer(&self) -> bool {
        self.state().engine.has_running_writer()
    }

    /// Previews a pending change again if its files changed.
    pub fn refresh_if_stale(&self, change: ChangeId, now: i64) -> Result<(), GateError> {
        let mut state = self.state_with_buffers(|engine| engine.paths_of_pending(change))?;
        state.engine.refresh_if_stale(change, now).map(drop)
    }

    /// Denies changes whose deadline passed, and previews changes again whose files changed.
    pub fn tick(&self, now: i64) -> Result<TickReport, GateError> {
        self.state_with_buffers(Engine::pending_paths)?.engine.tick(now)
    }

    /// Returns the earliest deadline of the pending changes, in milliseconds since 1970.
    pub fn next_deadline(&self) -> Result<Option<i64>, GateError> {
        self.state().engine.next_deadline()
    }

    /// Returns the pending changes, oldest first.
    pub fn pending_changes(&self) -> Result<Vec<ChangeId>, GateError> {
        self.state().engine.pending_changes()
    }

    /// Returns a pending change with its preview.
    pub fn pending_change(&self, change: ChangeId) -> Result<PendingChange, GateError> {
        self.state().engine.pending_change(change)
    }

    /// Ends the stream. Returns the engine if this is the last handle to it.
    pub fn close(self) -> Option<Engine> {
        self.shared.feed.end();
        let shared = Arc::into_inner(self.shared)?;
        Some(shared.state.into_inner().unwrap_or_else(PoisonError::into_inner).engine)
    }

    /// Sets the number of paused requests to models, which notifications include.
    pub fn set_paused_requests(&self, count: usize) {
        self.shared.paused_requests.store(count, Ordering::Release);
    }

    /// Notifies the user of a paused request, unless a surface is attached.
    pub fn notify_request(&self, request: RequestId) {
        if self.surfaces() > 0 {
            return;
        }
        // The request is worth a notification even if the changes cannot be counted.
        let changes = self.state().engine.pending_count().unwrap_or_default();
        let requests = self.shared.paused_requests.load(Ordering::Acquire).max(1);
        let subject = NotificationSubject::Request(request);
        self.shared.notifier.notify(&Notification { changes, requests, subject });
    }

    /// Notifies the user of a pending change, unless a surface is attached. Releases the engine's lock first.
    pub(crate) fn notify_pending(
        &self,
        mut state: MutexGuard<'_, State>,
        pending: Option<ChangeId>,
    ) -> Result<(), GateError> {
        if let (Some(change), 0) = (pending, self.surfaces()) {
            let changes = state.engine.pending_count()?;
            drop(state);
            let requests = self.shared.paused_requests.load(Ordering::Acquire);
            let subject = NotificationSubject::Change(change);
            self.shared.notifier.notify(&Notification { changes, requests, subject });
        }
        Ok(())
    }
}
