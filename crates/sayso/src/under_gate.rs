//! The hidden command `under-gate`: this program in the place of the one that it is about to start, to mark it.
//!
//! `under-gate command PROGRAM…` becomes the program. `under-gate agent PARENT PROGRAM…` stays as the guardian of an agent: every process
//! that the agent starts, and that loses its parent, becomes the guardian's child. When the supervisor PARENT ends, the guardian ends them
//! all, except those that ignore SIGHUP: who starts something with `nohup` wants it to stay.

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
use sayso_server::agents::beneath;

use crate::child;
use crate::failure::Failure;
use crate::output::say;

/// The name of the command, and of its two forms.
pub(crate) const NAME: &str = "under-gate";
pub(crate) const COMMAND: &str = "command";
pub(crate) const AGENT: &str = "agent";

/// How often processes are looked for that were started while others were ended, and after which pause.
const MAX_ROUNDS: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Reads the words after `under-gate`, and does what they say.
pub(crate) fn run(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let form = words.next().unwrap_or_default();
    let done = if form == COMMAND {
        program(words).and_then(|(program, words)| Err(become_program(&program, &words)))
    } else if form == AGENT {
        let parent = words.next().and_then(|word| word.to_str()?.parse().ok());
        program(words).and_then(|(program, words)| guard(parent, &program, &words))
    } else {
        Err(Failure::bad_input("under-gate is for sayso itself").hint("run a command with `sayso exec`"))
    };
    done.unwrap_or_else(|failure| failure.report())
}

fn program(mut words: impl Iterator<Item = OsString>) -> Result<(OsString, Vec<OsString>), Failure> {
    let program = words.next().ok_or_else(|| Failure::bad_input("there is no program to start"))?;
    Ok((program, words.collect()))
}

/// Marks this process. Where the kernel does not take the marks, it goes on without, as docs/marks.md says.
pub(crate) fn mark(scope: Scope) {
    if let Err(error) = sayso_marks::apply(scope) {
        say(&format!("warning: this runs unmarked: {error}; {}", error.hint()));
    }
}

fn not_started(program: &OsString, error: &io::Error) -> Failure {
    let program = Path::new(program).display();
    Failure::bad_input(format!("`{program}` could not be started")).why(error).hint("is it installed?")
}

/// Becomes a program, marked. Returns only if that fails.
fn become_program(program: &OsString, words: &[OsString]) -> Failure {
    mark(Scope::Command);
    not_started(program, &Command::new(program).args(words).exec())
}

/// Runs an agent, marked, until it or the supervisor ends.
fn guard(parent: Option<u32>, program: &OsString, words: &[OsString]) -> Result<ExitCode, Failure> {
    let supervisor = parent.and_then(supervisor);
    let supervisor = supervisor.ok_or_else(|| not_started(program, &io::Error::other("sayso ended meanwhile")))?;
    // Before there is a second thread: none of this process stays unmarked.
    mark(Scope::Agent);
    let supervisor = Arc::new(supervisor);
    let watched = Arc::clone(&supervisor);
    let mut agent = None;
    let watch = |process: u32| {
        agent = Some(process);
        std::thread::spawn(move || {
            wait_for_end(&watched);
            end_all(Some(process));
            signal_hook::low_level::exit(137);
        });
    };
    let code = child::run(Command::new(program).args(words), watch).map_err(|error| not_started(program, &error))?;
    if has_ended(&supervisor) {
        // The agent was the first of those that end now, and the others are not left behind.
        end_all(agent);
    }
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// A handle of the process that started us, if it still is our parent.
fn supervisor(parent: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(parent).ok()?)?;
    let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
    (rustix::process::getppid() == Some(pid)).then_some(handle)
}

/// Waits until a process has ended: its handle becomes readable then.
fn wait_for_end(process: &OwnedFd) {
    while let Err(rustix::io::Errno::INTR) = poll(&mut [PollFd::new(process, PollFlags::IN)], None) {}
}

fn has_ended(process: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Ends everything below this process that is not to stay. Where the agent itself ignores SIGHUP, so does all that it starts, and
/// nothing of that is meant to stay.
pub(crate) fn end_all(agent: Option<u32>) {
    let spares = !agent.is_some_and(ignores_hangup);
    for _ in 0..MAX_ROUNDS {
        let processes: Vec<u32> =
            beneath(std::process::id()).into_iter().filter(|process| !(spares && ignores_hangup(*process))).collect();
        if processes.is_empty() {
            return;
        }
        for process in processes.into_iter().filter_map(|process| Pid::from_raw(i32::try_from(process).ok()?)) {
            // One that has ended meanwhile needs no signal.
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
