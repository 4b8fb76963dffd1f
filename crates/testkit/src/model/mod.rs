//! A scripted model over real HTTP on 127.0.0.1, for agents that believe they talk to a real one.
//!
//! It speaks Anthropic Messages and OpenAI Responses, streaming and not, as far as Claude Code and Codex look. A request with
//! tools gets the script's next turn; one without (for a title, say) gets a fixed short text and uses no turn up. Everything
//! that arrives is kept, so that a test can say what the model was told. The calls of the n-th turn are named `toolu_n_0`,
//! `toolu_n_1`, … for Claude Code and `call_n_0`, … for Codex.
//!
//! # Limits
//!
//! One request a connection, and no compressed bodies: neither agent compresses for a provider with a key of its own.

mod anthropic;
mod http;
mod openai;

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use http::{Reply, Request};

/// What the model says in place of a turn, when asked without tools or beyond the script.
pub const SIDE_TEXT: &str = "That is all.";

/// What the model answers to one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    text: Option<String>,
    calls: Vec<ToolCall>,
}

/// A tool that the model calls.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool's name.
    pub name: String,
    /// Its arguments. For Codex a string is the input of a free-form tool, such as `apply_patch`.
    pub input: Value,
}

impl Turn {
    /// Says something and, without calls, ends the agent's turn.
    pub fn says(text: &str) -> Self {
        Self { text: Some(text.to_owned()), calls: Vec::new() }
    }

    /// Calls a tool.
    pub fn calls(name: &str, input: impl Into<Value>) -> Self {
        Self::default().and_calls(name, input)
    }

    /// Calls another tool in the same answer.
    #[must_use]
    pub fn and_calls(mut self, name: &str, input: impl Into<Value>) -> Self {
        self.calls.push(ToolCall { name: name.to_owned(), input: input.into() });
        self
    }
}

/// Something that arrived.
#[derive(Clone, Debug)]
pub struct Received {
    /// The method.
    pub method: String,
    /// The path with its query.
    pub target: String,
    /// The headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, if it was JSON; null otherwise.
    pub body: Value,
}

impl Received {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Whether it asks the model for a turn of the script.
    fn asks_for_a_turn(&self) -> bool {
        let asks = self.path().ends_with("/messages") || self.path().ends_with("/responses");
        asks && self.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }
}

/// A model that says what it was told to say.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    turns: Mutex<VecDeque<Turn>>,
    received: Mutex<Vec<Received>>,
    over: AtomicBool,
}

impl ModelServer {
    /// Starts to answer with these turns, one after the other.
    pub fn start(script: impl IntoIterator<Item = Turn>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on this machine");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            turns: Mutex::new(script.into_iter().collect()),
            received: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let answering = Arc::clone(&shared);
        let listening = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if answering.over.load(Ordering::SeqCst) {
                    return;
                }
                let answering = Arc::clone(&answering);
                std::thread::spawn(move || answering.answer(stream));
            }
        });
        Self { address, shared, listening: Some(listening) }
    }

    /// Where it is, without a path: what Claude Code calls its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bodies of the requests that were answered with a turn, in order.
    pub fn requests(&self) -> Vec<Value> {
        self.received().into_iter().filter(Received::asks_for_a_turn).map(|received| received.body).collect()
    }

    /// Everything that arrived, in order.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().expect("no thread panics with it").clone()
    }

    /// How many turns nobody has asked for yet.
    pub fn turns_left(&self) -> usize {
        self.shared.turns.lock().expect("no thread panics with it").len()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes the listener, which then sees that it is over.
        drop(TcpStream::connect(self.address));
        if let Some(listening) = self.listening.take() {
            drop(listening.join());
        }
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) {
        // A client that goes silent costs this thread only.
        drop(stream.set_read_timeout(Some(Duration::from_secs(30))));
        let Some(request) = Request::read(&mut stream) else { return };
        let reply = self.reply(request);
        // A client that went away is its own business.
        drop(reply.write(&mut stream));
    }

    fn reply(&self, request: Request) -> Reply {
        let received = Received {
            method: request.method,
            target: request.target,
            headers: request.headers,
            body: serde_json::from_slice(&request.body).unwrap_or(Value::Null),
        };
        // Recorded and given its turn in one step, so that the n-th request has the n-th turn.
        let (id, turn) = {
            let mut kept = self.received.lock().expect("no thread panics with it");
            kept.push(received.clone());
            if received.asks_for_a_turn() {
                let count = kept.iter().filter(|received| received.asks_for_a_turn()).count();
                (count.to_string(), self.turns.lock().expect("no thread panics with it").pop_front())
            } else {
                (format!("side_{}", kept.len()), None)
            }
        };
        let turn = turn.unwrap_or_else(|| Turn::says(SIDE_TEXT));
        let streams = received.body["stream"] == true;
        match (received.method.as_str(), received.path()) {
            _ if received.header("upgrade").is_some() => Reply::json(426, &json!({})),
            ("POST", path) if path.ends_with("/messages/count_tokens") => {
                Reply::json(200, &json!({"input_tokens": 1000}))
            }
            ("POST", path) if path.ends_with("/messages") && streams => Reply::Events(anthropic::events(&id, &turn)),
            ("POST", path) if path.ends_with("/messages") => Reply::json(200, &anthropic::message(&id, &turn)),
            ("POST", path) if path.ends_with("/responses") && streams => Reply::Events(openai::events(&id, &turn)),
            ("POST", path) if path.ends_with("/responses") => Reply::json(200, &openai::response(&id, &turn)),
            ("GET", path) if path.ends_with("/models") => {
                Reply::json(200, &json!({"object": "list", "data": [], "models": []}))
            }
            ("HEAD", _) => Reply::Json(200, String::new()),
            (_, "/" | "/api/hello") => Reply::json(200, &json!({})),
            (method, path) => {
                let message = format!("the scripted model knows no {method} {path}");
                Reply::json(404, &json!({"type": "error", "error": {"type": "not_found_error", "message": message}}))
            }
        }
    }
}

/// An event of a stream, whose name is its `type`.
fn event(mut data: Value, name: &str) -> Value {
    data["type"] = name.into();
    data
}

/// A text in pieces, as a model sends it; never none.
fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters.chunks(24).map(|piece| piece.iter().collect()).collect()
}
