//! Applies sections to the text of a file.

use std::borrow::Cow;
use std::fmt;

use super::{Section, SectionAction, SectionChunk};
use crate::hunk::LineKind;
use crate::patch::search::occurrences;

/// Maximum number of reported positions of an ambiguous chunk.
const PLACES: usize = 10;

/// The result of applying a section to a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionApplied {
    /// New text; `None` if the file is deleted.
    pub text: Option<String>,
    /// Chunks that matched loosely. Context lines keep the file's own text.
    pub loosened: Vec<Loosened>,
    /// Chunks that match at several positions.
    pub ambiguous: Vec<Ambiguity>,
}

/// A chunk that matched only loosely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loosened {
    /// Number of the chunk, from 1.
    pub chunk: usize,
    /// Matched line of the file, from 1.
    pub line: usize,
    /// Ignored difference.
    pub looseness: Looseness,
}

/// A difference that may be ignored when matching lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Looseness {
    /// White space at the end of lines.
    TrailingWhitespace,
    /// White space at both ends of lines.
    SurroundingWhitespace,
    /// White space at both ends, and typographic quotes, dashes and blanks.
    Punctuation,
    /// An empty context line at the end of the chunk, which may only separate it from the next chunk.
    FinalEmptyLine,
}

/// A chunk that matches at several positions, of which the first was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ambiguity {
    /// Number of the chunk, from 1.
    pub chunk: usize,
    /// Matching lines of the file, from 1, the used one first; at most ten.
    pub lines: Vec<usize>,
}

/// A chunk that was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionRejection {
    /// Number of the chunk, from 1; 0 for the whole file.
    pub chunk: usize,
    pub reason: SectionReason,
}

/// The reason why a chunk was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionReason {
    /// A part of the patch for this file was not understood; see the problems of the patch.
    NotUnderstood,
    /// The patch changes or deletes a file that does not exist.
    NoSuchFile,
    /// The line after `@@` was not found after the previous chunk.
    AnchorNotFound { anchor: String },
    /// The old lines were not found after the previous chunk.
    LinesNotFound {
        /// First old line.
        first: String,
        /// Matching line of the file, from 1, that precedes the allowed range.
        earlier: Option<usize>,
    },
    /// The old lines are not at the end of the file.
    NotAtEnd {
        /// First old line.
        first: String,
    },
}

impl fmt::Display for SectionRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.chunk > 0 {
            write!(f, "chunk {}: ", self.chunk)?;
        }
        match &self.reason {
            SectionReason::NotUnderstood => f.write_str("part of the patch for this file could not be read"),
            SectionReason::NoSuchFile => f.write_str("the patch changes a file that does not exist"),
            SectionReason::AnchorNotFound { anchor } => {
                write!(f, "there is no line `{anchor}` after the chunk before it")
            }
            SectionReason::LinesNotFound { first, earlier: None } => {
                write!(f, "its old lines are not in the file; they start with `{first}`")
            }
            SectionReason::LinesNotFound { first, earlier: Some(line) } => write!(
                f,
                "its old lines, which start with `{first}`, are at line {line}, before the place of the chunk before it"
            ),
            SectionReason::NotAtEnd { first } => {
                write!(f, "its old lines are not at the end of the file; they start with `{first}`")
            }
        }
    }
}

impl fmt::Display for Looseness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TrailingWhitespace => "whitespace at the end of lines",
            Self::SurroundingWhitespace => "whitespace around lines",
            Self::Punctuation => "whitespace and punctuation",
            Self::FinalEmptyLine => "an empty line at its end",
        })
    }
}

impl Section {
    /// Applies the section to the text of a file, or returns the reason for each chunk that does not match. `None` is
    /// an absent file.
    ///
    /// A chunk without old lines is inserted after its `@@` line, or else at the end. A file without a final newline
    /// stays without one, because this format cannot express a change of it.
    pub fn apply(&self, base: Option<&str>) -> Result<SectionApplied, Vec<SectionRejection>> {
        let refused = |reason| Err(vec![SectionRejection { chunk: 0, reason }]);
        if self.incomplete {
            return refused(SectionReason::NotUnderstood);
        }
        match (&self.action, base) {
            (SectionAction::Add { content }, _) => {
                Ok(SectionApplied { text: Some(content.clone()), ..SectionApplied::default() })
            }
            (_, None) => refused(SectionReason::NoSuchFile),
            (SectionAction::Delete, Some(_)) => Ok(SectionApplied::default()),
            (SectionAction::Update { chunks, .. }, Some(base)) => update(base, chunks),
        }
    }
}

fn update(base: &str, chunks: &[SectionChunk]) -> Result<SectionApplied, Vec<SectionRejection>> {
    let finished = base.is_empty() || base.ends_with('\n');
    let lines: Vec<&str> = base.split_terminator('\n').collect();
    let searched = Searched { exact: lines.clone(), looser: Vec::new() };
    let mut placing = Placing { searched, cursor: 0, chunk: 0, applied: SectionApplied::default() };
    let mut places = Vec::new();
    let mut rejections = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        placing.chunk = index + 1;
        match placing.place(chunk) {
            Ok(place) => places.push((place, chunk)),
            Err(reason) => rejections.push(SectionRejection { chunk: index + 1, reason }),
        }
    }
    if !rejections.is_empty() {
        return Err(rejections);
    }
    // The chunks are in order, except for insertions at the end.
    places.sort_by_key(|(place, _)| place.start);
    let mut result: Vec<&str> = Vec::with_capacity(lines.len());
    let mut done = 0;
    for (SectionPlace { start, lines: chunk_lines }, chunk) in places {
        result.extend(&lines[done..start]);
        done = start;
        for line in &chunk.lines[..chunk_lines] {
            match line.kind {
                LineKind::Add => result.push(&line.text),
                LineKind::Remove => done += 1,
                LineKind::Context => {
                    result.push(lines[done]);
                    done += 1;
                }
            }
        }
    }
    result.extend(&lines[done..]);
    let mut text = result.join("\n");
    if finished && !result.is_empty() {
        text.push('\n');
    }
    Ok(SectionApplied { text: Some(text), ..placing.applied })
}

/// The position of a chunk, as a 0-based line of the base, with the number of matched lines.
struct SectionPlace {
    start: usize,
    lines: usize,
}

struct Placing<'b> {
    searched: Searched<'b>,
    /// First line after the previous chunk.
    cursor: usize,
    /// Number of the current chunk.
    chunk: usize,
    applied: SectionApplied,
}

impl Placing<'_> {
    fn place(&mut self, chunk: &SectionChunk) -> Result<SectionPlace, SectionReason> {
        let mut from = self.cursor;
        let mut loosened = Vec::new();
        for anchor in &chunk.anchors {
            let Some((places, looseness)) = self.searched.find(&[anchor], from, 1) else {
                return Err(SectionReason::AnchorNotFound { anchor: anchor.clone() });
            };
            loosened.extend(looseness.map(|looseness| (places[0], looseness)));
            from = places[0] + 1;
        }
        let old = chunk.lines.iter().filter(|line| line.kind != LineKind::Add);
        let old: Vec<&str> = old.map(|line| &*line.text).collect();
        let mut lines = chunk.lines.len();
        let end = self.searched.exact.len();
        let (places, covered) = if old.is_empty() {
            let anchored = !chunk.anchors.is_empty() && !chunk.at_end;
            (vec![if anchored { from } else { end }], 0)
        } else if let Some((places, looseness)) = self.find(&old, from, chunk) {
            loosened.extend(looseness.map(|looseness| (places[0], looseness)));
            (places, old.len())
        } else {
            let shorter = chunk.lines.last().filter(|line| line.kind == LineKind::Context && line.text.is_empty());
            let shorter = shorter.map(|_| &old[..old.len() - 1]).filter(|shorter| !shorter.is_empty());
            let found = shorter.and_then(|shorter| Some((shorter, self.find(shorter, from, chunk)?)));
            let Some((shorter, (places, looseness))) = found else { return Err(self.not_found(&old, chunk)) };
            loosened.extend(looseness.map(|looseness| (places[0], looseness)));
            loosened.push((places[0], Looseness::FinalEmptyLine));
            lines -= 1;
            (places, shorter.len())
        };
        let start = places[0];
        // An insertion at the end does not move the cursor of the following chunks.
        self.cursor = if old.is_empty() { from } else { start + covered };
        let number = self.chunk;
        let loosened = loosened.into_iter();
        self.applied.loosened.extend(loosened.map(|(at, looseness)| Loosened {
            chunk: number,
            line: at + 1,
            looseness,
        }));
        if places.len() > 1 {
            let lines = places.iter().map(|place| place + 1).collect();
            self.applied.ambiguous.push(Ambiguity { chunk: number, lines });
        }
        Ok(SectionPlace { start, lines })
    }

    fn find(&mut self, old: &[&str], from: usize, chunk: &SectionChunk) -> Option<(Vec<usize>, Option<Looseness>)> {
        if !chunk.at_end {
            return self.searched.find(old, from, PLACES);
        }
        let start = self.searched.exact.len().checked_sub(old.len()).filter(|start| *start >= from)?;
        self.searched.find(old, start, 1)
    }

    fn not_found(&mut self, old: &[&str], chunk: &SectionChunk) -> SectionReason {
        let first = old.first().copied().unwrap_or_default().to_owned();
        if chunk.at_end {
            return SectionReason::NotAtEnd { first };
        }
        let earlier = self.searched.find(old, 0, 1).map(|(places, _)| places[0] + 1);
        SectionReason::LinesNotFound { first, earlier }
    }
}

/// The lines of a base in increasingly normalized forms, each computed on first use.
struct Searched<'b> {
    exact: Vec<&'b str>,
    looser: Vec<Vec<Cow<'b, str>>>,
}

/// Levels of looseness, in order of the attempts.
const LOOSER: [Looseness; 3] =
    [Looseness::TrailingWhitespace, Looseness::SurroundingWhitespace, Looseness::Punctuation];

impl Searched<'_> {
    /// Returns up to `limit` positions of `wanted` from the line `from` on, with the least looseness that matches.
    fn find(&mut self, wanted: &[&str], from: usize, limit: usize) -> Option<(Vec<usize>, Option<Looseness>)> {
        let found = places(wanted, &self.exact, from, limit);
        if !found.is_empty() {
            return Some((found, None));
        }
        for (index, looseness) in LOOSER.into_iter().enumerate() {
            if self.looser.len() == index {
                self.looser.push(self.exact.iter().map(|line| looseness.overlook(line)).collect());
            }
            let wanted: Vec<_> = wanted.iter().map(|line| looseness.overlook(line)).collect();
            let found = places(&wanted, &self.looser[index], from, limit);
            if !found.is_empty() {
                return Some((found, Some(looseness)));
            }
        }
        None
    }
}

fn places<T: PartialEq>(wanted: &[T], lines: &[T], from: usize, limit: usize) -> Vec<usize> {
    let rest = lines.get(from..).unwrap_or_default();
    occurrences(wanted, rest).take(limit).map(|place| from + place).collect()
}

impl Looseness {
    /// Normalizes a line for comparison.
    fn overlook(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::TrailingWhitespace | Self::FinalEmptyLine => Cow::Borrowed(line.trim_end()),
            Self::Punctuation if !line.is_ascii() => line.trim().chars().map(plain).collect(),
            Self::SurroundingWhitespace | Self::Punctuation => Cow::Borrowed(line.trim()),
        }
    }
}

/// Replaces a typographic character by its plain form.
fn plain(character: char) -> char {
    match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201B}' => '\'',
        '\u{201C}'..='\u{201F}' => '"',
        '\u{A0}' | '\u{2002}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        other => other,
    }
}
