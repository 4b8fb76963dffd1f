//! A path outside the workspace.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An absolute path that lies, or may lie, outside the workspace, as a rule of the user names it.
///
/// The type cannot express `..`, which means something else behind a symbolic link than it reads, a relative path or a NUL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OutsidePath(String);

/// The reason why a text is no path outside the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OutsidePathError {
    /// It does not start at the root of the file system.
    #[error("`{0}` is not an absolute path")]
    Relative(String),
    /// It goes up.
    #[error("`{0}` goes up with `..`; write the path without it")]
    Parent(String),
    /// It holds a zero byte.
    #[error("{0:?} holds a NUL character, which no file name can")]
    Nul(String),
}

impl OutsidePath {
    /// Reads an absolute path; `.` and doubled or trailing slashes are dropped.
    pub fn parse(text: &str) -> Result<Self, OutsidePathError> {
        if !text.starts_with('/') {
            return Err(OutsidePathError::Relative(text.to_owned()));
        }
        if text.contains('\0') {
            return Err(OutsidePathError::Nul(text.to_owned()));
        }
        let names: Vec<&str> = text.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        if names.contains(&"..") {
            return Err(OutsidePathError::Parent(text.to_owned()));
        }
        Ok(Self(format!("/{}", names.join("/"))))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The pattern of a rule that stands for this path and all below it.
    pub fn as_pattern(&self) -> String {
        globset::escape(&self.0)
    }

    /// The text without the slash at its start; empty for the root of the file system.
    pub fn below_root(&self) -> &str {
        &self.0[1..]
    }
}

impl fmt::Display for OutsidePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for OutsidePath {
    type Error = OutsidePathError;

    fn try_from(text: String) -> Result<Self, OutsidePathError> {
        Self::parse(&text)
    }
}

impl From<OutsidePath> for String {
    fn from(path: OutsidePath) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_path_is_absolute_and_never_goes_up() {
        let text = |path: &str| OutsidePath::parse(path).map(String::from);
        assert_eq!(text("/etc//./hostname/"), Ok("/etc/hostname".to_owned()));
        assert_eq!(text("/"), Ok("/".to_owned()));
        assert!(matches!(text("etc/hostname"), Err(OutsidePathError::Relative(_))));
        assert!(matches!(text("~/x"), Err(OutsidePathError::Relative(_))));
        assert!(matches!(text("/a/../b"), Err(OutsidePathError::Parent(_))));
        assert!(matches!(text("/a\0b"), Err(OutsidePathError::Nul(_))));
    }
}
