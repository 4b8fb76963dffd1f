//! The comparison of two contents.

use crate::change::{Change, Cursor};
use crate::engine::{self, Text};
use crate::form::{self, Form, Kind};
use crate::hunk::Hunks;
use crate::note::{self, Note};
use crate::patch::{Rejection, Selection};

/// One side of a comparison. A file that does not exist is not an empty file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side<'a> {
    /// There is no such file.
    Absent,
    /// The file's bytes.
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

/// How many lines a diff adds and removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Lines that the new side has in place of others or in addition.
    pub added: usize,
    /// Lines of the old side that go.
    pub removed: usize,
}

/// What differs between two contents, as changes over their lines.
///
/// Made once; hunks, unified text, inline form and the result of accepting some hunks are all views of it.
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
            Text { bytes, line_break: form::line_break(bytes) }
        };
        let (mut old, mut new) = (text(old_side), text(new_side));
        // An empty side has no encoding of its own.
        if old.bytes.is_empty() {
            old.line_break = new.line_break;
        } else if new.bytes.is_empty() {
            new.line_break = old.line_break;
        }
        Self { old_side, new_side, old, new, changes: engine::changes(old, new) }
    }

    /// The old side.
    pub fn old_side(&self) -> Side<'a> {
        self.old_side
    }

    /// The new side.
    pub fn new_side(&self) -> Side<'a> {
        self.new_side
    }

    /// Whether both sides are the same: the same bytes, or both absent.
    pub fn is_unchanged(&self) -> bool {
        self.changes.is_empty() && matches!(self.old_side, Side::Absent) == matches!(self.new_side, Side::Absent)
    }

    /// The changes in order, at least one unchanged line apart.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Lines added and removed.
    pub fn counts(&self) -> Counts {
        self.changes.iter().fold(Counts::default(), |counts, change| Counts {
            added: counts.added + change.new.lines(),
            removed: counts.removed + change.old.lines(),
        })
    }

    /// How many lines each side has.
    pub fn line_counts(&self) -> (usize, usize) {
        let lines = |text: Text<'_>| text.line_break.count(text.bytes, 0, text.bytes.len());
        (lines(self.old), lines(self.new))
    }

    /// What each side is, where it exists.
    pub fn forms(&self) -> (Option<Form>, Option<Form>) {
        let form = |side| if let Side::Present(bytes) = side { Some(Form::of(bytes)) } else { None };
        (form(self.old_side), form(self.new_side))
    }

    /// Whether either side is binary, so that showing lines would show noise.
    pub fn is_binary(&self) -> bool {
        let (old, new) = self.forms();
        [old, new].into_iter().flatten().any(|form| form.kind == Kind::Binary)
    }

    /// Differences in form between two contents that have one: encoding, byte order mark, line ending, final newline.
    pub fn notes(&self) -> Vec<Note> {
        self.notes_of(self.forms())
    }

    /// The same from its [forms](Self::forms), for who has them already: finding them reads both sides whole.
    pub fn notes_of(&self, forms: (Option<Form>, Option<Form>)) -> Vec<Note> {
        match forms {
            // An empty content has no form to differ from.
            (Some(old), Some(new)) if !self.old.bytes.is_empty() && !self.new.bytes.is_empty() => note::notes(old, new),
            _ => Vec::new(),
        }
    }

    /// The changes with `context` unchanged lines around each; those at most twice that apart share a hunk.
    pub fn hunks(&self, context: usize) -> Hunks<'_, 'a> {
        Hunks::new(self, context)
    }

    /// The old side with the selected hunks applied, by their numbers with that much context: all of them give exactly the new
    /// side, none exactly the old. `None` stands for no file.
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
        // Whether there is a file is decided with the content: by all hunks, or by `All` where an empty file has none.
        let all = *selection == Selection::All || (hunks > 0 && taken == hunks);
        let side = match (all, taken) {
            (true, _) => self.new_side,
            (false, 0) => self.old_side,
            (false, _) => Side::Present(&[]),
        };
        Ok((side != Side::Absent).then_some(result))
    }

    /// The cursor `lines` lines up from `from` on both sides at once, where these lines are unchanged.
    pub(crate) fn up(&self, mut from: (Cursor, Cursor), lines: usize) -> (Cursor, Cursor) {
        for _ in 0..lines {
            let length = from.0.offset - self.old.line_break.line_start(self.old.bytes, from.0.offset);
            for side in [&mut from.0, &mut from.1] {
                *side = Cursor { line: side.line - 1, offset: side.offset - length };
            }
        }
        from
    }

    /// The cursor at most `lines` lines down from `from` on both sides at once, where these lines are unchanged.
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
