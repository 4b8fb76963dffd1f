//! A typed client of the engine.
//!
//! Calls go over HTTP/1.1 in the Connect protocol with binary messages: over one connection at a time, which costs the least. The
//! client dials when it has to, so that an engine that went away and came back is found again; whether a call is made again then
//! depends on what it does, see [`ClientError::Unreachable`]. What it returns is in the words of `review`.
//!
//! # Limits
//!
//! - It needs a tokio runtime with IO and time, of which one thread is enough.
//! - An answer is held in memory whole.

mod answers;
mod call;
mod decide;
mod dial;
mod error;
mod intent;
mod patience;
mod request;
mod review;
mod token;
mod transport;
mod watch;
mod workspace;
mod written;

use std::sync::Arc;
use std::time::Duration;

use connectrpc::client::ClientConfig;
use http::Uri;
use http::header::AUTHORIZATION;

pub use answers::{Finished, Progress, Status, UndoPlan, View};
pub use dial::{AbstractSocket, Bytes, Connection, Dial, Loopback, Reach, Socket};
pub use error::{ClientError, Fate};
pub use intent::{AgentMessage, CallOver, NewSession, PreparedCall, Submission, ToolCall};
pub use patience::Patience;
pub use review::{Extent, Login, Proposed};
pub use token::{NotAToken, Token};
pub use watch::{Watch, Watched};
pub use workspace::ToolGrants;

use transport::Transport;

/// The engine is as trustworthy as its client: these only keep a broken one from taking all memory.
const LARGEST_MESSAGE: usize = 1 << 30;
const MOST_ELEMENTS: usize = 1 << 30;

/// A client of one engine. Cheap to clone: clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Transport,
    config: ClientConfig,
    patience: Patience,
}

/// What a watcher is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It looks on.
    Observer,
    /// A person decides there.
    Surface,
}

/// What of a change is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// What was proposed.
    Proposed,
    /// What happened.
    Applied,
}

/// What becomes of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposing {
    /// It is recorded, and waits for a verdict where policy asks.
    Record,
    /// It is only shown, with what policy says to it.
    Preview,
    /// It is recorded, and waits for a verdict even where policy would let it through.
    Ask,
}

/// Who may let an intent through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Policy, and a person where policy asks.
    Policy,
    /// A person, whatever policy says; policy may still deny it.
    Person,
}

impl Client {
    /// A client that reaches its engine in this way. The token is shown over networks only.
    pub fn new(dial: Arc<dyn Dial>, token: Option<Token>) -> Self {
        let mut config = ClientConfig::new(Uri::from_static("http://localhost"))
            .with_default_max_message_size(LARGEST_MESSAGE)
            .with_default_element_memory_limit(MOST_ELEMENTS);
        if let (Some(token), Reach::Network) = (token, dial.reach()) {
            config = config.with_default_header(AUTHORIZATION, token.header());
        }
        Self { transport: Transport::new(dial), config, patience: Patience::For(Duration::from_secs(2)) }
    }

    /// The same client, which waits longer or shorter for an engine that is not there.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }
}
