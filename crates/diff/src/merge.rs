//! Three-way merge: combines two changes of one base.

use std::borrow::Cow;

use crate::change::{Block, Change, Cursor};
use crate::diff::{Diff, Side};
use crate::text_format::{LineEnding, TextFormat};

/// A part of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk<'a> {
    /// Content on which both sides agree, or that only one side changed.
    Resolved(&'a [u8]),
    /// Content that both sides changed differently.
    Conflict(Conflict<'a>),
}

/// The three versions of conflicting lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict<'a> {
    pub base: &'a [u8],
    pub ours: &'a [u8],
    pub theirs: &'a [u8],
    /// First line in the base, from 1.
    pub base_line: usize,
}

/// The result of a merge, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merge<'a> {
    /// Parts; concatenated with one version of each conflict, they are the merged content.
    pub chunks: Vec<Chunk<'a>>,
}

/// The labels of conflict markers.
#[derive(Clone, Copy, Debug)]
pub struct MarkerLabels<'a> {
    /// Label after `<<<<<<<`.
    pub ours: &'a str,
    /// Label after `|||||||`.
    pub base: &'a str,
    /// Label after `>>>>>>>`.
    pub theirs: &'a str,
}

/// Merges the versions `ours` and `theirs` of `base`.
///
/// Different changes conflict if they overlap or touch.
pub fn merge<'a>(base: &'a [u8], ours: &'a [u8], theirs: &'a [u8]) -> Merge<'a> {
    let (ours_diff, theirs_diff) = (Diff::new(base, ours), Diff::new(base, theirs));
    let mut merge = Merge::default();
    let mut done = 0;
    for region in regions(&ours_diff, &theirs_diff) {
        merge.resolve(&base[done..region.base.start.offset]);
        done = region.base.end.offset;
        let (base, ours, theirs) = (region.base.of(base), region.ours.of(ours), region.theirs.of(theirs));
        if ours == theirs || theirs == base {
            merge.resolve(ours);
        } else if ours == base {
            merge.resolve(theirs);
        } else {
            let base_line = region.base.start.line + 1;
            merge.chunks.push(Chunk::Conflict(Conflict { base, ours, theirs, base_line }));
        }
    }
    merge.resolve(&base[done..]);
    merge
}

/// Base lines changed by at least one branch, with the corresponding lines of each branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergeRegion {
    pub(crate) base: Block,
    pub(crate) ours: Block,
    pub(crate) theirs: Block,
}

/// Groups the changes of two branches. Changes that overlap or touch share a region.
pub(crate) fn regions<'d>(ours: &'d Diff<'_>, theirs: &'d Diff<'_>) -> impl Iterator<Item = MergeRegion> + use<'d> {
    let (mut ours, mut theirs) = (Branch::new(ours), Branch::new(theirs));
    std::iter::from_fn(move || {
        let start = earliest(ours.next_start(), theirs.next_start())?;
        // Extend the region until no change crosses its end.
        let mut end = start;
        while ours.take(&mut end) || theirs.take(&mut end) {}
        let (ours, theirs) = (ours.finish(start, end), theirs.finish(start, end));
        Some(MergeRegion { base: Block { start, end }, ours, theirs })
    })
}

/// The merge of a file that may be absent on any side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideMerge<'a> {
    /// Both sides are equal, or only one side changed the base. Creation and deletion are changes.
    Taken(Side<'a>),
    /// Both sides changed the file, which is present in all three versions.
    Merged(Merge<'a>),
    /// The conflict cannot be resolved line by line.
    Conflict(PresenceConflict),
}

/// The reason why a file cannot be merged by lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresenceConflict {
    /// Our side deleted a file that the other side changed.
    DeletedByUs,
    /// The other side deleted a file that our side changed.
    DeletedByThem,
    /// Both sides created the file with different contents.
    BothCreated,
}

/// Merges the versions `ours` and `theirs` of `base`, any of which may be absent.
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

/// The changes of one branch, in order.
struct Branch<'d> {
    waiting: &'d [Change],
    /// First change of the current region.
    first: Option<&'d Change>,
    /// Last change that was consumed.
    last: Option<&'d Change>,
}

impl<'d> Branch<'d> {
    fn new(diff: &'d Diff<'_>) -> Self {
        Self { waiting: diff.changes(), first: None, last: None }
    }

    fn next_start(&self) -> Option<Cursor> {
        self.waiting.first().map(|change| change.old.start)
    }

    /// Consumes the changes that touch the region up to `end`, and extends `end`. Returns `true` if there were any.
    fn take(&mut self, end: &mut Cursor) -> bool {
        let mut taken = false;
        while let Some((change, later)) = self.waiting.split_first().filter(|(change, _)| change.old.start <= *end) {
            *end = (*end).max(change.old.end);
            self.waiting = later;
            self.first = self.first.or(Some(change));
            self.last = Some(change);
            taken = true;
        }
        taken
    }

    /// Returns the lines of this branch that correspond to a region of the base.
    fn finish(&mut self, start: Cursor, end: Cursor) -> Block {
        let last = self.last.map_or((Cursor::default(), Cursor::default()), |change| (change.old.end, change.new.end));
        let first = self.first.take().map_or(last, |change| (change.old.start, change.new.start));
        Block { start: moved(start, first), end: moved(end, last) }
    }
}

/// Maps a cursor of the base to a branch, given a pair of corresponding cursors with only unchanged lines in between.
fn moved(cursor: Cursor, (base, branch): (Cursor, Cursor)) -> Cursor {
    let moved = |at: usize, base: usize, branch: usize| (at + branch).saturating_sub(base);
    Cursor {
        line: moved(cursor.line, base.line, branch.line),
        offset: moved(cursor.offset, base.offset, branch.offset),
    }
}

impl<'a> Merge<'a> {
    fn resolve(&mut self, bytes: &'a [u8]) {
        if !bytes.is_empty() {
            self.chunks.push(Chunk::Resolved(bytes));
        }
    }

    /// Returns the conflicts in order.
    pub fn conflicts(&self) -> impl Iterator<Item = &Conflict<'a>> {
        self.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Conflict(conflict) => Some(conflict),
            Chunk::Resolved(_) => None,
        })
    }

    /// Returns the merged content if there is no conflict.
    pub fn clean(&self) -> Option<Vec<u8>> {
        self.conflicts().next().is_none().then(|| self.resolved_with(|_| &[]))
    }

    /// Returns the merged content, with one version chosen for each conflict.
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

    /// Returns the content with conflict markers in git's `diff3` style, in the encoding and with the line ending of
    /// our side.
    pub fn with_markers(&self, labels: MarkerLabels<'_>) -> Vec<u8> {
        let form = TextFormat::of(&self.resolved_with(|conflict| conflict.ours));
        let line_break = form.encoding.line_break();
        // A label may contain characters that the encoding lacks. It is only informative, so write it as UTF-8 then.
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
