//! The queue of the recorder thread: entries to write, and deferred jobs that produce entries.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sayso_gate::RequestEntry;
use sayso_review::RequestId;
use tokio::sync::OwnedSemaphorePermit;

use crate::lock;

/// Longest delay of a batched entry.
const BATCH_INTERVAL: Duration = Duration::from_millis(20);
/// Empty intervals before the thread sleeps until it is notified: one second of polling.
const MAX_IDLE_INTERVALS: u32 = 50;
/// Messages in one batch.
const MAX_BATCH_MESSAGES: usize = 512;
/// Kilobytes of bodies that trigger a batch. Soon after, the bytes are still in the cache and their memory can be reused.
const FLUSH_KILOBYTES: usize = 2 << 10;
/// Bytes of deferred jobs. Beyond that, the forwarding thread runs the job inline.
const MAX_DEFERRED_BYTES: usize = 4 << 20;
/// Bytes of deferred jobs that justify a wake-up when a response starts. Fewer wait for the next interval.
const BACKLOG_BYTES: usize = MAX_DEFERRED_BYTES / 2;

/// Urgency of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Written at once: a surface displays it.
    Immediate,
    /// Written with the next batch.
    Batched,
}

type BuildEntries = Box<dyn FnOnce() -> Vec<RequestEntry> + Send>;

pub(super) enum Message {
    Entry(Box<RequestEntry>),
    Build {
        request: RequestId,
        build: BuildEntries,
        budget: Option<OwnedSemaphorePermit>,
    },
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

/// Messages for the recorder thread. Producers notify the thread as rarely as possible: a wake-up costs more than a push.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    messages: Vec<Message>,
    /// Budget of the queued messages, in KiB.
    kilobytes: usize,
    /// `true` if the next batch is due at once.
    flush: bool,
    deferred: Vec<Arc<dyn Deferred>>,
    deferred_bytes: usize,
    /// `true` if the deferred jobs are due at once.
    drain: bool,
    thread: ThreadState,
    /// No more messages follow.
    closed: bool,
}

impl QueueState {
    fn has_backlog(&self) -> bool {
        self.deferred_bytes >= BACKLOG_BYTES && !self.drain
    }

    fn take_deferred(&mut self) -> Vec<Arc<dyn Deferred>> {
        self.deferred_bytes = 0;
        std::mem::take(&mut self.deferred)
    }
}

/// Runs a job and drops it; the drop itself may push entries. A panic does not affect the jobs after it.
fn run_deferred(job: Arc<dyn Deferred>) {
    let request = job.request();
    if catch_unwind(AssertUnwindSafe(move || job.run())).is_err() {
        tracing::error!(request, "comparing a request body with its base panicked");
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThreadState {
    /// Writes a batch, or polls the queue at each interval.
    #[default]
    Polling,
    /// Waits for a notification.
    Sleeping,
    /// Ended. No more entries are written.
    Ended,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        lock(&self.state)
    }

    pub(super) fn push(&self, message: Message, flush: Flush) {
        let mut state = self.lock();
        if state.thread == ThreadState::Ended {
            return;
        }
        let sleeping = std::mem::take(&mut state.thread) == ThreadState::Sleeping;
        if let Message::Build { budget: Some(budget), .. } = &message {
            state.kilobytes += budget.num_permits();
        }
        state.messages.push(message);
        let full = state.messages.len() >= MAX_BATCH_MESSAGES || state.kilobytes >= FLUSH_KILOBYTES;
        let due = !state.flush && (flush == Flush::Immediate || full);
        state.flush |= due;
        drop(state);
        if sleeping || due {
            self.changed.notify_one();
        }
    }

    /// Schedules a job. Returns `false` if it does not fit.
    pub(super) fn defer(&self, job: Arc<dyn Deferred>) -> bool {
        let size = job.size();
        let mut state = self.lock();
        let fits = state.deferred.is_empty() || state.deferred_bytes.saturating_add(size) <= MAX_DEFERRED_BYTES;
        let accepted = fits && state.thread != ThreadState::Ended && !state.closed;
        if accepted {
            state.deferred.push(job);
            state.deferred_bytes = state.deferred_bytes.saturating_add(size);
            if std::mem::take(&mut state.thread) == ThreadState::Sleeping {
                drop(state);
                self.changed.notify_one();
            }
        }
        accepted
    }

    /// `true` if enough jobs are deferred to justify a wake-up.
    pub(super) fn has_backlog(&self) -> bool {
        self.lock().has_backlog()
    }

    /// Runs the deferred jobs now, if they justify a wake-up.
    pub(super) fn drain_now(&self) {
        let mut state = self.lock();
        if state.has_backlog() {
            state.drain = true;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Returns the next batch, after at most one interval; `None` once the queue is closed and empty.
    pub(super) fn next(&self) -> Option<Vec<Message>> {
        let not_due = |state: &mut QueueState| !state.flush && !state.drain && !state.closed;
        let mut state = self.lock();
        let (mut idle_intervals, mut until) = (0, Instant::now() + BATCH_INTERVAL);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let waited = self.changed.wait_timeout_while(state, left, not_due);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            // A flush includes the entries of all jobs deferred before it.
            let due = state.flush || state.closed || Instant::now() >= until;
            let deferred = state.take_deferred();
            state.drain = false;
            if !deferred.is_empty() {
                // Jobs push their entries to this queue, so they run without the lock.
                drop(state);
                deferred.into_iter().for_each(run_deferred);
                state = self.lock();
                idle_intervals = 0;
            }
            if due && (!state.messages.is_empty() || state.closed) {
                break;
            }
            if Instant::now() < until {
                continue;
            }
            until = Instant::now() + BATCH_INTERVAL;
            idle_intervals += 1;
            if idle_intervals >= MAX_IDLE_INTERVALS && state.messages.is_empty() && state.deferred.is_empty() {
                state = self.sleep(state);
                until = Instant::now() + BATCH_INTERVAL;
            }
        }
        // A batch is written as a whole or lost as a whole, so a long queue is written in several. A flush waits for everything.
        let flushes = state.messages.iter().any(|message| matches!(message, Message::Flush(_)));
        let batch = if flushes { state.messages.len() } else { state.messages.len().min(MAX_BATCH_MESSAGES) };
        let rest = state.messages.split_off(batch);
        (state.flush, state.kilobytes) = (!rest.is_empty(), 0);
        let messages = std::mem::replace(&mut state.messages, rest);
        (!messages.is_empty()).then_some(messages)
    }

    /// Waits for the next message without polling.
    fn sleep<'q>(&'q self, mut state: MutexGuard<'q, QueueState>) -> MutexGuard<'q, QueueState> {
        state.thread = ThreadState::Sleeping;
        let idle = |state: &mut QueueState| state.thread == ThreadState::Sleeping && !state.closed;
        self.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }
}

/// Held by the recorder thread. Its drop marks the thread as ended, also after a panic, so that no caller waits for it forever.
pub(super) struct ThreadGuard(pub(super) Arc<Queue>);

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.thread = ThreadState::Ended;
        let lost = (std::mem::take(&mut state.messages), state.take_deferred());
        // Dropping a deferred job may push to this queue, which takes the lock.
        drop(state);
        drop(lost);
    }
}

/// A job for the recorder thread.
pub(crate) trait Deferred: Send + Sync {
    fn request(&self) -> RequestId;

    /// Bytes that the job processes, as far as known.
    fn size(&self) -> usize;

    /// Processes the bytes received so far, and records the body if it is complete.
    fn run(&self);
}

#[cfg(test)]
mod tests;
