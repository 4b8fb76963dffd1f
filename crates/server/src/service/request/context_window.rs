//! Context windows of models.

use sayso_wire::RequestHead;

/// Context windows in tokens, as published, by prefix of the model name. The longest matching prefix counts.
const WINDOWS: &[(&str, u64)] = &[
    ("claude-", 200_000),
    ("gemini-1.5-pro", 2_097_152),
    ("gemini-", 1_048_576),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
];
/// Beta header of Anthropic's long context, with its window in tokens.
const LONG_CONTEXT: (&str, u64) = ("context-1m", 1_000_000);

/// Context window of a model in tokens; `None` if unknown.
pub(super) fn of_model(model: &str, head: &RequestHead) -> Option<u64> {
    let matching = WINDOWS.iter().filter(|(prefix, _)| model.starts_with(prefix));
    let (_, window) = matching.max_by_key(|(prefix, _)| prefix.len())?;
    let is_long = head.header("anthropic-beta").is_some_and(|beta| beta.contains(LONG_CONTEXT.0));
    Some(if is_long { LONG_CONTEXT.1 } else { *window })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_matching_prefix_decides_window() {
        let head = RequestHead::new("/v1/messages");
        assert_eq!(of_model("claude-sonnet-4-5", &head), Some(200_000));
        assert_eq!(
            of_model("claude-sonnet-4-5", &head.clone().with("anthropic-beta", "a,context-1m-2025-08-07")),
            Some(1_000_000)
        );
        assert_eq!(of_model("gemini-1.5-pro-002", &head), Some(2_097_152));
        assert_eq!(of_model("gemini-2.5-pro", &head), Some(1_048_576));
        assert_eq!(of_model("other-model", &head), None);
    }
}
