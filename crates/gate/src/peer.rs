//! Who says so: a verdict from a process that descends from an agent is refused (an agent cannot approve itself).

use std::collections::BTreeSet;
use std::io::Read as _;

use crate::error::GateError;

/// Deeper than any tree of processes that was not made to hide something.
const DEEPEST: usize = 1_000;

/// A process, told apart from a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// When it was started, in the system's own unit.
    pub started: u64,
}

/// Processes whose descendants speak for an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agents {
    roots: BTreeSet<Process>,
}

impl Process {
    /// A process that runs; `None` if there is none of that number. One that has ended does nothing any more, even where nobody has
    /// asked yet what became of it.
    pub fn find(id: u32) -> Option<Self> {
        let Stat { started, life, .. } = stat(id)?;
        (life == Life::Runs).then_some(Self { id, started })
    }

    /// A process that the system knows, even if it has ended: for what it was.
    pub fn known(id: u32) -> Option<Self> {
        Some(Self { id, started: stat(id)?.started })
    }
}

impl Agents {
    /// Counts everything beneath a process as an agent's; with the process itself, if it is the agent.
    pub fn add(&mut self, root: Process) {
        self.roots.insert(root);
    }

    /// No longer does so.
    pub fn remove(&mut self, root: Process) {
        self.roots.remove(&root);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// The agent's process that a process is, or descends from.
    pub fn ancestor(&self, id: u32) -> Option<Process> {
        // Nobody is looked for.
        self.roots.first()?;
        let mut id = id;
        for _ in 0..DEEPEST {
            // Of whom nothing is known, the worst is assumed.
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
        // Nobody is this deep who wants to be known.
        self.roots.first().copied()
    }

    /// Refuses whoever speaks for an agent.
    pub fn refuse(&self, id: u32) -> Result<(), GateError> {
        match self.ancestor(id) {
            Some(agent) => Err(GateError::AgentDecides { process: id, agent: agent.id }),
            None => Ok(()),
        }
    }
}

/// The process that started a process; `None` if there is none of that number.
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

/// What the system says of a process. Its name may hold anything, so that fields are counted from its end.
fn stat(id: u32) -> Option<Stat> {
    #[allow(clippy::disallowed_methods, reason = "processes are asked about where the system tells of them")]
    let mut file = std::fs::File::open(format!("/proc/{id}/stat")).ok()?;
    // Longer than it ever is, and read in one go: this is asked for at every call, of every ancestor of the caller.
    let mut buffer = [0; 2_048];
    let length = file.read(&mut buffer).ok()?;
    let text = buffer.get(..length)?;
    let fields = std::str::from_utf8(text.get(text.iter().rposition(|byte| *byte == b')')? + 1..)?).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
    let (threads, started) = (fields.nth(15)?, fields.nth(1)?.parse().ok()?);
    // The first thread may end before the others, which go on.
    let life = if matches!(state, "Z" | "X" | "x") && matches!(threads, "0" | "1") { Life::Ended } else { Life::Runs };
    Some(Stat { parent, started, life })
}
