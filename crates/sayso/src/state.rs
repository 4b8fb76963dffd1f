//! Where a workspace's records are, and the engine over them.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sayso_gate::{Engine, GateError, History, RecoveredChange};
use sayso_journal::{Journal, OpenJournalError, Options, Reader};
use sayso_review::{ContentHash, ErrorKind};
use sayso_workspace::Workspace;

use crate::cli::Place;
use crate::failure::Failure;
use crate::output::say;

/// How long to wait for another sayso that is writing.
const WAIT: Duration = Duration::from_secs(10);

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
        let here = real(Path::new("."))?;
        // From a directory below, the workspace is the one whose history is already kept.
        // A repository is one's own, whatever its surroundings are.
        let mut inside = true;
        let roots = here.ancestors().take_while(|root| std::mem::replace(&mut inside, !root.join(".git").exists()));
        let known = roots.map(|root| Self::of(root.to_owned(), home.clone())).find(Self::has_history);
        Ok(known.unwrap_or_else(|| Self::of(here, home)))
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

    /// Starts an engine, which first settles what an earlier one was interrupted in.
    pub(crate) fn engine(&self) -> Result<Engine, Failure> {
        self.engine_over(Journal::open(&self.folder, Options { wait: WAIT }).map_err(GateError::from)?)
    }

    fn engine_over(&self, journal: Journal) -> Result<Engine, Failure> {
        let (engine, recovered) = Engine::open(self.workspace()?, journal, now())?;
        if let Some(recovered) = recovered {
            tell(&recovered);
        }
        Ok(engine)
    }

    /// Reads the history without waiting for anybody; `None` if there is none yet. What was interrupted is settled first.
    pub(crate) fn reader(&self) -> Result<Option<Reader>, Failure> {
        let reader = match Reader::open(&self.folder) {
            Ok(reader) => reader,
            Err(OpenJournalError::Missing { .. }) => return Ok(None),
            // Opening it to write brings it up to date.
            Err(OpenJournalError::Outdated { .. }) => {
                drop(self.engine()?);
                return Ok(Some(Reader::open(&self.folder).map_err(GateError::from)?));
            }
            Err(error) => return Err(GateError::from(error).into()),
        };
        if History::new(&reader).status()?.interrupted.is_some() {
            match Journal::open(&self.folder, Options { wait: Duration::ZERO }) {
                Ok(journal) => drop(self.engine_over(journal)?),
                // Whoever holds the lock is at work on it, so that it is not interrupted at all.
                Err(OpenJournalError::Locked { .. }) => {}
                Err(error) => return Err(GateError::from(error).into()),
            }
        }
        Ok(Some(reader))
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
/// The kind of what went stale, for its exit code.
pub(crate) const STALE: ErrorKind = ErrorKind::Stale;
