//! Differences between two sides other than their lines.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text_format::{Encoding, Kind, LineEnding, TextFormat};

/// A difference in text format, which the lines of a diff may not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "kebab-case")]
pub enum Note {
    /// The content changes between text and binary.
    Kind {
        old: Kind,
        new: Kind,
    },
    Encoding {
        old: Encoding,
        new: Encoding,
    },
    BomAdded,
    BomRemoved,
    LineEnding {
        old: LineEnding,
        new: LineEnding,
    },
    FinalNewlineAdded,
    FinalNewlineRemoved,
}

/// Compares the formats of two present sides.
pub(crate) fn notes(old: TextFormat, new: TextFormat) -> Vec<Note> {
    let mut notes = Vec::new();
    if old.kind != new.kind {
        notes.push(Note::Kind { old: old.kind, new: new.kind });
    }
    if old.kind == Kind::Binary || new.kind == Kind::Binary {
        return notes;
    }
    if old.encoding != new.encoding {
        notes.push(Note::Encoding { old: old.encoding, new: new.encoding });
    }
    match (old.bom, new.bom) {
        (false, true) => notes.push(Note::BomAdded),
        (true, false) => notes.push(Note::BomRemoved),
        _ => {}
    }
    // A side without any line break has no line ending to compare.
    let has_breaks = old.line_ending != LineEnding::None && new.line_ending != LineEnding::None;
    if has_breaks && old.line_ending != new.line_ending {
        notes.push(Note::LineEnding { old: old.line_ending, new: new.line_ending });
    }
    match (old.final_newline, new.final_newline) {
        (false, true) => notes.push(Note::FinalNewlineAdded),
        (true, false) => notes.push(Note::FinalNewlineRemoved),
        _ => {}
    }
    notes
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { old, new } => write!(f, "content changes from {old} to {new}"),
            Self::Encoding { old, new } => write!(f, "encoding changes from {old} to {new}"),
            Self::BomAdded => f.write_str("byte order mark added"),
            Self::BomRemoved => f.write_str("byte order mark removed"),
            Self::LineEnding { old, new } => write!(f, "line ending changes from {old} to {new}"),
            Self::FinalNewlineAdded => f.write_str("final newline added"),
            Self::FinalNewlineRemoved => f.write_str("final newline removed"),
        }
    }
}
