//! The names in a directory, in the order in which their paths come.

use std::cmp::Ordering;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::batch::SAFE;

/// What the kernel fills at a time.
const BUFFER_BYTES: usize = 32 << 10;

/// The names of all directories that are open, the innermost last.
pub(super) struct Names {
    text: String,
    items: Vec<Item>,
    buffer: Vec<MaybeUninit<u8>>,
}

/// A name in a directory.
#[derive(Clone, Copy)]
pub(super) struct Item {
    start: usize,
    end: usize,
    pub(super) kind: ItemKind,
}

/// What a name is of, when the directory was listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Directory,
    Other,
}

/// What is in a directory.
pub(super) struct Listed {
    /// Its names: a range of [`Names`].
    pub(super) from: usize,
    pub(super) to: usize,
    /// Where the text of its names begins.
    text: usize,
    /// Names that are not UTF-8, as they can be shown.
    pub(super) unnameable: Vec<String>,
    pub(super) ended: Ended,
}

/// Whether all names were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    AtTheEnd,
    /// There are more than may be.
    TooMany,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { text: String::new(), items: Vec::new(), buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES] }
    }

    /// Lists a directory. The names stay until [`Names::leave`].
    pub(super) fn list(&mut self, directory: BorrowedFd<'_>, most: usize) -> Result<Listed, Errno> {
        let (from, text) = (self.items.len(), self.text.len());
        let mut listed = Listed { from, to: from, text, unnameable: Vec::new(), ended: Ended::AtTheEnd };
        let mut entries = RawDir::new(directory, &mut self.buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // Removed while it was open.
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
            if self.items.len() - from + listed.unnameable.len() == most {
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

    /// Forgets the names of a directory and of all below it.
    pub(super) fn leave(&mut self, listed: &Listed) {
        self.items.truncate(listed.from);
        self.text.truncate(listed.text);
    }

    pub(super) fn item(&self, index: usize) -> Option<(&str, ItemKind)> {
        let item = self.items.get(index)?;
        Some((self.text.get(item.start..item.end)?, item.kind))
    }

    /// Whether a directory has an entry of this name.
    pub(super) fn holds(&self, listed: &Listed, name: &str, kind: ItemKind) -> bool {
        let sought = key(name, kind);
        let items = self.items.get(listed.from..listed.to).unwrap_or_default();
        items.binary_search_by(|item| key(self.name(item), item.kind).cmp(sought.clone())).is_ok()
    }

    fn name(&self, item: &Item) -> &str {
        self.text.get(item.start..item.end).unwrap_or_default()
    }
}

/// By their names, a directory's with a slash: so that what is in it comes where its path belongs.
fn order(text: &str, one: &Item, two: &Item) -> Ordering {
    let name = |item: &Item| text.as_bytes().get(item.start..item.end).unwrap_or_default();
    let (short, long) = (name(one), name(two));
    let shared = short.len().min(long.len());
    short.get(..shared).cmp(&long.get(..shared)).then_with(|| {
        // What follows the shared part decides: for most names that is nothing, and they were told apart above.
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

/// Opens a directory by its name in another one. A link is not followed.
pub(super) fn open_directory(above: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(above, name, SAFE | OFlags::DIRECTORY, Mode::empty())
}

/// Goes down some directories.
pub(super) fn open_directories(above: BorrowedFd<'_>, names: &[&str]) -> Result<Option<OwnedFd>, Errno> {
    let mut handle: Option<OwnedFd> = None;
    for name in names {
        handle = Some(open_directory(handle.as_ref().map_or(above, OwnedFd::as_fd), name)?);
    }
    Ok(handle)
}
