//! Rows of diffs. Syntax is left out: a row of `diff` has none.

use std::ops::Range;

use buffa::MessageField;
use sayso_diff::{
    ConflictRow, ConflictRowKind, DiffRow, Escape, EscapedOriginal, LineTerminator, RowContent, RowKind, RowNote,
    SideBySideCell, SideBySideRow,
};

use super::field::{count, enumeration, missing, oneof, optional, required, unspecified};
use super::{BadMessage, messages};
use crate::proto;
use crate::proto::oneof::escaped_span::Original;

/// Offsets within a line and numbers of hunks. Both are far below the limit.
pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn line_number(number: Option<u64>, name: &str) -> Result<Option<usize>, BadMessage> {
    number.map(|number| count(number, name)).transpose()
}

/// Reads a span of a text, which starts and ends between characters.
pub(super) fn span(text: &str, start: u32, end: u32) -> Result<Range<usize>, BadMessage> {
    let range = start as usize..end as usize;
    if text.get(range.clone()).is_some() {
        return Ok(range);
    }
    Err(BadMessage::new("", format!("{start} to {end} is not a part of the text")))
}

impl From<&RowContent> for proto::LineContent {
    fn from(content: &RowContent) -> Self {
        let word = |range: &Range<usize>| proto::TextSpan {
            start: small(range.start),
            end: small(range.end),
            ..Default::default()
        };
        Self {
            text: content.text.clone(),
            terminator: proto::line_content::Terminator::from(content.terminator).into(),
            words: content.words.iter().map(word).collect(),
            escapes: messages(&content.escapes),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::LineContent> for RowContent {
    type Error = BadMessage;

    fn try_from(content: proto::LineContent) -> Result<Self, BadMessage> {
        let text = content.text;
        let mut words = Vec::new();
        for (index, word) in content.words.iter().enumerate() {
            words.push(span(&text, word.start, word.end).map_err(|error| error.within(&format!("words[{index}]")))?);
        }
        let mut escapes = Vec::new();
        for (index, escape) in content.escapes.into_iter().enumerate() {
            let name = format!("escapes[{index}]");
            let span = span(&text, escape.start, escape.end).map_err(|error| error.within(&name))?;
            let original = match oneof(escape.original, "original").map_err(|error| error.within(&name))? {
                Original::Characters(characters) => EscapedOriginal::Text(characters),
                Original::Undecoded(bytes) => EscapedOriginal::Bytes(bytes),
            };
            escapes.push(Escape { span, original });
        }
        Ok(Self { text, terminator: enumeration(content.terminator, "terminator")?, words, escapes })
    }
}

impl From<&Escape> for proto::EscapedSpan {
    fn from(escape: &Escape) -> Self {
        let original = match &escape.original {
            EscapedOriginal::Text(characters) => Original::Characters(characters.clone()),
            EscapedOriginal::Bytes(bytes) => Original::Undecoded(bytes.clone()),
        };
        Self {
            start: small(escape.span.start),
            end: small(escape.span.end),
            original: Some(original),
            ..Default::default()
        }
    }
}

impl From<LineTerminator> for proto::line_content::Terminator {
    fn from(terminator: LineTerminator) -> Self {
        match terminator {
            LineTerminator::None => Self::Unspecified,
            LineTerminator::Lf => Self::Lf,
            LineTerminator::CrLf => Self::Crlf,
        }
    }
}

impl TryFrom<proto::line_content::Terminator> for LineTerminator {
    type Error = BadMessage;

    fn try_from(terminator: proto::line_content::Terminator) -> Result<Self, BadMessage> {
        Ok(match terminator {
            proto::line_content::Terminator::Unspecified => Self::None,
            proto::line_content::Terminator::Lf => Self::Lf,
            proto::line_content::Terminator::Crlf => Self::CrLf,
        })
    }
}

impl From<&DiffRow> for proto::DiffRow {
    fn from(row: &DiffRow) -> Self {
        use proto::diff_row::Kind;
        let (kind, folded) = match row.kind {
            RowKind::Context => (Kind::Context, 0),
            RowKind::Added => (Kind::Added, 0),
            RowKind::Removed => (Kind::Removed, 0),
            RowKind::Fold { hidden } => (Kind::Fold, hidden),
            RowKind::Note(RowNote::NoFinalNewline) => (Kind::NoFinalNewline, 0),
        };
        let has_content = kind != Kind::Fold;
        Self {
            kind: kind.into(),
            old_line: row.old_line.map(|line| line as u64),
            new_line: row.new_line.map(|line| line as u64),
            content: if has_content { MessageField::some((&row.content).into()) } else { MessageField::none() },
            hunk: row.hunk.map(small),
            part: row.part.map(small),
            folded: folded as u64,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::DiffRow> for DiffRow {
    type Error = BadMessage;

    fn try_from(row: proto::DiffRow) -> Result<Self, BadMessage> {
        use proto::diff_row::Kind;
        let kind = match enumeration::<_, Kind>(row.kind, "kind")? {
            Kind::Unspecified => return Err(unspecified().within("kind")),
            Kind::Context => RowKind::Context,
            Kind::Added => RowKind::Added,
            Kind::Removed => RowKind::Removed,
            Kind::Fold => RowKind::Fold { hidden: count(row.folded, "folded")? },
            Kind::NoFinalNewline => RowKind::Note(RowNote::NoFinalNewline),
        };
        let content = if matches!(kind, RowKind::Fold { .. }) { blank() } else { required(row.content, "content")? };
        Ok(Self {
            kind,
            old_line: line_number(row.old_line, "old_line")?,
            new_line: line_number(row.new_line, "new_line")?,
            content,
            hunk: row.hunk.map(|hunk| hunk as usize),
            part: row.part.map(|part| part as usize),
        })
    }
}

/// The content of a fold.
fn blank() -> RowContent {
    RowContent { text: String::new(), terminator: LineTerminator::None, words: Vec::new(), escapes: Vec::new() }
}

impl From<&SideBySideRow> for proto::SideBySideRow {
    fn from(row: &SideBySideRow) -> Self {
        let cell = |row: Option<&DiffRow>| row.map(proto::DiffRow::from).into();
        match row {
            SideBySideRow::Both(row) => Self { both: cell(Some(row)), ..Default::default() },
            SideBySideRow::Pair { old, new } => {
                Self { old: cell(old.row()), new: cell(new.row()), ..Default::default() }
            }
        }
    }
}

impl TryFrom<proto::SideBySideRow> for SideBySideRow {
    type Error = BadMessage;

    fn try_from(row: proto::SideBySideRow) -> Result<Self, BadMessage> {
        if row.both.is_set() {
            return Ok(Self::Both(required(row.both, "both")?));
        }
        let cell = |row: Option<DiffRow>| row.map_or(SideBySideCell::Blank, SideBySideCell::Row);
        let (old, new) = (optional(row.old, "old")?, optional(row.new, "new")?);
        if old.is_none() && new.is_none() {
            return Err(missing("both"));
        }
        Ok(Self::Pair { old: cell(old), new: cell(new) })
    }
}

impl From<&ConflictRow> for proto::ConflictRow {
    fn from(row: &ConflictRow) -> Self {
        use proto::conflict_row::Kind;
        let (kind, folded) = match row.kind {
            ConflictRowKind::Context => (Kind::Context, 0),
            ConflictRowKind::Theirs => (Kind::Theirs, 0),
            ConflictRowKind::Yours => (Kind::Yours, 0),
            ConflictRowKind::Same => (Kind::Same, 0),
            ConflictRowKind::Conflict => (Kind::Conflict, 0),
            ConflictRowKind::Fold { hidden } => (Kind::Fold, hidden),
        };
        let content = |content: &Option<RowContent>| content.as_ref().map(proto::LineContent::from).into();
        let number = |line: Option<usize>| line.map(|line| line as u64);
        Self {
            kind: kind.into(),
            conflict: row.conflict.map(small),
            base_line: number(row.base_line),
            theirs_line: number(row.theirs_line),
            yours_line: number(row.yours_line),
            base: content(&row.base),
            theirs: content(&row.theirs),
            yours: content(&row.yours),
            folded: folded as u64,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::ConflictRow> for ConflictRow {
    type Error = BadMessage;

    fn try_from(row: proto::ConflictRow) -> Result<Self, BadMessage> {
        use proto::conflict_row::Kind;
        let kind = match enumeration::<_, Kind>(row.kind, "kind")? {
            Kind::Unspecified => return Err(unspecified().within("kind")),
            Kind::Context => ConflictRowKind::Context,
            Kind::Theirs => ConflictRowKind::Theirs,
            Kind::Yours => ConflictRowKind::Yours,
            Kind::Same => ConflictRowKind::Same,
            Kind::Conflict => ConflictRowKind::Conflict,
            Kind::Fold => ConflictRowKind::Fold { hidden: count(row.folded, "folded")? },
        };
        Ok(Self {
            kind,
            conflict: row.conflict.map(|number| number as usize),
            base_line: line_number(row.base_line, "base_line")?,
            theirs_line: line_number(row.theirs_line, "theirs_line")?,
            yours_line: line_number(row.yours_line, "yours_line")?,
            base: optional(row.base, "base")?,
            theirs: optional(row.theirs, "theirs")?,
            yours: optional(row.yours, "yours")?,
        })
    }
}
