//! Scripted answers: content, timing and faults.

use std::time::Duration;

use bytes::Bytes;
use sayso_wire::stream::{Api, ModelScript};

use crate::condition::Condition;
use crate::{Latch, Turn};

/// Answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) content: Content,
    pub(crate) headers: Vec<(String, String)>,
    /// Holds back the status.
    pub(crate) before: Option<Latch>,
    pub(crate) pace: Option<Pace>,
    pub(crate) keep_alives: usize,
    pub(crate) chunk_bytes: Option<usize>,
    pub(crate) cut_after_chunks: Option<usize>,
    pub(crate) cut_after_bytes: Option<usize>,
    /// Replaces `{{user}}`, `{{result}}` and `{{model}}` in the turn.
    pub(crate) has_placeholders: bool,
    /// Requirement on the request. If it does not hold, the server answers with an error, and the answer stays the next one.
    pub(crate) expectation: Option<Expectation>,
}

/// Requirement of a script on the request that gets an answer.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    pub(crate) condition: Condition,
    /// Place in the script, as `FILE:LINE`.
    pub(crate) place: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Turn(Turn),
    Script(ModelScript),
    /// An error in the format of the API.
    Error {
        status: u16,
        message: String,
    },
    Exactly {
        status: u16,
        content_type: String,
        body: Vec<Bytes>,
    },
    /// Closes the connection without a status.
    HangUp,
}

/// Condition for sending the next chunk.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    Latch(Latch),
    Every(Duration),
}

impl Answer {
    pub(crate) fn new(content: Content) -> Self {
        Self {
            content,
            headers: Vec::new(),
            before: None,
            pace: None,
            keep_alives: 0,
            chunk_bytes: None,
            cut_after_chunks: None,
            cut_after_bytes: None,
            has_placeholders: false,
            expectation: None,
        }
    }

    /// An answer with this body and the content type of JSON.
    pub fn status(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = vec![body.into().into()];
        Self::new(Content::Exactly { status, content_type: "application/json".to_owned(), body })
    }

    /// An error in the format of the requested API.
    pub fn error(status: u16, message: &str) -> Self {
        Self::new(Content::Error { status, message: message.to_owned() })
    }

    /// An event stream of these bytes, which need not be valid events.
    pub fn stream<Chunk: Into<Vec<u8>>>(chunks: impl IntoIterator<Item = Chunk>) -> Self {
        let body = chunks.into_iter().map(|chunk| chunk.into().into()).collect();
        Self::new(Content::Exactly { status: 200, content_type: "text/event-stream".to_owned(), body })
    }

    /// Closes the connection without a status.
    pub fn hang_up() -> Self {
        Self::new(Content::HangUp)
    }

    /// Sets a header, such as `retry-after`.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Holds back the status until the latch releases it.
    #[must_use]
    pub fn held_by(mut self, latch: &Latch) -> Self {
        self.before = Some(latch.clone());
        self
    }

    /// Sends the status at once, and each chunk when the latch releases it. A chunk is an event of a stream, or a whole body that
    /// is not streamed. The end of a stream is not held back.
    #[must_use]
    pub fn paced_by(mut self, latch: &Latch) -> Self {
        self.pace = Some(Pace::Latch(latch.clone()));
        self
    }

    /// Sends the status at once, and a chunk after each pause. For experiments with real clients; tests use a [`Latch`].
    #[must_use]
    pub fn paced_every(mut self, pause: Duration) -> Self {
        self.pace = Some(Pace::Every(pause));
        self
    }

    /// Sends the API's keep-alive this many times before the first event, each as a chunk.
    #[must_use]
    pub fn after_keep_alives(mut self, count: usize) -> Self {
        self.keep_alives = count;
        self
    }

    /// Splits the body into chunks of this size, independent of event boundaries.
    #[must_use]
    pub fn in_chunks_of(mut self, bytes: usize) -> Self {
        self.chunk_bytes = Some(bytes);
        self
    }

    /// Breaks the connection after this many chunks. In HTTP/2, resets the stream of this request.
    #[must_use]
    pub fn cut_after(mut self, chunks: usize) -> Self {
        self.cut_after_chunks = Some(chunks);
        self
    }

    /// Breaks the connection after this many bytes of the body.
    #[must_use]
    pub fn cut_after_bytes(mut self, bytes: usize) -> Self {
        self.cut_after_bytes = Some(bytes);
        self
    }
}

impl From<Turn> for Answer {
    fn from(turn: Turn) -> Self {
        Self::new(Content::Turn(turn))
    }
}

impl From<ModelScript> for Answer {
    /// Uses the script's own id and model.
    fn from(script: ModelScript) -> Self {
        Self::new(Content::Script(script))
    }
}

/// Renders an error in the format of an API. The status determines the error type.
pub(crate) fn error_body(api: Option<Api>, status: u16, message: &str) -> Vec<u8> {
    let error = match api {
        Some(Api::AnthropicMessages) | None => {
            let kind = match status {
                401 => "authentication_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                500.. => "api_error",
                _ => "invalid_request_error",
            };
            serde_json::json!({"type": "error", "error": {"type": kind, "message": message}})
        }
        Some(Api::OpenAiChat | Api::OpenAiResponses) => {
            let kind = match status {
                429 => "rate_limit_exceeded",
                500.. => "server_error",
                _ => "invalid_request_error",
            };
            serde_json::json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
        }
        Some(Api::Gemini) => {
            let kind = match status {
                404 => "NOT_FOUND",
                429 => "RESOURCE_EXHAUSTED",
                503 => "UNAVAILABLE",
                500.. => "INTERNAL",
                _ => "INVALID_ARGUMENT",
            };
            serde_json::json!({"error": {"code": status, "message": message, "status": kind}})
        }
    };
    error.to_string().into_bytes()
}
