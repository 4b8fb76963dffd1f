//! `sayso call`: runs a permitted command in the agent's environment.
//!
//! In the agent's own shell, functions, aliases and snapshots could give a judged command another meaning. The hook therefore replaces it
//! with `sayso call ID`. A command that rules allowed runs from sayso's own parse, and each program is judged again with its real
//! arguments just before it starts. A command that a person approved runs in bash. Both run marked.
//!
//! `call` does not connect to an engine, because it may run in a sandbox without access, and for hours.

mod judge;
mod session;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
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
use crate::under_gate;
use crate::workspace_location::state_home;
use judge::CallJudge;

/// Exit code for a command that may not run. Shells use it for a file that cannot be executed.
const NOT_RUN: u8 = 126;

/// Names of the hidden commands.
pub(crate) const NAME: &str = "call";
pub(crate) const DIRECTORY: &str = "call-cwd";
/// Option after the id that passes standard input to the command. Without it, standard input is empty.
pub(crate) const STDIN: &str = "--stdin";

/// The standard input of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    Empty,
    Inherited,
}

/// Runs the order whose id is the first word.
pub(crate) fn run(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let first = words.next();
    let done = if first.as_ref().is_some_and(|word| word == session::SESSION) {
        session::enter(words.next()).and_then(|supervisor| run_order(words, Some(supervisor)))
    } else if session::has_terminal() {
        session::supervise(first.into_iter().chain(words))
    } else {
        run_order(first.into_iter().chain(words), None)
    };
    match done {
        Ok(code) => code,
        Err(reason) => {
            say(&format!("sayso: nothing was run: {reason}"));
            ExitCode::from(NOT_RUN)
        }
    }
}

/// Runs the order whose id is the first word. The command ends with `supervisor`.
fn run_order(mut words: impl Iterator<Item = OsString>, supervisor: Option<OwnedFd>) -> Result<ExitCode, String> {
    let id = id(&mut words).ok_or_else(|| "`sayso call` is for hooks, which name an order".to_owned())?;
    let input = if words.next().is_some_and(|word| word == STDIN) { Input::Inherited } else { Input::Empty };
    carry_out(&id, input, supervisor).map(ExitCode::from)
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

fn carry_out(id: &str, input: Input, supervisor: Option<OwnedFd>) -> Result<u8, String> {
    let home = state_home().map_err(|failure| failure.message())?;
    let files = CallFiles::new(&home);
    let order = files.read(id).map_err(|error| format!("cannot read the order `{id}`: {error}"))?;
    let order =
        order.ok_or_else(|| format!("there is no order `{id}`, or its command is over; propose the command again"))?;
    let directory = std::env::current_dir().map_err(|error| format!("the working directory is gone: {error}"))?;
    // Before any thread starts, because marks apply to one thread and its descendants.
    under_gate::mark(Scope::Command);
    if let Some(supervisor) = supervisor {
        session::end_with(supervisor);
    }
    let report = match &order.basis {
        CallBasis::Rules(rules) => run_by_rules(&order, rules, directory, input)?,
        CallBasis::Person => run_by_shell(&order, &directory)?,
    };
    let code = report.code.unwrap_or_default();
    if let Some(stopped) = &report.stopped {
        say(&format!("sayso: {stopped}"));
    }
    // A sandbox may forbid the write. The agent and its hook still have the exit code and the message.
    let _ = files.report(id, &report);
    Ok(u8::try_from(code).unwrap_or(NOT_RUN))
}

/// Runs a command that rules allowed, without a shell.
fn run_by_rules(order: &CallOrder, rules: &RuleSet, directory: PathBuf, input: Input) -> Result<CallReport, String> {
    let policy = rules.policy().map_err(|error| error.to_string())?;
    let program = Program::parse(&order.command).map_err(|error| error.to_string())?;
    let system = |error: io::Error| format!("cannot use a standard stream: {error}");
    let options = RunOptions {
        environment: std::env::vars_os().collect::<BTreeMap<OsString, OsString>>(),
        directory,
        stdin: (input == Input::Inherited).then(|| duplicate(&io::stdin())).transpose().map_err(system)?,
        stdout: session::output(&io::stdout()).map_err(system)?,
        stderr: session::output(&io::stderr()).map_err(system)?,
        handle: Handle::new(),
    };
    forward_signals(&options.handle).map_err(|error| format!("cannot install signal handlers: {error}"))?;
    let report = sayso_runner::run(&program, options, &CallJudge::new(order, policy));
    Ok(CallReport {
        directory: report.directory.to_string_lossy().into_owned(),
        code: Some(i32::from(report.exit_code)),
        stopped: report.refused.as_ref().map(|refusal| judge::stopped(&report, refusal)),
    })
}

fn duplicate(stream: &impl AsFd) -> io::Result<OwnedFd> {
    stream.as_fd().try_clone_to_owned()
}

/// Forwards signals to the programs of a script, which then ends.
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

/// Runs a command that a person approved, in bash, in the approved directory.
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
    let failed = |error: io::Error| format!("cannot start `{shell}`: {error}");
    let ended = tempfile::NamedTempFile::new().ok();
    let mut command = Command::new(shell);
    command
        .arg("-c")
        .arg(script(&order.command, ended.as_ref().map(tempfile::NamedTempFile::path)))
        .stdin(Stdio::null())
        .stdout(session::output(&io::stdout()).map_err(failed)?)
        .stderr(session::output(&io::stderr()).map_err(failed)?);
    let code = session::run_child(&mut command).map_err(failed)?;
    let directory = ended.and_then(|file| std::fs::read_to_string(file.path()).ok()).filter(|text| !text.is_empty());
    let directory = directory
        .map_or_else(|| approved.to_string_lossy().into_owned(), |text| text.trim_end_matches('\n').to_owned());
    Ok(CallReport { directory, code: Some(code), stopped: None })
}

/// Returns the script for bash. If it may change the directory, it writes the last one to a file when it exits.
fn script(command: &str, ended: Option<&Path>) -> String {
    let changes_directory = sayso_shell::Script::parse(command)
        .commands
        .iter()
        .any(|command| command.shell == 0 && matches!(command.program(), Some("cd" | "pushd" | "popd")));
    match ended {
        Some(file) if changes_directory => {
            let file = judge::quoted(&file.to_string_lossy());
            format!("trap \"command pwd -P >| {file}\" EXIT; {command}")
        }
        _ => command.to_owned(),
    }
}
