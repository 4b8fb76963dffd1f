//! The thread that forwards requests to models.
//!
//! Forwarding one request switches several times between the task that serves the agent and the task that writes to the upstream. On
//! one thread, a switch is a function call. Between two threads it goes through the kernel's scheduler, which takes longer than the
//! rest of the work. Slow work, such as previews of requests, runs on other threads.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

pub(crate) struct ProxyThread {
    /// Runtime of the thread.
    pub(crate) handle: Handle,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl ProxyThread {
    /// Starts the thread. At its end it waits up to `shutdown_limit` for blocking work.
    pub(crate) fn start(shutdown_limit: Duration) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            // An error means that the sender was dropped, which also stops the thread.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(shutdown_limit);
        };
        let thread = std::thread::Builder::new().name("proxy".to_owned()).spawn(run)?;
        Ok(Self { handle, stop, thread })
    }

    /// Stops the thread. The caller has awaited all connections before.
    pub(crate) fn stop(self) {
        drop(self.stop);
        // Fails only if the thread panicked, and the panic hook has logged that.
        let _ = self.thread.join();
    }
}

/// Bytes that hold a method and the start of a path.
const PEEK_BYTES: usize = 16;

/// `true` if a connection starts with a request to a model. Consumes no bytes.
pub(crate) async fn starts_with_model_request(stream: &TcpStream) -> io::Result<bool> {
    let mut peeked = [0; PEEK_BYTES];
    let size = stream.peek(&mut peeked).await?;
    Ok(is_model_request(&peeked[..size]))
}

/// `true` if the path is below `/p/`. Always `false` for HTTP/2, whose model requests are served on other threads.
fn is_model_request(start: &[u8]) -> bool {
    let path = start.iter().position(|byte| *byte == b' ').map(|space| &start[space + 1..]);
    path.is_some_and(|path| path.starts_with(super::listen::MODEL_PATH.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_request_is_recognised_by_path() {
        assert!(is_model_request(b"POST /p/0123/ant"));
        assert!(is_model_request(b"GET /p/0123/anth"));
        assert!(!is_model_request(b"POST /sayso.v1.R"));
        assert!(!is_model_request(b"GET / HTTP/1.1\r\n"));
        assert!(!is_model_request(b"PRI * HTTP/2.0\r\n"));
        assert!(!is_model_request(b"POST"));
        assert!(!is_model_request(b""));
    }
}
