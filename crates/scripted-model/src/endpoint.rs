//! Endpoints of the model APIs, selected by method and path below any prefix.

use sayso_wire::stream::Api;
use serde_json::{Value, json};

use crate::Received;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Answer(Api),
    Stream(Api),
    CountTokens(Api),
    Models,
    /// A liveness check.
    Health,
    Upgrade,
    Unknown,
}

impl Endpoint {
    pub(crate) fn of(received: &Received) -> Self {
        if received.header("upgrade").is_some() || received.method == "CONNECT" {
            return Self::Upgrade;
        }
        let path = received.path();
        let (head, verb) = path.rsplit_once(':').unwrap_or((path, ""));
        let gemini = head.contains("/models/");
        match received.method.as_str() {
            "HEAD" => Self::Health,
            "GET" if path == "/" || path.ends_with("/api/hello") => Self::Health,
            "GET" if path.ends_with("/models") => Self::Models,
            "POST" => match (path, verb) {
                (_, "generateContent") if gemini => Self::Answer(Api::Gemini),
                (_, "streamGenerateContent") if gemini => Self::Stream(Api::Gemini),
                (_, "countTokens") if gemini => Self::CountTokens(Api::Gemini),
                (path, _) if path.ends_with("/messages/count_tokens") => Self::CountTokens(Api::AnthropicMessages),
                (path, _) if path.ends_with("/responses/input_tokens") => Self::CountTokens(Api::OpenAiResponses),
                (path, _) if path.ends_with("/messages") => answer_or_stream(received, Api::AnthropicMessages),
                (path, _) if path.ends_with("/chat/completions") => answer_or_stream(received, Api::OpenAiChat),
                (path, _) if path.ends_with("/responses") => answer_or_stream(received, Api::OpenAiResponses),
                _ => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }

    pub(crate) fn api(self) -> Option<Api> {
        match self {
            Self::Answer(api) | Self::Stream(api) | Self::CountTokens(api) => Some(api),
            _ => None,
        }
    }
}

fn answer_or_stream(received: &Received, api: Api) -> Endpoint {
    if received.body["stream"] == true { Endpoint::Stream(api) } else { Endpoint::Answer(api) }
}

/// Returns the response of a token counting endpoint, with an estimate.
pub(crate) fn token_count(api: Api, received: &Received) -> Value {
    let count = received.decoded.len() / 4;
    match api {
        Api::AnthropicMessages => json!({"input_tokens": count}),
        Api::OpenAiChat | Api::OpenAiResponses => json!({"object": "response.input_tokens", "input_tokens": count}),
        Api::Gemini => json!({"totalTokens": count}),
    }
}
