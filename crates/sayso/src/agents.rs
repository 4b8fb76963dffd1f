//! Processes that speak for an agent: what `sayso exec` runs, and everything beneath. None of them decides.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sayso_gate::{Agents, ChangeStatus, Engine, Process};
use sayso_review::ErrorKind;

use crate::failure::Failure;
use crate::output::say;
use crate::state::{State, now};

/// The folder in which every `sayso exec` that is running has a file.
const FOLDER: &str = "agents";

/// A note that everything beneath this process speaks for an agent. If it stays behind, it names a process that is gone, and a
/// command of which it is not yet known what it did.
pub(crate) struct Registered {
    path: PathBuf,
}

impl Registered {
    /// Notes the command itself, which may go on when this process is gone.
    pub(crate) fn runs(&self, child: u32) {
        if let (Some(process), Ok(text)) = (Process::find(child), std::fs::read_to_string(&self.path)) {
            // Without it, the command counts as over with this process.
            let _ = std::fs::write(&self.path, format!("{text}\n{}-{}", process.id, process.started));
        }
    }

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

/// What everything under the gate has in its environment, so that it is known after its `sayso exec` is gone, too.
pub(crate) const MARK: &str = "SAYSO_UNDER_GATE";

/// Fails if this process was started by an agent: it cannot decide about what it does.
pub(crate) fn refuse(state: &State) -> Result<(), Failure> {
    let (agents, _) = read(state);
    agents.refuse(parent())?;
    if std::env::var_os(MARK).is_some() {
        return Err(Failure::of(
            ErrorKind::ToolDenied,
            format!("{MARK} is set: this runs under the gate, and decides nothing"),
        )
        .hint("decide in a terminal that the agent did not start"));
    }
    Ok(())
}

/// Whether this process was started by an agent.
pub(crate) fn speaks_for_one(state: &State) -> bool {
    refuse(state).is_err()
}

/// Settles commands whose `sayso exec` was killed: one that waited is withdrawn, and of one that ran it is recorded what it changed
/// until now.
pub(crate) fn settle(state: &State, engine: &mut Engine) -> Result<(), Failure> {
    for (path, change) in read(state).1 {
        let note = std::fs::read_to_string(&path).unwrap_or_default();
        if note.lines().nth(1).map(Path::new) != Some(&state.folder) {
            continue;
        }
        if note.lines().nth(2).and_then(process).is_some_and(|child| Process::find(child.id) == Some(child)) {
            say(&format!(
                "note: change {change} still runs, though its `sayso exec` is gone; it is settled when it is over"
            ));
            continue;
        }
        match engine.history().change(change).map(|record| record.status) {
            Ok(ChangeStatus::Pending) => engine.cancel(change, now())?,
            Ok(ChangeStatus::Permitted) => {
                engine.finish(change, None, now())?;
            }
            // It is over, or there never was one.
            Ok(_) | Err(_) => {}
        }
        let _ = std::fs::remove_file(&path);
    }
    Ok(())
}

/// The changes of this workspace for which a process waits, or which one runs.
pub(crate) fn alive(state: &State) -> BTreeSet<u64> {
    let mut changes = BTreeSet::new();
    for file in std::fs::read_dir(state.home.join(FOLDER)).into_iter().flatten().flatten() {
        let runs = file.file_name().to_str().and_then(process).is_some_and(|one| Process::find(one.id) == Some(one));
        let note = std::fs::read_to_string(file.path()).unwrap_or_default();
        let mut lines = note.lines();
        if let (true, Some(Ok(change)), Some(folder)) = (runs, lines.next().map(str::parse), lines.next())
            && Path::new(folder) == state.folder
        {
            changes.insert(change);
        }
    }
    changes
}

/// A process as its note names it.
fn process(text: &str) -> Option<Process> {
    let (id, started) = text.split_once('-')?;
    Some(Process { id: id.parse().ok()?, started: started.parse().ok()? })
}

fn parent() -> u32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs())
}

/// Those that run, and the files of those that no longer do with their changes.
fn read(state: &State) -> (Agents, Vec<(PathBuf, u64)>) {
    let (mut agents, mut gone) = (Agents::default(), Vec::new());
    for file in std::fs::read_dir(state.home.join(FOLDER)).into_iter().flatten().flatten() {
        let Some(process) = file.file_name().to_str().and_then(process) else { continue };
        if Process::find(process.id) == Some(process) {
            agents.add(process);
        } else {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            gone.extend(text.lines().next().and_then(|line| line.parse().ok()).map(|change| (file.path(), change)));
        }
    }
    (agents, gone)
}
