//! One entry of an open directory: what it holds, and how one thing there takes the place of another.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use sayso_review::{Content, FileMode, FileState, Fingerprint};

use super::attributes::{self, Attributes};

/// How a new thing takes the place of an old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The kernel exchanges the two names in one step, so that what was replaced can be looked at and put back.
    Exchange,
    /// For file systems that cannot: the old file gets a second name, the new one replaces the first. Between the two, a file
    /// that somebody else puts there in the same instant is replaced unseen; it is still in the directory's history of that
    /// program, but not in ours.
    Replace,
}

const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// An entry by its name in an open directory.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) directory: BorrowedFd<'a>,
    pub(super) name: &'a str,
}

impl<'a> Entry<'a> {
    /// Another entry of the same directory.
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

    fn open_file(self) -> Result<Option<(OwnedFd, Stat)>, Errno> {
        let handle = match rustix::fs::openat(self.directory, self.name, READ, Mode::empty()) {
            Ok(handle) => handle,
            // A symbolic link, or nothing (any more).
            Err(Errno::LOOP | Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        let stat = rustix::fs::fstat(&handle)?;
        Ok((FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some((handle, stat)))
    }

    /// Whether it holds exactly this.
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

    /// Whether it holds exactly what has this fingerprint.
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

    /// The bytes of a regular file of this mode and size.
    fn read_if(self, mode: FileMode, size: u64) -> Result<Option<Vec<u8>>, Errno> {
        let Some((handle, stat)) = self.open_file()? else { return Ok(None) };
        if FileMode::new(stat.st_mode) != mode || u64::try_from(stat.st_size) != Ok(size) {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(size as usize + 1);
        File::from(handle).take(size + 1).read_to_end(&mut bytes).map_err(|error| errno(&error))?;
        Ok(Some(bytes))
    }

    /// Puts a state under a name that nobody knows yet, durable. What the file at `like` has besides its content comes along as
    /// far as possible; what does not is returned.
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
                let old = like.open_file()?;
                let lost = match &old {
                    Some((old, stat)) => attributes::keep(&Attributes::of(old, stat)?, &file),
                    None => Vec::new(),
                };
                // After the owner, since changing that drops some bits.
                rustix::fs::fchmod(&file, Mode::from_raw_mode(mode.bits()))?;
                rustix::fs::fsync(&file)?;
                Ok(lost)
            }
        }
    }

    /// Takes a name only if it is free.
    pub(super) fn move_to_free(self, name: Self) -> Result<(), Errno> {
        match self.rename(name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                // A second link fails if the name is taken, which is all that is needed.
                rustix::fs::linkat(self.directory, self.name, name.directory, name.name, AtFlags::empty())?;
                rustix::fs::unlinkat(self.directory, self.name, AtFlags::empty())
            }
            result => result,
        }
    }

    /// Changes places with another entry, so that each has what the other had.
    pub(super) fn exchange(self, other: Self, swap: Swap) -> Result<(), Errno> {
        if swap == Swap::Exchange {
            match self.rename(other, RenameFlags::EXCHANGE) {
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                result => return result,
            }
        }
        let aside = format!("{}-old", self.name);
        let aside = self.beside(&aside);
        rustix::fs::linkat(other.directory, other.name, aside.directory, aside.name, AtFlags::empty())?;
        self.rename(other, RenameFlags::empty())?;
        aside.rename(self, RenameFlags::empty())
    }

    fn rename(self, to: Self, flags: RenameFlags) -> Result<(), Errno> {
        if flags.is_empty() {
            return rustix::fs::renameat(self.directory, self.name, to.directory, to.name);
        }
        rustix::fs::renameat_with(self.directory, self.name, to.directory, to.name, flags)
    }

    /// Removes it, if it is there.
    pub(super) fn remove(self) -> Result<(), Errno> {
        match rustix::fs::unlinkat(self.directory, self.name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            result => result,
        }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
