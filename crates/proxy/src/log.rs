//! What is recorded of requests, on a thread of its own and in batches: traffic that passes does not wait for a disk.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sayso_gate::{Gate, RequestEntry};
use sayso_review::{Event, RequestEvent, RequestId, RequestStep};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long what passes may wait for others to be recorded with.
const TOGETHER: Duration = Duration::from_millis(20);
/// And how many at most.
const MOST: usize = 512;
/// Bytes that may wait to be recorded; whoever comes with more waits.
const ROOM: usize = 64 << 20;
/// The unit in which room is counted.
const UNIT: usize = 1 << 10;

/// When something is to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// At once: a person waits for it.
    Now,
    /// Soon, with others.
    Soon,
}

type Work = Box<dyn FnOnce() -> Vec<RequestEntry> + Send>;

enum Message {
    Entry { entry: Box<RequestEntry>, haste: Haste },
    Later { work: Work, haste: Haste, room: Option<OwnedSemaphorePermit> },
    Flush(SyncSender<()>),
}

/// Records what happens to requests, in the order in which it is told.
#[derive(Debug)]
pub(crate) struct Log {
    sender: Mutex<Option<Sender<Message>>>,
    room: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Log {
    pub(crate) fn start(gate: Gate) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("requests".to_owned()).spawn(move || record(&gate, &receiver))?;
        Ok(Self {
            sender: Mutex::new(Some(sender)),
            room: Arc::new(Semaphore::new(ROOM / UNIT)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Waits until there is room for a body.
    pub(crate) async fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.min(ROOM) / UNIT).unwrap_or(0);
        if units == 0 {
            return None;
        }
        Arc::clone(&self.room).acquire_many_owned(units).await.ok()
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
        self.send(Message::Later { work: Box::new(work), haste, room });
    }

    /// Records something else.
    pub(crate) fn event(&self, event: Event, haste: Haste) {
        self.send(Message::Entry { entry: Box::new(RequestEntry { event, body: None }), haste });
    }

    fn send(&self, message: Message) {
        if let Some(sender) = &*self.sender.lock().unwrap_or_else(PoisonError::into_inner) {
            // The thread ends when the last sender is gone, and not before.
            let _ = sender.send(message);
        }
    }

    /// Waits until all that was told so far is recorded.
    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        self.send(Message::Flush(done));
        let _ = wait.recv();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        drop(self.sender.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // What was told is recorded before we go; nobody waits for themselves.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

fn record(gate: &Gate, receiver: &Receiver<Message>) {
    let mut over = false;
    while !over {
        let Ok(first) = receiver.recv() else { return };
        let (mut batch, mut waiting) = (Entries::default(), Vec::new());
        let mut hurry = take(first, &mut batch, &mut waiting);
        let until = Instant::now() + TOGETHER;
        while batch.entries.len() < MOST {
            let wait = if hurry { Duration::ZERO } else { until.saturating_duration_since(Instant::now()) };
            match receiver.recv_timeout(wait) {
                Ok(message) => hurry |= take(message, &mut batch, &mut waiting),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    over = true;
                    break;
                }
            }
        }
        write(gate, batch);
        for done in waiting {
            // Whoever asked may have gone.
            let _: Result<(), _> = done.send(());
        }
    }
}

/// What is recorded together, and the room that it takes until then.
#[derive(Default)]
struct Entries {
    entries: Vec<RequestEntry>,
    room: Vec<OwnedSemaphorePermit>,
}

/// Puts a message where it belongs, and says whether there is haste.
fn take(message: Message, batch: &mut Entries, waiting: &mut Vec<SyncSender<()>>) -> bool {
    match message {
        Message::Entry { entry, haste } => {
            batch.entries.push(*entry);
            haste == Haste::Now
        }
        Message::Later { work, haste, room } => {
            batch.entries.extend(work());
            batch.room.extend(room);
            haste == Haste::Now
        }
        Message::Flush(done) => {
            waiting.push(done);
            true
        }
    }
}

fn write(gate: &Gate, Entries { entries, room }: Entries) {
    if entries.is_empty() {
        return;
    }
    if let Err(error) = gate.record_requests(&entries, now()) {
        // Requests go on: that they cannot be recorded is no reason to stop an agent in the middle of its work.
        tracing::error!(%error, lost = entries.len(), "what happened to requests could not be recorded");
    }
    drop(room);
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
