//! A connection on a Unix socket that is woken by what arrives, and not by what leaves.
//!
//! The usual stream also hears of it each time the other end has read something, which wakes a thread for nothing at every call and
//! every answer, and has whoever reads pay for it. Here only a write that finds no room asks to be told of it.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// A connection on a Unix socket.
#[derive(Debug)]
pub struct LocalStream {
    stream: AsyncFd<UnixStream>,
    /// A second handle while a write waits for room.
    full: Option<AsyncFd<OwnedFd>>,
}

impl LocalStream {
    /// Takes a stream over. It never blocks from then on.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let stream = registered(stream, Interest::READABLE)?;
        Ok(Self { stream, full: None })
    }

    fn poll_writing(
        &mut self,
        context: &mut Context<'_>,
        write: impl Fn(&mut &UnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if let Some(full) = &self.full {
                ready!(full.poll_write_ready(context))?.clear_ready();
            }
            match write(&mut self.stream.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                done => {
                    self.full = None;
                    return Poll::Ready(done);
                }
            }
            if self.full.is_none() {
                let second = self.stream.get_ref().as_fd().try_clone_to_owned()?;
                self.full = Some(registered(second, Interest::WRITABLE)?);
            }
        }
    }
}

/// Has the runtime say when something can be done with a handle, which is ours and stays open for as long.
fn registered<T: AsFd + AsRawFd>(handle: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    #[expect(
        deprecated,
        reason = "what takes its place is unsafe, for handles that somebody else may close; ours are owned"
    )]
    AsyncFd::with_interest(handle, interest)
}

impl AsyncRead for LocalStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.stream.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            let most = room.len();
            match ready.try_io(|stream| stream.get_ref().read(room)) {
                Ok(Ok(count)) => {
                    // Less than there was room for: there is no more, and what comes next is told.
                    if count > 0 && count < most {
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
            // The other end has gone already.
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
    async fn what_finds_no_room_is_written_once_there_is_some() {
        let (mut ours, mut theirs) = pair();
        // Far more than a socket holds, so that the writer waits again and again.
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
    async fn what_arrives_is_read_to_the_end_whenever_it_comes() {
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
    async fn an_end_that_comes_together_with_the_last_bytes_is_noticed() {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(b"last").await.unwrap();
        drop(theirs);
        let mut all = Vec::new();
        ours.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"last");
    }

    #[tokio::test]
    async fn a_writer_that_waits_learns_that_the_other_end_has_gone() {
        let (mut ours, theirs) = pair();
        let writer = tokio::spawn(async move { ours.write_all(&vec![0; 4_000_000]).await });
        tokio::task::yield_now().await;
        drop(theirs);
        assert!(writer.await.unwrap().is_err());
    }
}
