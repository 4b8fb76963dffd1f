//! Paths inside the workspace.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A path relative to the workspace root, with `/` between names.
///
/// The type cannot express `..`, an absolute path or NUL, so its users need no check. It does not resolve symbolic
/// links: confinement is enforced when the path is opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WsPath(String);

/// The reason why a text is not a path inside the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WsPathError {
    #[error("`{0}` is an absolute path outside the workspace")]
    Absolute(String),
    #[error("`{0}` goes up with `..`, which a path inside the workspace cannot")]
    Parent(String),
    /// It contains a NUL byte.
    #[error("{0:?} holds a NUL character, which no file name can")]
    Nul(String),
    #[error("the path is empty; `.` is the workspace itself")]
    Empty,
}

impl WsPath {
    /// Returns the workspace itself.
    pub fn root() -> Self {
        Self(String::new())
    }

    /// Parses a relative path. Drops `.` and doubled or trailing slashes, and rejects every absolute path, also one into the workspace.
    pub fn parse(text: &str) -> Result<Self, WsPathError> {
        if text.is_empty() {
            return Err(WsPathError::Empty);
        }
        if text.contains('\0') {
            return Err(WsPathError::Nul(text.to_owned()));
        }
        if text.starts_with('/') {
            return Err(WsPathError::Absolute(text.to_owned()));
        }
        let mut path = String::with_capacity(text.len());
        for name in text.split('/').filter(|name| !matches!(*name, "" | ".")) {
            if name == ".." {
                return Err(WsPathError::Parent(text.to_owned()));
            }
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
        }
        Ok(Self(path))
    }

    /// Appends a name; `None` if `name` is not a plain name.
    pub fn join(&self, name: &str) -> Option<Self> {
        if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
            return None;
        }
        Some(Self(if self.is_root() { name.to_owned() } else { format!("{}/{name}", self.0) }))
    }

    /// `true` for the workspace itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text; empty for the workspace itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the names from the root down.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// Returns the parent directory; `None` for the workspace itself.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        Some(Self(self.0.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned()))
    }

    /// `true` if the path equals `directory` or is below it.
    pub fn is_within(&self, directory: &Self) -> bool {
        directory.is_root()
            || self.0.strip_prefix(&directory.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for WsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_root() { "." } else { &self.0 })
    }
}

impl Serialize for WsPath {
    /// Serializes the displayed form, which [`WsPath::parse`] accepts.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WsPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_normalized_or_rejected() {
        let path = |text: &str| WsPath::parse(text).unwrap().as_str().to_owned();
        assert_eq!(path("a/b"), "a/b");
        assert_eq!(path("./a//b/./"), "a/b");
        assert_eq!(path("."), "");
        assert_eq!(path("..a/b.."), "..a/b..");
        assert_eq!(WsPath::parse(""), Err(WsPathError::Empty));
        assert_eq!(WsPath::parse("/etc"), Err(WsPathError::Absolute("/etc".to_owned())));
        assert_eq!(WsPath::parse("a/../b"), Err(WsPathError::Parent("a/../b".to_owned())));
        assert_eq!(WsPath::parse("a\0b"), Err(WsPathError::Nul("a\0b".to_owned())));
    }

    #[test]
    fn within_compares_whole_names() {
        let within =
            |path: &str, directory: &str| WsPath::parse(path).unwrap().is_within(&WsPath::parse(directory).unwrap());
        assert!(within("src/a", "src") && within("src", "src") && within("src", "."));
        assert!(!within("src2/a", "src") && !within("a", "src"));
    }

    proptest! {
        #[test]
        fn parsed_paths_never_leave_workspace(text in "(\\.|/|\\.\\.|[a-z\0\n]|\\PC){0,12}") {
            if let Ok(path) = WsPath::parse(&text) {
                prop_assert!(path.names().all(|name| !matches!(name, "" | "." | "..")));
                prop_assert!(!path.as_str().starts_with('/') && !path.as_str().contains('\0'));
                prop_assert_eq!(WsPath::parse(&path.to_string()).unwrap(), path);
            }
        }
    }
}
