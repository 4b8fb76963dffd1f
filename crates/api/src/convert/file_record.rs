//! One file of a recorded change.

use buffa::MessageField;
use sayso_review::{AppliedPart, CardLine, CardLineKind, FileRecord, InlineCard};

use super::described::known_notes;
use super::field::{count, enumeration, list, optional, path, required, unspecified};
use super::file_state::{operation, renamed_from};
use super::{BadMessage, messages};
use crate::proto;

/// Leaves `applied_part` unset: it follows from the whole change.
impl From<&FileRecord> for proto::FileRecord {
    fn from(file: &FileRecord) -> Self {
        Self {
            path: file.path.to_string(),
            location: file.location.to_string(),
            operation: proto::Operation::from(&file.operation).into(),
            renamed_from: renamed_from(&file.operation),
            before: MessageField::some((&file.before).into()),
            after: MessageField::some((&file.after).into()),
            added: file.added as u64,
            removed: file.removed as u64,
            notes: messages(&file.notes),
            problem: file.problem.as_ref().map(proto::Problem::from).into(),
            settled: file.settled,
            card: file.card.as_ref().map(proto::InlineCard::from).into(),
            ..Default::default()
        }
    }
}

/// Drops notes of unknown kinds.
impl TryFrom<proto::FileRecord> for FileRecord {
    type Error = BadMessage;

    fn try_from(file: proto::FileRecord) -> Result<Self, BadMessage> {
        Ok(Self {
            path: path(&file.path, "path")?,
            location: path(&file.location, "location")?,
            operation: operation(file.operation, file.renamed_from.as_ref())?,
            before: required(file.before, "before")?,
            after: required(file.after, "after")?,
            added: count(file.added, "added")?,
            removed: count(file.removed, "removed")?,
            notes: known_notes(file.notes),
            problem: optional(file.problem, "problem")?,
            settled: file.settled,
            card: optional(file.card, "card")?,
        })
    }
}

impl From<&InlineCard> for proto::InlineCard {
    fn from(card: &InlineCard) -> Self {
        let line = |line: &CardLine| proto::inline_card::Line {
            r#type: proto::inline_card::line::Type::from(line.kind).into(),
            text: line.text.clone(),
            ..Default::default()
        };
        Self {
            lines: card.lines.iter().map(line).collect(),
            truncated: card.truncated,
            total_lines: card.total_lines as u64,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::InlineCard> for InlineCard {
    type Error = BadMessage;

    fn try_from(card: proto::InlineCard) -> Result<Self, BadMessage> {
        Ok(Self {
            lines: list(card.lines, "lines")?,
            truncated: card.truncated,
            total_lines: count(card.total_lines, "total_lines")?,
        })
    }
}

impl TryFrom<proto::inline_card::Line> for CardLine {
    type Error = BadMessage;

    fn try_from(line: proto::inline_card::Line) -> Result<Self, BadMessage> {
        Ok(Self { kind: enumeration(line.r#type, "type")?, text: line.text })
    }
}

impl From<CardLineKind> for proto::inline_card::line::Type {
    fn from(kind: CardLineKind) -> Self {
        match kind {
            CardLineKind::Add => Self::Add,
            CardLineKind::Remove => Self::Remove,
            CardLineKind::Context => Self::Context,
        }
    }
}

impl TryFrom<proto::inline_card::line::Type> for CardLineKind {
    type Error = BadMessage;

    fn try_from(kind: proto::inline_card::line::Type) -> Result<Self, BadMessage> {
        match kind {
            proto::inline_card::line::Type::Unspecified => Err(unspecified()),
            proto::inline_card::line::Type::Add => Ok(Self::Add),
            proto::inline_card::line::Type::Remove => Ok(Self::Remove),
            proto::inline_card::line::Type::Context => Ok(Self::Context),
        }
    }
}

impl From<AppliedPart> for proto::file_record::AppliedPart {
    fn from(part: AppliedPart) -> Self {
        match part {
            AppliedPart::All => Self::All,
            AppliedPart::Partial => Self::Partial,
            AppliedPart::Nothing => Self::Nothing,
        }
    }
}

impl TryFrom<proto::file_record::AppliedPart> for AppliedPart {
    type Error = BadMessage;

    fn try_from(part: proto::file_record::AppliedPart) -> Result<Self, BadMessage> {
        match part {
            proto::file_record::AppliedPart::Unspecified => Err(unspecified()),
            proto::file_record::AppliedPart::All => Ok(Self::All),
            proto::file_record::AppliedPart::Partial => Ok(Self::Partial),
            proto::file_record::AppliedPart::Nothing => Ok(Self::Nothing),
        }
    }
}
