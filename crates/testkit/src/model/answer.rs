//! How a request is answered: with what, when, and how far.

use std::time::Duration;

use bytes::Bytes;
use sayso_wire::stream::{Api, Script};

use super::{Gate, Turn};

/// What becomes of a request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) content: Content,
    pub(super) headers: Vec<(String, String)>,
    pub(super) before: Option<Gate>,
    pub(super) pace: Option<Pace>,
    pub(super) keep_alives: usize,
    pub(super) chunk: Option<usize>,
    pub(super) cut: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Turn(Turn),
    Script(Script),
    /// An error in the form of the API.
    Error {
        status: u16,
        message: String,
    },
    /// Exactly this.
    Exactly {
        status: u16,
        content_type: &'static str,
        body: Vec<Bytes>,
    },
    /// No answer at all.
    HangUp,
}

/// When the next chunk may go.
#[derive(Clone, Debug)]
pub(super) enum Pace {
    Gate(Gate),
    Every(Duration),
}

impl Answer {
    fn new(content: Content) -> Self {
        Self { content, headers: Vec::new(), before: None, pace: None, keep_alives: 0, chunk: None, cut: None }
    }

    /// An HTTP answer with exactly this body, said to be JSON.
    pub fn status(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = vec![body.into().into()];
        Self::new(Content::Exactly { status, content_type: "application/json", body })
    }

    /// An HTTP error in the form of the API that is asked.
    pub fn error(status: u16, message: &str) -> Self {
        Self::new(Content::Error { status, message: message.to_owned() })
    }

    /// A stream of exactly these bytes, which need not be one.
    pub fn stream<Chunk: Into<Vec<u8>>>(chunks: impl IntoIterator<Item = Chunk>) -> Self {
        let body = chunks.into_iter().map(|chunk| chunk.into().into()).collect();
        Self::new(Content::Exactly { status: 200, content_type: "text/event-stream", body })
    }

    /// The connection ends without a status.
    pub fn hang_up() -> Self {
        Self::new(Content::HangUp)
    }

    /// With a header, such as `retry-after`. One that would be there anyway is replaced.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Not before the gate lets it through: until then the client hears nothing.
    #[must_use]
    pub fn waits_at(mut self, gate: &Gate) -> Self {
        self.before = Some(gate.clone());
        self
    }

    /// The status at once, and then each chunk when the gate lets it through. A chunk is an event of a stream, or a body that
    /// is not streamed. The end of a stream needs no permission.
    #[must_use]
    pub fn paced_by(mut self, gate: &Gate) -> Self {
        self.pace = Some(Pace::Gate(gate.clone()));
        self
    }

    /// The status at once, and then a chunk at a time. For trying out what real clients put up with: a test takes a [`Gate`].
    #[must_use]
    pub fn paced_every(mut self, pause: Duration) -> Self {
        self.pace = Some(Pace::Every(pause));
        self
    }

    /// The API's sign of life so many times before a stream begins, each a chunk.
    #[must_use]
    pub fn after_keep_alives(mut self, count: usize) -> Self {
        self.keep_alives = count;
        self
    }

    /// Chunks of so many bytes, wherever events begin and end.
    #[must_use]
    pub fn in_chunks_of(mut self, bytes: usize) -> Self {
        self.chunk = Some(bytes);
        self
    }

    /// The connection breaks after so many chunks, or this request's stream where others share the connection.
    #[must_use]
    pub fn cut_after(mut self, chunks: usize) -> Self {
        self.cut = Some(chunks);
        self
    }
}

impl From<Turn> for Answer {
    fn from(turn: Turn) -> Self {
        Self::new(Content::Turn(turn))
    }
}

impl From<Script> for Answer {
    /// A script word for word, with its own id and model.
    fn from(script: Script) -> Self {
        Self::new(Content::Script(script))
    }
}

/// An error of an API: the status alone decides what type it has.
pub(super) fn error_body(api: Option<Api>, status: u16, message: &str) -> Vec<u8> {
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
