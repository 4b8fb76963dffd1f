//! The files below a directory, as a person who works there thinks of them: without what git ignores.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use sayso_review::WsPath;

use crate::confine::{OpenError, Opened, Workspace};
use crate::listing::EntryKind;
use crate::read::ReadLimit;

/// The most files a walk may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkLimit(pub usize);

/// The files that a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Where it started, after all symlinks.
    pub root: WsPath,
    /// Regular files, in order of their paths.
    pub files: Vec<WsPath>,
    /// Whether the limit ended it.
    pub truncated: bool,
}

/// An ignore file larger than this is not a list of patterns.
const IGNORE_FILE_LIMIT: ReadLimit = ReadLimit(1024 * 1024);

/// No source tree is this deep; a tree made to exhaust the stack is.
const DEEPEST: usize = 256;

impl Workspace {
    /// Collects the files below `directory`. Follows no symlinks; leaves out `.git` and what `.gitignore` files from the root
    /// down name.
    pub fn walk_files(&self, directory: &WsPath, limit: WalkLimit) -> Result<Walk, OpenError> {
        let start = self.open_path(directory)?;
        let mut walk = Walk { root: start.resolved.clone(), files: Vec::new(), truncated: false };
        let mut ignores = Vec::new();
        let mut above = WsPath::root();
        for name in start.resolved.names() {
            ignores.extend(self.ignore_file(&above));
            let Some(next) = above.join(name) else { break };
            above = next;
        }
        self.descend(&start, &mut ignores, limit.0, &mut walk)?;
        walk.files.sort();
        Ok(walk)
    }

    fn descend(
        &self,
        directory: &Opened,
        ignores: &mut Vec<Gitignore>,
        most: usize,
        walk: &mut Walk,
    ) -> Result<(), OpenError> {
        if directory.resolved.names().count() > DEEPEST {
            walk.truncated = true;
            return Ok(());
        }
        let depth = ignores.len();
        ignores.extend(self.ignore_file(&directory.resolved));
        // A directory that vanished in the meantime has no files, save the one that was asked for.
        let entries = match directory.list() {
            Ok(listing) => listing.entries,
            Err(error) if directory.resolved == walk.root => return Err(error),
            Err(_) => Vec::new(),
        };
        for entry in entries {
            let is_directory = entry.kind == EntryKind::Directory;
            if entry.name == ".git" || is_ignored(ignores, &entry.path, is_directory) {
                continue;
            }
            match entry.kind {
                EntryKind::File if walk.files.len() == most => walk.truncated = true,
                EntryKind::File => walk.files.push(entry.path),
                EntryKind::Directory => {
                    // What cannot be opened (any more) has no files for us.
                    if let Ok(below) = self.open_path(&entry.path) {
                        self.descend(&below, ignores, most, walk)?;
                    }
                }
                EntryKind::Symlink | EntryKind::Special => {}
            }
            if walk.truncated {
                break;
            }
        }
        ignores.truncate(depth);
        Ok(())
    }

    fn ignore_file(&self, directory: &WsPath) -> Option<Gitignore> {
        let opened = self.open_path(&directory.join(".gitignore")?).ok()?;
        let bytes = opened.read(IGNORE_FILE_LIMIT).ok()?;
        // The patterns are matched against paths from the workspace's root; the builder only needs to know where they stand.
        let mut builder = GitignoreBuilder::new(directory.as_str());
        for line in String::from_utf8_lossy(&bytes).lines() {
            // A line that is no pattern ignores nothing, as in git.
            let _ = builder.add_line(None, line);
        }
        builder.build().ok()
    }
}

/// The innermost file that says something decides.
fn is_ignored(ignores: &[Gitignore], path: &WsPath, is_directory: bool) -> bool {
    for ignore in ignores.iter().rev() {
        let matched = ignore.matched(path.as_str(), is_directory);
        if !matched.is_none() {
            return matched.is_ignore();
        }
    }
    false
}
