//! `sayso exec`: a command under the gate.

pub(crate) mod ask;
pub(crate) mod decide;
pub(crate) mod show;

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use sayso_api::client::{Consent, Finished, Submission, View};
use sayso_review::{Answer, ChangeRecord, ChangeStatus, ErrorKind, Fingerprint, Intent, Performer, Ruling, Subject};
use sayso_server::is_marked;
use serde_json::json;

use crate::agents;
use crate::agents::Registered;
use crate::call;
use crate::child;
use crate::cli::ExecArguments;
use crate::config;
use crate::engine::Connected;
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::pending::{Patience, Pending, Withdrawing, withdraw};
use crate::propose::ask::{Leaving, Questions};
use crate::settings::tell_of_unconfirmed_rules;
use crate::state::{DENIED, REFUSED, State};
use crate::terminal::Terminal;
use crate::visible::visible;
use decide::Asking;

/// Shown and recorded with a command that runs without marks.
const UNMARKED: &str = "runs unmarked: it could decide in your name";

/// How a question ended.
pub(crate) enum Verdict {
    Permitted(Subject),
    Denied(String),
    Undecided,
    /// The person decided nothing; it waits on.
    Left(Leaving),
    /// It is over, without anybody's verdict or with all that came of one.
    Over(ChangeStatus),
}

impl Verdict {
    /// What was decided of a change.
    fn of(record: &ChangeRecord) -> Self {
        match record.status {
            ChangeStatus::Permitted => Self::Permitted(record.approved()),
            ChangeStatus::Denied | ChangeStatus::Failed { .. } => Self::Denied(record.told.clone().unwrap_or_default()),
            ChangeStatus::Pending => Self::Undecided,
            _ => Self::Over(record.status.clone()),
        }
    }
}

pub(crate) fn run(arguments: &ExecArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    let command = script(&arguments.command);
    if command.trim().is_empty() {
        return Err(Failure::bad_input("there is no command").hint("name one, such as `sayso exec 'make test'`"));
    }
    if arguments.unmarked && is_marked() {
        return Err(Failure::of(
            ErrorKind::ToolDenied,
            "cannot run a command unmarked: this process runs under the gate itself",
        )
        .hint("run it in a terminal that no agent started"));
    }
    state.tell_where();
    tell_of_unconfirmed_rules(&state);
    let connected = Connected::to(&state)?;
    agents::tell_what_still_runs(&state);
    let own = [
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
    if let Some(word) = arguments.command.iter().skip(1).find(|word| own.contains(&word.as_str())) {
        say(&format!("note: `{word}` is part of the command; options of sayso go before it"));
    }
    let intent = Intent::RunCommand {
        command,
        directory: Some(state.directory(arguments.directory.as_deref())),
        description: description(arguments),
    };
    let submission = Submission {
        intent,
        origin: arguments.source.origin(),
        performer: Performer::Gate,
        deadline: None,
        schema: None,
        consent: if arguments.unmarked { Consent::Person } else { Consent::Policy },
    };
    let running = Running { state: &state, connected: &connected, arguments };
    let (record, verdict) = running.submit(submission)?;
    let change = record.change;
    match verdict {
        Verdict::Permitted(subject) => running.carry_out(change, &subject),
        Verdict::Denied(told) => {
            running.report(change, "denied", &json!({ "told": told }), &format!("Not run. The agent is told: {told}"));
            let asked = record.ruled.is_some_and(|ruled| ruled.ruling == Ruling::Ask);
            Ok(ExitCode::from(if asked { DENIED } else { REFUSED }))
        }
        Verdict::Undecided | Verdict::Left(_) | Verdict::Over(_) => {
            say("Nothing was decided, so nothing was run.");
            Ok(ExitCode::from(DENIED))
        }
    }
}

/// The description as it is shown and recorded: a command that runs unmarked says so.
fn description(arguments: &ExecArguments) -> Option<String> {
    let said = arguments.description.clone();
    if !arguments.unmarked {
        return said;
    }
    Some(said.map_or_else(|| UNMARKED.to_owned(), |said| format!("{said} ({UNMARKED})")))
}

/// One argument is what a shell reads; several are words.
fn script(words: &[String]) -> String {
    match words {
        [script] => script.clone(),
        words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-./=:,@%+".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

struct Running<'a> {
    state: &'a State,
    connected: &'a Connected,
    arguments: &'a ExecArguments,
}

impl Running<'_> {
    fn terminal(&self) -> Terminal {
        Terminal::detect(self.arguments.place.color, self.arguments.place.theme)
    }

    /// Hands the command over, and lets somebody decide where policy asks: by a flag, at this terminal, or elsewhere.
    fn submit(&self, submission: Submission) -> Result<(ChangeRecord, Verdict), Failure> {
        let answer = match (&self.arguments.deny, self.arguments.approve) {
            (Some(reason), _) => {
                Some(Answer::Deny { reason: Some(reason.clone()).filter(|reason| !reason.is_empty()) })
            }
            (None, true) => Some(Answer::Approve),
            (None, false) => None,
        };
        let agent = agents::speaks_for_one(self.state);
        if answer.is_some() {
            // Said before anything is recorded.
            agents::refuse(self.state)?;
        }
        let elsewhere = answer.is_none() && (agent || !std::io::stdin().is_terminal());
        let patience = if elsewhere { Some(Patience::new()?) } else { None };
        // Where a person is, what waits need not be announced.
        let attached = if elsewhere || agent { None } else { Some(self.connected.attach()?) };
        let client = self.connected.client();
        let progress = self.connected.block(client.submit(submission, View::Content))?;
        if progress.record.status != ChangeStatus::Pending {
            let verdict = Verdict::of(&progress.record);
            return Ok((progress.record, verdict));
        }
        let pending = Pending::of(progress)?;
        let record = pending.record.clone();
        // Known from now on, so that nothing waits for ever should this process be killed.
        let registered = agents::register(self.state, pending.change())?;
        let verdict = match (patience, answer) {
            (Some(patience), _) => Verdict::of(&patience.for_verdict(self.connected, pending.change())?),
            (None, Some(answer)) => {
                let verdict = pending.verdict(answer, Vec::new());
                let decided = self.connected.block(client.decide(pending.change(), verdict, None, View::Nothing));
                if decided.is_err() {
                    withdraw(self.connected, pending.change());
                }
                Verdict::of(&decided?.record)
            }
            (None, None) => self.ask(&pending)?,
        };
        drop(attached);
        if !matches!(verdict, Verdict::Permitted(_)) {
            registered.finished();
        }
        Ok((record, verdict))
    }

    fn ask(&self, pending: &Pending) -> Result<Verdict, Failure> {
        let withdrawing = Withdrawing::new(self.connected)?;
        withdrawing.asks_about(pending.change());
        let mut output = Output::stdout();
        output.write(show::text(&pending.record.subject, self.terminal()).as_bytes())?;
        let mut questions = Questions::open(Path::new(""), self.terminal());
        let (root, terminal) = (self.state.root.to_string_lossy(), self.terminal());
        let mut asking = Asking { connected: self.connected, root: &root, questions: &mut questions, terminal };
        let verdict = asking.decide(pending, &mut output)?;
        // Whoever would run it leaves, so that nobody is left to wait.
        if matches!(verdict, Verdict::Undecided | Verdict::Left(_)) {
            withdraw(self.connected, pending.change());
        }
        withdrawing.asks_about(0);
        output.finish()?;
        Ok(verdict)
    }

    /// Runs what was approved, and finds what changed meanwhile.
    fn carry_out(&self, change: u64, subject: &Subject) -> Result<ExitCode, Failure> {
        let Subject::Command { command, directory, .. } = subject else {
            return Err(Failure::bad_input("that is no command"));
        };
        let registered = agents::register(self.state, change)?;
        let client = self.connected.client();
        let spawned = self.command_line(change, command).and_then(|mut command_line| {
            command_line.current_dir(self.state.root.join(directory.as_str())).env(agents::MARK, change.to_string());
            spawn(&mut command_line, &registered)
        });
        let code = match spawned {
            Ok(code) => code,
            Err(failure) => {
                self.connected.block(client.not_started(change, &failure.message()))?;
                registered.finished();
                return Err(failure);
            }
        };
        config::inspect(self.state);
        let left = child::left_behind();
        if !left.is_empty() {
            registered.leaves_open(code, &left);
            let details = json!({ "code": code, "still_running": left });
            self.report(change, "ran", &details, &left_open(change, &left));
            return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)));
        }
        let finished = self.connected.block(client.finish(change, Some(code)))?;
        registered.finished();
        let files: Vec<String> = finished.record.steps.iter().map(|step| step.path.to_string()).collect();
        let details = json!({ "code": code, "changed": files, "not_captured": finished.uncaptured });
        self.report(change, "ran", &details, &summary(change, &finished));
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }

    /// The program that carries out what was let go ahead: `sayso call` for what rules allow, a shell for what a person approved.
    fn command_line(&self, change: u64, script: &str) -> Result<Command, Failure> {
        let order = self.connected.block(self.connected.client().prepare_call(change))?;
        if !order.by_person {
            let mut command = Command::new("/proc/self/exe");
            command.args([call::NAME, &order.id]);
            // What was piped to us is the command's. A terminal is not: it would answer questions that nobody judged.
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

    /// Standard output is the command's own, so that what we have to say goes to standard error.
    fn report(&self, change: u64, outcome: &str, details: &serde_json::Value, text: &str) {
        if self.arguments.place.json {
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

/// Runs a program with our own output and environment, and gives its exit code.
fn spawn(command: &mut Command, registered: &Registered) -> Result<i32, Failure> {
    let directory = command.get_current_dir().unwrap_or(Path::new(".")).display().to_string();
    child::run(command, |child| registered.runs(child)).map_err(|error| {
        Failure::bad_input(format!("the command could not be started in `{directory}`"))
            .why(&error)
            .hint("look whether the directory is there and can be entered")
    })
}

/// Says which processes a command has left behind.
fn left_open(change: u64, left: &[u32]) -> String {
    format!(
        "{}. Change {change} stays open until the end, and what is written meanwhile belongs to it.",
        child::still_running(left)
    )
}

/// What changed while a command ran, for a person; nothing, if nothing did.
fn summary(change: u64, finished: &Finished) -> String {
    const MOST: usize = 10;
    let steps = &finished.record.steps;
    let mut text = String::new();
    if !steps.is_empty() {
        let files = if steps.len() == 1 { "1 file".to_owned() } else { format!("{} files", steps.len()) };
        text.push_str(&format!("Changed while it ran, as change {change}: {files}\n"));
        for step in steps.iter().take(MOST) {
            let what = match (&step.before, &step.after) {
                (Fingerprint::Absent, _) => " (new)",
                (_, Fingerprint::Absent) => " (deleted)",
                _ => "",
            };
            text.push_str(&format!("  {}{what}\n", visible(step.path.as_str())));
        }
        if steps.len() > MOST {
            text.push_str(&format!("  and {} more\n", steps.len() - MOST));
        }
        text.push_str(&format!(
            "`sayso show {change}` shows the diff, `sayso undo {change}` takes it back, with --file PATH in part.\n"
        ));
    }
    for one in finished.uncaptured.iter().take(MOST) {
        text.push_str(&format!("note: cannot be put back: {}: {}\n", visible(&one.path), visible(&one.reason)));
    }
    if finished.uncaptured.len() > MOST {
        text.push_str(&format!("note: and {} more that cannot be put back\n", finished.uncaptured.len() - MOST));
    }
    text.truncate(text.trim_end().len());
    text
}
