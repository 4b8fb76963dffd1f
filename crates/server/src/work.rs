//! Counters of expensive work, so that a test can check amounts where a time would depend on the machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::host::Host;

/// Work that an engine has done since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkCounts {
    /// Events that were folded into the inbox.
    pub inbox_events: u64,
    /// Messages about the inbox that were encoded.
    pub inbox_messages: u64,
    /// Inbox lists in memory.
    pub inbox_lists: u64,
    /// Comparisons of two or three versions of a file.
    pub comparisons: u64,
    /// Plans of undo, redo and restore, and net changes of turns, that were computed for diffs.
    pub diff_plans: u64,
    /// Requests and responses that were decoded for conversations.
    pub decoded_bodies: u64,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct WorkCounter(AtomicU64);

impl WorkCounter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one engine.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) inbox_events: WorkCounter,
    pub(crate) inbox_messages: WorkCounter,
    pub(crate) comparisons: WorkCounter,
    pub(crate) diff_plans: WorkCounter,
    pub(crate) decoded_bodies: WorkCounter,
}

/// Reads the counters of a running server.
#[derive(Clone, Debug)]
pub struct WorkMonitor(pub(crate) Arc<Host>);

impl WorkMonitor {
    pub fn counts(&self) -> WorkCounts {
        let work = &self.0.work;
        WorkCounts {
            inbox_events: work.inbox_events.get(),
            inbox_messages: work.inbox_messages.get(),
            inbox_lists: self.0.inbox.live_lists(),
            comparisons: work.comparisons.get(),
            diff_plans: work.diff_plans.get(),
            decoded_bodies: work.decoded_bodies.get(),
        }
    }
}
