//! A program that runs under the gate with our terminal, while we stay to see what it did.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use sayso_gate::Process;
use sayso_server::agents::marked_beneath;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::under_gate;

/// How long a stopped program has to stay so before we stop as well. A shell continues both of us, one after the other.
const STOP_DELAY: Duration = Duration::from_millis(20);

/// How often processes that a program left behind are looked at before they count, and after which pause.
const MAX_LOOKS: usize = 10;
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// A program that runs marked. The marks are applied between `fork` and `exec`, by this very program in the child's place.
pub(crate) fn marked(program: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([under_gate::NAME, under_gate::COMMAND]).arg(program);
    command
}

/// An agent that runs marked, and ends with all that it started when this process does, however that ends: a guardian stays between us.
pub(crate) fn guarded(program: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([under_gate::NAME, under_gate::AGENT, &std::process::id().to_string()]).arg(program);
    command
}

/// Runs a program to its end, and gives its exit code as a shell would. `started` gets its process.
pub(crate) fn run(command: &mut Command, started: impl FnOnce(u32)) -> io::Result<i32> {
    // Whoever loses their parent stays below us, and speaks for an agent still.
    let _ = rustix::process::set_child_subreaper(Pid::from_raw(1));
    // What a terminal sends reaches the program as well; we stay until it is over.
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    let child = command.spawn()?;
    // Known by itself, should it end us.
    started(child.id());
    let handle = signals.handle();
    let pid = Pid::from_child(&child);
    let forward = std::thread::spawn(move || {
        for signal in &mut signals {
            // These come to us alone.
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
    // It has nothing left to wait for.
    let _ = forward.join();
    let status = status?;
    // As shells report a program that a signal has ended.
    Ok(status.exit_status().unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0)))
}

/// Waits until a program has ended. An agent that stops its process group does not reach us, since its signals stay within it: we stop
/// when it does, so that the shell gets its terminal back.
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

/// The processes that a program has left behind. Those of a pipeline may end a little later than the shell that waited for the last.
pub(crate) fn left_behind() -> Vec<u32> {
    let mut left = marked_beneath(std::process::id());
    for _ in 0..MAX_LOOKS {
        if left.is_empty() {
            break;
        }
        std::thread::sleep(LOOK_PAUSE);
        left.retain(|process| Process::find(*process).is_some());
    }
    left
}

/// Names processes that a program has left behind.
pub(crate) fn still_running(processes: &[u32]) -> String {
    let ids = processes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match processes.len() {
        1 => format!("1 process still runs, pid {ids}"),
        count => format!("{count} processes still run, pids {ids}"),
    }
}
