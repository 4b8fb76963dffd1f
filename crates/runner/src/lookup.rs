//! From the name of a program to its file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::files;
use crate::shell::Shell;

/// The file that a name stands for.
pub(crate) enum Lookup {
    /// An absolute path to execute.
    Found(PathBuf),
    /// No folder of `PATH` has the name.
    Missing,
}

/// Finds the file of a program. A name with a slash is a path.
pub(crate) fn find(name: &OsStr, shell: &Shell) -> Lookup {
    if name.as_bytes().contains(&b'/') {
        return Lookup::Found(shell.absolute(name.as_bytes()));
    }
    if name.is_empty() {
        return Lookup::Missing;
    }
    let mut denied = None;
    for folder in shell.get("PATH").unwrap_or_default().split(|byte| *byte == b':') {
        let path = shell.absolute(folder).join(Path::new(name));
        if !files::metadata(&path).is_some_and(|metadata| metadata.is_file()) {
            continue;
        }
        if files::allows(&path, Access::EXEC_OK) {
            return Lookup::Found(path);
        }
        denied.get_or_insert(path);
    }
    denied.map_or(Lookup::Missing, Lookup::Found)
}
