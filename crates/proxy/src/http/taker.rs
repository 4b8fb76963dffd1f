//! Takes in what was passed on of a body.
//!
//! Nobody waits for what is recorded of a request. What was written is compared with an earlier body on the thread that records, before
//! long and not at once: whoever answers may be on this machine and needs its time, and the answer is not to wait here for a comparison.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::attribution::Attribution;
use crate::desk::{Complete, Desk, Following, Sequel, Taken};
use crate::log::{Log, PutOff};

/// Who is told what a body was, and whether that is all of what was wanted.
pub(super) type Told = Box<dyn FnOnce(Taken, Complete) + Send>;

/// How much of a body somebody wants to know.
pub(super) enum Wanted {
    /// All of it.
    Whole,
    /// What it adds to an earlier one of the same session.
    After(Arc<Desk>, Attribution),
    /// What it begins with.
    Beginning,
}

/// How much a beginning is.
const BEGINNING: usize = 4 << 10;
/// How much of it may wait to be looked at.
const MOST: usize = 2 << 20;
/// What is read into at least.
const READ: usize = 8 << 10;

/// What is kept of a body.
enum Taking {
    /// The session is not known yet, by which the earlier body is found. These bytes wait for it.
    NotBegun(Arc<Desk>, Attribution, Vec<Bytes>),
    /// It may go on from an earlier one.
    After(Following),
    /// So many bytes of it at most.
    Copied(Vec<u8>, usize),
}

impl Taking {
    fn new(wanted: Wanted) -> Self {
        match wanted {
            Wanted::After(desk, attribution) => Self::NotBegun(desk, attribution, Vec::new()),
            Wanted::Whole => Self::Copied(Vec::new(), usize::MAX),
            Wanted::Beginning => Self::Copied(Vec::new(), BEGINNING),
        }
    }

    /// Copies what is new in some bytes of a body of about this size. These are parts of a buffer that is used again once nobody
    /// holds on to it.
    fn take(&mut self, data: &Bytes, size: usize) {
        if data.is_empty() {
            return;
        }
        if let Self::NotBegun(_, attribution, waiting) = self {
            waiting.push(data.clone());
            if attribution.known().is_some() {
                self.begin(size);
            }
            return;
        }
        self.go_on(data, size);
    }

    /// Finds the earlier body of the session, and compares the bytes that waited for it.
    fn begin(&mut self, size: usize) {
        let Self::NotBegun(desk, attribution, waiting) = self else { return };
        let waiting = std::mem::take(waiting);
        let Some(first) = waiting.first() else { return };
        let following = desk.following(&attribution.resolve(), first, size);
        *self = following.map_or_else(|| Self::Copied(Vec::new(), usize::MAX), Self::After);
        for data in waiting {
            self.go_on(&data, size);
        }
    }

    fn go_on(&mut self, data: &[u8], size: usize) {
        match self {
            Self::NotBegun(..) => {}
            Self::After(following) => following.take(data),
            Self::Copied(copied, most) => {
                if copied.is_empty() {
                    copied.reserve_exact(size.min(*most));
                }
                let room = *most - copied.len();
                copied.extend_from_slice(&data[..data.len().min(room)]);
            }
        }
    }

    fn end(mut self) -> Taken {
        // A body that broke off belongs to the session that its beginning tells.
        self.begin(0);
        match self {
            Self::NotBegun(..) => Taken::default(),
            Self::After(following) => following.end(),
            Self::Copied(copied, _) => Bytes::from(copied).into(),
        }
    }
}

/// What is taken, in the order in which it came: over HTTP/2, what is given up is not dropped in that order.
struct Reading {
    taking: Taking,
    /// How many bytes were taken.
    next: usize,
    /// What was dropped before what comes before it.
    early: BTreeMap<usize, Bytes>,
}

impl Reading {
    fn take(&mut self, at: usize, data: &Bytes, size: usize) {
        if at != self.next {
            self.early.insert(at, data.clone());
            return;
        }
        self.taking.take(data, size);
        self.next += data.len();
        while let Some(data) = self.early.remove(&self.next) {
            self.taking.take(&data, size);
            self.next += data.len();
        }
    }
}

/// How far somebody is with a body.
struct Progress {
    /// `None` while somebody looks at what came, for which nobody else waits.
    reading: Option<Reading>,
    /// What is to be looked at later.
    later: Vec<(usize, Bytes)>,
    /// Whether somebody will do so.
    awaited: bool,
    /// `None` once they were told.
    told: Option<Told>,
}

impl Progress {
    fn catch_up(&mut self, size: usize) {
        if let Some(reading) = &mut self.reading {
            for (at, data) in std::mem::take(&mut self.later) {
                reading.take(at, &data, size);
            }
        }
    }
}

/// Takes in what is passed on of a body. Once nobody passes on any more of it, somebody is told what it was: that it is dropped, by
/// whomever, is what tells.
pub(super) struct Taker {
    progress: Mutex<Progress>,
    /// How many bytes the body has, as far as that is known.
    size: usize,
    /// How many were passed on once that was all of them.
    whole: AtomicUsize,
    /// What a body that is compared is recorded before, and who sees to it that it is.
    after: Option<(Arc<Sequel>, Arc<Log>)>,
}

/// There may be more.
const NOT_YET: usize = usize::MAX;

impl Taker {
    /// One for a body of about this size.
    pub(super) fn new(wanted: Wanted, size: usize, told: Told) -> Self {
        let after = match &wanted {
            Wanted::After(desk, _) => Some((Arc::default(), Arc::clone(&desk.log))),
            Wanted::Whole | Wanted::Beginning => None,
        };
        let reading = Some(Reading { taking: Taking::new(wanted), next: 0, early: BTreeMap::new() });
        let progress = Progress { reading, later: Vec::new(), awaited: false, told: Some(told) };
        Self { progress: Mutex::new(progress), size, whole: AtomicUsize::new(NOT_YET), after }
    }

    /// What is to come after this body on record, if that is to wait.
    pub(super) fn sequel(&self) -> Option<Arc<Sequel>> {
        self.after.as_ref().map(|(sequel, _)| Arc::clone(sequel))
    }

    /// So many bytes were all.
    pub(super) fn is_whole(&self, bytes: usize) {
        self.whole.store(bytes, Ordering::Release);
    }

    pub(super) fn take(&self, at: usize, data: &Bytes) {
        if !data.is_empty() {
            let mut progress = self.lock();
            progress.later.push((at, data.clone()));
            progress.catch_up(self.size);
        }
    }

    /// Takes what was written, or sees to it that somebody does.
    fn written(self: &Arc<Self>, at: usize, data: Bytes) {
        let Some((_, log)) = &self.after else { return self.take(at, &data) };
        if data.is_empty() {
            return;
        }
        let mut progress = self.lock();
        let end = at + data.len();
        progress.later.push((at, data));
        if !progress.awaited {
            let this: Arc<Self> = Arc::clone(self);
            progress.awaited = log.put_off(this);
        }
        if !progress.awaited || end.saturating_sub(progress.later[0].0) > MOST {
            progress.catch_up(self.size);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what there is, once. Whoever wants it told waits for one who does so.
    fn tell(&self, mut progress: MutexGuard<'_, Progress>) {
        let Some(told) = progress.told.take() else { return };
        // There is none if looking at it failed.
        let (taken, next) = progress
            .reading
            .take()
            .map_or_else(|| (Taken::default(), 0), |reading| (reading.taking.end(), reading.next));
        let complete = if next == self.whole.load(Ordering::Acquire) { Complete::Yes } else { Complete::No };
        // Whoever tells may be in the middle of something that others depend on.
        if catch_unwind(AssertUnwindSafe(|| told(taken, complete))).is_err() {
            tracing::error!("what a request was could not be told");
        }
        if let Some((sequel, _)) = &self.after {
            sequel.recorded();
        }
    }
}

impl PutOff for Taker {
    fn size(&self) -> usize {
        // Of one whose length is not known there may be much, and the least of all holds on to what it was read into.
        if self.size == 0 { MOST } else { self.size.max(READ) }
    }

    fn now(&self) {
        let mut progress = self.lock();
        while let Some(mut reading) = progress.reading.take() {
            let later = std::mem::take(&mut progress.later);
            if later.is_empty() {
                let is_whole = reading.next == self.whole.load(Ordering::Acquire);
                (progress.reading, progress.awaited) = (Some(reading), false);
                if is_whole {
                    self.tell(progress);
                }
                return;
            }
            // What is written meanwhile waits for no comparison.
            drop(progress);
            for (at, data) in later {
                reading.take(at, &data, self.size);
            }
            progress = self.lock();
            progress.reading = Some(reading);
        }
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let mut progress = self.lock();
        progress.catch_up(self.size);
        self.tell(progress);
    }
}

/// Bytes on their way. They are taken in when they are dropped, which is when they have been written.
pub(super) struct OnTheirWay {
    pub(super) data: Bytes,
    /// How many bytes came before them.
    pub(super) at: usize,
    pub(super) taker: Arc<Taker>,
}

impl AsRef<[u8]> for OnTheirWay {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for OnTheirWay {
    fn drop(&mut self) {
        self.taker.written(self.at, std::mem::take(&mut self.data));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use std::sync::mpsc::channel;

    use super::*;

    /// What is told of chunks that are dropped in some order, and whether that is all.
    fn told(order: &[usize], whole: usize) -> (Vec<u8>, Complete) {
        let (tell, told) = channel();
        let note: Told = Box::new(move |taken, complete| tell.send((taken.whole().to_vec(), complete)).unwrap());
        let taker = Arc::new(Taker::new(Wanted::Whole, 9, note));
        taker.is_whole(whole);
        let chunks = [(0, "one"), (3, "two"), (6, ""), (6, "three")];
        let chunk =
            |(at, text)| OnTheirWay { data: Bytes::from_static(str::as_bytes(text)), at, taker: Arc::clone(&taker) };
        let mut chunks = chunks.map(|text| Some(chunk(text)));
        drop(taker);
        for chunk in order {
            assert!(told.try_recv().is_err(), "told before all of it was written");
            drop(chunks[*chunk].take());
        }
        // What is never dropped is never written.
        chunks.into_iter().for_each(std::mem::forget);
        told.try_recv().unwrap_or((Vec::new(), Complete::No))
    }

    #[test]
    fn in_whatever_order_chunks_are_given_up_they_are_told_as_they_came() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 3, 0, 1], [1, 0, 3, 2]] {
            assert_eq!(told(&order, 11), (b"onetwothree".to_vec(), Complete::Yes), "{order:?}");
            assert_eq!(told(&order, NOT_YET), (b"onetwothree".to_vec(), Complete::No), "{order:?}");
        }
    }
}
