//! Saved edits on disk: those of a session and of the workspace beside the journal, those for everywhere in sayso's own folder.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sayso_review::{ContentHash, ErrorKind};
use sayso_wire::{Captured, ModelRequest, Override, Overrides, Scope};
use thiserror::Error;

use super::lock;
use super::redacted::holds_credential;

/// Why saved edits could not be kept or read.
#[derive(Debug, Error)]
#[error("what is kept in `{}` cannot be {verb}: {reason}", path.display())]
pub struct SavedError {
    path: PathBuf,
    verb: &'static str,
    reason: String,
    kind: ErrorKind,
    hint: &'static str,
}

const OF_DISK: &str = "look at the disk's free space and the file's permissions, or move the file away";
const OF_CREDENTIAL: &str = "the edit counts for this request; make it in each request, without `--from-now-on`";

impl SavedError {
    pub(crate) fn new(path: &Path, verb: &'static str, reason: String) -> Self {
        Self { path: path.to_owned(), verb, reason, kind: ErrorKind::Unavailable, hint: OF_DISK }
    }

    /// An edit that says a credential.
    fn of_credential(path: &Path, edit: &Override) -> Self {
        let reason = format!("the edit of `{}` says a credential, and those are kept in no file", edit.anchor.path);
        Self { kind: ErrorKind::InvalidArgs, hint: OF_CREDENTIAL, ..Self::new(path, "written", reason) }
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        self.hint
    }
}

/// From the widest on.
const SCOPES: [Scope; 3] = [Scope::Global, Scope::Workspace, Scope::Session];

/// The saved edits of all scopes. Nobody who reads them waits for a disk that is written to.
#[derive(Debug)]
pub(crate) struct SavedEdits {
    /// The journal's folder, and sayso's own.
    workspace: PathBuf,
    global: PathBuf,
    /// What was read or written, by file.
    read: Mutex<BTreeMap<PathBuf, Vec<Override>>>,
    /// Held by whoever changes them, from reading to writing.
    writing: Mutex<()>,
}

/// Which edits of a request are saved.
#[derive(Debug)]
pub(crate) struct Edits<'r> {
    pub(crate) request: &'r ModelRequest,
    /// Those since it was like this; all, if that is not said.
    pub(crate) since: Option<&'r ModelRequest>,
    /// Whether those are, too, that another scope has just so.
    pub(crate) again: Again,
    /// Those of so many sections, from the first on; of all, if that is not said.
    pub(crate) preview_limit: Option<usize>,
}

/// Whether an edit is saved in one scope that is saved in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// It is: a person says where it is to be.
    Yes,
    /// It is not: where it is to be, a person has said.
    No,
}

impl SavedEdits {
    pub(crate) fn new(journal: &Path, home: &Path) -> Self {
        Self {
            workspace: journal.join("overrides"),
            global: home.join("overrides.json"),
            read: Mutex::default(),
            writing: Mutex::default(),
        }
    }

    fn path(&self, scope: Scope, session: &str) -> PathBuf {
        match scope {
            Scope::Global => self.global.clone(),
            Scope::Workspace => self.workspace.join("workspace.json"),
            // Its name may hold anything, and be of any length.
            Scope::Session => {
                self.workspace.join(format!("session-{}.json", ContentHash::of(session.as_bytes()).short()))
            }
        }
    }

    /// The edits of one scope.
    pub(crate) fn of(&self, scope: Scope, session: &str) -> Result<Vec<Override>, SavedError> {
        let path = self.path(scope, session);
        // Those for everywhere another engine may have written since.
        if scope != Scope::Global
            && let Some(edits) = lock(&self.read).get(&path)
        {
            return Ok(edits.clone());
        }
        let edits = read(&path)?;
        lock(&self.read).entry(path).or_insert_with(|| edits.clone());
        Ok(edits)
    }

    /// The edits that count for a session, of all scopes.
    pub(crate) fn all(&self, session: &str, preview_limit: Option<usize>) -> Result<Overrides, SavedError> {
        let mut edits = Vec::new();
        for scope in SCOPES {
            edits.extend(self.of(scope, session)?);
        }
        Ok(Overrides { edits, preview_limit })
    }

    /// How many edits count in every session of the workspace.
    pub(crate) fn everywhere(&self) -> Result<usize, SavedError> {
        Ok(self.of(Scope::Global, "")?.len() + self.of(Scope::Workspace, "")?.len())
    }

    /// How many edits are a session's own.
    pub(crate) fn of_session(&self, session: &str) -> Result<usize, SavedError> {
        Ok(self.of(Scope::Session, session)?.len())
    }

    /// Saves what was edited in a request, and says what became of those of its scope and how many there are now.
    pub(crate) fn capture(
        &self,
        edits: &Edits<'_>,
        scope: Scope,
        session: &str,
        now: i64,
    ) -> Result<(Captured, usize), SavedError> {
        let _writing = lock(&self.writing);
        let path = self.path(scope, session);
        let mut overrides = Overrides { edits: self.of(scope, session)?, preview_limit: edits.preview_limit };
        let elsewhere = match edits.again {
            Again::Yes => Vec::new(),
            // What cannot be read there holds up nothing here.
            Again::No => SCOPES
                .iter()
                .filter(|other| **other != scope)
                .flat_map(|other| self.of(*other, session).unwrap_or_default())
                .collect(),
        };
        let mut captured = overrides.capture_since(edits.since, edits.request, &elsewhere, scope, now);
        if let (Some(edit), Again::Yes) = (overrides.edits.iter().find(|edit| holds_credential(edit)), edits.again) {
            return Err(SavedError::of_credential(&path, edit));
        }
        // Captured edits that say a credential are for their request alone.
        let count = overrides.edits.len();
        overrides.edits.retain(|edit| !holds_credential(edit));
        captured.saved -= captured.saved.min(count - overrides.edits.len());
        if captured != Captured::default() {
            write(&path, &overrides.edits)?;
        }
        let total = overrides.edits.len();
        lock(&self.read).insert(path, overrides.edits);
        Ok((captured, total))
    }

    /// Removes the edits of a scope, and says how many there were.
    pub(crate) fn remove(&self, scope: Scope, session: &str) -> Result<usize, SavedError> {
        let _writing = lock(&self.writing);
        let path = self.path(scope, session);
        let count = self.of(scope, session)?.len();
        if count > 0 {
            write(&path, &[] as &[Override])?;
        }
        lock(&self.read).insert(path, Vec::new());
        Ok(count)
    }
}

fn read(path: &Path) -> Result<Vec<Override>, SavedError> {
    let failed = |reason: String| SavedError::new(path, "read", reason);
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Writes a file whole or not at all; what is in it is the user's alone.
pub(crate) fn write(path: &Path, value: &(impl serde::Serialize + ?Sized)) -> Result<(), SavedError> {
    let failed = |reason: String| SavedError::new(path, "written", reason);
    let attempt = || -> std::io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder)?;
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(&serde_json::to_vec(value).map_err(std::io::Error::other)?)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    attempt().map_err(|error| failed(error.to_string()))
}
