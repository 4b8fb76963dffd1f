//! Opening of paths by handles, confined to the workspace.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use sayso_review::{WsPath, WsPathError};
use thiserror::Error;

use crate::apply::Swap;

/// A workspace, held by a handle on its root directory.
#[derive(Debug)]
pub struct Workspace {
    root: OwnedFd,
    path: PathBuf,
    /// The root as the user named it, if that differs from the real path. Absolute paths may have either form.
    named: PathBuf,
    backend: Backend,
    pub(crate) swap: Swap,
    /// Paths inside that are never written.
    pub(crate) protected: Vec<WsPath>,
    /// Umask of this process. Read on first use.
    pub(crate) umask: OnceLock<u32>,
}

/// Way to resolve paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The kernel resolves a path in one call: `openat2` with `RESOLVE_BENEATH`.
    OpenAt2,
    /// This crate resolves a path name by name, and reads each symlink itself.
    Stepwise,
}

/// An opened file or directory.
#[derive(Debug)]
pub struct Opened {
    pub handle: OwnedFd,
    /// Path after all symlinks.
    pub resolved: WsPath,
}

/// Reason why a workspace could not be opened.
#[derive(Debug, Error)]
#[error("`{path}` cannot be used as a workspace: {reason}")]
pub struct OpenWorkspaceError {
    pub path: String,
    pub reason: String,
}

/// Reason why a path could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The path leads out of the workspace.
    #[error("`{path}` leads out of the workspace: {reason}")]
    Outside { path: String, reason: &'static str },
    #[error("`{0}` does not exist")]
    NotFound(WsPath),
    /// A parent of the path is not a directory.
    #[error("`{0}` goes through something that is not a directory")]
    NotADirectory(WsPath),
    /// The path is a device, a pipe or a socket.
    #[error("`{0}` is not a regular file")]
    Special(WsPath),
    #[error("`{0}` goes through too many symbolic links")]
    TooManyLinks(WsPath),
    /// Any other error of the system.
    #[error("`{path}` cannot be opened: {error}")]
    System { path: WsPath, error: Errno },
}

/// Same limit as in Linux.
const MAX_LINKS: usize = 40;
/// Never block on a FIFO, never acquire a controlling terminal, never leak to a child.
const SAFE: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::NOFOLLOW);

impl Workspace {
    /// Opens a directory as a workspace, with the best backend that the system supports.
    pub fn open(path: &Path) -> Result<Self, OpenWorkspaceError> {
        let mut workspace = Self::open_with(path, Backend::Stepwise)?;
        if openat2(workspace.root.as_fd(), ".", OFlags::DIRECTORY).is_ok() {
            workspace.backend = Backend::OpenAt2;
        }
        Ok(workspace)
    }

    pub fn open_with(path: &Path, backend: Backend) -> Result<Self, OpenWorkspaceError> {
        let error = |reason: String| OpenWorkspaceError { path: path.display().to_string(), reason };
        #[expect(clippy::disallowed_methods, reason = "finding the root is where this crate starts")]
        let real = std::fs::canonicalize(path).map_err(|e| error(e.to_string()))?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        let root = rustix::fs::open(&real, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOTDIR => error("it is not a directory".to_owned()),
            errno => error(errno.to_string()),
        })?;
        let (swap, protected) = (Swap::Exchange, Vec::new());
        Ok(Self { root, path: real, named: path.to_owned(), backend, swap, protected, umask: OnceLock::new() })
    }

    /// Sets the way to replace files, for tests. File systems that cannot exchange names are detected anyway.
    #[must_use]
    pub fn with_swap(mut self, swap: Swap) -> Self {
        self.swap = swap;
        self
    }

    /// Protects a directory, if it is inside: sayso's own records must not be changed by an agent.
    #[must_use]
    pub fn protecting(mut self, directory: &Path) -> Self {
        #[expect(clippy::disallowed_methods, reason = "what is protected may be named in another way than the root")]
        let real = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        let beneath = real.strip_prefix(&self.path).ok().and_then(Path::to_str);
        self.protected.extend(beneath.and_then(|path| WsPath::parse(path).ok()));
        self
    }

    /// Returns the root's real path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Parses a path as written: relative, or absolute below the root.
    pub fn locate(&self, text: &str) -> Result<WsPath, WsPathError> {
        if !text.starts_with('/') {
            return WsPath::parse(text);
        }
        let beneath = |root: &Path| Path::new(text).strip_prefix(root).ok().and_then(Path::to_str);
        match beneath(&self.path).or_else(|| self.named.is_absolute().then(|| beneath(&self.named)).flatten()) {
            Some("") => Ok(WsPath::root()),
            // `..` after the root is rejected as everywhere.
            Some(rest) => WsPath::parse(rest),
            None => Err(WsPathError::Absolute(text.to_owned())),
        }
    }

    /// Opens a regular file for reading, or a directory. Follows symlinks that stay inside. Other files are never
    /// opened, since opening a pipe or a device has side effects.
    pub fn open_path(&self, path: &WsPath) -> Result<Opened, OpenError> {
        if self.backend == Backend::OpenAt2 {
            let name = if path.is_root() { "." } else { path.as_str() };
            let open = |flags| openat2(self.root.as_fd(), name, flags);
            match open_checked(path, open) {
                Ok(OpenedOrLink::Opened(handle)) => return Ok(Opened { handle, resolved: path.clone() }),
                // The path has a symlink, whose target must be known, so walk.
                Ok(OpenedOrLink::Symlink) => {}
                Err(error) => return Err(error),
            }
        }
        self.walk(path)
    }

    /// Opens a directory by a path without symbolic links in one system call; `None` if that is impossible.
    pub(crate) fn open_directory_at_once(&self, path: &WsPath) -> Option<OwnedFd> {
        let name = if path.is_root() { "." } else { path.as_str() };
        // `DIRECTORY` makes the call fail for other files, without opening them.
        (self.backend == Backend::OpenAt2).then(|| openat2(self.root.as_fd(), name, OFlags::DIRECTORY).ok()).flatten()
    }

    /// Returns the `stat` of a regular file or a directory without opening it. Follows symlinks that stay inside.
    pub(crate) fn stat_path(&self, path: &WsPath) -> Option<Stat> {
        if self.backend == Backend::OpenAt2 {
            let name = if path.is_root() { "." } else { path.as_str() };
            let handle = match openat2(self.root.as_fd(), name, OFlags::PATH) {
                Ok(handle) => Some(handle),
                Err(Errno::LOOP) => None,
                Err(_) => return None,
            };
            let stat = handle.map(rustix::fs::fstat).transpose().ok()?;
            match stat.map(|stat| (FileType::from_raw_mode(stat.st_mode), stat)) {
                Some((FileType::RegularFile | FileType::Directory, stat)) => return Some(stat),
                None | Some((FileType::Symlink, _)) => {}
                Some(_) => return None,
            }
        }
        rustix::fs::fstat(&self.walk(path).ok()?.handle).ok()
    }

    /// Descends from the root name by name. Each directory stays open, so that `..` in a symlink's target is the
    /// directory we came from, whatever happens to its name meanwhile.
    fn walk(&self, path: &WsPath) -> Result<Opened, OpenError> {
        let mut directories: Vec<(OwnedFd, WsPath)> = Vec::new();
        let mut waiting: VecDeque<String> = path.names().map(str::to_owned).collect();
        let mut links = 0;
        while let Some(name) = waiting.pop_front() {
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    if directories.pop().is_none() {
                        return Err(outside(path, "a symbolic link goes up beyond the root"));
                    }
                    continue;
                }
                _ => {}
            }
            let here = directories.last().map_or(self.root.as_fd(), |(handle, _)| handle.as_fd());
            let at = directories.last().map_or_else(WsPath::root, |(_, path)| path.clone());
            let Some(next) = at.join(&name) else { return Err(outside(path, "a symbolic link's target is no path")) };
            let open = |flags| rustix::fs::openat(here, name.as_str(), SAFE | flags, Mode::empty());
            let opened = if waiting.is_empty() {
                open_checked(path, open)?
            } else {
                // Directories on the way need no read permission.
                match open(OFlags::PATH | OFlags::DIRECTORY) {
                    Ok(handle) => OpenedOrLink::Opened(handle),
                    Err(Errno::NOTDIR | Errno::LOOP) if is_symlink(here, &name) => OpenedOrLink::Symlink,
                    Err(errno) => return Err(failed(path, errno)),
                }
            };
            match opened {
                OpenedOrLink::Opened(handle) if waiting.is_empty() => return Ok(Opened { handle, resolved: next }),
                OpenedOrLink::Opened(handle) => directories.push((handle, next)),
                OpenedOrLink::Symlink => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(OpenError::TooManyLinks(path.clone()));
                    }
                    let target = link_target(here, &name, path)?;
                    for part in target.split('/').rev() {
                        waiting.push_front(part.to_owned());
                    }
                }
            }
        }
        // Only `.` or the `..` of symlinks were left: the result is the current directory.
        let here = directories.last().map_or(self.root.as_fd(), |(handle, _)| handle.as_fd());
        let handle = rustix::fs::openat(here, ".", SAFE | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
            .map_err(|errno| failed(path, errno))?;
        Ok(Opened { handle, resolved: directories.pop().map_or_else(WsPath::root, |(_, path)| path) })
    }
}

enum OpenedOrLink {
    Opened(OwnedFd),
    Symlink,
}

/// Opens a path after a check of its type. If it is replaced by a pipe in between, opening it still does not block.
fn open_checked(
    path: &WsPath,
    open: impl Fn(OFlags) -> rustix::io::Result<OwnedFd>,
) -> Result<OpenedOrLink, OpenError> {
    let handle = match open(OFlags::PATH) {
        Ok(handle) => handle,
        Err(Errno::LOOP) => return Ok(OpenedOrLink::Symlink),
        Err(errno) => return Err(failed(path, errno)),
    };
    let stat = rustix::fs::fstat(&handle).map_err(|errno| failed(path, errno))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => Ok(OpenedOrLink::Symlink),
        FileType::RegularFile | FileType::Directory => match open(OFlags::RDONLY) {
            Ok(handle) => Ok(OpenedOrLink::Opened(handle)),
            Err(Errno::LOOP) => Ok(OpenedOrLink::Symlink),
            Err(errno) => Err(failed(path, errno)),
        },
        _ => Err(OpenError::Special(path.clone())),
    }
}

fn is_symlink(directory: BorrowedFd<'_>, name: &str) -> bool {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

fn openat2(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // With `O_PATH` the kernel rejects flags that have no meaning for it.
    let kept = if flags.contains(OFlags::PATH) { SAFE & !(OFlags::NONBLOCK | OFlags::NOCTTY) } else { SAFE };
    rustix::fs::openat2(root, path, kept | flags, Mode::empty(), resolve)
}

fn link_target(directory: BorrowedFd<'_>, name: &str, path: &WsPath) -> Result<String, OpenError> {
    let target = rustix::fs::readlinkat(directory, name, Vec::new()).map_err(|errno| failed(path, errno))?;
    let target = target.into_string().map_err(|_| outside(path, "a symbolic link's target is not UTF-8"))?;
    if target.starts_with('/') {
        return Err(outside(path, "it is a symbolic link with an absolute target"));
    }
    Ok(target)
}

fn outside(path: &WsPath, reason: &'static str) -> OpenError {
    OpenError::Outside { path: path.to_string(), reason }
}

fn failed(path: &WsPath, errno: Errno) -> OpenError {
    match errno {
        Errno::NOENT => OpenError::NotFound(path.clone()),
        Errno::NOTDIR => OpenError::NotADirectory(path.clone()),
        Errno::XDEV => outside(path, "its name leads out"),
        error => OpenError::System { path: path.clone(), error },
    }
}
