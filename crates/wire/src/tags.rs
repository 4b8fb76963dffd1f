//! Tags within a text, such as `<system-reminder>`, in which agents put content that the user did not write.
//!
//! Tags are located in the JSON notation of the text, so an edit between them leaves the other bytes unchanged.

use std::ops::Range;

use memchr::memchr_iter;

/// Maximum length of a tag name, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// Maximum number of tags in one text.
const MAX_TAGS: usize = 200;
/// Maximum nesting of tags.
const MAX_DEPTH: u32 = 4;

/// A pair of tags with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag<'t> {
    pub name: &'t str,
    /// Byte range including the tags.
    pub whole: Range<usize>,
    /// Byte range between the tags.
    pub inner: Range<usize>,
    /// Number of enclosing tags.
    pub depth: u32,
}

/// Finds the closed tags of a text, in JSON notation without the quotes.
pub fn tags(raw: &[u8]) -> Vec<Tag<'_>> {
    let mut tags: Vec<Tag<'_>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    // An open tag provisionally ends at its own start tag.
    for at in memchr_iter(b'<', raw) {
        if tags.len() >= MAX_TAGS && open.is_empty() {
            break;
        }
        let rest = &raw[at + 1..];
        if let Some(rest) = rest.strip_prefix(b"/") {
            let Some(name) = name(rest) else { continue };
            let Some(position) = open.iter().rposition(|index| tags[*index].name == name) else { continue };
            // Tags opened inside and not closed are plain text.
            for index in open.drain(position..).skip(1) {
                tags[index].name = "";
            }
            // The first drained tag is the closed one itself.
            let end = at + name.len() + 3;
            let Some(tag) = tags.iter_mut().rev().find(|tag| tag.name == name && tag.whole.end == tag.inner.start)
            else {
                continue;
            };
            (tag.inner.end, tag.whole.end) = (at, end);
        } else if tags.len() < MAX_TAGS && starts_line(raw, at) {
            let Some(name) = name(rest) else { continue };
            let start = at + name.len() + 2;
            open.push(tags.len());
            tags.push(Tag { name, whole: at..start, inner: start..start, depth: 0 });
        }
    }
    for index in open {
        tags[index].name = "";
    }
    tags.retain(|tag| !tag.name.is_empty());
    for index in 0..tags.len() {
        let own = tags[index].whole.clone();
        let around = tags[..index].iter().filter(|tag| tag.whole.end >= own.end);
        tags[index].depth = around.count() as u32;
    }
    tags.retain(|tag| tag.depth < MAX_DEPTH);
    tags
}

/// Returns the tag name before `>`, if it is valid.
fn name(rest: &[u8]) -> Option<&str> {
    let end = rest.iter().take(MAX_NAME_BYTES).position(|byte| *byte == b'>')?;
    let name = std::str::from_utf8(&rest[..end]).ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.bytes().all(plain)).then_some(name)
}

/// `true` at the start of a line or after another tag, white space ignored. Elsewhere a tag is probably code.
fn starts_line(raw: &[u8], at: usize) -> bool {
    let mut before = &raw[..at];
    loop {
        before = before.trim_ascii_end();
        let backslashes = before.iter().rev().skip(1).take_while(|byte| **byte == b'\\').count();
        // An escaped backslash before `n` is text, not a line break.
        match before.last() {
            None | Some(b'>') => return true,
            Some(b'n' | b'r') if backslashes % 2 == 1 => return true,
            Some(b't') if backslashes % 2 == 1 => before = &before[..before.len() - 2],
            Some(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(raw: &str) -> Vec<(String, String, u32)> {
        let tags = tags(raw.as_bytes());
        tags.iter().map(|tag| (tag.name.to_owned(), raw[tag.inner.clone()].to_owned(), tag.depth)).collect()
    }

    fn tag(name: &str, inner: &str, depth: u32) -> (String, String, u32) {
        (name.to_owned(), inner.to_owned(), depth)
    }

    #[test]
    fn tags_are_found_with_content() {
        assert_eq!(found("<a>x</a>"), [tag("a", "x", 0)]);
        assert_eq!(found(r"hello\n<context>\none\n</context>\nbye"), [tag("context", r"\none\n", 0)]);
        assert_eq!(
            found(r"<outer>\n<inner>x</inner>\n</outer>"),
            [tag("outer", r"\n<inner>x</inner>\n", 0), tag("inner", "x", 1)]
        );
        assert_eq!(found("<a>1</a><a>2</a>"), [tag("a", "1", 0), tag("a", "2", 0)]);
    }

    #[test]
    fn unclosed_tags_and_code_are_ignored() {
        assert_eq!(found("<a>x"), []);
        assert_eq!(found("let x: Vec<T> = y</T>"), []);
        assert_eq!(found("</a>"), []);
        assert_eq!(found(r"<a>\n<b>x</a>"), [tag("a", r"\n<b>x", 0)]);
        assert_eq!(found(r"<x>\n<a>1</a>\n<b>2</b>"), [tag("a", "1", 0), tag("b", "2", 0)]);
        assert_eq!(found(r"a\\n<b>x</b>"), [], "a backslash and an n are no end of a line");
        assert_eq!(found(r"a\n\t<b>x</b>"), [tag("b", "x", 0)]);
        assert_eq!(found("<1>x</1>"), []);
        assert_eq!(found("<a b>x</a b>"), []);
    }
}
