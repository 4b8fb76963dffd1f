//! One entry of an open directory: comparison, staging and exchange.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use sayso_review::{Content, FileMode, FileState, Fingerprint};

use super::attributes::{self, Attributes, OWNER};

/// Way to replace a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The kernel exchanges two names in one step, so that the replaced file can be compared and put back.
    Exchange,
    /// For file systems that cannot exchange: the old file gets a second name, and the new one replaces the first. A
    /// file that another program creates in between is replaced unseen.
    Replace,
}

const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// Marks a staged file that did not get its permissions.
pub(super) const PERMISSIONS: &str = "permissions";

/// Name in an open directory.
#[derive(Clone, Copy)]
pub(super) struct DirEntry<'a> {
    pub(super) directory: BorrowedFd<'a>,
    pub(super) name: &'a str,
    pub(super) swap: Swap,
}

/// Returns the name for the displaced file in the fallback of an exchange.
pub(super) fn aside(name: &str) -> String {
    format!("{name}-old")
}

/// `true` if the file system does not support an operation, in contrast to forbidding it.
fn is_unsupported(errno: Errno) -> bool {
    errno == Errno::INVAL || errno == Errno::NOSYS || errno == Errno::OPNOTSUPP || errno == Errno::NOTSUP
}

/// `true` if an entry cannot get a second name: no support for hard links, a directory, or too many links.
fn is_unlinkable(errno: Errno) -> bool {
    is_unsupported(errno) || matches!(errno, Errno::PERM | Errno::MLINK | Errno::ISDIR)
}

impl<'a> DirEntry<'a> {
    /// Returns another entry of the same directory.
    pub(super) fn beside(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    pub(super) fn stat(self) -> Result<Option<Stat>, Errno> {
        match rustix::fs::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Opens a regular file; `None` for other types, which are not opened because opening a pipe or a device has side
    /// effects.
    fn open_file(self) -> Result<Option<(OwnedFd, Stat)>, Errno> {
        let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !self.stat()?.is_some_and(|stat| is_file(&stat)) {
            return Ok(None);
        }
        let handle = match rustix::fs::openat(self.directory, self.name, READ, Mode::empty()) {
            Ok(handle) => handle,
            // Replaced or removed meanwhile.
            Err(Errno::LOOP | Errno::NOENT | Errno::NXIO) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        let stat = rustix::fs::fstat(&handle)?;
        Ok(is_file(&stat).then_some((handle, stat)))
    }

    /// `true` if the entry has exactly this state.
    pub(super) fn holds(self, state: &FileState) -> Result<bool, Errno> {
        match state {
            FileState::Absent => Ok(self.stat()?.is_none()),
            FileState::Link { target } => self.is_link_to(target),
            FileState::File { content, mode } => {
                let found = self.read_if(*mode, content.bytes().len() as u64)?;
                Ok(found.is_some_and(|bytes| bytes == content.bytes()))
            }
        }
    }

    /// `true` if the entry has the state with this fingerprint.
    pub(super) fn has(self, print: &Fingerprint) -> Result<bool, Errno> {
        match print {
            Fingerprint::Absent => Ok(self.stat()?.is_none()),
            Fingerprint::Link { target } => self.is_link_to(target),
            Fingerprint::File { hash, size, mode } => {
                let found = self.read_if(*mode, *size)?;
                Ok(found.is_some_and(|bytes| Content::new(bytes).hash() == *hash))
            }
        }
    }

    fn is_link_to(self, target: &str) -> Result<bool, Errno> {
        match rustix::fs::readlinkat(self.directory, self.name, Vec::new()) {
            Ok(found) => Ok(found.as_bytes() == target.as_bytes()),
            Err(Errno::INVAL | Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Reads a regular file if it has this mode and size.
    fn read_if(self, mode: FileMode, size: u64) -> Result<Option<Vec<u8>>, Errno> {
        let Some((handle, stat)) = self.open_file()? else { return Ok(None) };
        if FileMode::new(stat.st_mode) != mode || u64::try_from(stat.st_size) != Ok(size) {
            return Ok(None);
        }
        read(handle, size).map(Some)
    }

    /// Reads a regular file of at most `max_bytes`, with its mode.
    pub(super) fn read_within(self, max_bytes: u64) -> Result<Option<(Vec<u8>, FileMode)>, Errno> {
        let Some((handle, stat)) = self.open_file()? else { return Ok(None) };
        if u64::try_from(stat.st_size).map_or(true, |size| size > max_bytes) {
            return Ok(None);
        }
        let bytes = read(handle, max_bytes)?;
        Ok((bytes.len() as u64 <= max_bytes).then_some((bytes, FileMode::new(stat.st_mode))))
    }

    /// Writes a state under an unused name and syncs it. Copies the attributes of the file at `like`, and returns the
    /// ones that could not be copied.
    pub(super) fn stage(self, state: &FileState, like: Self) -> Result<Vec<&'static str>, Errno> {
        match state {
            FileState::Absent => Ok(Vec::new()),
            FileState::Link { target } => {
                rustix::fs::symlinkat(target.as_str(), self.directory, self.name)?;
                Ok(Vec::new())
            }
            FileState::File { content, mode } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let handle = rustix::fs::openat(self.directory, self.name, flags, Mode::RUSR | Mode::WUSR)?;
                let mut file = File::from(handle);
                file.write_all(content.bytes()).map_err(|error| errno(&error))?;
                let mut lost = match &like.open_file()? {
                    Some((old, stat)) => attributes::keep(&Attributes::of(old, stat)?, &file)?,
                    None => Vec::new(),
                };
                // After the owner, because changing the owner clears some bits.
                rustix::fs::fchmod(&file, Mode::from_raw_mode(mode.bits()))?;
                // The system may silently drop bits: of a foreign group, or all of them. A set-user file must not run
                // as another user.
                let foreign = mode.bits() & 0o6000 != 0 && lost.iter().any(|lost| lost.starts_with(OWNER));
                if foreign || FileMode::new(rustix::fs::fstat(&file)?.st_mode) != *mode {
                    lost.push(PERMISSIONS);
                }
                rustix::fs::fsync(&file)?;
                Ok(lost)
            }
        }
    }

    /// Renames the entry if the new name is free.
    pub(super) fn move_to_free(self, name: Self) -> Result<(), Errno> {
        if self.swap == Swap::Exchange {
            match self.rename(name, RenameFlags::NOREPLACE) {
                Err(errno) if is_unsupported(errno) => {}
                result => return result,
            }
        }
        // Creating a hard link fails if the name exists, which is the needed check.
        match rustix::fs::linkat(self.directory, self.name, name.directory, name.name, AtFlags::empty()) {
            Ok(()) => rustix::fs::unlinkat(self.directory, self.name, AtFlags::empty()),
            Err(errno) if is_unlinkable(errno) => match name.stat()? {
                None => self.rename(name, RenameFlags::empty()),
                Some(_) => Err(Errno::EXIST),
            },
            Err(errno) => Err(errno),
        }
    }

    /// Exchanges two entries. On error both stay as they were.
    pub(super) fn exchange(self, other: Self) -> Result<(), Errno> {
        if self.swap == Swap::Exchange {
            match self.rename(other, RenameFlags::EXCHANGE) {
                Err(errno) if is_unsupported(errno) => {}
                result => return result,
            }
        }
        let aside = aside(self.name);
        let aside = self.beside(&aside);
        let linked =
            match rustix::fs::linkat(other.directory, other.name, aside.directory, aside.name, AtFlags::empty()) {
                Ok(()) => true,
                Err(errno) if is_unlinkable(errno) => {
                    // The name is free for an instant, which is unavoidable here.
                    other.move_to_free(aside)?;
                    false
                }
                Err(errno) => return Err(errno),
            };
        if let Err(errno) = self.rename(other, RenameFlags::empty()) {
            if linked {
                aside.remove()?;
            } else {
                aside.move_to_free(other)?;
            }
            return Err(errno);
        }
        if let Err(errno) = aside.rename(self, RenameFlags::empty()) {
            aside.rename(other, RenameFlags::empty())?;
            return Err(errno);
        }
        Ok(())
    }

    fn rename(self, to: Self, flags: RenameFlags) -> Result<(), Errno> {
        if flags.is_empty() {
            return rustix::fs::renameat(self.directory, self.name, to.directory, to.name);
        }
        rustix::fs::renameat_with(self.directory, self.name, to.directory, to.name, flags)
    }

    /// Removes the entry, if it exists.
    pub(super) fn remove(self) -> Result<(), Errno> {
        match rustix::fs::unlinkat(self.directory, self.name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            result => result,
        }
    }

    /// Renames a file with unrecorded content to a visible name beside its target. Returns the name.
    pub(super) fn save(self, target: Self, token: &str) -> Result<String, Errno> {
        // File names have at most 255 bytes.
        let kept = target.name.floor_char_boundary(200);
        let mut number = 1;
        loop {
            let more = if number == 1 { String::new() } else { format!("-{number}") };
            let name = format!("{}.sayso-saved-{token}{more}", &target.name[..kept]);
            match self.move_to_free(self.beside(&name)) {
                Err(Errno::EXIST) if number < 1000 => number += 1,
                result => return result.map(|()| name),
            }
        }
    }
}

/// Reads a file, and one byte more than expected if it has more.
fn read(handle: OwnedFd, expected: u64) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::with_capacity(expected.min(1 << 30) as usize + 1);
    File::from(handle).take(expected.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| errno(&error))?;
    Ok(bytes)
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
