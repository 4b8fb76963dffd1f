//! The upstream's retries, response and token usage of a request.

use serde::{Deserialize, Serialize};

use super::BodyRecord;

/// A retryable upstream error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamRetry {
    /// Number of attempts so far.
    pub attempts: u32,
    /// HTTP status; `None` if there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Cause, for a person.
    pub message: String,
    /// Time of the next attempt, in milliseconds since 1970.
    pub next_attempt_ms: i64,
}

/// The response of the upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAnswer {
    pub status: u16,
    /// Decoded body, as forwarded to the client.
    pub body: BodyRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Token counts as reported by the API.
    #[serde(default)]
    pub usage: TokenUsage,
    /// Finish reason, in the API's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// Error within the stream, or the reason why the stream is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Error message of the upstream, truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Milliseconds from sending the request to the first byte of the response.
    pub first_byte_ms: u64,
    /// Milliseconds from sending the request to the end of the response.
    pub total_ms: u64,
    /// Number of failed attempts before this response.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
}

impl RequestAnswer {
    /// `true` if a client may retry after this response: authentication failed, the upstream was overloaded, or the
    /// response is incomplete.
    pub fn may_be_retried(&self) -> bool {
        matches!(self.status, 401 | 403 | 407 | 408 | 409 | 429 | 500..) || self.problem.is_some()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Token counts as reported by the API; `None` if the API does not report a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Input tokens read from a prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Input tokens written to a prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<u64>,
    /// Output tokens spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}
