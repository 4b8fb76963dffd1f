//! Directory listings.

use rustix::fs::{AtFlags, Dir, FileType};
use sayso_review::WsPath;

use crate::confine::{OpenError, Opened};

/// Kind of a directory entry. Symlinks are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
    Symlink,
    /// A device, a pipe or a socket.
    Special,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub path: WsPath,
    pub name: String,
    pub kind: EntryKind,
    /// Size of a regular file in bytes, else 0.
    pub size: u64,
}

/// Entries of a directory, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Entries with UTF-8 names.
    pub entries: Vec<Entry>,
    /// Number of omitted names that are not UTF-8.
    pub unnameable: usize,
}

impl Opened {
    /// Lists the directory.
    pub fn list(&self) -> Result<Listing, OpenError> {
        let failed = |error| match error {
            rustix::io::Errno::NOTDIR => OpenError::NotADirectory(self.resolved.clone()),
            error => OpenError::System { path: self.resolved.clone(), error },
        };
        let mut listing = Listing::default();
        for entry in Dir::read_from(&self.handle).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().to_str() else {
                listing.unnameable += 1;
                continue;
            };
            // `.` and `..` are not entries.
            let Some(path) = self.resolved.join(name) else { continue };
            // An entry that vanished meanwhile is skipped.
            let Ok(stat) = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => EntryKind::File,
                FileType::Directory => EntryKind::Directory,
                FileType::Symlink => EntryKind::Symlink,
                _ => EntryKind::Special,
            };
            let size = if kind == EntryKind::File { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 };
            listing.entries.push(Entry { path, name: name.to_owned(), kind, size });
        }
        listing.entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listing)
    }
}
