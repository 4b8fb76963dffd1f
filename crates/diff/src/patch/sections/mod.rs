//! The `*** Begin Patch` form, which locates lines by their content instead of their numbers.
//!
//! ```text
//! *** Begin Patch
//! *** Add File: a new file
//! +its lines
//! *** Delete File: a file
//! *** Update File: a file
//! *** Move to: its new name
//! @@ a line that comes before
//!  a line that stays
//! -a line that goes
//! +a line that comes
//! *** End of File
//! *** End Patch
//! ```
//!
//! A model that writes a patch sees the file as [`plain_text`](crate::plain_text). The patch is applied to this text, and
//! [`encode_like`](crate::encode_like()) writes the result in the file's own format.
//!
//! Each chunk is searched after the previous one, with increasing looseness. The first match is used, as models expect. The
//! result reports loose and ambiguous matches for a person to check.
//!
//! # Limits
//!
//! - Searching a chunk takes time linear in the file size. A patch with many loosely matching chunks pays for each of them.
//! - The format cannot express a missing final newline. An updated file keeps its own; a new file has one.

mod apply;
mod parse;

pub use apply::{Ambiguity, Loosened, Looseness, SectionApplied, SectionReason, SectionRejection};

use super::Problem;
use crate::hunk::LineKind;

/// A parsed patch in the `*** Begin Patch` form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionPatch {
    /// Changes by file, in order. A file may occur more than once; each section applies to the previous result.
    pub sections: Vec<Section>,
    /// Problems found while parsing.
    pub problems: Vec<Problem>,
}

/// The changes of a patch to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Path as written.
    pub path: String,
    pub action: SectionAction,
    /// `true` if a part for this file was not understood, so the section is not applied.
    pub incomplete: bool,
}

/// The kinds of file changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionAction {
    /// Writes the whole file. The format does not state whether the file exists.
    Add {
        /// Whole text; every line has a break.
        content: String,
    },
    /// Deletes the file.
    Delete,
    /// Changes parts of the file, or its name.
    Update {
        /// New path of a renamed file.
        move_to: Option<String>,
        chunks: Vec<SectionChunk>,
    },
}

/// A position in a file with its changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionChunk {
    /// First line of the chunk in the patch, from 1.
    pub line: usize,
    /// Lines after `@@`. Each is searched in the file after the previous one, not necessarily directly.
    pub anchors: Vec<String>,
    pub lines: Vec<SectionLine>,
    /// `true` if the old lines must be at the end of the file.
    pub at_end: bool,
}

/// A line of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionLine {
    /// Added, removed or context.
    pub kind: LineKind,
    /// Text after the marker, without a break.
    pub text: String,
}

impl SectionPatch {
    /// Parses a patch, ignoring the text around it. Parsing never fails; parts that are not understood are reported as
    /// problems.
    pub fn parse(text: &str) -> Self {
        parse::parse(text)
    }
}

/// `true` if a text is a patch in this form, rather than a unified diff that contains one.
pub fn is_begin_patch(text: &str) -> bool {
    let telling = |line: &str| {
        parse::is_marker(line, parse::BEGIN)
            || ["diff --git ", "--- ", "@@ "].iter().any(|start| line.starts_with(start))
    };
    text.lines().find(|line| telling(line)).is_some_and(|line| parse::is_marker(line, parse::BEGIN))
}
