//! How much models read.

use sayso_wire::Head;

/// How many tokens a model reads at most, as its maker says, by how its name begins; the longest beginning that fits counts.
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
/// What Anthropic's models read where a request asks for it.
const LONG: (&str, u64) = ("context-1m", 1_000_000);

/// How many tokens a model reads at most, where that is known.
pub(super) fn of_model(model: &str, head: &Head) -> Option<u64> {
    let fits = WINDOWS.iter().filter(|(begins, _)| model.starts_with(begins));
    let (_, window) = fits.max_by_key(|(begins, _)| begins.len())?;
    let asks = head.header("anthropic-beta").is_some_and(|beta| beta.contains(LONG.0));
    Some(if asks { LONG.1 } else { *window })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_of_a_models_name_says_how_much_it_reads() {
        let head = Head::new("/v1/messages");
        assert_eq!(of_model("claude-sonnet-4-5", &head), Some(200_000));
        assert_eq!(
            of_model("claude-sonnet-4-5", &head.clone().with("anthropic-beta", "a,context-1m-2025-08-07")),
            Some(1_000_000)
        );
        assert_eq!(of_model("gemini-1.5-pro-002", &head), Some(2_097_152));
        assert_eq!(of_model("gemini-2.5-pro", &head), Some(1_048_576));
        assert_eq!(of_model("something-else", &head), None);
    }
}
