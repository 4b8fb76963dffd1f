//! Directories of a plan. Each is held open, so that changes of their names cannot lead out.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use sayso_review::WsPath;

use super::entry::DirEntry;
use super::error::ApplyError;
use super::parallel;
use crate::confine::{OpenError, Workspace};

/// Open directories of a plan, by path.
pub(super) struct Directories<'w> {
    workspace: &'w Workspace,
    open: BTreeMap<WsPath, OwnedFd>,
    /// Created directories, outermost first.
    made: Vec<WsPath>,
}

impl<'w> Directories<'w> {
    pub(super) fn new(workspace: &'w Workspace) -> Self {
        Self { workspace, open: BTreeMap::new(), made: Vec::new() }
    }

    /// Opens a directory, unless it is open already. Fails if the path has a symbolic link.
    pub(super) fn open(&mut self, path: &WsPath) -> Result<(), OpenError> {
        if !self.open.contains_key(path) {
            let handle = self.workspace.open_directory(path)?;
            self.open.insert(path.clone(), handle);
        }
        Ok(())
    }

    fn handle(&self, path: &WsPath) -> Option<BorrowedFd<'_>> {
        self.open.get(path).map(AsFd::as_fd)
    }

    /// Returns the entry of a file in an open directory.
    pub(super) fn entry<'a>(&'a self, path: &'a WsPath) -> Option<DirEntry<'a>> {
        let directory = self.handle(&path.parent()?)?;
        Some(DirEntry { directory, name: path.names().next_back()?, swap: self.workspace.swap })
    }

    /// Creates a directory in an existing one, and opens it.
    pub(super) fn make(&mut self, path: &WsPath) -> Result<(), ApplyError> {
        let failed = |errno| ApplyError::system(path, errno);
        let (Some(parent), Some(name)) = (path.parent(), path.names().next_back()) else { return Ok(()) };
        self.open(&parent).map_err(|error| ApplyError::opening(path, &error))?;
        let parent = self.handle(&parent).ok_or_else(|| failed(Errno::NOENT))?;
        let made = match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => true,
            // Another program created it meanwhile. It can be used, but must not be removed.
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(failed(errno)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(parent, name, flags, Mode::empty());
        if made {
            self.made.push(path.clone());
        }
        let handle = opened.map_err(|errno| match errno {
            Errno::NOTDIR | Errno::LOOP => ApplyError::Outside {
                path: path.clone(),
                reason: "something that is not a directory was put in its place".to_owned(),
            },
            Errno::NOENT => ApplyError::Stale { path: path.clone() },
            errno => failed(errno),
        })?;
        self.open.insert(path.clone(), handle);
        Ok(())
    }

    pub(super) fn any_made(&self) -> bool {
        !self.made.is_empty()
    }

    /// Removes the created directories that are empty.
    pub(super) fn remove_made(&mut self) {
        let made = std::mem::take(&mut self.made);
        self.remove_empty(&made);
    }

    /// Removes the directories that are empty, given outermost first. Returns their parents.
    pub(super) fn remove_empty(&mut self, paths: &[WsPath]) -> BTreeSet<WsPath> {
        let mut changed = BTreeSet::new();
        for path in paths.iter().rev() {
            let (Some(parent), Some(name)) = (path.parent(), path.names().next_back()) else { continue };
            // Errors are ignored: the directory may be missing or not empty, or lead elsewhere.
            if self.open(&parent).is_ok()
                && let Some(above) = self.handle(&parent)
                && rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR).is_ok()
            {
                self.open.remove(path);
                changed.remove(path);
                changed.insert(parent);
            }
        }
        changed
    }

    /// Checks that each name still leads to the open directory. If not, the files were written elsewhere.
    pub(super) fn all_in_place(&self) -> Result<(), ApplyError> {
        for (path, held) in &self.open {
            let same = |handle: OwnedFd| {
                let (now, held) = (rustix::fs::fstat(handle)?, rustix::fs::fstat(held)?);
                Ok::<bool, Errno>(now.st_dev == held.st_dev && now.st_ino == held.st_ino)
            };
            let found = match self.workspace.open_directory(path) {
                Err(OpenError::System { error, .. }) => return Err(ApplyError::system(path, error)),
                found => found.ok(),
            };
            if !found.is_some_and(|handle| same(handle).unwrap_or(false)) {
                let reason = "the directory was moved while files in it were written".to_owned();
                return Err(ApplyError::Outside { path: path.clone(), reason });
            }
        }
        Ok(())
    }

    /// Syncs all open directories.
    pub(super) fn sync(&self) -> Result<(), (WsPath, Errno)> {
        let all: Vec<_> = self.open.iter().collect();
        let synced = parallel::each(all.len(), |index| {
            let (path, handle) = all[index];
            sync(handle).map_err(|errno| (path.clone(), errno))
        });
        synced.into_iter().try_for_each(|(_, result)| result)
    }

    /// Syncs some of the open directories.
    pub(super) fn sync_only(&self, paths: &BTreeSet<WsPath>) -> Result<(), Errno> {
        paths.iter().filter_map(|path| self.open.get(path)).try_for_each(sync)
    }
}

fn sync(handle: &OwnedFd) -> Result<(), Errno> {
    match rustix::fs::fsync(handle) {
        // Some file systems do not support syncing a directory.
        Err(Errno::INVAL) => Ok(()),
        result => result,
    }
}

impl Workspace {
    /// Opens a directory by a path without symbolic links.
    pub(super) fn open_directory(&self, path: &WsPath) -> Result<OwnedFd, OpenError> {
        if let Some(handle) = self.open_directory_at_once(path) {
            return Ok(handle);
        }
        let opened = self.open_path(path)?;
        if opened.resolved != *path {
            return Err(OpenError::Outside {
                path: path.to_string(),
                reason: "a directory on the way has become a symbolic link",
            });
        }
        let stat = rustix::fs::fstat(&opened.handle);
        let stat = stat.map_err(|error| OpenError::System { path: path.clone(), error })?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Err(OpenError::NotADirectory(path.clone()));
        }
        Ok(opened.handle)
    }
}
