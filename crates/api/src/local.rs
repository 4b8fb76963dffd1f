//! A Unix socket connection that registers for write readiness only while a write is blocked.
//!
//! tokio's `UnixStream` is always registered for both directions. Each time the peer reads, the socket becomes writable and wakes a
//! thread: one needless wake-up per call and per response, paid by the reader.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// A Unix socket connection with few wake-ups.
#[derive(Debug)]
pub struct LocalStream {
    stream: AsyncFd<UnixStream>,
    /// A duplicate handle, registered for write readiness. Present while a write is blocked on a full buffer.
    blocked_write: Option<AsyncFd<OwnedFd>>,
}

impl LocalStream {
    /// Makes the stream non-blocking. Requires a tokio runtime.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let stream = registered(stream, Interest::READABLE)?;
        Ok(Self { stream, blocked_write: None })
    }

    fn poll_writing(
        &mut self,
        context: &mut Context<'_>,
        write: impl Fn(&mut &UnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if let Some(blocked) = &self.blocked_write {
                ready!(blocked.poll_write_ready(context))?.clear_ready();
            }
            match write(&mut self.stream.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                done => {
                    self.blocked_write = None;
                    return Poll::Ready(done);
                }
            }
            if self.blocked_write.is_none() {
                let second = self.stream.get_ref().as_fd().try_clone_to_owned()?;
                self.blocked_write = Some(registered(second, Interest::WRITABLE)?);
            }
        }
    }
}

/// Registers an owned handle with the runtime.
fn registered<T: AsFd + AsRawFd>(handle: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    #[expect(
        deprecated,
        reason = "its replacement is unsafe, for handles that other code may close; this one is owned"
    )]
    AsyncFd::with_interest(handle, interest)
}

impl AsyncRead for LocalStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.stream.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            let capacity = room.len();
            match ready.try_io(|stream| stream.get_ref().read(room)) {
                Ok(Ok(count)) => {
                    // A short read has emptied the socket buffer. The next bytes trigger a new readiness event.
                    if count > 0 && count < capacity {
                        ready.clear_ready();
                    }
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_not_ready) => {}
            }
        }
    }
}

impl AsyncWrite for LocalStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_writing(context, |stream| stream.write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_writing(context, |stream| stream.write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.stream.get_ref().shutdown(std::net::Shutdown::Write) {
            // The peer has closed the connection.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            done => Poll::Ready(done),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn pair() -> (LocalStream, tokio::net::UnixStream) {
        let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
        (LocalStream::new(ours.into_std().unwrap()).unwrap(), theirs)
    }

    #[tokio::test]
    async fn blocked_write_completes_after_peer_reads() {
        let (mut ours, mut theirs) = pair();
        // Far more than the socket buffer holds, so that the writer blocks repeatedly.
        let bytes: Vec<u8> = (0..4_000_000_u32).map(|number| (number % 251) as u8).collect();
        let sent = bytes.clone();
        let writer = tokio::spawn(async move {
            ours.write_all(&sent).await.unwrap();
            ours.shutdown().await.unwrap();
        });
        let mut received = Vec::new();
        theirs.read_to_end(&mut received).await.unwrap();
        assert!(received == bytes);
        writer.await.unwrap();
    }

    #[tokio::test]
    async fn late_bytes_are_read_to_end() {
        let (mut ours, mut theirs) = pair();
        let mut buffer = [0; 64];
        theirs.write_all(b"first").await.unwrap();
        assert_eq!(ours.read(&mut buffer).await.unwrap(), 5);
        let reader = tokio::spawn(async move {
            let mut rest = Vec::new();
            ours.read_to_end(&mut rest).await.unwrap();
            rest
        });
        tokio::task::yield_now().await;
        theirs.write_all(b"second").await.unwrap();
        drop(theirs);
        assert_eq!(reader.await.unwrap(), b"second");
    }

    #[tokio::test]
    async fn eof_with_last_bytes_is_detected() {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(b"last").await.unwrap();
        drop(theirs);
        let mut all = Vec::new();
        ours.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"last");
    }

    #[tokio::test]
    async fn blocked_write_fails_when_peer_closes() {
        let (mut ours, theirs) = pair();
        let writer = tokio::spawn(async move { ours.write_all(&vec![0; 4_000_000]).await });
        tokio::task::yield_now().await;
        drop(theirs);
        assert!(writer.await.unwrap().is_err());
    }
}
