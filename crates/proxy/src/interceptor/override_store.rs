//! Overrides on disk: session and workspace scope beside the journal, global scope in the user's folder.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sayso_review::{ContentHash, ErrorKind};
use sayso_wire::{CaptureCounts, ModelRequest, Override, Overrides, Scope};
use thiserror::Error;

use super::lock;
use crate::bodies::contains_credential;

/// Failure to read or write a file with overrides, turn edits or agent endpoints.
#[derive(Debug, Error)]
#[error("cannot {operation} `{}`: {reason}", path.display())]
pub struct StateFileError {
    path: PathBuf,
    operation: &'static str,
    reason: String,
    kind: ErrorKind,
    hint: &'static str,
}

const DISK_HINT: &str = "check the free space and the file's permissions, or move the file away";
const CREDENTIAL_HINT: &str = "the edit applies to this request; repeat it in each request, without `--from-now-on`";

impl StateFileError {
    pub(crate) fn new(path: &Path, operation: &'static str, reason: String) -> Self {
        Self { path: path.to_owned(), operation, reason, kind: ErrorKind::Unavailable, hint: DISK_HINT }
    }

    fn contains_credential(path: &Path, edit: &Override) -> Self {
        let reason =
            format!("the edit of `{}` contains a credential, and credentials are not stored", edit.anchor.path);
        Self { kind: ErrorKind::InvalidArgs, hint: CREDENTIAL_HINT, ..Self::new(path, "write", reason) }
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub fn hint(&self) -> &'static str {
        self.hint
    }
}

/// All scopes, in the order in which their overrides are applied.
const SCOPES: [Scope; 3] = [Scope::Global, Scope::Workspace, Scope::Session];

/// The overrides of all scopes. Readers never wait for a write.
#[derive(Debug)]
pub(super) struct OverrideStore {
    workspace: PathBuf,
    global: PathBuf,
    /// Contents by file. The global file is never cached: another engine may write it.
    cache: Mutex<BTreeMap<PathBuf, Vec<Override>>>,
    /// Held from reading to writing a file.
    write_lock: Mutex<()>,
}

/// Edits of a request that are to be saved.
#[derive(Debug)]
pub(super) struct CapturedEdits<'r> {
    pub(super) request: &'r ModelRequest,
    /// Only edits since this state are saved; all if `None`.
    pub(super) since: Option<&'r ModelRequest>,
    pub(super) duplicates: Duplicates,
    /// Only edits of the first sections are saved, up to this number; all if `None`.
    pub(super) preview_limit: Option<usize>,
}

/// Treatment of an edit that another scope has saved already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    /// Saved again: a person chose this scope.
    Keep,
    /// Not saved: a person chose the other scope.
    Skip,
}

impl OverrideStore {
    /// `journal` is the folder of the workspace's journal, `home` the user's folder for all workspaces.
    pub(super) fn new(journal: &Path, home: &Path) -> Self {
        Self {
            workspace: journal.join("overrides"),
            global: home.join("overrides.json"),
            cache: Mutex::default(),
            write_lock: Mutex::default(),
        }
    }

    fn path(&self, scope: Scope, session: &str) -> PathBuf {
        match scope {
            Scope::Global => self.global.clone(),
            Scope::Workspace => self.workspace.join("workspace.json"),
            // A session id may contain any characters and have any length.
            Scope::Session => {
                self.workspace.join(format!("session-{}.json", ContentHash::of(session.as_bytes()).short()))
            }
        }
    }

    /// The overrides of one scope.
    pub(super) fn of(&self, scope: Scope, session: &str) -> Result<Vec<Override>, StateFileError> {
        let path = self.path(scope, session);
        if scope != Scope::Global
            && let Some(edits) = lock(&self.cache).get(&path)
        {
            return Ok(edits.clone());
        }
        let edits = read(&path)?;
        lock(&self.cache).entry(path).or_insert_with(|| edits.clone());
        Ok(edits)
    }

    /// The overrides of all scopes that apply to a session.
    pub(super) fn all(&self, session: &str, preview_limit: Option<usize>) -> Result<Overrides, StateFileError> {
        let mut edits = Vec::new();
        for scope in SCOPES {
            edits.extend(self.of(scope, session)?);
        }
        Ok(Overrides { edits, preview_limit })
    }

    /// Number of overrides that apply to every session of the workspace.
    pub(super) fn count_shared(&self) -> Result<usize, StateFileError> {
        Ok(self.of(Scope::Global, "")?.len() + self.of(Scope::Workspace, "")?.len())
    }

    /// Number of overrides that apply to one session only.
    pub(super) fn count_session(&self, session: &str) -> Result<usize, StateFileError> {
        Ok(self.of(Scope::Session, session)?.len())
    }

    /// Saves edits in a scope. Returns how many were saved or removed, and how many the scope has now.
    pub(super) fn capture(
        &self,
        edits: &CapturedEdits<'_>,
        scope: Scope,
        session: &str,
        now: i64,
    ) -> Result<(CaptureCounts, usize), StateFileError> {
        let _write_lock = lock(&self.write_lock);
        let path = self.path(scope, session);
        let mut overrides = Overrides { edits: self.of(scope, session)?, preview_limit: edits.preview_limit };
        let elsewhere = match edits.duplicates {
            Duplicates::Keep => Vec::new(),
            // An unreadable file of another scope must not prevent saving in this one.
            Duplicates::Skip => SCOPES
                .iter()
                .filter(|other| **other != scope)
                .flat_map(|other| self.of(*other, session).unwrap_or_default())
                .collect(),
        };
        let mut counts = overrides.capture_since(edits.since, edits.request, &elsewhere, scope, now);
        let credential = overrides.edits.iter().find(|edit| contains_credential(edit));
        if let (Some(edit), Duplicates::Keep) = (credential, edits.duplicates) {
            return Err(StateFileError::contains_credential(&path, edit));
        }
        // Edits with a credential apply to their request alone.
        let count = overrides.edits.len();
        overrides.edits.retain(|edit| !contains_credential(edit));
        counts.saved -= counts.saved.min(count - overrides.edits.len());
        if counts != CaptureCounts::default() {
            write(&path, &overrides.edits)?;
        }
        let total = overrides.edits.len();
        lock(&self.cache).insert(path, overrides.edits);
        Ok((counts, total))
    }

    /// Removes the overrides of a scope, and returns their number.
    pub(super) fn remove(&self, scope: Scope, session: &str) -> Result<usize, StateFileError> {
        let _write_lock = lock(&self.write_lock);
        let path = self.path(scope, session);
        let count = self.of(scope, session)?.len();
        if count > 0 {
            write(&path, &[] as &[Override])?;
        }
        lock(&self.cache).insert(path, Vec::new());
        Ok(count)
    }
}

fn read(path: &Path) -> Result<Vec<Override>, StateFileError> {
    let failed = |reason: String| StateFileError::new(path, "read", reason);
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Replaces a file atomically; only the user may read it.
pub(crate) fn write(path: &Path, value: &(impl serde::Serialize + ?Sized)) -> Result<(), StateFileError> {
    let failed = |reason: String| StateFileError::new(path, "write", reason);
    let attempt = || -> std::io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder)?;
        let staged = path.with_extension(format!("{}.new", std::process::id()));
        let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
        file.write_all(&serde_json::to_vec(value).map_err(std::io::Error::other)?)?;
        file.sync_all()?;
        std::fs::rename(&staged, path)
    };
    attempt().map_err(|error| failed(error.to_string()))
}
