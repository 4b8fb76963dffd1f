//! Detects credentials.
//!
//! There are two detectors: the prefixes and lengths of issuers' tokens, and long random texts assigned to a name such
//! as `secret`. Each line is scanned once. A prefix is tried only at the start of a word, a name only before `=` or
//! `:`. Examples in documentation (`sk-...`, `xxxx`, `<token>`) have the shape without the randomness and are ignored.

use std::ops::Range;

use super::SecretKind;

mod random;

pub(crate) use random::distinct;
use random::{is_placeholder, is_random, is_token};

/// The syntax of values in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// Only quoted text is a value.
    Quoted,
    /// Unquoted text up to the line end is a value too, as in `.env` files.
    Bare,
    /// Names are ignored, because lock files and binaries contain random text.
    Unnamed,
}

/// The shape of an issuer's tokens.
struct Shape {
    prefix: &'static str,
    kind: SecretKind,
    /// Minimum number of characters after the prefix: letters, digits or one of `marks`.
    least: usize,
    marks: &'static str,
}

const fn shape(prefix: &'static str, kind: SecretKind, least: usize, marks: &'static str) -> Shape {
    Shape { prefix, kind, least, marks }
}

/// A longer prefix comes before its own prefixes.
const SHAPES: &[Shape] = &[
    shape("AKIA", SecretKind::AwsAccessKey, 16, ""),
    shape("ASIA", SecretKind::AwsAccessKey, 16, ""),
    shape("ABSK", SecretKind::AwsAccessKey, 100, "+/="),
    shape("ghp_", SecretKind::GithubToken, 36, ""),
    shape("gho_", SecretKind::GithubToken, 36, ""),
    shape("ghu_", SecretKind::GithubToken, 36, ""),
    shape("ghs_", SecretKind::GithubToken, 36, "_.-"),
    shape("ghr_", SecretKind::GithubToken, 36, ""),
    shape("github_pat_", SecretKind::GithubToken, 60, "_"),
    shape("glpat-", SecretKind::GitlabToken, 20, "_-."),
    shape("gldt-", SecretKind::GitlabToken, 20, "_-"),
    shape("glrt-", SecretKind::GitlabToken, 20, "_-."),
    shape("glptt-", SecretKind::GitlabToken, 20, "_-"),
    shape("xoxb-", SecretKind::SlackToken, 24, "-"),
    shape("xoxp-", SecretKind::SlackToken, 24, "-"),
    shape("xoxa-", SecretKind::SlackToken, 24, "-"),
    shape("xoxr-", SecretKind::SlackToken, 24, "-"),
    shape("xoxs-", SecretKind::SlackToken, 24, "-"),
    shape("xapp-", SecretKind::SlackToken, 24, "-"),
    shape("hooks.slack.com/services/", SecretKind::SlackToken, 40, "/"),
    shape("sk_live_", SecretKind::StripeKey, 24, ""),
    shape("sk_test_", SecretKind::StripeKey, 24, ""),
    shape("rk_live_", SecretKind::StripeKey, 24, ""),
    shape("rk_test_", SecretKind::StripeKey, 24, ""),
    shape("whsec_", SecretKind::StripeKey, 24, "+/="),
    shape("sk-ant-", SecretKind::AnthropicKey, 24, "_-"),
    shape("sk-proj-", SecretKind::OpenaiKey, 24, "_-"),
    shape("sk-svcacct-", SecretKind::OpenaiKey, 24, "_-"),
    shape("sk-admin-", SecretKind::OpenaiKey, 24, "_-"),
    shape("sk-or-v1-", SecretKind::ServiceToken, 40, ""),
    shape("sk-", SecretKind::OpenaiKey, 32, ""),
    shape("AIza", SecretKind::GoogleKey, 35, "_-"),
    shape("GOCSPX-", SecretKind::GoogleKey, 24, "_-"),
    shape("ya29.", SecretKind::GoogleKey, 24, "_-."),
    shape("npm_", SecretKind::RegistryToken, 36, ""),
    shape("pypi-", SecretKind::RegistryToken, 50, "_-"),
    shape("rubygems_", SecretKind::RegistryToken, 40, ""),
    shape("dckr_pat_", SecretKind::RegistryToken, 24, "_-"),
    shape("hf_", SecretKind::ServiceToken, 34, ""),
    shape("gsk_", SecretKind::ServiceToken, 40, ""),
    shape("xai-", SecretKind::ServiceToken, 40, ""),
    shape("SG.", SecretKind::ServiceToken, 60, "_-."),
    shape("dop_v1_", SecretKind::ServiceToken, 60, ""),
    shape("shpat_", SecretKind::ServiceToken, 32, ""),
    shape("glsa_", SecretKind::ServiceToken, 32, "_"),
    shape("hvs.", SecretKind::ServiceToken, 24, "_-"),
    shape("dapi", SecretKind::ServiceToken, 32, ""),
    shape("AGE-SECRET-KEY-1", SecretKind::PrivateKey, 50, ""),
    shape("Bearer ", SecretKind::BearerToken, 20, "_-.+/=~"),
    shape("bearer ", SecretKind::BearerToken, 20, "_-.+/=~"),
];

/// Maximum length in bytes of an examined token or value.
pub(crate) const LONGEST_RUN: usize = 1024;

/// Finds credentials in consecutive lines.
pub(super) struct Scanner {
    values: Values,
    /// `true` if the previous line began a private key, which counts only if key data follows.
    in_key: bool,
}

impl Scanner {
    pub(super) fn new(values: Values) -> Self {
        Self { values, in_key: false }
    }

    /// Returns the kinds of credentials in a line, each once.
    pub(super) fn scan(&mut self, line: &str) -> Vec<SecretKind> {
        let mut found = Vec::new();
        let mut add = |kind| {
            if !found.contains(&kind) {
                found.push(kind);
            }
        };
        if self.in_key && begins_with_key_bytes(line) {
            add(SecretKind::PrivateKey);
        }
        self.in_key = false;
        let bytes = line.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            let rest = &bytes[at..];
            if byte.is_ascii_alphanumeric() {
                if at > 0 && is_word(bytes[at - 1]) && !is_escape(&bytes[..at]) {
                    at += 1;
                    continue;
                }
                if !may_begin_token(rest) {
                    at += 1;
                    continue;
                }
                if let Some((kind, length)) = token(rest) {
                    add(kind);
                    // A bearer token may itself have an issuer's shape, so continue after `Bearer `.
                    at += if kind == SecretKind::BearerToken { "Bearer ".len() } else { length };
                    continue;
                }
            } else if byte == b'-' && rest.starts_with(b"-----BEGIN ") {
                match private_key(&line[at..]) {
                    Key::Whole => add(SecretKind::PrivateKey),
                    Key::Begins => self.in_key = true,
                    Key::None => {}
                }
            } else if byte == b':' && rest.starts_with(b"://") {
                if has_password(&line[..at], &line[at + 3..]) {
                    add(SecretKind::UrlPassword);
                }
            } else if matches!(byte, b'=' | b':')
                && self.values != Values::Unnamed
                // For `==` or `::=`, the first character has already examined the value.
                && (at == 0 || bytes[at - 1] != byte)
            {
                let value = value(&line[at + 1..], self.values);
                if value.is_some_and(is_random) && is_secret_name(&line[..at]) {
                    add(SecretKind::Literal);
                }
            }
            at += 1;
        }
        // A token with an issuer's shape is not reported again as a generic secret.
        if found.len() > 1 {
            found.retain(|kind| !matches!(kind, SecretKind::Literal | SecretKind::BearerToken));
        }
        found
    }
}

/// For each first byte of a prefix, the possible second bytes as a bit set of their lowest five bits.
const SECOND_BYTES: [u32; 256] = {
    let mut table = [0; 256];
    table[b'e' as usize] = 1 << (b'y' & 31);
    let mut at = 0;
    while at < SHAPES.len() {
        let prefix = SHAPES[at].prefix.as_bytes();
        table[prefix[0] as usize] |= 1 << (prefix[1] & 31);
        at += 1;
    }
    table
};

/// Rejects nearly every word before prefixes are compared.
fn may_begin_token(text: &[u8]) -> bool {
    matches!(text, [first, second, ..] if SECOND_BYTES[usize::from(*first)] >> (second & 31) & 1 == 1)
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// `true` if a text ends in an escape such as `\n`, whose letter is not part of the next word.
pub(crate) fn is_escape(before: &[u8]) -> bool {
    matches!(before, [.., b'\\', b'n' | b't' | b'r'])
}

/// Returns the token at the start of a text, with its length.
fn token(text: &[u8]) -> Option<(SecretKind, usize)> {
    let Shaped { kind, body } = shaped(text)?;
    // In a JSON web token only the signature is random.
    let drawn = if kind == SecretKind::JsonWebToken {
        text[..body.end].rsplit(|byte| *byte == b'.').next()?
    } else {
        &text[body.clone()]
    };
    std::str::from_utf8(drawn).is_ok_and(is_token).then_some((kind, body.end))
}

/// Returns the prefixes of issuers' tokens.
pub(crate) fn prefixes() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().map(|shape| shape.prefix).chain([JWT_PREFIX])
}

/// Returns the longest prefix that matches the start of a text.
pub(crate) fn prefix_of(text: &[u8]) -> Option<&'static str> {
    prefixes().find(|prefix| text.starts_with(prefix.as_bytes()))
}

/// Prefix of a JSON web token: `{"` in base 64.
const JWT_PREFIX: &str = "eyJ";

/// A text with the prefix and length of an issuer's token; it may be an example in documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shaped {
    pub(crate) kind: SecretKind,
    /// Range of the bytes after the prefix.
    pub(crate) body: Range<usize>,
}

/// Matches a token at the start of a text, by prefix and length only.
pub(crate) fn shaped(text: &[u8]) -> Option<Shaped> {
    if text.starts_with(JWT_PREFIX.as_bytes()) {
        let body = JWT_PREFIX.len()..json_web_token(text)?;
        return Some(Shaped { kind: SecretKind::JsonWebToken, body });
    }
    let shape = SHAPES.iter().find(|shape| text.starts_with(shape.prefix.as_bytes()))?;
    let start = shape.prefix.len();
    let body = run(&text[start..], shape.marks);
    let long_enough = match shape.kind {
        // These keys have a fixed length and only capitals.
        SecretKind::AwsAccessKey if shape.least == 16 => {
            body.len() == 16 && body.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7'))
        }
        SecretKind::GoogleKey if shape.prefix == "AIza" => body.len() == shape.least,
        _ => body.len() >= shape.least,
    };
    long_enough.then(|| Shaped { kind: shape.kind, body: start..start + body.len() })
}

/// Returns the leading letters, digits and `marks`, up to the maximum length.
fn run<'t>(text: &'t [u8], marks: &str) -> &'t [u8] {
    // The limit keeps the scan of a line full of prefixes linear.
    let text = &text[..text.len().min(LONGEST_RUN)];
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric() && !marks.as_bytes().contains(byte));
    &text[..end.unwrap_or(text.len())]
}

/// Returns the length of a JSON web token at the start of a text: two JSON objects and a signature in base 64.
fn json_web_token(text: &[u8]) -> Option<usize> {
    let header = run(text, "_-=");
    let after = text[header.len()..].strip_prefix(b".")?;
    if header.len() < 10 || !after.starts_with(b"eyJ") {
        return None;
    }
    let end = after.iter().position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'='))?;
    let signature = run(after[end..].strip_prefix(b".")?, "_-=");
    let is_one = end >= 10 && signature.len() >= 20;
    is_one.then_some(header.len() + end + signature.len() + 2)
}

enum Key {
    Whole,
    /// The key data must follow on the next line.
    Begins,
    None,
}

/// Examines a line from `-----BEGIN ` on. Programs that read keys contain this header too, so key data must follow.
fn private_key(text: &str) -> Key {
    let title = text.strip_prefix("-----BEGIN ").unwrap_or_default();
    let Some((title, after)) = title.split_once("-----") else { return Key::None };
    if !title.contains("PRIVATE KEY") {
        return Key::None;
    }
    // Skip an escaped line break within a string literal.
    let after = after.trim_start_matches("\\r").trim_start_matches("\\n");
    if begins_with_key_bytes(after) {
        Key::Whole
    } else if after.bytes().all(|byte| !byte.is_ascii_alphanumeric()) {
        Key::Begins
    } else {
        Key::None
    }
}

fn begins_with_key_bytes(text: &str) -> bool {
    // Skip comment marks, indentation and quotes of a multi-line string.
    let text = text.trim_start_matches(|character: char| !character.is_ascii_alphanumeric());
    let body = run(text.as_bytes(), "+/=");
    let is_body = std::str::from_utf8(body).is_ok_and(|body| body.len() >= 32 && !is_placeholder(body));
    is_body || ["Proc-Type:", "DEK-Info:", "Version: "].iter().any(|field| text.starts_with(field))
}

/// `true` if a URL, split at `://`, contains a user and a password.
fn has_password(scheme: &str, rest: &str) -> bool {
    if !scheme.ends_with(|character: char| character.is_ascii_alphanumeric()) {
        return false;
    }
    url_password(rest).is_some()
}

/// Returns the password in a URL, given the text after `://`.
pub(crate) fn url_password(rest: &str) -> Option<&str> {
    let end = rest.find(|character: char| character.is_whitespace() || "/?#\"'`<>\\".contains(character));
    let authority = &rest[..end.unwrap_or(rest.len())];
    let (login, host) = authority.rsplit_once('@')?;
    let (user, password) = login.split_once(':')?;
    // Domains reserved for examples.
    if ["example", "example.com", "example.org", "example.net", "test", "invalid"].iter().any(|end| host.ends_with(end))
    {
        return None;
    }
    let is_name = password.chars().all(|character| character.is_ascii_uppercase() || character == '_');
    let is_word = ["pass", "passwd", "password", "pwd", "secret", "token", "pw"].contains(&&*password.to_lowercase());
    let is_one = password.len() >= 4 && password != user && !is_name && !is_word && !is_placeholder(password);
    is_one.then_some(password)
}

/// Returns the value after `=` or `:`.
fn value(after: &str, values: Values) -> Option<&str> {
    let after = &after[..after.floor_char_boundary(LONGEST_RUN)];
    let after = after.trim_start_matches(['=', ':', '>', ' ', '\t']);
    // Skip string prefixes; `b"x"` and `"x".to_owned()` are literals too.
    let unmarked = after.trim_start_matches(['b', 'r', 'f', 'u', '@', '#']);
    if let Some(quote @ ('"' | '\'' | '`')) = unmarked.chars().next() {
        return unmarked[1..].split(quote).next();
    }
    let bare = after.trim_end();
    (values == Values::Bare && !bare.contains([' ', '(', '"'])).then_some(bare)
}

/// `true` if a text ends in the name of a secret: the last word, or the word before its type.
fn is_secret_name(before: &str) -> bool {
    // Limit the backward search, so that a long line with many `=` stays linear.
    let start = before.char_indices().rev().nth(80).map_or(0, |(at, _)| at);
    let before = before[start..].trim_end_matches([' ', '\t', ':']);
    let called_secret = |text: &str| {
        let text = text.trim_end_matches(|character: char| "\"'`])? \t".contains(character));
        let end = text.rfind(|character: char| !(character.is_alphanumeric() || "_-.".contains(character)));
        let name = &text[end.map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8))..];
        let name: String = name.chars().filter(|character| character.is_alphanumeric()).collect();
        let name = name.to_lowercase();
        let name = name.trim_end_matches(|character: char| character.is_ascii_digit());
        [
            "password",
            "passwd",
            "pwd",
            "passphrase",
            "secret",
            "token",
            "apikey",
            "accesskey",
            "secretkey",
            "privatekey",
            "authkey",
            "signingkey",
            "encryptionkey",
            "accountkey",
            "masterkey",
            "secretkeybase",
            "credential",
            "credentials",
        ]
        .iter()
        .any(|end| name.ends_with(end))
    };
    called_secret(before) || before.rsplit_once(':').is_some_and(|(name, _)| called_secret(name))
}

#[cfg(test)]
mod tests;
