//! Applies hunks that were read to a base.

use std::collections::BTreeSet;
use std::fmt;

use super::search::occurrences;
use super::{FilePatch, PatchHunk};
use crate::diff::Side;
use crate::hunk::LineKind;
use crate::lines::LineBreak;
use crate::unified::NO_FILE;

/// Which hunks to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Every hunk.
    All,
    /// The hunks with these 1-based numbers.
    Hunks(BTreeSet<usize>),
}

impl Selection {
    /// No hunk.
    pub fn none() -> Self {
        Self::Hunks(BTreeSet::new())
    }

    pub(crate) fn has(&self, number: usize) -> bool {
        match self {
            Self::All => true,
            Self::Hunks(numbers) => numbers.contains(&number),
        }
    }

    /// The numbers that none of `count` hunks has.
    pub(crate) fn beyond(&self, count: usize) -> Vec<Rejection> {
        let Self::Hunks(numbers) = self else { return Vec::new() };
        let missing = numbers.iter().filter(|&&number| number == 0 || number > count);
        missing.map(|&hunk| Rejection { hunk, reason: Reason::NoSuchHunk }).collect()
    }
}

/// Where a hunk may be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Where its header says, and nowhere else.
    Strict,
    /// At most this many lines from there, counted after the moves of the hunks before it. A hunk without old lines has
    /// nothing to be recognised by and stays where it is.
    Within(usize),
}

/// What a patch makes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patched {
    /// The file's new bytes, or `None` if there is no file afterwards.
    pub content: Option<Vec<u8>>,
    /// For each applied hunk, its number and how far from its header's line it was found.
    pub moves: Vec<(usize, isize)>,
}

/// A hunk that could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The hunk's number; 0 for the file as a whole.
    pub hunk: usize,
    /// Why.
    pub reason: Reason,
}

/// Why a hunk could not be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no hunk of this number.
    NoSuchHunk,
    /// Part of what the patch says about the file could not be read; see the patch's problems.
    NotUnderstood,
    /// The patch creates a file that exists.
    FileExists,
    /// The patch changes a file that does not exist.
    NoSuchFile,
    /// The patch deletes a file, but not all of its lines.
    LeavesLines,
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
    /// A line without a line break would end up before another line, and the two would become one.
    JoinsLines,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.hunk > 0 {
            write!(f, "hunk {}: ", self.hunk)?;
        }
        match self.reason {
            Reason::NoSuchHunk => f.write_str("there is no hunk of this number"),
            Reason::NotUnderstood => f.write_str("part of the patch for this file could not be read"),
            Reason::FileExists => f.write_str("the patch creates a file that exists already"),
            Reason::NoSuchFile => f.write_str("the patch changes a file that does not exist"),
            Reason::LeavesLines => {
                f.write_str("the patch deletes the file, which has more lines than the patch removes")
            }
            Reason::DoesNotMatch { line } => write!(f, "line {line} of the file is not what the hunk expects"),
            Reason::BaseTooShort { lines } => write!(f, "the file has only {lines} lines"),
            Reason::NotFound { distance: usize::MAX } => f.write_str("its lines are not in the file"),
            Reason::NotFound { distance } => {
                write!(f, "its lines are not in the file within {distance} lines of where it says")
            }
            Reason::Ambiguous { lines: (first, second) } => {
                write!(f, "its lines fit equally well at line {first} and at line {second}")
            }
            Reason::Overlaps => f.write_str("it overlaps the hunk before it"),
            Reason::JoinsLines => f.write_str("it would join two lines, of which the first has no line break"),
        }
    }
}

impl FilePatch<'_> {
    /// Applies the selected hunks to `base`, or says of each that does not fit why. Hunks that are not selected leave
    /// their part of the base as it is: none selected gives exactly the base.
    pub fn apply(
        &self,
        base: Side<'_>,
        selection: &Selection,
        placement: Placement,
    ) -> Result<Patched, Vec<Rejection>> {
        let mut rejections = selection.beyond(self.hunks.len());
        let chosen: Vec<&PatchHunk<'_>> = self.hunks.iter().filter(|hunk| selection.has(hunk.number)).collect();
        let nothing = chosen.is_empty() && *selection != Selection::All;
        if let (false, Some(reason)) = (nothing, self.refusal(base)) {
            rejections.push(Rejection { hunk: 0, reason });
            return Err(rejections);
        }
        let bytes = if let Side::Present(bytes) = base { bytes } else { &[] };
        let lines = lines(bytes);
        let mut content = Vec::with_capacity(bytes.len());
        let mut moves = Vec::new();
        // Lines of the base already dealt with, and how far the last hunk was from its place.
        let mut done = 0;
        let mut drift: isize = 0;
        for hunk in chosen {
            let place = Place { hunk, lines: &lines, floor: done };
            // An earlier hunk may have ended the file with a line without a break.
            let ended = !content.is_empty() && !content.ends_with(b"\n");
            let found = if ended { Err(Reason::JoinsLines) } else { place.find(placement, drift) };
            match found {
                Ok(line) => {
                    lines[done..line].iter().for_each(|line| content.extend_from_slice(line));
                    let kept = hunk.lines.iter().filter(|line| line.kind != LineKind::Remove);
                    kept.for_each(|line| content.extend_from_slice(&line.bytes));
                    drift = line.cast_signed() - first_line(hunk).cast_signed();
                    moves.push((hunk.number, drift));
                    done = line + hunk.old_lines();
                }
                Err(reason) => rejections.push(Rejection { hunk: hunk.number, reason }),
            }
        }
        lines[done..].iter().for_each(|line| content.extend_from_slice(line));
        let deletes = self.new_path == NO_FILE.as_bytes() && *selection == Selection::All;
        if deletes && !content.is_empty() && rejections.is_empty() {
            rejections.push(Rejection { hunk: 0, reason: Reason::LeavesLines });
        }
        if !rejections.is_empty() {
            return Err(rejections);
        }
        let absent = deletes || (nothing && base == Side::Absent);
        Ok(Patched { content: (!absent).then_some(content), moves })
    }

    /// Why nothing of it can be applied to this base.
    fn refusal(&self, base: Side<'_>) -> Option<Reason> {
        let creates = self.old_path == NO_FILE.as_bytes();
        match base {
            _ if self.incomplete => Some(Reason::NotUnderstood),
            Side::Present(_) if creates => Some(Reason::FileExists),
            Side::Absent if !creates => Some(Reason::NoSuchFile),
            _ => None,
        }
    }
}

fn lines(base: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut at = 0;
    while at < base.len() {
        let end = LineBreak::Byte.line_end(base, at);
        lines.push(&base[at..end]);
        at = end;
    }
    lines
}

/// The 0-based line a hunk starts at by its header.
fn first_line(hunk: &PatchHunk<'_>) -> usize {
    if hunk.old_lines() == 0 { hunk.old_start } else { hunk.old_start.saturating_sub(1) }
}

struct Place<'p> {
    hunk: &'p PatchHunk<'p>,
    lines: &'p [&'p [u8]],
    /// The first line that no earlier hunk has taken.
    floor: usize,
}

impl Place<'_> {
    fn find(&self, placement: Placement, drift: isize) -> Result<usize, Reason> {
        let stated = first_line(self.hunk);
        let distance = match placement {
            Placement::Within(distance) if self.hunk.old_lines() > 0 => distance,
            _ => return self.check(stated).map(|()| stated),
        };
        let expected = stated.saturating_add_signed(drift);
        let here = self.check(expected);
        if here.is_ok() || distance == 0 {
            return here.map(|()| expected);
        }
        let away = |line: &usize| line.abs_diff(expected);
        let wanted: Vec<&[u8]> = self.old().collect();
        let near = occurrences(&wanted, self.lines).filter(|line| away(line) <= distance && self.check(*line).is_ok());
        let mut nearest: Vec<usize> = Vec::new();
        for line in near {
            if nearest.first().is_none_or(|best| away(&line) < away(best)) {
                nearest = vec![line];
            } else if nearest.first().is_some_and(|best| away(&line) == away(best)) {
                nearest.push(line);
            }
        }
        match nearest[..] {
            [] => Err(Reason::NotFound { distance }),
            [line] => Ok(line),
            [first, second, ..] => Err(Reason::Ambiguous { lines: (first + 1, second + 1) }),
        }
    }

    fn old(&self) -> impl Iterator<Item = &[u8]> {
        self.hunk.lines.iter().filter(|line| line.kind != LineKind::Add).map(|line| &*line.bytes)
    }

    /// Whether the hunk can be applied at `line` of the base.
    fn check(&self, line: usize) -> Result<(), Reason> {
        let lines = self.lines.len();
        if line < self.floor {
            return Err(Reason::Overlaps);
        }
        let mut at = line;
        for old in self.old() {
            match self.lines.get(at) {
                None => return Err(Reason::BaseTooShort { lines }),
                Some(base) if *base != old => return Err(Reason::DoesNotMatch { line: at + 1 }),
                Some(_) => at += 1,
            }
        }
        if at > lines {
            return Err(Reason::BaseTooShort { lines });
        }
        // Only the very last line of the result may lack its break.
        let before = line.checked_sub(1).and_then(|before| self.lines.get(before)).copied();
        let new = self.hunk.lines.iter().filter(|line| line.kind != LineKind::Remove).map(|line| &*line.bytes);
        let after = self.lines.get(at).copied();
        let mut result = before.into_iter().chain(new).chain(after).peekable();
        while let Some(line) = result.next() {
            if !line.ends_with(b"\n") && result.peek().is_some() {
                return Err(Reason::JoinsLines);
            }
        }
        Ok(())
    }
}
