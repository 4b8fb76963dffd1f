//! The user's directory tree: confined reading, scanning, applying of plans and git branches.
//!
//! This is the only crate that touches the user's files. Every access starts from a handle on the root and descends by
//! handles. So "inside" is a fact about the opened file and not about the spelling of a path: `..`, symlinks to the
//! outside and directories that are swapped meanwhile cannot lead out. There are two backends with the same behaviour:
//! the kernel's `openat2` where available, and a walk name by name. The tests run over both.
//!
//! Every opened file comes with its resolved path ([`Opened::resolved`]), so that a grant can be checked against a
//! symlink's target and not only against the symlink.
//!
//! # Writing
//!
//! There is one way to change the tree. [`Workspace::prepare`] takes a [`Plan`](sayso_review::Plan), which only a
//! verdict produces. The caller makes its [record](Prepared::record) durable, and [`Prepared::apply`] carries it out.
//!
//! New contents are written beside their targets and synced. Then names are exchanged, and the displaced files are
//! compared, byte for byte, with the plan's base. A check before the write could be outrun; a check of the displaced
//! file cannot. On any mismatch the whole plan is rolled back.
//!
//! [`Workspace::recover`] does the same after a crash, from the record and the tree alone. It removes only content that
//! is on record. If an exchange displaced another program's write in that moment, recovery puts it back or, if the name
//! is taken, saves it beside and reports it. The cost is one `fsync` per file and one per directory.
//!
//! A write always creates a new file in the place of the old one. So no reader sees half a file, and no hard link is
//! written through.
//!
//! Switching a branch is git's work and not a plan's: [`git`] runs the `git` program, which keeps uncommitted work.
//!
//! # Limits
//!
//! - [`Swap::Replace`], for file systems that cannot exchange names, has a race: a file that another program creates
//!   between two system calls is replaced unseen. Without hard links the name is also free for an instant.
//! - A new file keeps mode, owner, group, extended attributes and access list as far as the system permits, and
//!   [`Applied::lost`] lists the rest. It cannot keep other hard links, the birth time and open handles: a program with
//!   the old file open continues with that. Undoing a deletion restores bytes and mode only.
//! - Modes are part of what is approved. If a file system does not keep them, or a set-user bit would mean another
//!   user, nothing is written.
//! - If a directory is moved out of the workspace while files in it are written, it contains temporary files for that
//!   moment. They are gone, and nothing else has changed, when the error is returned.
//! - An empty directory that another program creates between the record and the plan counts as created by the plan in
//!   an undo or a recovery.
//! - A plan holds each directory that it writes to open, so the limit on open files bounds their number.
//! - A symlink with an absolute target is refused, even if it leads back inside.
//! - Reading cannot detect a hard link to a file outside.
//! - Names that are not UTF-8 cannot be expressed. Listings omit and count them.

mod apply;
mod confine;
pub mod git;
mod ignores;
mod listing;
mod observe;
mod outside;
mod read;
mod scan;
mod walk;

pub use apply::{Applied, ApplyError, Prepared, RecoverError, Recovery, Swap};
pub use confine::{Backend, OpenError, OpenWorkspaceError, Opened, Workspace};
pub use listing::{Entry, EntryKind, Listing};
pub use outside::{follow_outside, read_outside};
pub use read::{ReadError, ReadLimit, ReadPart};
pub use sayso_review::{WsPath, WsPathError};
pub use scan::{
    ChangeKind, Contents, Moment, NamedDepth, NamedPaths, NotCaptured, Reason, Scan, ScanCost, ScanError, ScanIndex,
    ScanLimits, Signature, TreeChanges, Trust, UncapturedChange,
};
pub use walk::{Walk, WalkLimit};
