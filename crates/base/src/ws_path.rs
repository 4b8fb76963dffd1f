//! A path inside the workspace.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A path inside the workspace, from its root, with `/` between names.
///
/// The type cannot express `..`, an absolute path or a NUL, so nothing that takes one needs to check for them. It says
/// nothing about symlinks: whether a path stays inside is decided by opening it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WsPath(String);

/// Why a text is not a path inside the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WsPathError {
    /// It starts at the root of the file system.
    #[error("`{0}` is an absolute path outside the workspace")]
    Absolute(String),
    /// It goes up.
    #[error("`{0}` goes up with `..`, which a path inside the workspace cannot")]
    Parent(String),
    /// It holds a zero byte, which no file name can.
    #[error("{0:?} holds a NUL character, which no file name can")]
    Nul(String),
    /// There is nothing.
    #[error("the path is empty; `.` is the workspace itself")]
    Empty,
}

impl WsPath {
    /// The workspace itself.
    pub fn root() -> Self {
        Self(String::new())
    }

    /// Reads a relative path; `.` and doubled or trailing slashes are dropped.
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

    /// The path of an entry of this directory, or `None` if `name` is not a plain name.
    pub fn join(&self, name: &str) -> Option<Self> {
        if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
            return None;
        }
        Some(Self(if self.is_root() { name.to_owned() } else { format!("{}/{name}", self.0) }))
    }

    /// Whether it is the workspace itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The text; empty for the workspace itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names from the root down.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// The directory it is in; the workspace itself has none.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        Some(Self(self.0.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned()))
    }

    /// Whether it is `directory` or lies below it.
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
    /// As it is shown, which is how it can be read again.
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
    fn paths_are_normalised_or_refused() {
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
    fn within_goes_by_names() {
        let within =
            |path: &str, directory: &str| WsPath::parse(path).unwrap().is_within(&WsPath::parse(directory).unwrap());
        assert!(within("src/a", "src") && within("src", "src") && within("src", "."));
        assert!(!within("src2/a", "src") && !within("a", "src"));
    }

    proptest! {
        #[test]
        fn no_text_makes_a_path_that_leaves(text in "(\\.|/|\\.\\.|[a-z\0\n]|\\PC){0,12}") {
            if let Ok(path) = WsPath::parse(&text) {
                prop_assert!(path.names().all(|name| !matches!(name, "" | "." | "..")));
                prop_assert!(!path.as_str().starts_with('/') && !path.as_str().contains('\0'));
                prop_assert_eq!(WsPath::parse(&path.to_string()).unwrap(), path);
            }
        }
    }
}
