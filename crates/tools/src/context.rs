//! All that a tool can reach.

use std::collections::BTreeSet;

use sayso_review::{ErrorKind, Grants, Sight, WsPath, WsPathError};
use sayso_workspace::{Listing, Opened, ReadLimit, Walk, WalkLimit, Workspace};

use crate::error::ToolError;

/// The largest file that a tool reads.
pub const FILE_LIMIT: ReadLimit = ReadLimit(4 * 1024 * 1024);

/// The files of a workspace, as far as they were granted.
#[derive(Debug)]
pub struct Context<'a> {
    workspace: &'a Workspace,
    grants: &'a Grants,
}

impl<'a> Context<'a> {
    /// Narrows a workspace to what was granted.
    pub fn new(workspace: &'a Workspace, grants: &'a Grants) -> Self {
        Self { workspace, grants }
    }

    pub(crate) fn grants(&self) -> &Grants {
        self.grants
    }

    /// A path as an agent wrote it.
    pub(crate) fn locate(&self, path: &str) -> Result<WsPath, ToolError> {
        Ok(self.workspace.locate(path)?)
    }

    /// What may be seen of a directory. A grant such as `src/*.rs` shows those files of `src` and no others; where nothing may be
    /// seen, it is not even told whether the directory exists.
    pub(crate) fn list(&self, path: &WsPath) -> Result<Listing, ToolError> {
        let opened = self.workspace.open_path(path);
        let granted =
            self.check(path).is_ok() && opened.as_ref().is_ok_and(|opened| self.check(&opened.resolved).is_ok());
        let mut listing = match opened.and_then(|opened| opened.list()) {
            Ok(listing) => listing,
            Err(error) => return Err(if self.check(path).is_ok() { error.into() } else { not_granted(path) }),
        };
        listing.entries.retain(|entry| self.check(&entry.path).is_ok());
        if listing.entries.is_empty() && !granted {
            return Err(not_granted(path));
        }
        Ok(listing)
    }

    /// The files below a directory that may be read, and where the directory really is.
    pub(crate) fn walk(&self, path: &WsPath, limit: WalkLimit) -> Result<Walk, ToolError> {
        let granted = self.check(path).is_ok();
        let mut walk = match self.workspace.walk_files(path, limit) {
            Ok(walk) => walk,
            Err(error) => return Err(if granted { error.into() } else { not_granted(path) }),
        };
        walk.files.retain(|file| self.check(file).is_ok());
        let granted = granted && self.check(&walk.root).is_ok();
        // From the root, finding nothing is an answer; elsewhere it would tell that there is such a directory.
        if walk.files.is_empty() && !granted && !path.is_root() {
            return Err(not_granted(path));
        }
        Ok(walk)
    }

    /// A path as an agent wrote it, if it may be read by that name.
    pub(crate) fn readable(&self, path: &str) -> Result<WsPath, ToolError> {
        let path = self.workspace.locate(path)?;
        self.check(&path)?;
        Ok(path)
    }

    /// Opens a path if what it leads to may be read, whatever symlinks are on the way.
    pub(crate) fn open(&self, path: &WsPath) -> Result<Opened, ToolError> {
        self.check(path)?;
        let opened = self.workspace.open_path(path)?;
        self.check(&opened.resolved)?;
        Ok(opened)
    }

    /// A path as an agent wrote it, for those who check grants by themselves.
    pub(crate) fn workspace_path(&self, path: &str) -> Result<WsPath, WsPathError> {
        self.workspace.locate(path)
    }

    /// Looks at files that are to be changed: each has to be granted for reading, since the answer tells what is in it, and for
    /// writing, by its name and by where it leads.
    pub(crate) fn look(&self, paths: BTreeSet<WsPath>) -> Result<Sight, ToolError> {
        for path in &paths {
            self.check_change(path)?;
        }
        let sight = self.workspace.look(paths, FILE_LIMIT);
        for seen in sight.files.values() {
            self.check_change(&seen.location)?;
        }
        Ok(sight)
    }

    fn check_change(&self, path: &WsPath) -> Result<(), ToolError> {
        self.check(path)?;
        if self.grants.write.allow(path) {
            return Ok(());
        }
        Err(ToolError::new(ErrorKind::FsDenied, format!("changing `{path}` is not granted"))
            .hint(format!("grant it with a pattern that matches, such as --write '{path}'")))
    }

    fn check(&self, path: &WsPath) -> Result<(), ToolError> {
        if self.grants.read.allow(path) { Ok(()) } else { Err(not_granted(path)) }
    }
}

fn not_granted(path: &WsPath) -> ToolError {
    ToolError::new(ErrorKind::FsDenied, format!("reading `{path}` is not granted"))
        .hint(format!("grant it with a pattern that matches, such as --read '{path}'"))
}
