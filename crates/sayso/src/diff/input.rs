//! The files and directories of the command line.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// A file to compare.
pub(crate) struct DiffInput {
    /// The name on the command line.
    pub(crate) name: String,
    /// `None` if there is no file.
    pub(crate) content: Option<Vec<u8>>,
}

impl DiffInput {
    pub(crate) fn is_absent(&self) -> bool {
        self.content.is_none()
    }
}

pub(crate) enum Inputs {
    Files(DiffInput, DiffInput),
    /// At most one is `None`, for no directory.
    Directories(Option<PathBuf>, Option<PathBuf>),
}

pub(crate) fn open(old: &Path, new: &Path) -> Result<Inputs, CliError> {
    for path in [old, new] {
        if !is_standard_input(path) && !path.exists() && path.symlink_metadata().is_err() {
            return Err(missing(path));
        }
    }
    match (is_directory(old), is_directory(new)) {
        (true, true) => Ok(Inputs::Directories(Some(old.to_owned()), Some(new.to_owned()))),
        (true, false) if is_no_file(new) => Ok(Inputs::Directories(Some(old.to_owned()), None)),
        (false, true) if is_no_file(old) => Ok(Inputs::Directories(None, Some(new.to_owned()))),
        (false, false) => {
            if is_standard_input(old) && is_standard_input(new) {
                return Err(CliError::invalid_input("both sides are `-`")
                    .hint("standard input can be one side; name a file for the other"));
            }
            Ok(Inputs::Files(read(old)?, read(new)?))
        }
        (old_is_directory, _) => {
            let (directory, file) = if old_is_directory { (old, new) } else { (new, old) };
            Err(CliError::invalid_input(format!(
                "`{}` is a directory and `{}` is not",
                directory.display(),
                file.display()
            ))
            .hint("compare two files or two directories"))
        }
    }
}

fn is_directory(path: &Path) -> bool {
    !is_standard_input(path) && path.is_dir()
}

fn is_no_file(path: &Path) -> bool {
    path == Path::new(sayso_diff::NO_FILE)
}

fn missing(path: &Path) -> CliError {
    CliError::invalid_input(format!("`{}` does not exist", path.display()))
        .hint("check the name; `/dev/null` stands for a file or directory that is not there")
}

fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

fn read(path: &Path) -> Result<DiffInput, CliError> {
    let name = path.to_string_lossy().into_owned();
    if is_no_file(path) {
        return Ok(DiffInput { name, content: None });
    }
    let content = if is_standard_input(path) {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    match content {
        Ok(bytes) => Ok(DiffInput { name, content: Some(bytes) }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(missing(path)),
        Err(error) => Err(CliError::invalid_input(format!("cannot read `{name}`"))
            .caused_by(&error)
            .hint("check its permissions, and that it is a file")),
    }
}
