//! Child processes, and the signals that reach them.
#![allow(clippy::disallowed_methods, reason = "the runner starts the programs of a script")]

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use command_fds::{CommandFdExt, FdMapping};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::descriptors::Descriptors;
use crate::files;
use crate::judge::PreparedCommand;

/// A signal that ends a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    HangUp,
    Interrupt,
    Terminate,
}

impl Interrupt {
    fn signal(self) -> Signal {
        match self {
            Self::HangUp => Signal::HUP,
            Self::Interrupt => Signal::INT,
            Self::Terminate => Signal::TERM,
        }
    }

    /// Exit code of a script that this signal ended.
    pub(crate) fn exit_code(self) -> u8 {
        128 + self.signal().as_raw().to_le_bytes()[0]
    }
}

/// Stops a script from another thread. Clones stop the same script.
#[derive(Clone, Debug, Default)]
pub struct Handle {
    state: Arc<Mutex<Running>>,
}

#[derive(Debug, Default)]
struct Running {
    children: HashSet<Pid>,
    interrupt: Option<Interrupt>,
    /// `true` after a refusal: no further child starts.
    is_refused: bool,
}

impl Handle {
    /// A handle for one run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forwards a signal to all running children and ends the script behind them.
    pub fn signal(&self, interrupt: Interrupt) {
        let mut running = self.lock();
        running.interrupt.get_or_insert(interrupt);
        running.send(interrupt.signal());
    }

    /// Terminates the children of a refused script.
    pub(crate) fn refuse(&self) {
        let mut running = self.lock();
        running.is_refused = true;
        running.send(Signal::TERM);
    }

    pub(crate) fn interrupt(&self) -> Option<Interrupt> {
        self.lock().interrupt
    }

    pub(crate) fn is_stopped(&self) -> bool {
        let running = self.lock();
        running.is_refused || running.interrupt.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, child: &Child) -> Option<Pid> {
        let pid = Pid::from_raw(i32::try_from(child.id()).ok()?)?;
        let mut running = self.lock();
        running.children.insert(pid);
        // The signal may have come between the start of the child and this line.
        let late = running.interrupt.map(Interrupt::signal).or(running.is_refused.then_some(Signal::TERM));
        if let Some(signal) = late {
            running.send(signal);
        }
        Some(pid)
    }

    /// Waits for a child. It leaves the table before its number can be used again.
    fn wait(&self, mut child: Child, pid: Option<Pid>) -> io::Result<ExitStatus> {
        if let Some(pid) = pid {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
            self.lock().children.remove(&pid);
        }
        child.wait()
    }
}

impl Running {
    fn send(&self, signal: Signal) {
        for child in &self.children {
            // It may have ended by itself.
            let _ = kill_process(*child, signal);
        }
    }
}

/// Starts a program and waits for its end.
pub(crate) fn execute(
    program: &Path,
    command: &PreparedCommand,
    descriptors: &Descriptors,
    handle: &Handle,
) -> io::Result<u8> {
    let mut builder = Command::new(program);
    if let Some((name, arguments)) = command.argv.split_first() {
        builder.arg0(name).args(arguments);
    }
    builder.env_clear().envs(&command.environment).current_dir(&command.directory);
    builder.stdin(standard(descriptors, 0)?).stdout(standard(descriptors, 1)?).stderr(standard(descriptors, 2)?);
    let mut mappings = Vec::new();
    for (number, file) in descriptors.above_standard() {
        let parent_fd = OwnedFd::from(file.try_clone()?);
        mappings.push(FdMapping { parent_fd, child_fd: i32::from(number) });
    }
    if !mappings.is_empty() {
        builder.fd_mappings(mappings).map_err(io::Error::other)?;
    }
    let child = builder.spawn()?;
    // The builder holds copies of the descriptors, which would keep pipes open.
    drop(builder);
    let pid = handle.add(&child);
    handle.wait(child, pid).map(exit_code)
}

/// A standard descriptor for a child. A closed one becomes a file that can only be used the other way round.
fn standard(descriptors: &Descriptors, number: u8) -> io::Result<Stdio> {
    let file: File = match descriptors.get(number) {
        Some(file) => file.try_clone()?,
        None if number == 0 => files::open_null_for_writing()?,
        None => files::open_null_for_reading()?,
    };
    Ok(Stdio::from(file))
}

fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code.to_le_bytes()[0],
        (None, Some(signal)) => 128 + signal.to_le_bytes()[0],
        (None, None) => 255,
    }
}
