//! Checks of a command by other programs, which do not run it.
//!
//! `bash -n` parses a script without running it. It gets the script on standard input and an empty environment, so no
//! setting can make it run a command. A dry run starts only on a user's request.
//!
//! # Limits
//!
//! - A program that leaves its process group outlives its time limit. Neither `bash -n` nor the dry runs do that.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use sayso_review::{DryRun, DryRunEnd, DryRunOutput, Syntax};

/// Maximum size of a script to check.
const MAX_SCRIPT_BYTES: usize = 1 << 20;
/// Maximum wait for the last output of a program that has ended.
const OUTPUT_GRACE_PERIOD: Duration = Duration::from_millis(500);

/// Resources of a check.
#[derive(Clone, Debug)]
pub struct CheckLimits {
    /// Absolute directories to find programs in, with `:` between them.
    pub search_path: OsString,
    pub time: Duration,
    /// Maximum kept bytes of standard output, and the same of standard error.
    pub output: usize,
}

impl CheckLimits {
    /// Returns the limits for checks without a setting of their own.
    pub fn default_limits() -> Self {
        Self { search_path: "/usr/local/bin:/usr/bin:/bin".into(), time: Duration::from_secs(5), output: 64 << 10 }
    }
}

/// Checks the syntax of a script with `bash -n`, which does not run it.
pub fn check_syntax(script: &str, limits: &CheckLimits) -> Syntax {
    let unchecked = |reason: String| Syntax::Unchecked { reason };
    if script.len() > MAX_SCRIPT_BYTES {
        return unchecked(format!(
            "the script has {} bytes, and {MAX_SCRIPT_BYTES} is the most that is checked",
            script.len()
        ));
    }
    let Some(bash) = find("bash", &limits.search_path) else {
        return unchecked("bash was not found".to_owned());
    };
    let mut command = program(&bash, "bash");
    command.args(["--norc", "--noprofile", "-n"]).current_dir("/");
    match run(command, script.as_bytes(), limits) {
        Err(error) => unchecked(format!("bash does not start: {error}")),
        Ok(ProgramResult { status: None, .. }) => {
            unchecked(format!("bash did not answer within {} ms", limits.time.as_millis()))
        }
        Ok(ProgramResult { status: Some(status), .. }) if status.success() => Syntax::Valid,
        Ok(ProgramResult { status: Some(status), errors, .. }) => match status.code() {
            Some(_) => parse_syntax_error(&errors.text),
            None => unchecked(format!("bash was ended by {status}")),
        },
    }
}

/// Runs the dry run of a preview in a directory of the workspace. Call this only on a user's request.
pub fn run_dry(dry_run: &DryRun, directory: &Path, limits: &CheckLimits) -> DryRunOutput {
    let not_started = |reason: String| DryRunOutput {
        output: String::new(),
        errors: String::new(),
        end: DryRunEnd::NotStarted { reason },
        is_truncated: false,
    };
    let Some((name, arguments)) = dry_run.argv.split_first() else {
        return not_started("there is no program".to_owned());
    };
    let Some(path) = find(name, &limits.search_path) else {
        return not_started(format!("`{name}` was not found; install it to see what the command would do"));
    };
    let mut command = program(&path, name);
    command.args(arguments).env("PATH", &limits.search_path).current_dir(directory);
    let ran = match run(command, b"", limits) {
        Ok(ran) => ran,
        Err(error) => return not_started(format!("`{name}` does not start: {error}")),
    };
    let end = match ran.status {
        None => DryRunEnd::TimedOut,
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => DryRunEnd::Exited { code },
            (None, signal) => DryRunEnd::Signalled { signal: signal.unwrap_or_default() },
        },
    };
    DryRunOutput {
        is_truncated: ran.output.is_truncated || ran.errors.is_truncated,
        output: ran.output.text,
        errors: ran.errors.text,
        end,
    }
}

/// Finds a program by its name in the search path.
#[allow(clippy::disallowed_methods, reason = "the gate starts programs and must know where they are")]
fn find(name: &str, search_path: &OsString) -> Option<PathBuf> {
    if name.is_empty() || name.contains('/') {
        return None;
    }
    std::env::split_paths(search_path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// Creates a command with an empty environment and a process group of its own.
#[allow(clippy::disallowed_methods, reason = "processes are started by the gate")]
fn program(path: &Path, name: &str) -> Command {
    let mut command = Command::new(path);
    command.arg0(name).env_clear().process_group(0);
    command
}

/// Kept output of a program.
#[derive(Clone, Default)]
struct ProgramOutput {
    text: String,
    is_truncated: bool,
}

struct ProgramResult {
    /// `None` if the time limit ended the program.
    status: Option<ExitStatus>,
    output: ProgramOutput,
    errors: ProgramOutput,
}

/// Runs a program until it ends or reaches the time limit.
fn run(mut command: Command, input: &[u8], limits: &CheckLimits) -> std::io::Result<ProgramResult> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Each pipe has a thread, so that full pipes cannot cause a deadlock.
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        thread::spawn(move || drop(stdin.write_all(&input)));
    }
    let output = child.stdout.take().map(|pipe| read_output(pipe, limits.output));
    let errors = child.stderr.take().map(|pipe| read_output(pipe, limits.output));
    let in_time = wait_for_end(&child, limits.time);
    // The leader is not reaped yet, so its process number still names this group.
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    let status = child.wait()?;
    let printed = |collected: Option<OutputReader>| collected.map_or_else(ProgramOutput::default, OutputReader::finish);
    Ok(ProgramResult { status: in_time.then_some(status), output: printed(output), errors: printed(errors) })
}

/// Waits until a program has ended, without reaping it. Returns `true` if it ended in time.
fn wait_for_end(child: &Child, time: Duration) -> bool {
    let Some(pid) = Pid::from_raw(child.id().cast_signed()) else { return false };
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::Pid(pid), options) {}
        let _ = ended.send(());
    });
    end.recv_timeout(time).is_ok()
}

/// Output of a program, read by a thread.
struct OutputReader {
    kept: Arc<Mutex<(Vec<u8>, bool)>>,
    end: Receiver<()>,
}

/// Reads a pipe to its end in a thread, and keeps the first `max_bytes`, so that the program never blocks.
fn read_output(mut pipe: impl Read + Send + 'static, max_bytes: usize) -> OutputReader {
    let kept = Arc::new(Mutex::new((Vec::new(), false)));
    let (ended, end) = mpsc::channel();
    let shared = Arc::clone(&kept);
    thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let room = count.min(max_bytes.saturating_sub(kept.0.len()));
            kept.0.extend_from_slice(&buffer[..room]);
            kept.1 |= room < count;
        }
        let _ = ended.send(());
    });
    OutputReader { kept, end }
}

impl OutputReader {
    /// Returns the output. Waits for the end of the pipe only for a short time, since a detached child may hold it
    /// open.
    fn finish(self) -> ProgramOutput {
        let _ = self.end.recv_timeout(OUTPUT_GRACE_PERIOD);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        ProgramOutput { text: String::from_utf8_lossy(&kept.0).into_owned(), is_truncated: kept.1 }
    }
}

/// Parses an error of bash, such as `bash: line 3: syntax error …`.
fn parse_syntax_error(errors: &str) -> Syntax {
    let mut line = None;
    let mut messages = Vec::new();
    for text in errors.lines().take(6) {
        let text = text.strip_prefix("bash: ").unwrap_or(text);
        let numbered = text.strip_prefix("line ").and_then(|text| text.split_once(": "));
        let number = numbered.and_then(|(number, _)| number.parse::<usize>().ok());
        let message = numbered.filter(|_| number.is_some()).map_or(text, |(_, message)| message);
        line = line.or(number);
        messages.push(message.chars().take(200).collect::<String>());
    }
    Syntax::Invalid { message: messages.join("\n"), line }
}
