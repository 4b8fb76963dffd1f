//! Paths outside the workspace.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An absolute path outside the workspace, as named by a rule of the user.
///
/// The type cannot express a relative path, NUL or `..`, because `..` after a symbolic link does not lead where it
/// seems to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OutsidePath(String);

/// The reason why a text is not a path outside the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OutsidePathError {
    #[error("`{0}` is not an absolute path")]
    Relative(String),
    #[error("`{0}` goes up with `..`; write the path without it")]
    Parent(String),
    /// It contains a NUL byte.
    #[error("{0:?} holds a NUL character, which no file name can")]
    Nul(String),
}

impl OutsidePath {
    /// Parses an absolute path; `.` and doubled or trailing slashes are dropped.
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

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the rule pattern for this path and everything below it.
    pub fn as_pattern(&self) -> String {
        globset::escape(&self.0)
    }

    /// Returns the text without the leading slash; empty for the root of the file system.
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
    fn outside_path_is_absolute_without_parents() {
        let text = |path: &str| OutsidePath::parse(path).map(String::from);
        assert_eq!(text("/etc//./hostname/"), Ok("/etc/hostname".to_owned()));
        assert_eq!(text("/"), Ok("/".to_owned()));
        assert!(matches!(text("etc/hostname"), Err(OutsidePathError::Relative(_))));
        assert!(matches!(text("~/x"), Err(OutsidePathError::Relative(_))));
        assert!(matches!(text("/a/../b"), Err(OutsidePathError::Parent(_))));
        assert!(matches!(text("/a\0b"), Err(OutsidePathError::Nul(_))));
    }
}
