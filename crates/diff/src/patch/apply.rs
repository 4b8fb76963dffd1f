//! Applies hunks that were read to a base.

use std::fmt;

use super::{FilePatch, PatchHunk};
use crate::hunk::LineKind;
use crate::lines::LineBreak;

/// Which hunks of a file to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Every hunk.
    All,
    /// The hunks with these 1-based numbers.
    Hunks(Vec<usize>),
}

/// Where a hunk may be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Where its header says, and nowhere else.
    Strict,
    /// At most this many lines from there, counted after the moves of the hunks before it.
    Within(usize),
}

/// The result of applying a patch to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The file's new bytes.
    pub bytes: Vec<u8>,
    /// For each applied hunk, its number and how far from its header's line it was found.
    pub moves: Vec<(usize, isize)>,
}

/// A hunk that could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The hunk's number.
    pub hunk: usize,
    /// Why.
    pub reason: Reason,
}

/// Why a hunk could not be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no hunk of this number.
    NoSuchHunk,
    /// The base has other lines at the place.
    DoesNotMatch {
        /// The 1-based line of the base that differs from what the hunk expects.
        line: usize,
    },
    /// The base ends before the hunk does.
    BaseTooShort {
        /// How many lines the base has.
        lines: usize,
    },
    /// No place within the distance fits.
    NotFound {
        /// How far was searched.
        distance: usize,
    },
    /// Two places at the same distance fit.
    Ambiguous {
        /// The 1-based lines of the two.
        lines: (usize, usize),
    },
    /// It lies before or in the hunk that precedes it.
    Overlaps,
    /// It would add lines after a last line that has no line break, and so join two lines.
    AfterUnfinishedLine,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hunk {}: ", self.hunk)?;
        match self.reason {
            Reason::NoSuchHunk => f.write_str("there is no hunk of this number"),
            Reason::DoesNotMatch { line } => write!(f, "line {line} of the file is not what the hunk expects"),
            Reason::BaseTooShort { lines } => write!(f, "the file has only {lines} lines"),
            Reason::NotFound { distance } => {
                write!(f, "its lines are not in the file within {distance} lines of where it says")
            }
            Reason::Ambiguous { lines: (first, second) } => {
                write!(f, "its lines fit equally well at line {first} and at line {second}")
            }
            Reason::Overlaps => f.write_str("it overlaps the hunk before it"),
            Reason::AfterUnfinishedLine => {
                f.write_str("it adds lines after the file's last line, which has no line break")
            }
        }
    }
}

impl FilePatch<'_> {
    /// Applies the selected hunks to `base`, or says of each that does not fit why. Hunks that are not selected leave
    /// their part of the base as it is: none selected gives exactly the base.
    pub fn apply(&self, base: &[u8], selection: &Selection, placement: Placement) -> Result<Applied, Vec<Rejection>> {
        let starts = starts(base);
        let mut applied = Applied { bytes: Vec::with_capacity(base.len()), moves: Vec::new() };
        let mut rejections = Vec::new();
        if let Selection::Hunks(numbers) = selection {
            let missing = numbers.iter().filter(|&&number| number == 0 || number > self.hunks.len());
            rejections.extend(missing.map(|&hunk| Rejection { hunk, reason: Reason::NoSuchHunk }));
        }
        // Lines of the base already dealt with, and how far the last hunk was from its place.
        let mut done = 0;
        let mut drift: isize = 0;
        for hunk in &self.hunks {
            if let Selection::Hunks(numbers) = selection
                && !numbers.contains(&hunk.number)
            {
                continue;
            }
            let place = Place { hunk, base, starts: &starts, floor: done };
            match place.find(placement, drift) {
                Ok(line) => {
                    applied.bytes.extend_from_slice(&base[starts[done]..starts[line]]);
                    let kept = hunk.lines.iter().filter(|line| line.kind != LineKind::Remove);
                    kept.for_each(|line| applied.bytes.extend_from_slice(line.bytes));
                    drift = line.cast_signed() - first_line(hunk).cast_signed();
                    applied.moves.push((hunk.number, drift));
                    done = line + hunk.old_lines();
                }
                Err(reason) => rejections.push(Rejection { hunk: hunk.number, reason }),
            }
        }
        applied.bytes.extend_from_slice(&base[starts[done]..]);
        if rejections.is_empty() { Ok(applied) } else { Err(rejections) }
    }
}

/// Line starts, and the end of the last line.
fn starts(base: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    let mut at = 0;
    while at < base.len() {
        at = LineBreak::Byte.line_end(base, at);
        starts.push(at);
    }
    starts
}

/// The 0-based line a hunk starts at by its header.
fn first_line(hunk: &PatchHunk<'_>) -> usize {
    if hunk.old_lines() == 0 { hunk.old_start } else { hunk.old_start.saturating_sub(1) }
}

struct Place<'p> {
    hunk: &'p PatchHunk<'p>,
    base: &'p [u8],
    starts: &'p [usize],
    /// The first line that no earlier hunk has taken.
    floor: usize,
}

impl Place<'_> {
    fn find(&self, placement: Placement, drift: isize) -> Result<usize, Reason> {
        let expected = first_line(self.hunk);
        let distance = match placement {
            Placement::Strict => return self.check(expected).map(|()| expected),
            Placement::Within(distance) => distance,
        };
        let expected = expected.saturating_add_signed(drift);
        if self.check(expected).is_ok() {
            return Ok(expected);
        }
        let last = self.starts.len().saturating_sub(1 + self.hunk.old_lines());
        let farthest = distance.min(expected.max(last.saturating_sub(expected)));
        for step in 1..=farthest {
            let above = expected.checked_sub(step).filter(|&line| self.check(line).is_ok());
            let below = Some(expected + step).filter(|&line| self.check(line).is_ok());
            match (above, below) {
                (Some(above), Some(below)) => return Err(Reason::Ambiguous { lines: (above + 1, below + 1) }),
                (Some(line), None) | (None, Some(line)) => return Ok(line),
                (None, None) => {}
            }
        }
        if distance == 0 { self.check(expected).map(|()| expected) } else { Err(Reason::NotFound { distance }) }
    }

    /// Whether the hunk's old lines stand at `line` of the base.
    fn check(&self, line: usize) -> Result<(), Reason> {
        let lines = self.starts.len() - 1;
        if line < self.floor {
            return Err(Reason::Overlaps);
        }
        let mut at = line;
        for old in self.hunk.lines.iter().filter(|line| line.kind != LineKind::Add) {
            if at >= lines {
                return Err(Reason::BaseTooShort { lines });
            }
            if self.base[self.starts[at]..self.starts[at + 1]] != *old.bytes {
                return Err(Reason::DoesNotMatch { line: at + 1 });
            }
            at += 1;
        }
        if at > lines {
            return Err(Reason::BaseTooShort { lines });
        }
        let adds = self.hunk.lines.iter().any(|line| line.kind == LineKind::Add);
        let unfinished = |end: usize| end > 0 && self.base[self.starts[end] - 1] != b'\n';
        if adds && line == at && unfinished(at) {
            return Err(Reason::AfterUnfinishedLine);
        }
        Ok(())
    }
}
