//! Programs under the gate that run in our terminal.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use sayso_gate::Process;
use sayso_server::agent_registry::marked_descendants;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::under_gate;

/// Time that a stopped program stays stopped before we stop as well. A shell continues both processes one after the other.
const STOP_DELAY: Duration = Duration::from_millis(20);

/// Checks of processes that a program left behind, and the pause between them.
const MAX_CHECKS: usize = 10;
const CHECK_PAUSE: Duration = Duration::from_millis(10);

/// Returns a command that runs marked. This program starts in its place, applies the marks and executes it.
pub(crate) fn marked(program: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([under_gate::NAME, under_gate::COMMAND]).arg(program);
    command
}

/// Returns a command for a marked agent under a guardian, which ends the agent and its descendants if this process ends in any way.
pub(crate) fn guarded(program: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([under_gate::NAME, under_gate::AGENT, &std::process::id().to_string()]).arg(program);
    command
}

/// Runs a program to its end, and returns its exit code as a shell does. `started` gets its process id.
pub(crate) fn run(command: &mut Command, started: impl FnOnce(u32)) -> io::Result<i32> {
    // Orphans become our children, so that they are still known as acting for an agent.
    let _ = rustix::process::set_child_subreaper(Pid::from_raw(1));
    // The terminal sends signals to the program as well. We outlive it.
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    let child = command.spawn()?;
    // Registered at once, because the program could kill us.
    started(child.id());
    let handle = signals.handle();
    let pid = Pid::from_child(&child);
    let forward = std::thread::spawn(move || {
        for signal in &mut signals {
            // Other signals come from the terminal, which sends them to the program itself.
            let forwarded = match signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                _ => continue,
            };
            let _ = rustix::process::kill_process(pid, forwarded);
        }
    });
    let status = wait(pid);
    handle.close();
    let _ = forward.join();
    let status = status?;
    // Shells report a signal as 128 and its number.
    Ok(status.exit_status().unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0)))
}

/// Waits for the end of a program. A program that stops its own process group does not stop us, so that we stop after it: then the
/// shell gets its terminal back.
fn wait(pid: Pid) -> io::Result<WaitStatus> {
    loop {
        let waited = match rustix::process::waitpid(Some(pid), WaitOptions::UNTRACED) {
            Err(rustix::io::Errno::INTR) => continue,
            waited => waited?,
        };
        match waited {
            Some((_, status)) if status.stopped() => {
                std::thread::sleep(STOP_DELAY);
                if is_stopped(pid) {
                    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
                }
            }
            Some((_, status)) => return Ok(status),
            None => {}
        }
    }
}

fn is_stopped(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
}

/// Returns the processes that a program left behind. A pipeline's processes may end shortly after its shell.
pub(crate) fn left_behind() -> Vec<u32> {
    let mut left = marked_descendants(std::process::id());
    for _ in 0..MAX_CHECKS {
        if left.is_empty() {
            break;
        }
        std::thread::sleep(CHECK_PAUSE);
        left.retain(|process| Process::find_running(*process).is_some());
    }
    left
}

/// Formats the ids of processes that a program left behind.
pub(crate) fn still_running(processes: &[u32]) -> String {
    let ids = processes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match processes.len() {
        1 => format!("1 process still runs, pid {ids}"),
        count => format!("{count} processes still run, pids {ids}"),
    }
}
