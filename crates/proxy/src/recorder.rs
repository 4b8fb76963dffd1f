//! Journal entries of requests, written in batches by a thread of their own. Forwarded traffic never waits for a disk.

mod barrier;
mod queue;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sayso_gate::{Gate, RequestEntry};
use sayso_review::{Event, RequestEvent, RequestId, RequestStep};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::bodies::ExactValues;
use crate::lock;
pub(crate) use barrier::RecordBarrier;
pub(crate) use queue::{Deferred, Flush};
use queue::{Message, Queue, ThreadGuard};

/// Bytes of bodies that may be queued. A request whose body exceeds the rest is recorded without its body.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// Bytes per semaphore permit; a `u32` of permits must cover the whole budget.
const BYTES_PER_PERMIT: usize = 1 << 10;
/// Longest delay of a request while the queue is full.
const BUDGET_TIMEOUT: Duration = Duration::from_millis(250);

/// Permits for a body: at most an eighth of the budget, so that a large body does not wait for an empty queue.
fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.min(MAX_QUEUED_BYTES / 8).div_ceil(BYTES_PER_PERMIT)).unwrap_or(0)
}

/// Records the steps of requests in the order in which they were pushed.
pub(crate) struct Recorder {
    queue: Arc<Queue>,
    /// Exact values of the credentials that are masked in recorded bodies.
    pub(crate) exact: Arc<ExactValues>,
    budget: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("budget", &self.budget).finish_non_exhaustive()
    }
}

impl Recorder {
    pub(crate) fn start(gate: Gate) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let guard = ThreadGuard(Arc::clone(&queue));
        let exact = Arc::new(ExactValues::default());
        let values = Arc::clone(&exact);
        let run = move || {
            lower_priority();
            while let Some(messages) = guard.0.next() {
                record(&gate, &values, messages);
            }
        };
        let thread = std::thread::Builder::new().name("requests".to_owned()).spawn(run)?;
        let budget = Arc::new(Semaphore::new(MAX_QUEUED_BYTES / BYTES_PER_PERMIT));
        Ok(Self { queue, exact, budget, thread: Mutex::new(Some(thread)) })
    }

    /// Waits until the budget covers a body, but no longer than [`BUDGET_TIMEOUT`]. The permits are not kept: a body that arrives
    /// slowly would block the bodies of other requests.
    pub(crate) async fn wait_for_budget(&self, bytes: usize) {
        if self.budget.available_permits() >= permits(bytes) as usize {
            return;
        }
        let _ = tokio::time::timeout(BUDGET_TIMEOUT, self.budget.acquire_many(permits(bytes))).await;
    }

    /// Takes the permits for a received body. Returns `None` if the budget is spent; the request is then recorded without its body.
    pub(crate) fn budget(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.budget).try_acquire_many_owned(permits(bytes)).ok()
    }

    pub(crate) fn step(&self, request: RequestId, step: RequestStep, flush: Flush) {
        self.event(Event::Request(RequestEvent { request, step }), flush);
    }

    pub(crate) fn event(&self, event: Event, flush: Flush) {
        self.queue.push(Message::Entry(Box::new(RequestEntry { event, bodies: Vec::new() })), flush);
    }

    /// Queues entries that the recorder thread builds itself: hashing a body takes longer than forwarding it. The budget is returned
    /// when the entries are written.
    pub(crate) fn build_later(
        &self,
        request: RequestId,
        flush: Flush,
        budget: Option<OwnedSemaphorePermit>,
        build: impl FnOnce() -> Vec<RequestEntry> + Send + 'static,
    ) {
        self.queue.push(Message::Build { request, build: Box::new(build), budget }, flush);
    }

    /// Schedules a job on the recorder thread. Returns `false` if the queue is full; the caller then runs the job itself.
    pub(crate) fn defer(&self, job: Arc<dyn Deferred>) -> bool {
        self.queue.defer(job)
    }

    /// `true` if enough jobs are deferred to justify a wake-up.
    pub(crate) fn has_backlog(&self) -> bool {
        self.queue.has_backlog()
    }

    /// Wakes the recorder thread if there is a backlog.
    pub(crate) fn drain_now(&self) {
        self.queue.drain_now();
    }

    /// Blocks until all entries pushed so far are written.
    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        self.queue.push(Message::Flush(done), Flush::Immediate);
        let _ = wait.recv();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = lock(&self.thread).take() {
            // The recorder thread itself may drop the last reference, and must not join itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

fn record(gate: &Gate, exact: &ExactValues, messages: Vec<Message>) {
    let (mut entries, mut permits, mut flushes) = (Vec::with_capacity(messages.len() * 2), Vec::new(), Vec::new());
    for message in messages {
        match message {
            Message::Entry(entry) => entries.push(*entry),
            Message::Build { request, build, budget } => {
                // A panic loses the entries of one request; the batch is written without them.
                if let Ok(built) = catch_unwind(AssertUnwindSafe(build)) {
                    entries.extend(built);
                } else {
                    tracing::error!(request, "building a request's journal entry panicked");
                }
                permits.extend(budget);
            }
            Message::Flush(done) => flushes.push(done),
        }
    }
    for RequestEntry { event, bodies } in &entries {
        for (request, body) in bodies.iter().filter_map(|body| Some((event.request()?, body))) {
            exact.remember(request, body);
        }
    }
    if !entries.is_empty()
        && let Err(error) = gate.record_requests(&entries, now())
    {
        // Requests are forwarded all the same: a full disk must not stop an agent in the middle of its work.
        let requests: Vec<RequestId> = entries.iter().filter_map(|entry| entry.event.request()).collect();
        tracing::error!(%error, ?requests, lost = entries.len(), "cannot write journal entries of requests");
    }
    drop(permits);
    for done in flushes {
        // The caller of `flush` may have ended.
        let _: Result<(), _> = done.send(());
    }
}

/// Lets the forwarding threads run first.
fn lower_priority() {
    // On Linux, priority 0 means the calling thread; on other systems it would be the process.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 10);
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
