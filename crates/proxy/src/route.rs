//! Which paths are requests to a model.

use sayso_wire::stream::Api;

/// The API that a path belongs to, if it is one where a model answers.
pub(crate) fn api_of(route: &str) -> Option<Api> {
    if route.ends_with("/v1/messages") || route == "/messages" || route.ends_with("/messages/count_tokens") {
        Some(Api::AnthropicMessages)
    } else if route.ends_with("/chat/completions") {
        Some(Api::OpenAiChat)
    } else if ["/responses", "/responses/compact", "/responses/input_tokens"].iter().any(|end| route.ends_with(end)) {
        Some(Api::OpenAiResponses)
    } else if [":generateContent", ":streamGenerateContent", ":countTokens"].iter().any(|end| route.ends_with(end)) {
        Some(Api::Gemini)
    } else {
        None
    }
}
