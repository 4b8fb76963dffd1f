//! Asks other programs about a command without running it.
//!
//! `bash -n` reads a script and runs nothing of it. It gets the script on standard input and an empty environment, so that no
//! setting can make it run anything either. A dry run is started only when somebody asks for it.
//!
//! # Limits
//!
//! - A program that leaves its process group outlives its time limit; neither `bash -n` nor the dry runs do.

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

/// The longest script that the shell is asked about.
const MOST_SCRIPT: usize = 1 << 20;
/// How long to wait for the last output of a program that has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What a program that is asked may use.
#[derive(Clone, Debug)]
pub struct CheckLimits {
    /// Where programs are looked for: absolute directories with `:` between them.
    pub search_path: OsString,
    /// How long one may take.
    pub time: Duration,
    /// How many bytes of output, and as many of errors, are kept.
    pub output: usize,
}

impl CheckLimits {
    /// What a check may take where nobody has said anything else.
    pub fn usual() -> Self {
        Self { search_path: "/usr/local/bin:/usr/bin:/bin".into(), time: Duration::from_secs(5), output: 64 << 10 }
    }
}

/// Asks bash whether it can read a script. Nothing of the script runs.
pub fn check_syntax(script: &str, limits: &CheckLimits) -> Syntax {
    let unchecked = |reason: String| Syntax::Unchecked { reason };
    if script.len() > MOST_SCRIPT {
        return unchecked(format!(
            "the script has {} bytes, and {MOST_SCRIPT} is the most that is checked",
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
        Ok(Ran { status: None, .. }) => unchecked(format!("bash did not answer within {} ms", limits.time.as_millis())),
        Ok(Ran { status: Some(status), .. }) if status.success() => Syntax::Fine,
        Ok(Ran { status: Some(status), errors, .. }) => match status.code() {
            Some(_) => wrong(&errors.text),
            None => unchecked(format!("bash was ended by {status}")),
        },
    }
}

/// Makes the dry run that a preview offers, in a directory of the workspace. To be called only when somebody asked for it.
pub fn run_dry(dry_run: &DryRun, directory: &Path, limits: &CheckLimits) -> DryRunOutput {
    let not_started = |reason: String| DryRunOutput {
        output: String::new(),
        errors: String::new(),
        end: DryRunEnd::NotStarted { reason },
        is_cut: false,
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
        is_cut: ran.output.is_cut || ran.errors.is_cut,
        output: ran.output.text,
        errors: ran.errors.text,
        end,
    }
}

/// Finds a program by its plain name.
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

/// A program with nothing in its environment, the leader of a group of its own.
#[allow(clippy::disallowed_methods, reason = "processes are started by the gate")]
fn program(path: &Path, name: &str) -> Command {
    let mut command = Command::new(path);
    command.arg0(name).env_clear().process_group(0);
    command
}

/// What a program has printed.
#[derive(Clone, Default)]
struct Printed {
    text: String,
    is_cut: bool,
}

struct Ran {
    /// Not there if it took too long.
    status: Option<ExitStatus>,
    output: Printed,
    errors: Printed,
}

/// Runs a program to its end, or to the limit.
fn run(mut command: Command, input: &[u8], limits: &CheckLimits) -> std::io::Result<Ran> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Each pipe has a thread of its own, so that neither side can wait for the other for ever.
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        thread::spawn(move || drop(stdin.write_all(&input)));
    }
    let output = child.stdout.take().map(|pipe| collect(pipe, limits.output));
    let errors = child.stderr.take().map(|pipe| collect(pipe, limits.output));
    let in_time = wait_for_end(&child, limits.time);
    // The leader is not reaped yet, so its number still names this group and no other.
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    let status = child.wait()?;
    let printed = |collected: Option<Collected>| collected.map_or_else(Printed::default, Collected::finish);
    Ok(Ran { status: in_time.then_some(status), output: printed(output), errors: printed(errors) })
}

/// Waits until a program has ended, and leaves it to be reaped; says whether it did in time.
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

/// The output of a program, read by a thread.
struct Collected {
    kept: Arc<Mutex<(Vec<u8>, bool)>>,
    end: Receiver<()>,
}

/// Keeps so many bytes and reads the others too, so that the program is not held up.
fn collect(mut pipe: impl Read + Send + 'static, most: usize) -> Collected {
    let kept = Arc::new(Mutex::new((Vec::new(), false)));
    let (ended, end) = mpsc::channel();
    let shared = Arc::clone(&kept);
    thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let room = count.min(most.saturating_sub(kept.0.len()));
            kept.0.extend_from_slice(&buffer[..room]);
            kept.1 |= room < count;
        }
        let _ = ended.send(());
    });
    Collected { kept, end }
}

impl Collected {
    /// What was printed up to the end, which somebody who got hold of the pipe may delay.
    fn finish(self) -> Printed {
        let _ = self.end.recv_timeout(LAST_WORDS);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Printed { text: String::from_utf8_lossy(&kept.0).into_owned(), is_cut: kept.1 }
    }
}

/// Takes bash's words apart: `bash: line 3: syntax error …`.
fn wrong(errors: &str) -> Syntax {
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
    Syntax::Wrong { message: messages.join("\n"), line }
}
