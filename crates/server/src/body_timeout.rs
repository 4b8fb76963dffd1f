//! Request bodies with a deadline, and bodies of rejected requests.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::Sleep;

/// Bytes of a rejected request that are read, and the time limit for them.
const MAX_DISCARDED_BYTES: usize = 64 << 10;
pub(crate) const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads the start of the body of a rejected request. If the server closed the connection at once, a client that is still sending
/// would get a reset before it could read the error.
pub(crate) async fn discard(mut body: Incoming) {
    let mut remaining = MAX_DISCARDED_BYTES;
    while let Some(Ok(frame)) = body.frame().await {
        let size = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = remaining.checked_sub(size) else { return };
        remaining = rest;
    }
}

/// A body that fails if it is not complete by a deadline.
pub(crate) struct TimedBody {
    body: Incoming,
    deadline: Pin<Box<Sleep>>,
    done: bool,
}

impl TimedBody {
    pub(crate) fn new(body: Incoming, limit: Duration) -> Self {
        Self { body, deadline: Box::pin(tokio::time::sleep(limit)), done: false }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.done {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => {
                self.done = frame.is_none();
                Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)))
            }
            Poll::Pending => match self.deadline.as_mut().poll(cx) {
                Poll::Ready(()) => {
                    self.done = true;
                    Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, "the request body timed out"))))
                }
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
