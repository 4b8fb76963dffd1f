//! Line diffs, patches and merges of byte contents.
//!
//! Contents are never normalized, so a hunk shows exactly the bytes that will be written. Encodings and line endings are
//! detected for display, and their differences are [`Note`]s. A change of nothing but `\r` is therefore visible.
//!
//! A [`Diff`] stores the changes between two [`Side`]s as cursors into their bytes. Everything else is a view computed on
//! demand: [`Hunk`]s and their lines, word spans, the unified text, the inline form, the result of accepting some hunks. A diff
//! is therefore cheap to keep, and the card of a 10,000-line change builds only ten lines.
//!
//! [`DiffRows`] is a diff as data for surfaces: rows of either layout, a page at a time.
//!
//! [`Patch`] parses unified diffs, and [`SectionPatch`] parses the `*** Begin Patch` form. [`merge()`] combines two changes of
//! one base. [`plain_text`] converts a file to the text that a model sees, and [`encode_like()`] converts the text back to the
//! format of the file.
//!
//! # Limits
//!
//! - Work is bounded on any input: where a fast algorithm is not linear, a slower one with a bound takes over (see `engine`).
//! - A side of 4 GiB or more after trimming is compared as one block.
//! - The unit is a line. A file with a single 4 MB line is one changed line; word spans are limited to 128 KiB per change.
//! - UTF-16 lines are split by code units and decoded for display; their unified text cannot be applied by `git apply`.

mod change;
mod diff;
mod encode_like;
mod engine;
mod hunk;
mod inline;
mod lines;
mod merge;
mod note;
mod patch;
mod rows;
mod text_format;
mod unified;
mod words;

pub use change::{Block, Change, Cursor};
pub use diff::{Counts, Diff, Side};
pub use encode_like::{EncodedText, encode_like, plain_text};
pub use hunk::{Hunk, Hunks, Line, LineKind, Lines, MarkedLine};
pub use inline::{INLINE_LINES, InlineDiff, InlineLine};
pub use merge::{Chunk, Conflict, MarkerLabels, Merge, PresenceConflict, SideMerge, merge, merge_sides};
pub use note::Note;
pub use patch::{
    Ambiguity, FilePatch, Loosened, Looseness, Patch, PatchHunk, PatchLine, Patched, Placement, Problem, ProblemKind,
    Reason, Rejection, Section, SectionAction, SectionApplied, SectionChunk, SectionLine, SectionPatch, SectionReason,
    SectionRejection, Selection, is_begin_patch,
};
pub use rows::{
    ConflictRow, ConflictRowKind, ConflictRows, DiffFacts, DiffRow, DiffRows, Escape, EscapedOriginal, HunkRows,
    LineTerminator, PageLimit, RowContent, RowKind, RowLayout, RowNote, RowOptions, RowPage, SideBySideCell,
    SideBySideRow, SideBySideRows, SideFacts, UnifiedRows,
};
pub use text_format::{Encoding, Kind, LineEnding, TextFormat};
pub use unified::{NO_FILE, Rendering, Unified, UnifiedOptions, one_line, path_label};
pub use words::WordSpans;
