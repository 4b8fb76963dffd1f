//! A typed client of the engine.
//!
//! Calls use the Connect protocol over HTTP/1.1 with binary messages. The client dials for every new connection, so that it finds a
//! restarted engine, and repeats a call only if that is safe; see [`ClientError::Unreachable`]. Results are types of `review`.
//!
//! # Limits
//!
//! - It needs a tokio runtime with IO and time. One thread is enough.
//! - A response is buffered in memory.

mod agent;
mod call;
mod conversation;
mod decide;
mod delivery;
mod dial;
mod diff;
mod editor;
mod endpoint;
mod error;
mod inbox;
mod intent;
mod request;
mod responses;
mod retry;
mod review;
mod token;
mod transport;
mod watch;
mod workspace;

use std::sync::Arc;
use std::time::Duration;

use connectrpc::client::ClientConfig;
use http::Uri;
use http::header::AUTHORIZATION;
use sayso_review::Surface;

pub use agent::{AgentRole, Invocation, SessionSource};
pub use conversation::ConversationWatch;
pub use dial::{AbstractSocket, Bytes, Connection, Dial, Loopback, Reach, Socket};
pub use diff::DiffQuery;
pub use editor::{AnswerUse, Editor, EditorBuffer, EditorFile, EditorLineEdit, EditorOperation, EditorRequest};
pub use endpoint::UpstreamUrls;
pub use error::{ClientError, SideEffect};
pub use inbox::{AttachedSurface, CoveredDecision, InboxWatch, RuleSuggestion};
pub use intent::{AgentMessage, CallOver, NewSession, PreparedCall, Submission, ToolCall};
pub use responses::{ChangeDetails, Finished, PreviewDetail, RememberedRule, Status, UndoPlan};
pub use retry::RetryBudget;
pub use review::{Login, Proposed, StatusDetail};
pub use token::{NotAToken, Token};
pub use watch::{Watch, Watched};
pub use workspace::ToolGrants;

use transport::Transport;

// The client trusts its engine. These limits only keep a faulty one from exhausting memory.
const MAX_MESSAGE_BYTES: usize = 1 << 30;
const MAX_ELEMENT_BYTES: usize = 1 << 30;

const DEFAULT_RETRY_BUDGET: RetryBudget = RetryBudget::Limited(Duration::from_secs(2));

/// A client of one engine. Clones are cheap and share connections.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Transport,
    config: ClientConfig,
    retry_budget: RetryBudget,
    surface: Option<Surface>,
}

/// Role of a client that follows the event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Observer,
    /// A person decides here. While a surface is attached, pending decisions trigger no notification.
    Surface,
}

/// Subject of the preview of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewOf {
    Proposed,
    Applied,
}

/// Handling of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProposeMode {
    /// Record it, and leave it pending if policy asks.
    Record,
    /// Return the preview and the policy decision without recording.
    Preview,
    /// Record it, and leave it pending unless policy denies it.
    Ask,
}

/// Conditions under which an intent is left pending for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskMode {
    /// If policy says so.
    ByPolicy,
    /// Always, unless policy denies it.
    Always,
}

impl Client {
    /// Creates a client without connecting. The token is sent over networks only.
    pub fn new(dial: Arc<dyn Dial>, token: Option<Token>) -> Self {
        let mut config = ClientConfig::new(Uri::from_static("http://localhost"))
            .with_default_max_message_size(MAX_MESSAGE_BYTES)
            .with_default_element_memory_limit(MAX_ELEMENT_BYTES);
        if let (Some(token), Reach::Network) = (token, dial.reach()) {
            config = config.with_default_header(AUTHORIZATION, token.header());
        }
        Self { transport: Transport::new(dial), config, retry_budget: DEFAULT_RETRY_BUDGET, surface: None }
    }

    #[must_use]
    pub fn with_retry_budget(self, retry_budget: RetryBudget) -> Self {
        Self { retry_budget, ..self }
    }

    /// Names the surface on which a person decides. Other surfaces are shown the name.
    #[must_use]
    pub fn with_surface(self, surface: Surface) -> Self {
        Self { surface: Some(surface), ..self }
    }
}
