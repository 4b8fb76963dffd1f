//! The hidden command `under-gate`, which marks itself and then starts a program.
//!
//! `under-gate command PROGRAM…` executes the program in its own place. `under-gate agent PARENT PROGRAM…` stays as the guardian of an
//! agent: orphaned descendants of the agent become the guardian's children. When the supervisor PARENT ends, the guardian kills the agent
//! and all its descendants, except processes that ignore SIGHUP, as `nohup` makes them.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};
use sayso_marks::Scope;
use sayso_server::agent_registry::descendants;

use crate::child;
use crate::error::CliError;
use crate::output::say;

/// Names of the command and of its two forms.
pub(crate) const NAME: &str = "under-gate";
pub(crate) const COMMAND: &str = "command";
pub(crate) const AGENT: &str = "agent";

/// Maximum number of rounds of killing. Processes may start others meanwhile.
const MAX_ROUNDS: usize = 100;

/// Pause after a round.
const PAUSE: Duration = Duration::from_millis(10);

/// Runs the form that the words after `under-gate` name.
pub(crate) fn run(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let form = words.next().unwrap_or_default();
    let done = if form == COMMAND {
        program_and_arguments(words).and_then(|(program, words)| Err(become_program(&program, &words)))
    } else if form == AGENT {
        let parent = words.next().and_then(|word| word.to_str()?.parse().ok());
        program_and_arguments(words).and_then(|(program, words)| guard(parent, &program, &words))
    } else {
        Err(CliError::invalid_input("under-gate is for sayso itself").hint("run a command with `sayso exec`"))
    };
    done.unwrap_or_else(|failure| failure.report())
}

/// Takes the program and its arguments from the rest of the words.
fn program_and_arguments(mut words: impl Iterator<Item = OsString>) -> Result<(OsString, Vec<OsString>), CliError> {
    let program = words.next().ok_or_else(|| CliError::invalid_input("there is no program to start"))?;
    Ok((program, words.collect()))
}

/// Marks this process. On a kernel without marks it runs unmarked, as docs/marks.md says.
pub(crate) fn mark(scope: Scope) {
    if let Err(error) = sayso_marks::apply(scope) {
        say(&format!("warning: this runs unmarked: {error}; {}", error.hint()));
    }
}

fn not_started(program: &OsString, error: &io::Error) -> CliError {
    let program = Path::new(program).display();
    CliError::io(format!("cannot start `{program}`"), error).hint("check that it is installed")
}

/// Executes a marked program in this process. Returns on failure only.
fn become_program(program: &OsString, words: &[OsString]) -> CliError {
    mark(Scope::Command);
    not_started(program, &Command::new(program).args(words).exec())
}

/// Runs an agent, marked, until it or the supervisor ends.
fn guard(parent: Option<u32>, program: &OsString, words: &[OsString]) -> Result<ExitCode, CliError> {
    let supervisor = parent.and_then(supervisor);
    let supervisor = supervisor.ok_or_else(|| not_started(program, &io::Error::other("sayso ended meanwhile")))?;
    // Before there is a second thread, because marks apply to one thread and its descendants.
    mark(Scope::Agent);
    let supervisor = Arc::new(supervisor);
    let watched = Arc::clone(&supervisor);
    let mut agent = None;
    let watch = |process: u32| {
        agent = Some(process);
        std::thread::spawn(move || {
            wait_for_end(&watched);
            end_all(Some(process));
            // The status of a process that SIGKILL ended.
            signal_hook::low_level::exit(137);
        });
    };
    let code = child::run(Command::new(program).args(words), watch).map_err(|error| not_started(program, &error))?;
    if has_ended(&supervisor) {
        // The agent ended with its supervisor. Its descendants end here.
        end_all(agent);
    }
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Returns a handle of the supervisor. `None` if it is no longer our parent.
pub(crate) fn supervisor(parent: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(parent).ok()?)?;
    let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
    (rustix::process::getppid() == Some(pid)).then_some(handle)
}

/// Waits for the end of a process. Its handle becomes readable then.
pub(crate) fn wait_for_end(process: &OwnedFd) {
    while let Err(rustix::io::Errno::INTR) = poll(&mut [PollFd::new(process, PollFlags::IN)], None) {}
}

fn has_ended(process: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Kills the descendants of this process, except those that ignore SIGHUP. If the agent itself ignores SIGHUP, its children inherited
/// that, so that none is spared.
pub(crate) fn end_all(agent: Option<u32>) {
    let spares = !agent.is_some_and(ignores_hangup);
    for _ in 0..MAX_ROUNDS {
        let processes: Vec<u32> = descendants(std::process::id())
            .into_iter()
            .filter(|process| !(spares && ignores_hangup(*process)))
            .collect();
        if processes.is_empty() {
            return;
        }
        for process in processes.into_iter().filter_map(|process| Pid::from_raw(i32::try_from(process).ok()?)) {
            // Fails for a process that ended meanwhile.
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
        std::thread::sleep(PAUSE);
    }
}

/// `true` if a process was started so that it outlives its terminal, as `nohup` does.
fn ignores_hangup(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
