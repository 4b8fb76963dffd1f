//! Bodies on their way: requests to models, and their answers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use thiserror::Error;
use tokio::sync::mpsc;

use super::answer::AnswerTap;
use crate::desk::Complete;

/// What goes wrong on the way.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request to a model.
pub(super) enum Outbound {
    /// As it comes.
    Passed(Incoming),
    /// As it comes, and somebody is told what it was.
    Tapped(RequestTap),
    /// All at once.
    Whole(Full<Bytes>),
}

impl Body for Outbound {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Passed(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Tapped(body) => Pin::new(body).poll_frame(cx),
            Self::Whole(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Passed(body) => body.is_end_stream(),
            Self::Tapped(body) => body.inner.is_end_stream(),
            Self::Whole(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Passed(body) => body.size_hint(),
            Self::Tapped(body) => body.inner.size_hint(),
            Self::Whole(body) => body.size_hint(),
        }
    }
}

/// How much of a request that is too large is still read, and thrown away.
const UNWANTED: usize = 4 << 20;

/// Takes a body in whole.
pub(super) async fn whole(mut body: Incoming, most: usize) -> Result<Bytes, BodyError> {
    let size = usize::try_from(body.size_hint().lower()).unwrap_or(most).min(most);
    let (mut taken, mut surplus) = (BytesMut::with_capacity(size), 0);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if surplus == 0 && taken.len() + data.len() <= most {
            taken.extend_from_slice(&data);
        } else {
            surplus += data.len();
            taken.clear();
            if surplus > UNWANTED {
                break;
            }
        }
    }
    if surplus > 0 { Err(TooLarge.into()) } else { Ok(taken.freeze()) }
}

/// A request is larger than is passed on.
#[derive(Debug, Error)]
#[error("the request is larger than sayso passes on")]
pub(super) struct TooLarge;

impl TooLarge {
    /// Whether it is what went wrong, at whatever depth.
    pub(super) fn is_why(error: &(dyn std::error::Error + 'static)) -> bool {
        std::iter::successors(Some(error), |error| error.source()).any(<dyn std::error::Error>::is::<Self>)
    }
}

/// Who is told what a body was, and whether that is all of what was wanted.
type Told = Box<dyn FnOnce(Vec<u8>, Complete) + Send>;

/// How much of a body somebody wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it.
    Whole,
    /// What it begins with.
    Beginning,
}

impl Wanted {
    fn bytes(self) -> usize {
        match self {
            Self::Whole => usize::MAX,
            Self::Beginning => 4 << 10,
        }
    }
}

/// A body that somebody is told of, once it was passed on.
///
/// Its bytes are copied, and not its chunks kept: these are parts of a buffer, which is used again once nobody holds on to it.
pub(super) struct RequestTap {
    inner: Incoming,
    copied: Vec<u8>,
    wanted: usize,
    left: usize,
    /// Bytes that came and were too many.
    surplus: usize,
    told: Option<Told>,
}

impl RequestTap {
    /// Passes on no more than so many bytes.
    pub(super) fn new(inner: Incoming, most: usize, wanted: Wanted, told: Told) -> Self {
        let wanted = wanted.bytes();
        let size = usize::try_from(inner.size_hint().lower()).unwrap_or(most).min(most);
        Self { inner, copied: Vec::with_capacity(size.min(wanted)), wanted, left: most, surplus: 0, told: Some(told) }
    }

    fn tell(&mut self, complete: Complete) {
        if let Some(told) = self.told.take() {
            told(std::mem::take(&mut self.copied), complete);
        }
    }

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = loop {
            let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
            let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()).and_then(Frame::data_ref);
            let size = data.map_or(0, Bytes::len);
            match self.left.checked_sub(size) {
                Some(left) if self.surplus == 0 => {
                    self.left = left;
                    let room = self.wanted - self.copied.len();
                    self.copied.extend_from_slice(data.map_or(&[], |data| &data[..size.min(room)]));
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

/// The body of an answer.
pub struct Reply(pub(super) Inner);

pub(super) enum Inner {
    /// As it comes.
    Passed(Incoming),
    /// As it comes, and looked at on the way.
    Answer(Box<AnswerTap>),
    /// All at once.
    Whole(Full<Bytes>),
    /// As somebody sends it.
    Held(mpsc::Receiver<Result<Bytes, BodyError>>),
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply").finish_non_exhaustive()
    }
}

impl Reply {
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Whole(Full::new(bytes.into())))
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            Inner::Passed(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Inner::Answer(body) => body.poll_frame(cx),
            Inner::Whole(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            Inner::Held(frames) => frames.poll_recv(cx).map(|frame| frame.map(|frame| frame.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Passed(body) => body.is_end_stream(),
            Inner::Whole(body) => body.is_end_stream(),
            Inner::Answer(body) => body.is_end_stream(),
            // Whether it is over, whoever sends it says.
            Inner::Held(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Passed(body) => body.size_hint(),
            Inner::Answer(body) => body.size_hint(),
            Inner::Whole(body) => body.size_hint(),
            Inner::Held(_) => SizeHint::default(),
        }
    }
}
