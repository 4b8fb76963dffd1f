//! Distinguishes random text from text written by a person.

/// Placeholder words in examples.
const STAND_INS: [&str; 22] = [
    "xxxx",
    "...",
    "…",
    "***",
    "----",
    "____",
    "example",
    "your",
    "placeholder",
    "dummy",
    "sample",
    "changeme",
    "change-me",
    "change_me",
    "redacted",
    "replace",
    "insert",
    "12345678",
    "abcdef",
    "fake",
    "todo",
    "secret-here",
];

/// `true` if a text is a placeholder for a secret.
pub(super) fn is_placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    STAND_INS.iter().any(|word| lower.contains(word))
        || text.contains(['<', '>', '{', '}', '$', '%', '[', '('])
        || distinct(text.as_bytes()) < 4
}

/// `true` if the text after an issuer's prefix can be a token.
pub(super) fn is_token(body: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| body.as_bytes().iter().any(kind);
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && distinct(body.as_bytes()) >= 8 && !is_placeholder(body)
}

/// `true` if a value without an issuer's prefix is long and random enough to be a secret.
///
/// Text written by a person consists of words, while random text changes often between lower case, upper case and
/// digits. The check uses the length of the longest piece between separators and the number of class changes in it.
pub(super) fn is_random(value: &str) -> bool {
    const SEPARATORS: [char; 7] = ['-', '_', '.', '/', ':', ' ', ','];
    if value.len() < 16 || value.len() > 512 || !value.is_ascii() || value.contains([' ', '\\']) || is_uuid(value) {
        return false;
    }
    let longest = value.split(SEPARATORS).max_by_key(|piece| piece.len()).unwrap_or_default().as_bytes();
    let digits = longest.iter().filter(|byte| byte.is_ascii_digit()).count();
    let changes = longest.windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    longest.len() >= 12
        && digits >= 2
        && digits < longest.len()
        && changes >= 4
        && changes * 5 >= longest.len()
        && entropy(value.as_bytes()) >= 3.0
        && !is_placeholder(value)
        && !value.starts_with("sha256")
        && !value.starts_with("sha512")
}

fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    }
}

fn is_uuid(text: &str) -> bool {
    let mut pieces = text.split('-').map(str::len);
    text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        && [8, 4, 4, 4, 12].into_iter().eq(pieces.by_ref())
}

fn counts(bytes: &[u8]) -> [u32; 256] {
    let mut counts = [0; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    counts
}

pub(crate) fn distinct(bytes: &[u8]) -> usize {
    counts(bytes).iter().filter(|count| **count > 0).count()
}

/// Returns the Shannon entropy in bits per character.
fn entropy(bytes: &[u8]) -> f64 {
    let length = bytes.len() as f64;
    let share = |count: u32| f64::from(count) / length;
    counts(bytes).into_iter().filter(|count| *count > 0).map(|count| -share(count) * share(count).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_text_differs_from_words() {
        for value in ["aB3dE5gH7jK9mN1pQ3sT5", "9f86d081884c7d659a2feaa0c55ad015", "wJalrXUtnFEMI7K7MDENGbPxRfiCYz9q"] {
            assert!(is_random(value), "{value}");
        }
        for value in [
            "",
            "short1A2",
            "my-secret-token-2024-v2",
            "projects/foo/secrets/bar1/versions/2",
            "accessTokenV2ResponseBody",
            "550e8400-e29b-41d4-a716-446655440000",
            "aaaaaaaaaaaaaaaaaaaa1A2b",
            "a sentence with 1 or 2 Words in It9",
            "your-api-key-a1B2c3D4e5F6g7",
            "1234567890123456",
        ] {
            assert!(!is_random(value), "{value}");
        }
    }
}
