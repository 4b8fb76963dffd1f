//! Selections of requests and of their parts.

use sayso_review::RequestId;

use crate::proto;

/// A selection of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestQuery {
    /// Only held requests, all of them, oldest first. Otherwise the newest come first.
    pub held: bool,
    /// `None` for all sessions.
    pub session: Option<String>,
    /// Only requests with a lower number.
    pub before: Option<RequestId>,
    /// Maximum number of requests, up to 1,000. 0 for the engine's default of 20.
    pub limit: u32,
}

/// The parts of a request to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetailQuery {
    /// Maximum content per section, in bytes. `None` for the engine's default of 4,096.
    pub content_limit: Option<u32>,
    /// Only sections at this path, above or below it.
    pub path: Option<String>,
    /// Includes old and new values of edits.
    pub values: bool,
}

/// A selection of runs of subagents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubagentQuery {
    /// Only the run whose latest request has this number.
    pub request: Option<RequestId>,
    /// `None` for all sessions.
    pub session: Option<String>,
    /// Maximum content per section, in bytes; 0 for no sections. `None` for the engine's default of 4,096.
    pub content_limit: Option<u32>,
}

/// A body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyOf {
    /// As forwarded, or as it would be.
    Sent,
    /// As received from the agent.
    Received,
    /// The model's response.
    Answer,
    /// The edits of a held request, as a JSON Patch (RFC 6902).
    Patch,
}

impl From<BodyOf> for proto::RequestBody {
    fn from(body: BodyOf) -> Self {
        match body {
            BodyOf::Sent => Self::AsSent,
            BodyOf::Received => Self::AsReceived,
            BodyOf::Answer => Self::Answer,
            BodyOf::Patch => Self::Patch,
        }
    }
}

/// The body that a replay sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayOf {
    /// With its edits.
    Sent,
    /// As received from the agent.
    Received,
}

impl From<ReplayOf> for proto::replay_request_request::Form {
    fn from(replay: ReplayOf) -> Self {
        match replay {
            ReplayOf::Sent => Self::AsSent,
            ReplayOf::Received => Self::AsReceived,
        }
    }
}
