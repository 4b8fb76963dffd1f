//! Bytes to lines to hunks.
//!
//! The input of everything here is bytes, and bytes are what comes out: nothing is normalised, so what a hunk shows is what
//! will be written. Encodings and line endings are recognised for display, and differences in them are [`Note`]s, so that a
//! change of nothing but `\r` cannot pass for no change.
//!
//! A [`Diff`] holds the changes between two [`Side`]s as cursors into their bytes. Everything else is a view of it that is
//! computed when asked for: [`Hunk`]s and their lines, word spans, the unified text, the inline form of a card, the result
//! of accepting some hunks. A diff is therefore cheap to keep, and a card of a 10,000-line change builds ten lines.
//!
//! [`Patch`] goes the other way, from unified text to hunks that can be applied, and [`SectionPatch`] does so from the
//! `*** Begin Patch` form; [`merge()`] brings two changes of one base together. [`plain_text`] is a file as a model sees it, and [`like()`] writes what the model sends back in the file's own form.
//!
//! # Limits
//!
//! - Work is bounded on any input (see the `engine` module): what a fast way cannot do in linear time, a slower way with a
//!   worst case takes over.
//! - A side of 4 GiB or more after trimming is compared as one block.
//! - A line is the unit. A file of one 4 MB line is one changed line; word spans stop at 128 KiB a change.
//! - UTF-16 lines are found by code unit and shown decoded; their unified text is for people, not for `git apply`.

mod change;
mod diff;
mod engine;
mod form;
mod hunk;
mod inline;
mod like;
mod lines;
mod merge;
mod note;
mod patch;
mod unified;
mod words;

pub use change::{Block, Change, Cursor};
pub use diff::{Counts, Diff, Side};
pub use form::{Encoding, Form, Kind, LineEnding};
pub use hunk::{Hunk, Hunks, Line, LineKind, Lines, MarkedLine};
pub use inline::{INLINE_LINES, InlineDiff, InlineLine};
pub use like::{Alike, like, plain_text};
pub use merge::{Chunk, Conflict, MarkerLabels, Merge, PresenceConflict, SideMerge, merge, merge_sides};
pub use note::Note;
pub use patch::{
    Ambiguity, FilePatch, Loosened, Looseness, Patch, PatchHunk, PatchLine, Patched, Placement, Problem, ProblemKind,
    Reason, Rejection, Section, SectionAction, SectionApplied, SectionChunk, SectionLine, SectionPatch, SectionReason,
    SectionRejection, Selection, is_begin_patch,
};
pub use unified::{NO_FILE, Rendering, Unified, UnifiedOptions, one_line, path_label};
pub use words::WordSpans;
