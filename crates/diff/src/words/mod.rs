//! Changed words within changed lines.
//!
//! Words are runs of identifier characters, runs of blanks, and single other characters. They are compared by the same
//! engine as lines. A change that is too large gets no spans, and neither does a change whose sides have too little in
//! common.

mod marks;

use std::ops::Range;

use marks::Same;

use crate::change::Change;
use crate::diff::Diff;
use crate::engine::{Edit, Slices, Solver, Text, intern_slices};
use crate::lines::{LineBreak, common_prefix, common_suffix};

/// Maximum size of both sides of a change that is compared by words, in bytes.
const MAX_BYTES: usize = 128 * 1024;
const MAX_WORDS: usize = 16 * 1024;

/// Byte ranges of the changed parts in both contents, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordSpans {
    pub old: Vec<Range<usize>>,
    pub new: Vec<Range<usize>>,
}

pub(crate) fn spans(diff: &Diff<'_>, changes: &[Change]) -> WordSpans {
    spans_between(diff.old, diff.new, changes)
}

/// Compares the words of `changes` between two texts.
pub(crate) fn spans_between(old_text: Text<'_>, new_text: Text<'_>, changes: &[Change]) -> WordSpans {
    let mut spans = WordSpans::default();
    let mut solver = Solver::default();
    for change in changes {
        let (old, new) = (change.old.of(old_text.bytes), change.new.of(new_text.bytes));
        if old.is_empty() || new.is_empty() || old.len() + new.len() > MAX_BYTES {
            continue;
        }
        let old = Part { bytes: old, line_break: old_text.line_break, offset: change.old.start.offset };
        let new = Part { bytes: new, line_break: new_text.line_break, offset: change.new.start.offset };
        let Some(same) = common(old, new, &mut solver) else { continue };
        if old.is_one_line() && new.is_one_line() {
            spans.add(marks::marks(old, new, &same));
            continue;
        }
        for (old, new) in marks::partners(old, new, &same) {
            if let Some(same) = common(old, new, &mut solver) {
                spans.add(marks::marks(old, new, &same));
            }
        }
    }
    spans
}

impl WordSpans {
    fn add(&mut self, marks: Option<[Vec<Range<usize>>; 2]>) {
        if let Some([old, new]) = marks {
            self.old.extend(old);
            self.new.extend(new);
        }
    }
}

/// One side of a change, or a line of it.
#[derive(Clone, Copy)]
struct Part<'a> {
    bytes: &'a [u8],
    line_break: LineBreak,
    /// Offset within the content.
    offset: usize,
}

impl<'a> Part<'a> {
    fn is_one_line(self) -> bool {
        self.line_break.line_end(self.bytes, 0) == self.bytes.len()
    }

    fn lines(self) -> Vec<Part<'a>> {
        let mut lines = Vec::new();
        let mut at = 0;
        while at < self.bytes.len() {
            let end = self.line_break.line_end(self.bytes, at);
            lines.push(Part { bytes: &self.bytes[at..end], offset: self.offset + at, ..self });
            at = end;
        }
        lines
    }
}

/// Returns the common bytes of two parts in order; `None` if they have too many words.
fn common(old: Part<'_>, new: Part<'_>, solver: &mut Solver) -> Option<Vec<Same>> {
    // The common prefix and suffix need no word comparison. In most changes a single word in the middle differs.
    let (prefix, suffix) = common_words(old, new);
    let middle = |part: Part<'_>| prefix..part.bytes.len() - suffix;
    let old_middle = &old.bytes[middle(old)];
    let new_middle = &new.bytes[middle(new)];
    let old_words = words(old_middle, old.line_break);
    let new_words = words(new_middle, new.line_break);
    if old_words.len() + new_words.len() > MAX_WORDS {
        return None;
    }
    let edits = if old_words.is_empty() || new_words.is_empty() {
        vec![Edit { old: 0..old_words.len() as u32, new: 0..new_words.len() as u32 }]
    } else {
        let (old_tokens, new_tokens, bound) = intern_slices(
            Slices { bytes: old_middle, ends: &old_words },
            Slices { bytes: new_middle, ends: &new_words },
        );
        solver.solve(&old_tokens, &new_tokens, bound)
    };
    // The parts between the edits are common, and so are prefix and suffix.
    let mut same = Vec::with_capacity(edits.len() + 1);
    let mut at = (0, 0);
    for Edit { old: gone, new: come } in edits {
        let old_edit = prefix + start(&old_words, gone.start as usize);
        same.push(Same { old: at.0, new: at.1, length: old_edit - at.0 });
        at = (prefix + start(&old_words, gone.end as usize), prefix + start(&new_words, come.end as usize));
    }
    same.push(Same { old: at.0, new: at.1, length: old.bytes.len() - at.0 });
    Some(same)
}

/// Returns the sizes of the common prefix and the common suffix in whole words, in bytes.
fn common_words(old: Part<'_>, new: Part<'_>) -> (usize, usize) {
    if old.line_break != LineBreak::Byte || new.line_break != LineBreak::Byte {
        return (0, 0);
    }
    let (a, b) = (old.bytes, new.bytes);
    // `true` if a word spans the offset `at`.
    let joined = |bytes: &[u8], at: usize| {
        at > 0 && at < bytes.len() && {
            let before = CLASSES[bytes[at - 1] as usize];
            before != CharacterClass::Other && before == CLASSES[bytes[at] as usize]
        }
    };
    let mut prefix = common_prefix(a, b);
    while joined(a, prefix) || joined(b, prefix) {
        prefix -= 1;
    }
    let mut suffix = common_suffix(&a[prefix..], &b[prefix..]);
    while suffix > 0 && (joined(a, a.len() - suffix) || joined(b, b.len() - suffix)) {
        suffix -= 1;
    }
    (prefix, suffix)
}

/// Returns the end of each word.
fn words(bytes: &[u8], line_break: LineBreak) -> Vec<u32> {
    let mut ends = Vec::with_capacity(bytes.len() / 3 + 1);
    if line_break == LineBreak::Byte {
        split(bytes.iter().map(|&byte| CLASSES[byte as usize]), 1, &mut ends);
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
enum CharacterClass {
    Word,
    Blank,
    Other,
}

/// The classes of single bytes.
static CLASSES: [CharacterClass; 256] = {
    let mut classes = [CharacterClass::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = class(byte as u16);
        byte += 1;
    }
    classes
};

/// Non-ASCII characters are parts of words, so that no character is split.
const fn class(unit: u16) -> CharacterClass {
    match unit {
        0x30..=0x39 | 0x41..=0x5A | 0x5F | 0x61..=0x7A | 0x80.. => CharacterClass::Word,
        0x20 | 0x09 => CharacterClass::Blank,
        _ => CharacterClass::Other,
    }
}

fn split(classes: impl Iterator<Item = CharacterClass>, width: u32, ends: &mut Vec<u32>) {
    let mut current = None;
    let mut at = 0;
    for class in classes {
        if current.is_some_and(|current| current != class || class == CharacterClass::Other) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, old_spans: &[&str], new_spans: &[&str]) {
        let diff = Diff::new(old.as_bytes(), new.as_bytes());
        let spans = spans(&diff, diff.changes());
        let text = |content: &'static str, spans: &[Range<usize>]| -> Vec<String> {
            spans.iter().map(|span| content[span.clone()].to_owned()).collect()
        };
        // The contents must outlive the helper, so leak them in this test.
        let (old, new) = (&*old.to_owned().leak(), &*new.to_owned().leak());
        assert_eq!(text(old, &spans.old), old_spans, "old spans of {old:?} → {new:?}");
        assert_eq!(text(new, &spans.new), new_spans, "new spans of {old:?} → {new:?}");
    }

    #[test]
    fn changed_words_are_marked() {
        check("let x = 1;\n", "let y = 1;\n", &["x"], &["y"]);
        check("call(a, b)\n", "call(a, b, c)\n", &[], &[", c"]);
        check("one two three\n", "one 2 3 three\n", &["two"], &["2 3"]);
        check("größe = 1\n", "grüße = 1\n", &["größe"], &["grüße"]);
        check("same\r\n", "same\n", &["\r"], &[]);
        // A short gap between two marks is marked too, a long one is not.
        check("f(alpha, beta, x)\n", "f(gamma, delta, x)\n", &["alpha, beta"], &["gamma, delta"]);
        check("middle\n", "a middle c\n", &[], &["a ", " c"]);
        check("f(a, middle, b)\n", "f(c, middle, d)\n", &["a", "b"], &["c", "d"]);
    }

    #[test]
    fn dissimilar_lines_have_no_marks() {
        check("alpha beta gamma\n", "x(y)[z]{w}\n", &[], &[]);
        check("a\n", "", &[], &[]);
        // Completely new lines are not marked, even if they repeat words of the replaced lines.
        check("call(first, second)\n", "call(first, third)\nother(first);\n}\n", &["second"], &["third"]);
        // A removed word is marked, although another line contains the same word.
        check("say(name, two)\n", "say(name)\n\nfn all(names) {\n    say(two, two)\n", &[", two"], &[]);
        let large = |word: &str| format!("{}\n", word.repeat(20_000));
        check(&large("ab "), &large("cb "), &[], &[]);
    }

    #[test]
    fn utf16_words_are_code_units() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let (before, after) = (utf16("\u{FEFF}let x = 1\n"), utf16("\u{FEFF}let y = 1\n"));
        let diff = Diff::new(before.as_slice(), after.as_slice());
        let WordSpans { old, new } = spans(&diff, diff.changes());
        let marked = |content: &[u8], spans: &[Range<usize>]| {
            spans.iter().map(|span| content[span.clone()].to_vec()).collect::<Vec<_>>()
        };
        assert_eq!((marked(&before, &old), marked(&after, &new)), (vec![utf16("x")], vec![utf16("y")]));
    }
}
