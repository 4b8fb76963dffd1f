//! Whether what was to be written to a connection was, and read at its other end.

use std::io::{ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::dial::Connection;

/// Whether a connection took all that it was given.
///
/// Of a request of which part could not be written nobody has seen the end, and so nobody has done what it asks for. Nor of one that
/// was not read: that a connection is reset, and not closed, says that its other end went away without reading all of what was written.
#[derive(Clone, Debug, Default)]
pub(super) struct Unwritten(Arc<AtomicBool>);

impl Unwritten {
    /// Whether something could not be written, or nobody has read it.
    pub(super) fn is_so(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn note(&self, written: Result<usize>) -> Poll<Result<usize>> {
        if written.is_err() {
            self.0.store(true, Ordering::Release);
        }
        Poll::Ready(written)
    }
}

/// A connection that takes note of what it could not write.
pub(super) struct Noting {
    pub(super) connection: Connection,
    pub(super) unwritten: Unwritten,
}

impl AsyncRead for Noting {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let read = ready!(Pin::new(&mut self.connection).poll_read(cx, buffer));
        if read.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset) {
            self.unwritten.0.store(true, Ordering::Release);
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Noting {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = ready!(Pin::new(&mut self.connection).poll_write(cx, bytes));
        self.unwritten.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = ready!(Pin::new(&mut self.connection).poll_write_vectored(cx, slices));
        self.unwritten.note(written)
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
