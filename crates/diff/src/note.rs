//! What differs between two sides besides their lines, so that nothing hides as white space.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::form::{Encoding, Form, Kind, LineEnding};

/// A difference in form. A reviewer sees it even where every line reads the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "kebab-case")]
pub enum Note {
    /// Text became binary or the other way round.
    Kind {
        /// Before.
        old: Kind,
        /// After.
        new: Kind,
    },
    /// The encoding changes.
    Encoding {
        /// Before.
        old: Encoding,
        /// After.
        new: Encoding,
    },
    /// The byte order mark is added.
    BomAdded,
    /// The byte order mark is removed.
    BomRemoved,
    /// The line ending changes.
    LineEnding {
        /// Before.
        old: LineEnding,
        /// After.
        new: LineEnding,
    },
    /// The last line gets its line break.
    FinalNewlineAdded,
    /// The last line loses its line break.
    FinalNewlineRemoved,
}

/// Compares the forms of two sides that both exist.
pub(crate) fn notes(old: Form, new: Form) -> Vec<Note> {
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
    // A side without any line break has no ending to differ from.
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
