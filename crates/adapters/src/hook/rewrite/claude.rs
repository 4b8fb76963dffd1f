//! Effect of Claude Code's `Write` and `Edit` on bytes, and inputs with which they make given bytes.
//!
//! Measured with 2.1.197, for an input that a hook has rewritten:
//!
//! - A file that starts with the byte order mark of UTF-16LE is read and written in UTF-16LE, any other in UTF-8. The mark is
//!   part of the text. Bytes that are invalid in that encoding are damaged.
//! - `Write` writes the content as given.
//! - `Edit` converts CRLF to LF, and replaces the first match or all matches. It converts LF back to CRLF if the start of the
//!   file has more CRLF than other LF. An empty `old_string` replaces the whole file.
//! - If `new_string` is empty and `old_string` does not end with a newline but precedes one somewhere, that newline is
//!   removed as well.
//! - An edit without effect fails.
//! - Curly quotation marks also match straight ones if there is no exact match. This module relies on exact matches only.

use std::borrow::Cow;

use super::{Approved, CannotRewrite};
use crate::hook::intent::EditCall;

/// Input of `Edit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) old_string: String,
    pub(super) new_string: String,
}

/// Length of the text, in UTF-16 code units, from which `Edit` derives the line ending of a file.
const SAMPLE_UNITS: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    fn of(file: &[u8]) -> Self {
        if file.starts_with(&[0xFF, 0xFE]) { Self::Utf16 } else { Self::Utf8 }
    }

    /// Decodes a file with its byte order mark. Returns `None` if encoding the text would give other bytes.
    fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self {
            Self::Utf8 => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Self::Utf16 => {
                let (pairs, rest) = bytes.as_chunks::<2>();
                let units = pairs.iter().map(|pair| u16::from_le_bytes(*pair));
                let text: Option<String> = char::decode_utf16(units).map(Result::ok).collect();
                text.filter(|_| rest.is_empty()).map(Cow::Owned)
            }
        }
    }

    fn encode(self, text: &str) -> Vec<u8> {
        match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Utf16 => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        }
    }
}

/// Predicts the file after `Write`.
pub(super) fn written(before: Option<&[u8]>, content: &str) -> Vec<u8> {
    Encoding::of(before.unwrap_or_default()).encode(content)
}

/// Returns the content with which `Write` makes the approved bytes.
pub(super) fn content(Approved { before, after, path }: Approved<'_>) -> Result<String, CannotRewrite> {
    let content = Encoding::of(before.unwrap_or_default()).decode(after);
    let content = content.filter(|content| written(before, content) == after);
    content.map(Cow::into_owned).ok_or_else(|| CannotRewrite::NotText { path: path.to_owned() })
}

/// A file in the form in which `Edit` searches it.
struct EditableText {
    encoding: Encoding,
    /// The text with CRLF converted to LF.
    text: String,
    /// `true` if `Edit` converts every LF to CRLF when it writes.
    crlf: bool,
}

impl EditableText {
    fn new(before: Option<&[u8]>) -> Option<Self> {
        let before = before.unwrap_or_default();
        let encoding = Encoding::of(before);
        let text = encoding.decode(before)?;
        Some(Self { encoding, text: text.replace("\r\n", "\n"), crlf: has_more_crlf(&text) })
    }

    fn write(&self, text: &str) -> Vec<u8> {
        if self.crlf {
            self.encoding.encode(&text.replace("\r\n", "\n").replace('\n', "\r\n"))
        } else {
            self.encoding.encode(text)
        }
    }
}

/// `true` if the first [`SAMPLE_UNITS`] of a text have more CRLF than other LF.
fn has_more_crlf(text: &str) -> bool {
    let mut units = 0;
    let start = text.char_indices().find(|(_, character)| {
        units += character.len_utf16();
        units > SAMPLE_UNITS
    });
    let sample = start.map_or(text, |(end, _)| &text[..end]);
    let crlf = sample.matches("\r\n").count();
    crlf > sample.matches('\n').count() - crlf
}

/// Predicts the file after `Edit`. Returns `None` if the edit fails or the result is not certain.
pub(super) fn edited(before: Option<&[u8]>, edit: &EditCall<'_>) -> Option<Vec<u8>> {
    let file = EditableText::new(before)?;
    let text = replaced(&file.text, edit)?;
    (text != file.text).then(|| file.write(&text))
}

fn replaced(text: &str, edit: &EditCall<'_>) -> Option<String> {
    let EditCall { old_string: old, new_string: new, replace_all } = *edit;
    if old.is_empty() {
        return Some(new.to_owned());
    }
    let with_newline = format!("{old}\n");
    let old = if new.is_empty() && !old.ends_with('\n') && text.contains(&with_newline) { &with_newline } else { old };
    if !text.contains(old) {
        return None;
    }
    Some(if replace_all { text.replace(old, new) } else { text.replacen(old, new, 1) })
}

/// Returns a replacement with which `Edit` makes the approved bytes. It starts with the lines that differ, and adds context until
/// the replacement is unique.
pub(super) fn edit(Approved { before, after, path }: Approved<'_>) -> Result<Replacement, CannotRewrite> {
    let not_text = || CannotRewrite::NotText { path: path.to_owned() };
    let file = EditableText::new(before).ok_or_else(not_text)?;
    let wanted = file.encoding.decode(after).ok_or_else(not_text)?;
    let wanted = if file.crlf { wanted.replace("\r\n", "\n") } else { wanted.into_owned() };
    if file.write(&wanted) != after {
        return Err(CannotRewrite::LineEndings { path: path.to_owned() });
    }
    let mut region = Region::new(&file.text, &wanted);
    loop {
        let edit = Replacement { old_string: region.old().to_owned(), new_string: region.new_text().to_owned() };
        if is_exact(before, &file.text, after, &edit) {
            return Ok(edit);
        }
        if !region.grow() {
            // The replacement of the whole text fails too, so the difference is in the line endings.
            return Err(CannotRewrite::LineEndings { path: path.to_owned() });
        }
    }
}

/// `true` if a replacement makes these bytes and matches once. Versions differ in the treatment of several matches.
fn is_exact(before: Option<&[u8]>, text: &str, after: &[u8], edit: &Replacement) -> bool {
    let Replacement { old_string, new_string } = edit;
    let is_unique = if old_string.is_empty() {
        text.is_empty()
    } else {
        text.find(old_string) == text.rfind(old_string) && text.contains(old_string)
    };
    is_unique && edited(before, &EditCall { old_string, new_string, replace_all: false }).as_deref() == Some(after)
}

/// The lines in which two texts differ, with a growing number of context lines.
struct Region<'t> {
    before: &'t str,
    after: &'t str,
    /// Length of the common start outside the region, in bytes.
    prefix: usize,
    /// Length of the common end outside the region, in bytes.
    suffix: usize,
    /// Number of lines that the next [`Region::grow`] adds on either side.
    step: usize,
}

impl<'t> Region<'t> {
    fn new(before: &'t str, after: &'t str) -> Self {
        let common = |a: &mut dyn Iterator<Item = &'t str>, b: &mut dyn Iterator<Item = &'t str>| {
            a.zip(b).take_while(|(a, b)| a == b).map(|(line, _)| line.len()).sum::<usize>()
        };
        let prefix = common(&mut before.split_inclusive('\n'), &mut after.split_inclusive('\n'));
        let (rest, new_rest) = (&before[prefix..], &after[prefix..]);
        let suffix = common(&mut rest.split_inclusive('\n').rev(), &mut new_rest.split_inclusive('\n').rev());
        Self { before, after, prefix, suffix, step: 1 }
    }

    fn old(&self) -> &'t str {
        &self.before[self.prefix..self.before.len() - self.suffix]
    }

    fn new_text(&self) -> &'t str {
        &self.after[self.prefix..self.after.len() - self.suffix]
    }

    /// Adds context lines on either side, twice as many each time. Returns `false` if the region is already the whole text.
    fn grow(&mut self) -> bool {
        if self.prefix == 0 && self.suffix == 0 {
            return false;
        }
        let above = self.before[..self.prefix].split_inclusive('\n').rev().take(self.step);
        self.prefix -= above.map(str::len).sum::<usize>();
        let below = self.before[self.before.len() - self.suffix..].split_inclusive('\n').take(self.step);
        self.suffix -= below.map(str::len).sum::<usize>();
        self.step *= 2;
        true
    }
}
