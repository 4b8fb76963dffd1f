//! Processes that act for agents: those that `sayso exec` and `sayso run` start, with all descendants. None of them decides.
//!
//! Each starter has an entry: a file in a directory beside the journals, which every engine reads and which survives an engine. Its
//! name holds the process id and start time, and for a run the agent's name. Line 1 is the change number or 0, line 2 the journal.
//! Each further line is either a child process or a JSON pair of a key and a value.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use sayso_gate::{AgentProcesses, GateError, Process, parent_of};
use sayso_review::{ChangeId, OutsidePath};

use crate::kernel_marks;

/// Environment variable of every process under the gate. It identifies a process whose starter has exited.
pub const MARK: &str = "SAYSO_UNDER_GATE";

/// Directory of the entries.
const DIRECTORY: &str = "agents";

/// Key of a directory that the user granted to the agent. Differs from session keys, which are absolute paths of journals.
const GRANTED_DIRECTORY: &str = "granted directory";
/// Key of the exit code of a command that left processes running.
const EXIT_CODE: &str = "exit code";

/// The entries of all processes that started agents or commands of agents.
#[derive(Clone, Debug)]
pub struct AgentRegistry {
    directory: PathBuf,
}

/// The entry of this process. After a crash it remains, names a dead process and perhaps a change without a reported end.
#[derive(Debug)]
pub struct Registration {
    path: PathBuf,
}

/// A running agent that `sayso run` started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The `sayso run` process, which outlives the agent.
    pub process: Process,
    /// Agent name.
    pub agent: String,
    /// Directories outside the workspace that the user granted to it.
    pub directories: Vec<OutsidePath>,
    /// Entries of the runs that contain a process, innermost first. The last is that of this run.
    entries: Vec<PathBuf>,
}

/// The entry of a process that has exited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandoned {
    /// `None` if the process acted for no change.
    pub change: Option<ChangeId>,
    /// Its child processes that still run.
    pub running: Vec<u32>,
    /// Exit code of the command, if it ended and left these processes running.
    pub exit_code: Option<i32>,
    path: PathBuf,
}

impl Registration {
    /// Records a child process, which may outlive this one.
    pub fn track_child(&self, child: u32) {
        if let Some(process) = Process::find_running(child) {
            // Without the line, the command counts as ended when this process exits.
            let _ = append(&self.path, &format!("{}-{}", process.id, process.started));
        }
    }

    /// Records directories outside the workspace that the user granted to the agent.
    pub fn grant_directories(&self, directories: &[OutsidePath]) -> io::Result<()> {
        let grant = |directory: &OutsidePath| append(&self.path, &json_line(GRANTED_DIRECTORY, directory.as_str()));
        directories.iter().try_for_each(grant)
    }

    /// Returns the sessions of its agent in the workspace of this entry, as engines have recorded them.
    pub fn sessions(&self) -> io::Result<Vec<String>> {
        let entry = std::fs::read_to_string(&self.path)?;
        let journal = entry.lines().nth(1).unwrap_or_default();
        Ok(values(&entry, journal).collect())
    }

    /// Records the marked descendants that outlive this process and returns them. Removes the entry if there are none.
    pub fn detach(self) -> Vec<u32> {
        let remaining = marked_descendants(std::process::id());
        for process in &remaining {
            self.track_child(*process);
        }
        if remaining.is_empty() {
            self.unregister();
        }
        remaining
    }

    /// Records the exit code of a command with processes that still run. An engine finishes its change when they have exited, so
    /// that their writes belong to the change.
    pub fn detach_command(self, exit_code: i32, remaining: &[u32]) {
        for process in remaining {
            self.track_child(*process);
        }
        // Without the line, the change is finished with an unknown exit code.
        let _ = append(&self.path, &json_line(EXIT_CODE, &exit_code.to_string()));
    }

    /// Removes the entry, once the end of its change is recorded.
    pub fn unregister(self) {
        // If it remains, finishing its change again has no effect.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl AgentRegistry {
    /// Uses a directory below sayso's state directory `home`.
    pub fn new(home: &Path) -> Self {
        Self { directory: home.join(DIRECTORY) }
    }

    /// Registers this process and its descendants as acting for an agent and for a change. A process may have several entries.
    pub fn register(&self, change: Option<ChangeId>, journal: &Path) -> io::Result<Registration> {
        let change = change.unwrap_or(0);
        self.create_entry(&change.to_string(), change, journal)
    }

    /// Registers this process and its descendants as a run of an agent.
    pub fn register_run(&self, agent: &str, journal: &Path) -> io::Result<Registration> {
        self.create_entry(&format!("0-{agent}"), 0, journal)
    }

    /// Registers a child process and its descendants as acting for a change. The engine itself does not act for it.
    pub fn register_process(&self, process: u32, change: ChangeId, journal: &Path) -> io::Result<Registration> {
        self.create_entry_of(process, &change.to_string(), change, journal)
    }

    fn create_entry(&self, suffix: &str, change: ChangeId, journal: &Path) -> io::Result<Registration> {
        self.create_entry_of(std::process::id(), suffix, change, journal)
    }

    fn create_entry_of(
        &self,
        process: u32,
        suffix: &str,
        change: ChangeId,
        journal: &Path,
    ) -> io::Result<Registration> {
        let unknown = || io::Error::other("cannot read the process from /proc");
        let process = Process::find_running(process).ok_or_else(unknown)?;
        std::fs::create_dir_all(&self.directory)?;
        let path = self.directory.join(format!("{}-{}-{suffix}", process.id, process.started));
        std::fs::write(&path, format!("{change}\n{}", journal.display()))?;
        Ok(Registration { path })
    }

    /// Finds the run that contains a process: the outermost one, if an agent started another.
    pub fn run_of(&self, process: u32) -> Option<Run> {
        let mut runs = BTreeMap::new();
        for (starter, agent, path) in self.runs() {
            let entry = std::fs::read_to_string(&path).unwrap_or_default();
            // Children may outlive the starter.
            for member in children(&entry).chain([starter]) {
                runs.insert(member, (starter, agent.clone(), path.clone()));
            }
        }
        let (mut found, mut entries) = (None, Vec::new());
        let mut next = Some(process).filter(|_| !runs.is_empty());
        while let Some(process) = next.and_then(Process::find) {
            if let Some((starter, agent, path)) = runs.get(&process) {
                found = Some((*starter, agent.clone()));
                entries.push(path.clone());
            }
            next = parent_of(process.id).filter(|parent| *parent != 0 && *parent != process.id);
        }
        let directories = entries.last().map(|path| granted_directories(path)).unwrap_or_default();
        found.map(|(process, agent)| Run { process, agent, directories, entries })
    }

    /// Assigns a session to a run. Returns the process of another active run if that run has the session already.
    pub(crate) fn claim(&self, run: &Run, journal: &Path, session: &str) -> io::Result<Option<Process>> {
        let line = session_line(journal, session);
        let lacks = |path: &&PathBuf| !std::fs::read_to_string(path).is_ok_and(|entry| has_line(&entry, &line));
        // Runs within the outermost run share its sessions.
        let is_new = run.entries.last().is_some_and(|path| lacks(&path));
        if let Some(other) = self.holder(journal, session).filter(|other| is_new && *other != run.process) {
            return Ok(Some(other));
        }
        for path in run.entries.iter().filter(lacks) {
            match append(path, &line) {
                // The run has just ended and needs no session.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                appended => appended?,
            }
        }
        Ok(None)
    }

    /// Process of the active run that has a session.
    pub(crate) fn holder(&self, journal: &Path, session: &str) -> Option<Process> {
        let line = session_line(journal, session);
        let runs = self.runs().into_iter().filter(|(process, ..)| Process::find_running(process.id) == Some(*process));
        let has = |path: &Path| std::fs::read_to_string(path).is_ok_and(|entry| has_line(&entry, &line));
        runs.filter(|(_, _, path)| has(path)).map(|(process, ..)| process).next()
    }

    /// `true` if a process is registered for a change of the workspace with that journal.
    pub(crate) fn is_registered(&self, process: u32, change: ChangeId, journal: &Path) -> bool {
        let change = change.to_string();
        let names_change = |path: &Path| {
            let entry = std::fs::read_to_string(path).unwrap_or_default();
            let mut lines = entry.lines();
            lines.next() == Some(&change) && lines.next().map(Path::new) == Some(journal)
        };
        let Some(process) = Process::find_running(process) else { return false };
        self.all().iter().any(|(of, path)| *of == process && names_change(path))
    }

    /// Entries of runs: the starter, the agent name and the file.
    fn runs(&self) -> Vec<(Process, String, PathBuf)> {
        let run = |(process, path): (Process, PathBuf)| {
            let agent = path.file_name()?.to_str()?.splitn(4, '-').nth(3)?.to_owned();
            Some((process, agent, path))
        };
        self.all().into_iter().filter_map(run).collect()
    }

    /// Running processes. Descendants of the first group act for an agent; in the second group, the processes themselves do, too.
    fn running(&self) -> (AgentProcesses, AgentProcesses) {
        let (mut starters, mut started) = (AgentProcesses::default(), AgentProcesses::default());
        // A zombie counts: it may be the ancestor of a running process.
        let runs = |process: &Process| Process::find(process.id) == Some(*process);
        for (process, path) in self.all() {
            if runs(&process) {
                starters.add(process);
            }
            let entry = std::fs::read_to_string(path).unwrap_or_default();
            children(&entry).filter(runs).for_each(|child| started.add(child));
        }
        (starters, started)
    }

    /// Rejects a process that an agent started. The process that started the agent passes.
    pub fn reject(&self, process: u32) -> Result<(), GateError> {
        kernel_marks::reject_marked(process)?;
        let (agents, started) = self.running();
        started.reject_descendant(process)?;
        if !agents.is_empty() {
            // A process without a known parent is judged by its own entry.
            agents.reject_descendant(parent_of(process).unwrap_or(process))?;
        }
        // In this order: a process loses its environment when it exits, so a missing mark counts only if it still runs.
        if is_marked(process) || has_ended(process) {
            return Err(GateError::AgentDecides { process, agent: process });
        }
        Ok(())
    }

    /// Entries of a workspace whose process has exited.
    pub fn abandoned(&self, journal: &Path) -> Vec<Abandoned> {
        let mut abandoned = Vec::new();
        for (process, path) in self.all() {
            let entry = std::fs::read_to_string(&path).unwrap_or_default();
            let mut lines = entry.lines();
            let change = lines.next().and_then(|line| line.parse().ok()).filter(|change| *change != 0);
            if Process::find_running(process.id) == Some(process) || lines.next().map(Path::new) != Some(journal) {
                continue;
            }
            let running = children(&entry).filter(is_running).map(|child| child.id).collect();
            let exit_code = values(&entry, EXIT_CODE).next().and_then(|code| code.parse().ok());
            abandoned.push(Abandoned { change, running, exit_code, path });
        }
        abandoned
    }

    /// `true` if a process that was started under the gate runs, in any workspace.
    pub fn has_running_children(&self) -> bool {
        self.all().into_iter().any(|(_, path)| {
            let entry = std::fs::read_to_string(path).unwrap_or_default();
            children(&entry).any(|child| is_running(&child))
        })
    }

    /// Changes of a workspace with a running registered process.
    pub fn active_changes(&self, journal: &Path) -> BTreeSet<ChangeId> {
        let mut changes = BTreeSet::new();
        for (process, path) in self.all() {
            let entry = std::fs::read_to_string(path).unwrap_or_default();
            let mut lines = entry.lines();
            if let (true, Some(Ok(change)), Some(folder)) =
                (is_running(&process), lines.next().map(str::parse), lines.next())
                && Path::new(folder) == journal
            {
                changes.insert(change);
            }
        }
        changes
    }

    fn all(&self) -> Vec<(Process, PathBuf)> {
        let mut all = Vec::new();
        for file in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            all.extend(file.file_name().to_str().and_then(parse_process).map(|process| (process, file.path())));
        }
        all
    }
}

impl Abandoned {
    /// Removes the entry, once its change is finished.
    pub fn remove(self) {
        let _ = std::fs::remove_file(self.path);
    }
}

/// Appends a line to an existing entry, in one write: a run and an engine may append at the same time.
fn append(path: &Path, line: &str) -> io::Result<()> {
    std::fs::OpenOptions::new().append(true).open(path)?.write_all(format!("\n{line}").as_bytes())
}

/// The line that assigns a session of a workspace. JSON cannot contain a line break and cannot look like a process.
fn session_line(journal: &Path, session: &str) -> String {
    json_line(&journal.to_string_lossy(), session)
}

fn json_line(key: &str, value: &str) -> String {
    serde_json::json!([key, value]).to_string()
}

fn granted_directories(path: &Path) -> Vec<OutsidePath> {
    let entry = std::fs::read_to_string(path).unwrap_or_default();
    values(&entry, GRANTED_DIRECTORY).filter_map(|directory| OutsidePath::parse(&directory).ok()).collect()
}

/// Child processes that an entry names.
fn children(entry: &str) -> impl Iterator<Item = Process> {
    entry.lines().skip(2).filter_map(parse_process)
}

fn is_running(process: &Process) -> bool {
    Process::find_running(process.id) == Some(*process)
}

/// Values of a key in an entry.
fn values(entry: &str, key: &str) -> impl Iterator<Item = String> {
    let lines = entry.lines().skip(2).filter_map(|line| serde_json::from_str::<(String, String)>(line).ok());
    lines.filter(move |(found, _)| found == key).map(|(_, value)| value)
}

fn has_line(entry: &str, line: &str) -> bool {
    entry.lines().skip(2).any(|found| found == line)
}

/// Descendants of a process that run under the gate. Excludes helpers that an engine in the same process started.
pub fn marked_descendants(root: u32) -> Vec<u32> {
    // Without kernel marks, the environment variable decides.
    let is_under_gate = |process: &u32| kernel_marks::reject_marked(*process).is_err() || is_marked(*process);
    descendants(root).into_iter().filter(is_under_gate).collect()
}

/// Running descendants of a process.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut agents = AgentProcesses::default();
    agents.add(match Process::find_running(root) {
        Some(process) => process,
        None => return Vec::new(),
    });
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    processes
        .filter(|id| *id != root && Process::find_running(*id).is_some() && agents.ancestor(*id).is_some())
        .collect()
}

/// `true` if a process has [`MARK`] in its environment, or hides its environment.
pub fn is_marked(process: u32) -> bool {
    let environment = match read(&format!("/proc/{process}/environ")) {
        Ok(environment) => environment,
        // Only another user's or a hardened process is unreadable: treat it as marked.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return true,
        Err(_) => Vec::new(),
    };
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable.strip_prefix(MARK.as_bytes()).is_some_and(|rest| rest.starts_with(b"=")))
}

/// `true` if a process has exited or is exiting: it has released its memory, and its environment with it. Always `false` without a
/// readable `/proc`.
fn has_ended(process: u32) -> bool {
    let stat = |id: u32| read(&format!("/proc/{id}/stat"));
    let Ok(text) = stat(process) else { return stat(std::process::id()).is_ok() };
    let text = String::from_utf8_lossy(&text);
    // The name may contain spaces and parentheses, so fields are counted after its end.
    let size = text.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().nth(20));
    size.is_none_or(|size| size == "0")
}

/// Reads a file of `/proc`, which reports a size of 0.
fn read(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(8 << 10);
    // `take` skips the size query of `File`, which saves a system call at every verdict.
    std::fs::File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Parses `ID-START`, the form in which files name a process.
pub(crate) fn parse_process(text: &str) -> Option<Process> {
    let mut parts = text.split('-');
    Some(Process { id: parts.next()?.parse().ok()?, started: parts.next()?.parse().ok()? })
}
