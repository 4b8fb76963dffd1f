//! A scripted model server over HTTP on 127.0.0.1.
//!
//! It implements all APIs of `sayso_wire`, with and without streaming, over HTTP/1.1 and HTTP/2. The path selects the API, below
//! any prefix. An [`Answer`] can fail, be delayed, be sent in chunks, and break off.
//!
//! - Rules are matched first ([`ModelServer::when`], [`ModelServer::once`]).
//! - Otherwise a request with tools gets the next turn of the script.
//! - Otherwise, or after the last turn, a request gets [`SIDE_TEXT`] and consumes no turn.
//!
//! The server records every request byte for byte together with the state of its answer, so that a test can inspect it and wait
//! for it. Tool calls in the answer to the n-th request with tools have the ids `toolu_n_0`, `toolu_n_1`, … for Anthropic and
//! `call_n_0`, … for the other APIs.
//!
//! ```
//! use sayso_testkit::model::{Answer, Latch, ModelServer, Turn};
//!
//! let server = ModelServer::start([Turn::calls("Write", serde_json::json!({"file_path": "a"})), Turn::says("bye")]);
//! let latch = Latch::closed();
//! server.once(|request| request.last_user_text().contains("hurry"), Answer::error(529, "busy").header("retry-after", "1"));
//! server.when(|request| request.tools().is_empty(), Answer::from(Turn::says("A title")).paced_by(&latch));
//! latch.open();
//! ```
//!
//! # Limits
//!
//! Gemini streams are server-sent events only. Header names are recorded in lower case.

mod answer;
mod encoding;
mod endpoint;
mod latch;
mod received;
mod serve;
mod shared;
mod turn;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

pub use answer::Answer;
pub use latch::Latch;
pub use received::{Delivery, Received, ToolResult};
use shared::{Rule, Shared, Times};
pub use turn::{ToolCall, Turn};

/// Answer to a request without tools, and to every request after the end of the script.
pub const SIDE_TEXT: &str = "That is all.";

/// Time after which a waiting test fails.
const WAIT_LIMIT: Duration = Duration::from_mins(1);

/// A model server with scripted answers. Stops when dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// A separate runtime: a test may pause the clock of its own runtime or block it. `None` only during drop.
    runtime: Option<Runtime>,
}

impl ModelServer {
    /// Starts a server that answers requests with tools with these turns, in order.
    pub fn start(script: impl IntoIterator<Item = Turn>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on this machine");
        let address = listener.local_addr().expect("a bound socket has an address");
        listener.set_nonblocking(true).expect("a socket can be non-blocking");
        let shared = Arc::new(Shared::new(script.into_iter().map(Answer::from).collect()));
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener).expect("a bound socket")
        };
        runtime.spawn(serve::listen(listener, Arc::clone(&shared)));
        Self { address, shared, runtime: Some(runtime) }
    }

    /// Appends an answer to the script.
    pub fn then(&self, answer: impl Into<Answer>) {
        self.shared.add_next(answer.into());
    }

    /// Answers every matching request, unless an earlier rule matches.
    pub fn when(&self, predicate: impl Fn(&Received) -> bool + Send + 'static, answer: impl Into<Answer>) {
        self.rule(predicate, answer, Times::Always);
    }

    /// Answers the next matching request, unless an earlier rule matches.
    pub fn once(&self, predicate: impl Fn(&Received) -> bool + Send + 'static, answer: impl Into<Answer>) {
        self.rule(predicate, answer, Times::Once);
    }

    fn rule(&self, predicate: impl Fn(&Received) -> bool + Send + 'static, answer: impl Into<Answer>, times: Times) {
        self.shared.add_rule(Rule { predicate: Box::new(predicate), answer: answer.into(), times });
    }

    /// Returns the server's URL without a path, as Claude Code expects its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the bodies of the requests with tools, in order of arrival.
    pub fn requests(&self) -> Vec<Value> {
        self.received().into_iter().filter(Received::asks_for_a_turn).map(|received| received.body).collect()
    }

    /// Returns all requests in order of arrival.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received()
    }

    /// Counts the requests that match.
    pub fn hits(&self, predicate: impl Fn(&Received) -> bool) -> usize {
        self.received().iter().filter(|received| predicate(received)).count()
    }

    /// Returns the number of turns left in the script.
    pub fn turns_left(&self) -> usize {
        self.shared.queued()
    }

    /// Blocks this thread until the predicate holds for the recorded requests.
    ///
    /// # Panics
    ///
    /// After a minute.
    pub fn wait_until(&self, holds: impl FnMut(&[Received]) -> bool) {
        if let Err(received) = self.shared.wait(holds, WAIT_LIMIT) {
            panic!("the condition did not become true; {}", summary(&received));
        }
    }

    /// Waits in this task until the predicate holds for the recorded requests.
    ///
    /// # Panics
    ///
    /// After a minute of real time, independently of the clock of this task's runtime.
    pub async fn until(&self, mut holds: impl FnMut(&[Received]) -> bool) {
        let mut watch = self.shared.watch();
        // Created in the server's runtime, whose clock runs in real time.
        let runtime = self.runtime.as_ref().expect("the runtime exists until drop");
        let mut limit = runtime.spawn(async { tokio::time::sleep(WAIT_LIMIT).await });
        while !holds(&self.received()) {
            let changed = std::pin::pin!(watch.changed());
            if let futures::future::Either::Right(_) = futures::future::select(changed, &mut limit).await {
                panic!("the condition did not become true; {}", summary(&self.received()));
            }
        }
        limit.abort();
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Must not block: the caller may be a task of another runtime.
            runtime.shutdown_background();
        }
    }
}

/// Describes the recorded requests, one per line.
fn summary(received: &[Received]) -> String {
    let line = |received: &Received| {
        let Received { method, target, .. } = received;
        format!("\n  {method} {target}: {:?} after {} chunks", received.delivery(), received.chunks())
    };
    format!("there were {} requests:{}", received.len(), received.iter().map(line).collect::<String>())
}
