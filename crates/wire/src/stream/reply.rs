//! What stands in for an answer that does not come: a refusal before the status was sent, or the end of a stream after it.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::Api;

/// What an agent is told when a person cancels its request.
pub const CANCELED: &str = "Request canceled before sending";

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal<'a> {
    /// A person cancelled the request.
    Canceled,
    /// The request is refused, with a reason.
    Refused {
        /// The reason.
        message: &'a str,
    },
    /// Nobody is there to answer now; trying again may help.
    Unavailable {
        /// Why.
        message: &'a str,
    },
    /// The API answered with an error.
    Upstream {
        /// Its status.
        status: u16,
        /// Its body, which is passed on as it is where that can be.
        body: &'a [u8],
    },
}

impl Refusal<'_> {
    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Canceled | Self::Refused { .. } => 400,
            Self::Unavailable { .. } => 503,
            Self::Upstream { status, .. } => *status,
        }
    }

    fn upstream(&self) -> Option<Value> {
        let Self::Upstream { body, .. } = self else { return None };
        Some(serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into()))
    }

    /// What the API's error says at a place, where it says something.
    pub(super) fn kind(&self, pointer: &str) -> Option<String> {
        Some(self.upstream()?.pointer(pointer)?.as_str()?.to_owned())
    }

    /// What to tell: the API's own words where there are some.
    pub(super) fn message(&self, pointers: &[&str]) -> String {
        match self {
            Self::Canceled => CANCELED.to_owned(),
            Self::Refused { message } | Self::Unavailable { message } => (*message).to_owned(),
            Self::Upstream { status, .. } => {
                let body = self.upstream().unwrap_or_default();
                let said = pointers.iter().find_map(|pointer| body.pointer(pointer)?.as_str());
                said.map_or_else(|| format!("The model API answered with status {status}"), str::to_owned)
            }
        }
    }

    /// Puts the API's answer into an error that is not in its place.
    pub(super) fn add_upstream(&self, error: &mut Value) {
        if let (Self::Upstream { status, .. }, Some(body)) = (self, self.upstream()) {
            error["upstream"] = json!({"status": status, "body": body});
        }
    }
}

/// Whether something of an answer was passed on before its stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Something was.
    Yes,
    /// Nothing but signs of life.
    No,
}

/// An HTTP answer that is not a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    /// The status.
    pub status: u16,
    /// The headers, but for the length.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpReply {
    /// A refusal in a dialect's form; an error of the API stays as it is.
    pub(super) fn new(refusal: &Refusal<'_>, error: &Value) -> Self {
        let mut headers = vec![("content-type", Cow::Borrowed("application/json"))];
        if let Refusal::Upstream { status, body } = refusal {
            return Self { status: *status, headers, body: body.to_vec() };
        }
        if !matches!(refusal, Refusal::Unavailable { .. }) {
            // Without it the clients' libraries may try again by themselves.
            headers.push(("x-should-retry", Cow::Borrowed("false")));
        }
        Self { status: refusal.status(), headers, body: error.to_string().into_bytes() }
    }
}

impl Api {
    /// What keeps a stream alive that has begun; can be sent before the first event and between any two.
    pub fn keep_alive(self) -> &'static [u8] {
        self.dialect().keep_alive()
    }

    /// The answer in place of a stream, as long as no status was sent.
    pub fn refuse(self, refusal: &Refusal<'_>) -> HttpReply {
        self.dialect().refuse(refusal)
    }

    /// The end of a stream that has begun with status 200, in the form after which clients are known not to try again.
    pub fn end_for_good(self, refusal: &Refusal<'_>, begun: Begun) -> Vec<u8> {
        self.dialect().end_for_good(refusal, begun)
    }

    /// The end of a stream that has begun with status 200.
    pub fn break_off(self, refusal: &Refusal<'_>) -> Vec<u8> {
        self.dialect().break_off(refusal)
    }
}
