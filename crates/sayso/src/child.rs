//! A program that runs with our terminal, while we stay to see what it did.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::Command;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::agents::Registered;
use crate::failure::Failure;

/// The name of the hidden command that becomes a program which ends with us.
pub(crate) const UNDER_GATE: &str = "under-gate";

/// A program that ends when this process does, however that ends. The system is asked for it between `fork` and `exec`, by this very
/// program in the child's place, see [`become_program`].
pub(crate) fn ending_with_us(program: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([UNDER_GATE, &std::process::id().to_string()]).arg(program);
    command
}

/// Becomes a program that ends when `parent` does. Returns only if that fails.
pub(crate) fn become_program(parent: u32, command: &[OsString]) -> Failure {
    let Some((program, words)) = command.split_first() else {
        return Failure::bad_input("there is no program to start");
    };
    let failed = |error: io::Error| {
        let program = Path::new(program).display();
        Failure::bad_input(format!("`{program}` could not be started")).why(&error).hint("is it installed?")
    };
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)) {
        return failed(error.into());
    }
    // Had it ended before that, nothing would end this process.
    let now = rustix::process::getppid().and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok());
    if now != Some(parent) {
        return failed(io::Error::other("sayso ended meanwhile"));
    }
    failed(Command::new(program).args(words).exec())
}

/// Runs a program to its end, noted as one that speaks for an agent, and gives its exit code as a shell would.
pub(crate) fn run(command: &mut Command, registered: &Registered) -> io::Result<i32> {
    // Whoever loses their parent stays below us, and speaks for an agent still.
    let _ = rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1));
    // What a terminal sends reaches the program as well; we stay until it is over.
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    let mut child = command.spawn()?;
    // Known by itself, should it end us.
    registered.runs(child.id());
    let handle = signals.handle();
    let pid = rustix::process::Pid::from_child(&child);
    let forward = std::thread::spawn(move || {
        for signal in &mut signals {
            // These come to us alone.
            let forwarded = match signal {
                SIGTERM => rustix::process::Signal::TERM,
                SIGHUP => rustix::process::Signal::HUP,
                _ => continue,
            };
            let _ = rustix::process::kill_process(pid, forwarded);
        }
    });
    let status = child.wait();
    handle.close();
    // It has nothing left to wait for.
    let _ = forward.join();
    let status = status?;
    // As shells report a program that a signal has ended.
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}
