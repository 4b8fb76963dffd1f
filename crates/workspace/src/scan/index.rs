//! [`ScanIndex`]: the files that a scan found.

use sayso_review::{ContentHash, Fingerprint, WsPath};

use super::signature::Signature;

/// Result of a scan and base of the next one: the `stat` and the content of every file.
///
/// The default is empty. The index also records the paths that the scan did not cover (ignored, unreadable, or after a
/// limit), so that an unseen file never counts as missing.
#[derive(Clone, Debug, Default)]
pub struct ScanIndex {
    /// All paths and link targets in one string, which saves an allocation per file.
    pub(super) text: String,
    /// Sorted by path, byte by byte.
    pub(super) entries: Vec<IndexEntry>,
    /// Scanned directories, sorted.
    pub(super) directories: Vec<Span>,
    /// Paths that were left out, sorted. A directory has a trailing slash, and stands for all paths below it.
    pub(super) unseen: Vec<Span>,
    /// First path after the end of the scan. A directory has a trailing slash.
    pub(super) stopped: Option<Span>,
}

/// Range of [`ScanIndex::text`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct IndexEntry {
    pub(super) path: Span,
    pub(super) signature: Signature,
    pub(super) trust: StatTrust,
    pub(super) coverage: Coverage,
    pub(super) stored: Stored,
}

/// Meaning of an equal signature in the next scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatTrust {
    /// The file is unchanged.
    Sure,
    /// The file may have been written to again within the same clock tick.
    Racy,
}

/// Coverage of a file by the next scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    /// The file is unchanged.
    Tracked,
    /// The file is ignored. It was captured because the scan before covered it, or because a command names it.
    LastTime,
}

/// Captured content of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stored {
    Content(ContentHash),
    /// Target of a symbolic link.
    Link(Span),
    /// A regular file or a link that was not captured.
    Missing,
    /// A pipe, a socket or a device.
    Special,
}

impl ScanIndex {
    /// Returns the number of files and links.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the captured state of a path; `None` if it was not captured.
    pub fn at(&self, path: &WsPath) -> Option<Fingerprint> {
        let found = self.entries.binary_search_by(|entry| self.text(entry.path).cmp(path.as_str())).ok()?;
        self.fingerprint(self.entries.get(found)?)
    }

    /// Returns the state of a path, which may be absent; `None` if the scan did not cover or capture it.
    pub fn was(&self, path: &WsPath) -> Option<Fingerprint> {
        match self.entries.binary_search_by(|entry| self.text(entry.path).cmp(path.as_str())) {
            Ok(found) => self.fingerprint(self.entries.get(found)?),
            Err(_) if self.may_hide(path.as_str()) => None,
            Err(_) => Some(Fingerprint::Absent),
        }
    }

    /// Returns the contents of all files. They must be kept as long as the index is used.
    pub fn contents(&self) -> impl Iterator<Item = ContentHash> {
        self.entries.iter().filter_map(|entry| match entry.stored {
            Stored::Content(hash) => Some(hash),
            Stored::Link(_) | Stored::Missing | Stored::Special => None,
        })
    }

    pub(super) fn text(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    pub(super) fn write(&mut self, text: &str) -> Span {
        let start = self.text.len();
        self.text.push_str(text);
        Span { start, end: self.text.len() }
    }

    pub(super) fn fingerprint(&self, entry: &IndexEntry) -> Option<Fingerprint> {
        match entry.stored {
            Stored::Content(hash) => {
                let Signature { size, .. } = entry.signature;
                Some(Fingerprint::File { hash, size, mode: entry.signature.permissions() })
            }
            Stored::Link(target) => Some(Fingerprint::Link { target: self.text(target).to_owned() }),
            Stored::Missing | Stored::Special => None,
        }
    }

    /// `true` if a path may exist without being in the index. A directory's path has a trailing slash.
    pub(super) fn may_hide(&self, path: &str) -> bool {
        let listed = |path: &str| self.unseen.binary_search_by(|span| self.text(*span).cmp(path)).is_ok();
        let above = path.match_indices('/').filter_map(|(at, slash)| path.get(..at + slash.len()));
        self.stopped.is_some_and(|stop| path >= self.text(stop))
            || (!self.unseen.is_empty() && above.chain([path]).any(listed))
    }

    /// `true` if a directory was found and not read.
    pub(super) fn leaves_out(&self, directory: &str) -> bool {
        let directory = format!("{directory}/");
        self.unseen.binary_search_by(|span| self.text(*span).cmp(directory.as_str())).is_ok()
    }

    /// Sorts the lists by path. The walk visits `a-b/` before `a/`, but the path `a-b` sorts after `a`.
    pub(super) fn sort(&mut self) {
        let Self { text, directories, unseen, .. } = self;
        for list in [directories, unseen] {
            list.sort_unstable_by_key(|span| text.get(span.start..span.end));
        }
    }
}

/// Iterates over an index in step with a walk, which visits paths in the same order.
pub(super) struct Cursor<'k> {
    pub(super) known: &'k ScanIndex,
    next: usize,
}

impl<'k> Cursor<'k> {
    pub(super) fn new(known: &'k ScanIndex) -> Self {
        Self { known, next: 0 }
    }

    fn advance(&mut self, path: &str) -> Option<(&'k str, &'k IndexEntry)> {
        while let Some(entry) = self.known.entries.get(self.next) {
            let here = self.known.text(entry.path);
            if here >= path {
                return Some((here, entry));
            }
            self.next += 1;
        }
        None
    }

    /// Finds the entry of a path. Paths must be given in ascending order.
    pub(super) fn find(&mut self, path: &str) -> Option<&'k IndexEntry> {
        self.advance(path).filter(|(here, _)| *here == path).map(|(_, entry)| entry)
    }

    /// `true` if the index has this directory.
    pub(super) fn knew_directory(&self, path: &str) -> bool {
        self.known.directories.binary_search_by(|span| self.known.text(*span).cmp(path)).is_ok()
    }

    /// `true` if the index has tracked files below a directory, whose path has a trailing slash.
    pub(super) fn knows_below(&mut self, directory: &str) -> bool {
        self.advance(directory);
        let rest = self.known.entries.get(self.next..).unwrap_or_default();
        let mut below = rest.iter().take_while(|entry| self.known.text(entry.path).starts_with(directory));
        below.any(|entry| entry.coverage == Coverage::Tracked)
    }
}
