//! What git would leave out, as far as files inside the workspace say so.

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::read::ReadLimit;

/// The name of a file of patterns.
pub(crate) const IGNORE_FILE: &str = ".gitignore";

/// What git keeps for itself: a directory, or a file that says where the directory is.
pub(crate) const GIT: &str = ".git";

/// An ignore file larger than this is not a list of patterns.
pub(crate) const IGNORE_FILE_LIMIT: ReadLimit = ReadLimit(1024 * 1024);

/// No source tree is this deep; a tree made to exhaust the stack is.
pub(crate) const DEEPEST: usize = 256;

/// The patterns that hold in a directory: those of the directories above it, then its own.
#[derive(Debug, Default)]
pub(crate) struct Ignores {
    lists: Vec<Gitignore>,
}

impl Ignores {
    /// How many lists there are, to come back to with [`Ignores::leave`].
    pub(crate) fn depth(&self) -> usize {
        self.lists.len()
    }

    /// Adds the patterns of a file that stands in `directory`, a path from the workspace's root.
    pub(crate) fn enter(&mut self, directory: &str, bytes: &[u8]) {
        // The patterns are matched against paths from the workspace's root; the builder only needs to know where they stand.
        let mut builder = GitignoreBuilder::new(directory);
        for line in String::from_utf8_lossy(bytes).trim_start_matches('\u{feff}').lines() {
            // A line that is no pattern ignores nothing, as in git.
            let _ = builder.add_line(None, line);
        }
        // One without patterns would only be asked for nothing.
        self.lists.extend(builder.build().ok().filter(|list| !list.is_empty()));
    }

    /// Forgets the lists that were added since there were so many.
    pub(crate) fn leave(&mut self, depth: usize) {
        self.lists.truncate(depth);
    }

    /// Whether an entry is left out, its directory not being so. The innermost file that says something decides.
    pub(crate) fn is_ignored(&self, path: &str, kind: Ignorable) -> bool {
        let matches = self.lists.iter().rev().map(|list| list.matched(path, kind == Ignorable::Directory));
        matches.into_iter().find(|matched| !matched.is_none()).is_some_and(|matched| matched.is_ignore())
    }
}

/// What patterns tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignorable {
    /// What a pattern that ends in a slash is about.
    Directory,
    /// Anything else.
    Other,
}
