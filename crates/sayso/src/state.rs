//! Where a workspace's records are.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sayso_gate::{GateError, RecoveredChange};
use sayso_review::{ContentHash, ErrorKind};
use sayso_workspace::Workspace;

use crate::cli::Place;
use crate::failure::Failure;
use crate::output::say;

/// A workspace and the folder of its journal.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) root: PathBuf,
    pub(crate) folder: PathBuf,
    /// Where all of sayso's records are.
    pub(crate) home: PathBuf,
}

impl State {
    /// Finds the workspace that a command is about.
    pub(crate) fn find(place: &Place) -> Result<Self, Failure> {
        let home = state_home()?;
        let real = |path: &Path| {
            path.canonicalize().map_err(|error| {
                Failure::bad_input(format!("`{}` cannot be used as a workspace", path.display()))
                    .why(&error)
                    .hint("name a directory with --workspace")
            })
        };
        if let Some(root) = &place.workspace {
            return Ok(Self::of(real(root)?, home));
        }
        Ok(Self::around(&real(Path::new("."))?, &home))
    }

    /// The workspace that is exactly this directory.
    pub(crate) fn at(root: &Path) -> Result<Self, Failure> {
        let real = root.canonicalize().map_err(|error| {
            Failure::bad_input(format!("`{}` cannot be used as a workspace", root.display())).why(&error)
        })?;
        Ok(Self::of(real, state_home()?))
    }

    /// The workspace that a directory is in.
    pub(crate) fn around(here: &Path, home: &Path) -> Self {
        // From a directory below, the workspace is the one whose history is already kept.
        // A repository is one's own, whatever its surroundings are.
        let mut inside = true;
        let roots = here.ancestors().take_while(|root| std::mem::replace(&mut inside, !root.join(".git").exists()));
        let known = roots.map(|root| Self::of(root.to_owned(), home.to_owned())).find(Self::has_history);
        known.unwrap_or_else(|| Self::of(here.to_owned(), home.to_owned()))
    }

    /// Whether anything was ever recorded.
    pub(crate) fn has_history(&self) -> bool {
        self.folder.join("journal.db").is_file()
    }

    /// Says which workspace this is about, where that is not the directory one is in.
    pub(crate) fn tell_where(&self) {
        if Path::new(".").canonicalize().ok().as_ref() != Some(&self.root) {
            say(&format!("note: in the workspace {}", self.root.display()));
        }
    }

    fn of(root: PathBuf, home: PathBuf) -> Self {
        let name = root.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        let hash = ContentHash::of(root.as_os_str().as_encoded_bytes()).short();
        Self { folder: home.join("workspaces").join(format!("{name}-{hash}")), root, home }
    }

    pub(crate) fn workspace(&self) -> Result<Workspace, Failure> {
        let workspace = Workspace::open(&self.root)
            .map_err(|error| Failure::bad_input(error.to_string()).hint("name a directory with --workspace"))?;
        Ok(workspace.protecting(&self.home))
    }
}

pub(crate) fn tell(recovered: &RecoveredChange) {
    let change = recovered.change;
    let what =
        if recovered.recovery.finished { "it was complete" } else { "it was taken back, so the files are as before" };
    say(&format!("note: change {change} was interrupted earlier; {what}"));
    for path in &recovered.recovery.left_alone {
        say(&format!("note: `{path}` was changed by somebody else meanwhile and was left alone"));
    }
    for path in &recovered.recovery.saved {
        say(&format!("note: somebody's work was displaced in that moment; it is saved as `{path}`"));
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn state_home() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    let none = || {
        Failure::bad_input("there is no place for sayso's records")
            .why(&"neither XDG_STATE_HOME nor HOME is set to an absolute path")
            .hint("set HOME, or XDG_STATE_HOME to a directory outside the workspace")
    };
    let state = state.ok_or_else(none)?.join("sayso");
    // Real, so that it is recognised should it lie inside the workspace.
    Ok(state.canonicalize().unwrap_or(state))
}

impl From<GateError> for Failure {
    fn from(error: GateError) -> Self {
        let failure = Self::of(error.kind(), error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// The exit code of a denial.
pub(crate) const DENIED: u8 = 1;
/// The exit code of what a rule refuses.
pub(crate) const REFUSED: u8 = 3;
/// The kind of what could not be written, for its exit code.
pub(crate) const FAILED: ErrorKind = ErrorKind::Unavailable;
/// The kind of what went stale, for its exit code.
pub(crate) const STALE: ErrorKind = ErrorKind::Stale;
