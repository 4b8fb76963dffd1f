//! Finds credentials in the bytes of a body, whether JSON or not.
//!
//! The body is not parsed. Every stem of a credential key is checked for a value, and every issuer prefix for a token.
//! Each check depends only on the surrounding bytes, so a part of a body can be scanned separately.

use std::sync::LazyLock;

use memchr::{memchr, memmem};

use super::key::{KEY_STEMS, is_credential_key, is_opaque};
use super::search::{Prefixes, Search};
use super::{FILLER, Redaction};
use crate::note::SecretKind;
use crate::note::secret::{LONGEST_RUN, distinct, is_escape, is_word, prefix_of, shaped, url_password};

/// Maximum number of bytes before a span that affect its detection.
pub(super) const CONTEXT: usize = 1 << 10;
/// Maximum number of bytes after a prefix or a `:` that affect detection; also the maximum length of a token.
pub(super) const REACH: usize = 8 << 10;
/// Maximum white space on each side of the `:`, in bytes.
const MAX_SPACE: usize = 64;
/// Maximum number of backslashes before a quote.
const MAX_SLASHES: usize = 128;
/// Maximum length of an examined key, in bytes.
const MAX_KEY: usize = 128;
/// Minimum number of fillers after a prefix in a masked token.
const MIN_FILLERS: usize = 16;
/// Minimum length of a line of a private key, in bytes.
const MIN_KEY_LINE: usize = 32;
/// Minimum number of distinct characters in a token.
const MIN_DISTINCT: usize = 8;
const KEY_BEGIN: &str = "-----BEGIN ";

/// Finds the credentials in a body, sorted by offset. Nested credentials overlap.
pub fn find(bytes: &[u8]) -> Vec<Redaction> {
    let mut found = Vec::new();
    KEYS.each(bytes, |start| found.extend(colon_after(bytes, start).and_then(|colon| under_key(bytes, colon))));
    for colon in memmem::find_iter(bytes, "://") {
        found.extend(in_url(bytes, colon));
    }
    PREFIXES.each(bytes, |start| found.extend(by_shape(bytes, start)));
    for start in memmem::find_iter(bytes, KEY_BEGIN) {
        found.extend(private_key(bytes, start));
    }
    found.sort();
    // A key such as `secret_key` is found through each of its stems.
    found.dedup();
    found
}

static KEYS: LazyLock<Search> = LazyLock::new(|| Search::new(KEY_STEMS));
static PREFIXES: LazyLock<Prefixes> = LazyLock::new(Prefixes::new);

/// Returns the offset of the `:` after the key that contains a stem.
fn colon_after(bytes: &[u8], stem: usize) -> Option<usize> {
    let end = stem + bytes[stem..].iter().take(MAX_KEY).take_while(|byte| is_of_name(**byte)).count();
    let quote = end + bytes[end..].iter().take(MAX_SLASHES).take_while(|byte| **byte == b'\\').count();
    if bytes.get(quote) != Some(&b'"') {
        return None;
    }
    let after = &bytes[quote + 1..];
    let colon = quote + 1 + after.iter().take(MAX_SPACE).take_while(|byte| byte.is_ascii_whitespace()).count();
    (bytes.get(colon) == Some(&b':')).then_some(colon)
}

/// Returns the string after a `:`, if its key holds a credential.
fn under_key(bytes: &[u8], colon: usize) -> Option<Redaction> {
    let before = trim_space_end(&bytes[..colon]);
    let key = before.strip_suffix(b"\"")?;
    let (key, slashes) = without_slashes(key);
    let level = level_of(slashes)?;
    let name = name_at_end(key);
    let is_token = name.eq_ignore_ascii_case(b"token");
    let named = if is_token || is_credential_key(name) {
        name
    } else if name == b"value" {
        sibling(&key[..key.len() - name.len()], slashes)?
    } else {
        return None;
    };
    let after = colon + 1;
    let space = bytes[after..].iter().take(MAX_SPACE).take_while(|byte| byte.is_ascii_whitespace()).count();
    let open = after + space;
    let start = open + slashes + 1;
    if bytes.get(start - 1) != Some(&b'"') || bytes[open..start - 1].iter().any(|byte| *byte != b'\\') {
        return None;
    }
    let size = end_of_string(bytes, start, level) - start;
    let is_one = size > 0 && (!is_token || is_opaque(&bytes[start..start + size]));
    is_one.then(|| Redaction { start, size, name: String::from_utf8_lossy(named).into_owned() })
}

fn trim_space_end(bytes: &[u8]) -> &[u8] {
    let space = bytes.iter().rev().take(MAX_SPACE).take_while(|byte| byte.is_ascii_whitespace()).count();
    &bytes[..bytes.len() - space]
}

/// Splits off the trailing backslashes and counts them.
fn without_slashes(bytes: &[u8]) -> (&[u8], usize) {
    let slashes = bytes.iter().rev().take(MAX_SLASHES).take_while(|byte| **byte == b'\\').count();
    (&bytes[..bytes.len() - slashes], slashes)
}

/// Returns the number of JSON encodings of a quote, given its backslashes: `"` has none, `\"` one, as in JSON within a
/// JSON string.
fn level_of(slashes: usize) -> Option<u32> {
    (slashes + 1).is_power_of_two().then(|| slashes.trailing_ones())
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn name_at_end(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len() - bytes.iter().rev().take(MAX_KEY).take_while(|byte| is_of_name(**byte)).count()..]
}

/// Returns the name that precedes `"value":`, as in `{"name":"API_KEY","value":"…"}` or in a JSON Patch operation.
fn sibling(before: &[u8], slashes: usize) -> Option<&[u8]> {
    let (before, own) = without_slashes(before.strip_suffix(b"\"")?);
    let before = trim_space_end(trim_space_end(before).strip_suffix(b",")?);
    let (before, other) = without_slashes(before.strip_suffix(b"\"")?);
    let name = name_at_end(before);
    (own == slashes && other == slashes && is_credential_key(name)).then_some(name)
}

/// Returns the end of the string that starts here, at the given encoding level; the end of the bytes if it is
/// truncated.
pub(super) fn end_of_string(bytes: &[u8], start: usize, level: u32) -> usize {
    let mut from = start;
    while let Some(at) = memchr(b'"', &bytes[from..]) {
        let quote = from + at;
        let slashes = bytes[start..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        // Each encoding doubles the backslashes and adds one before the quote.
        let own = slashes.trailing_ones();
        if own <= level {
            return quote - ((1 << own) - 1);
        }
        from = quote + 1;
    }
    bytes.len()
}

/// Returns the password in a URL, given the offset of its `:`.
fn in_url(bytes: &[u8], colon: usize) -> Option<Redaction> {
    let rest = &bytes[colon + "://".len()..];
    if !bytes[..colon].last().is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let rest = &rest[..rest.len().min(CONTEXT)];
    memchr(b'@', rest)?;
    let rest = match std::str::from_utf8(rest) {
        Ok(rest) => rest,
        Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).ok()?,
    };
    let password = url_password(rest).or_else(|| masked_password(rest))?;
    let start = colon + 3 + (password.as_ptr().addr() - rest.as_ptr().addr());
    Some(redaction(start, password.len(), SecretKind::UrlPassword))
}

fn masked_password(rest: &str) -> Option<&str> {
    let (login, _) = rest.split_once('@')?;
    let (_, password) = login.split_once(':')?;
    (!password.is_empty() && password.bytes().all(|byte| byte == FILLER)).then_some(password)
}

fn redaction(start: usize, size: usize, kind: SecretKind) -> Redaction {
    let name = serde_json::to_value(kind).ok().and_then(|name| Some(name.as_str()?.to_owned()));
    Redaction { start, size, name: name.unwrap_or_default() }
}

/// Returns the token that begins with an issuer's prefix.
fn by_shape(bytes: &[u8], start: usize) -> Option<Redaction> {
    if start > 0 && is_word(bytes[start - 1]) && !is_escape(&bytes[..start]) {
        return None;
    }
    let text = &bytes[start..bytes.len().min(start + REACH)];
    let end = start + prefix_of(text)?.len();
    let fillers = bytes[end..start + text.len()].iter().take_while(|byte| **byte == FILLER).count();
    if fillers >= MIN_FILLERS {
        return Some(redaction(end, fillers, SecretKind::ServiceToken));
    }
    let found = shaped(text).filter(|found| may_be_drawn(found.kind, &text[found.body.clone()]))?;
    // The detector truncates very long runs; continue to the end of the token.
    let is_cut = found.body.len() >= LONGEST_RUN;
    let more = text[found.body.end..].iter().take_while(|byte| is_cut && (is_word(**byte) || **byte == b'-')).count();
    Some(redaction(start + found.body.start, found.body.len() + more, found.kind))
}

/// Returns `false` for a word or a run of fillers after a prefix. A random token of 36 characters has no digit with a
/// probability of 1 in 600.
fn may_be_drawn(kind: SecretKind, body: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| body.iter().any(class);
    let (digits, letters) = (has(u8::is_ascii_digit), has(u8::is_ascii_alphabetic));
    let both_cases = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    // The word "bearer" also occurs in prose.
    let without_digits = match kind {
        SecretKind::AwsAccessKey => true,
        SecretKind::BearerToken => both_cases && body.len() >= MIN_KEY_LINE,
        _ => both_cases,
    };
    distinct(body) >= MIN_DISTINCT && ((digits && letters) || without_digits)
}

/// Returns the private key at a `-----BEGIN `. Programs that read keys contain this header too, so key lines must
/// follow.
fn private_key(bytes: &[u8], begin: usize) -> Option<Redaction> {
    let text = &bytes[begin..bytes.len().min(begin + REACH)];
    let title = memmem::find(&text[KEY_BEGIN.len()..text.len().min(MAX_KEY)], b"-----")? + KEY_BEGIN.len();
    memmem::find(&text[..title], b"PRIVATE KEY")?;
    let start = title + "-----".len();
    let mut end = memmem::find(&text[start..], b"-----END").map_or(text.len(), |at| start + at);
    // A key ends with the string that contains it.
    if let Some(quote) = memchr(b'"', &text[start..end]) {
        end = start + without_slashes(&text[start..start + quote]).0.len();
    }
    let is_of_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(*byte, b'+' | b'/' | b'=');
    let block = &text[start..end];
    let lines = block.split(|byte| !is_of_key(byte)).any(|line| line.len() >= MIN_KEY_LINE);
    let is_masked = block.len() >= MIN_KEY_LINE && block.iter().all(|byte| *byte == FILLER);
    (lines || is_masked).then(|| redaction(begin + start, block.len(), SecretKind::PrivateKey))
}
