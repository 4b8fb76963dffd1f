//! Grants: the tools and files that an agent may use.

use std::collections::BTreeSet;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use thiserror::Error;

use crate::ws_path::WsPath;

/// The tools that an agent may call and the files that it may read and write. Everything else is denied.
#[derive(Clone, Debug)]
pub struct Grants {
    pub tools: BTreeSet<String>,
    pub read: PathGlobs,
    pub write: PathGlobs,
}

impl Grants {
    pub fn none() -> Self {
        Self { tools: BTreeSet::new(), read: PathGlobs::none(), write: PathGlobs::none() }
    }
}

/// Patterns over paths inside the workspace.
///
/// `*` matches within a name and `**` crosses directories, so `src/*.rs` grants less than `src/**/*.rs`. A pattern
/// without wildcards grants that path and everything below it; `.` grants the whole workspace.
#[derive(Clone, Debug)]
pub struct PathGlobs {
    globs: GlobSet,
    trees: Vec<WsPath>,
}

/// An invalid pattern.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the pattern `{pattern}` is not understood: {reason}")]
pub struct BadGlob {
    pub pattern: String,
    /// Description of the error.
    pub reason: String,
}

impl PathGlobs {
    /// Returns patterns that match no path.
    pub fn none() -> Self {
        Self { globs: GlobSet::empty(), trees: Vec::new() }
    }

    /// Parses patterns relative to the workspace.
    pub fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<Self, BadGlob> {
        let mut globs = GlobSetBuilder::new();
        let mut trees = Vec::new();
        for pattern in patterns {
            let bad = |reason: String| BadGlob { pattern: pattern.to_owned(), reason };
            if pattern.contains(['*', '?', '[', '{']) {
                // Check the pattern as a path too, because `..` in a pattern is always a mistake.
                WsPath::parse(pattern).map_err(|error| bad(error.to_string()))?;
                let pattern = pattern.trim_start_matches("./");
                let glob = GlobBuilder::new(pattern).literal_separator(true).build();
                globs.add(glob.map_err(|error| bad(error.kind().to_string()))?);
            } else {
                trees.push(WsPath::parse(pattern).map_err(|error| bad(error.to_string()))?);
            }
        }
        let globs = globs
            .build()
            .map_err(|error| BadGlob { pattern: error.glob().unwrap_or("").to_owned(), reason: error.to_string() })?;
        Ok(Self { globs, trees })
    }

    /// `true` if a pattern matches the path.
    pub fn allow(&self, path: &WsPath) -> bool {
        self.trees.iter().any(|tree| path.is_within(tree)) || self.globs.is_match(path.as_str())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    fn check(patterns: &[&str], granted: &[&str], refused: &[&str]) {
        let globs = PathGlobs::new(patterns.iter().copied()).unwrap();
        let allow = |path: &&&str| globs.allow(&WsPath::parse(path).unwrap());
        assert_eq!(
            granted.iter().filter(allow).collect::<Vec<_>>(),
            granted.iter().collect::<Vec<_>>(),
            "{patterns:?}"
        );
        assert_eq!(refused.iter().filter(allow).count(), 0, "{patterns:?} must not grant any of {refused:?}");
    }

    #[test]
    fn patterns_match_documented_paths() {
        check(&[], &[], &["a", ".", "a/b"]);
        check(&["."], &["a", "a/b", "."], &[]);
        check(&["**"], &["a", "a/b", ".hidden/x"], &[]);
        check(&["src"], &["src", "src/a", "src/b/c"], &["srcs", "a/src"]);
        check(&["./src/"], &["src/a"], &["a"]);
        check(&["src/*.rs"], &["src/a.rs"], &["src/b/c.rs", "src/a.txt", "a.rs"]);
        check(&["src/**/*.rs", "*.md"], &["src/a.rs", "src/b/c.rs", "README.md"], &["docs/x.md"]);
        check(&["{a,b}/**"], &["a/x", "b/y/z"], &["c/x"]);
    }

    #[test]
    fn invalid_patterns_are_reported() {
        let error = |pattern: &str| PathGlobs::new([pattern]).unwrap_err().to_string();
        assert!(error("a[").contains("`a[`"));
        assert!(error("../*").contains("goes up"));
        assert!(error("/etc/*").contains("outside the workspace"));
        assert!(error("").contains("empty"));
    }
}
