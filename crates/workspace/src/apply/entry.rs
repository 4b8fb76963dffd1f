//! One entry of an open directory: what it holds, and how one thing there takes the place of another.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use sayso_review::{Content, FileMode, FileState, Fingerprint};

use super::attributes::{self, Attributes, OWNER};

/// How a new thing takes the place of an old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The kernel exchanges the two names in one step, so that what was replaced can be looked at and put back.
    Exchange,
    /// For file systems that cannot: the old file gets a second name, the new one replaces the first. A file that somebody else
    /// puts there between the two is replaced unseen.
    Replace,
}

const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// What a file has that was staged without its permissions.
pub(super) const PERMISSIONS: &str = "permissions";

/// An entry by its name in an open directory.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) directory: BorrowedFd<'a>,
    pub(super) name: &'a str,
    pub(super) swap: Swap,
}

/// The name that a fallback's exchange of an entry keeps the other thing under meanwhile.
pub(super) fn aside(name: &str) -> String {
    format!("{name}-old")
}

/// Whether the system says that it does not know how to do that here, rather than that it must not be done.
fn is_unsupported(errno: Errno) -> bool {
    errno == Errno::INVAL || errno == Errno::NOSYS || errno == Errno::OPNOTSUPP || errno == Errno::NOTSUP
}

/// Whether an entry cannot get a second name: no hard links here, none to a directory, or too many already.
fn is_unlinkable(errno: Errno) -> bool {
    is_unsupported(errno) || matches!(errno, Errno::PERM | Errno::MLINK | Errno::ISDIR)
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

    /// Opens a regular file. Anything else is not even opened, since that would do something to a pipe or a device.
    fn open_file(self) -> Result<Option<(OwnedFd, Stat)>, Errno> {
        let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !self.stat()?.is_some_and(|stat| is_file(&stat)) {
            return Ok(None);
        }
        let handle = match rustix::fs::openat(self.directory, self.name, READ, Mode::empty()) {
            Ok(handle) => handle,
            // A symbolic link or a socket since then, or nothing any more.
            Err(Errno::LOOP | Errno::NOENT | Errno::NXIO) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        let stat = rustix::fs::fstat(&handle)?;
        Ok(is_file(&stat).then_some((handle, stat)))
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
        read(handle, size).map(Some)
    }

    /// The bytes and the mode of a regular file that has no more bytes than these.
    pub(super) fn read_within(self, most: u64) -> Result<Option<(Vec<u8>, FileMode)>, Errno> {
        let Some((handle, stat)) = self.open_file()? else { return Ok(None) };
        if u64::try_from(stat.st_size).map_or(true, |size| size > most) {
            return Ok(None);
        }
        let bytes = read(handle, most)?;
        Ok((bytes.len() as u64 <= most).then_some((bytes, FileMode::new(stat.st_mode))))
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
                let mut lost = match &like.open_file()? {
                    Some((old, stat)) => attributes::keep(&Attributes::of(old, stat)?, &file)?,
                    None => Vec::new(),
                };
                // After the owner, since changing that drops some bits.
                rustix::fs::fchmod(&file, Mode::from_raw_mode(mode.bits()))?;
                // A system may leave bits out without a word: those of a group that is not ours, or all where it has none.
                // And what runs as its owner must not run as another one.
                let foreign = mode.bits() & 0o6000 != 0 && lost.iter().any(|lost| lost.starts_with(OWNER));
                if foreign || FileMode::new(rustix::fs::fstat(&file)?.st_mode) != *mode {
                    lost.push(PERMISSIONS);
                }
                rustix::fs::fsync(&file)?;
                Ok(lost)
            }
        }
    }

    /// Takes a name only if it is free.
    pub(super) fn move_to_free(self, name: Self) -> Result<(), Errno> {
        if self.swap == Swap::Exchange {
            match self.rename(name, RenameFlags::NOREPLACE) {
                Err(errno) if is_unsupported(errno) => {}
                result => return result,
            }
        }
        // A second name fails if it is taken, which is all that is needed.
        match rustix::fs::linkat(self.directory, self.name, name.directory, name.name, AtFlags::empty()) {
            Ok(()) => rustix::fs::unlinkat(self.directory, self.name, AtFlags::empty()),
            Err(errno) if is_unlinkable(errno) => match name.stat()? {
                None => self.rename(name, RenameFlags::empty()),
                Some(_) => Err(Errno::EXIST),
            },
            Err(errno) => Err(errno),
        }
    }

    /// Changes places with another entry, so that each has what the other had; or leaves both as they were.
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
                    // For an instant the name is free, which nothing can help here.
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

    /// Removes it, if it is there.
    pub(super) fn remove(self) -> Result<(), Errno> {
        match rustix::fs::unlinkat(self.directory, self.name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            result => result,
        }
    }

    /// Keeps somebody's work, that has no name to go back to, under one that shows where it belongs; returns that.
    pub(super) fn save(self, target: Self, token: &str) -> Result<String, Errno> {
        // As much of the name as leaves room for the rest in 255 bytes.
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

/// The bytes of a file, and one more than expected if it has more.
fn read(handle: OwnedFd, expected: u64) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::with_capacity(expected.min(1 << 30) as usize + 1);
    File::from(handle).take(expected.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| errno(&error))?;
    Ok(bytes)
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
