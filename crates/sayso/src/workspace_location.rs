//! The workspace that a command is about, and the folder of its records.

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sayso_gate::{GateError, RecoveredChange};
use sayso_review::{ContentHash, ErrorKind};
use sayso_workspace::Workspace;

use crate::cli::CommonOptions;
use crate::error::CliError;
use crate::output::say;

/// The file in a records folder that names its workspace.
const ROOT_FILE: &str = "workspace";
/// Characters of the workspace's name in the name of its records folder.
const MAX_NAME_CHARACTERS: usize = 32;

/// A workspace and the folders of its records.
#[derive(Clone, Debug)]
pub(crate) struct WorkspaceLocation {
    pub(crate) root: PathBuf,
    /// The folder of the journal.
    pub(crate) folder: PathBuf,
    /// The folder of all of sayso's records.
    pub(crate) home: PathBuf,
}

impl WorkspaceLocation {
    /// Finds the workspace that the options name, or the one around the working directory.
    pub(crate) fn find(options: &CommonOptions) -> Result<Self, CliError> {
        let home = state_home()?;
        if let Some(root) = &options.workspace {
            return Ok(Self::new(resolve(root)?, home));
        }
        Ok(Self::around(&resolve(Path::new("."))?, &home))
    }

    /// Returns the workspace whose root is this directory.
    pub(crate) fn at(root: &Path) -> Result<Self, CliError> {
        Ok(Self::new(resolve(root)?, state_home()?))
    }

    /// Returns the workspace that contains a directory.
    pub(crate) fn around(directory: &Path, home: &Path) -> Self {
        let at = |root: &Path| Self::new(root.to_owned(), home.to_owned());
        // A repository is one workspace, from whichever subdirectory a command is called.
        if let Some(top) = directory.ancestors().find(|root| root.join(".git").exists()) {
            return at(top);
        }
        // Without a repository, the nearest directory with a history.
        directory.ancestors().map(at).find(Self::has_history).unwrap_or_else(|| at(directory))
    }

    fn new(root: PathBuf, home: PathBuf) -> Self {
        let name = root.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(MAX_NAME_CHARACTERS).collect();
        let hash = ContentHash::of(root.as_os_str().as_encoded_bytes()).short();
        Self { folder: home.join("workspaces").join(format!("{name}-{hash}")), root, home }
    }

    /// `true` if the workspace has a journal.
    pub(crate) fn has_history(&self) -> bool {
        self.folder.join("journal.db").is_file()
    }

    /// Returns the directory for a command: `named` from the working directory. Outside the workspace, from the root.
    pub(crate) fn command_directory(&self, named: Option<&str>) -> String {
        let working = Path::new(".").canonicalize().ok().filter(|directory| directory.starts_with(&self.root));
        let working = working.unwrap_or_else(|| self.root.clone());
        let directory = named.map_or_else(|| working.clone(), |named| working.join(named));
        // A directory that does not exist fails when the command starts.
        let directory = directory.canonicalize().unwrap_or(directory);
        directory.to_string_lossy().into_owned()
    }

    /// Returns the workspaces below this one that have a history of their own.
    pub(crate) fn nested(&self) -> Vec<Self> {
        let mut nested = Vec::new();
        for folder in std::fs::read_dir(self.home.join("workspaces")).into_iter().flatten().flatten() {
            let Some(root) = recorded_root(&folder.path()) else { continue };
            let location = Self::new(root, self.home.clone());
            let is_below = location.root != self.root && location.root.starts_with(&self.root);
            if is_below && location.has_history() && location.root.is_dir() {
                nested.push(location);
            }
        }
        nested.sort_by(|one, other| one.root.cmp(&other.root));
        nested
    }

    /// Writes the root into the records folder, so that [`Self::nested`] and `sayso doctor` find it. Best effort.
    pub(crate) fn record_root(&self) {
        let file = self.folder.join(ROOT_FILE);
        if self.folder.is_dir() && !file.exists() {
            let _ = std::fs::write(file, self.root.as_os_str().as_encoded_bytes());
        }
    }

    /// Names the workspace, unless it is the working directory.
    pub(crate) fn announce(&self) {
        if Path::new(".").canonicalize().ok().as_ref() != Some(&self.root) {
            say(&format!("note: in the workspace {}", self.root.display()));
        }
    }

    pub(crate) fn open(&self) -> Result<Workspace, CliError> {
        let workspace = Workspace::open(&self.root)
            .map_err(|error| CliError::invalid_input(error.to_string()).hint("name a directory with --workspace"))?;
        Ok(workspace.protecting(&self.home))
    }
}

fn resolve(path: &Path) -> Result<PathBuf, CliError> {
    path.canonicalize().map_err(|error| {
        CliError::invalid_input(format!("cannot use `{}` as a workspace", path.display()))
            .caused_by(&error)
            .hint("name a directory with --workspace")
    })
}

/// Returns the workspace whose records a folder holds. `None` if none is recorded.
pub(crate) fn recorded_root(folder: &Path) -> Option<PathBuf> {
    std::fs::read(folder.join(ROOT_FILE)).ok().map(|root| PathBuf::from(std::ffi::OsString::from_vec(root)))
}

/// Reports a change that a crash interrupted.
pub(crate) fn report_recovery(recovered: &RecoveredChange) {
    let change = recovered.change;
    let result =
        if recovered.recovery.finished { "it was complete" } else { "it was taken back, so the files are as before" };
    say(&format!("note: change {change} was interrupted earlier; {result}"));
    for path in &recovered.recovery.skipped_files {
        say(&format!("note: `{path}` was changed by somebody else meanwhile and was left alone"));
    }
    for path in &recovered.recovery.rescued_files {
        say(&format!("note: somebody's work was displaced in that moment; it is saved as `{path}`"));
    }
}

/// The present time, in milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Fails if the clock is before 1970 or after 9999. HTTP dates and the journal cannot represent such times.
pub(crate) fn check_clock() -> Result<(), CliError> {
    /// The first second of the year 10000, since 1970.
    const YEAR_10000_SECONDS: u64 = 253_402_300_800;
    let era = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) if since.as_secs() < YEAR_10000_SECONDS => return Ok(()),
        Ok(_) => "after the year 9999",
        Err(_) => "before 1970",
    };
    let message = format!("cannot record changes: the clock of this machine is {era}");
    Err(CliError::new(ErrorKind::Unavailable, message).hint("set the clock, then run the command again"))
}

/// Returns the folder of all of sayso's records.
pub(crate) fn state_home() -> Result<PathBuf, CliError> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    let missing = || {
        CliError::invalid_input("there is no place for sayso's records")
            .because("neither XDG_STATE_HOME nor HOME is set to an absolute path")
            .hint("set HOME, or XDG_STATE_HOME to a directory outside the workspace")
    };
    let state = state.ok_or_else(missing)?.join("sayso");
    // Resolved, so that a folder inside the workspace is recognised and protected.
    Ok(state.canonicalize().unwrap_or(state))
}

impl From<GateError> for CliError {
    fn from(error: GateError) -> Self {
        Self::new(error.kind(), error.to_string()).optional_hint(error.hint())
    }
}
