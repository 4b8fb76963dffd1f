//! Bodies of forwarded requests and of replies.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use thiserror::Error;
use tokio::sync::mpsc;

use super::request_tap::RequestTap;
use super::response::ResponseTap;

/// Failure of a body while it is forwarded.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request to an upstream.
pub(super) enum Outbound {
    /// Forwarded while it is received.
    Streamed(Incoming),
    /// Forwarded and captured while it is received.
    Tapped(Box<RequestTap>),
    Buffered(Full<Bytes>),
}

impl Body for Outbound {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Streamed(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Tapped(body) => body.poll_frame(cx),
            Self::Buffered(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Streamed(body) => body.is_end_stream(),
            Self::Tapped(body) => body.is_end_stream(),
            Self::Buffered(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Streamed(body) => body.size_hint(),
            Self::Tapped(body) => body.size_hint(),
            Self::Buffered(body) => body.size_hint(),
        }
    }
}

/// Bytes beyond the size limit that are read and discarded, so that the client gets to read the error reply.
pub(super) const MAX_DISCARDED_BYTES: usize = 4 << 20;

/// Reads a body of at most `max` bytes.
pub(super) async fn read_to_end(mut body: Incoming, max: usize) -> Result<Bytes, BodyError> {
    let size = usize::try_from(body.size_hint().lower()).unwrap_or(max).min(max);
    let (mut buffer, mut surplus) = (BytesMut::with_capacity(size), 0);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if surplus == 0 && buffer.len() + data.len() <= max {
            buffer.extend_from_slice(&data);
        } else {
            surplus += data.len();
            buffer.clear();
            if surplus > MAX_DISCARDED_BYTES {
                break;
            }
        }
    }
    if surplus > 0 { Err(TooLarge.into()) } else { Ok(buffer.freeze()) }
}

/// The request exceeds `max_body_size`.
#[derive(Debug, Error)]
#[error("the request is larger than sayso forwards")]
pub(super) struct TooLarge;

impl TooLarge {
    /// Returns `true` if it is in the chain of causes of an error.
    pub(super) fn is_cause_of(error: &(dyn std::error::Error + 'static)) -> bool {
        std::iter::successors(Some(error), |error| error.source()).any(<dyn std::error::Error>::is::<Self>)
    }
}

/// The body of a reply to an agent.
pub struct Reply(pub(super) ReplyBody);

pub(super) enum ReplyBody {
    /// Forwarded while it is received.
    Streamed(Incoming),
    /// Forwarded and decoded while it is received.
    Tapped(Box<ResponseTap>),
    Buffered(Full<Bytes>),
    /// Written by the task of a held request.
    Held(mpsc::Receiver<Result<Bytes, BodyError>>),
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply").finish_non_exhaustive()
    }
}

impl Reply {
    pub(super) fn buffered(bytes: impl Into<Bytes>) -> Self {
        Self(ReplyBody::Buffered(Full::new(bytes.into())))
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            ReplyBody::Streamed(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            ReplyBody::Tapped(body) => body.poll_frame(cx),
            ReplyBody::Buffered(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            ReplyBody::Held(frames) => frames.poll_recv(cx).map(|frame| frame.map(|frame| frame.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            ReplyBody::Streamed(body) => body.is_end_stream(),
            ReplyBody::Buffered(body) => body.is_end_stream(),
            ReplyBody::Tapped(body) => body.is_end_stream(),
            // The task closes the channel at the end.
            ReplyBody::Held(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            ReplyBody::Streamed(body) => body.size_hint(),
            ReplyBody::Tapped(body) => body.size_hint(),
            ReplyBody::Buffered(body) => body.size_hint(),
            ReplyBody::Held(_) => SizeHint::default(),
        }
    }
}
