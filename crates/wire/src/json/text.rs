//! Decoding and encoding of JSON strings.

use std::borrow::Cow;

use memchr::memchr;

/// Decodes a string without its quotes, whose escapes are valid. A lone surrogate is decoded to U+FFFD.
pub fn decode(raw: &[u8]) -> Cow<'_, str> {
    let Some(first) = memchr(b'\\', raw) else { return String::from_utf8_lossy(raw) };
    let mut text = String::with_capacity(raw.len());
    let (mut rest, mut next) = (raw, Some(first));
    while let Some(at) = next {
        text.push_str(&String::from_utf8_lossy(&rest[..at]));
        rest = &rest[at + 1..];
        let Some((escape, after)) = rest.split_first() else { break };
        rest = after;
        match escape {
            b'b' => text.push('\u{8}'),
            b'f' => text.push('\u{c}'),
            b'n' => text.push('\n'),
            b'r' => text.push('\r'),
            b't' => text.push('\t'),
            b'u' => {
                let (character, used) = code_point(rest);
                text.push(character);
                rest = rest.get(used..).unwrap_or_default();
            }
            other => text.push(char::from(*other)),
        }
        next = memchr(b'\\', rest);
    }
    text.push_str(&String::from_utf8_lossy(rest));
    Cow::Owned(text)
}

/// Decodes the four hexadecimal digits after `\u`. Returns the character and the number of bytes used, including a
/// second surrogate.
fn code_point(rest: &[u8]) -> (char, usize) {
    let Some(high) = hex_digits(rest) else { return (char::REPLACEMENT_CHARACTER, 0) };
    if (0xD800..0xDC00).contains(&high)
        && let Some(low) = rest.get(4..).and_then(|rest| rest.strip_prefix(b"\\u")).and_then(hex_digits)
        && (0xDC00..0xE000).contains(&low)
    {
        let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 10);
    }
    (char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER), 4)
}

fn hex_digits(bytes: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(bytes.get(..4)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// Encodes a text as a quoted string, with only the escapes that JSON requires.
pub fn encode(text: &str) -> Vec<u8> {
    let mut raw = Vec::with_capacity(text.len() + 2);
    raw.push(b'"');
    encode_unquoted(text, &mut raw);
    raw.push(b'"');
    raw
}

/// Encodes a text without quotes.
pub fn encode_unquoted(text: &str, raw: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => raw.extend([b'\\', byte]),
            b'\n' => raw.extend(b"\\n"),
            b'\r' => raw.extend(b"\\r"),
            b'\t' => raw.extend(b"\\t"),
            0..0x20 => raw.extend(format!("\\u{byte:04x}").bytes()),
            _ => raw.push(byte),
        }
    }
}
