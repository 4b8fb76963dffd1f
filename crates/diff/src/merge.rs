//! Three-way merge: two changes of one base, brought together.

use std::borrow::Cow;

use crate::change::{Change, Cursor};
use crate::diff::{Diff, Side};
use crate::engine::Text;
use crate::form::{Form, LineEnding};

/// A part of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk<'a> {
    /// What both agree on, or only one changed.
    Resolved(&'a [u8]),
    /// What each changed in its own way.
    Conflict(Conflict<'a>),
}

/// The three versions of what could not be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict<'a> {
    /// The lines as both found them.
    pub base: &'a [u8],
    /// The lines as we have them.
    pub ours: &'a [u8],
    /// The lines as they have them.
    pub theirs: &'a [u8],
    /// The 1-based line of the base it starts at.
    pub base_line: usize,
}

/// The result of a merge: its parts in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merge<'a> {
    /// Concatenated, with a choice made for each conflict, they are the merged content.
    pub chunks: Vec<Chunk<'a>>,
}

/// The names that conflict markers carry.
#[derive(Clone, Copy, Debug)]
pub struct MarkerLabels<'a> {
    /// After `<<<<<<<`.
    pub ours: &'a str,
    /// After `|||||||`.
    pub base: &'a str,
    /// After `>>>>>>>`.
    pub theirs: &'a str,
}

/// Merges what `ours` and `theirs` each made of `base`.
///
/// Changes conflict where they overlap or touch, unless they are the same.
pub fn merge<'a>(base: &'a [u8], ours: &'a [u8], theirs: &'a [u8]) -> Merge<'a> {
    let (ours_diff, theirs_diff) = (Diff::new(base, ours), Diff::new(base, theirs));
    let mut ours = Branch::new(&ours_diff);
    let mut theirs = Branch::new(&theirs_diff);
    let mut merge = Merge::default();
    let mut done = Cursor::default();
    while let Some(start) = earliest(ours.next_start(), theirs.next_start()) {
        merge.resolve(&base[done.offset..start.offset]);
        // Grow the region until no change of either side reaches into it.
        let mut end = start;
        while ours.take(&mut end) || theirs.take(&mut end) {}
        let base_part = &base[start.offset..end.offset];
        let (our_part, their_part) = (ours.finish(start, end), theirs.finish(start, end));
        if our_part == their_part || their_part == base_part {
            merge.resolve(our_part);
        } else if our_part == base_part {
            merge.resolve(their_part);
        } else {
            merge.chunks.push(Chunk::Conflict(Conflict {
                base: base_part,
                ours: our_part,
                theirs: their_part,
                base_line: start.line + 1,
            }));
        }
        done = end;
    }
    merge.resolve(&base[done.offset..]);
    merge
}

/// What becomes of a file that may come and go on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideMerge<'a> {
    /// Both sides are this, or only one changed the base and made this of it. Not to be there is a change as well.
    Taken(Side<'a>),
    /// Both changed it, and it is there in all three.
    Merged(Merge<'a>),
    /// Whether it should be there, or what it should be from the start, is not to be settled line by line.
    Conflict(PresenceConflict),
}

/// Why a file cannot be merged by its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresenceConflict {
    /// We deleted what they changed.
    DeletedByUs,
    /// They deleted what we changed.
    DeletedByThem,
    /// There was no file, and each created another.
    BothCreated,
}

/// Merges what `ours` and `theirs` each made of `base`, where any of the three may have no file.
pub fn merge_sides<'a>(base: Side<'a>, ours: Side<'a>, theirs: Side<'a>) -> SideMerge<'a> {
    if ours == theirs || theirs == base {
        return SideMerge::Taken(ours);
    }
    if ours == base {
        return SideMerge::Taken(theirs);
    }
    match (base, ours, theirs) {
        (Side::Present(base), Side::Present(ours), Side::Present(theirs)) => {
            SideMerge::Merged(merge(base, ours, theirs))
        }
        (Side::Absent, _, _) => SideMerge::Conflict(PresenceConflict::BothCreated),
        (Side::Present(_), Side::Absent, _) => SideMerge::Conflict(PresenceConflict::DeletedByUs),
        (Side::Present(_), _, Side::Absent) => SideMerge::Conflict(PresenceConflict::DeletedByThem),
    }
}

fn earliest(a: Option<Cursor>, b: Option<Cursor>) -> Option<Cursor> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

/// One side's changes of the base, in order.
struct Branch<'d, 'a> {
    text: Text<'a>,
    waiting: &'d [Change],
    /// The first change of the current region.
    first: Option<&'d Change>,
    /// How far this side's offsets are from the base's after the last change.
    shift: isize,
}

impl<'d, 'a> Branch<'d, 'a> {
    fn new(diff: &'d Diff<'a>) -> Self {
        Self { text: diff.new, waiting: diff.changes(), first: None, shift: 0 }
    }

    fn next_start(&self) -> Option<Cursor> {
        self.waiting.first().map(|change| change.old.start)
    }

    /// Takes the changes that touch the region up to `end`, which moves; returns whether there were any.
    fn take(&mut self, end: &mut Cursor) -> bool {
        let mut taken = false;
        while let Some((change, later)) = self.waiting.split_first().filter(|(change, _)| change.old.start <= *end) {
            *end = (*end).max(change.old.end);
            self.waiting = later;
            self.first = self.first.or(Some(change));
            self.shift = change.new.end.offset.cast_signed() - change.old.end.offset.cast_signed();
            taken = true;
        }
        taken
    }

    /// This side's bytes for the base's region.
    fn finish(&mut self, start: Cursor, end: Cursor) -> &'a [u8] {
        let before = match self.first.take() {
            Some(first) => first.new.start.offset.cast_signed() - first.old.start.offset.cast_signed(),
            None => self.shift,
        };
        &self.text.bytes[start.offset.saturating_add_signed(before)..end.offset.saturating_add_signed(self.shift)]
    }
}

impl<'a> Merge<'a> {
    fn resolve(&mut self, bytes: &'a [u8]) {
        if !bytes.is_empty() {
            self.chunks.push(Chunk::Resolved(bytes));
        }
    }

    /// The conflicts, in order.
    pub fn conflicts(&self) -> impl Iterator<Item = &Conflict<'a>> {
        self.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Conflict(conflict) => Some(conflict),
            Chunk::Resolved(_) => None,
        })
    }

    /// The merged content, if nothing conflicts.
    pub fn clean(&self) -> Option<Vec<u8>> {
        self.conflicts().next().is_none().then(|| self.resolved_with(|_| &[]))
    }

    /// The merged content with `choose`'s answer for each conflict.
    pub fn resolved_with(&self, mut choose: impl FnMut(&Conflict<'a>) -> &'a [u8]) -> Vec<u8> {
        let mut merged = Vec::new();
        for chunk in &self.chunks {
            merged.extend_from_slice(match chunk {
                Chunk::Resolved(bytes) => bytes,
                Chunk::Conflict(conflict) => choose(conflict),
            });
        }
        merged
    }

    /// The content with conflict markers, in git's `diff3` style, in the encoding and with the line ending of our side.
    pub fn with_markers(&self, labels: MarkerLabels<'_>) -> Vec<u8> {
        let form = Form::of(&self.resolved_with(|conflict| conflict.ours));
        let line_break = form.encoding.line_break();
        // A label may have characters that the file cannot; it is there to be read and removed again.
        let encode = |text: &str| form.encoding.encode(text).map_or_else(|| text.as_bytes().to_vec(), Cow::into_owned);
        let end = encode(if form.line_ending == LineEnding::Crlf { "\r\n" } else { "\n" });
        let mut text = Vec::new();
        for chunk in &self.chunks {
            let conflict = match chunk {
                Chunk::Resolved(bytes) => {
                    text.extend_from_slice(bytes);
                    continue;
                }
                Chunk::Conflict(conflict) => conflict,
            };
            let parts = [
                (format!("<<<<<<< {}", labels.ours), conflict.ours),
                (format!("||||||| {}", labels.base), conflict.base),
                ("=======".to_owned(), conflict.theirs),
                (format!(">>>>>>> {}", labels.theirs), &[]),
            ];
            for (marker, bytes) in parts {
                text.extend(encode(&marker));
                text.extend_from_slice(&end);
                text.extend_from_slice(bytes);
                if !bytes.is_empty() && !line_break.breaks_before(bytes, bytes.len()) {
                    text.extend_from_slice(&end);
                }
            }
        }
        text
    }
}
