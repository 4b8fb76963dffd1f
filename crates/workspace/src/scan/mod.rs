//! Scans of the whole tree: its files, and changes since the previous scan.
//!
//! A file with an unchanged `stat` is not opened, so a scan without changes costs one `stat` per file. New contents go
//! to [`Contents`] in batches; the [`ScanIndex`] records all files.
//!
//! # Omitted files
//!
//! A scan omits `.git`, the files that `.gitignore` files inside the workspace and `.git/info/exclude` name, and
//! protected directories. A small set of precious ignored files (`.env` and the like) is captured all the same, unless
//! their directory is ignored. A file that becomes ignored is captured once more, so that a new line in `.gitignore`
//! can neither hide a change nor make files look deleted. A file that is no longer ignored does not count as new. Paths
//! that a command names ([`NamedPaths`]) are captured even if they are ignored, before and after the command.
//!
//! # Limits
//!
//! - The tree may change during a scan. Each file is captured as it was at some moment of the scan. A file that is
//!   renamed meanwhile may be found under both names or neither.
//! - Modes and owners of directories, owners of files and extended attributes are not recorded.
//! - A program that maps a file into memory can write to it without a change of its times until the system writes the
//!   pages back. On a network file system with a different clock, a write within one tick may go unnoticed. git has the
//!   same limits.
//! - Tracked files that match an ignore pattern count as ignored. Patterns outside the workspace (`core.excludesFile`)
//!   are not read.

mod batch;
mod difference;
mod directory;
mod encoding;
mod index;
mod named;
mod not_captured;
mod precious;
mod scanner;
mod signature;

use std::error::Error;

use rustix::fs::FileType;
use rustix::io::Errno;
use sayso_review::{ContentHash, ErrorKind, WsPath};
use thiserror::Error;

use crate::confine::{OpenError, Workspace};
use scanner::Scanner;

pub use difference::{ChangeKind, TreeChanges, UncapturedChange};
pub use index::ScanIndex;
pub use named::{NamedDepth, NamedPaths};
pub use not_captured::{NotCaptured, Reason};
pub use signature::{Moment, Signature};

/// Limits of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimits {
    /// Larger files are not read.
    pub max_file_bytes: u64,
    /// The scan ends after so many files and links, or so many directories.
    pub max_files: usize,
    /// Maximum size of all new contents. A file that would exceed it is not read.
    pub max_new_bytes: u64,
    /// Maximum size of new contents of ignored files, which are captured only if [`NamedPaths`] has them.
    pub max_ignored_bytes: u64,
}

/// Assumption about contents that earlier scans stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// All are still stored.
    Kept,
    /// Some may be deleted. Each is looked up, and its file is read again if it is gone.
    Ask,
}

/// Store for contents.
pub trait Contents {
    type Error: Error + 'static;

    /// `true` if a content is stored.
    fn has(&mut self, hash: ContentHash) -> Result<bool, Self::Error>;

    /// Stores new contents: a few megabytes at a time, or a single larger one.
    fn keep(&mut self, contents: &[(ContentHash, &[u8])]) -> Result<(), Self::Error>;
}

/// Result of a scan.
#[derive(Clone, Debug)]
pub struct Scan {
    pub index: ScanIndex,
    /// Files that were not captured, in the order of the walk. Ignored files are not listed.
    pub not_captured: Vec<NotCaptured>,
    pub cost: ScanCost,
}

/// Work that a scan did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCost {
    /// Number of files and links.
    pub found: usize,
    /// Number of files that were read.
    pub read: usize,
    /// Number of new contents.
    pub kept: usize,
    /// Size of the new contents, in bytes.
    pub kept_bytes: u64,
}

/// Reason why a scan failed.
#[derive(Debug, Error)]
pub enum ScanError<E: Error + 'static> {
    /// The root cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The root cannot be listed.
    #[error("cannot list the workspace: {0}")]
    List(Errno),
    /// A content could not be stored.
    #[error("cannot store file contents: {0}")]
    Contents(#[source] E),
}

impl<E: Error + 'static> ScanError<E> {
    /// Returns the kind. For [`Contents`] errors the store's own error is more precise.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Open(_) | Self::List(_) => ErrorKind::ToolFailed,
            Self::Contents(_) => ErrorKind::Unavailable,
        }
    }

    /// Returns advice for the user, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open(_) | Self::List(_) => Some("check that the directory exists and is readable"),
            Self::Contents(_) => None,
        }
    }
}

impl Workspace {
    /// Returns the signature of a file with one `stat` call; `None` if it does not exist.
    pub fn signature(&self, path: &WsPath) -> Option<Signature> {
        Some(Signature::of(&self.stat_path(path)?))
    }

    /// Adds up the sizes of the files at or below a path; `None` if there are more than `max_entries` entries.
    pub fn bytes_below(&self, path: &WsPath, max_entries: usize) -> Option<u64> {
        let (mut bytes, mut count) = (0_u64, 0);
        let mut waiting = vec![path.clone()];
        while let Some(path) = waiting.pop() {
            count += 1;
            if count > max_entries {
                return None;
            }
            let Some(signature) = self.signature(&path) else { continue };
            match signature.file_type() {
                FileType::RegularFile => bytes = bytes.saturating_add(signature.size),
                FileType::Directory => {
                    let listing = self.open_path(&path).and_then(|opened| opened.list());
                    waiting.extend(listing.into_iter().flat_map(|listing| listing.entries).map(|entry| entry.path));
                }
                _ => {}
            }
        }
        Some(bytes)
    }

    /// Scans the tree. Reads the files that may have changed since the index `known`.
    pub fn scan<C: Contents>(
        &self,
        known: &ScanIndex,
        trust: Trust,
        limits: ScanLimits,
        contents: &mut C,
    ) -> Result<Scan, ScanError<C::Error>> {
        self.scan_begun_at(Moment::now(), known, trust, limits, contents)
    }

    /// Scans the tree, and captures the paths in `named` even if git ignores them.
    pub fn scan_with<C: Contents>(
        &self,
        named: &NamedPaths,
        known: &ScanIndex,
        trust: Trust,
        limits: ScanLimits,
        contents: &mut C,
    ) -> Result<Scan, ScanError<C::Error>> {
        let root = self.open_path(&WsPath::root())?;
        let protected = self.protected.iter().map(WsPath::as_str).collect();
        Scanner::new(known, trust, limits, Moment::now(), protected, contents).naming(named).scan(&root.handle)
    }

    /// Scans the tree as if the scan had begun at another moment, for tests. The next scan reads files again that were
    /// written later. A moment in the future makes scans miss changes.
    pub fn scan_begun_at<C: Contents>(
        &self,
        began: Moment,
        known: &ScanIndex,
        trust: Trust,
        limits: ScanLimits,
        contents: &mut C,
    ) -> Result<Scan, ScanError<C::Error>> {
        let root = self.open_path(&WsPath::root())?;
        let protected = self.protected.iter().map(WsPath::as_str).collect();
        Scanner::new(known, trust, limits, began, protected, contents).scan(&root.handle)
    }
}
