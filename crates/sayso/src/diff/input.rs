//! What was named on the command line, read.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file to compare.
pub(crate) struct Input {
    /// How it was named.
    pub(crate) name: String,
    /// Its bytes, or `None` for no file.
    pub(crate) content: Option<Vec<u8>>,
}

impl Input {
    pub(crate) fn is_absent(&self) -> bool {
        self.content.is_none()
    }
}

pub(crate) enum Inputs {
    Files(Input, Input),
    /// Two directories, of which one may be none.
    Directories(Option<PathBuf>, Option<PathBuf>),
}

pub(crate) fn open(old: &Path, new: &Path) -> Result<Inputs, Failure> {
    for path in [old, new] {
        if !is_standard_input(path) && !path.exists() && path.symlink_metadata().is_err() {
            return Err(missing(path));
        }
    }
    match (is_directory(old), is_directory(new)) {
        (true, true) => Ok(Inputs::Directories(Some(old.to_owned()), Some(new.to_owned()))),
        (true, false) if is_nothing(new) => Ok(Inputs::Directories(Some(old.to_owned()), None)),
        (false, true) if is_nothing(old) => Ok(Inputs::Directories(None, Some(new.to_owned()))),
        (false, false) => {
            if is_standard_input(old) && is_standard_input(new) {
                return Err(Failure::bad_input("both sides are `-`")
                    .hint("standard input can be one side; name a file for the other"));
            }
            Ok(Inputs::Files(read(old)?, read(new)?))
        }
        (old_is_directory, _) => {
            let (directory, file) = if old_is_directory { (old, new) } else { (new, old) };
            Err(Failure::bad_input(format!("`{}` is a directory and `{}` is not", directory.display(), file.display()))
                .hint("compare two files or two directories"))
        }
    }
}

fn is_directory(path: &Path) -> bool {
    !is_standard_input(path) && path.is_dir()
}

fn is_nothing(path: &Path) -> bool {
    path == Path::new(sayso_diff::NO_FILE)
}

fn missing(path: &Path) -> Failure {
    Failure::bad_input(format!("`{}` does not exist", path.display()))
        .hint("check the name; `/dev/null` stands for a file or directory that is not there")
}

fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

fn read(path: &Path) -> Result<Input, Failure> {
    let name = path.to_string_lossy().into_owned();
    if is_nothing(path) {
        return Ok(Input { name, content: None });
    }
    let content = if is_standard_input(path) {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    match content {
        Ok(bytes) => Ok(Input { name, content: Some(bytes) }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(missing(path)),
        Err(error) => Err(Failure::bad_input(format!("`{name}` cannot be read"))
            .why(&error)
            .hint("check its permissions, and that it is a file")),
    }
}
