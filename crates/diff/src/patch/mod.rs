//! Patches as input, as unified diffs or in the `*** Begin Patch` form ([`sections`]): read what a model, an agent or a tool
//! wrote, and apply all or some of it.
//!
//! Reading never fails: it returns what it understood and a list of problems. A file of which something was not understood is
//! marked so, and is not applied. Applying is all or nothing per file: either every chosen hunk found its place, or each that
//! did not says why.

mod apply;
mod parse;
mod search;
mod sections;

pub use apply::{Patched, Placement, Reason, Rejection, Selection};
pub use sections::{
    Ambiguity, Loosened, Looseness, Section, SectionAction, SectionApplied, SectionChunk, SectionLine, SectionPatch,
    SectionReason, SectionRejection, is_begin_patch,
};

use std::borrow::Cow;
use std::fmt;

use crate::hunk::LineKind;

/// A unified diff that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch<'a> {
    /// What it does to each file, in order.
    pub files: Vec<FilePatch<'a>>,
    /// What was not as it should be. The files hold whatever could be understood.
    pub problems: Vec<Problem>,
}

/// What a patch does to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePatch<'a> {
    /// The name after `---` as written, without a quote's escapes or a time stamp; `/dev/null` for a file to be created.
    pub old_path: Vec<u8>,
    /// The name after `+++`; `/dev/null` for a file to be deleted.
    pub new_path: Vec<u8>,
    /// The lines between `diff --git` and `---`, such as `new file mode 100755` or `rename from x`.
    pub extended: Vec<&'a [u8]>,
    /// The hunks in order.
    pub hunks: Vec<PatchHunk<'a>>,
    /// Whether the patch says more about this file than could be read.
    pub incomplete: bool,
}

/// A hunk that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchHunk<'a> {
    /// Its 1-based number within the file.
    pub number: usize,
    /// The 1-based line it starts at in the old file; where it has no old lines, the line before it.
    pub old_start: usize,
    /// The same for the new file.
    pub new_start: usize,
    /// What follows the second `@@`.
    pub section: &'a [u8],
    /// Its lines.
    pub lines: Vec<PatchLine<'a>>,
}

/// A line of a hunk that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchLine<'a> {
    /// Added, removed or context.
    pub kind: LineKind,
    /// Its bytes after the marker, line break included unless the patch says that there is none. That the patch itself ends
    /// without one says nothing about the file.
    pub bytes: Cow<'a, [u8]>,
}

/// Something about a patch that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The 1-based line of the patch.
    pub line: usize,
    /// What is wrong there.
    pub kind: ProblemKind,
}

/// What can be wrong with a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// A `@@` line that gives no line numbers.
    BadHunkHeader,
    /// The header promises other counts than the hunk has; the lines are what counts.
    WrongCounts {
        /// Old and new lines promised.
        promised: (usize, usize),
        /// Old and new lines found.
        found: (usize, usize),
    },
    /// A hunk before any `---` and `+++`, or one of these without the other.
    NoFileHeader,
    /// A binary patch, or the mere statement that binary files differ.
    Binary,
    /// There is no `*** Begin Patch`.
    NoBegin,
    /// There is no `*** End Patch`, so that the rest may be missing.
    NoEnd,
    /// A line that starts with `***` and has no meaning there.
    UnknownMarker,
    /// A section without a file's name.
    NoPath,
    /// A line that is not marked as added, removed or context, in a place where it has to be.
    UnmarkedLine,
    /// A section or a chunk that changes nothing.
    Empty,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the patch: ", self.line)?;
        match self.kind {
            ProblemKind::BadHunkHeader => f.write_str("a hunk starts as `@@ -1,3 +1,4 @@`, this one does not"),
            ProblemKind::WrongCounts { promised, found } => write!(
                f,
                "the hunk promises {} old and {} new lines but has {} and {}",
                promised.0, promised.1, found.0, found.1
            ),
            ProblemKind::NoFileHeader => f.write_str("a hunk needs `---` and `+++` lines before it"),
            ProblemKind::Binary => f.write_str("changes of binary files cannot be read"),
            ProblemKind::NoBegin => f.write_str("there is no `*** Begin Patch`"),
            ProblemKind::NoEnd => f.write_str("there is no `*** End Patch`, so the rest may be missing"),
            ProblemKind::UnknownMarker => f.write_str("`***` has to start a section that is known, in its place"),
            ProblemKind::NoPath => f.write_str("a section needs a file's name"),
            ProblemKind::UnmarkedLine => f.write_str("the line starts with neither `+` nor `-` nor a blank"),
            ProblemKind::Empty => f.write_str("there is nothing in this section or chunk"),
        }
    }
}

impl<'a> Patch<'a> {
    /// Reads a unified diff, from git or not.
    pub fn parse(text: &'a [u8]) -> Self {
        parse::parse(text)
    }
}

impl FilePatch<'_> {
    /// What git's header says after some words, such as `rename from `: a name comes without its quotes and escapes.
    pub fn header(&self, words: &str) -> Option<Vec<u8>> {
        let value = self.extended.iter().find_map(|line| line.strip_prefix(words.as_bytes()))?;
        let value = value.strip_suffix(b"\n").unwrap_or(value);
        let value = value.strip_suffix(b"\r").unwrap_or(value);
        Some(parse::unquote(value).map_or_else(|| value.to_vec(), |(name, _)| name))
    }
}

impl PatchHunk<'_> {
    /// How many old lines it covers.
    pub fn old_lines(&self) -> usize {
        self.lines.iter().filter(|line| line.kind != LineKind::Add).count()
    }

    /// How many new lines it covers.
    pub fn new_lines(&self) -> usize {
        self.lines.iter().filter(|line| line.kind != LineKind::Remove).count()
    }
}
