//! Requests to a model.

use bytes::Bytes;
use futures::stream::BoxStream;
use sayso_wire::stream::Api;

/// A request to a model, without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRequest {
    pub session: String,
    /// Session that delegated to this session.
    pub parent: Option<String>,
    pub invocation: String,
    pub reason: RequestReason,
    pub api: Api,
    /// Name of the configured upstream.
    pub upstream: String,
    pub model: String,
    /// Path with query below the base URL of the upstream, such as `/v1/messages`.
    pub path: String,
    /// Headers without credentials. They carry the session for the proxy's attribution.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestReason {
    /// The next step of the conversation.
    Turn,
    /// A summary that replaces the older part of the conversation.
    Compaction,
}

/// Chunks of a response body.
pub type BodyStream = BoxStream<'static, Result<Bytes, SendError>>;

/// The head of a response, and its body as a stream.
pub struct AgentResponse {
    /// Number of the request in the engine's log.
    pub request: Option<u64>,
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: BodyStream,
}

impl std::fmt::Debug for AgentResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { request, status, headers, .. } = self;
        f.debug_struct("AgentResponse")
            .field("request", request)
            .field("status", status)
            .field("headers", headers)
            .finish_non_exhaustive()
    }
}

/// A request that got no response, or a response that broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// A person cancelled the request before it was sent.
    #[error("{message}")]
    Canceled { message: String },
    /// A person or a rule rejected the request.
    #[error("the request was rejected: {message}")]
    Rejected { message: String },
    /// The upstream is not usable as configured, for example without a key.
    #[error("{message}")]
    NotConfigured { message: String, hint: String },
    /// The connection failed or broke off. The agent retries if no content was received.
    #[error("{message}")]
    Connection { message: String },
}
