//! Process ancestry: detects whether a caller is an agent or descends from one. An agent cannot approve its own
//! changes.

use std::collections::BTreeSet;
use std::io::Read as _;

use crate::error::GateError;

/// Maximum depth of a search. No honest process tree is deeper.
const MAX_DEPTH: usize = 1_000;

/// A process, distinguished from a later one with the same number by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    pub id: u32,
    /// Start time, in clock ticks since boot.
    pub started: u64,
}

/// Root processes of agents. All their descendants count as agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentProcesses {
    roots: BTreeSet<Process>,
}

impl Process {
    /// Returns the running process with this number. A zombie is not running.
    pub fn find_running(id: u32) -> Option<Self> {
        let Stat { started, life, .. } = stat(id)?;
        (life == Life::Runs).then_some(Self { id, started })
    }

    /// Returns the process with this number, even if it is a zombie.
    pub fn find(id: u32) -> Option<Self> {
        Some(Self { id, started: stat(id)?.started })
    }
}

impl AgentProcesses {
    /// Adds a root process. The process itself counts as an agent.
    pub fn add(&mut self, root: Process) {
        self.roots.insert(root);
    }

    /// Removes a root process.
    pub fn remove(&mut self, root: Process) {
        self.roots.remove(&root);
    }

    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// Returns the agent's root process that a process is or descends from. If the ancestry cannot be read, assumes the
    /// first root.
    pub fn ancestor(&self, id: u32) -> Option<Process> {
        // No root, no search.
        self.roots.first()?;
        let mut id = id;
        for _ in 0..MAX_DEPTH {
            // An unreadable process counts as an agent.
            let Some(stat) = stat(id) else { return self.roots.first().copied() };
            let process = Process { id, started: stat.started };
            if self.roots.contains(&process) {
                return Some(process);
            }
            if stat.parent == 0 || stat.parent == id {
                return None;
            }
            id = stat.parent;
        }
        // A tree this deep was made to hide its root.
        self.roots.first().copied()
    }

    /// Rejects a process that is or descends from an agent.
    pub fn reject_descendant(&self, id: u32) -> Result<(), GateError> {
        match self.ancestor(id) {
            Some(agent) => Err(GateError::AgentDecides { process: id, agent: agent.id }),
            None => Ok(()),
        }
    }
}

/// Returns the number of a process's parent.
pub fn parent_of(id: u32) -> Option<u32> {
    Some(stat(id)?.parent)
}

struct Stat {
    parent: u32,
    started: u64,
    life: Life,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Runs,
    Ended,
}

/// Reads `/proc/ID/stat`. The process name may contain any character, so fields are counted from its closing
/// parenthesis.
fn stat(id: u32) -> Option<Stat> {
    #[allow(clippy::disallowed_methods, reason = "processes are asked about where the system tells of them")]
    let mut file = std::fs::File::open(format!("/proc/{id}/stat")).ok()?;
    // The buffer is larger than the file, which is read in one call: each request reads this for all ancestors of its
    // caller.
    let mut buffer = [0; 2_048];
    let length = file.read(&mut buffer).ok()?;
    let text = buffer.get(..length)?;
    let fields = std::str::from_utf8(text.get(text.iter().rposition(|byte| *byte == b')')? + 1..)?).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
    let (threads, started) = (fields.nth(15)?, fields.nth(1)?.parse().ok()?);
    // A zombie main thread with other threads still runs.
    let life = if matches!(state, "Z" | "X" | "x") && matches!(threads, "0" | "1") { Life::Ended } else { Life::Runs };
    Some(Stat { parent, started, life })
}
