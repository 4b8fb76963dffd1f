//! The comparison of two contents.

use crate::change::{Change, Cursor};
use crate::engine::{self, Text};
use crate::hunk::Hunks;
use crate::note::{self, Note};
use crate::patch::{Rejection, Selection};
use crate::text_format::{self, Kind, TextFormat};

/// One side of a comparison. An absent file differs from an empty file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side<'a> {
    Absent,
    Present(&'a [u8]),
}

impl<'a> From<&'a [u8]> for Side<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Present(bytes)
    }
}

impl<'a> From<Option<&'a [u8]>> for Side<'a> {
    fn from(bytes: Option<&'a [u8]>) -> Self {
        bytes.map_or(Self::Absent, Self::Present)
    }
}

/// The numbers of added and removed lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Lines of the new side within changes.
    pub added: usize,
    /// Lines of the old side within changes.
    pub removed: usize,
}

/// The differences between two contents, as changes of their lines.
///
/// Hunks, unified text, the inline form and partial results are views computed from it.
#[derive(Clone, Debug)]
pub struct Diff<'a> {
    old_side: Side<'a>,
    new_side: Side<'a>,
    pub(crate) old: Text<'a>,
    pub(crate) new: Text<'a>,
    changes: Vec<Change>,
}

impl<'a> Diff<'a> {
    /// Compares two contents.
    pub fn new(old: impl Into<Side<'a>>, new: impl Into<Side<'a>>) -> Self {
        let (old_side, new_side) = (old.into(), new.into());
        let text = |side| {
            let bytes: &'a [u8] = if let Side::Present(bytes) = side { bytes } else { &[] };
            Text { bytes, line_break: text_format::line_break(bytes) }
        };
        let (mut old, mut new) = (text(old_side), text(new_side));
        // An empty side has no encoding, so use the other side's.
        if old.bytes.is_empty() {
            old.line_break = new.line_break;
        } else if new.bytes.is_empty() {
            new.line_break = old.line_break;
        }
        Self { old_side, new_side, old, new, changes: engine::changes(old, new) }
    }

    pub fn old_side(&self) -> Side<'a> {
        self.old_side
    }

    pub fn new_side(&self) -> Side<'a> {
        self.new_side
    }

    /// `true` if both sides have the same bytes, or both are absent.
    pub fn is_unchanged(&self) -> bool {
        self.changes.is_empty() && matches!(self.old_side, Side::Absent) == matches!(self.new_side, Side::Absent)
    }

    /// Returns the changes in order, separated by unchanged lines.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    pub fn counts(&self) -> Counts {
        self.changes.iter().fold(Counts::default(), |counts, change| Counts {
            added: counts.added + change.new.lines(),
            removed: counts.removed + change.old.lines(),
        })
    }

    /// Returns the number of lines of each side.
    pub fn line_counts(&self) -> (usize, usize) {
        let lines = |text: Text<'_>| text.line_break.count(text.bytes, 0, text.bytes.len());
        (lines(self.old), lines(self.new))
    }

    /// Returns the text format of each present side.
    pub fn formats(&self) -> (Option<TextFormat>, Option<TextFormat>) {
        let form = |side| if let Side::Present(bytes) = side { Some(TextFormat::of(bytes)) } else { None };
        (form(self.old_side), form(self.new_side))
    }

    /// `true` if either side is binary.
    pub fn is_binary(&self) -> bool {
        let (old, new) = self.formats();
        [old, new].into_iter().flatten().any(|form| form.kind == Kind::Binary)
    }

    /// Returns the differences in text format: encoding, byte order mark, line ending, final newline.
    pub fn notes(&self) -> Vec<Note> {
        self.notes_of(self.formats())
    }

    /// Returns the differences between given [formats](Self::formats). Detecting the formats reads both sides
    /// completely.
    pub fn notes_of(&self, forms: (Option<TextFormat>, Option<TextFormat>)) -> Vec<Note> {
        match forms {
            // An empty content has no format.
            (Some(old), Some(new)) if !self.old.bytes.is_empty() && !self.new.bytes.is_empty() => note::notes(old, new),
            _ => Vec::new(),
        }
    }

    /// Returns the hunks with `context` unchanged lines around each change. Changes whose contexts touch share a hunk.
    pub fn hunks(&self, context: usize) -> Hunks<'_, 'a> {
        Hunks::new(self, context)
    }

    /// Returns the old side with the selected hunks applied, numbered with that context; `None` for an absent file. All
    /// hunks give exactly the new side, no hunks exactly the old side.
    pub fn accept(&self, context: usize, selection: &Selection) -> Result<Option<Vec<u8>>, Vec<Rejection>> {
        let mut result = Vec::with_capacity(self.old.bytes.len());
        let mut at = 0;
        let (mut hunks, mut taken) = (0, 0);
        for hunk in self.hunks(context) {
            hunks += 1;
            if !selection.has(hunk.number) {
                continue;
            }
            taken += 1;
            for change in hunk.changes() {
                result.extend_from_slice(&self.old.bytes[at..change.old.start.offset]);
                result.extend_from_slice(change.new.of(self.new.bytes));
                at = change.old.end.offset;
            }
        }
        result.extend_from_slice(&self.old.bytes[at..]);
        let rejections = selection.beyond(hunks);
        if !rejections.is_empty() {
            return Err(rejections);
        }
        // The existence of the file changes with all hunks, or with `All` for an empty file without hunks.
        let all = *selection == Selection::All || (hunks > 0 && taken == hunks);
        let side = match (all, taken) {
            (true, _) => self.new_side,
            (false, 0) => self.old_side,
            (false, _) => Side::Present(&[]),
        };
        Ok((side != Side::Absent).then_some(result))
    }

    /// Moves both cursors up by `lines` unchanged lines.
    pub(crate) fn up(&self, mut from: (Cursor, Cursor), lines: usize) -> (Cursor, Cursor) {
        for _ in 0..lines {
            let length = from.0.offset - self.old.line_break.line_start(self.old.bytes, from.0.offset);
            for side in [&mut from.0, &mut from.1] {
                *side = Cursor { line: side.line - 1, offset: side.offset - length };
            }
        }
        from
    }

    /// Moves both cursors down by at most `lines` unchanged lines.
    pub(crate) fn down(&self, mut from: (Cursor, Cursor), lines: usize) -> (Cursor, Cursor) {
        for _ in 0..lines {
            if from.0.offset == self.old.bytes.len() {
                break;
            }
            let length = self.old.line_break.line_end(self.old.bytes, from.0.offset) - from.0.offset;
            for side in [&mut from.0, &mut from.1] {
                *side = Cursor { line: side.line + 1, offset: side.offset + length };
            }
        }
        from
    }
}
