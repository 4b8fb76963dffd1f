//! What came of a request at its upstream.

use serde::{Deserialize, Serialize};

use super::BodyRecord;

/// A request that an upstream did not take for now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnedAway {
    /// How often it was sent by then.
    pub tried: u32,
    /// The upstream's status, if it said anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why, for a person.
    pub message: String,
    /// When it is sent again, in milliseconds since 1970.
    pub again: i64,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAnswer {
    /// The status.
    pub status: u16,
    /// The body as it was passed on, decoded.
    pub body: BodyRecord,
    /// What sort of body it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// What it cost, as the API counts.
    #[serde(default)]
    pub usage: TokenUsage,
    /// Why the model stopped, as the API says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// What went wrong in the stream, or with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The beginning of what an error says for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Milliseconds from sending it to the first byte of the answer.
    pub first_byte_ms: u64,
    /// Milliseconds from sending it to the end of the answer.
    pub total_ms: u64,
    /// How often it was sent before that answer came.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
}

impl RequestAnswer {
    /// Whether a client may send the same again after it: with another key, or since the model was overloaded or the answer is not whole.
    pub fn may_come_again(&self) -> bool {
        matches!(self.status, 401 | 403 | 407 | 408 | 409 | 429 | 500..) || self.problem.is_some()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Token counts as the API counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Tokens of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Tokens of the request that came from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Tokens of the request that went into a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<u64>,
    /// Tokens of the answer that were thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}
