//! `sayso exec`: runs a command under the gate.

pub(crate) mod review;

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use sayso_api::client::{AskMode, PreviewDetail, Submission};
use sayso_present::change::run_summary;
use sayso_present::command::render_subject;
use sayso_present::command_prompt::deny;
use sayso_present::escape::quote_for_shell;
use sayso_review::{Answer, ChangeRecord, ChangeStatus, ErrorKind, Intent, Performer, Ruling, Subject};
use serde_json::json;

use crate::agents::{self, Registration};
use crate::call;
use crate::child;
use crate::cli::ExecArguments;
use crate::config;
use crate::engine::EngineConnection;
use crate::error::{CliError, DENIED, REFUSED};
use crate::output::{Output, say};
use crate::pending::{Pending, withdraw};
use crate::propose::prompt::Prompter;
use crate::settings::report_unconfirmed_rules;
use crate::signals::{TerminationSignals, WithdrawOnSignal};
use crate::terminal::Terminal;
use crate::workspace_location::WorkspaceLocation;
use review::{CommandOutcome, CommandReview};

/// Shown and recorded with a command that runs without marks.
const UNMARKED: &str = "runs unmarked: it could decide in your name";

/// Options of `sayso exec` that are easily put behind the command by mistake.
const OWN_OPTIONS: [&str; 10] = [
    "--approve",
    "--deny",
    "--unmarked",
    "--session",
    "--agent",
    "--turn",
    "--call",
    "--json",
    "--workspace",
    "--directory",
];

pub(crate) fn run(arguments: &ExecArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    let command = script(&arguments.command);
    if command.trim().is_empty() {
        return Err(CliError::invalid_input("there is no command").hint("name one, such as `sayso exec 'make test'`"));
    }
    if arguments.unmarked && agents::is_marked() {
        return Err(CliError::new(
            ErrorKind::ToolDenied,
            "cannot run a command unmarked: this process runs under the gate itself",
        )
        .hint("run it in a terminal that no agent started"));
    }
    location.announce();
    report_unconfirmed_rules(&location);
    let engine = EngineConnection::open(&location)?;
    agents::report_orphaned_commands(&location);
    if let Some(word) = arguments.command.iter().skip(1).find(|word| OWN_OPTIONS.contains(&word.as_str())) {
        say(&format!("note: `{word}` is part of the command; options of sayso go before it"));
    }
    let intent = Intent::RunCommand {
        command,
        directory: Some(location.command_directory(arguments.directory.as_deref())),
        description: description(arguments),
    };
    let submission = Submission {
        intent,
        origin: arguments.origin.origin(),
        performer: Performer::Gate,
        deadline: None,
        schema: None,
        ask_mode: if arguments.unmarked { AskMode::Always } else { AskMode::ByPolicy },
    };
    let run = CommandRun { location: &location, engine: &engine, arguments };
    let (record, outcome) = run.submit(submission)?;
    let change = record.change;
    match outcome {
        CommandOutcome::Permitted(subject) => run.carry_out(change, &subject),
        CommandOutcome::Denied(message) => {
            let text = format!("Not run. The agent is told: {message}");
            run.report(change, "denied", &json!({ "agent_message": message }), &text);
            let by_person = record.ruling.is_some_and(|ruling| ruling.ruling == Ruling::Ask);
            Ok(ExitCode::from(if by_person { DENIED } else { REFUSED }))
        }
        CommandOutcome::Undecided | CommandOutcome::Left(_) | CommandOutcome::Ended(_) => {
            say("Nothing was decided, so nothing was run.");
            Ok(ExitCode::from(DENIED))
        }
    }
}

/// Returns the description for display and the record. It names a command that runs unmarked.
fn description(arguments: &ExecArguments) -> Option<String> {
    let given = arguments.description.clone();
    if !arguments.unmarked {
        return given;
    }
    Some(given.map_or_else(|| UNMARKED.to_owned(), |given| format!("{given} ({UNMARKED})")))
}

/// Returns the script: one argument as it is, several as quoted words.
fn script(words: &[String]) -> String {
    match words {
        [script] => script.clone(),
        words => words.iter().map(|word| quote_for_shell(word)).collect::<Vec<_>>().join(" "),
    }
}

/// A command under the gate.
struct CommandRun<'a> {
    location: &'a WorkspaceLocation,
    engine: &'a EngineConnection,
    arguments: &'a ExecArguments,
}

impl CommandRun<'_> {
    fn terminal(&self) -> Terminal {
        Terminal::detect(self.arguments.common.color, self.arguments.common.theme)
    }

    /// Submits the command. If policy asks, takes the verdict from the options, at this terminal, or from elsewhere.
    fn submit(&self, submission: Submission) -> Result<(ChangeRecord, CommandOutcome), CliError> {
        let answer = match (&self.arguments.deny, self.arguments.approve) {
            (Some(reason), _) => Some(deny(reason)),
            (None, true) => Some(Answer::Approve),
            (None, false) => None,
        };
        let for_agent = agents::acts_for_agent(self.location);
        if answer.is_some() {
            // Refused before the command is recorded.
            agents::refuse(self.location)?;
        }
        let is_elsewhere = answer.is_none() && (for_agent || !std::io::stdin().is_terminal());
        let signals = if is_elsewhere { Some(TerminationSignals::new()?) } else { None };
        let attached = if is_elsewhere || for_agent { None } else { Some(self.engine.attach()?) };
        let client = self.engine.client();
        let details = self.engine.block(client.submit(submission, PreviewDetail::Contents))?;
        if details.record.status != ChangeStatus::Pending {
            let outcome = CommandOutcome::of(&details.record);
            return Ok((details.record, outcome));
        }
        let pending = Pending::from_details(details);
        let record = pending.record.clone();
        // Registered, so that the engine cancels the change if this process is killed.
        let registration = agents::register(self.location, pending.change())?;
        let outcome = match (signals, answer) {
            (Some(signals), _) => CommandOutcome::of(&signals.wait_for_verdict(self.engine, pending.change())?),
            (None, Some(answer)) => {
                let verdict = pending.verdict(answer, Vec::new());
                let decided = client.decide(pending.change(), verdict, None, PreviewDetail::Omitted);
                let decided = self.engine.block(decided);
                if decided.is_err() {
                    withdraw(self.engine, pending.change());
                }
                CommandOutcome::of(&decided?.record)
            }
            (None, None) => self.ask(&pending)?,
        };
        drop(attached);
        if !matches!(outcome, CommandOutcome::Permitted(_)) {
            registration.unregister();
        }
        Ok((record, outcome))
    }

    fn ask(&self, pending: &Pending) -> Result<CommandOutcome, CliError> {
        let on_signal = WithdrawOnSignal::new(self.engine)?;
        on_signal.watch(pending.change());
        let mut output = Output::stdout();
        output.styled(&render_subject(&pending.record.subject), self.terminal())?;
        let mut prompter = Prompter::open(Path::new(""), self.terminal());
        let (root, terminal) = (self.location.root.to_string_lossy(), self.terminal());
        let mut review =
            CommandReview { engine: self.engine, root: &root, prompter: &mut prompter, terminal, message: None };
        let outcome = review.decide(pending, &mut output)?;
        // This process would run the command. After it, a verdict would have no effect.
        if matches!(outcome, CommandOutcome::Undecided | CommandOutcome::Left(_)) {
            withdraw(self.engine, pending.change());
        }
        on_signal.watch(0);
        output.finish()?;
        Ok(outcome)
    }

    /// Runs a permitted command, and reports the files that it changed.
    fn carry_out(&self, change: u64, subject: &Subject) -> Result<ExitCode, CliError> {
        let Subject::Command { command, directory, .. } = subject else {
            return Err(CliError::new(ErrorKind::Internal, format!("change {change} is not a command")));
        };
        let registration = agents::register(self.location, change)?;
        let client = self.engine.client();
        let spawned = self.command_line(change, command).and_then(|mut command_line| {
            command_line.current_dir(self.location.root.join(directory.as_str())).env(agents::MARK, change.to_string());
            spawn(&mut command_line, &registration)
        });
        let code = match spawned {
            Ok(code) => code,
            Err(error) => {
                self.engine.block(client.not_started(change, &error.message()))?;
                registration.unregister();
                return Err(error);
            }
        };
        config::inspect(self.location);
        let left = child::left_behind();
        if !left.is_empty() {
            registration.detach_command(code, &left);
            let details = json!({ "exit_code": code, "still_running": left });
            let text = format!(
                "{}. Change {change} stays open until the end, and what is written meanwhile belongs to it.",
                child::still_running(&left)
            );
            self.report(change, "ran", &details, &text);
            return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)));
        }
        let finished = self.engine.block(client.finish(change, Some(code)))?;
        registration.unregister();
        let steps = &finished.record.steps;
        let files: Vec<String> = steps.iter().map(|step| step.path.to_string()).collect();
        let details = json!({ "exit_code": code, "changed": files, "uncaptured": finished.uncaptured });
        self.report(change, "ran", &details, &run_summary(change, steps, &finished.uncaptured));
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }

    /// Returns the program for a permitted command: `sayso call` if rules allowed it, a shell if a person approved it.
    fn command_line(&self, change: u64, script: &str) -> Result<Command, CliError> {
        let order = self.engine.block(self.engine.client().prepare_call(change))?;
        if !order.by_person {
            let mut command = Command::new("/proc/self/exe");
            command.args([call::NAME, &order.id]);
            // Piped input is for the command. A terminal is not: it would answer questions that were not judged.
            if !std::io::stdin().is_terminal() {
                command.arg(call::STDIN);
            }
            return Ok(command);
        }
        let shell = Path::new(if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" });
        let mut command = if self.arguments.unmarked { Command::new(shell) } else { child::marked(shell) };
        command.arg("-c").arg(script);
        Ok(command)
    }

    /// Reports on standard error, because standard output belongs to the command.
    fn report(&self, change: u64, outcome: &str, details: &serde_json::Value, text: &str) {
        if self.arguments.common.json {
            let mut object = json!({ "outcome": outcome, "change": change });
            if let (Some(object), Some(details)) = (object.as_object_mut(), details.as_object()) {
                object.extend(details.clone());
            }
            say(&object.to_string());
        } else if !text.is_empty() {
            say(text);
        }
    }
}

/// Runs a program with our output and environment, and returns its exit code.
fn spawn(command: &mut Command, registration: &Registration) -> Result<i32, CliError> {
    let directory = command.get_current_dir().unwrap_or(Path::new(".")).display().to_string();
    child::run(command, |child| registration.track_child(child)).map_err(|error| {
        CliError::io(format!("cannot start the command in `{directory}`"), &error)
            .hint("check that the directory exists and can be entered")
    })
}
