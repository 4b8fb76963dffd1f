//! Detection of requests that the engine has not read completely.

use std::io::{ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::dial::Connection;

/// Set once a connection failed to deliver some of its bytes.
///
/// The engine acts on a request only after reading all of it, so an undelivered request had no effect and may be sent again. Two
/// failures prove it: a write that fails, and a connection that is reset rather than closed. The kernel resets a Unix socket if its
/// other end is closed with unread bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Undelivered(Arc<AtomicBool>);

impl Undelivered {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn observe_write(&self, written: Result<usize>) -> Poll<Result<usize>> {
        if written.is_err() {
            self.set();
        }
        Poll::Ready(written)
    }
}

/// A connection that sets [`Undelivered`].
pub(super) struct TrackedConnection {
    pub(super) connection: Connection,
    pub(super) undelivered: Undelivered,
}

impl AsyncRead for TrackedConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let read = ready!(Pin::new(&mut self.connection).poll_read(cx, buffer));
        if read.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset) {
            self.undelivered.set();
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for TrackedConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = ready!(Pin::new(&mut self.connection).poll_write(cx, bytes));
        self.undelivered.observe_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = ready!(Pin::new(&mut self.connection).poll_write_vectored(cx, slices));
        self.undelivered.observe_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}
