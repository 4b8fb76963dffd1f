//! The text format of a content: text or binary, encoding, line ending, final newline.
//!
//! The format only affects display and notes. Lines, hunks and patches keep the bytes.

use std::borrow::Cow;
use std::fmt;

use memchr::{memchr, memchr_iter};
use serde::{Deserialize, Serialize};

use crate::lines::LineBreak;

/// The encoding of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
    /// A single-byte encoding, decoded as Windows-1252, which assigns a character to every byte. Used for all other
    /// content.
    Latin1,
}

/// The line ending of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineEnding {
    /// The content has no line break.
    None,
    Lf,
    Crlf,
    /// Both `\n` and `\r\n` occur.
    Mixed,
}

/// The kind of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Text,
    Binary,
}

/// The detected format of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct TextFormat {
    pub kind: Kind,
    /// Encoding; meaningless for binary content.
    pub encoding: Encoding,
    /// `true` if the content starts with a byte order mark.
    pub bom: bool,
    pub line_ending: LineEnding,
    /// `true` if the last line has a break, or the content is empty.
    pub final_newline: bool,
}

impl TextFormat {
    /// Detects the format of a whole content.
    pub fn of(bytes: &[u8]) -> Self {
        let (_, bom) = wide_encoding(bytes);
        let utf8_bom = bytes.starts_with(UTF8_BOM);
        let encoding = Encoding::of(bytes);
        let line_break = encoding.line_break();
        Self {
            kind: if looks_binary(bytes, encoding) { Kind::Binary } else { Kind::Text },
            encoding,
            bom: bom || utf8_bom,
            line_ending: line_ending(bytes, line_break),
            final_newline: bytes.is_empty() || line_break.breaks_before(bytes, bytes.len()),
        }
    }
}

impl Encoding {
    /// Detects the encoding of a whole content.
    pub fn of(bytes: &[u8]) -> Self {
        match wide_encoding(bytes).0 {
            Some(encoding) => encoding,
            None if std::str::from_utf8(bytes).is_ok() => Self::Utf8,
            None => Self::Latin1,
        }
    }

    pub(crate) fn line_break(self) -> LineBreak {
        match self {
            Self::Utf8 | Self::Latin1 => LineBreak::Byte,
            Self::Utf16Le => LineBreak::Utf16Le,
            Self::Utf16Be => LineBreak::Utf16Be,
        }
    }

    /// Decodes bytes for display; invalid bytes become `U+FFFD`.
    pub fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        match self {
            Self::Utf8 => String::from_utf8_lossy(bytes),
            Self::Latin1 => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0,
            Self::Utf16Le => encoding_rs::UTF_16LE.decode_without_bom_handling(bytes).0,
            Self::Utf16Be => encoding_rs::UTF_16BE.decode_without_bom_handling(bytes).0,
        }
    }

    /// Decodes bytes if [`encode`](Self::encode) restores them exactly.
    pub(crate) fn decode_exactly(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        let encoding = match self {
            Self::Utf8 => return std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Self::Latin1 => encoding_rs::WINDOWS_1252,
            Self::Utf16Le => encoding_rs::UTF_16LE,
            Self::Utf16Be => encoding_rs::UTF_16BE,
        };
        encoding.decode_without_bom_handling_and_without_replacement(bytes)
    }

    /// Encodes a text, if the encoding has all of its characters.
    pub(crate) fn encode(self, text: &str) -> Option<Cow<'_, [u8]>> {
        // `encoding_rs` does not encode UTF-16.
        let wide = |to_bytes: fn(u16) -> [u8; 2]| {
            let mut bytes = Vec::with_capacity(text.len() * 2);
            text.encode_utf16().for_each(|unit| bytes.extend_from_slice(&to_bytes(unit)));
            Cow::Owned(bytes)
        };
        Some(match self {
            Self::Utf8 => Cow::Borrowed(text.as_bytes()),
            Self::Utf16Le => wide(u16::to_le_bytes),
            Self::Utf16Be => wide(u16::to_be_bytes),
            Self::Latin1 => match encoding_rs::WINDOWS_1252.encode(text) {
                (bytes, _, false) => bytes,
                (_, _, true) => return None,
            },
        })
    }
}

/// Detects the line break from a sample of the content.
pub(crate) fn line_break(bytes: &[u8]) -> LineBreak {
    wide_encoding(bytes).0.map_or(LineBreak::Byte, Encoding::line_break)
}

const UTF8_BOM: &[u8] = b"\xEF\xBB\xBF";
/// Size of the sample for detecting UTF-16 without a byte order mark, in bytes.
const SAMPLE: usize = 512;

/// Detects UTF-16 by its byte order mark, or by zero bytes in the same half of the code units.
fn wide_encoding(bytes: &[u8]) -> (Option<Encoding>, bool) {
    if bytes.starts_with(b"\xFF\xFE") && !bytes.starts_with(b"\xFF\xFE\0\0") {
        return (Some(Encoding::Utf16Le), true);
    }
    if bytes.starts_with(b"\xFE\xFF") {
        return (Some(Encoding::Utf16Be), true);
    }
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    if bytes.len() < 4 || !bytes.len().is_multiple_of(2) || memchr(0, sample).is_none() {
        return (None, false);
    }
    let units = sample.as_chunks::<2>().0;
    let (mut zero_first, mut zero_second, mut control) = (0, 0, 0);
    for [first, second] in units {
        zero_first += usize::from(*first == 0);
        zero_second += usize::from(*second == 0);
        let character = first | second;
        control += usize::from(character < b' ' && !matches!(character, b'\t' | b'\n' | b'\r'));
    }
    let mostly = |zeros: usize| zeros * 4 >= units.len() * 3 && control == 0;
    match (zero_first, zero_second) {
        (0, zeros) if mostly(zeros) => (Some(Encoding::Utf16Le), false),
        (zeros, 0) if mostly(zeros) => (Some(Encoding::Utf16Be), false),
        _ => (None, false),
    }
}

/// `true` if bytes contain a zero byte, or if one decoded character in ten is a control or replacement character.
fn looks_binary(bytes: &[u8], encoding: Encoding) -> bool {
    let sample = &bytes[..bytes.len().min(8000)];
    let is_noise = |character: char| {
        let control = character.is_control() && !matches!(character, '\t' | '\n' | '\r' | '\x0C' | '\x1B');
        control || matches!(character, '\u{FFFD}' | '\u{E000}'..='\u{F8FF}')
    };
    match encoding {
        Encoding::Utf8 => memchr(0, bytes).is_some(),
        Encoding::Latin1 if memchr(0, bytes).is_some() => true,
        // Nine bytes that Latin-1 decodes to control characters are letters in other encodings, so count only the first
        // 32.
        Encoding::Latin1 => {
            sample.iter().filter(|byte| byte.is_ascii() && is_noise(char::from(**byte))).count() * 10 > sample.len()
        }
        Encoding::Utf16Le | Encoding::Utf16Be => {
            let text = encoding.decode(sample);
            text.chars().filter(|character| is_noise(*character)).count() * 10 > text.chars().count()
        }
    }
}

fn line_ending(bytes: &[u8], line_break: LineBreak) -> LineEnding {
    let (mut lf, mut crlf) = (false, false);
    let mut seen = |is_crlf: bool| {
        *(if is_crlf { &mut crlf } else { &mut lf }) = true;
        lf && crlf
    };
    // Stop at the first line with a different ending.
    match line_break {
        // Most files have no `\r`, and a single search for it is faster than stopping at every line.
        LineBreak::Byte if memchr(b'\r', bytes).is_none() => lf = memchr(b'\n', bytes).is_some(),
        LineBreak::Byte => {
            let _ = memchr_iter(b'\n', bytes).any(|at| seen(at > 0 && bytes[at - 1] == b'\r'));
        }
        LineBreak::Utf16Le | LineBreak::Utf16Be => {
            let mut start = 0;
            while start < bytes.len() {
                let end = line_break.line_end(bytes, start);
                if line_break.breaks_before(bytes, end) {
                    let line = line_break.without_break(&bytes[start..end]);
                    let carriage_return: &[u8] = if line_break == LineBreak::Utf16Le { b"\r\0" } else { b"\0\r" };
                    if seen(line.ends_with(carriage_return)) {
                        break;
                    }
                }
                start = end;
            }
        }
    }
    match (lf, crlf) {
        (false, false) => LineEnding::None,
        (true, false) => LineEnding::Lf,
        (false, true) => LineEnding::Crlf,
        (true, true) => LineEnding::Mixed,
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16 LE",
            Self::Utf16Be => "UTF-16 BE",
            Self::Latin1 => "Latin-1",
        })
    }
}

impl fmt::Display for LineEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Lf => "LF",
            Self::Crlf => "CRLF",
            Self::Mixed => "mixed LF and CRLF",
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Binary => "binary",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], kind: Kind, encoding: Encoding, bom: bool, line_ending: LineEnding, final_newline: bool) {
        let expected = TextFormat { kind, encoding, bom, line_ending, final_newline };
        assert_eq!(TextFormat::of(bytes), expected, "of {:?}", String::from_utf8_lossy(bytes));
    }

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn formats() {
        use Encoding::{Latin1, Utf8, Utf16Be, Utf16Le};
        use Kind::{Binary, Text};
        use LineEnding::{Crlf, Lf, Mixed, None};
        check(b"", Text, Utf8, false, None, true);
        check(b"a", Text, Utf8, false, None, false);
        check(b"a\nb\n", Text, Utf8, false, Lf, true);
        check(b"a\r\nb\r\n", Text, Utf8, false, Crlf, true);
        check(b"a\r\nb\nc", Text, Utf8, false, Mixed, false);
        check(b"lone\rcarriage\n", Text, Utf8, false, Lf, true);
        check("\u{FEFF}a\n".as_bytes(), Text, Utf8, true, Lf, true);
        check("grüße\n".as_bytes(), Text, Utf8, false, Lf, true);
        check(b"gr\xFC\xDFe\n", Text, Latin1, false, Lf, true);
        check(b"a\0b\n", Binary, Utf8, false, Lf, true);
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Binary, Latin1, false, Mixed, false);
        check(&utf16("\u{FEFF}a\r\nb\r\n", u16::to_le_bytes), Text, Utf16Le, true, Crlf, true);
        check(&utf16("\u{FEFF}a\nb", u16::to_be_bytes), Text, Utf16Be, true, Lf, false);
        check(&utf16("no mark here\r\n", u16::to_le_bytes), Text, Utf16Le, false, Crlf, true);
        check(&utf16("no mark here\n", u16::to_be_bytes), Text, Utf16Be, false, Lf, true);
        // A byte order mark does not turn noise into text.
        let noise: Vec<u8> = (0..300u32).map(|i| ((i * i * 7919) >> 5) as u8).collect();
        check(&[b"\xFE\xFF", &noise[..]].concat(), Binary, Utf16Be, true, None, false);
        // 32-bit integers resemble UTF-16 and are binary.
        check(&[1, 0, 0, 0, 2, 0, 0, 0], Binary, Utf8, false, None, false);
    }

    #[test]
    fn decoding_never_fails() {
        assert_eq!(Encoding::Latin1.decode(b"caf\xE9 \x80"), "café €");
        assert_eq!(Encoding::Utf8.decode(b"a\xFFb"), "a\u{FFFD}b");
        assert_eq!(Encoding::Utf16Le.decode(&utf16("naïve 🦀", u16::to_le_bytes)), "naïve 🦀");
        assert_eq!(Encoding::Utf16Be.decode(b"\0a\xD8\0"), "a\u{FFFD}");
    }
}
