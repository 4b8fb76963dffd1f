//! A bound on the length of a message of a local server.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// A reader that fails at a line that is too long. Without it, the reply to a call would be dropped and the call would wait for
/// its time limit.
#[derive(Debug)]
pub(crate) struct LineLimit<R> {
    reader: R,
    max_bytes: usize,
    /// Bytes since the last line break.
    line_bytes: usize,
    on_excess: Option<tokio::sync::oneshot::Sender<()>>,
}

impl<R> LineLimit<R> {
    /// Limits lines to `max_bytes`. `on_excess` is told once before the reader fails.
    pub(crate) fn new(reader: R, max_bytes: usize, on_excess: tokio::sync::oneshot::Sender<()>) -> Self {
        Self { reader, max_bytes, line_bytes: 0, on_excess: Some(on_excess) }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineLimit<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.reader).poll_read(context, buffer);
        let mut longest = 0;
        for (index, part) in buffer.filled()[before..].split(|byte| *byte == b'\n').enumerate() {
            let continued = if index == 0 { self.line_bytes } else { 0 };
            self.line_bytes = continued + part.len();
            longest = longest.max(self.line_bytes);
        }
        if longest > self.max_bytes {
            buffer.set_filled(before);
            if let Some(excess) = self.on_excess.take() {
                let _ = excess.send(());
            }
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long")));
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use tokio::io::AsyncReadExt as _;

    use super::*;

    async fn read(bytes: &[u8], max_bytes: usize) -> (bool, bool) {
        let (sender, mut excess) = tokio::sync::oneshot::channel();
        let mut text = Vec::new();
        let result = LineLimit::new(bytes, max_bytes, sender).read_to_end(&mut text).await;
        (result.is_ok(), excess.try_recv().is_ok())
    }

    #[tokio::test]
    async fn only_long_line_fails() {
        assert_eq!(read(b"12345\n12345\n", 5).await, (true, false));
        assert_eq!(read(b"1\n123456", 5).await, (false, true));
        assert_eq!(read(&b"1234567\n".repeat(5_000), 7).await, (true, false));
        assert_eq!(read(&b"x".repeat(100_000), 99_999).await, (false, true));
    }
}
