//! Text written in the form of a file.
//!
//! A model reads and sends UTF-8 with `\n`; the file may be UTF-16 with a byte order mark and `\r\n`. [`plain_text`] is the
//! file as the model sees it and [`like`] the way back, so that only what was edited changes: the law is that
//! `like(base, plain_text(base))` is the base, to the byte.
//!
//! Every encoding here gives back the bytes it was decoded from, so lines that were not edited need no comparison to keep
//! theirs. What the text does not tell is which break a line had, and only a base that mixes them has to be compared for it.
//!
//! # Limits
//!
//! - The result is in the base's encoding, whether or not it is still recognised as such: UTF-16 without a byte order mark is
//!   known by its zero bytes, which a text in Chinese has few of, and Latin-1 is what is not UTF-8.
//! - A base with `\r\r\n` is a text with `\r\n` to a model. Where a line of the text is the same as the base's it stands for
//!   that; elsewhere its `\r\n` is a line break as in any other text.

use std::borrow::Cow;
use std::collections::BTreeSet;

use memchr::{memchr_iter, memchr2, memmem};

use crate::engine::{self, Text};
use crate::form::{Encoding, Form, Kind, LineEnding};
use crate::lines::LineBreak;

const BOM: char = '\u{FEFF}';

/// A text as a file would hold it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alike {
    /// The bytes to write.
    pub bytes: Vec<u8>,
    /// The characters that the base's encoding lacks, in order of first appearance, none twice. Where there are any, all of
    /// `bytes` is UTF-8; line endings and byte order mark are kept.
    pub unrepresentable: Vec<char>,
}

/// Writes `text` as the file `base` would hold it: in its encoding, with its byte order mark and its line endings.
///
/// - `\r\n` in the text is meant, and `\n` stands for what the base has throughout.
/// - Where the base mixes endings, lines that did not change keep theirs whatever the text says; others take that of the line
///   they replace, or else of the nearest line before, or else of the first.
/// - A byte order mark at the start of the text is the one that the base has; a base without gets it as given.
/// - The last line has a break if it has one in the text.
/// - An empty or binary base, and one that cannot be decoded without loss, has no form to follow: the text is taken as it is.
pub fn like<'t>(base: &[u8], text: impl Into<Cow<'t, str>>) -> Alike {
    let given = text.into();
    if usual(base).is_some() {
        return as_given(given);
    }
    let form = Form::of(base);
    let Some(old) = decoded(base, form) else { return as_given(given) };
    let text = &*given;
    // After a second mark, the text's own is a character like others.
    let text = if form.bom && !old.starts_with(BOM) { text.strip_prefix(BOM).unwrap_or(text) } else { text };
    let text = match form.line_ending {
        LineEnding::None | LineEnding::Lf => Cow::Borrowed(text),
        LineEnding::Crlf if !has(&old, "\r\r\n") => with_crlf(text),
        LineEnding::Crlf | LineEnding::Mixed => Cow::Owned(with_breaks_of(&old, text)),
    };
    let mark = &base[..mark_length(form)];
    let Some(encoded) = form.encoding.encode(&text) else {
        return Alike {
            bytes: [mark, text.as_bytes()].concat(),
            unrepresentable: unrepresentable(form.encoding, &text),
        };
    };
    let bytes = if mark.is_empty() { encoded.into_owned() } else { [mark, &encoded].concat() };
    Alike { bytes, unrepresentable: Vec::new() }
}

/// The text of a file as a model sees it: decoded, without byte order mark, with `\n` for every `\r\n`. `None` if the file is
/// binary, or cannot be decoded without loss.
pub fn plain_text(base: &[u8]) -> Option<Cow<'_, str>> {
    if let Some(text) = usual(base) {
        return Some(Cow::Borrowed(text));
    }
    let text = decoded(base, Form::of(base))?;
    Some(match without_crlf(&text) {
        Cow::Owned(plain) => Cow::Owned(plain),
        Cow::Borrowed(_) => text,
    })
}

/// The text of a base with nothing about it that another text would have to follow: UTF-8 without byte order mark and `\r`.
/// This is what most files are, so it has to cost less than finding out what exactly the base is.
fn usual(base: &[u8]) -> Option<&str> {
    // Without zero bytes it is neither binary nor UTF-16, whose marks are not UTF-8.
    let text = if memchr2(b'\r', 0, base).is_none() { std::str::from_utf8(base).ok() } else { None };
    text.filter(|text| !text.starts_with(BOM))
}

fn as_given(text: Cow<'_, str>) -> Alike {
    Alike { bytes: text.into_owned().into_bytes(), unrepresentable: Vec::new() }
}

/// How many bytes of a content of this form are its byte order mark.
fn mark_length(form: Form) -> usize {
    match form.encoding {
        _ if !form.bom => 0,
        // Latin-1 with a mark was meant to be UTF-8 and has a byte that is not.
        Encoding::Utf8 | Encoding::Latin1 => 3,
        Encoding::Utf16Le | Encoding::Utf16Be => 2,
    }
}

/// The characters after the byte order mark, as they are.
fn decoded(base: &[u8], form: Form) -> Option<Cow<'_, str>> {
    let bytes = &base[mark_length(form)..];
    (form.kind == Kind::Text).then(|| form.encoding.decode_exactly(bytes)).flatten()
}

fn has(text: &str, part: &str) -> bool {
    memmem::find(text.as_bytes(), part.as_bytes()).is_some()
}

/// The text with `\n` for every `\r\n`.
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

/// The text with `\r\n` for every `\n` that is not part of one.
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

/// The text with the base's line where it did not change, and elsewhere with breaks as the base has them nearby.
fn with_breaks_of(base: &str, text: &str) -> String {
    let plain = without_crlf(base);
    // What the base itself says with `\r\n` after taking one `\r` off is no line break in the text either.
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

/// Characters by now, whatever zeros are among them.
fn by_lines(text: &str) -> Text<'_> {
    Text { bytes: text.as_bytes(), line_break: LineBreak::Byte }
}

/// The break of the line `at`, if that is before `end`, or else of the nearest line before it, or else of the first.
fn break_near(lines: &[&str], at: usize, end: usize) -> &'static str {
    let before = lines[..end.min(at + 1)].iter().rev().chain(lines);
    // Only the last line can lack one.
    before
        .copied()
        .find(|line| line.ends_with('\n'))
        .map_or("\n", |line| if line.ends_with("\r\n") { "\r\n" } else { "\n" })
}

/// The characters of a text that an encoding lacks.
fn unrepresentable(encoding: Encoding, text: &str) -> Vec<char> {
    let mut seen = BTreeSet::new();
    let lacks = |character: char| encoding.encode(character.encode_utf8(&mut [0; 4])).is_none();
    text.chars().filter(|&character| !character.is_ascii() && seen.insert(character) && lacks(character)).collect()
}
