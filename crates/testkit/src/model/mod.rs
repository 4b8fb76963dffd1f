//! A scripted model over real HTTP on 127.0.0.1, for agents that believe they talk to a real one.
//!
//! It speaks all the APIs that `sayso_wire` does, streaming and not, told apart by path, beneath any prefix, over HTTP/1.1 and HTTP/2.
//! A request with tools gets the script's next turn; one without (for a title, say) gets a fixed short text and uses no turn up.
//! Rules by what a request looks like come before that ([`ModelServer::when`], [`ModelServer::once`]). An [`Answer`] can fail, wait,
//! come chunk by chunk and break. Everything that arrives is kept byte for byte with what became of it, so that a test can say what the
//! model was told, and wait for it. The calls in the answer to the n-th request with tools are named `toolu_n_0`, `toolu_n_1`, … for
//! Anthropic and `call_n_0`, … for the others.
//!
//! ```
//! use sayso_testkit::model::{Answer, Gate, ModelServer, Turn};
//!
//! let server = ModelServer::start([Turn::calls("Write", serde_json::json!({"file_path": "a"})), Turn::says("bye")]);
//! let gate = Gate::shut();
//! server.once(|request| request.last_user_text().contains("hurry"), Answer::error(529, "busy").header("retry-after", "1"));
//! server.when(|request| request.tools().is_empty(), Answer::from(Turn::says("A title")).paced_by(&gate));
//! gate.open();
//! ```
//!
//! # Limits
//!
//! Gemini's streams are server-sent events only. The names of headers are in lower case, whatever the client wrote.

mod answer;
mod asked;
mod encoding;
mod gate;
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
pub use gate::Gate;
pub use received::{Fate, Received, ToolResult};
use shared::{Rule, Shared, Times};
pub use turn::{ToolCall, Turn};

/// What the model says in place of a turn, when asked without tools or beyond the script.
pub const SIDE_TEXT: &str = "That is all.";

/// How long a test waits for something that must happen before it gives up.
const LIMIT: Duration = Duration::from_mins(1);

/// A model that says what it was told to say.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Its own, so that a test's clock or blocking is not its concern. There until it is dropped.
    runtime: Option<Runtime>,
}

impl ModelServer {
    /// Starts to answer requests with tools with these turns, one after the other.
    pub fn start(script: impl IntoIterator<Item = Turn>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on this machine");
        let address = listener.local_addr().expect("a bound socket has an address");
        listener.set_nonblocking(true).expect("a socket can wait");
        let shared = Arc::new(Shared::new(script.into_iter().map(Answer::from).collect()));
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener).expect("a bound socket")
        };
        runtime.spawn(serve::listen(listener, Arc::clone(&shared)));
        Self { address, shared, runtime: Some(runtime) }
    }

    /// Answers, after those that are waiting already, the next request with tools.
    pub fn then(&self, answer: impl Into<Answer>) {
        self.shared.add_next(answer.into());
    }

    /// Answers every request that is like this, unless a rule before this one does.
    pub fn when(&self, predicate: impl Fn(&Received) -> bool + Send + 'static, answer: impl Into<Answer>) {
        self.rule(predicate, answer, Times::Always);
    }

    /// Answers the next request that is like this, unless a rule before this one does.
    pub fn once(&self, predicate: impl Fn(&Received) -> bool + Send + 'static, answer: impl Into<Answer>) {
        self.rule(predicate, answer, Times::Once);
    }

    fn rule(&self, predicate: impl Fn(&Received) -> bool + Send + 'static, answer: impl Into<Answer>, times: Times) {
        self.shared.add_rule(Rule { predicate: Box::new(predicate), answer: answer.into(), times });
    }

    /// Where it is, without a path: what Claude Code calls its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The bodies of the requests with tools, in order.
    pub fn requests(&self) -> Vec<Value> {
        self.received().into_iter().filter(Received::asks_for_a_turn).map(|received| received.body).collect()
    }

    /// Everything that arrived, in order.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received()
    }

    /// How many requests there were to whom this applies.
    pub fn hits(&self, predicate: impl Fn(&Received) -> bool) -> usize {
        self.received().iter().filter(|received| predicate(received)).count()
    }

    /// How many turns nobody has asked for yet.
    pub fn turns_left(&self) -> usize {
        self.shared.queued()
    }

    /// Waits in this thread until something holds of all that arrived.
    ///
    /// # Panics
    ///
    /// If it does not within a minute.
    pub fn wait_until(&self, holds: impl FnMut(&[Received]) -> bool) {
        if let Err(received) = self.shared.wait(holds, LIMIT) {
            panic!("what was waited for did not happen; {}", told(&received));
        }
    }

    /// Waits in this task until something holds of all that arrived.
    ///
    /// # Panics
    ///
    /// If it does not within a minute of real time, whatever the clock of this task says.
    pub async fn until(&self, mut holds: impl FnMut(&[Received]) -> bool) {
        let mut watch = self.shared.watch();
        // Made inside, so that it takes that runtime's time.
        let runtime = self.runtime.as_ref().expect("it is there until this is dropped");
        let mut limit = runtime.spawn(async { tokio::time::sleep(LIMIT).await });
        while !holds(&self.received()) {
            let changed = std::pin::pin!(watch.changed());
            if let futures::future::Either::Right(_) = futures::future::select(changed, &mut limit).await {
                panic!("what was waited for did not happen; {}", told(&self.received()));
            }
        }
        limit.abort();
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Without waiting: this may be a task of another runtime.
            runtime.shutdown_background();
        }
    }
}

/// What arrived, in a line each.
fn told(received: &[Received]) -> String {
    let line = |received: &Received| {
        let Received { method, target, .. } = received;
        format!("\n  {method} {target}: {:?} after {} chunks", received.fate(), received.chunks())
    };
    format!("there were {} requests:{}", received.len(), received.iter().map(line).collect::<String>())
}
