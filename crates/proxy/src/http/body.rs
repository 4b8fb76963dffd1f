//! Bodies on their way: requests to models, and their answers.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use thiserror::Error;
use tokio::sync::mpsc;

use super::answer::AnswerTap;
use super::tap::RequestTap;

/// What goes wrong on the way.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request to a model.
pub(super) enum Outbound {
    /// As it comes.
    Passed(Incoming),
    /// As it comes, and somebody is told what it was.
    Tapped(Box<RequestTap>),
    /// All at once.
    Whole(Full<Bytes>),
}

impl Body for Outbound {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Passed(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Tapped(body) => body.poll_frame(cx),
            Self::Whole(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Passed(body) => body.is_end_stream(),
            Self::Tapped(body) => body.is_end_stream(),
            Self::Whole(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Passed(body) => body.size_hint(),
            Self::Tapped(body) => body.size_hint(),
            Self::Whole(body) => body.size_hint(),
        }
    }
}

/// How much of a request that is too large is still read, and thrown away.
pub(super) const UNWANTED: usize = 4 << 20;

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
