//! A scripted model server over HTTP on this machine.
//!
//! It implements all APIs of `sayso_wire`, with and without streaming, over HTTP/1.1 and HTTP/2. The path selects the API, below
//! any prefix. An [`Answer`] can fail, be delayed, be sent in chunks, and break off.
//!
//! - Rules are matched first ([`ModelServer::when`], [`ModelServer::once`]).
//! - Otherwise a request with tools gets the next turn of the script.
//! - Otherwise, or after the last turn, a request gets [`SIDE_TEXT`] and consumes no turn.
//!
//! Answers come from code, or from a YAML file ([`Script`], `docs/scripted-model.md`). The server records every request byte for byte
//! together with the state of its answer, so that a test can inspect it and wait for it. Tool calls in the answer to the n-th request
//! with tools have the ids `toolu_n_0`, `toolu_n_1`, … for Anthropic and `call_n_0`, … for the other APIs.
//!
//! ```
//! use sayso_scripted_model::{Answer, Latch, ModelServer, Turn};
//!
//! let turns = [Turn::calls("Write", serde_json::json!({"file_path": "a"})), Turn::says("bye")];
//! let server = ModelServer::bind(([127, 0, 0, 1], 0).into(), turns)?;
//! let latch = Latch::closed();
//! server.once(|request| request.last_user_text().contains("hurry"), Answer::error(529, "busy").header("retry-after", "1"));
//! server.when(|request| request.tools().is_empty(), Answer::from(Turn::says("A title")).paced_by(&latch));
//! latch.open();
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Limits
//!
//! Gemini streams are server-sent events only. Header names are recorded in lower case. The last 10,000 requests are kept, and a body
//! may have 64 MiB.

mod answer;
mod condition;
mod control;
mod encoding;
mod endpoint;
mod latch;
mod received;
mod script;
mod serve;
mod shared;
mod turn;

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

pub use answer::Answer;
pub use condition::Condition;
pub use control::CONTROL_PATH;
pub use latch::Latch;
pub use received::{Delivery, Received, ToolResult};
pub use script::{MAX_SCRIPT_BYTES, Script, ScriptError};
use shared::{Rule, Shared};
pub use turn::{ToolCall, Turn};

/// Answer to a request without tools, and to every request after the end of the script.
pub const SIDE_TEXT: &str = "That is all.";

/// A model server with scripted answers. Stops when dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// A separate runtime: a caller may pause the clock of its own runtime or block it. `None` only during drop.
    runtime: Option<Runtime>,
}

impl ModelServer {
    /// Starts a server that answers requests with tools with these turns, in order. Port 0 takes any free port.
    pub fn bind<Turns>(address: SocketAddr, turns: Turns) -> std::io::Result<Self>
    where
        Turns: IntoIterator,
        Turns::Item: Into<Answer>,
    {
        Self::serve(address, Shared::new(turns.into_iter().map(Into::into).collect()))
    }

    /// Starts a server that plays a script.
    pub fn play(address: SocketAddr, script: Script) -> std::io::Result<Self> {
        Self::serve(address, Shared::playing(script))
    }

    #[allow(clippy::disallowed_methods, reason = "this server has a socket of its own")]
    fn serve(address: SocketAddr, shared: Shared) -> std::io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "a model server owns its socket")]
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let shared = Arc::new(shared);
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("model").enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        runtime.spawn(serve::listen(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, runtime: Some(runtime) })
    }

    /// Appends an answer to the script.
    pub fn then(&self, answer: impl Into<Answer>) {
        self.shared.add_next(answer.into());
    }

    /// Answers every matching request, unless an earlier rule matches.
    pub fn when(&self, predicate: impl Fn(&Received) -> bool + Send + 'static, answer: impl Into<Answer>) {
        self.rule(predicate, answer, None);
    }

    /// Answers the next matching request, unless an earlier rule matches.
    pub fn once(&self, predicate: impl Fn(&Received) -> bool + Send + 'static, answer: impl Into<Answer>) {
        self.rule(predicate, answer, Some(1));
    }

    fn rule(
        &self,
        predicate: impl Fn(&Received) -> bool + Send + 'static,
        answer: impl Into<Answer>,
        times: Option<usize>,
    ) {
        self.shared.add_rule(Rule {
            predicate: Box::new(move |received, _| predicate(received)),
            answer: answer.into(),
            times,
        });
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

    /// Returns the unmet expectations of the script, oldest first.
    pub fn mismatches(&self) -> Vec<String> {
        self.shared.mismatches()
    }

    /// Releases this many chunks or answers that a script holds with `step` or `hold`.
    pub fn step(&self, count: usize) {
        self.shared.steps.release(count);
    }

    /// Blocks this thread until the predicate holds for the recorded requests.
    pub fn wait(&self, holds: impl FnMut(&[Received]) -> bool, limit: Duration) -> Result<(), Unmet> {
        self.shared.wait(holds, limit).map_err(|received| Unmet(summary(&received)))
    }

    /// Waits in this task until the predicate holds for the recorded requests. The limit is real time, independently of the clock of
    /// this task's runtime.
    pub async fn wait_async(&self, mut holds: impl FnMut(&[Received]) -> bool, limit: Duration) -> Result<(), Unmet> {
        let mut watch = self.shared.watch();
        let Some(runtime) = &self.runtime else { return Err(Unmet(summary(&self.received()))) };
        // Created in the server's runtime, whose clock runs in real time.
        let mut limit = runtime.spawn(async move { tokio::time::sleep(limit).await });
        while !holds(&self.received()) {
            let changed = std::pin::pin!(watch.changed());
            if let futures::future::Either::Right(_) = futures::future::select(changed, &mut limit).await {
                return Err(Unmet(summary(&self.received())));
            }
        }
        limit.abort();
        Ok(())
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

/// The requests at the time when a wait reached its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet(String);

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the condition did not become true; {}", self.0)
    }
}

impl std::error::Error for Unmet {}

/// Describes the recorded requests, one per line.
fn summary(received: &[Received]) -> String {
    let line = |received: &Received| {
        let Received { method, target, .. } = received;
        format!("\n  {method} {target}: {:?} after {} chunks", received.delivery(), received.chunks())
    };
    format!("there were {} requests:{}", received.len(), received.iter().map(line).collect::<String>())
}
