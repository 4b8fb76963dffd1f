//! `sayso call`: carries out a command that was let go ahead, where the agent runs its commands.
//!
//! A hook cannot hand a judged command back to the agent's shell: functions, aliases and snapshots of that shell give the words another
//! meaning. So the hook hands back `sayso call ID`. What rules allow is run from sayso's own parse, and every program is judged again with its
//! real arguments just before it starts. What a person approved is run by bash. Either way everything that starts here is marked.
//!
//! No engine is asked: `call` may run in a sandbox that forbids it, and for hours.

mod judge;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use sayso_gate::{CallBasis, CallOrder, RuleSet};
use sayso_marks::Scope;
use sayso_runner::{Handle, Interrupt, RunOptions};
use sayso_server::{CallFiles, CallReport};
use sayso_shell::program::Program;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output::say;
use crate::state::state_home;
use crate::under_gate;
use judge::Judge;

/// Exit code where something was not allowed to run, as shells have it for what cannot be executed.
const NOT_RUN: u8 = 126;

/// The names of the hidden commands.
pub(crate) const NAME: &str = "call";
pub(crate) const DIRECTORY: &str = "call-cwd";
/// The word behind the id that hands standard input to the command; without it there is none.
pub(crate) const STDIN: &str = "--stdin";

/// Standard input of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    Empty,
    Inherited,
}

/// Carries out the order whose id is the first word.
pub(crate) fn run(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let id = id(&mut words).ok_or_else(|| "`sayso call` is for hooks, which name an order".to_owned());
    let input = if words.next().is_some_and(|word| word == STDIN) { Input::Inherited } else { Input::Empty };
    match id.and_then(|id| carry_out(&id, input)) {
        Ok(code) => ExitCode::from(code),
        Err(reason) => {
            say(&format!("sayso: nothing was run: {reason}"));
            ExitCode::from(NOT_RUN)
        }
    }
}

fn id(mut words: impl Iterator<Item = OsString>) -> Option<String> {
    words.next()?.into_string().ok()
}

/// Prints the directory in which an order ended, for `cd`.
pub(crate) fn print_directory(words: impl Iterator<Item = OsString>) -> ExitCode {
    let report = || CallFiles::new(&state_home().ok()?).read_report(&id(words)?);
    let directory = report().map(|report| report.directory);
    let Some(directory) = directory.or_else(|| Some(std::env::current_dir().ok()?.to_string_lossy().into_owned()))
    else {
        return ExitCode::FAILURE;
    };
    match writeln!(io::stdout(), "{directory}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn carry_out(id: &str, input: Input) -> Result<u8, String> {
    let home = state_home().map_err(|failure| failure.message())?;
    let files = CallFiles::new(&home);
    let order = files.read(id).map_err(|error| format!("the order `{id}` cannot be read: {error}"))?;
    let order =
        order.ok_or_else(|| format!("there is no order `{id}`, or its command is over; propose the command again"))?;
    let directory = std::env::current_dir().map_err(|error| format!("the working directory is gone: {error}"))?;
    // Before any thread starts, so that none is without them.
    under_gate::mark(Scope::Command);
    let report = match &order.basis {
        CallBasis::Rules(rules) => run_by_rules(&order, rules, directory, input)?,
        CallBasis::Person => run_by_shell(&order, &directory)?,
    };
    let code = report.code.unwrap_or_default();
    if let Some(stopped) = &report.stopped {
        say(&format!("sayso: {stopped}"));
    }
    // Where a sandbox forbids it, the agent and its hook have the exit code and what was said.
    let _ = files.report(id, &report);
    Ok(u8::try_from(code).unwrap_or(NOT_RUN))
}

/// Runs what rules allow, without a shell.
fn run_by_rules(order: &CallOrder, rules: &RuleSet, directory: PathBuf, input: Input) -> Result<CallReport, String> {
    let policy = rules.policy().map_err(|error| error.to_string())?;
    let program = Program::parse(&order.command).map_err(|error| error.to_string())?;
    let system = |error: io::Error| format!("a standard stream cannot be used: {error}");
    let options = RunOptions {
        environment: std::env::vars_os().collect::<BTreeMap<OsString, OsString>>(),
        directory,
        stdin: (input == Input::Inherited).then(|| duplicate(&io::stdin())).transpose().map_err(system)?,
        stdout: duplicate(&io::stdout()).map_err(system)?,
        stderr: duplicate(&io::stderr()).map_err(system)?,
        handle: Handle::new(),
    };
    forward_signals(&options.handle).map_err(|error| format!("cannot install signal handlers: {error}"))?;
    let report = sayso_runner::run(&program, options, &Judge::new(order, policy));
    Ok(CallReport {
        directory: report.directory.to_string_lossy().into_owned(),
        code: Some(i32::from(report.exit_code)),
        stopped: report.refused.as_ref().map(|refusal| judge::stopped(&report, refusal)),
    })
}

fn duplicate(stream: &impl AsFd) -> io::Result<OwnedFd> {
    stream.as_fd().try_clone_to_owned()
}

/// Hands signals on to the programs of a script, which then ends.
fn forward_signals(handle: &Handle) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let handle = handle.clone();
    std::thread::spawn(move || {
        for signal in &mut signals {
            handle.signal(match signal {
                SIGHUP => Interrupt::HangUp,
                SIGINT => Interrupt::Interrupt,
                _ => Interrupt::Terminate,
            });
        }
    });
    Ok(())
}

/// Runs what a person approved, by bash, in the directory that the person saw.
fn run_by_shell(order: &CallOrder, directory: &Path) -> Result<CallReport, String> {
    let approved = Path::new(&order.root).join(order.directory.as_str());
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real(directory) != real(&approved) {
        return Err(format!(
            "it was approved for {}, and the agent runs it in {}; put `cd` into the command instead",
            approved.display(),
            directory.display()
        ));
    }
    let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
    let ended = tempfile::NamedTempFile::new().ok();
    let mut command = Command::new(shell);
    command
        .arg("-c")
        .arg(script(&order.command, ended.as_ref().map(tempfile::NamedTempFile::path)))
        .stdin(Stdio::null());
    let failed = |error: io::Error| format!("`{shell}` cannot be started: {error}");
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(failed)?;
    let mut child = command.spawn().map_err(failed)?;
    let pid = rustix::process::Pid::from_child(&child);
    std::thread::spawn(move || {
        for signal in &mut signals {
            let forwarded = match signal {
                SIGHUP => rustix::process::Signal::HUP,
                SIGINT => rustix::process::Signal::INT,
                _ => rustix::process::Signal::TERM,
            };
            let _ = rustix::process::kill_process(pid, forwarded);
        }
    });
    let status = child.wait().map_err(failed)?;
    let directory = ended.and_then(|file| std::fs::read_to_string(file.path()).ok()).filter(|text| !text.is_empty());
    let directory = directory
        .map_or_else(|| approved.to_string_lossy().into_owned(), |text| text.trim_end_matches('\n').to_owned());
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    Ok(CallReport { directory, code, stopped: None })
}

/// The script for bash. Where it may end in another directory, it leaves that in a file when it exits.
fn script(command: &str, ended: Option<&Path>) -> String {
    let changes = sayso_shell::Script::parse(command)
        .commands
        .iter()
        .any(|command| command.shell == 0 && matches!(command.program(), Some("cd" | "pushd" | "popd")));
    match ended {
        Some(file) if changes => {
            let file = judge::quoted(&file.to_string_lossy());
            format!("trap \"command pwd -P >| {file}\" EXIT; {command}")
        }
        _ => command.to_owned(),
    }
}
