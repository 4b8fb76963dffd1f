//! Encodes text in the format of an existing file.
//!
//! A model reads and writes UTF-8 with `\n`, while the file may be UTF-16 with a byte order mark and `\r\n`.
//! [`plain_text`] converts a file to the text that a model sees, and [`encode_like()`] converts back. Unedited content
//! keeps its bytes: `encode_like(base, plain_text(base))` equals the base.
//!
//! Every supported encoding restores the bytes that it decoded, so unedited lines need no comparison. Only the line
//! breaks are lost in the text, and only a base with mixed line endings has to be compared to restore them.
//!
//! # Limits
//!
//! - The result has the base's encoding, but may not be detected as such again. UTF-16 without a byte order mark is
//!   detected by zero bytes, which Chinese text rarely has, and Latin-1 is detected as invalid UTF-8.
//! - A model sees a base with `\r\r\n` as text with `\r\n`. A line of the text that equals a base line keeps that line's
//!   bytes; elsewhere `\r\n` is a line break.

use std::borrow::Cow;
use std::collections::BTreeSet;

use memchr::{memchr_iter, memchr2, memmem};

use crate::engine::{self, Text};
use crate::lines::LineBreak;
use crate::text_format::{Encoding, Kind, LineEnding, TextFormat};

const BOM: char = '\u{FEFF}';

/// A text encoded in the format of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodedText {
    pub bytes: Vec<u8>,
    /// Distinct characters that the base's encoding lacks, in order of appearance. If there are any, `bytes` is UTF-8
    /// with the base's line endings and byte order mark.
    pub unrepresentable: Vec<char>,
}

/// Encodes `text` in the format of the file `base`: its encoding, byte order mark and line endings.
///
/// - `\r\n` in the text is kept; `\n` becomes the base's line ending.
/// - If the base mixes line endings, unchanged lines keep theirs. Other lines take the ending of the replaced line,
///   else of the nearest preceding line, else of the first line.
/// - A byte order mark in the text is the base's own; if the base has none, it is kept as given.
/// - The last line has a break if it has one in the text.
/// - An empty or binary base, or one that cannot be decoded without loss, has no format, and the text is encoded as
///   UTF-8 unchanged.
pub fn encode_like<'t>(base: &[u8], text: impl Into<Cow<'t, str>>) -> EncodedText {
    let given = text.into();
    if usual(base).is_some() {
        return as_given(given);
    }
    let form = TextFormat::of(base);
    let Some(old) = decoded(base, form) else { return as_given(given) };
    let text = &*given;
    // If the base has two marks, the mark in the text is an ordinary character.
    let text = if form.bom && !old.starts_with(BOM) { text.strip_prefix(BOM).unwrap_or(text) } else { text };
    let text = match form.line_ending {
        LineEnding::None | LineEnding::Lf => Cow::Borrowed(text),
        LineEnding::Crlf if !has(&old, "\r\r\n") => with_crlf(text),
        LineEnding::Crlf | LineEnding::Mixed => Cow::Owned(with_breaks_of(&old, text)),
    };
    let mark = &base[..mark_length(form)];
    let Some(encoded) = form.encoding.encode(&text) else {
        return EncodedText {
            bytes: [mark, text.as_bytes()].concat(),
            unrepresentable: unrepresentable(form.encoding, &text),
        };
    };
    let bytes = if mark.is_empty() { encoded.into_owned() } else { [mark, &encoded].concat() };
    EncodedText { bytes, unrepresentable: Vec::new() }
}

/// Returns the text of a file as a model sees it: decoded, without byte order mark, with `\n` for every `\r\n`. `None`
/// if the file is binary or cannot be decoded without loss.
pub fn plain_text(base: &[u8]) -> Option<Cow<'_, str>> {
    if let Some(text) = usual(base) {
        return Some(Cow::Borrowed(text));
    }
    let text = decoded(base, TextFormat::of(base))?;
    Some(match without_crlf(&text) {
        Cow::Owned(plain) => Cow::Owned(plain),
        Cow::Borrowed(_) => text,
    })
}

/// Fast path: returns the text of a base that is UTF-8 without byte order mark and `\r`. Most files are, so this check
/// must be cheaper than detecting the format.
fn usual(base: &[u8]) -> Option<&str> {
    // Without zero bytes the base is neither binary nor UTF-16, whose marks are not valid UTF-8.
    let text = if memchr2(b'\r', 0, base).is_none() { std::str::from_utf8(base).ok() } else { None };
    text.filter(|text| !text.starts_with(BOM))
}

fn as_given(text: Cow<'_, str>) -> EncodedText {
    EncodedText { bytes: text.into_owned().into_bytes(), unrepresentable: Vec::new() }
}

/// Returns the size of the byte order mark, in bytes.
fn mark_length(form: TextFormat) -> usize {
    match form.encoding {
        _ if !form.bom => 0,
        // Content with a mark is detected as Latin-1 if it was meant to be UTF-8 and has an invalid byte.
        Encoding::Utf8 | Encoding::Latin1 => 3,
        Encoding::Utf16Le | Encoding::Utf16Be => 2,
    }
}

/// Returns the decoded text after the byte order mark.
fn decoded(base: &[u8], form: TextFormat) -> Option<Cow<'_, str>> {
    let bytes = &base[mark_length(form)..];
    (form.kind == Kind::Text).then(|| form.encoding.decode_exactly(bytes)).flatten()
}

fn has(text: &str, part: &str) -> bool {
    memmem::find(text.as_bytes(), part.as_bytes()).is_some()
}

/// Replaces every `\r\n` by `\n`.
fn without_crlf(text: &str) -> Cow<'_, str> {
    let mut plain = String::new();
    let mut done = 0;
    for at in memmem::find_iter(text.as_bytes(), "\r\n") {
        plain.push_str(&text[done..at]);
        done = at + 1;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    plain.push_str(&text[done..]);
    Cow::Owned(plain)
}

/// Replaces every `\n` that is not part of a `\r\n` by `\r\n`.
fn with_crlf(text: &str) -> Cow<'_, str> {
    let mut wider = String::new();
    let mut done = 0;
    let bare = |at: &usize| !text[..*at].ends_with('\r');
    for at in memchr_iter(b'\n', text.as_bytes()).filter(bare) {
        if wider.is_empty() {
            wider.reserve(text.len() + text.len() / 16);
        }
        wider.push_str(&text[done..at]);
        wider.push_str("\r\n");
        done = at + 1;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    wider.push_str(&text[done..]);
    Cow::Owned(wider)
}

/// Restores the base's lines where the text is unchanged, and uses nearby line endings elsewhere.
fn with_breaks_of(base: &str, text: &str) -> String {
    let plain = without_crlf(base);
    // If the plain base still contains `\r\n`, a `\r\n` in the text is not a line break either.
    let compared = if has(&plain, "\r\n") { Cow::Borrowed(text) } else { without_crlf(text) };
    let changes = engine::changes(by_lines(&plain), by_lines(&compared));
    let old: Vec<&str> = base.split_inclusive('\n').collect();
    let mut new = text.split_inclusive('\n');
    let mut result = String::with_capacity(text.len() + old.len());
    let mut done = 0;
    for change in &changes {
        let (start, end) = (change.old.start.line, change.old.end.line);
        for line in &old[done..start] {
            result.push_str(line);
            new.next();
        }
        for (number, line) in new.by_ref().take(change.new.lines()).enumerate() {
            match line.strip_suffix('\n') {
                Some(content) if !content.ends_with('\r') => {
                    result.push_str(content);
                    result.push_str(break_near(&old, (start + number).min(end), end));
                }
                _ => result.push_str(line),
            }
        }
        done = end;
    }
    old[done..].iter().for_each(|line| result.push_str(line));
    result
}

/// Treats decoded text as UTF-8 lines, whatever zero characters it contains.
fn by_lines(text: &str) -> Text<'_> {
    Text { bytes: text.as_bytes(), line_break: LineBreak::Byte }
}

/// Returns the break of the line `at` if it precedes `end`, else of the nearest preceding line, else of the first line.
fn break_near(lines: &[&str], at: usize, end: usize) -> &'static str {
    let before = lines[..end.min(at + 1)].iter().rev().chain(lines);
    // Only the last line can lack a break.
    before
        .copied()
        .find(|line| line.ends_with('\n'))
        .map_or("\n", |line| if line.ends_with("\r\n") { "\r\n" } else { "\n" })
}

/// Returns the characters of a text that an encoding lacks.
fn unrepresentable(encoding: Encoding, text: &str) -> Vec<char> {
    let mut seen = BTreeSet::new();
    let lacks = |character: char| encoding.encode(character.encode_utf8(&mut [0; 4])).is_none();
    text.chars().filter(|&character| !character.is_ascii() && seen.insert(character) && lacks(character)).collect()
}
