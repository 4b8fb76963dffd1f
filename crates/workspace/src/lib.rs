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
//! # Limits
//!
//! - A symlink with an absolute target is refused, even if it leads back inside.
//! - A hard link to a file outside cannot be told apart when reading.
//! - Names that are not UTF-8 cannot be expressed; listings leave them out and count them.

mod apply;
mod confine;
mod listing;
mod look;
mod read;
mod walk;

pub use apply::{Applied, ApplyError, Prepared, RecoverError, Recovery, Swap};
pub use confine::{Backend, OpenError, OpenWorkspaceError, Opened, Workspace};
pub use listing::{Entry, EntryKind, Listing};
pub use read::{ReadError, ReadLimit};
pub use sayso_review::{WsPath, WsPathError};
pub use walk::{Walk, WalkLimit};
