//! Processes that speak for an agent: whatever `sayso exec` and `sayso run` start, and everything beneath. None of them decides.
//!
//! Each has a note in a folder beside the journals, so that it is known to every engine, and after an engine was killed, too.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use sayso_gate::{Agents, GateError, Process, parent_of};
use sayso_review::{ChangeId, OutsidePath};

use crate::standing;

/// What everything under the gate has in its environment, so that it is known after whoever started it is gone, too.
pub const MARK: &str = "SAYSO_UNDER_GATE";

/// The folder in which every process that started something under the gate has a note.
const FOLDER: &str = "agents";

/// The first part of a line that names a folder which the user hands to the agent. No journal has this path.
const ADDED: &str = "added folder";
/// The first part of a line with the exit code of a command that left processes behind.
const CODE: &str = "exit code";

/// The notes.
#[derive(Clone, Debug)]
pub struct Notes {
    folder: PathBuf,
}

/// A note that everything beneath a process speaks for an agent. If it stays behind, it names a process that is gone, and perhaps a
/// change of which it is not yet known what became of it.
#[derive(Debug)]
pub struct Registered {
    path: PathBuf,
}

/// A run of an agent under the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The process that started the agent, and stays until it is over.
    pub process: Process,
    /// The agent's name.
    pub agent: String,
    /// The folders outside the workspace that the user hands to it.
    pub folders: Vec<OutsidePath>,
    /// Its note, after those of the runs within it that a process belongs to.
    notes: Vec<PathBuf>,
}

/// A change whose process is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandoned {
    /// The change; `None` if the process had none.
    pub change: Option<ChangeId>,
    /// Whether what was started for it still runs, by itself.
    pub still_runs: bool,
    /// The processes that do.
    pub running: Vec<u32>,
    /// The exit code of the command, if it ended and left these processes behind.
    pub code: Option<i32>,
    path: PathBuf,
}

impl Registered {
    /// Notes the command itself, which may go on when this process is gone.
    pub fn runs(&self, child: u32) {
        if let Some(process) = Process::find(child) {
            // Without it, the command counts as over with this process.
            let _ = add(&self.path, &format!("{}-{}", process.id, process.started));
        }
    }

    /// Notes the folders outside the workspace that the user hands to the agent.
    pub fn adds(&self, folders: &[OutsidePath]) -> io::Result<()> {
        folders.iter().try_for_each(|folder| add(&self.path, &json_line(ADDED, folder.as_str())))
    }

    /// The sessions in which its agent spoke, in the workspace that the run is in. An engine notes them, so that they are known
    /// whichever engine is asked, and after it was killed.
    pub fn sessions(&self) -> io::Result<Vec<String>> {
        let note = std::fs::read_to_string(&self.path)?;
        let journal = note.lines().nth(1).unwrap_or_default();
        let noted = note.lines().skip(2).filter_map(|line| serde_json::from_str::<(String, String)>(line).ok());
        Ok(noted.filter(|(of, _)| of == journal).map(|(_, session)| session).collect())
    }

    /// Ends the note of a process that ends itself, and gives the processes that it leaves behind. They speak for an agent on their own
    /// from now on.
    pub fn leaves(self) -> Vec<u32> {
        let left = marked_beneath(std::process::id());
        for process in &left {
            self.runs(*process);
        }
        if left.is_empty() {
            self.finished();
        }
        left
    }

    /// Ends the note of a command that ended with this code and left processes behind. An engine settles its change when they are
    /// over, so that what they write meanwhile belongs to it.
    pub fn leaves_open(self, code: i32, left: &[u32]) {
        for process in left {
            self.runs(*process);
        }
        // Without it, the change is settled as one of which nothing is known.
        let _ = add(&self.path, &json_line(CODE, &code.to_string()));
    }

    /// Removes the note: it is known what became of it.
    pub fn finished(self) {
        // Should it stay, settling it again changes nothing.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Notes {
    /// The notes beneath the folder of all of sayso's records.
    pub fn new(home: &Path) -> Self {
        Self { folder: home.join(FOLDER) }
    }

    /// Notes that everything beneath this process speaks for an agent, on behalf of a change of the workspace with that journal. One
    /// process may have several.
    pub fn register(&self, change: Option<ChangeId>, journal: &Path) -> io::Result<Registered> {
        let change = change.unwrap_or(0);
        self.note(&change.to_string(), change, journal)
    }

    /// Notes that everything beneath this process is, or speaks for, an agent of that name.
    pub fn register_run(&self, agent: &str, journal: &Path) -> io::Result<Registered> {
        self.note(&format!("0-{agent}"), 0, journal)
    }

    fn note(&self, suffix: &str, change: ChangeId, journal: &Path) -> io::Result<Registered> {
        let unknown = || io::Error::other("the system does not tell of processes");
        let process = Process::find(std::process::id()).ok_or_else(unknown)?;
        std::fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(format!("{}-{}-{suffix}", process.id, process.started));
        std::fs::write(&path, format!("{change}\n{}", journal.display()))?;
        Ok(Registered { path })
    }

    /// The run that a process belongs to: the outermost, should an agent have started another.
    pub fn run_of(&self, process: u32) -> Option<Run> {
        let mut runs = BTreeMap::new();
        for (starter, agent, path) in self.runs() {
            let note = std::fs::read_to_string(&path).unwrap_or_default();
            // What it started may have outlived it.
            for member in note.lines().skip(2).filter_map(named).chain([starter]) {
                runs.insert(member, (starter, agent.clone(), path.clone()));
            }
        }
        let (mut found, mut notes) = (None, Vec::new());
        let mut next = Some(process).filter(|_| !runs.is_empty());
        while let Some(process) = next.and_then(Process::known) {
            if let Some((starter, agent, path)) = runs.get(&process) {
                found = Some((*starter, agent.clone()));
                notes.push(path.clone());
            }
            next = parent_of(process.id).filter(|parent| *parent != 0 && *parent != process.id);
        }
        let folders = notes.last().map(|note| folders_of(note)).unwrap_or_default();
        found.map(|(process, agent)| Run { process, agent, folders, notes })
    }

    /// Notes that a session of the workspace with that journal is a run's, unless another run that goes on has it, which is returned.
    pub(crate) fn claim(&self, run: &Run, journal: &Path, session: &str) -> io::Result<Option<Process>> {
        let line = session_line(journal, session);
        let lacks = |path: &&PathBuf| !std::fs::read_to_string(path).is_ok_and(|note| has_line(&note, &line));
        // Whatever belongs to the outermost shares its sessions.
        let is_new = run.notes.last().is_some_and(|path| lacks(&path));
        if let Some(other) = self.holder(journal, session).filter(|other| is_new && *other != run.process) {
            return Ok(Some(other));
        }
        for path in run.notes.iter().filter(lacks) {
            match add(path, &line) {
                // The run ended just now, and nobody will ask.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                added => added?,
            }
        }
        Ok(None)
    }

    /// The run that has a session and goes on.
    pub(crate) fn holder(&self, journal: &Path, session: &str) -> Option<Process> {
        let line = session_line(journal, session);
        let runs = self.runs().into_iter().filter(|(process, ..)| Process::find(process.id) == Some(*process));
        let has = |path: &Path| std::fs::read_to_string(path).is_ok_and(|note| has_line(&note, &line));
        runs.filter(|(_, _, path)| has(path)).map(|(process, ..)| process).next()
    }

    /// Whether a process has noted that it waits for a change of the workspace with that journal, or carries it out.
    pub(crate) fn is_noted(&self, process: u32, change: ChangeId, journal: &Path) -> bool {
        let change = change.to_string();
        let is_it = |path: &Path| {
            let note = std::fs::read_to_string(path).unwrap_or_default();
            let mut lines = note.lines();
            lines.next() == Some(&change) && lines.next().map(Path::new) == Some(journal)
        };
        let Some(process) = Process::find(process) else { return false };
        self.all().iter().any(|(of, path)| *of == process && is_it(path))
    }

    /// The runs that have a note: who started them, the agent's name, and the note.
    fn runs(&self) -> Vec<(Process, String, PathBuf)> {
        let run = |(process, path): (Process, PathBuf)| {
            let agent = path.file_name()?.to_str()?.splitn(4, '-').nth(3)?.to_owned();
            Some((process, agent, path))
        };
        self.all().into_iter().filter_map(run).collect()
    }

    /// The processes that run: whose descendants speak for an agent, and which do so with all of theirs, whoever started them.
    fn running(&self) -> (Agents, Agents) {
        let (mut starters, mut started) = (Agents::default(), Agents::default());
        // One that has ended may be the ancestor of one that has not.
        let runs = |process: &Process| Process::known(process.id) == Some(*process);
        for (process, path) in self.all() {
            if runs(&process) {
                starters.add(process);
            }
            let note = std::fs::read_to_string(path).unwrap_or_default();
            note.lines().skip(2).filter_map(named).filter(runs).for_each(|child| started.add(child));
        }
        (starters, started)
    }

    /// Refuses a process that was started by an agent. Whoever started the agent is none itself.
    pub fn refuse(&self, process: u32) -> Result<(), GateError> {
        standing::refuse_marked(process)?;
        let (agents, started) = self.running();
        started.refuse(process)?;
        if !agents.is_empty() {
            // Of whom nothing is known, the worst is assumed.
            agents.refuse(parent_of(process).unwrap_or(process))?;
        }
        // In this order: what has ended by now may have had a mark that was gone when it was looked for.
        if is_marked(process) || has_ended(process) {
            return Err(GateError::AgentDecides { process, agent: process });
        }
        Ok(())
    }

    /// Changes of a workspace whose process is gone.
    pub fn abandoned(&self, journal: &Path) -> Vec<Abandoned> {
        let mut abandoned = Vec::new();
        for (process, path) in self.all() {
            let note = std::fs::read_to_string(&path).unwrap_or_default();
            let mut lines = note.lines();
            let change = lines.next().and_then(|line| line.parse().ok()).filter(|change| *change != 0);
            if Process::find(process.id) == Some(process) || lines.next().map(Path::new) != Some(journal) {
                continue;
            }
            let children = lines.filter_map(named).filter(|child| Process::find(child.id) == Some(*child));
            let running: Vec<u32> = children.map(|child| child.id).collect();
            let code = values(&note, CODE).next().and_then(|code| code.parse().ok());
            abandoned.push(Abandoned { change, still_runs: !running.is_empty(), running, code, path });
        }
        abandoned
    }

    /// Whether anything runs that was started under the gate, in any workspace.
    pub fn something_runs(&self) -> bool {
        self.all().into_iter().any(|(_, path)| {
            let note = std::fs::read_to_string(path).unwrap_or_default();
            note.lines().skip(2).filter_map(named).any(|child| Process::find(child.id) == Some(child))
        })
    }

    /// The changes of a workspace for which a process waits, or which one runs.
    pub fn alive(&self, journal: &Path) -> BTreeSet<ChangeId> {
        let mut changes = BTreeSet::new();
        for (process, path) in self.all() {
            let note = std::fs::read_to_string(path).unwrap_or_default();
            let mut lines = note.lines();
            if let (true, Some(Ok(change)), Some(folder)) =
                (Process::find(process.id) == Some(process), lines.next().map(str::parse), lines.next())
                && Path::new(folder) == journal
            {
                changes.insert(change);
            }
        }
        changes
    }

    fn all(&self) -> Vec<(Process, PathBuf)> {
        let mut all = Vec::new();
        for file in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            all.extend(file.file_name().to_str().and_then(named).map(|process| (process, file.path())));
        }
        all
    }
}

impl Abandoned {
    /// Removes the note: it is settled.
    pub fn settled(self) {
        let _ = std::fs::remove_file(self.path);
    }
}

/// Adds a line to a note that is there. At its end in one go: a run and an engine may both have something to add.
fn add(path: &Path, line: &str) -> io::Result<()> {
    std::fs::OpenOptions::new().append(true).open(path)?.write_all(format!("\n{line}").as_bytes())
}

/// A session of a workspace as a note has it: JSON, so that it is one line whatever is in it, and none that names a process.
fn session_line(journal: &Path, session: &str) -> String {
    json_line(&journal.to_string_lossy(), session)
}

fn json_line(key: &str, value: &str) -> String {
    serde_json::json!([key, value]).to_string()
}

/// The folders that a note of a run names.
fn folders_of(note: &Path) -> Vec<OutsidePath> {
    let note = std::fs::read_to_string(note).unwrap_or_default();
    values(&note, ADDED).filter_map(|folder| OutsidePath::parse(&folder).ok()).collect()
}

/// The values of a key in a note.
fn values(note: &str, key: &str) -> impl Iterator<Item = String> {
    let lines = note.lines().skip(2).filter_map(|line| serde_json::from_str::<(String, String)>(line).ok());
    lines.filter(move |(found, _)| found == key).map(|(_, value)| value)
}

fn has_line(note: &str, line: &str) -> bool {
    note.lines().skip(2).any(|found| found == line)
}

/// The processes under the gate that descend from a process. An engine in the same process has helpers, which are not.
pub fn marked_beneath(root: u32) -> Vec<u32> {
    // Where the kernel took no marks, the variable says the same.
    let is_under_gate = |process: &u32| standing::refuse_marked(*process).is_err() || is_marked(*process);
    beneath(root).into_iter().filter(is_under_gate).collect()
}

/// The processes that descend from a process.
pub fn beneath(root: u32) -> Vec<u32> {
    let mut agents = Agents::default();
    agents.add(match Process::find(root) {
        Some(process) => process,
        None => return Vec::new(),
    });
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // One that has ended meanwhile is nobody's.
    processes.filter(|id| *id != root && Process::find(*id).is_some() && agents.ancestor(*id).is_some()).collect()
}

/// Whether a process has the mark in its environment.
pub fn is_marked(process: u32) -> bool {
    let environment = match read(&format!("/proc/{process}/environ")) {
        Ok(environment) => environment,
        // Who does not let themselves be looked at has a reason.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return true,
        Err(_) => Vec::new(),
    };
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable.strip_prefix(MARK.as_bytes()).is_some_and(|rest| rest.starts_with(b"=")))
}

/// Whether a process is over, or about to be: it has no memory any more, and with that no environment to look at. Where the system
/// tells of no process at all, none has.
fn has_ended(process: u32) -> bool {
    let stat = |id: u32| read(&format!("/proc/{id}/stat"));
    let Ok(text) = stat(process) else { return stat(std::process::id()).is_ok() };
    let text = String::from_utf8_lossy(&text);
    // Its name may hold anything, so that fields are counted from its end.
    let size = text.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().nth(20));
    size.is_none_or(|size| size == "0")
}

/// A file of which the system does not say how long it is, in few pieces.
fn read(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(8 << 10);
    // Bounded by nothing, so that it is read at once: it is asked about at every verdict, and a file would be asked for its length.
    std::fs::File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A process as its note names it: its number and when it was started.
pub(crate) fn named(text: &str) -> Option<Process> {
    let mut parts = text.split('-');
    Some(Process { id: parts.next()?.parse().ok()?, started: parts.next()?.parse().ok()? })
}
