//! Word spans against the same tokens given to gix-imara-diff, the baseline of BASELINES.md.

use std::hint::black_box;
use std::ops::Range;
use std::time::Duration;

use gix_imara_diff::{Algorithm, InternedInput};
use sayso_diff::{Diff, Hunk};

use crate::clock::{self, median, microseconds, milliseconds, percentile};
use crate::corpus::Corpus;
use crate::engines::CONTEXT;
use crate::table::{Check, Section, Target, thousands};

/// Above this, histogram is no longer the faster of the two.
const MYERS_FROM: usize = 2000;
/// A change with more bytes is not looked into, by us; nor does the baseline, so that both do the same work.
const MOST_BYTES: usize = 128 * 1024;

/// The comparisons of all pairs, which both ways start from.
pub fn diffs(corpus: &Corpus) -> Vec<Diff<'_>> {
    corpus.pairs.iter().map(|pair| Diff::new(pair.old.as_slice(), pair.new.as_slice())).collect()
}

/// Marks every hunk our way.
pub fn mark(diffs: &[Diff<'_>]) {
    for hunk in diffs.iter().flat_map(|diff| diff.hunks(CONTEXT)) {
        black_box(hunk.word_spans());
    }
}

/// Finds the spans of every hunk as the baseline does.
pub fn mark_bare<'a>(corpus: &'a Corpus, diffs: &[Diff<'a>]) {
    let mut baseline = Baseline::default();
    for (pair, diff) in corpus.pairs.iter().zip(diffs) {
        for hunk in diff.hunks(CONTEXT) {
            baseline.hunk(&hunk, &pair.old, &pair.new);
        }
    }
}

/// Everything it allocates is used again for the next change.
#[derive(Default)]
struct Baseline<'a> {
    input: InternedInput<&'a [u8]>,
    diff: gix_imara_diff::Diff,
    old_ends: Vec<u32>,
    new_ends: Vec<u32>,
}

impl<'a> Baseline<'a> {
    fn hunk(&mut self, hunk: &Hunk<'_, '_>, old: &'a [u8], new: &'a [u8]) {
        for change in hunk.changes() {
            black_box(self.spans(change.old.of(old), change.new.of(new)));
        }
    }

    /// Changed byte ranges of both sides.
    fn spans(&mut self, old: &'a [u8], new: &'a [u8]) -> [Vec<Range<u32>>; 2] {
        let mut spans = [Vec::new(), Vec::new()];
        if old.is_empty() || new.is_empty() || old.len() + new.len() > MOST_BYTES {
            return spans;
        }
        let Self { input, diff, old_ends, new_ends } = self;
        input.clear();
        old_ends.clear();
        new_ends.clear();
        input.update_before(Words { rest: old, at: 0, ends: old_ends });
        input.update_after(Words { rest: new, at: 0, ends: new_ends });
        let algorithm =
            if input.before.len() + input.after.len() > MYERS_FROM { Algorithm::Myers } else { Algorithm::Histogram };
        diff.compute_with(algorithm, &input.before, &input.after, input.interner.num_tokens());
        let offset = |ends: &[u32], token: u32| if token == 0 { 0 } else { ends[token as usize - 1] };
        for hunk in diff.hunks() {
            for (side, ends, range) in [(0, &*old_ends, hunk.before), (1, &*new_ends, hunk.after)] {
                if !range.is_empty() {
                    spans[side].push(offset(ends, range.start)..offset(ends, range.end));
                }
            }
        }
        spans
    }
}

/// Runs of identifier characters, runs of blanks, and single other characters; notes where each ends.
struct Words<'a, 'e> {
    rest: &'a [u8],
    at: u32,
    ends: &'e mut Vec<u32>,
}

impl<'a> Iterator for Words<'a, '_> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let class = CLASSES[usize::from(*self.rest.first()?)];
        let length = match class {
            Class::Other => 1,
            Class::Word | Class::Blank => {
                self.rest.iter().position(|&byte| CLASSES[usize::from(byte)] != class).unwrap_or(self.rest.len())
            }
        };
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        self.at += length as u32;
        self.ends.push(self.at);
        Some(word)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    Blank,
    Other,
}

/// A table, so that the baseline does not lose on splitting.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | 0x80.. => Class::Word,
            b' ' | b'\t' => Class::Blank,
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
};

/// Measures both ways over every hunk of the corpus.
pub fn section(corpus: &Corpus, rounds: usize) -> Section {
    let diffs = diffs(corpus);
    let hunks: usize = diffs.iter().map(|diff| diff.hunks(CONTEXT).count()).sum();
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        times[0].push(clock::time(|| mark(&diffs)).1);
        times[1].push(clock::time(|| mark_bare(corpus, &diffs)).1);
    }
    let mut each = each_hunk(corpus, &diffs);
    let title = format!("Word spans: {} hunks", thousands(hunks));
    let mut section = Section::new(title, &["total ms", "p50 µs", "p99 µs"], "ours/baseline")
        .note("both find the spans of every change of a hunk");
    let [ours, baseline] = times.each_mut().map(|times| median(times));
    let cells = |total, each: &mut [Duration]| {
        vec![milliseconds(total), microseconds(percentile(each, 50)), microseconds(percentile(each, 99))]
    };
    let check = Check::new(clock::ratio(ours, baseline), Target::AtMost(1.0));
    section.row("ours", cells(ours, &mut each[0]), Some(check));
    section.row("gix-imara-diff over the same words", cells(baseline, &mut each[1]), None);
    section
}

fn each_hunk(corpus: &Corpus, diffs: &[Diff<'_>]) -> [Vec<Duration>; 2] {
    let clock_cost = clock::cost();
    let mut each = [Vec::new(), Vec::new()];
    let mut baseline = Baseline::default();
    for (pair, diff) in corpus.pairs.iter().zip(diffs) {
        for hunk in diff.hunks(CONTEXT) {
            let ours = clock::time(|| black_box(hunk.word_spans()).old.len()).1;
            let theirs = clock::time(|| baseline.hunk(&hunk, &pair.old, &pair.new)).1;
            each[0].push(ours.saturating_sub(clock_cost));
            each[1].push(theirs.saturating_sub(clock_cost));
        }
    }
    each
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_or_single_characters() {
        let mut ends = Vec::new();
        let words: Vec<&[u8]> = Words { rest: b"a_1  ((b\n", at: 0, ends: &mut ends }.collect();
        assert_eq!(words, [&b"a_1"[..], b"  ", b"(", b"(", b"b", b"\n"]);
        assert_eq!(ends, [3, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn baseline_finds_the_changed_word() {
        let mut baseline = Baseline::default();
        assert_eq!(baseline.spans(b"f(x, 1)\n", b"f(y, 2)\n"), [vec![2..3, 5..6], vec![2..3, 5..6]]);
        assert_eq!(baseline.spans(b"", b"new\n"), [vec![], vec![]]);
    }
}
