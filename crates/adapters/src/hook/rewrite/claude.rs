//! What Claude Code's Write and Edit do to the bytes of a file, and what to tell them so that they make certain bytes.
//!
//! As tried with 2.1.197, for an input that comes from a hook:
//!
//! - A file that starts with the byte order mark of UTF-16 (little endian) is read and written in it, any other in UTF-8. The
//!   mark is a character of the text. What is no text in that encoding is damaged.
//! - Write writes the content as it is.
//! - Edit makes every CRLF an LF first, replaces the first match or all of them, and makes every LF a CRLF in the end if the
//!   start of the file had more of those. An empty old text stands for the whole file.
//! - If the new text is empty, the old one does not end with a newline and is somewhere followed by one, that goes too.
//! - An edit that changes nothing fails.
//! - Quotation marks that fit no better are matched by their straight forms. Nothing here relies on that.

use std::borrow::Cow;

use super::{Approved, CannotRewrite};
use crate::hook::intent::EditCall;

/// One replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) old_string: String,
    pub(super) new_string: String,
}

/// How many UTF-16 units of a file's text decide about its line endings.
const SAMPLE: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    fn of(file: &[u8]) -> Self {
        if file.starts_with(&[0xFF, 0xFE]) { Self::Utf16 } else { Self::Utf8 }
    }

    /// The text, byte order mark and all, if reading and writing it changes no byte.
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

/// What Write makes of a file.
pub(super) fn written(before: Option<&[u8]>, content: &str) -> Vec<u8> {
    Encoding::of(before.unwrap_or_default()).encode(content)
}

/// The content with which Write makes these bytes.
pub(super) fn content(Approved { before, after, path }: Approved<'_>) -> Result<String, CannotRewrite> {
    let content = Encoding::of(before.unwrap_or_default()).decode(after);
    let content = content.filter(|content| written(before, content) == after);
    content.map(Cow::into_owned).ok_or_else(|| CannotRewrite::NotText { path: path.to_owned() })
}

/// A file as Edit sees it.
struct Seen {
    encoding: Encoding,
    /// Its text, in which every CRLF is an LF.
    text: String,
    /// Whether every LF becomes a CRLF in the end.
    crlf: bool,
}

impl Seen {
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

/// Whether the start of a text has more CRLF than other LF.
fn has_more_crlf(text: &str) -> bool {
    let mut units = 0;
    let start = text.char_indices().find(|(_, character)| {
        units += character.len_utf16();
        units > SAMPLE
    });
    let sample = start.map_or(text, |(end, _)| &text[..end]);
    let crlf = sample.matches("\r\n").count();
    crlf > sample.matches('\n').count() - crlf
}

/// What Edit makes of a file; nothing where it fails or that is not sure.
pub(super) fn edited(before: Option<&[u8]>, edit: &EditCall<'_>) -> Option<Vec<u8>> {
    let seen = Seen::new(before)?;
    let text = replaced(&seen.text, edit)?;
    (text != seen.text).then(|| seen.write(&text))
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

/// The replacement with which Edit makes these bytes.
pub(super) fn edit(Approved { before, after, path }: Approved<'_>) -> Result<Edit, CannotRewrite> {
    let not_text = || CannotRewrite::NotText { path: path.to_owned() };
    let seen = Seen::new(before).ok_or_else(not_text)?;
    let wanted = seen.encoding.decode(after).ok_or_else(not_text)?;
    let wanted = if seen.crlf { wanted.replace("\r\n", "\n") } else { wanted.into_owned() };
    if seen.write(&wanted) != after {
        return Err(CannotRewrite::LineEndings { path: path.to_owned() });
    }
    let mut region = Region::new(&seen.text, &wanted);
    loop {
        let edit = Edit { old_string: region.old().to_owned(), new_string: region.new_text().to_owned() };
        if is_right(before, &seen.text, after, &edit) {
            return Ok(edit);
        }
        if !region.grow() {
            // The whole text was not right either, so the text is not what differs.
            return Err(CannotRewrite::LineEndings { path: path.to_owned() });
        }
    }
}

/// Whether a replacement makes these bytes, and could be about no other place: not all versions take the first of several.
fn is_right(before: Option<&[u8]>, text: &str, after: &[u8], edit: &Edit) -> bool {
    let Edit { old_string, new_string } = edit;
    let is_one = if old_string.is_empty() {
        text.is_empty()
    } else {
        text.find(old_string) == text.rfind(old_string) && text.contains(old_string)
    };
    is_one && edited(before, &EditCall { old_string, new_string, replace_all: false }).as_deref() == Some(after)
}

/// The lines in which two texts differ, with more and more of what they share around them.
struct Region<'t> {
    before: &'t str,
    after: &'t str,
    /// Bytes that both share at the start, and those that both share at the end, outside of the region.
    prefix: usize,
    suffix: usize,
    /// How many lines the next step adds on either side.
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

    /// Takes in more lines on either side, twice as many each time; false where there are no more.
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
