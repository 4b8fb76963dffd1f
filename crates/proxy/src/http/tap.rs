//! A request on its way to a model: passed on as it comes, and somebody is told what it was.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::oneshot;

use super::body::{BodyError, TooLarge, UNWANTED};
use crate::desk::{Complete, Desk, Following, Taken, Whose};

/// Who is told what a body was, and whether that is all of what was wanted.
type Told = Box<dyn FnOnce(Taken, Complete) + Send>;

/// When somebody is told.
pub(super) enum Tell {
    /// Before the end of the body is passed on.
    Now(Told),
    /// After that, by whoever waits for the answer: nobody waits for what is recorded of a request.
    Later(oneshot::Sender<Telling>, Told),
}

/// What is yet to be told. It is told when it is dropped, whoever does that: nothing is lost on the way.
pub(super) struct Telling(Option<(Told, Taking, Complete)>);

impl Drop for Telling {
    fn drop(&mut self) {
        if let Some((told, taking, complete)) = self.0.take() {
            told(taking.end(), complete);
        }
    }
}

/// Waits for an answer, and tells meanwhile what is to be told.
pub(super) async fn first<T>(answer: impl Future<Output = T>, told: Option<&mut oneshot::Receiver<Telling>>) -> T {
    let Some(told) = told else { return answer.await };
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        telling = told => {
            drop(telling);
            answer.await
        }
    }
}

/// How much of a body somebody wants to know.
pub(super) enum Wanted {
    /// All of it.
    Whole,
    /// What it adds to an earlier one of the same session.
    After(Arc<Desk>, Whose),
    /// What it begins with.
    Beginning,
}

/// What is known of a body that may go on from an earlier one.
enum Follows {
    /// Nothing of it is there yet.
    NotBegun(Arc<Desk>, Whose),
    /// So far it is the same.
    Yes(Following),
    /// It was.
    NoMore(Following),
    /// It does not.
    No,
}

/// What is kept of a body.
pub(super) struct Taking {
    follows: Follows,
    copied: Vec<u8>,
    /// How many bytes are wanted.
    wanted: usize,
    /// How many bytes it has, as far as that is known.
    size: usize,
}

impl Taking {
    fn new(wanted: Wanted, size: usize) -> Self {
        let (follows, wanted) = match wanted {
            Wanted::After(desk, whose) => (Follows::NotBegun(desk, whose), usize::MAX),
            Wanted::Whole => (Follows::No, usize::MAX),
            Wanted::Beginning => (Follows::No, 4 << 10),
        };
        Self { follows, copied: Vec::new(), wanted, size }
    }

    /// Copies what is new in some bytes. These are parts of a buffer that is used again once nobody holds on to it.
    fn take(&mut self, mut data: &[u8]) {
        if data.is_empty() {
            return;
        }
        if let Follows::NotBegun(desk, whose) = &self.follows {
            self.follows = desk.following(whose, data).map_or(Follows::No, Follows::Yes);
        }
        if let Follows::Yes(following) = &mut self.follows {
            data = &data[following.go_on(data)..];
            if data.is_empty() {
                return;
            }
            if let Follows::Yes(following) = std::mem::replace(&mut self.follows, Follows::No) {
                self.size = self.size.saturating_sub(following.shared());
                self.follows = Follows::NoMore(following);
            }
        }
        if self.copied.is_empty() {
            self.copied.reserve_exact(self.size.min(self.wanted));
        }
        let room = self.wanted - self.copied.len();
        self.copied.extend_from_slice(&data[..data.len().min(room)]);
    }

    fn end(self) -> Taken {
        let rest = Bytes::from(self.copied);
        match self.follows {
            Follows::Yes(following) | Follows::NoMore(following) => following.end(rest),
            Follows::No | Follows::NotBegun(..) => rest.into(),
        }
    }
}

/// A body that somebody is told of, once it was passed on.
pub(super) struct RequestTap {
    inner: Incoming,
    left: usize,
    /// Bytes that came and were too many.
    surplus: usize,
    /// Until it was told.
    tell: Option<(Tell, Taking)>,
}

impl RequestTap {
    /// Passes on no more than so many bytes.
    pub(super) fn new(inner: Incoming, most: usize, wanted: Wanted, tell: Tell) -> Self {
        let size = usize::try_from(inner.size_hint().lower()).unwrap_or(most).min(most);
        Self { inner, left: most, surplus: 0, tell: Some((tell, Taking::new(wanted, size))) }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }

    fn tell(&mut self, complete: Complete) {
        match self.tell.take() {
            None => {}
            Some((Tell::Now(told), taking)) => told(taking.end(), complete),
            // Where nobody waits any more, it is told here.
            Some((Tell::Later(to, told), taking)) => drop(to.send(Telling(Some((told, taking, complete))))),
        }
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = loop {
            let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
            let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()).and_then(Frame::data_ref);
            let size = data.map_or(0, Bytes::len);
            match self.left.checked_sub(size) {
                Some(left) if self.surplus == 0 => {
                    self.left = left;
                    if let (Some((_, taking)), Some(data)) = (&mut self.tell, data) {
                        taking.take(data);
                    }
                    break frame;
                }
                // Read on, and passed on to nobody: a client that still sends would never get to its answer.
                _ if frame.is_some() && self.surplus < UNWANTED => self.surplus += size.max(1),
                _ => return Poll::Ready(Some(Err(TooLarge.into()))),
            }
        };
        if frame.is_none() || self.inner.is_end_stream() {
            self.tell(Complete::Yes);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }
}

impl Drop for RequestTap {
    fn drop(&mut self) {
        self.tell(Complete::No);
    }
}
