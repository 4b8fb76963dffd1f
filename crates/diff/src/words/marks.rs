//! Derives readable marks from common bytes.
//!
//! A person compares line with line. Two lines are therefore paired if each shares most with the other, and each
//! pair is compared separately. Parts that differ are marked, unless nearly all of a line would be marked.

use std::ops::Range;

use super::Part;

/// Common bytes of two parts: their offsets from the starts of the parts, and their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Same {
    pub(super) old: usize,
    pub(super) new: usize,
    pub(super) length: usize,
}

/// Pairs the lines of two parts that are the best partners of each other. The pairs are in the order of the old lines;
/// lines without a partner are left out.
pub(super) fn partners<'a>(old: Part<'a>, new: Part<'a>, same: &[Same]) -> Vec<(Part<'a>, Part<'a>)> {
    let (old_lines, new_lines) = (old.lines(), new.lines());
    // For each line, its best partner so far with the number of shared visible bytes.
    let mut of_old = vec![(usize::MAX, 0); old_lines.len()];
    let mut of_new = vec![(usize::MAX, 0); new_lines.len()];
    let mut offer = |(at_old, at_new): (usize, usize), weight: usize| {
        if weight > of_old[at_old].1 {
            of_old[at_old] = (at_new, weight);
        }
        if weight > of_new[at_new].1 {
            of_new[at_new] = (at_old, weight);
        }
    };
    let end = |line: &Part<'_>, part: Part<'_>| line.offset - part.offset + line.bytes.len();
    let mut pair = (0, 0);
    let mut weight = 0;
    for &Same { old: mut at_old, new: mut at_new, mut length } in same {
        while length > 0 {
            let before = pair;
            while end(&old_lines[pair.0], old) <= at_old {
                pair.0 += 1;
            }
            while end(&new_lines[pair.1], new) <= at_new {
                pair.1 += 1;
            }
            // All common bytes of one pair of lines are consecutive, because neither side goes back.
            if pair != before {
                offer(before, weight);
                weight = 0;
            }
            let rest = (end(&old_lines[pair.0], old) - at_old).min(end(&new_lines[pair.1], new) - at_new);
            let within = length.min(rest);
            weight += visible(&old.bytes[at_old..at_old + within]);
            at_old += within;
            at_new += within;
            length -= within;
        }
    }
    offer(pair, weight);
    let mutual = |(at, &(partner, _)): (usize, &(usize, usize))| {
        (partner != usize::MAX && of_new[partner].0 == at).then(|| (old_lines[at], new_lines[partner]))
    };
    of_old.iter().enumerate().filter_map(mutual).collect()
}

/// Returns the marks of two lines as ranges of the whole contents; `None` if the lines have too little in common.
pub(super) fn marks(old: Part<'_>, new: Part<'_>, same: &[Same]) -> Option<[Vec<Range<usize>>; 2]> {
    let kept: usize = same.iter().map(|same| visible(&old.bytes[same.old..same.old + same.length])).sum();
    // At least a fifth of the visible bytes must be common.
    if 2 * kept * 5 < visible(old.bytes) + visible(new.bytes) {
        return None;
    }
    let in_old = same.iter().map(|same| same.old..same.old + same.length);
    let in_new = same.iter().map(|same| same.new..same.new + same.length);
    Some([mark(old, in_old), mark(new, in_new)])
}

/// Counts the bytes that are neither blanks nor control characters.
fn visible(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte > b' ').count()
}

/// Returns the unmatched parts of a line, given its matched parts. A gap between two marks is kept only if it has more
/// visible bytes than the shorter mark. A line with hardly any common part is not marked.
fn mark(line: Part<'_>, matched: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let count = |span: &Range<usize>| visible(&line.bytes[span.clone()]);
    let end = line.line_break.without_break(line.bytes).len();
    let mut marks: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    for same in matched.chain(std::iter::once(end..end)) {
        let mark = at..same.start.min(end);
        at = same.end;
        if mark.start >= mark.end {
            continue;
        }
        match marks.last_mut() {
            Some(last) if count(&(last.end..mark.start)) <= count(last).min(count(&mark)) => last.end = mark.end,
            _ => marks.push(mark),
        }
    }
    let marked: usize = marks.iter().map(count).sum();
    if marked * 20 > count(&(0..end)) * 17 {
        marks.clear();
    }
    marks.iter().map(|mark| line.offset + mark.start..line.offset + mark.end).collect()
}
