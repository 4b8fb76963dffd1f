//! The directory tree under the gate.
//!
//! The only crate that touches the user's files. Every access starts from a handle on the root and goes down by handles, so
//! that "inside" is a fact about what was opened and not about how a path was spelled: `..`, symlinks to the outside and
//! directories swapped while we look cannot lead out. Two backends do the same: the kernel's `openat2` where there is one, and
//! a walk name by name where there is not; the tests run over both.
//!
//! What a path was resolved to comes with every opened file ([`Opened::resolved`]), so that a grant can be checked for where a
//! symlink leads and not only for the symlink.
//!
//! # Writing
//!
//! There is one way to change the tree: [`Workspace::prepare`] takes a [`Plan`](sayso_review::Plan), which only a verdict makes,
//! its [record](Prepared::record) is written down by the caller, and [`Prepared::apply`] carries it out. New contents are
//! written beside their targets and made durable, then names are exchanged, and what an exchange brings out is compared, byte
//! for byte, with what was shown: a check before the write could be outrun, a check of what was displaced cannot. If anything
//! is wrong, everything goes back. [`Workspace::recover`] does the same after a crash, from the record and the tree alone. It
//! removes only what is on record; somebody's work that an exchange displaced right then goes back to its name or, if that is
//! taken, is saved beside it and reported. The cost is one `fsync` per file and one per directory.
//!
//! A write always makes a new file in the place of the old one, so that no reader sees half of it and no hard link is written
//! through.
//!
//! Switching a branch is git's own work and not a plan's: [`git`] has it done by the `git` program, which keeps uncommitted work.
//!
//! # Limits
//!
//! - [`Swap::Replace`], which file systems get that cannot exchange names, has a window: a file that somebody puts in place
//!   between two system calls is replaced unseen. Where there are no hard links either, the name is free for an instant.
//! - A new file in the place of the old one keeps mode, owner, group, extended attributes and access list as far as the system
//!   lets us, and [`Applied::lost`] names the rest. It cannot keep other hard links, birth time and open handles: who holds the
//!   old file open goes on reading and writing that. A file that was deleted comes back by
//!   undo with its bytes and mode only.
//! - Modes are part of what is approved. Where a file system does not keep them, or a set-user bit would come to mean another
//!   user, nothing is written.
//! - A directory that is moved out of the workspace in the very moment it is written to gets temporary files in it for that
//!   moment; no system can forbid that. They are gone, and nothing else has changed, when the error is returned.
//! - A directory that somebody makes, and leaves empty, between the record and the plan counts as made by the plan when that is
//!   undone or recovered from.
//! - A plan holds each directory that it writes to open, so that the limit on open files bounds how many that can be.
//! - A symlink with an absolute target is refused, even if it leads back inside.
//! - A hard link to a file outside cannot be told apart when reading.
//! - Names that are not UTF-8 cannot be expressed; listings leave them out and count them.

mod apply;
mod confine;
pub mod git;
mod ignores;
mod listing;
mod look;
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
    Below, Contents, Happened, Known, Moment, Named, NotCaptured, Reason, Scan, ScanCost, ScanError, ScanLimits,
    Signature, TreeChanges, Trust, UncapturedChange,
};
pub use walk::{Walk, WalkLimit};
