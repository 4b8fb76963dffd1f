//! Processes that speak for an agent: what `sayso exec` runs, and everything beneath. None of them decides.

use std::path::{Path, PathBuf};

use sayso_gate::{Agents, Engine, Process};

use crate::failure::Failure;
use crate::state::{State, now};

/// The folder in which every `sayso exec` that is running has a file.
const FOLDER: &str = "agents";

/// A note that everything beneath this process speaks for an agent. If it stays behind, it names a process that is gone, and a
/// command of which it is not yet known what it did.
pub(crate) struct Registered {
    path: PathBuf,
}

impl Registered {
    /// Removes the note: it is known what the command did.
    pub(crate) fn finished(self) {
        // Should it stay, settling it again changes nothing.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Notes that everything beneath this process speaks for an agent, on behalf of a change.
pub(crate) fn register(state: &State, change: u64) -> Result<Registered, Failure> {
    let failed = |error: &dyn ToString| {
        Failure::bad_input("what runs under the gate cannot be noted")
            .why(&error.to_string())
            .hint("look at the disk's free space")
    };
    let process = Process::find(std::process::id()).ok_or_else(|| failed(&"the system does not tell of processes"))?;
    let folder = state.home.join(FOLDER);
    std::fs::create_dir_all(&folder).map_err(|error| failed(&error))?;
    let path = folder.join(format!("{}-{}", process.id, process.started));
    let text = format!("{change}\n{}", state.folder.display());
    std::fs::write(&path, text).map_err(|error| failed(&error))?;
    Ok(Registered { path })
}

/// Fails if this process was started by an agent: it cannot decide about what it does.
pub(crate) fn refuse(state: &State) -> Result<(), Failure> {
    let (agents, _) = read(state);
    agents.refuse(parent()).map_err(Failure::from)
}

/// Whether this process was started by an agent.
pub(crate) fn speaks_for_one(state: &State) -> bool {
    refuse(state).is_err()
}

/// Settles commands whose `sayso exec` was killed: what they changed until now is recorded.
pub(crate) fn settle(state: &State, engine: &mut Engine) {
    for (path, change) in read(state).1 {
        let folder = std::fs::read_to_string(&path).unwrap_or_default();
        if folder.lines().nth(1).map(Path::new) == Some(&state.folder) {
            // What was finished after all needs nothing.
            let _ = engine.finish(change, None, now());
            let _ = std::fs::remove_file(&path);
        }
    }
}

fn parent() -> u32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs())
}

/// Those that run, and the files of those that no longer do with their changes.
fn read(state: &State) -> (Agents, Vec<(PathBuf, u64)>) {
    let (mut agents, mut gone) = (Agents::default(), Vec::new());
    for file in std::fs::read_dir(state.home.join(FOLDER)).into_iter().flatten().flatten() {
        let name = file.file_name();
        let numbers = name.to_str().and_then(|name| name.split_once('-'));
        let Some((Ok(id), Ok(started))) = numbers.map(|(id, started)| (id.parse(), started.parse())) else { continue };
        let process = Process { id, started };
        if Process::find(id) == Some(process) {
            agents.add(process);
        } else {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            gone.extend(text.lines().next().and_then(|line| line.parse().ok()).map(|change| (file.path(), change)));
        }
    }
    (agents, gone)
}
