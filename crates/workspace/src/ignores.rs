//! Ignore patterns of git, as far as files inside the workspace contain them.

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::read::ReadLimit;

pub(crate) const IGNORE_FILE: &str = ".gitignore";

/// Git's own directory, or a file with its path.
pub(crate) const GIT: &str = ".git";

/// A larger ignore file is not a list of patterns.
pub(crate) const IGNORE_FILE_LIMIT: ReadLimit = ReadLimit(1024 * 1024);

/// Maximum depth of a tree. A deeper one was made to exhaust the stack.
pub(crate) const MAX_DEPTH: usize = 256;

/// Patterns in force in a directory, from the outermost directory to the innermost.
#[derive(Debug, Default)]
pub(crate) struct Ignores {
    lists: Vec<Gitignore>,
}

impl Ignores {
    /// Returns the number of pattern lists, for [`Ignores::leave`].
    pub(crate) fn depth(&self) -> usize {
        self.lists.len()
    }

    /// Adds the patterns of an ignore file in `directory`, a path from the workspace's root.
    pub(crate) fn enter(&mut self, directory: &str, bytes: &[u8]) {
        // Paths are matched from the workspace's root; the builder only needs the directory of the patterns.
        let mut builder = GitignoreBuilder::new(directory);
        for line in String::from_utf8_lossy(bytes).trim_start_matches('\u{feff}').lines() {
            // As in git, an invalid pattern ignores nothing.
            let _ = builder.add_line(None, line);
        }
        // An empty list would only cost time.
        self.lists.extend(builder.build().ok().filter(|list| !list.is_empty()));
    }

    /// Removes the lists beyond a number.
    pub(crate) fn leave(&mut self, depth: usize) {
        self.lists.truncate(depth);
    }

    /// `true` if patterns ignore an entry of a directory that is not ignored. The innermost matching list decides.
    pub(crate) fn is_ignored(&self, path: &str, kind: Ignorable) -> bool {
        let matches = self.lists.iter().rev().map(|list| list.matched(path, kind == Ignorable::Directory));
        matches.into_iter().find(|matched| !matched.is_none()).is_some_and(|matched| matched.is_ignore())
    }
}

/// Kind of an entry, as far as patterns distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignorable {
    /// A pattern with a trailing slash matches only directories.
    Directory,
    Other,
}
