//! Suggestions for misspelt paths.

/// Paths that a suggestion lists.
const MAX_SUGGESTIONS: usize = 5;
/// Leading characters that a suggestion shares with the given path.
const MIN_COMMON_CHARACTERS: usize = 4;

/// Returns the known paths that share the longest start with `path`, best match first.
pub fn similar_paths<'p>(path: &str, known: impl IntoIterator<Item = &'p str>) -> Vec<&'p str> {
    let common = |other: &str| path.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let mut paths: Vec<&str> = known.into_iter().filter(|other| common(other) >= MIN_COMMON_CHARACTERS).collect();
    paths.sort_by_key(|other| std::cmp::Reverse(common(other)));
    paths.dedup();
    paths.truncate(MAX_SUGGESTIONS);
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_common_start_comes_first() {
        let known = ["model", "messages[0].content", "messages[1].content", "messages[1].content", "max_tokens"];
        assert_eq!(similar_paths("messages[1].text", known), ["messages[1].content", "messages[0].content"]);
        assert_eq!(similar_paths("mo", known), [""; 0]);
    }
}
