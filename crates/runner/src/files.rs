//! All uses of the file system.
#![allow(
    clippy::disallowed_methods,
    reason = "the runner opens the files of redirections and looks at paths for tests"
)]

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use sayso_shell::RedirectAccess;

pub(crate) fn open_null_for_reading() -> io::Result<File> {
    File::open("/dev/null")
}

pub(crate) fn open_null_for_writing() -> io::Result<File> {
    OpenOptions::new().write(true).open("/dev/null")
}

/// Opens the file of a redirection.
pub(crate) fn open(path: &Path, access: RedirectAccess) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match access {
        RedirectAccess::Read => options.read(true),
        RedirectAccess::Write => options.write(true).create(true).truncate(true),
        RedirectAccess::Append => options.append(true).create(true),
        RedirectAccess::ReadWrite => options.read(true).write(true).create(true).truncate(false),
    };
    options.open(path)
}

/// Metadata of the file behind a path, through symbolic links.
pub(crate) fn metadata(path: &Path) -> Option<Metadata> {
    std::fs::metadata(path).ok()
}

/// Metadata of the path itself.
pub(crate) fn link_metadata(path: &Path) -> Option<Metadata> {
    std::fs::symlink_metadata(path).ok()
}

pub(crate) fn is_directory(path: &Path) -> bool {
    metadata(path).is_some_and(|metadata| metadata.is_dir())
}

/// The error that looking at a path gives, if there is one.
pub(crate) fn metadata_error(path: &Path) -> Option<io::Error> {
    std::fs::metadata(path).err()
}

/// `true` if the effective user may use the file in this way.
pub(crate) fn allows(path: &Path, access: Access) -> bool {
    accessat(CWD, path, access, AtFlags::EACCESS).is_ok()
}

/// `true` if two paths lead to one file.
pub(crate) fn is_same(left: &Path, right: &Path) -> bool {
    let identity = |path: &Path| metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
    identity(left).is_some_and(|left| Some(left) == identity(right))
}

/// Path without symbolic links.
pub(crate) fn physical(path: &Path) -> io::Result<std::path::PathBuf> {
    std::fs::canonicalize(path)
}

/// Names in a folder; none if it cannot be read.
pub(crate) fn names(directory: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().into_vec()).collect()
}
