//! A session without a terminal for the programs of a command.
//!
//! Standard input of a command is empty, but a program could still open `/dev/tty` and read input that no rule has seen: Codex types
//! into it with `write_stdin`. Only a new session has no controlling terminal, and a new session is also a new process group. The
//! agent, however, stops a command by a signal to the process group. So `call` stays in the agent's group as a supervisor and starts
//! itself again in a new session. It forwards signals; if it is killed, the session ends.
//!
//! Without a controlling terminal there is nothing to separate from, and `call` runs the command itself.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::under_gate;

/// Option before the id: `--session PARENT` runs the command in a new session, supervised by the process PARENT.
pub(super) const SESSION: &str = "--session";

/// Exit code after SIGKILL, as shells report it.
const KILLED: i32 = 137;

/// `true` if this process has a controlling terminal.
pub(super) fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// Runs `call` with the same words in a new session, until it ends.
pub(super) fn supervise(words: impl Iterator<Item = OsString>) -> Result<ExitCode, String> {
    let failed = |error: io::Error| format!("cannot start a session without a terminal: {error}");
    let mut command = Command::new("/proc/self/exe");
    command.args([super::NAME, SESSION, &std::process::id().to_string()]).args(words);
    let code = run_child(&mut command).map_err(failed)?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(super::NOT_RUN)))
}

/// Runs a program, forwards signals to it, and returns its exit code as a shell would.
pub(super) fn run_child(command: &mut Command) -> io::Result<i32> {
    // Installed before the program starts, so that no signal is lost.
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    std::thread::spawn(move || {
        for signal in &mut signals {
            let forwarded = match signal {
                SIGHUP => Signal::HUP,
                SIGINT => Signal::INT,
                _ => Signal::TERM,
            };
            // The program may have ended by itself.
            let _ = rustix::process::kill_process(pid, forwarded);
        }
    });
    let status = child.wait()?;
    Ok(status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or_default())
}

/// Moves this process into a new session, and returns a handle of its supervisor.
pub(super) fn enter(supervisor: Option<OsString>) -> Result<OwnedFd, String> {
    let parent = supervisor.and_then(|word| word.to_str()?.parse().ok());
    let supervisor = parent.and_then(under_gate::supervisor).ok_or("the supervisor of the command has ended")?;
    rustix::process::setsid().map_err(|error| format!("cannot start a session without a terminal: {error}"))?;
    // Programs that lose their parent stay below this process, where the end of the supervisor reaches them.
    let _ = rustix::process::set_child_subreaper(Pid::from_raw(1));
    Ok(supervisor)
}

/// Ends all programs of the session when the supervisor ends. Call it after the process is marked, since it starts a thread.
pub(super) fn end_with(supervisor: OwnedFd) {
    std::thread::spawn(move || {
        under_gate::wait_for_end(&supervisor);
        under_gate::end_all(None);
        signal_hook::low_level::exit(KILLED);
    });
}

/// Copies an output stream. A terminal is opened again for writing only, because programs such as `less` read keys from it.
pub(super) fn output(stream: &(impl AsFd + AsRawFd)) -> io::Result<OwnedFd> {
    if stream.as_fd().is_terminal() {
        let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
        let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap_or_default();
        // The terminal may belong to another user, as after `su`.
        if let Ok(file) = OpenOptions::new().write(true).custom_flags(flags).open(path) {
            return Ok(file.into());
        }
    }
    stream.as_fd().try_clone_to_owned()
}
