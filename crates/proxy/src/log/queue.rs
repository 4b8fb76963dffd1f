//! What waits to be recorded, and what waits to be looked at before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sayso_gate::RequestEntry;
use tokio::sync::OwnedSemaphorePermit;

/// How long what passes may wait for others to be recorded with.
const TOGETHER: Duration = Duration::from_millis(20);
/// How often the thread looks for itself whether there is more, before it has to be woken: for a second.
const LOOKS: u32 = 50;
/// And how many at most.
const MOST: usize = 512;
/// Kilobytes of bodies that are recorded at once: soon after, they are still near at hand, and their memory serves the next ones.
const MUCH: usize = 2 << 10;
/// Bytes that may wait to be looked at. With more of them under way there is no better time than now.
const PUT_OFF: usize = 4 << 20;
/// How many of them are worth waking anybody for: the thread looks by itself before long, and at many together for less.
const WORTH_WAKING: usize = PUT_OFF / 2;

/// When something is to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// At once: a person waits for it.
    Now,
    /// Soon, with others.
    Soon,
}

type Work = Box<dyn FnOnce() -> Vec<RequestEntry> + Send>;

pub(super) enum Message {
    Entry(Box<RequestEntry>),
    Later { work: Work, room: Option<OwnedSemaphorePermit> },
    Flush(SyncSender<()>),
}

/// What waits to be recorded. Whoever adds to it wakes the thread seldom: waking somebody takes longer than all else here.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    messages: Vec<Message>,
    kilobytes: usize,
    hurry: bool,
    /// What will be told once there is time to look at it, how many bytes that is, and whether there is time now.
    put_off: Vec<Arc<dyn PutOff>>,
    put_off_bytes: usize,
    time: bool,
    thread: Thread,
    /// Nothing more is told.
    closed: bool,
}

impl Waiting {
    fn wants_time(&self) -> bool {
        self.put_off_bytes >= WORTH_WAKING && !self.time
    }

    fn take_put_off(&mut self) -> Vec<Arc<dyn PutOff>> {
        self.put_off_bytes = 0;
        std::mem::take(&mut self.put_off)
    }
}

/// Looks at what was put off, and lets go of it: that it goes may be what tells it. Should that fail, those after it are looked at all the same.
fn look_at(what: Arc<dyn PutOff>) {
    if catch_unwind(AssertUnwindSafe(move || what.now())).is_err() {
        tracing::error!("what a request was could not be looked at");
    }
}

/// The thread that records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Thread {
    /// It records, or looks for itself whether there is more.
    #[default]
    Awake,
    /// It has to be woken.
    Asleep,
    /// Nothing more is recorded.
    Gone,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that holds it leaves it half changed.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, message: Message, haste: Haste) {
        let mut waiting = self.lock();
        if waiting.thread == Thread::Gone {
            return;
        }
        let asleep = std::mem::take(&mut waiting.thread) == Thread::Asleep;
        if let Message::Later { room: Some(room), .. } = &message {
            waiting.kilobytes += room.num_permits();
        }
        waiting.messages.push(message);
        let full = waiting.messages.len() >= MOST || waiting.kilobytes >= MUCH;
        let now = !waiting.hurry && (haste == Haste::Now || full);
        waiting.hurry |= now;
        drop(waiting);
        if asleep || now {
            self.changed.notify_one();
        }
    }

    /// Takes note of what will be told soon; whether it may be.
    pub(super) fn put_off(&self, what: Arc<dyn PutOff>) -> bool {
        let size = what.size();
        let mut waiting = self.lock();
        let room = waiting.put_off.is_empty() || waiting.put_off_bytes.saturating_add(size) <= PUT_OFF;
        let may = room && waiting.thread != Thread::Gone && !waiting.closed;
        if may {
            waiting.put_off.push(what);
            waiting.put_off_bytes = waiting.put_off_bytes.saturating_add(size);
            if std::mem::take(&mut waiting.thread) == Thread::Asleep {
                drop(waiting);
                self.changed.notify_one();
            }
        }
        may
    }

    /// Whether enough was put off to be told when there is time.
    pub(super) fn wants_time(&self) -> bool {
        self.lock().wants_time()
    }

    /// There is time for what was put off.
    pub(super) fn has_time(&self) {
        let mut waiting = self.lock();
        if waiting.wants_time() {
            waiting.time = true;
            drop(waiting);
            self.changed.notify_one();
        }
    }

    /// What is to be recorded next; `None` once there is nothing any more, and will not be.
    pub(super) fn next(&self) -> Option<Vec<Message>> {
        let calm = |waiting: &mut Waiting| !waiting.hurry && !waiting.time && !waiting.closed;
        let mut waiting = self.lock();
        let (mut looks, mut until) = (0, Instant::now() + TOGETHER);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let waited = self.changed.wait_timeout_while(waiting, left, calm);
            (waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
            // Whoever is in a hurry wants all that was put off by now, too.
            let enough = waiting.hurry || waiting.closed || Instant::now() >= until;
            let put_off = waiting.take_put_off();
            waiting.time = false;
            if !put_off.is_empty() {
                // It is told to this queue.
                drop(waiting);
                put_off.into_iter().for_each(look_at);
                waiting = self.lock();
                looks = 0;
            }
            if enough && (!waiting.messages.is_empty() || waiting.closed) {
                break;
            }
            if Instant::now() < until {
                continue;
            }
            until = Instant::now() + TOGETHER;
            looks += 1;
            if looks >= LOOKS && waiting.messages.is_empty() && waiting.put_off.is_empty() {
                waiting.thread = Thread::Asleep;
                let asleep = |waiting: &mut Waiting| waiting.thread == Thread::Asleep && !waiting.closed;
                waiting = self.changed.wait_while(waiting, asleep).unwrap_or_else(PoisonError::into_inner);
                until = Instant::now() + TOGETHER;
            }
        }
        // Not all at once after a stall: a batch is written as a whole, or lost. Unless somebody waits for all of it.
        let flushes = waiting.messages.iter().any(|message| matches!(message, Message::Flush(_)));
        let rest = if flushes { waiting.messages.len() } else { waiting.messages.len().min(MOST) };
        let rest = waiting.messages.split_off(rest);
        (waiting.hurry, waiting.kilobytes) = (!rest.is_empty(), 0);
        let messages = std::mem::replace(&mut waiting.messages, rest);
        (!messages.is_empty()).then_some(messages)
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }
}

/// Whoever records. Should that end in a panic, nobody is to wait for it.
pub(super) struct Recorder(pub(super) Arc<Queue>);

impl Drop for Recorder {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.thread = Thread::Gone;
        let lost = (std::mem::take(&mut waiting.messages), waiting.take_put_off());
        // What they hold may want the lock when it goes.
        drop(waiting);
        drop(lost);
    }
}

/// Something that is to be told, and takes a while to look at.
pub(crate) trait PutOff: Send + Sync {
    /// How many bytes there are to look at, as far as that is known.
    fn size(&self) -> usize;

    /// Looks at it, and tells it if it is all there.
    fn now(&self);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use std::sync::Weak;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Something that is never all there, so that it is put off again whenever it is looked at.
    struct Slow(Weak<Queue>);

    impl PutOff for Slow {
        fn size(&self) -> usize {
            PUT_OFF
        }

        fn now(&self) {
            if let Some(queue) = self.0.upgrade() {
                assert!(queue.put_off(Arc::new(Self(Weak::clone(&self.0)))));
            }
        }
    }

    #[test]
    fn what_is_put_off_again_and_again_holds_up_no_record() {
        for haste in [Haste::Soon, Haste::Now] {
            let queue = Arc::new(Queue::default());
            assert!(queue.put_off(Arc::new(Slow(Arc::downgrade(&queue)))));
            assert!(!queue.put_off(Arc::new(Slow(Weak::new()))), "there is no room for another");
            queue.push(Message::Later { work: Box::new(Vec::new), room: None }, haste);
            assert_eq!(queue.next().map(|messages| messages.len()), Some(1));
        }
    }

    /// Something that is told when it goes, as a body of which there is no more.
    struct ToldAtTheEnd(Weak<Queue>);

    impl PutOff for ToldAtTheEnd {
        fn size(&self) -> usize {
            1
        }

        fn now(&self) {}
    }

    impl Drop for ToldAtTheEnd {
        fn drop(&mut self) {
            let queue = self.0.upgrade().unwrap();
            queue.push(Message::Later { work: Box::new(Vec::new), room: None }, Haste::Soon);
        }
    }

    #[test]
    fn what_is_told_when_it_goes_is_told_to_nobody_who_holds_the_lock() {
        let queue = Arc::new(Queue::default());
        for _ in 0..3 {
            assert!(queue.put_off(Arc::new(ToldAtTheEnd(Arc::downgrade(&queue)))));
        }
        assert_eq!(queue.next().map(|messages| messages.len()), Some(3));
    }

    /// Something of a size, and how often it was looked at.
    struct Sized(usize, AtomicUsize);

    impl PutOff for Sized {
        fn size(&self) -> usize {
            self.0
        }

        fn now(&self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn no_more_is_put_off_than_there_is_room_for_and_all_of_it_is_looked_at_once() {
        let queue = Queue::default();
        let sizes = [usize::MAX, 1, PUT_OFF - 1, 1, 1];
        let sized = sizes.map(|size| Arc::new(Sized(size, AtomicUsize::new(0))));
        let put_off = |at: usize| {
            let what: Arc<Sized> = Arc::clone(&sized[at]);
            queue.put_off(what)
        };
        let look = || {
            queue.push(Message::Later { work: Box::new(Vec::new), room: None }, Haste::Now);
            assert!(queue.next().is_some());
        };
        assert!(put_off(0), "one may be, however large it is");
        assert!(!put_off(1));
        look();
        assert!(put_off(2) && put_off(3) && !put_off(4));
        look();
        let looks = sized.each_ref().map(|sized| sized.1.load(Ordering::Relaxed));
        assert_eq!(looks, [1, 0, 1, 1, 0]);
    }

    #[test]
    fn nobody_is_woken_for_little() {
        let queue = Queue::default();
        for (size, wakes) in [(WORTH_WAKING - 1, false), (1, true)] {
            assert!(queue.put_off(Arc::new(Sized(size, AtomicUsize::new(0)))));
            queue.has_time();
            assert_eq!(queue.lock().time, wakes);
        }
    }
}
