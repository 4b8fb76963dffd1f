//! Subjects, files, hunks and highlighted rows of diffs.

use std::ops::Range;

use sayso_diff::{Counts, DiffRow, Encoding, HunkRows, Kind, LineEnding, SideFacts, TextFormat};

use super::BadMessage;
use super::diff::{small, span};
use super::field::{count, enumeration, hash, list, missing, oneof, optional, required};
use super::file_state::{operation, renamed_from};
use crate::diff::{DiffFile, DiffFiles, DiffPage, DiffSide, DiffSubject, HighlightedRow, NoDiffReason, SyntaxToken};
use crate::proto;
use crate::proto::diff_subject::Reversal;
use crate::proto::oneof::diff_subject::Subject;

impl From<&DiffSubject> for proto::DiffSubject {
    fn from(subject: &DiffSubject) -> Self {
        let reversal = |target: &sayso_review::Target, if_changed: sayso_review::IfChanged| {
            Box::new(Reversal {
                target: Some(target.into()).into(),
                if_changed: proto::IfChanged::from(if_changed).into(),
                ..Default::default()
            })
        };
        let subject = match subject {
            DiffSubject::Change(change) => Subject::Change(*change),
            DiffSubject::AppliedChange(change) => Subject::AppliedChange(*change),
            DiffSubject::Turn { session, turn } => {
                proto::Turn { session: session.clone(), turn: turn.clone(), ..Default::default() }.into()
            }
            DiffSubject::Undo { target, if_changed } => Subject::Undo(reversal(target, *if_changed)),
            DiffSubject::Redo { target, if_changed } => Subject::Redo(reversal(target, *if_changed)),
            DiffSubject::Restore(snapshot) => Subject::Restore(*snapshot),
            DiffSubject::Conflict(change) => Subject::Conflict(*change),
            DiffSubject::Request(request) => Subject::Request(*request),
        };
        Self { subject: Some(subject), ..Default::default() }
    }
}

impl TryFrom<proto::DiffSubject> for DiffSubject {
    type Error = BadMessage;

    fn try_from(subject: proto::DiffSubject) -> Result<Self, BadMessage> {
        let reversal = |reversal: Box<Reversal>| {
            Ok::<_, BadMessage>((required(reversal.target, "target")?, enumeration(reversal.if_changed, "if_changed")?))
        };
        Ok(match oneof(subject.subject, "subject")? {
            Subject::Change(change) => Self::Change(change),
            Subject::AppliedChange(change) => Self::AppliedChange(change),
            Subject::Turn(turn) => Self::Turn { session: turn.session, turn: turn.turn },
            Subject::Undo(undo) => {
                let (target, if_changed) = reversal(undo).map_err(|error| error.within("undo"))?;
                Self::Undo { target, if_changed }
            }
            Subject::Redo(redo) => {
                let (target, if_changed) = reversal(redo).map_err(|error| error.within("redo"))?;
                Self::Redo { target, if_changed }
            }
            Subject::Restore(snapshot) => Self::Restore(snapshot),
            Subject::Conflict(change) => Self::Conflict(change),
            Subject::Request(request) => Self::Request(request),
        })
    }
}

impl From<&HunkRows> for proto::DiffHunk {
    fn from(hunk: &HunkRows) -> Self {
        Self {
            number: small(hunk.number),
            parts: small(hunk.parts),
            added: hunk.counts.added as u64,
            removed: hunk.counts.removed as u64,
            old_start: hunk.old_lines.start as u64 + 1,
            old_lines: hunk.old_lines.len() as u64,
            new_start: hunk.new_lines.start as u64 + 1,
            new_lines: hunk.new_lines.len() as u64,
            first_row: hunk.rows.start as u64,
            rows: hunk.rows.len() as u64,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::DiffHunk> for HunkRows {
    type Error = BadMessage;

    fn try_from(hunk: proto::DiffHunk) -> Result<Self, BadMessage> {
        let from_one = |start: u64, name: &str| {
            start.checked_sub(1).ok_or_else(|| BadMessage::new(name, "lines are numbered from 1"))
        };
        Ok(Self {
            number: hunk.number as usize,
            parts: hunk.parts as usize,
            counts: counts(hunk.added, hunk.removed)?,
            old_lines: range(from_one(hunk.old_start, "old_start")?, hunk.old_lines, "old_lines")?,
            new_lines: range(from_one(hunk.new_start, "new_start")?, hunk.new_lines, "new_lines")?,
            rows: range(hunk.first_row, hunk.rows, "rows")?,
        })
    }
}

fn range(start: u64, length: u64, name: &str) -> Result<Range<usize>, BadMessage> {
    let end = start.checked_add(length).ok_or_else(|| BadMessage::new(name, "the end is too large"))?;
    Ok(count(start, name)?..count(end, name)?)
}

fn counts(added: u64, removed: u64) -> Result<Counts, BadMessage> {
    Ok(Counts { added: count(added, "added")?, removed: count(removed, "removed")? })
}

impl From<&SideFacts> for proto::TextFormat {
    fn from(facts: &SideFacts) -> Self {
        (&DiffSide { format: facts.format, lines: facts.lines }).into()
    }
}

impl From<&DiffSide> for proto::TextFormat {
    fn from(side: &DiffSide) -> Self {
        use proto::text_format::{Encoding as Encoded, LineEnding as Ending};
        let encoding = match (side.format.kind, side.format.encoding) {
            (Kind::Binary, _) => Encoded::Unspecified,
            (Kind::Text, Encoding::Utf8) => Encoded::Utf8,
            (Kind::Text, Encoding::Utf16Le) => Encoded::Utf16Le,
            (Kind::Text, Encoding::Utf16Be) => Encoded::Utf16Be,
            (Kind::Text, Encoding::Latin1) => Encoded::Latin1,
        };
        let line_ending = match side.format.line_ending {
            LineEnding::None => Ending::Unspecified,
            LineEnding::Lf => Ending::Lf,
            LineEnding::Crlf => Ending::Crlf,
            LineEnding::Mixed => Ending::Mixed,
        };
        Self {
            encoding: encoding.into(),
            line_ending: line_ending.into(),
            bom: side.format.bom,
            final_newline: side.format.final_newline,
            lines: side.lines as u64,
            ..Default::default()
        }
    }
}

/// Binary content decodes with the encoding for unknown content.
impl TryFrom<proto::TextFormat> for DiffSide {
    type Error = BadMessage;

    fn try_from(format: proto::TextFormat) -> Result<Self, BadMessage> {
        use proto::text_format::{Encoding as Encoded, LineEnding as Ending};
        let (kind, encoding) = match enumeration::<_, Encoded>(format.encoding, "encoding")? {
            Encoded::Unspecified => (Kind::Binary, Encoding::Latin1),
            Encoded::Utf8 => (Kind::Text, Encoding::Utf8),
            Encoded::Utf16Le => (Kind::Text, Encoding::Utf16Le),
            Encoded::Utf16Be => (Kind::Text, Encoding::Utf16Be),
            Encoded::Latin1 => (Kind::Text, Encoding::Latin1),
        };
        let line_ending = match enumeration::<_, Ending>(format.line_ending, "line_ending")? {
            Ending::Unspecified => LineEnding::None,
            Ending::Lf => LineEnding::Lf,
            Ending::Crlf => LineEnding::Crlf,
            Ending::Mixed => LineEnding::Mixed,
        };
        let (bom, final_newline) = (format.bom, format.final_newline);
        let lines = count(format.lines, "lines")?;
        Ok(Self { format: TextFormat { kind, encoding, bom, line_ending, final_newline }, lines })
    }
}

impl From<NoDiffReason> for proto::diff_file::NoDiffReason {
    fn from(reason: NoDiffReason) -> Self {
        match reason {
            NoDiffReason::Unchanged => Self::Unchanged,
            NoDiffReason::Binary => Self::Binary,
            NoDiffReason::ContentGone => Self::ContentGone,
            NoDiffReason::Withheld => Self::Withheld,
            NoDiffReason::NotCompared => Self::NotCompared,
        }
    }
}

impl From<proto::diff_file::NoDiffReason> for Option<NoDiffReason> {
    fn from(reason: proto::diff_file::NoDiffReason) -> Self {
        use proto::diff_file::NoDiffReason as Reason;
        match reason {
            Reason::Unspecified => None,
            Reason::Unchanged => Some(NoDiffReason::Unchanged),
            Reason::Binary => Some(NoDiffReason::Binary),
            Reason::ContentGone => Some(NoDiffReason::ContentGone),
            Reason::Withheld => Some(NoDiffReason::Withheld),
            Reason::NotCompared => Some(NoDiffReason::NotCompared),
        }
    }
}

impl From<&DiffFile> for proto::DiffFile {
    fn from(file: &DiffFile) -> Self {
        Self {
            path: file.path.clone(),
            label: file.label.clone(),
            operation: proto::Operation::from(&file.operation).into(),
            renamed_from: renamed_from(&file.operation),
            before: Some((&file.before).into()).into(),
            after: Some((&file.after).into()).into(),
            old_format: file.old_side.as_ref().map(proto::TextFormat::from).into(),
            new_format: file.new_side.as_ref().map(proto::TextFormat::from).into(),
            added: file.counts.added as u64,
            removed: file.counts.removed as u64,
            hunks: small(file.hunks),
            conflicts: small(file.conflicts),
            total_rows: file.rows.map(|rows| rows as u64),
            problem: file.problem.as_ref().map(proto::Problem::from).into(),
            no_diff_reason: file.no_diff.map(proto::diff_file::NoDiffReason::from).unwrap_or_default().into(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::DiffFile> for DiffFile {
    type Error = BadMessage;

    fn try_from(file: proto::DiffFile) -> Result<Self, BadMessage> {
        Ok(Self {
            path: file.path,
            label: file.label,
            operation: operation(file.operation, file.renamed_from.as_ref())?,
            before: required(file.before, "before")?,
            after: required(file.after, "after")?,
            old_side: optional(file.old_format, "old_format")?,
            new_side: optional(file.new_format, "new_format")?,
            counts: counts(file.added, file.removed)?,
            hunks: file.hunks as usize,
            conflicts: file.conflicts as usize,
            rows: file.total_rows.map(|rows| count(rows, "total_rows")).transpose()?,
            problem: optional(file.problem, "problem")?,
            no_diff: enumeration(file.no_diff_reason, "no_diff_reason")?,
        })
    }
}

impl From<&HighlightedRow> for proto::DiffRow {
    fn from(highlighted: &HighlightedRow) -> Self {
        let mut row = Self::from(&highlighted.row);
        let token = |token: &SyntaxToken| proto::SyntaxSpan {
            start: small(token.range.start),
            end: small(token.range.end),
            class: token.class.into(),
            ..Default::default()
        };
        if let Some(content) = row.content.as_option_mut() {
            content.syntax = highlighted.syntax.iter().map(token).collect();
        }
        row
    }
}

/// A class of a newer version becomes `Unspecified`.
impl TryFrom<proto::DiffRow> for HighlightedRow {
    type Error = BadMessage;

    fn try_from(mut message: proto::DiffRow) -> Result<Self, BadMessage> {
        let tokens = message.content.as_option_mut().map(|content| std::mem::take(&mut content.syntax));
        let row = DiffRow::try_from(message)?;
        let token = |(index, token): (usize, proto::SyntaxSpan)| {
            let range = span(&row.content.text, token.start, token.end)
                .map_err(|error| error.within(&format!("content.syntax[{index}]")))?;
            Ok(SyntaxToken { range, class: token.class.as_known().unwrap_or_default() })
        };
        let syntax =
            tokens.unwrap_or_default().into_iter().enumerate().map(token).collect::<Result<_, BadMessage>>()?;
        Ok(Self { row, syntax })
    }
}

/// Reads a list of files.
impl TryFrom<proto::GetDiffResponse> for DiffFiles {
    type Error = BadMessage;

    fn try_from(response: proto::GetDiffResponse) -> Result<Self, BadMessage> {
        Ok(Self {
            hash: hash(&response.preview_hash, "preview_hash")?,
            counts: counts(response.added, response.removed)?,
            files: list(response.files, "files")?,
        })
    }
}

/// Reads a page in the unified layout.
impl TryFrom<proto::GetDiffResponse> for DiffPage {
    type Error = BadMessage;

    fn try_from(mut page: proto::GetDiffResponse) -> Result<Self, BadMessage> {
        let file = page.files.pop().ok_or_else(|| missing("files"))?;
        Ok(Self {
            hash: hash(&page.preview_hash, "preview_hash")?,
            file: file.try_into().map_err(|error: BadMessage| error.within("files[0]"))?,
            from_row: count(page.from_row, "from_row")?,
            rows: list(page.rows, "rows")?,
            hunks: list(page.hunks, "hunks")?,
            has_more: page.has_more,
        })
    }
}
