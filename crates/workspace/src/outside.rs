//! Reads of files outside the workspace that a user's rule names. Nothing here writes.
#![expect(clippy::disallowed_methods, reason = "a path outside has no root to start from, and is opened by its name")]

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sayso_review::OutsidePath;

use crate::read::ReadLimit;

/// Resolves the symbolic links of a path, as far as it exists; `None` if that is impossible.
pub fn follow_outside(path: &OutsidePath) -> Option<OutsidePath> {
    let named = Path::new(path.as_str());
    let real = named.ancestors().find_map(|existing| {
        let (real, rest) = (existing.canonicalize().ok()?, named.strip_prefix(existing).ok()?);
        // A dangling link leads elsewhere once its target is created.
        let next = rest.components().next().map(|name| existing.join(name));
        let is_free = next.is_none_or(|next| next.symlink_metadata().is_err());
        is_free.then(|| if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    })?;
    OutsidePath::parse(real.to_str()?).ok()
}

/// Reads a regular file; `None` if it does not exist.
pub fn read_outside(path: &OutsidePath, limit: ReadLimit) -> std::io::Result<Option<Vec<u8>>> {
    let path = PathBuf::from(path.as_str());
    // Must not block on a pipe or a device. The links of the path were judged before.
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC).bits();
    let flags = i32::try_from(flags).map_err(std::io::Error::other)?;
    let file: File = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit.0.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit.0 {
        return Err(std::io::Error::other(format!("it is larger than {} bytes", limit.0)));
    }
    Ok(Some(bytes))
}
