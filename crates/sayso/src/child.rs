//! A program that runs with our terminal, while we stay to see what it did.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::agents::Registered;

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
