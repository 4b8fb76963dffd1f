//! Names in a directory, in the order of their paths.

use std::cmp::Ordering;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::batch::SAFE;

/// Buffer size of one system call.
const BUFFER_BYTES: usize = 32 << 10;

/// Names of all open directories, the innermost last.
pub(super) struct DirectoryNames {
    text: String,
    items: Vec<Item>,
    buffer: Vec<MaybeUninit<u8>>,
}

#[derive(Clone, Copy)]
pub(super) struct Item {
    start: usize,
    end: usize,
    pub(super) kind: ItemKind,
}

/// Kind of an entry when the directory was listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Directory,
    Other,
}

/// Listing of one directory.
pub(super) struct Listed {
    /// Range of items in [`DirectoryNames`].
    pub(super) from: usize,
    pub(super) to: usize,
    /// Start of the text of its names.
    text: usize,
    /// Names that are not UTF-8, for display.
    pub(super) unnameable: Vec<String>,
    pub(super) ended: Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    AtTheEnd,
    /// The directory has more names than the limit.
    TooMany,
}

impl DirectoryNames {
    pub(super) fn new() -> Self {
        Self { text: String::new(), items: Vec::new(), buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES] }
    }

    /// Lists a directory. The names stay until [`leave`](Self::leave).
    pub(super) fn list(&mut self, directory: BorrowedFd<'_>, max_names: usize) -> Result<Listed, Errno> {
        let (from, text) = (self.items.len(), self.text.len());
        let mut listed = Listed { from, to: from, text, unnameable: Vec::new(), ended: Ended::AtTheEnd };
        let mut entries = RawDir::new(directory, &mut self.buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // The directory was removed while it was open.
                Err(Errno::NOENT) => break,
                Err(errno) => {
                    self.leave(&listed);
                    return Err(errno);
                }
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if self.items.len() - from + listed.unnameable.len() == max_names {
                listed.ended = Ended::TooMany;
                break;
            }
            let Ok(shown) = name.to_str() else {
                listed.unnameable.push(name.to_string_lossy().into_owned());
                continue;
            };
            let kind = match entry.file_type() {
                FileType::Unknown => rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                kind => kind,
            };
            let kind = if kind == FileType::Directory { ItemKind::Directory } else { ItemKind::Other };
            let start = self.text.len();
            self.text.push_str(shown);
            self.items.push(Item { start, end: self.text.len(), kind });
        }
        listed.to = self.items.len();
        let Self { text, items, .. } = self;
        if let Some(items) = items.get_mut(from..) {
            items.sort_unstable_by(|one, two| order(text, one, two));
        }
        listed.unnameable.sort();
        Ok(listed)
    }

    /// Drops the names of a directory and of all below it.
    pub(super) fn leave(&mut self, listed: &Listed) {
        self.items.truncate(listed.from);
        self.text.truncate(listed.text);
    }

    pub(super) fn item(&self, index: usize) -> Option<(&str, ItemKind)> {
        let item = self.items.get(index)?;
        Some((self.text.get(item.start..item.end)?, item.kind))
    }

    /// `true` if a directory has an entry of this name and kind.
    pub(super) fn holds(&self, listed: &Listed, name: &str, kind: ItemKind) -> bool {
        let sought = key(name, kind);
        let items = self.items.get(listed.from..listed.to).unwrap_or_default();
        items.binary_search_by(|item| key(self.name(item), item.kind).cmp(sought.clone())).is_ok()
    }

    fn name(&self, item: &Item) -> &str {
        self.text.get(item.start..item.end).unwrap_or_default()
    }
}

/// Compares names; a directory's name has a trailing slash, so that the order is that of full paths.
fn order(text: &str, one: &Item, two: &Item) -> Ordering {
    let name = |item: &Item| text.as_bytes().get(item.start..item.end).unwrap_or_default();
    let (short, long) = (name(one), name(two));
    let shared = short.len().min(long.len());
    short.get(..shared).cmp(&long.get(..shared)).then_with(|| {
        // The next byte decides. Most names differ in the shared length already.
        let next = |name: &[u8], item: &Item| match name.get(shared) {
            Some(byte) => Some(*byte),
            None if item.kind == ItemKind::Directory => Some(b'/'),
            None => None,
        };
        next(short, one).cmp(&next(long, two))
    })
}

fn key(name: &str, kind: ItemKind) -> impl Iterator<Item = u8> + Clone + '_ {
    name.bytes().chain((kind == ItemKind::Directory).then_some(b'/'))
}

/// Opens a directory by its name in another one. Does not follow links.
pub(super) fn open_directory(above: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(above, name, SAFE | OFlags::DIRECTORY, Mode::empty())
}

/// Opens nested directories by their names.
pub(super) fn open_directories(above: BorrowedFd<'_>, names: &[&str]) -> Result<Option<OwnedFd>, Errno> {
    let mut handle: Option<OwnedFd> = None;
    for name in names {
        handle = Some(open_directory(handle.as_ref().map_or(above, OwnedFd::as_fd), name)?);
    }
    Ok(handle)
}
