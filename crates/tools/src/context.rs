//! Access of tools to files.

use std::collections::BTreeSet;

use sayso_diff::encode_like;
use sayso_review::{ErrorKind, FileState, Grants, Observation, WsPath, WsPathError};
use sayso_workspace::{Listing, Opened, ReadLimit, Walk, WalkLimit, Workspace};

use crate::error::ToolError;
use crate::read_log::{ReadLog, ReadState};

/// Maximum size of a file that a tool reads.
pub const FILE_LIMIT: ReadLimit = ReadLimit(4 * 1024 * 1024);

/// Unsaved texts of editors.
pub trait UnsavedBuffers: std::fmt::Debug + Send + Sync {
    /// Returns the unsaved text of a file, or `None` if no editor has one. `location` is the path after all symlinks. Searches
    /// call it for every file, so it must not wait for an editor.
    fn text(&self, location: &WsPath) -> Option<String>;
}

/// Restriction of reads beyond the grants, such as rules that deny single files.
pub trait ReadFilter: std::fmt::Debug + Send + Sync {
    /// `true` if the file may be read. Searches call it for every file. Paths are as named and after all symlinks.
    fn allows(&self, path: &WsPath) -> bool;
}

/// Content of a file as its user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileContent {
    /// Path after all symlinks.
    pub(crate) location: WsPath,
    pub(crate) bytes: Vec<u8>,
    pub(crate) source: ContentSource,
}

/// Source of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentSource {
    Disk,
    /// The unsaved text of an editor, in the format of the file on disk.
    Editor,
}

/// The granted files of a workspace, with unsaved texts of editors.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    workspace: &'a Workspace,
    grants: &'a Grants,
    buffers: Option<&'a dyn UnsavedBuffers>,
    reads: Option<&'a ReadLog>,
    filter: Option<&'a dyn ReadFilter>,
}

impl<'a> Context<'a> {
    /// Creates a context without unsaved texts and without a log of reads.
    pub fn new(workspace: &'a Workspace, grants: &'a Grants) -> Self {
        Self { workspace, grants, buffers: None, reads: None, filter: None }
    }

    /// Reads files through the unsaved texts of editors.
    #[must_use]
    pub fn with_buffers(self, buffers: &'a dyn UnsavedBuffers) -> Self {
        Self { buffers: Some(buffers), ..self }
    }

    /// Records reads in a log, and compares files with it before a change.
    #[must_use]
    pub fn with_reads(self, reads: &'a ReadLog) -> Self {
        Self { reads: Some(reads), ..self }
    }

    /// Leaves files out that the filter does not allow. Naming one is an error.
    #[must_use]
    pub fn with_filter(self, filter: &'a dyn ReadFilter) -> Self {
        Self { filter: Some(filter), ..self }
    }

    pub(crate) fn grants(&self) -> &Grants {
        self.grants
    }

    /// Resolves a path from arguments, without a check of grants.
    pub(crate) fn locate(&self, path: &str) -> Result<WsPath, ToolError> {
        Ok(self.workspace.locate(path)?)
    }

    /// Lists the granted entries of a directory. The grant `src/*.rs` shows only these files of `src`. If no entry is granted, the
    /// error does not reveal whether the directory exists.
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

    /// Returns the granted files below a directory, and the resolved path of the directory.
    pub(crate) fn walk(&self, path: &WsPath, limit: WalkLimit) -> Result<Walk, ToolError> {
        let granted = self.check(path).is_ok();
        let mut walk = match self.workspace.walk_files(path, limit) {
            Ok(walk) => walk,
            Err(error) => return Err(if granted { error.into() } else { not_granted(path) }),
        };
        walk.files.retain(|file| self.check(file).is_ok());
        let granted = granted && self.check(&walk.root).is_ok();
        // Below the root, an empty result would reveal that the directory exists.
        if walk.files.is_empty() && !granted && !path.is_root() {
            return Err(not_granted(path));
        }
        Ok(walk)
    }

    /// Resolves a path from arguments and checks the grant for reading that name.
    pub(crate) fn readable(&self, path: &str) -> Result<WsPath, ToolError> {
        let path = self.workspace.locate(path)?;
        self.check(&path)?;
        Ok(path)
    }

    /// `true` if reading the path is granted.
    pub(crate) fn is_readable(&self, path: &WsPath) -> bool {
        self.check(path).is_ok()
    }

    /// Opens a path. Both the path and its target after resolving symlinks need a grant for reading.
    pub(crate) fn open(&self, path: &WsPath) -> Result<Opened, ToolError> {
        self.check(path)?;
        let opened = self.workspace.open_path(path)?;
        self.check(&opened.resolved)?;
        Ok(opened)
    }

    /// Reads a file, or the unsaved text that an editor has for it.
    pub(crate) fn read(&self, path: &WsPath) -> Result<FileContent, ToolError> {
        let opened = self.open(path)?;
        let location = opened.resolved.clone();
        let bytes = opened.read(FILE_LIMIT)?;
        Ok(match self.unsaved(&location, &bytes) {
            Some(bytes) => FileContent { location, bytes, source: ContentSource::Editor },
            None => FileContent { location, bytes, source: ContentSource::Disk },
        })
    }

    /// Returns the unsaved text of an editor in the format of the file on disk.
    fn unsaved(&self, location: &WsPath, disk: &[u8]) -> Option<Vec<u8>> {
        let text = self.buffers?.text(location)?;
        Some(encode_like(disk, text).bytes)
    }

    /// Returns a granted directory for a command.
    pub(crate) fn directory(&self, path: &str) -> Result<WsPath, ToolError> {
        let path = self.workspace.locate(path)?;
        // Listing fails for everything but a directory.
        let opened = self.workspace.open_path(&path)?;
        opened.list()?;
        Ok(opened.resolved)
    }

    /// Records a content that the model saw.
    pub(crate) fn record_read(&self, location: &WsPath, content: &[u8]) {
        if let Some(reads) = self.reads {
            reads.record(location, content);
        }
    }

    /// Compares a content with the content that the model saw.
    pub(crate) fn read_state(&self, location: &WsPath, content: &[u8]) -> ReadState {
        self.reads.map_or(ReadState::Unread, |reads| reads.state_of(location, content))
    }

    /// Records the current contents of files that the model just changed. Removed files leave the log.
    pub fn refresh_reads<'p>(&self, paths: impl IntoIterator<Item = &'p WsPath>) {
        let Some(reads) = self.reads else { return };
        for path in paths {
            match self.read(path) {
                Ok(file) => reads.record(&file.location, &file.bytes),
                Err(_) => reads.forget(path),
            }
        }
    }

    /// Resolves a path from arguments without a check of grants, for [`Context::observe`] to check.
    pub(crate) fn workspace_path(&self, path: &str) -> Result<WsPath, WsPathError> {
        self.workspace.locate(path)
    }

    /// Observes files that a proposal changes. Each needs grants for reading, because a diff reveals its content, and for writing,
    /// both for its path and for its target after resolving symlinks.
    pub(crate) fn observe(&self, paths: BTreeSet<WsPath>) -> Result<Observation, ToolError> {
        for path in &paths {
            self.check_change(path)?;
        }
        let mut observation = self.workspace.observe(paths, FILE_LIMIT);
        for file in observation.files.values_mut() {
            self.check_change(&file.location)?;
            if let Ok(FileState::File { content, mode }) = &file.found
                && let Some(unsaved) = self.unsaved(&file.location, content.bytes())
            {
                file.found = Ok(FileState::file(unsaved, *mode));
            }
        }
        Ok(observation)
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
        if !self.grants.read.allow(path) {
            return Err(not_granted(path));
        }
        if self.filter.is_none_or(|filter| filter.allows(path)) { Ok(()) } else { Err(denied_by_rule(path)) }
    }
}

fn denied_by_rule(path: &WsPath) -> ToolError {
    ToolError::new(ErrorKind::ToolDenied, format!("a rule denies reading `{path}`"))
}

fn not_granted(path: &WsPath) -> ToolError {
    ToolError::new(ErrorKind::FsDenied, format!("reading `{path}` is not granted"))
        .hint(format!("grant it with a pattern that matches, such as --read '{path}'"))
}
