//! Applies sections to the text of a file.

use std::borrow::Cow;
use std::fmt;

use super::{Section, SectionAction, SectionChunk};
use crate::hunk::LineKind;
use crate::patch::search::occurrences;

/// How many places are named where a chunk fits at several.
const PLACES: usize = 10;

/// What a section makes of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionApplied {
    /// The file's new text, or `None` if there is no file afterwards.
    pub text: Option<String>,
    /// What was not found as it stands in the patch. The lines that stay are the file's own.
    pub loosened: Vec<Loosened>,
    /// The chunks that fit at other places as well.
    pub ambiguous: Vec<Ambiguity>,
}

/// A chunk of which something was only found with some looseness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loosened {
    /// The chunk's 1-based number.
    pub chunk: usize,
    /// The 1-based line of the file it was found at.
    pub line: usize,
    /// What had to be overlooked.
    pub looseness: Looseness,
}

/// What may be overlooked when looking for lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Looseness {
    /// Whitespace at the end of lines.
    TrailingWhitespace,
    /// Whitespace at both ends of lines.
    SurroundingWhitespace,
    /// That, and whether quotes, dashes and blanks are plain or typographic.
    Punctuation,
    /// An empty context line at the end of the chunk, which may be no more than the space to the next one.
    FinalEmptyLine,
}

/// A chunk that fits at several places, of which the first was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ambiguity {
    /// The chunk's 1-based number.
    pub chunk: usize,
    /// The 1-based lines of the file it would fit at, the one taken first; of many, the first ten.
    pub lines: Vec<usize>,
}

/// A chunk that could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionRejection {
    /// The chunk's 1-based number; 0 for the file as a whole.
    pub chunk: usize,
    /// Why.
    pub reason: SectionReason,
}

/// Why a chunk could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionReason {
    /// Part of what the patch says about the file could not be read; see the patch's problems.
    NotUnderstood,
    /// The patch changes or deletes a file that does not exist.
    NoSuchFile,
    /// The line after `@@` is not in the file, or only before the chunk that precedes.
    AnchorNotFound {
        /// The line.
        anchor: String,
    },
    /// The old lines are not in the file after the chunk that precedes.
    LinesNotFound {
        /// The first of them.
        first: String,
        /// The 1-based line of the file at which they do stand, but too early.
        earlier: Option<usize>,
    },
    /// The old lines are not the last lines of the file.
    NotAtEnd {
        /// The first of them.
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
    /// Applies it to the text of a file, or says of each chunk that has no place why. `None` stands for no file.
    ///
    /// A chunk without old lines goes after its `@@` line, or without one to the end. A file without a final newline is left
    /// without, whatever its last line becomes: the form cannot say what is meant.
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
    // In order already, but for what goes to the end.
    places.sort_by_key(|(place, _)| place.start);
    let mut result: Vec<&str> = Vec::with_capacity(lines.len());
    let mut done = 0;
    for (Place { start, lines: chunk_lines }, chunk) in places {
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

/// Where a chunk goes, as a 0-based line of the base, and how many of its lines count.
struct Place {
    start: usize,
    lines: usize,
}

struct Placing<'b> {
    searched: Searched<'b>,
    /// The first line that no earlier chunk has taken.
    cursor: usize,
    /// The number of the chunk being placed.
    chunk: usize,
    applied: SectionApplied,
}

impl Placing<'_> {
    fn place(&mut self, chunk: &SectionChunk) -> Result<Place, SectionReason> {
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
        // What goes to the end for want of a place leaves the cursor to those that have one.
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
        Ok(Place { start, lines })
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

/// The lines of a base, as they are and with less and less to tell them apart, each made when first needed.
struct Searched<'b> {
    exact: Vec<&'b str>,
    looser: Vec<Vec<Cow<'b, str>>>,
}

/// In the order in which they are tried.
const LOOSER: [Looseness; 3] =
    [Looseness::TrailingWhitespace, Looseness::SurroundingWhitespace, Looseness::Punctuation];

impl Searched<'_> {
    /// Up to `limit` places from the line `from` on at which `wanted` stands, as strictly as possible.
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
    /// What is left of a line to recognise it by.
    fn overlook(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::TrailingWhitespace | Self::FinalEmptyLine => Cow::Borrowed(line.trim_end()),
            Self::Punctuation if !line.is_ascii() => line.trim().chars().map(plain).collect(),
            Self::SurroundingWhitespace | Self::Punctuation => Cow::Borrowed(line.trim()),
        }
    }
}

/// What people type where programs put something finer.
fn plain(character: char) -> char {
    match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201B}' => '\'',
        '\u{201C}'..='\u{201F}' => '"',
        '\u{A0}' | '\u{2002}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        other => other,
    }
}
