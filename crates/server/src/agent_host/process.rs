//! Processes of permitted commands: their output, their end, and the end of all their descendants.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use sayso_agent::host::OutputSink;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{oneshot, watch};

use crate::agent_registry::descendants;

/// Bytes of output that are kept from the start and from the end.
const MAX_HEAD_BYTES: usize = 256 << 10;
const MAX_TAIL_BYTES: usize = 256 << 10;
const READ_BYTES: usize = 16 << 10;
/// Time for the rest of the output after the end of a command. A process that it left behind may keep the pipe open.
const DRAIN_LIMIT: Duration = Duration::from_millis(200);
/// Rounds of killing, and the pause between them. Processes may start others meanwhile.
const MAX_KILL_ROUNDS: usize = 200;
const KILL_PAUSE: Duration = Duration::from_millis(10);

/// Output of a command: its beginning and its end, and the part that was not read yet.
#[derive(Debug, Default)]
pub(super) struct OutputBuffer {
    head: String,
    tail: VecDeque<String>,
    tail_bytes: usize,
    omitted: u64,
}

/// A bounded output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BoundedOutput {
    pub(super) text: String,
    /// Number of bytes removed from the middle.
    pub(super) omitted: u64,
}

impl OutputBuffer {
    fn push(&mut self, mut text: &str) {
        if self.tail.is_empty() {
            let space = MAX_HEAD_BYTES.saturating_sub(self.head.len());
            let end = text.floor_char_boundary(space);
            self.head.push_str(&text[..end]);
            text = &text[end..];
        }
        if text.is_empty() {
            return;
        }
        self.tail_bytes += text.len();
        self.tail.push_back(text.to_owned());
        while self.tail_bytes > MAX_TAIL_BYTES && self.tail.len() > 1 {
            if let Some(dropped) = self.tail.pop_front() {
                self.tail_bytes -= dropped.len();
                self.omitted += dropped.len() as u64;
            }
        }
    }

    /// Takes the output so far.
    fn take(&mut self) -> BoundedOutput {
        let Self { head, tail, omitted, .. } = std::mem::take(self);
        let mut text = head;
        if omitted > 0 {
            text.push_str(&format!("\n[… {omitted} bytes omitted …]\n"));
        }
        text.extend(tail);
        BoundedOutput { text, omitted }
    }
}

/// Decodes output piece by piece. A character that is split between two reads is kept back.
#[derive(Debug, Default)]
struct Utf8Pieces {
    rest: Vec<u8>,
}

impl Utf8Pieces {
    fn push(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let mut text = String::new();
        loop {
            match std::str::from_utf8(&self.rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    self.rest.clear();
                    return text;
                }
                Err(error) => {
                    let valid = error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&self.rest[..valid]));
                    let Some(bad) = error.error_len() else {
                        self.rest.drain(..valid);
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    self.rest.drain(..valid + bad);
                }
            }
        }
    }
}

/// State of a command that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProcessState {
    Running,
    Exited {
        code: i32,
    },
    /// Its status could not be read.
    Lost {
        message: String,
    },
}

/// A started command. Its task runs until all of its processes have ended, also if this is dropped.
#[derive(Debug)]
pub(super) struct StartedProcess {
    pub(super) id: u32,
    output: Arc<Mutex<OutputBuffer>>,
    /// Receives each piece of output while a call waits for it.
    sink: Arc<Mutex<Option<OutputSink>>>,
    state: watch::Receiver<ProcessState>,
    stdin: tokio::sync::Mutex<Option<ChildStdin>>,
    kill: Mutex<Option<oneshot::Sender<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StartedProcess {
    /// Starts a command with both output streams in one pipe, so that their order is kept.
    pub(super) fn start(mut command: Command, stdin: Stdio) -> io::Result<Arc<Self>> {
        let (reader, writer) = io::pipe()?;
        command.stdin(stdin).stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn()?;
        // The command has copies of the writing end. The end of the output is seen once all of them are closed.
        drop(command);
        let id = child.id().ok_or_else(|| io::Error::other("the process has ended already"))?;
        let reader = pipe::Receiver::from_owned_fd(reader.into())?;
        let (kill, killed) = oneshot::channel();
        let (report, state) = watch::channel(ProcessState::Running);
        let started = Arc::new(Self {
            id,
            output: Arc::default(),
            sink: Arc::default(),
            state,
            stdin: tokio::sync::Mutex::new(child.stdin.take()),
            kill: Mutex::new(Some(kill)),
        });
        let (output, sink) = (Arc::clone(&started.output), Arc::clone(&started.sink));
        tokio::spawn(async move {
            let reading = tokio::spawn(read_output(reader, output, sink));
            let state = wait(&mut child, id, killed).await;
            let abort = reading.abort_handle();
            if tokio::time::timeout(DRAIN_LIMIT, reading).await.is_err() {
                abort.abort();
            }
            // Fails if nobody waits any more.
            let _ = report.send(state);
        });
        Ok(started)
    }

    /// Returns a receiver of the state.
    pub(super) fn state(&self) -> watch::Receiver<ProcessState> {
        self.state.clone()
    }

    /// Kills the command and all of its descendants.
    pub(super) fn kill(&self) {
        if let Some(kill) = lock(&self.kill).take() {
            // Fails if it has ended.
            let _ = kill.send(());
        }
    }

    /// Passes output on until it is replaced.
    pub(super) fn set_sink(&self, sink: Option<OutputSink>) {
        *lock(&self.sink) = sink;
    }

    /// Takes the output since the last call.
    pub(super) fn take_output(&self) -> BoundedOutput {
        lock(&self.output).take()
    }

    /// Waits for the end, at most for a time. `None` if it still runs.
    pub(super) async fn wait(&self, limit: Duration) -> Option<ProcessState> {
        let mut state = self.state();
        let ended = tokio::time::timeout(limit, state.wait_for(|state| *state != ProcessState::Running)).await;
        match ended {
            Ok(Ok(state)) => Some(state.clone()),
            Ok(Err(_)) => Some(ProcessState::Lost { message: "its task ended".to_owned() }),
            Err(_) => None,
        }
    }

    /// Writes to standard input.
    pub(super) async fn write(&self, input: &str) -> io::Result<()> {
        let mut stdin = self.stdin.lock().await;
        let stdin = stdin.as_mut().ok_or_else(|| io::Error::other("it reads no standard input"))?;
        stdin.write_all(input.as_bytes()).await?;
        stdin.flush().await
    }
}

async fn read_output(
    mut reader: pipe::Receiver,
    output: Arc<Mutex<OutputBuffer>>,
    sink: Arc<Mutex<Option<OutputSink>>>,
) {
    let (mut pieces, mut bytes) = (Utf8Pieces::default(), vec![0_u8; READ_BYTES]);
    // An error is the end of the output.
    while let Ok(count @ 1..) = reader.read(&mut bytes).await {
        let text = pieces.push(&bytes[..count]);
        if text.is_empty() {
            continue;
        }
        lock(&output).push(&text);
        let sink = lock(&sink).clone();
        if let Some(sink) = sink {
            sink.write(&text);
        }
    }
}

/// Waits for the end of a command, and kills it with all descendants when asked to.
async fn wait(child: &mut Child, id: u32, killed: oneshot::Receiver<()>) -> ProcessState {
    let killed = async {
        // A dropped sender is no order to kill.
        if killed.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let status = tokio::select! {
        biased;
        status = child.wait() => status,
        () = killed => {
            let _ = tokio::task::spawn_blocking(move || kill_tree(id)).await;
            child.wait().await
        }
    };
    match status {
        Ok(status) => {
            use std::os::unix::process::ExitStatusExt as _;
            // Shells report a signal as 128 and its number.
            let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or_default();
            ProcessState::Exited { code }
        }
        Err(error) => ProcessState::Lost { message: error.to_string() },
    }
}

/// Kills the descendants of a process, then the process. Its guardian adopts orphans, so that none escapes.
fn kill_tree(root: u32) {
    let kill = |id: u32| {
        if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
            // Fails for a process that ended meanwhile.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    };
    for _ in 0..MAX_KILL_ROUNDS {
        let running = descendants(root);
        if running.is_empty() {
            break;
        }
        running.into_iter().for_each(kill);
        std::thread::sleep(KILL_PAUSE);
    }
    kill(root);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn long_output_keeps_head_and_tail() {
        let mut buffer = OutputBuffer::default();
        buffer.push("start\n");
        for _ in 0..20_000 {
            buffer.push(&format!("{}\n", "x".repeat(99)));
        }
        buffer.push("end");
        let output = buffer.take();
        assert!(output.text.starts_with("start\n") && output.text.ends_with("\nend"));
        assert!(output.omitted > 1_000_000 && output.text.len() < MAX_HEAD_BYTES + MAX_TAIL_BYTES + 200);
        assert_eq!(buffer.take(), BoundedOutput::default());
    }

    #[test]
    fn split_characters_are_decoded_whole() {
        let mut pieces = Utf8Pieces::default();
        let bytes = "aé€😀".as_bytes();
        let text: String = bytes.iter().map(|byte| pieces.push(&[*byte])).collect();
        assert_eq!(text, "aé€😀");
        assert_eq!(pieces.push(b"\xFFb"), "\u{FFFD}b");
    }

    #[tokio::test]
    async fn both_streams_arrive_in_order() {
        let started =
            StartedProcess::start(shell("echo one; echo two >&2; echo three; exit 3"), Stdio::null()).unwrap();
        let state = started.wait(Duration::from_mins(1)).await;
        assert_eq!(state, Some(ProcessState::Exited { code: 3 }));
        assert_eq!(started.take_output().text, "one\ntwo\nthree\n");
    }

    #[tokio::test]
    async fn kill_ends_all_descendants() {
        let script = "sleep 1000 & sleep 1000 & echo started; wait";
        let started = StartedProcess::start(shell(script), Stdio::null()).unwrap();
        while !lock(&started.output).head.contains("started") {
            tokio::task::yield_now().await;
        }
        let running = descendants(started.id);
        assert_eq!(running.len(), 2);
        started.kill();
        assert!(started.wait(Duration::from_mins(1)).await.is_some());
        for process in running {
            assert!(!std::path::Path::new(&format!("/proc/{process}/cmdline")).exists() || is_zombie(process));
        }
    }

    /// `true` for a process that ended and whose parent has not read its status.
    fn is_zombie(process: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('Z'))
    }

    #[tokio::test]
    async fn written_input_reaches_process() {
        let started = StartedProcess::start(shell("read line; echo \"got $line\""), Stdio::piped()).unwrap();
        started.write("hello\n").await.unwrap();
        started.wait(Duration::from_mins(1)).await.unwrap();
        assert_eq!(started.take_output().text, "got hello\n");
    }
}
