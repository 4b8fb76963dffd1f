//! The thread on which requests to models pass.
//!
//! One for all of them: whoever passes a request on wakes the one who writes to the upstream, and is woken by it, several times. From
//! one thread to another each of these goes through the system's scheduler, which takes longer than all that is done with the request.
//! What takes a while, such as looking at a request, is done elsewhere.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A running thread for requests to models.
pub(crate) struct Traffic {
    /// What is spawned there runs there.
    pub(crate) handle: Handle,
    over: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Traffic {
    /// Starts the thread, which waits so long for work in progress at its end.
    pub(crate) fn start(last_work: Duration) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (over, ends) = oneshot::channel();
        let pass = move || {
            // Told, or nobody is left who could tell.
            let _ = runtime.block_on(ends);
            runtime.shutdown_timeout(last_work);
        };
        let thread = std::thread::Builder::new().name("traffic".to_owned()).spawn(pass)?;
        Ok(Self { handle, over, thread })
    }

    /// Ends it, once all is passed on that is to be.
    pub(crate) fn end(self) {
        drop(self.over);
        // It has nothing left to wait for but work in progress.
        let _ = self.thread.join();
    }
}

/// Enough for a method and the beginning of a path.
const GLANCE: usize = 16;

/// Whether a connection begins with a request to a model. Nothing is taken from it.
pub(crate) async fn begins(stream: &TcpStream) -> io::Result<bool> {
    let mut glance = [0; GLANCE];
    let seen = stream.peek(&mut glance).await?;
    Ok(is_to_model(&glance[..seen]))
}

/// Whether a request that begins so is beneath the entrance. What does not speak HTTP/1.1 may be as well; it is served all the same.
fn is_to_model(beginning: &[u8]) -> bool {
    let path = beginning.iter().position(|byte| *byte == b' ').map(|space| &beginning[space + 1..]);
    path.is_some_and(|path| path.starts_with(super::listen::ENTRANCE.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_to_a_model_is_known_by_how_it_begins() {
        assert!(is_to_model(b"POST /p/0123/ant"));
        assert!(is_to_model(b"GET /p/0123/anth"));
        assert!(!is_to_model(b"POST /sayso.v1.R"));
        assert!(!is_to_model(b"GET / HTTP/1.1\r\n"));
        assert!(!is_to_model(b"PRI * HTTP/2.0\r\n"));
        assert!(!is_to_model(b"POST"));
        assert!(!is_to_model(b""));
    }
}
