//! Where a workspace's records are.

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sayso_gate::{GateError, RecoveredChange};
use sayso_review::{ContentHash, ErrorKind};
use sayso_workspace::Workspace;

use crate::cli::Place;
use crate::failure::Failure;
use crate::output::say;

/// The file that names the workspace whose records a folder holds.
const ROOT: &str = "workspace";

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
        let of = |root: &Path| Self::of(root.to_owned(), home.to_owned());
        // A repository is one workspace, wherever in it somebody is.
        if let Some(top) = here.ancestors().find(|root| root.join(".git").exists()) {
            return of(top);
        }
        // Elsewhere it is the one whose history is already kept.
        here.ancestors().map(of).find(Self::has_history).unwrap_or_else(|| of(here))
    }

    /// Whether anything was ever recorded.
    pub(crate) fn has_history(&self) -> bool {
        self.folder.join("journal.db").is_file()
    }

    /// Where a command runs: in a directory as seen from the one that the user is in. Outside the workspace, as seen from its root.
    pub(crate) fn directory(&self, named: Option<&str>) -> String {
        let here = Path::new(".").canonicalize().ok().filter(|here| here.starts_with(&self.root));
        let here = here.unwrap_or_else(|| self.root.clone());
        let directory = named.map_or_else(|| here.clone(), |named| here.join(named));
        // Whoever starts the command says what is wrong with one that is not there.
        let directory = directory.canonicalize().unwrap_or(directory);
        directory.to_string_lossy().into_owned()
    }

    /// The workspaces below this one that have a history of their own.
    pub(crate) fn nested(&self) -> Vec<Self> {
        let mut nested = Vec::new();
        for folder in std::fs::read_dir(self.home.join("workspaces")).into_iter().flatten().flatten() {
            let Some(root) = root_of(&folder.path()) else { continue };
            let state = Self::of(root, self.home.clone());
            if state.root != self.root
                && state.root.starts_with(&self.root)
                && state.has_history()
                && state.root.is_dir()
            {
                nested.push(state);
            }
        }
        nested.sort_by(|one, other| one.root.cmp(&other.root));
        nested
    }

    /// Writes down whose records are in the folder, so that they are found from elsewhere. Nothing depends on it.
    pub(crate) fn remember(&self) {
        let file = self.folder.join(ROOT);
        if self.folder.is_dir() && !file.exists() {
            let _ = std::fs::write(file, self.root.as_os_str().as_encoded_bytes());
        }
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

/// The workspace whose records a folder holds, if that was written down.
pub(crate) fn root_of(folder: &Path) -> Option<PathBuf> {
    std::fs::read(folder.join(ROOT)).ok().map(|root| PathBuf::from(std::ffi::OsString::from_vec(root)))
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

/// Fails if the clock says a time that dates cannot be written of: HTTP has none before 1970 or after 9999, and neither has a journal
/// use for them.
pub(crate) fn check_clock() -> Result<(), Failure> {
    /// The first second of the year 10000.
    const TOO_LATE: u64 = 253_402_300_800;
    let says = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) if since.as_secs() < TOO_LATE => return Ok(()),
        Ok(_) => "after the year 9999",
        Err(_) => "before 1970",
    };
    let text = format!("the clock of this machine says that it is {says}, so that nothing can be recorded");
    Err(Failure::of(ErrorKind::Unavailable, text).hint("set the clock, then run it again"))
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
