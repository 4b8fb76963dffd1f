//! Cost of the inline form beyond the comparison. It must not grow with the number of hidden lines.

use std::hint::black_box;

use anyhow::{Result, ensure};
use sayso_diff::{Diff, INLINE_LINES};

use crate::allocator;
use crate::clock::{self, median, microseconds};
use crate::table::{Check, Section, Target};

const FEW: usize = 10_000;
const MANY: usize = 100_000;

/// Distribution of the changed lines.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Next to each other.
    Block,
    /// Every second line.
    Scattered,
}

fn contents(shape: Shape, changed: usize) -> (Vec<u8>, Vec<u8>) {
    let between = match shape {
        Shape::Block => "",
        Shape::Scattered => "same\n",
    };
    let content = |word: &str| {
        // As wide everywhere, so that the shown lines are as long in both sizes.
        let lines: Vec<String> = (0..changed).map(|number| format!("{word} {number:08}\n{between}")).collect();
        lines.concat().into_bytes()
    };
    (content("line"), content("LINE"))
}

/// Compares the cost of ten lines out of 10,000 and out of 100,000.
pub fn section(rounds: usize) -> Result<Section> {
    let columns = ["bytes of 10k", "bytes of 100k", "µs of 10k", "µs of 100k"];
    let mut section = Section::new("Inline diff: ten lines of many", &columns, "bytes 100k/10k").note(
        "allocated by Diff::inline beyond Diff::new; its time is counting the hunks and recognising the encoding",
    );
    for (name, shape) in [("one block", Shape::Block), ("every second line", Shape::Scattered)] {
        let [(few_bytes, few_time), (many_bytes, many_time)] =
            [measure(shape, FEW, rounds)?, measure(shape, MANY, rounds)?];
        let cells = vec![few_bytes.to_string(), many_bytes.to_string(), few_time, many_time];
        section.row(name, cells, Some(Check::new(many_bytes as f64 / few_bytes as f64, Target::AtMost(1.0))));
    }
    Ok(section)
}

/// Bytes allocated and time.
fn measure(shape: Shape, changed: usize, rounds: usize) -> Result<(usize, String)> {
    let (old, new) = contents(shape, changed);
    let diff = Diff::new(old.as_slice(), new.as_slice());
    let (inline, usage) = allocator::count(|| diff.inline(INLINE_LINES));
    ensure!(inline.lines.len() == INLINE_LINES, "the inline diff shows {} lines", inline.lines.len());
    ensure!(inline.total_lines >= 2 * changed, "the inline diff counts {} lines", inline.total_lines);
    let mut times: Vec<_> =
        (0..rounds * 5).map(|_| clock::time(|| black_box(diff.inline(INLINE_LINES)).total_lines).1).collect();
    Ok((usage.allocated, microseconds(median(&mut times))))
}
