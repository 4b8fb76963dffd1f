//! Search for the text that an edit replaces.
//!
//! An exact match is preferred. If there is none, whole lines are compared, first without white space at their ends, then
//! without white space around them. A tolerant match must be the only one. Its replacement gets the indentation of the file;
//! if the indentations of both texts do not correspond line by line, there is no match.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Comparison of a line of the file with a wanted line.
type SameLine = fn(&str, &str) -> bool;

/// Maximum number of lines of a tolerant match.
const MAX_TOLERANT_LINES: usize = 1_000;

/// Required number of occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    One,
    All,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextMatch {
    Exact,
    Tolerant(Tolerant),
}

/// A match that ignored white space, with texts that match exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tolerant {
    /// Text of the file. It occurs exactly once.
    pub(super) old: String,
    pub(super) new: String,
    /// Ignored difference, for the middle of a sentence.
    pub(super) ignored: &'static str,
    /// First matched line, from 1.
    pub(super) line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    Absent,
    /// The text occurs more than once.
    Several {
        /// First lines of the occurrences, from 1.
        lines: Vec<usize>,
    },
}

/// Finds `old` in a text with `\n` line endings.
pub(super) fn find(text: &str, old: &str, new: &str, amount: Amount) -> Result<TextMatch, Mismatch> {
    let (old, new) = (unix(old), unix(new));
    let starts: Vec<usize> = text.match_indices(&*old).map(|(start, _)| start).collect();
    match (starts.len(), amount) {
        (0, Amount::All) => Err(Mismatch::Absent),
        (0, Amount::One) => tolerant(text, &old, &new).map(TextMatch::Tolerant),
        (1, _) | (_, Amount::All) => Ok(TextMatch::Exact),
        _ => Err(Mismatch::Several { lines: line_numbers(text, &starts) }),
    }
}

fn unix(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// Returns the 1-based line numbers of ascending offsets.
fn line_numbers(text: &str, offsets: &[usize]) -> Vec<usize> {
    let (mut line, mut at) = (1, 0);
    let number = |&offset: &usize| {
        line += text[at..offset].matches('\n').count();
        at = offset;
        line
    };
    offsets.iter().map(number).collect()
}

fn tolerant(text: &str, old: &str, new: &str) -> Result<Tolerant, Mismatch> {
    let wanted: Vec<&str> = old.split_terminator('\n').collect();
    let is_blank = wanted.iter().all(|line| line.trim().is_empty());
    if is_blank || wanted.len() > MAX_TOLERANT_LINES {
        return Err(Mismatch::Absent);
    }
    let lines: Vec<&str> = text.split_terminator('\n').collect();
    let places = |same: SameLine| -> Vec<usize> {
        let fits = |found: &[&str]| found.iter().zip(&wanted).all(|(found, wanted)| same(found, wanted));
        lines.windows(wanted.len()).enumerate().filter(|(_, found)| fits(found)).map(|(at, _)| at).collect()
    };
    let levels: [(&'static str, SameLine); 2] = [
        ("white space at the end of lines", |a, b| a.trim_end() == b.trim_end()),
        ("white space around lines", |a, b| a.trim() == b.trim()),
    ];
    for (ignored, same) in levels {
        let at = match places(same)[..] {
            [] => continue,
            [at] => at,
            ref several => return Err(Mismatch::Several { lines: several.iter().map(|at| at + 1).collect() }),
        };
        let found = &lines[at..at + wanted.len()];
        let new = reindent(new, &wanted, found).ok_or(Mismatch::Absent)?;
        return exact(text, at, found, old.ends_with('\n'), new)
            .map(|(old, new)| Tolerant { old, new, ignored, line: at + 1 })
            .ok_or(Mismatch::Absent);
    }
    Err(Mismatch::Absent)
}

/// Replaces the indentations of the wanted lines in `new` by those of the found lines. Returns `None` if they do not correspond.
fn reindent(new: &str, wanted: &[&str], found: &[&str]) -> Option<String> {
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for (wanted, found) in wanted.iter().zip(found).filter(|(wanted, _)| !wanted.trim().is_empty()) {
        let (wanted, found) = (indentation(wanted), indentation(found));
        if *known.entry(wanted).or_insert(found) != found {
            return None;
        }
    }
    // With a constant difference, other depths follow. Otherwise only the depths of the wanted text are known.
    let added = known.iter().map(|(wanted, found)| found.strip_suffix(wanted)).collect::<Option<Vec<_>>>();
    let removed = known.iter().map(|(wanted, found)| wanted.strip_suffix(found)).collect::<Option<Vec<_>>>();
    let constant = |parts: Option<Vec<&'_ str>>| {
        let parts = parts?;
        let first = *parts.first()?;
        parts.iter().all(|part| *part == first).then(|| first.to_owned())
    };
    let (added, removed) = (constant(added), constant(removed));
    let mut text = String::with_capacity(new.len());
    for line in new.split_inclusive('\n') {
        let given = indentation(line);
        let rest = &line[given.len()..];
        if rest.trim().is_empty() {
            text.push_str(line);
            continue;
        }
        if let Some(indentation) = known.get(given) {
            text.push_str(indentation);
        } else if let Some(added) = &added {
            text.push_str(added);
            text.push_str(given);
        } else if let Some(rest) = removed.as_ref().and_then(|removed| given.strip_prefix(removed.as_str())) {
            text.push_str(rest);
        } else {
            return None;
        }
        text.push_str(rest);
    }
    Some(text)
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Returns the found lines as a text that occurs exactly once, and the replacement with the same additions.
fn exact(text: &str, at: usize, found: &[&str], ends_line: bool, new: String) -> Option<(String, String)> {
    let start: usize = text.split_inclusive('\n').take(at).map(str::len).sum();
    let body = found.join("\n");
    let end = start + body.len();
    let (mut old, mut new) = (body, new);
    let has_break = text[end..].starts_with('\n');
    if ends_line && has_break {
        old.push('\n');
    } else if ends_line && new.ends_with('\n') {
        new.pop();
    }
    let end = start + old.len();
    // The lines may also occur within other lines. Line breaks around them exclude that.
    let before = if text[..start].ends_with('\n') { "\n" } else { "" };
    let after = if text[end..].starts_with('\n') { "\n" } else { "" };
    [("", ""), (before, ""), ("", after), (before, after)].into_iter().find_map(|(before, after)| {
        let candidate = [before, &old, after].concat();
        let is_unique = text.match_indices(candidate.as_str()).take(2).count() == 1;
        is_unique.then(|| (candidate, [before, &new, after].concat()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use proptest::prelude::*;

    use super::*;

    fn apply(text: &str, old: &str, new: &str) -> Option<String> {
        match find(text, old, new, Amount::One).ok()? {
            TextMatch::Exact => Some(text.replacen(old, new, 1)),
            TextMatch::Tolerant(found) => {
                assert_eq!(text.matches(&found.old).count(), 1, "{found:?}");
                Some(text.replacen(&found.old, &found.new, 1))
            }
        }
    }

    #[test]
    fn exact_match_is_preferred() {
        assert_eq!(find("a \na\n", "a\n", "b\n", Amount::One), Ok(TextMatch::Exact));
        assert_eq!(find("a\na\n", "a\n", "b\n", Amount::All), Ok(TextMatch::Exact));
        assert_eq!(find("a\nx\na\n", "a\n", "b\n", Amount::One), Err(Mismatch::Several { lines: vec![1, 3] }));
        assert_eq!(find("a \n", "a\n", "b\n", Amount::All), Err(Mismatch::Absent));
    }

    #[test]
    fn trailing_white_space_is_ignored() {
        assert_eq!(apply("one  \ntwo\n", "one\ntwo\n", "1\n2\n").unwrap(), "1\n2\n");
        assert_eq!(apply("one\ntwo", "one \ntwo \n", "1\n2\n").unwrap(), "1\n2");
        assert_eq!(apply("food\nfoo\n", "foo \n", "bar\n").unwrap(), "food\nbar\n");
    }

    #[test]
    fn replacement_gets_indentation_of_file() {
        let text = "fn a() {\n        if x {\n            y();\n        }\n}\n";
        let new = apply(
            text,
            "    if x {\n        y();\n    }\n",
            "    if x {\n        if z {\n            y();\n        }\n    }\n",
        );
        let expected =
            "fn a() {\n        if x {\n            if z {\n                y();\n            }\n        }\n}\n";
        assert_eq!(new.unwrap(), expected);
        let tabs = apply("a:\n\tb\n\t\tc\n", "    b\n        c\n", "    b\n        d\n");
        assert_eq!(tabs.unwrap(), "a:\n\tb\n\t\td\n");
        let shallower = apply("a\n  b\n", "  a\n    b\n", "  a\n  c\n    b\n");
        assert_eq!(shallower.unwrap(), "a\nc\n  b\n");
    }

    #[test]
    fn contradicting_indentation_is_no_match() {
        // Both wanted lines have the same depth; the found lines have two.
        assert_eq!(apply("a\n  b\n", " a\n b\n", " a\n c\n"), None);
        // A depth of the replacement that no pair of lines explains.
        assert_eq!(apply("\ta\n", "  a\n", "  a\n   b\n"), None);
    }

    #[test]
    fn several_tolerant_matches_are_refused() {
        assert_eq!(find(" a\n  a\n", "a \n", "b\n", Amount::One), Err(Mismatch::Several { lines: vec![1, 2] }));
        assert_eq!(find("\n\n", "  \n", "b\n", Amount::One), Err(Mismatch::Absent));
    }

    proptest! {
        #[test]
        fn tolerant_match_changes_only_found_lines(
            lines in prop::collection::vec("[ \t]{0,3}[abé]{0,2}[ ]{0,2}", 1..8),
            wanted in prop::collection::vec("[ \t]{0,3}[abé]{0,2}[ ]{0,2}", 1..4),
            ends in any::<bool>(),
        ) {
            let text = lines.join("\n") + "\n";
            let old = wanted.join("\n") + if ends { "\n" } else { "" };
            if let Ok(TextMatch::Tolerant(found)) = find(&text, &old, "NEW", Amount::One) {
                prop_assert_eq!(text.matches(&found.old).count(), 1);
                let before: Vec<&str> = text.lines().take(found.line - 1).collect();
                let result = text.replacen(&found.old, &found.new, 1);
                let kept: Vec<&str> = result.lines().take(found.line - 1).collect();
                prop_assert_eq!(before, kept);
            }
        }
    }
}
