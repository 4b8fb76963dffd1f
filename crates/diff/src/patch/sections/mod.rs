//! The `*** Begin Patch` form, which names lines by what they say and not by their numbers.
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
//! A model that writes it sees a file as [`plain_text`](crate::plain_text), so that is what it is applied to, and
//! [`like`](crate::like()) writes the result in the file's own form.
//!
//! Chunks are looked for in order, each after the one before, and less and less strictly; the first place is taken, as the
//! model was told. Where that took looseness or there were other places, the result says so, for a person to look at.
//!
//! # Limits
//!
//! - Each chunk is searched for in time linear in the file. A patch of very many chunks that fit only loosely pays for each.
//! - The form cannot say that a file has no final newline. A file that is updated keeps what it has; a new one has it.

mod apply;
mod parse;

pub use apply::{Ambiguity, Loosened, Looseness, SectionApplied, SectionReason, SectionRejection};

use super::Problem;
use crate::hunk::LineKind;

/// A patch in the `*** Begin Patch` form that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionPatch {
    /// What it does to each file, in order. A file may come more than once, each time as the one before left it.
    pub sections: Vec<Section>,
    /// What was not as it should be.
    pub problems: Vec<Problem>,
}

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The file's name as written.
    pub path: String,
    /// What happens to it.
    pub action: SectionAction,
    /// Whether the patch says more about this file than could be read, which keeps it from being applied.
    pub incomplete: bool,
}

/// What can happen to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionAction {
    /// It is written anew. The form does not say whether it may exist already.
    Add {
        /// All of its text; every line has its break.
        content: String,
    },
    /// It goes.
    Delete,
    /// Parts of it change, or its name.
    Update {
        /// Its new name.
        move_to: Option<String>,
        /// The changes in order.
        chunks: Vec<SectionChunk>,
    },
}

/// A place of a file and what changes there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionChunk {
    /// The 1-based line of the patch it starts at.
    pub line: usize,
    /// What follows each `@@`: lines of the file that come before, each after the last, not necessarily directly.
    pub anchors: Vec<String>,
    /// Its lines.
    pub lines: Vec<SectionLine>,
    /// Whether its old lines are the last of the file.
    pub at_end: bool,
}

/// A line of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionLine {
    /// Added, removed or context.
    pub kind: LineKind,
    /// Its text after the marker, without a break.
    pub text: String,
}

impl SectionPatch {
    /// Reads a patch, with whatever stands before and after it. Never fails: what was not understood is a problem.
    pub fn parse(text: &str) -> Self {
        parse::parse(text)
    }
}

/// Whether a text is a patch in this form and not, say, a unified diff of a file that has one in it.
pub fn is_begin_patch(text: &str) -> bool {
    let telling = |line: &str| {
        parse::is_marker(line, parse::BEGIN)
            || ["diff --git ", "--- ", "@@ "].iter().any(|start| line.starts_with(start))
    };
    text.lines().find(|line| telling(line)).is_some_and(|line| parse::is_marker(line, parse::BEGIN))
}
