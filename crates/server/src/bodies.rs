//! Bodies of requests: within a time, or not wanted at all.

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

/// How much of a request that was refused is still read, and for how long.
const UNWANTED: usize = 64 << 10;
pub(crate) const UNWANTED_TIME: Duration = Duration::from_secs(1);

/// Reads a little of a body that nobody wants: a client that still sends finds the connection closed, and never gets to the answer.
pub(crate) async fn discard(mut body: Incoming) {
    let mut left = UNWANTED;
    while let Some(Ok(frame)) = body.frame().await {
        let size = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = left.checked_sub(size) else { return };
        left = rest;
    }
}

/// A body that has to arrive within a time.
pub(crate) struct Timed {
    body: Incoming,
    until: Pin<Box<Sleep>>,
    done: bool,
}

impl Timed {
    pub(crate) fn new(body: Incoming, within: Duration) -> Self {
        Self { body, until: Box::pin(tokio::time::sleep(within)), done: false }
    }
}

impl Body for Timed {
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
            Poll::Pending => match self.until.as_mut().poll(cx) {
                Poll::Ready(()) => {
                    self.done = true;
                    Poll::Ready(Some(Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "the request took too long to arrive",
                    ))))
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
