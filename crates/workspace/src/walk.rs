//! Walk over the files below a directory, without those that git ignores.

use sayso_review::WsPath;

use crate::confine::{OpenError, Opened, Workspace};
use crate::ignores::{GIT, IGNORE_FILE, IGNORE_FILE_LIMIT, Ignorable, Ignores, MAX_DEPTH};
use crate::listing::EntryKind;

/// Maximum number of files of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkLimit(pub usize);

/// Result of [`Workspace::walk_files`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Start directory, after all symlinks.
    pub root: WsPath,
    /// Regular files, sorted by path.
    pub files: Vec<WsPath>,
    /// `true` if the limit ended the walk.
    pub truncated: bool,
}

impl Workspace {
    /// Collects the files below `directory`. Follows no symlinks. Omits `.git` and the files that `.gitignore` files
    /// from the root down ignore.
    pub fn walk_files(&self, directory: &WsPath, limit: WalkLimit) -> Result<Walk, OpenError> {
        let start = self.open_path(directory)?;
        let mut walk = Walk { root: start.resolved.clone(), files: Vec::new(), truncated: false };
        let mut ignores = Ignores::default();
        let mut above = WsPath::root();
        for name in start.resolved.names() {
            self.enter_ignores(&above, &mut ignores);
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
        ignores: &mut Ignores,
        max_files: usize,
        walk: &mut Walk,
    ) -> Result<(), OpenError> {
        if directory.resolved.names().count() > MAX_DEPTH {
            walk.truncated = true;
            return Ok(());
        }
        let depth = ignores.depth();
        self.enter_ignores(&directory.resolved, ignores);
        // A directory that vanished meanwhile has no files. Only an error of the start directory is reported.
        let entries = match directory.list() {
            Ok(listing) => listing.entries,
            Err(error) if directory.resolved == walk.root => return Err(error),
            Err(_) => Vec::new(),
        };
        for entry in entries {
            let kind = if entry.kind == EntryKind::Directory { Ignorable::Directory } else { Ignorable::Other };
            if entry.name == GIT || ignores.is_ignored(entry.path.as_str(), kind) {
                continue;
            }
            match entry.kind {
                EntryKind::File if walk.files.len() == max_files => walk.truncated = true,
                EntryKind::File => walk.files.push(entry.path),
                EntryKind::Directory => {
                    // Directories that cannot be opened are skipped.
                    if let Ok(below) = self.open_path(&entry.path) {
                        self.descend(&below, ignores, max_files, walk)?;
                    }
                }
                EntryKind::Symlink | EntryKind::Special => {}
            }
            if walk.truncated {
                break;
            }
        }
        ignores.leave(depth);
        Ok(())
    }

    fn enter_ignores(&self, directory: &WsPath, ignores: &mut Ignores) {
        let opened = directory.join(IGNORE_FILE).and_then(|path| self.open_path(&path).ok());
        if let Some(bytes) = opened.and_then(|opened| opened.read(IGNORE_FILE_LIMIT).ok()) {
            ignores.enter(directory.as_str(), &bytes);
        }
    }
}
