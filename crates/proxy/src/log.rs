//! What is recorded of requests, on a thread of its own and in batches: traffic that passes does not wait for a disk.

mod queue;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sayso_gate::{Gate, RequestEntry};
use sayso_review::{Event, RequestEvent, RequestId, RequestStep};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::desk::ExactValues;
pub(crate) use queue::{Haste, PutOff};
use queue::{Message, Queue, Recorder};

/// Bytes that may wait to be recorded; whoever comes with more waits.
const ROOM: usize = 64 << 20;
/// The unit in which room is counted.
const UNIT: usize = 1 << 10;
/// How long a request waits for others to be recorded.
const PATIENCE: Duration = Duration::from_millis(250);

/// How much room a body takes: no more than an eighth of all, so that none has to wait until there is nothing else.
fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.min(ROOM / 8).div_ceil(UNIT)).unwrap_or(0)
}

/// Records what happens to requests, in the order in which it is told.
pub(crate) struct Log {
    queue: Arc<Queue>,
    /// The values that are masked in what is recorded.
    pub(crate) exact: Arc<ExactValues>,
    room: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("room", &self.room).finish_non_exhaustive()
    }
}

impl Log {
    pub(crate) fn start(gate: Gate) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let recorder = Recorder(Arc::clone(&queue));
        let exact = Arc::new(ExactValues::default());
        let kept = Arc::clone(&exact);
        let record = move || {
            give_way();
            while let Some(messages) = recorder.0.next() {
                record(&gate, &kept, messages);
            }
        };
        let thread = std::thread::Builder::new().name("requests".to_owned()).spawn(record)?;
        let room = Arc::new(Semaphore::new(ROOM / UNIT));
        Ok(Self { queue, exact, room, thread: Mutex::new(Some(thread)) })
    }

    /// Waits, though not for long, until there is room for a body. It takes none before it is there: one that comes slowly stops
    /// nobody else.
    pub(crate) async fn wait_for_room(&self, bytes: usize) {
        if self.room.available_permits() >= units(bytes) as usize {
            return;
        }
        let _ = tokio::time::timeout(PATIENCE, self.room.acquire_many(units(bytes))).await;
    }

    /// Room for a body that is there; `None` where there is not enough: then all is recorded but the body.
    pub(crate) fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_many_owned(units(bytes)).ok()
    }

    /// Records a step of a request.
    pub(crate) fn step(&self, request: RequestId, step: RequestStep, haste: Haste) {
        self.event(Event::Request(RequestEvent { request, step }), haste);
    }

    /// Records what is yet to be worked out, which is done on the thread that records.
    pub(crate) fn later(
        &self,
        haste: Haste,
        room: Option<OwnedSemaphorePermit>,
        work: impl FnOnce() -> Vec<RequestEntry> + Send + 'static,
    ) {
        self.queue.push(Message::Later { work: Box::new(work), room }, haste);
    }

    /// Records something else.
    pub(crate) fn event(&self, event: Event, haste: Haste) {
        self.queue.push(Message::Entry(Box::new(RequestEntry { event, bodies: Vec::new() })), haste);
    }

    /// Has something looked at and told on the thread that records, when there is time or before long; whether it will be.
    pub(crate) fn put_off(&self, what: Arc<dyn PutOff>) -> bool {
        self.queue.put_off(what)
    }

    /// Whether somebody is to be told when there is time.
    pub(crate) fn wants_time(&self) -> bool {
        self.queue.wants_time()
    }

    /// There is time for what was put off.
    pub(crate) fn has_time(&self) {
        self.queue.has_time();
    }

    /// Waits until all that happened so far is recorded.
    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        self.queue.push(Message::Flush(done), Haste::Now);
        let _ = wait.recv();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // What was told is recorded before we go; nobody waits for themselves.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

fn record(gate: &Gate, exact: &ExactValues, messages: Vec<Message>) {
    let (mut entries, mut taken, mut waiting) = (Vec::with_capacity(messages.len() * 2), Vec::new(), Vec::new());
    for message in messages {
        match message {
            Message::Entry(entry) => entries.push(*entry),
            Message::Later { work, room } => {
                // One that cannot be worked out is lost; those after it are not.
                if let Ok(worked_out) = catch_unwind(AssertUnwindSafe(work)) {
                    entries.extend(worked_out);
                } else {
                    tracing::error!("what happened to a request could not be worked out");
                }
                taken.extend(room);
            }
            Message::Flush(done) => waiting.push(done),
        }
    }
    for RequestEntry { event, bodies } in &entries {
        for (request, body) in bodies.iter().filter_map(|body| Some((event.request()?, body))) {
            exact.keep(request, body);
        }
    }
    if !entries.is_empty()
        && let Err(error) = gate.record_requests(&entries, now())
    {
        // Requests go on: that they cannot be recorded is no reason to stop an agent in the middle of its work.
        tracing::error!(%error, lost = entries.len(), "what happened to requests could not be recorded");
    }
    drop(taken);
    for done in waiting {
        // Whoever asked may have gone.
        let _: Result<(), _> = done.send(());
    }
}

/// Has the other threads go first: what passes does not wait for what is recorded of it.
fn give_way() {
    // Elsewhere than on Linux, that would be said of all threads.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 10);
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
