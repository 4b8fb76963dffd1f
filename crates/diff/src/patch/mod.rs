//! Patches as input, as unified diffs or in the `*** Begin Patch` form ([`sections`]): parsing and applying.
//!
//! Parsing never fails. It returns the understood parts and a list of problems. A file with a part that was not
//! understood is marked incomplete and not applied. Applying is atomic per file: either every selected hunk matches, or
//! each mismatch is reported.

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

/// A parsed unified diff.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch<'a> {
    /// Changes by file, in order.
    pub files: Vec<FilePatch<'a>>,
    /// Problems found while parsing.
    pub problems: Vec<Problem>,
}

/// The changes of a patch to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePatch<'a> {
    /// Name after `---`, unescaped and without time stamp; `/dev/null` for a created file.
    pub old_path: Vec<u8>,
    /// Name after `+++`; `/dev/null` for a deleted file.
    pub new_path: Vec<u8>,
    /// Lines between `diff --git` and `---`, such as `new file mode 100755` or `rename from x`.
    pub extended: Vec<&'a [u8]>,
    pub hunks: Vec<PatchHunk<'a>>,
    /// `true` if a part for this file was not understood.
    pub incomplete: bool,
}

/// A parsed hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchHunk<'a> {
    /// Number within the file, from 1.
    pub number: usize,
    /// First line in the old file, from 1; without old lines, the preceding line.
    pub old_start: usize,
    /// First line in the new file, with the same convention.
    pub new_start: usize,
    /// Text after the second `@@`.
    pub section: &'a [u8],
    pub lines: Vec<PatchLine<'a>>,
}

/// A parsed line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchLine<'a> {
    /// Added, removed or context.
    pub kind: LineKind,
    /// Bytes after the marker, including the line break unless the patch denies it. A missing break at the end of the
    /// patch itself is ignored.
    pub bytes: Cow<'a, [u8]>,
}

/// A problem in a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line of the patch, from 1.
    pub line: usize,
    pub kind: ProblemKind,
}

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// A `@@` line without line numbers.
    BadHunkHeader,
    /// The counts in the header differ from the lines of the hunk; the lines take precedence.
    WrongCounts {
        /// Numbers of old and new lines in the header.
        promised: (usize, usize),
        /// Actual numbers of old and new lines.
        found: (usize, usize),
    },
    /// A hunk before any `---` and `+++`, or one of these without the other.
    NoFileHeader,
    /// A binary patch, or a statement that binary files differ.
    Binary,
    /// `*** Begin Patch` is missing.
    NoBegin,
    /// `*** End Patch` is missing, so the patch may be truncated.
    NoEnd,
    /// A misplaced or unknown line that starts with `***`.
    UnknownMarker,
    /// A section without a file name.
    NoPath,
    /// A line without a marker.
    UnmarkedLine,
    /// A section or a chunk without changes.
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
    /// Parses a unified diff, with or without git headers.
    pub fn parse(text: &'a [u8]) -> Self {
        parse::parse(text)
    }
}

impl FilePatch<'_> {
    /// Returns the value of a git header line, such as `rename from `; names are unquoted.
    pub fn header(&self, words: &str) -> Option<Vec<u8>> {
        let value = self.extended.iter().find_map(|line| line.strip_prefix(words.as_bytes()))?;
        let value = value.strip_suffix(b"\n").unwrap_or(value);
        let value = value.strip_suffix(b"\r").unwrap_or(value);
        Some(parse::unquote(value).map_or_else(|| value.to_vec(), |(name, _)| name))
    }
}

impl PatchHunk<'_> {
    /// Returns the number of old lines.
    pub fn old_lines(&self) -> usize {
        self.lines.iter().filter(|line| line.kind != LineKind::Add).count()
    }

    /// Returns the number of new lines.
    pub fn new_lines(&self) -> usize {
        self.lines.iter().filter(|line| line.kind != LineKind::Remove).count()
    }
}
