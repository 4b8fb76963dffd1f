//! Opening by handle, never by name alone.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use sayso_review::{WsPath, WsPathError};
use thiserror::Error;

use crate::apply::Swap;

/// A workspace, held by a handle on its root.
#[derive(Debug)]
pub struct Workspace {
    root: OwnedFd,
    path: PathBuf,
    /// The root as it was named, if that differs: absolute paths may come in either spelling.
    named: PathBuf,
    backend: Backend,
    pub(crate) swap: Swap,
    /// What is never written to, though it lies inside.
    pub(crate) protected: Vec<WsPath>,
    /// The permissions that new files of this process do not get, once somebody wanted to know.
    pub(crate) umask: OnceLock<u32>,
}

/// How paths are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// By the kernel in one call: `openat2` with `RESOLVE_BENEATH`.
    OpenAt2,
    /// By us, one name at a time, following no symlink without looking at it.
    Stepwise,
}

/// Something that was opened, and where it really is.
#[derive(Debug)]
pub struct Opened {
    /// The handle.
    pub handle: OwnedFd,
    /// Its path after all symlinks.
    pub resolved: WsPath,
}

/// Why a workspace could not be opened.
#[derive(Debug, Error)]
#[error("`{path}` cannot be used as a workspace: {reason}")]
pub struct OpenWorkspaceError {
    /// The directory.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Why a path could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// It would lead out of the workspace.
    #[error("`{path}` leads out of the workspace: {reason}")]
    Outside {
        /// The path.
        path: String,
        /// How.
        reason: &'static str,
    },
    /// There is nothing of this name.
    #[error("`{0}` does not exist")]
    NotFound(WsPath),
    /// A name on the way is not a directory.
    #[error("`{0}` goes through something that is not a directory")]
    NotADirectory(WsPath),
    /// It is a device, a pipe or a socket.
    #[error("`{0}` is not a regular file")]
    Special(WsPath),
    /// More symlinks than any honest path has.
    #[error("`{0}` goes through too many symbolic links")]
    TooManyLinks(WsPath),
    /// The system refuses.
    #[error("`{path}` cannot be opened: {error}")]
    System {
        /// The path.
        path: WsPath,
        /// What it says.
        error: Errno,
    },
}

/// As many as Linux follows.
const MOST_LINKS: usize = 40;
/// Never hang on a FIFO, never become a terminal's process, never leak to a child.
const SAFE: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::NOFOLLOW);

impl Workspace {
    /// Opens a directory as a workspace, with the best backend that the system has.
    pub fn open(path: &Path) -> Result<Self, OpenWorkspaceError> {
        let mut workspace = Self::open_with(path, Backend::Stepwise)?;
        if openat2(workspace.root.as_fd(), ".", OFlags::DIRECTORY).is_ok() {
            workspace.backend = Backend::OpenAt2;
        }
        Ok(workspace)
    }

    /// Opens a directory with a given backend.
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

    /// Uses another way to replace files: for file systems that cannot exchange names, where it is found out by itself.
    #[must_use]
    pub fn with_swap(mut self, swap: Swap) -> Self {
        self.swap = swap;
        self
    }

    /// Never writes to a directory, should it lie inside: sayso's own records are not an agent's to change.
    #[must_use]
    pub fn protecting(mut self, directory: &Path) -> Self {
        #[expect(clippy::disallowed_methods, reason = "what is protected may be named in another way than the root")]
        let real = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        let beneath = real.strip_prefix(&self.path).ok().and_then(Path::to_str);
        self.protected.extend(beneath.and_then(|path| WsPath::parse(path).ok()));
        self
    }

    /// The root's real path, to show and to compare absolute paths with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a path as somebody wrote it: relative, or absolute beneath the root.
    pub fn locate(&self, text: &str) -> Result<WsPath, WsPathError> {
        if !text.starts_with('/') {
            return WsPath::parse(text);
        }
        let beneath = |root: &Path| Path::new(text).strip_prefix(root).ok().and_then(Path::to_str);
        match beneath(&self.path).or_else(|| self.named.is_absolute().then(|| beneath(&self.named)).flatten()) {
            Some("") => Ok(WsPath::root()),
            // `..` after the root is refused here like anywhere.
            Some(rest) => WsPath::parse(rest),
            None => Err(WsPathError::Absolute(text.to_owned())),
        }
    }

    /// Opens a regular file for reading, or a directory. Follows symlinks that stay inside. Nothing else is ever opened, since
    /// opening a pipe or a device does something to it.
    pub fn open_path(&self, path: &WsPath) -> Result<Opened, OpenError> {
        if self.backend == Backend::OpenAt2 {
            let name = if path.is_root() { "." } else { path.as_str() };
            let open = |flags| openat2(self.root.as_fd(), name, flags);
            match open_looked_at(path, open) {
                Ok(Looked::Opened(handle)) => return Ok(Opened { handle, resolved: path.clone() }),
                // A symlink somewhere: what it leads to has to be known, so walk.
                Ok(Looked::Symlink) => {}
                Err(error) => return Err(error),
            }
        }
        self.walk(path)
    }

    /// Opens a directory by a path that has no symbolic link in it, if the system can say so in one go; `None` if something is in
    /// the way that has to be looked at.
    pub(crate) fn open_directory_at_once(&self, path: &WsPath) -> Option<OwnedFd> {
        let name = if path.is_root() { "." } else { path.as_str() };
        // Anything but a directory is not opened.
        (self.backend == Backend::OpenAt2).then(|| openat2(self.root.as_fd(), name, OFlags::DIRECTORY).ok()).flatten()
    }

    /// What `stat` says of a regular file or a directory, without opening it. Follows symlinks that stay inside.
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

    /// Goes down from the root name by name. Each directory stays open, so that `..` in a symlink's target means the
    /// directory we came from, whatever happens to names in the meantime.
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
            let looked = if waiting.is_empty() {
                open_looked_at(path, open)?
            } else {
                // Only passed through, which needs no right to read it.
                match open(OFlags::PATH | OFlags::DIRECTORY) {
                    Ok(handle) => Looked::Opened(handle),
                    Err(Errno::NOTDIR | Errno::LOOP) if is_symlink(here, &name) => Looked::Symlink,
                    Err(errno) => return Err(failed(path, errno)),
                }
            };
            match looked {
                Looked::Opened(handle) if waiting.is_empty() => return Ok(Opened { handle, resolved: next }),
                Looked::Opened(handle) => directories.push((handle, next)),
                Looked::Symlink => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(OpenError::TooManyLinks(path.clone()));
                    }
                    let target = link_target(here, &name, path)?;
                    for part in target.split('/').rev() {
                        waiting.push_front(part.to_owned());
                    }
                }
            }
        }
        // Only `.` or symlinks' `..` were left: the directory we are in.
        let here = directories.last().map_or(self.root.as_fd(), |(handle, _)| handle.as_fd());
        let handle = rustix::fs::openat(here, ".", SAFE | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
            .map_err(|errno| failed(path, errno))?;
        Ok(Opened { handle, resolved: directories.pop().map_or_else(WsPath::root, |(_, path)| path) })
    }
}

enum Looked {
    Opened(OwnedFd),
    Symlink,
}

/// Opens something after a look at what it is. Should it be exchanged for a pipe in between, opening still does not hang.
fn open_looked_at(path: &WsPath, open: impl Fn(OFlags) -> rustix::io::Result<OwnedFd>) -> Result<Looked, OpenError> {
    let handle = match open(OFlags::PATH) {
        Ok(handle) => handle,
        Err(Errno::LOOP) => return Ok(Looked::Symlink),
        Err(errno) => return Err(failed(path, errno)),
    };
    let stat = rustix::fs::fstat(&handle).map_err(|errno| failed(path, errno))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => Ok(Looked::Symlink),
        FileType::RegularFile | FileType::Directory => match open(OFlags::RDONLY) {
            Ok(handle) => Ok(Looked::Opened(handle)),
            Err(Errno::LOOP) => Ok(Looked::Symlink),
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
    // With `O_PATH` the kernel takes only those flags that mean something for it.
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
