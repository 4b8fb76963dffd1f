//! Processes of local servers.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{oneshot, watch};

use crate::config::ServerConfig;

/// Maximum size of the kept end of standard error, in bytes.
const MAX_STDERR_BYTES: usize = 16 * 1024;
/// Lines of standard error that an error shows.
const SHOWN_STDERR_LINES: usize = 5;
/// Time that a server has to end after its standard input was closed.
const END_GRACE: Duration = Duration::from_secs(2);

/// Settings of processes that the host gives.
#[derive(Clone, Debug, Default)]
pub struct ProcessSettings {
    /// Words before the command of each server. They apply the kernel marks of an agent to it.
    pub prefix: Vec<OsString>,
    /// Working directory.
    pub directory: PathBuf,
    /// The whole environment of a server without the variables of its configuration.
    pub environment: Vec<(OsString, OsString)>,
}

/// A running server process with its group. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    stderr: Arc<Mutex<VecDeque<u8>>>,
    /// The end of the process; `None` while it runs.
    ended: watch::Receiver<Option<String>>,
    /// Dropping it ends the process.
    _alive: oneshot::Sender<()>,
}

/// Starts a server and returns its standard input and output.
pub(crate) fn start(
    command: &str,
    config: &ServerConfig,
    settings: &ProcessSettings,
) -> std::io::Result<(ServerProcess, ChildStdin, ChildStdout)> {
    let mut words = settings.prefix.iter().cloned().chain([OsString::from(command)]);
    // The chain is not empty: it ends with the command.
    let program = words.next().unwrap_or_default();
    let mut child = Command::new(program)
        .args(words)
        .args(&config.args)
        .env_clear()
        .envs(settings.environment.iter().map(|(name, value)| (name, value)))
        .envs(&config.env)
        .current_dir(&settings.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The servers of an `npx` are its children. They are killed as a group.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let missing = || std::io::Error::other("a pipe to the process is missing");
    let (stdin, stdout) = (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?);
    let stderr = Arc::new(Mutex::new(VecDeque::new()));
    if let Some(pipe) = child.stderr.take() {
        tokio::spawn(keep_end(pipe, Arc::clone(&stderr)));
    }
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let (end, ended) = watch::channel(None);
    let (alive, mut dropped) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let status = tokio::select! {
            status = child.wait() => status,
            _ = &mut dropped => {
                if tokio::time::timeout(END_GRACE, child.wait()).await.is_err() {
                    kill(group);
                }
                child.wait().await
            }
        };
        // Descendants may outlive the process.
        kill(group);
        let _ = end.send(Some(status.map_or_else(|error| error.to_string(), |status| status.to_string())));
    });
    Ok((ServerProcess { stderr, ended, _alive: alive }, stdin, stdout))
}

fn kill(group: Option<Pid>) {
    if let Some(group) = group {
        // A group without processes is an error that changes nothing.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

impl ServerProcess {
    /// Describes the end of the process with the last lines of its standard error, after at most a short wait for both.
    pub(crate) async fn end(&self) -> String {
        let mut ended = self.ended.clone();
        let waited = tokio::time::timeout(END_GRACE, ended.wait_for(Option::is_some)).await;
        let status = match waited {
            Ok(Ok(status)) => status.clone().unwrap_or_default(),
            _ => "it closed its output".to_owned(),
        };
        let lines = self.stderr_tail();
        if lines.is_empty() { status } else { format!("{status}; its last output:\n{lines}") }
    }

    /// Returns the last lines of standard error.
    pub(crate) fn stderr_tail(&self) -> String {
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        drop(kept);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(SHOWN_STDERR_LINES)..].join("\n")
    }
}

async fn keep_end(mut pipe: impl AsyncRead + Unpin, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&buffer[..count]);
        let excess = kept.len().saturating_sub(MAX_STDERR_BYTES);
        kept.drain(..excess);
    }
}
