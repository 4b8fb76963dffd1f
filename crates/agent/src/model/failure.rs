//! Failures of an upstream: the classes that decide about a retry.

use serde_json::Value;

use super::is_cancellation;

/// Maximum length of an upstream's message, in characters.
const MAX_MESSAGE_CHARS: usize = 600;

/// Words of messages about a request that exceeds the context window, in lower case.
const OVERFLOW_WORDS: &[&str] = &[
    "prompt is too long",
    "context_length_exceeded",
    "context length",
    "context window",
    "maximum context",
    "input token count",
    "maximum number of tokens",
    "too many tokens",
    "input is too long",
    "request too large",
    "request_too_large",
    "exceed context limit",
];
/// Words of messages about an account that cannot pay, in lower case.
const QUOTA_WORDS: &[&str] = &["insufficient_quota", "exceeded your current quota", "credit balance", "billing"];

/// A failure of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelFailure {
    /// A retry may succeed, after at least this delay.
    Transient {
        message: String,
        after_ms: Option<i64>,
    },
    Overflow {
        message: String,
    },
    Cancelled {
        message: String,
    },
    Fatal {
        message: String,
        hint: String,
    },
}

impl ModelFailure {
    pub(crate) fn transient(message: impl Into<String>) -> Self {
        Self::Transient { message: message.into(), after_ms: None }
    }

    /// Classifies a response with an error status.
    pub(crate) fn of_response(status: u16, headers: &[(String, String)], body: &[u8]) -> Self {
        let json: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let text = message_of(&json).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
        let text = shorten(text.trim());
        let words = format!("{text} {json}").to_lowercase();
        let has = |known: &[&str]| known.iter().any(|known| words.contains(known));
        if is_cancellation(&text) {
            return Self::Cancelled { message: text };
        }
        let message = match text.as_str() {
            "" => format!("the upstream answered with status {status}"),
            text => format!("the upstream answered with status {status}: {text}"),
        };
        let quota_message = has(QUOTA_WORDS) && !words.contains("per minute");
        match status {
            413 => Self::Overflow { message },
            400 | 422 | 429 | 500 if has(OVERFLOW_WORDS) && !(status == 500 && words.contains("overloaded")) => {
                Self::Overflow { message }
            }
            402 => Self::fatal(message, "add credit to the account, or choose another upstream"),
            429 if quota_message && retry_after(headers, &json).is_none() => {
                Self::fatal(message, "add credit to the account, or choose another upstream")
            }
            408 | 425 | 429 | 500..=599 => Self::Transient { message, after_ms: retry_after(headers, &json) },
            401 | 403 => Self::fatal(message, "check the key of the upstream, and that it may use the model"),
            404 => Self::fatal(message, "check the name of the model, the dialect and the upstream's URL"),
            _ => Self::fatal(message, "choose another model or dialect, or start a new session"),
        }
    }

    /// Classifies an error within a stream.
    pub(crate) fn of_stream_error(kind: &str, message: &str) -> Self {
        let words = format!("{kind} {message}").to_lowercase();
        let has = |known: &[&str]| known.iter().any(|known| words.contains(known));
        let message = shorten(if message.is_empty() { kind } else { message });
        if is_cancellation(&message) {
            return Self::Cancelled { message };
        }
        if has(OVERFLOW_WORDS) {
            return Self::Overflow { message };
        }
        if has(QUOTA_WORDS) {
            return Self::fatal(message, "add credit to the account, or choose another upstream");
        }
        if has(&["authentication", "permission", "invalid_request", "not_found", "invalid_prompt"]) {
            return Self::fatal(message, "choose another model, or start a new session");
        }
        Self::Transient { message: format!("the upstream failed: {message}"), after_ms: None }
    }

    fn fatal(message: String, hint: &str) -> Self {
        Self::Fatal { message, hint: hint.to_owned() }
    }
}

/// Returns the message of an error body of any dialect.
fn message_of(body: &Value) -> Option<String> {
    let places = ["/error/message", "/0/error/message", "/message", "/detail", "/error"];
    places.iter().find_map(|place| body.pointer(place)?.as_str().map(str::to_owned))
}

/// Returns the delay that an upstream asks for, in milliseconds.
fn retry_after(headers: &[(String, String)], body: &Value) -> Option<i64> {
    let header = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.trim());
    let milliseconds = |text: &str, factor: f64| {
        let number: f64 = text.parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some((number * factor).min(1e12) as i64)
    };
    if let Some(delay) = header("retry-after-ms").and_then(|text| milliseconds(text, 1.0)) {
        return Some(delay);
    }
    if let Some(delay) = header("retry-after").and_then(|text| milliseconds(text, 1_000.0)) {
        return Some(delay);
    }
    // Gemini states the delay in the body, such as "17s".
    let error = body.get("error").or_else(|| body.get(0)?.get("error"))?;
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    milliseconds(delay.strip_suffix('s')?, 1_000.0)
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
