//! Scans of the whole tree: what is there, and what has changed since the last look.
//!
//! A file whose `stat` is what it was is not opened, so that a scan of a tree where nothing happened costs one `stat` a file. What
//! is new goes out through [`Contents`], in batches; what is known goes on in [`Known`].
//!
//! # What is left out
//!
//! `.git`, what the `.gitignore` files inside the workspace and `.git/info/exclude` name, and the protected state folder. Of what
//! is ignored, a small set of names that a person would miss is captured all the same (`.env` and the like), though no ignored
//! directory is searched for them. A file that becomes ignored is captured once more, so that whoever adds a line to
//! `.gitignore` can neither hide a change by it nor make files look deleted. What was ignored and no longer is does not count as
//! new. What a command names ([`Named`]) is captured even if it is ignored, before the command and after it.
//!
//! # Limits
//!
//! - A scan takes time, and the tree may change meanwhile. Each file is as it was in some moment of the scan; a file that is
//!   renamed in that moment may be found under both names or under none.
//! - Modes and owners of directories, owners of files and extended attributes are not recorded.
//! - A program that maps a file into memory can write to it without a change of its times, until the system writes the pages
//!   back. So can one on a network file system whose server's clock goes otherwise, within one tick of that. git has the same
//!   limits.
//! - Files that git tracks though a pattern names them, and patterns that lie outside the workspace (`core.excludesFile`), are
//!   not known.

mod batch;
mod difference;
mod directory;
mod encoding;
mod known;
mod named;
mod not_captured;
mod personal;
mod scanner;
mod signature;

use std::error::Error;

use rustix::fs::FileType;
use rustix::io::Errno;
use sayso_review::{ContentHash, ErrorKind, WsPath};
use thiserror::Error;

use crate::confine::{OpenError, Workspace};
use scanner::Scanner;

pub use difference::{Happened, TreeChanges, UncapturedChange};
pub use known::Known;
pub use named::{Below, Named};
pub use not_captured::{NotCaptured, Reason};
pub use signature::{Moment, Signature};

/// How much a scan may take on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimits {
    /// A file with more bytes is not read.
    pub largest_file: u64,
    /// After so many files and links, or so many directories, the scan ends.
    pub most_files: usize,
    /// So many bytes of new contents are kept; no file is read that would exceed it.
    pub most_bytes: u64,
    /// So many bytes of them are kept of ignored files, which are captured only where they are [`Named`].
    pub most_ignored_bytes: u64,
}

/// Whether contents that were kept before are still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// They surely are.
    Kept,
    /// Some may have been released: each is asked for, and read again if it is gone.
    Ask,
}

/// Where contents go.
pub trait Contents {
    /// Why one could not be kept.
    type Error: Error + 'static;

    /// Whether a content is there.
    fn has(&mut self, hash: ContentHash) -> Result<bool, Self::Error>;

    /// Keeps contents that are not there: some megabytes at a time, or a single larger one.
    fn keep(&mut self, contents: &[(ContentHash, &[u8])]) -> Result<(), Self::Error>;
}

/// What a scan found.
#[derive(Clone, Debug)]
pub struct Scan {
    /// What is known now.
    pub known: Known,
    /// What is there and was not captured, in the order that it was met. Files that git ignores are not named.
    pub not_captured: Vec<NotCaptured>,
    /// What it cost.
    pub cost: ScanCost,
}

/// What a scan had to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCost {
    /// Files and links that were found.
    pub found: usize,
    /// Files that were opened and read.
    pub read: usize,
    /// Contents that were new.
    pub kept: usize,
    /// Their bytes.
    pub kept_bytes: u64,
}

/// Why a tree could not be scanned.
#[derive(Debug, Error)]
pub enum ScanError<E: Error + 'static> {
    /// The workspace itself cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The workspace itself cannot be listed.
    #[error("the workspace cannot be listed: {0}")]
    List(Errno),
    /// A content could not be kept.
    #[error("contents of files could not be kept: {0}")]
    Contents(#[source] E),
}

impl<E: Error + 'static> ScanError<E> {
    /// The kind that programs see; what went wrong with [`Contents`] knows better itself.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Open(_) | Self::List(_) => ErrorKind::ToolFailed,
            Self::Contents(_) => ErrorKind::Unavailable,
        }
    }

    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open(_) | Self::List(_) => Some("look whether the directory is still there and may be read"),
            Self::Contents(_) => None,
        }
    }
}

impl Workspace {
    /// What `stat` says of a file, at the price of that and no more; `None` if there is none.
    pub fn signature(&self, path: &WsPath) -> Option<Signature> {
        Some(Signature::of(&self.stat_path(path)?))
    }

    /// How many bytes the files at or below a path hold; `None` if there are more than `most` of them.
    pub fn bytes_below(&self, path: &WsPath, most: usize) -> Option<u64> {
        let (mut bytes, mut count) = (0_u64, 0);
        let mut waiting = vec![path.clone()];
        while let Some(path) = waiting.pop() {
            count += 1;
            if count > most {
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

    /// Looks at every file of the tree and reads those that may have changed since `known`.
    pub fn scan<C: Contents>(
        &self,
        known: &Known,
        trust: Trust,
        limits: ScanLimits,
        contents: &mut C,
    ) -> Result<Scan, ScanError<C::Error>> {
        self.scan_begun_at(Moment::now(), known, trust, limits, contents)
    }

    /// The same, and captures what is named even if git ignores it.
    pub fn scan_with<C: Contents>(
        &self,
        named: &Named,
        known: &Known,
        trust: Trust,
        limits: ScanLimits,
        contents: &mut C,
    ) -> Result<Scan, ScanError<C::Error>> {
        let root = self.open_path(&WsPath::root())?;
        let protected = self.protected.iter().map(WsPath::as_str).collect();
        Scanner::new(known, trust, limits, Moment::now(), protected, contents).naming(named).scan(&root.handle)
    }

    /// The same, as if it had begun at another moment: a file that was written to later is read again by the next scan. A moment
    /// that is yet to come makes changes go unseen.
    pub fn scan_begun_at<C: Contents>(
        &self,
        began: Moment,
        known: &Known,
        trust: Trust,
        limits: ScanLimits,
        contents: &mut C,
    ) -> Result<Scan, ScanError<C::Error>> {
        let root = self.open_path(&WsPath::root())?;
        let protected = self.protected.iter().map(WsPath::as_str).collect();
        Scanner::new(known, trust, limits, began, protected, contents).scan(&root.handle)
    }
}
