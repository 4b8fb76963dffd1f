//! Runs of the `git` program: bounded in time and output, with a minimal environment.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::error::GitError;

/// Environment variables of the `git` program.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Search path, as in `PATH`. Relative entries are dropped.
    pub path: OsString,
    /// Home directory, with git's configuration.
    pub home: Option<OsString>,
    /// `XDG_CONFIG_HOME`, if set.
    pub config_home: Option<OsString>,
    /// Variable that marks git and its child processes, such as hooks.
    pub mark: Option<(&'static str, &'static str)>,
}

/// The `git` program with its environment and limits.
#[derive(Clone, Debug)]
pub struct Git {
    environment: Environment,
    limit: Duration,
    max_output_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Inspection: takes no lock, starts no monitor.
    Look,
    Change,
}

/// Result of a run.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: ExitStatus,
    pub(super) output: Vec<u8>,
    pub(super) errors: String,
}

/// Enough for the status of a million files.
const MAX_OUTPUT_BYTES: usize = 128 << 20;
/// Enough for an error message.
const MAX_ERROR_BYTES: usize = 256 << 10;
/// Time for git to clean up after SIGTERM, and the intervals of polling.
const TERMINATION_GRACE_PERIOD: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(1);

impl Git {
    /// Creates a handle. A run that takes longer than `limit` is ended.
    pub fn new(environment: Environment, limit: Duration) -> Self {
        Self { environment, limit, max_output_bytes: MAX_OUTPUT_BYTES }
    }

    /// Sets the maximum output, for tests.
    #[must_use]
    pub fn with_max_output(mut self, bytes: usize) -> Self {
        self.max_output_bytes = bytes;
        self
    }

    pub(super) fn run(&self, directory: &Path, purpose: Purpose, arguments: &[&str]) -> Result<Answer, GitError> {
        let command = || format!("git {}", arguments.first().copied().unwrap_or_default());
        let path = absolute_entries(&self.environment.path);
        // With an empty search path, the system would search the working directory.
        if path.is_empty() {
            return Err(GitError::NoGit);
        }
        let mut child = match self.command(&path, directory, purpose, arguments).spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(GitError::NoGit),
            Err(error) => return Err(GitError::NotStarted(error.to_string())),
        };
        let (sender, received) = channel();
        read_aside(child.stdout.take(), Stream::Output, self.max_output_bytes, sender.clone());
        read_aside(child.stderr.take(), Stream::Errors, MAX_ERROR_BYTES, sender);
        let mut heard = Heard::default();
        match heard.listen(&received, &mut child, self.limit) {
            Ok(status) => {
                let errors = String::from_utf8_lossy(&heard.errors).into_owned();
                Ok(Answer { status, output: heard.output, errors })
            }
            Err(stop) => {
                end(&mut child, &received);
                Err(match stop {
                    Stop::Late => GitError::TimedOut { command: command(), seconds: self.limit.as_secs_f64() },
                    Stop::TooMuch => GitError::TooMuchOutput { command: command() },
                    Stop::System(error) => GitError::NotStarted(error.to_string()),
                })
            }
        }
    }

    fn command(&self, path: &OsStr, directory: &Path, purpose: Purpose, arguments: &[&str]) -> Command {
        #[expect(clippy::disallowed_methods, reason = "git itself changes repositories")]
        let mut command = Command::new("git");
        command.env_clear().env("PATH", path);
        let known = [("HOME", &self.environment.home), ("XDG_CONFIG_HOME", &self.environment.config_home)];
        command.envs(known.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value))));
        command.envs(self.environment.mark);
        // Messages are parsed, so they must be in one language.
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
        command.args(["--no-pager", "-c", "advice.objectNameWarning=false"]);
        if purpose == Purpose::Look {
            command.env("GIT_OPTIONAL_LOCKS", "0").args(["-c", "core.fsmonitor=false"]);
        }
        command.args(arguments).current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Own process group: the children of git end with it, and Ctrl-C does not interrupt a switch.
        command.process_group(0);
        command
    }
}

fn absolute_entries(path: &OsStr) -> OsString {
    let entries: Vec<&[u8]> =
        path.as_bytes().split(|byte| *byte == b':').filter(|entry| entry.starts_with(b"/")).collect();
    OsString::from_vec(entries.join(&b':'))
}

#[derive(Clone, Copy)]
enum Stream {
    Output,
    Errors,
}

enum Piece {
    Bytes(Stream, Vec<u8>),
    TooMuch,
}

enum Stop {
    Late,
    TooMuch,
    System(std::io::Error),
}

/// Reads a pipe in a thread, so that neither pipe fills up while the other is read.
fn read_aside(pipe: Option<impl Read + Send + 'static>, stream: Stream, max_bytes: usize, sender: Sender<Piece>) {
    let Some(mut pipe) = pipe else { return };
    std::thread::spawn(move || {
        let mut left = max_bytes;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            // Error messages are truncated. Truncated output would be misparsed, so too much of it is an error.
            if read > left && matches!(stream, Stream::Output) {
                let _ = sender.send(Piece::TooMuch);
                return;
            }
            // Excess error messages are read and dropped, so that git does not block.
            let kept = read.min(left);
            left -= kept;
            if sender.send(Piece::Bytes(stream, buffer[..kept].to_vec())).is_err() {
                return;
            }
        }
    });
}

#[derive(Default)]
struct Heard {
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl Heard {
    fn listen(&mut self, received: &Receiver<Piece>, child: &mut Child, limit: Duration) -> Result<ExitStatus, Stop> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a time limit needs a clock; nothing that is decided depends on it"
        )]
        let now = Instant::now;
        let started = now();
        loop {
            let left = limit.saturating_sub(now() - started);
            if left.is_zero() {
                return Err(Stop::Late);
            }
            match received.recv_timeout(left.min(POLL_INTERVAL)) {
                Ok(Piece::Bytes(Stream::Output, bytes)) => self.output.extend(bytes),
                Ok(Piece::Bytes(Stream::Errors, bytes)) => self.errors.extend(bytes),
                Ok(Piece::TooMuch) => return Err(Stop::TooMuch),
                // Both pipes are closed and git is about to end; or a hook left a process that holds them open, and
                // then git's own end counts.
                Err(silence) => {
                    if let Some(status) = child.try_wait().map_err(Stop::System)? {
                        return Ok(status);
                    }
                    if silence == RecvTimeoutError::Disconnected {
                        std::thread::sleep(EXIT_POLL_INTERVAL);
                    }
                }
            }
        }
    }
}

/// Ends git's process group: first with SIGTERM, so that git removes its locks, then with SIGKILL.
fn end(child: &mut Child, received: &Receiver<Piece>) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    let _ = rustix::process::kill_process_group(group, Signal::TERM);
    let mut waited = Duration::ZERO;
    while waited < TERMINATION_GRACE_PERIOD && matches!(child.try_wait(), Ok(None)) {
        // Keeps reading, so that git does not block.
        while received.try_recv().is_ok() {}
        std::thread::sleep(EXIT_POLL_INTERVAL);
        waited += EXIT_POLL_INTERVAL;
    }
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}
