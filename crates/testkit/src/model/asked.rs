//! What a request asks for, by its path: wherever the server is mounted, so beneath a prefix, too.

use sayso_wire::stream::Api;
use serde_json::{Value, json};

use super::Received;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Answer(Api),
    Stream(Api),
    CountTokens(Api),
    Models,
    /// Whether somebody is there.
    Presence,
    Upgrade,
    Unknown,
}

impl Asked {
    pub(super) fn of(received: &Received) -> Self {
        if received.header("upgrade").is_some() || received.method == "CONNECT" {
            return Self::Upgrade;
        }
        let path = received.path();
        let (head, verb) = path.rsplit_once(':').unwrap_or((path, ""));
        let gemini = head.contains("/models/");
        match received.method.as_str() {
            "HEAD" => Self::Presence,
            "GET" if path == "/" || path.ends_with("/api/hello") => Self::Presence,
            "GET" if path.ends_with("/models") => Self::Models,
            "POST" => match (path, verb) {
                (_, "generateContent") if gemini => Self::Answer(Api::Gemini),
                (_, "streamGenerateContent") if gemini => Self::Stream(Api::Gemini),
                (_, "countTokens") if gemini => Self::CountTokens(Api::Gemini),
                (path, _) if path.ends_with("/messages/count_tokens") => Self::CountTokens(Api::AnthropicMessages),
                (path, _) if path.ends_with("/responses/input_tokens") => Self::CountTokens(Api::OpenAiResponses),
                (path, _) if path.ends_with("/messages") => by_flag(received, Api::AnthropicMessages),
                (path, _) if path.ends_with("/chat/completions") => by_flag(received, Api::OpenAiChat),
                (path, _) if path.ends_with("/responses") => by_flag(received, Api::OpenAiResponses),
                _ => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }

    pub(super) fn api(self) -> Option<Api> {
        match self {
            Self::Answer(api) | Self::Stream(api) | Self::CountTokens(api) => Some(api),
            _ => None,
        }
    }
}

fn by_flag(received: &Received, api: Api) -> Asked {
    if received.body["stream"] == true { Asked::Stream(api) } else { Asked::Answer(api) }
}

/// The model that is asked: by the body, or by the path as Gemini has it.
pub(super) fn model(received: &Received) -> String {
    let by_path = || {
        let (_, name) = received.path().rsplit_once("/models/")?;
        Some(name.split(':').next()?.to_owned())
    };
    received.body["model"].as_str().map(str::to_owned).or_else(by_path).unwrap_or_else(|| "scripted".to_owned())
}

/// How many tokens a request has, for those who ask: an estimate, as the real ones give.
pub(super) fn token_count(api: Api, received: &Received) -> Value {
    let count = received.decoded.len() / 4;
    match api {
        Api::AnthropicMessages => json!({"input_tokens": count}),
        Api::OpenAiChat | Api::OpenAiResponses => json!({"object": "response.input_tokens", "input_tokens": count}),
        Api::Gemini => json!({"totalTokens": count}),
    }
}
