//! Applies parsed hunks to a base.

use std::collections::BTreeSet;
use std::fmt;

use super::search::occurrences;
use super::{FilePatch, PatchHunk};
use crate::diff::Side;
use crate::hunk::LineKind;
use crate::lines::LineBreak;
use crate::unified::NO_FILE;

/// A selection of hunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    All,
    /// The hunks with these numbers, from 1.
    Hunks(BTreeSet<usize>),
}

impl Selection {
    /// Selects no hunk.
    pub fn none() -> Self {
        Self::Hunks(BTreeSet::new())
    }

    pub(crate) fn has(&self, number: usize) -> bool {
        match self {
            Self::All => true,
            Self::Hunks(numbers) => numbers.contains(&number),
        }
    }

    /// Rejects selected numbers beyond `count`.
    pub(crate) fn beyond(&self, count: usize) -> Vec<Rejection> {
        let Self::Hunks(numbers) = self else { return Vec::new() };
        let missing = numbers.iter().filter(|&&number| number == 0 || number > count);
        missing.map(|&hunk| Rejection { hunk, reason: Reason::NoSuchHunk }).collect()
    }
}

/// The allowed positions of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Exactly the line in its header.
    Strict,
    /// At most this many lines from there, after adding the offset of the preceding hunks. A hunk without old lines has
    /// nothing to match and is not moved.
    Within(usize),
}

/// The result of applying a patch to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patched {
    /// New content; `None` if the file is deleted.
    pub content: Option<Vec<u8>>,
    /// Number and offset of each applied hunk, in lines from its header's position.
    pub moves: Vec<(usize, isize)>,
}

/// A hunk that was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Number of the hunk; 0 for the whole file.
    pub hunk: usize,
    pub reason: Reason,
}

/// The reason why a hunk was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    NoSuchHunk,
    /// A part of the patch for this file was not understood; see the problems of the patch.
    NotUnderstood,
    /// The patch creates a file that already exists.
    FileExists,
    /// The patch changes a file that does not exist.
    NoSuchFile,
    /// The patch deletes a file, but does not remove all of its lines.
    LeavesLines,
    /// The base has other lines at this position.
    DoesNotMatch {
        /// First differing line in the base, from 1.
        line: usize,
    },
    /// The base ends within the hunk.
    BaseTooShort {
        /// Number of lines in the base.
        lines: usize,
    },
    /// No position within the distance matches.
    NotFound {
        /// Searched distance in lines.
        distance: usize,
    },
    /// Two positions at the same distance match.
    Ambiguous {
        /// Matching lines, from 1.
        lines: (usize, usize),
    },
    /// The hunk overlaps or precedes the previous hunk.
    Overlaps,
    /// A line without a line break would be followed by another line, which would join both.
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
    /// Applies the selected hunks to `base`, or returns the reason for each hunk that does not apply. Hunks that are
    /// not selected leave the base unchanged.
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
        // The number of processed base lines, and the offset of the last hunk.
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

    /// Returns the reason why no hunk can be applied to this base.
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

/// Returns the 0-based start line in the header of a hunk.
fn first_line(hunk: &PatchHunk<'_>) -> usize {
    if hunk.old_lines() == 0 { hunk.old_start } else { hunk.old_start.saturating_sub(1) }
}

struct Place<'p> {
    hunk: &'p PatchHunk<'p>,
    lines: &'p [&'p [u8]],
    /// First line after the previous hunk.
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

    /// Checks that the hunk matches at `line` of the base.
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
        // Only the last line of the result may lack its break.
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
