//! All that a tool can reach.

use sayso_review::{ErrorKind, Grants, WsPath};
use sayso_workspace::{Opened, ReadLimit, Workspace};

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

    pub(crate) fn workspace(&self) -> &Workspace {
        self.workspace
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

    pub(crate) fn check(&self, path: &WsPath) -> Result<(), ToolError> {
        if self.grants.read.allow(path) { Ok(()) } else { Err(not_granted(path)) }
    }
}

pub(crate) fn not_granted(path: &WsPath) -> ToolError {
    ToolError::new(ErrorKind::FsDenied, format!("reading `{path}` is not granted"))
        .hint(format!("grant it with a pattern that matches, such as --read '{path}'"))
}
