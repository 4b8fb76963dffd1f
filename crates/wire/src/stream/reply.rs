//! Replies in place of an upstream response: an error before the status was sent, or the end of a stream after it.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::Api;

/// The message to the agent when a person cancels its request.
pub const CANCELED: &str = "Request canceled before sending";

/// The reason why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError<'a> {
    Canceled,
    /// A person or a rule rejected the request.
    Rejected {
        message: &'a str,
    },
    /// The upstream is unavailable; a retry may succeed.
    Unavailable {
        message: &'a str,
    },
    /// The upstream responded with an error.
    Upstream {
        status: u16,
        /// Body, forwarded unchanged where possible.
        body: &'a [u8],
    },
}

impl ReplyError<'_> {
    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Canceled | Self::Rejected { .. } => 400,
            Self::Unavailable { .. } => 503,
            Self::Upstream { status, .. } => *status,
        }
    }

    fn upstream(&self) -> Option<Value> {
        let Self::Upstream { body, .. } = self else { return None };
        Some(serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into()))
    }

    /// Returns the string at a JSON Pointer in the upstream's error, if there is one.
    pub(super) fn kind(&self, pointer: &str) -> Option<String> {
        Some(self.upstream()?.pointer(pointer)?.as_str()?.to_owned())
    }

    /// Returns the message, preferably the upstream's own.
    pub(super) fn message(&self, pointers: &[&str]) -> String {
        match self {
            Self::Canceled => CANCELED.to_owned(),
            Self::Rejected { message } | Self::Unavailable { message } => (*message).to_owned(),
            Self::Upstream { status, .. } => {
                let body = self.upstream().unwrap_or_default();
                let message = pointers.iter().find_map(|pointer| body.pointer(pointer)?.as_str());
                message.map_or_else(|| format!("The model API answered with status {status}"), str::to_owned)
            }
        }
    }

    /// Embeds the upstream's error in an error object of another form.
    pub(super) fn add_upstream(&self, error: &mut Value) {
        if let (Self::Upstream { status, .. }, Some(body)) = (self, self.upstream()) {
            error["upstream"] = json!({"status": status, "body": body});
        }
    }
}

/// Progress of a stream before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStarted {
    /// A part of the response was forwarded.
    Yes,
    /// Only keep-alives were sent.
    No,
}

/// A complete HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    pub status: u16,
    /// Headers without the content length.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    pub body: Vec<u8>,
}

impl HttpReply {
    /// Creates an error reply in a dialect's format; an upstream error keeps its own.
    pub(super) fn new(error: &ReplyError<'_>, body: &Value) -> Self {
        let mut headers = vec![("content-type", Cow::Borrowed("application/json"))];
        if let ReplyError::Upstream { status, body } = error {
            return Self { status: *status, headers, body: body.to_vec() };
        }
        if !matches!(error, ReplyError::Unavailable { .. }) {
            // Without this header the client libraries may retry.
            headers.push(("x-should-retry", Cow::Borrowed("false")));
        }
        Self { status: error.status(), headers, body: body.to_string().into_bytes() }
    }
}

impl Api {
    /// Returns a keep-alive that clients ignore, valid before the first event and between any two events.
    pub fn keep_alive(self) -> &'static [u8] {
        self.dialect().keep_alive()
    }

    /// Returns the response that replaces a stream before its status was sent.
    pub fn error_reply(self, error: &ReplyError<'_>) -> HttpReply {
        self.dialect().error_reply(error)
    }

    /// Returns the end of a stream that has started with status 200, in a form after which clients do not retry.
    pub fn terminal_error(self, error: &ReplyError<'_>, started: StreamStarted) -> Vec<u8> {
        self.dialect().terminal_error(error, started)
    }

    /// Returns the end of a stream that has started with status 200.
    pub fn retryable_end(self, error: &ReplyError<'_>) -> Vec<u8> {
        self.dialect().retryable_end(error)
    }
}
