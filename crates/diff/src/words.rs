//! Which words of a changed line changed.
//!
//! Words are runs of identifier characters, runs of blanks, and single other characters; they are compared by the same
//! engine as lines. Bounded: a change too large to read word by word gets no spans, and neither does one whose sides
//! have next to nothing in common, where spans would be confetti.

use std::ops::Range;

use crate::change::Change;
use crate::diff::Diff;
use crate::engine::{Edit, intern_slices, solve};
use crate::lines::LineBreak;

/// A change with more bytes than this on its two sides is not looked into.
const MOST_BYTES: usize = 128 * 1024;
const MOST_WORDS: usize = 16 * 1024;

/// Changed byte ranges of both contents, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans {
    pub(crate) old: Vec<Range<usize>>,
    pub(crate) new: Vec<Range<usize>>,
}

pub(crate) fn spans(diff: &Diff<'_>, changes: &[Change]) -> Spans {
    let mut spans = Spans::default();
    for change in changes {
        let (old, new) = (change.old.of(diff.old.bytes), change.new.of(diff.new.bytes));
        if old.is_empty() || new.is_empty() || old.len() + new.len() > MOST_BYTES {
            continue;
        }
        let old_words = words(old, diff.old.line_break);
        let new_words = words(new, diff.new.line_break);
        if old_words.len() + new_words.len() > MOST_WORDS {
            continue;
        }
        let slice = |side, ends: &[u32], at: usize| word(side, ends, at);
        let (old_tokens, new_tokens, distinct) = intern_slices(
            (0..old_words.len()).map(|at| slice(old, &old_words, at)),
            (0..new_words.len()).map(|at| slice(new, &new_words, at)),
        );
        let edits = solve(&old_tokens, &new_tokens, distinct);
        if !worth_showing(&edits, old, &old_words, new, &new_words) {
            continue;
        }
        for Edit { old: old_edit, new: new_edit } in edits {
            push(&mut spans.old, old_edit, &old_words, change.old.start.offset, old);
            push(&mut spans.new, new_edit, &new_words, change.new.start.offset, new);
        }
    }
    spans
}

/// The end of each word.
fn words(bytes: &[u8], line_break: LineBreak) -> Vec<u32> {
    let mut ends = Vec::with_capacity(bytes.len() / 3 + 1);
    if line_break == LineBreak::Byte {
        split(bytes.iter().map(|&byte| class(u16::from(byte))), 1, &mut ends);
    } else {
        let unit = if line_break == LineBreak::Utf16Le { u16::from_le_bytes } else { u16::from_be_bytes };
        let (units, torn) = bytes.as_chunks::<2>();
        split(units.iter().map(|&bytes| class(unit(bytes))), 2, &mut ends);
        if !torn.is_empty() {
            ends.push(bytes.len() as u32);
        }
    }
    ends
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    Blank,
    Other,
}

/// Whatever is not ASCII counts as part of a word, so that no character is ever cut.
fn class(unit: u16) -> Class {
    match unit {
        0x30..=0x39 | 0x41..=0x5A | 0x5F | 0x61..=0x7A | 0x80.. => Class::Word,
        0x20 | 0x09 => Class::Blank,
        _ => Class::Other,
    }
}

fn split(classes: impl Iterator<Item = Class>, width: u32, ends: &mut Vec<u32>) {
    let mut current = None;
    let mut at = 0;
    for class in classes {
        if current.is_some_and(|current| current != class || class == Class::Other) {
            ends.push(at);
        }
        current = Some(class);
        at += width;
    }
    if current.is_some() {
        ends.push(at);
    }
}

fn start(ends: &[u32], at: usize) -> usize {
    if at == 0 { 0 } else { ends[at - 1] as usize }
}

fn word<'a>(bytes: &'a [u8], ends: &[u32], at: usize) -> &'a [u8] {
    &bytes[start(ends, at)..ends[at] as usize]
}

/// Whether at least a fifth of the visible characters stay.
fn worth_showing(edits: &[Edit], old: &[u8], old_words: &[u32], new: &[u8], new_words: &[u32]) -> bool {
    let visible = |bytes: &[u8]| bytes.iter().filter(|byte| !byte.is_ascii_whitespace() && **byte != 0).count();
    let share = |bytes: &[u8], ends: &[u32], range: fn(&Edit) -> &Range<u32>| {
        let changed: usize = edits
            .iter()
            .map(|edit| {
                let range = range(edit);
                visible(&bytes[start(ends, range.start as usize)..start(ends, range.end as usize)])
            })
            .sum();
        (visible(bytes) - changed, visible(bytes))
    };
    let (old_kept, old_all) = share(old, old_words, |edit| &edit.old);
    let (new_kept, new_all) = share(new, new_words, |edit| &edit.new);
    (old_kept + new_kept) * 5 >= old_all + new_all
}

/// Adds a span, joined to the one before it where only blanks lie between.
fn push(spans: &mut Vec<Range<usize>>, edit: Range<u32>, ends: &[u32], offset: usize, bytes: &[u8]) {
    let (from, to) = (start(ends, edit.start as usize), start(ends, edit.end as usize));
    if from == to {
        return;
    }
    if let Some(last) = spans.last_mut()
        && last.end >= offset
        && bytes[last.end - offset..from].iter().all(|byte| matches!(byte, b' ' | b'\t' | 0))
    {
        last.end = offset + to;
    } else {
        spans.push(offset + from..offset + to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, old_spans: &[&str], new_spans: &[&str]) {
        let diff = Diff::new(old.as_bytes(), new.as_bytes());
        let spans = spans(&diff, diff.changes());
        let text = |content: &'static str, spans: &[Range<usize>]| -> Vec<String> {
            spans.iter().map(|span| content[span.clone()].to_owned()).collect()
        };
        // The contents live as long as the test; leaking them keeps the helper simple.
        let (old, new) = (&*old.to_owned().leak(), &*new.to_owned().leak());
        assert_eq!(text(old, &spans.old), old_spans, "old spans of {old:?} → {new:?}");
        assert_eq!(text(new, &spans.new), new_spans, "new spans of {old:?} → {new:?}");
    }

    #[test]
    fn marks_the_words_that_changed() {
        check("let x = 1;\n", "let y = 1;\n", &["x"], &["y"]);
        check("call(a, b)\n", "call(a, b, c)\n", &[], &[", c"]);
        check("one two three\n", "one 2 3 three\n", &["two"], &["2 3"]);
        check("größe = 1\n", "grüße = 1\n", &["größe"], &["grüße"]);
        check("same\r\n", "same\n", &["\r"], &[]);
    }

    #[test]
    fn says_nothing_where_little_is_common() {
        check("alpha beta gamma\n", "x(y)[z]{w}\n", &[], &[]);
        check("a\n", "", &[], &[]);
        let large = |word: &str| format!("{}\n", word.repeat(20_000));
        check(&large("ab "), &large("cb "), &[], &[]);
    }

    #[test]
    fn utf16_words_are_code_units() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let (old, new) = (utf16("\u{FEFF}let x = 1\n"), utf16("\u{FEFF}let y = 1\n"));
        let diff = Diff::new(old.as_slice(), new.as_slice());
        assert_eq!(spans(&diff, diff.changes()), Spans { old: vec![10..12], new: vec![10..12] });
    }
}
