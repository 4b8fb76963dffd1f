//! The files below a directory, as a person who works there thinks of them: without what git ignores.

use sayso_review::WsPath;

use crate::confine::{OpenError, Opened, Workspace};
use crate::ignores::{DEEPEST, GIT, IGNORE_FILE, IGNORE_FILE_LIMIT, Ignorable, Ignores};
use crate::listing::EntryKind;

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

impl Workspace {
    /// Collects the files below `directory`. Follows no symlinks; leaves out `.git` and what `.gitignore` files from the root
    /// down name.
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
        most: usize,
        walk: &mut Walk,
    ) -> Result<(), OpenError> {
        if directory.resolved.names().count() > DEEPEST {
            walk.truncated = true;
            return Ok(());
        }
        let depth = ignores.depth();
        self.enter_ignores(&directory.resolved, ignores);
        // A directory that vanished in the meantime has no files, save the one that was asked for.
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
