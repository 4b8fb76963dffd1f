//! Running the `git` program: bounded in time and output, with nothing of our own environment.

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

/// What the `git` program gets to know of the environment.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Where programs are looked for, as in `PATH`. Entries that are not absolute are left out.
    pub path: OsString,
    /// The user's home, where git's configuration is.
    pub home: Option<OsString>,
    /// `XDG_CONFIG_HOME`, should the configuration be there.
    pub config_home: Option<OsString>,
    /// A variable for git and all that it starts, such as a repository's own hooks, to be known by.
    pub mark: Option<(&'static str, &'static str)>,
}

/// The `git` program, and how it is run.
#[derive(Clone, Debug)]
pub struct Git {
    environment: Environment,
    limit: Duration,
    most_output: usize,
}

/// What a run of git is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To look: takes no lock, starts no monitor.
    Look,
    /// To change the repository.
    Change,
}

/// What a run of git gave.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: ExitStatus,
    pub(super) output: Vec<u8>,
    pub(super) errors: String,
}

/// Enough for the status of a million files.
const MOST_OUTPUT: usize = 128 << 20;
/// Enough to tell what is wrong.
const MOST_ERRORS: usize = 256 << 10;
/// How long to let git tidy up after it was told to end, and how often to look whether it has ended.
const GRACE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(50);
const MOMENT: Duration = Duration::from_millis(1);

impl Git {
    /// Git with an environment, ended when a run of it takes longer than `limit`.
    pub fn new(environment: Environment, limit: Duration) -> Self {
        Self { environment, limit, most_output: MOST_OUTPUT }
    }

    /// Stops at that many bytes of output instead of at the usual bound.
    #[must_use]
    pub fn with_most_output(mut self, bytes: usize) -> Self {
        self.most_output = bytes;
        self
    }

    pub(super) fn run(&self, directory: &Path, purpose: Purpose, arguments: &[&str]) -> Result<Answer, GitError> {
        let command = || format!("git {}", arguments.first().copied().unwrap_or_default());
        let path = absolute_entries(&self.environment.path);
        // With an empty search path the system would look in the directory itself.
        if path.is_empty() {
            return Err(GitError::NoGit);
        }
        let mut child = match self.command(&path, directory, purpose, arguments).spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(GitError::NoGit),
            Err(error) => return Err(GitError::NotStarted(error.to_string())),
        };
        let (sender, received) = channel();
        read_aside(child.stdout.take(), Stream::Output, self.most_output, sender.clone());
        read_aside(child.stderr.take(), Stream::Errors, MOST_ERRORS, sender);
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
        #[expect(clippy::disallowed_methods, reason = "what changes a repository is done by git itself")]
        let mut command = Command::new("git");
        command.env_clear().env("PATH", path);
        let known = [("HOME", &self.environment.home), ("XDG_CONFIG_HOME", &self.environment.config_home)];
        command.envs(known.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value))));
        command.envs(self.environment.mark);
        // Messages are compared with, so they have to be in one language.
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
        command.args(["--no-pager", "-c", "advice.objectNameWarning=false"]);
        if purpose == Purpose::Look {
            command.env("GIT_OPTIONAL_LOCKS", "0").args(["-c", "core.fsmonitor=false"]);
        }
        command.args(arguments).current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: what git started ends with it, and Ctrl-C does not leave a tree half switched.
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

/// Reads a pipe on a thread of its own, so that neither pipe fills up while the other is waited for.
fn read_aside(pipe: Option<impl Read + Send + 'static>, stream: Stream, most: usize, sender: Sender<Piece>) {
    let Some(mut pipe) = pipe else { return };
    std::thread::spawn(move || {
        let mut left = most;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            // Errors are cut off; output that was cut off would be read as something else.
            if read > left && matches!(stream, Stream::Output) {
                let _ = sender.send(Piece::TooMuch);
                return;
            }
            // The rest of the errors is read and dropped, so that git does not wait for us.
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
            match received.recv_timeout(left.min(TICK)) {
                Ok(Piece::Bytes(Stream::Output, bytes)) => self.output.extend(bytes),
                Ok(Piece::Bytes(Stream::Errors, bytes)) => self.errors.extend(bytes),
                Ok(Piece::TooMuch) => return Err(Stop::TooMuch),
                // Both pipes are closed, so that git is about to end; or a hook has left a program behind that holds them open,
                // and then git's own end counts.
                Err(silence) => {
                    if let Some(status) = child.try_wait().map_err(Stop::System)? {
                        return Ok(status);
                    }
                    if silence == RecvTimeoutError::Disconnected {
                        std::thread::sleep(MOMENT);
                    }
                }
            }
        }
    }
}

/// Ends git and what it started: asked first, since git then removes its locks, and then made to.
fn end(child: &mut Child, received: &Receiver<Piece>) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    let _ = rustix::process::kill_process_group(group, Signal::TERM);
    let mut waited = Duration::ZERO;
    while waited < GRACE && matches!(child.try_wait(), Ok(None)) {
        // Read on, so that it does not wait for us; nothing that it still says is of interest.
        while received.try_recv().is_ok() {}
        std::thread::sleep(MOMENT);
        waited += MOMENT;
    }
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}
