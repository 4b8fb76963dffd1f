//! Tags within a text, such as `<system-reminder>`: agents put there what the user did not say.
//!
//! Found in the text as it is written, so that an edit of what is between them leaves the rest of the text as it is.

use std::ops::Range;

use memchr::memchr_iter;

/// No name of a tag is longer.
const LONGEST: usize = 64;
/// More tags in one text are not shown by themselves.
const MOST: usize = 200;
/// Nor are those that are deeper.
const DEEPEST: u32 = 4;

/// A piece of a text between tags of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag<'t> {
    /// The name.
    pub name: &'t str,
    /// With the tags.
    pub whole: Range<usize>,
    /// Without them.
    pub inner: Range<usize>,
    /// How many tags it is in.
    pub depth: u32,
}

/// Finds the tags of a text as JSON writes it, without the quotes. Those that are not closed are none.
pub fn tags(raw: &[u8]) -> Vec<Tag<'_>> {
    let mut tags: Vec<Tag<'_>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    // Of what is not known to be closed yet, the end is the end of its own beginning.
    for at in memchr_iter(b'<', raw) {
        if tags.len() >= MOST && open.is_empty() {
            break;
        }
        let rest = &raw[at + 1..];
        if let Some(rest) = rest.strip_prefix(b"/") {
            let Some(name) = name(rest) else { continue };
            let Some(position) = open.iter().rposition(|index| tags[*index].name == name) else { continue };
            // Those that were opened within it and not closed are text.
            for index in open.drain(position..).skip(1) {
                tags[index].name = "";
            }
            // It was `position`'s own that is drained first.
            let end = at + name.len() + 3;
            let Some(tag) = tags.iter_mut().rev().find(|tag| tag.name == name && tag.whole.end == tag.inner.start)
            else {
                continue;
            };
            (tag.inner.end, tag.whole.end) = (at, end);
        } else if tags.len() < MOST && begins_line(raw, at) {
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
    tags.retain(|tag| tag.depth < DEEPEST);
    tags
}

/// The name before `>`, if it is one.
fn name(rest: &[u8]) -> Option<&str> {
    let end = rest.iter().take(LONGEST).position(|byte| *byte == b'>')?;
    let name = std::str::from_utf8(&rest[..end]).ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.bytes().all(plain)).then_some(name)
}

/// Whether only white space is before a place in its line: elsewhere, it is likely code.
fn begins_line(raw: &[u8], at: usize) -> bool {
    let mut before = &raw[..at];
    loop {
        before = before.trim_ascii_end();
        let backslashes = before.iter().rev().skip(1).take_while(|byte| **byte == b'\\').count();
        // A backslash that is itself escaped is text.
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
    fn tags_are_found_with_what_is_between_them() {
        assert_eq!(found("<a>x</a>"), [tag("a", "x", 0)]);
        assert_eq!(found(r"hello\n<context>\none\n</context>\nbye"), [tag("context", r"\none\n", 0)]);
        assert_eq!(
            found(r"<outer>\n<inner>x</inner>\n</outer>"),
            [tag("outer", r"\n<inner>x</inner>\n", 0), tag("inner", "x", 1)]
        );
        assert_eq!(found("<a>1</a><a>2</a>"), [tag("a", "1", 0), tag("a", "2", 0)]);
    }

    #[test]
    fn what_is_not_closed_or_is_code_is_no_tag() {
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
