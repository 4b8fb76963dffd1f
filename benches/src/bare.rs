//! Bare gix-imara-diff: no trimming, no choice of algorithm, no notes.
//!
//! Its own printer needs `str`, omits `\ No newline at end of file` and is slower (BASELINES.md). The peer therefore uses this
//! printer: one pass over its hunks, bytes from the interner.

use gix_imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token, sources::byte_lines};
use std::io::Write as _;
use std::ops::Range;

/// The unified diff of two contents.
pub fn unified(old: &[u8], new: &[u8], context: usize) -> Vec<u8> {
    let input = InternedInput::new(byte_lines(old), byte_lines(new));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let mut printer = Printer { input: &input, text: b"--- old\n+++ new\n".to_vec() };
    let context = context as u32;
    let mut group: Vec<Hunk> = Vec::new();
    for hunk in diff.hunks() {
        if group.last().is_some_and(|last| hunk.before.start - last.before.end > 2 * context) {
            printer.group(&group, context);
            group.clear();
        }
        group.push(hunk);
    }
    printer.group(&group, context);
    printer.text
}

struct Printer<'i, 'a> {
    input: &'i InternedInput<&'a [u8]>,
    text: Vec<u8>,
}

impl Printer<'_, '_> {
    fn group(&mut self, group: &[Hunk], context: u32) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
        let above = context.min(first.before.start);
        let below = context.min(self.input.before.len() as u32 - last.before.end);
        let old = first.before.start - above..last.before.end + below;
        let new = first.after.start - above..last.after.end + below;
        self.text.extend_from_slice(b"@@ -");
        self.range(&old);
        self.text.extend_from_slice(b" +");
        self.range(&new);
        self.text.extend_from_slice(b" @@\n");
        let InternedInput { before, after, .. } = self.input;
        let mut at = old.start;
        for hunk in group {
            self.lines(b' ', before, at..hunk.before.start);
            self.lines(b'-', before, hunk.before.clone());
            self.lines(b'+', after, hunk.after.clone());
            at = hunk.before.end;
        }
        self.lines(b' ', before, at..old.end);
    }

    fn range(&mut self, range: &Range<u32>) {
        let start = range.start + u32::from(!range.is_empty());
        // Writing to a vector does not fail.
        let _ = match range.len() {
            1 => write!(self.text, "{start}"),
            count => write!(self.text, "{start},{count}"),
        };
    }

    fn lines(&mut self, marker: u8, tokens: &[Token], range: Range<u32>) {
        for &token in &tokens[range.start as usize..range.end as usize] {
            let line = self.input.interner[token];
            self.text.push(marker);
            self.text.extend_from_slice(line);
            if line.last() != Some(&b'\n') {
                self.text.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    }
}
