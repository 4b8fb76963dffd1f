//! Strings as JSON writes them.

use std::borrow::Cow;

use memchr::memchr;

/// Reads a string without its quotes, in which every escape is one that JSON has. Half of a surrogate pair stands for nothing that a
/// text can hold, and is shown as U+FFFD.
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
                let (character, used) = unit(rest);
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

/// The character of an escape whose `\u` was read, and how many bytes it takes from there.
fn unit(rest: &[u8]) -> (char, usize) {
    let Some(high) = hexadecimal(rest) else { return (char::REPLACEMENT_CHARACTER, 0) };
    if (0xD800..0xDC00).contains(&high)
        && let Some(low) = rest.get(4..).and_then(|rest| rest.strip_prefix(b"\\u")).and_then(hexadecimal)
        && (0xDC00..0xE000).contains(&low)
    {
        let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 10);
    }
    (char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER), 4)
}

fn hexadecimal(bytes: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(bytes.get(..4)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// Writes a text as a string in quotes, with the escapes that JSON demands and no others.
pub fn encode(text: &str) -> Vec<u8> {
    let mut raw = Vec::with_capacity(text.len() + 2);
    raw.push(b'"');
    encode_inside(text, &mut raw);
    raw.push(b'"');
    raw
}

/// The same without quotes.
pub fn encode_inside(text: &str, raw: &mut Vec<u8>) {
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
