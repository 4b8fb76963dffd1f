//! A request on its way to a model: passed on as it comes, and somebody is told what it was.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

use super::body::{BodyError, TooLarge, UNWANTED};
use crate::desk::{Complete, Desk, Following, Taken, Whose};

/// Who is told what a body was, and whether that is all of what was wanted.
type Told = Box<dyn FnOnce(Taken, Complete) + Send>;

/// How much of a body somebody wants to know.
pub(super) enum Wanted {
    /// All of it.
    Whole,
    /// What it adds to an earlier one of the same session.
    After(Arc<Desk>, Arc<Whose>),
    /// What it begins with.
    Beginning,
}

/// How much a beginning is.
const BEGINNING: usize = 4 << 10;

/// What is kept of a body.
enum Taking {
    /// Nothing of it is there yet.
    NotBegun(Arc<Desk>, Arc<Whose>),
    /// It may go on from an earlier one.
    After(Following),
    /// So many bytes of it at most.
    Copied(Vec<u8>, usize),
}

impl Taking {
    fn new(wanted: Wanted) -> Self {
        match wanted {
            Wanted::After(desk, whose) => Self::NotBegun(desk, whose),
            Wanted::Whole => Self::Copied(Vec::new(), usize::MAX),
            Wanted::Beginning => Self::Copied(Vec::new(), BEGINNING),
        }
    }

    /// Copies what is new in some bytes of a body of about this size. These are parts of a buffer that is used again once nobody
    /// holds on to it.
    fn take(&mut self, data: &[u8], size: usize) {
        if data.is_empty() {
            return;
        }
        if let Self::NotBegun(desk, whose) = self {
            let following = desk.following(whose, data, size);
            *self = following.map_or_else(|| Self::Copied(Vec::new(), usize::MAX), Self::After);
        }
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

    fn end(self) -> Taken {
        match self {
            Self::NotBegun(..) => Taken::default(),
            Self::After(following) => following.end(),
            Self::Copied(copied, _) => Bytes::from(copied).into(),
        }
    }
}

/// Takes in what is passed on of a body. Once nobody passes on any more of it, somebody is told what it was: that it is dropped, by
/// whomever, is what tells.
struct Taker {
    taken: Mutex<InOrder>,
    /// `None` once they were told.
    told: Mutex<Option<Told>>,
    /// How many bytes the body has, as far as that is known.
    size: usize,
    complete: AtomicBool,
}

/// What is taken, in the order in which it came: over HTTP/2, what is given up is not dropped in that order.
struct InOrder {
    taking: Taking,
    /// How many bytes were taken.
    next: usize,
    /// What was dropped before what comes before it.
    early: BTreeMap<usize, Bytes>,
}

impl InOrder {
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

impl Taker {
    fn take(&self, at: usize, data: &Bytes) {
        if !data.is_empty() {
            self.taken.lock().unwrap_or_else(PoisonError::into_inner).take(at, data, self.size);
        }
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let InOrder { taking, early, .. } = self.taken.get_mut().unwrap_or_else(PoisonError::into_inner);
        let taking = std::mem::replace(taking, Taking::Copied(Vec::new(), 0));
        let all = *self.complete.get_mut() && early.is_empty();
        if let Some(told) = self.told.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            let complete = if all { Complete::Yes } else { Complete::No };
            // Whoever drops it may be in the middle of something that others depend on.
            if catch_unwind(AssertUnwindSafe(|| told(taking.end(), complete))).is_err() {
                tracing::error!("what a request was could not be told");
            }
        }
    }
}

/// Bytes on their way. They are taken in when they are dropped, which is when they have been written: nobody waits for what is
/// recorded of a request.
struct OnTheirWay {
    data: Bytes,
    /// How many bytes came before them.
    at: usize,
    taker: Arc<Taker>,
}

impl AsRef<[u8]> for OnTheirWay {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for OnTheirWay {
    fn drop(&mut self) {
        self.taker.take(self.at, &self.data);
    }
}

/// A body that somebody is told of, once it was passed on.
pub(super) struct RequestTap {
    inner: Incoming,
    left: usize,
    /// Bytes that came and were too many.
    surplus: usize,
    /// Bytes that were passed on.
    passed: usize,
    /// `None` once all of it was passed on.
    taker: Option<Arc<Taker>>,
    /// Whether a beginning is enough.
    beginning: bool,
}

impl RequestTap {
    /// Passes on no more than so many bytes.
    pub(super) fn new(inner: Incoming, most: usize, wanted: Wanted, told: Told) -> Self {
        let size = usize::try_from(inner.size_hint().lower()).unwrap_or(most).min(most);
        let beginning = matches!(wanted, Wanted::Beginning);
        let taken = Mutex::new(InOrder { taking: Taking::new(wanted), next: 0, early: BTreeMap::new() });
        let taker = Taker { taken, told: Mutex::new(Some(told)), size, complete: AtomicBool::new(false) };
        Self { inner, left: most, surplus: 0, passed: 0, taker: Some(Arc::new(taker)), beginning }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = loop {
            let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
            let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()).and_then(Frame::data_ref);
            let size = data.map_or(0, Bytes::len);
            match self.left.checked_sub(size) {
                Some(left) if self.surplus == 0 => {
                    self.left = left;
                    break frame;
                }
                // Read on, and passed on to nobody: a client that still sends would never get to its answer.
                _ if frame.is_some() && self.surplus < UNWANTED => self.surplus += size.max(1),
                _ => return Poll::Ready(Some(Err(TooLarge.into()))),
            }
        };
        let frame = frame.map(|frame| frame.map(|frame| frame.map_data(|data| self.taken(data))).map_err(Into::into));
        if (frame.is_none() || self.inner.is_end_stream())
            && let Some(taker) = self.taker.take()
        {
            taker.complete.store(true, Ordering::Release);
        }
        Poll::Ready(frame)
    }

    /// Bytes that are taken in once they have been written.
    fn taken(&mut self, data: Bytes) -> Bytes {
        let Some(taker) = &self.taker else { return data };
        let at = self.passed;
        self.passed += data.len();
        if self.beginning {
            taker.take(at, &data);
            return data;
        }
        Bytes::from_owner(OnTheirWay { data, at, taker: Arc::clone(taker) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use std::sync::mpsc::channel;

    use super::*;

    /// What is told of chunks that are dropped in some order, and whether that is all.
    fn told(order: &[usize], complete: bool) -> (Vec<u8>, Complete) {
        let (tell, told) = channel();
        let taking = Taking::new(Wanted::Whole);
        let taken = Mutex::new(InOrder { taking, next: 0, early: BTreeMap::new() });
        let note: Told = Box::new(move |taken, complete| tell.send((taken.whole().to_vec(), complete)).unwrap());
        let taker =
            Arc::new(Taker { taken, told: Mutex::new(Some(note)), size: 9, complete: AtomicBool::new(complete) });
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
            assert_eq!(told(&order, true), (b"onetwothree".to_vec(), Complete::Yes), "{order:?}");
            assert_eq!(told(&order, false), (b"onetwothree".to_vec(), Complete::No), "{order:?}");
        }
    }
}
