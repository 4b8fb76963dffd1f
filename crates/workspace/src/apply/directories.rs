//! The directories that a plan writes to, each held open, so that what happens to their names meanwhile cannot lead out.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use sayso_review::WsPath;

use super::error::ApplyError;
use crate::confine::{OpenError, Workspace};

/// The open directories of a plan, by path.
pub(super) struct Directories<'w> {
    workspace: &'w Workspace,
    open: BTreeMap<WsPath, OwnedFd>,
}

impl<'w> Directories<'w> {
    pub(super) fn new(workspace: &'w Workspace) -> Self {
        Self { workspace, open: BTreeMap::new() }
    }

    /// Opens a directory, unless it is open already. A symbolic link on the way means that it is not the one that was meant.
    pub(super) fn open(&mut self, path: &WsPath) -> Result<(), OpenError> {
        if !self.open.contains_key(path) {
            let handle = self.workspace.open_directory(path)?;
            self.open.insert(path.clone(), handle);
        }
        Ok(())
    }

    /// The handle of a directory that was opened.
    pub(super) fn handle(&self, path: &WsPath) -> Option<BorrowedFd<'_>> {
        self.open.get(path).map(AsFd::as_fd)
    }

    /// Makes a directory in one that is there, and opens it.
    pub(super) fn make(&mut self, path: &WsPath) -> Result<(), ApplyError> {
        let failed = |errno| ApplyError::system(path, errno);
        let (Some(parent), Some(name)) = (path.parent(), path.names().next_back()) else { return Ok(()) };
        self.open(&parent).map_err(|error| ApplyError::opening(path, error))?;
        let parent = self.handle(&parent).ok_or_else(|| failed(Errno::NOENT))?;
        match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
            // Somebody made it since we looked: as good as ours, and not ours to remove; `rmdir` sees to that.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(parent, name, flags, Mode::empty()).map_err(failed)?;
        self.open.insert(path.clone(), handle);
        Ok(())
    }

    /// Removes a directory if it is empty.
    pub(super) fn remove_empty(&mut self, path: &WsPath) {
        let (Some(parent), Some(name)) = (path.parent(), path.names().next_back()) else { return };
        self.open.remove(path);
        if self.open(&parent).is_ok()
            && let Some(parent) = self.handle(&parent)
        {
            // One that is not empty, or not there, is none of our business.
            let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }

    /// Whether each name still leads to the directory that is held: if not, what was written is not where it was meant to be.
    pub(super) fn all_in_place(&self) -> Result<(), WsPath> {
        for (path, held) in &self.open {
            let same = |handle: OwnedFd| {
                let (now, held) = (rustix::fs::fstat(handle)?, rustix::fs::fstat(held)?);
                Ok::<bool, Errno>(now.st_dev == held.st_dev && now.st_ino == held.st_ino)
            };
            let found = self.workspace.open_directory(path).ok();
            if !found.is_some_and(|handle| same(handle).unwrap_or(false)) {
                return Err(path.clone());
            }
        }
        Ok(())
    }

    /// Makes what happened in all of them last.
    pub(super) fn sync(&self) -> Result<(), ApplyError> {
        for (path, handle) in &self.open {
            match rustix::fs::fsync(handle) {
                // Some file systems have nothing to sync for a directory.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(errno) => return Err(ApplyError::system(path, errno)),
            }
        }
        Ok(())
    }
}

impl Workspace {
    /// Opens a directory by a path that has no symbolic link in it.
    pub(super) fn open_directory(&self, path: &WsPath) -> Result<OwnedFd, OpenError> {
        let opened = self.open_path(path)?;
        if opened.resolved != *path {
            return Err(OpenError::Outside {
                path: path.to_string(),
                reason: "a directory on the way has become a symbolic link",
            });
        }
        // A file there would be opened just as well, and everything beneath it would fail later.
        let stat =
            rustix::fs::fstat(&opened.handle).map_err(|error| OpenError::System { path: path.clone(), error })?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Err(OpenError::NotADirectory(path.clone()));
        }
        Ok(opened.handle)
    }
}
