//! `sayso exec`: a command under the gate.

pub(crate) mod ask;
pub(crate) mod show;

use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use sayso_gate::{ChangeStatus, Decided, Engine, Finished, Judged, Proposed, Submission, Submitted};
use sayso_review::{Answer, CommandPreview, Fingerprint, FromNowOn, Intent, RuleScope, Ruling, Subject};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::agents::Registered;
use crate::cli::ExecArguments;
use crate::config::{Config, append_rule, user_file};
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::propose::ask::Questions;
use crate::state::{DENIED, REFUSED, State, now};
use crate::terminal::Terminal;
use crate::visible::visible;
use crate::{agents, wait};
use ask::Said;

/// How a question ended.
enum Verdict {
    Permitted(Subject),
    Denied(String),
    Undecided,
}

pub(crate) fn run(arguments: &ExecArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    let config = Config::load(&state)?;
    let mut rules = config.rules()?;
    state.tell_where();
    let mut engine = state.engine()?.keeping(config.snapshots());
    agents::settle(&state, &mut engine)?;
    let command = script(&arguments.command);
    if command.trim().is_empty() {
        return Err(Failure::bad_input("there is no command").hint("name one, such as `sayso exec 'make test'`"));
    }
    let own =
        ["--approve", "--deny", "--session", "--agent", "--turn", "--call", "--json", "--workspace", "--directory"];
    if let Some(word) = arguments.command.iter().skip(1).find(|word| own.contains(&word.as_str())) {
        say(&format!("note: `{word}` is part of the command; options of sayso go before it"));
    }
    let intent = Intent::RunCommand {
        command,
        directory: arguments.directory.clone(),
        description: arguments.description.clone(),
    };
    let deadline = config.deadline_from(now());
    let origin = arguments.source.origin();
    let submission = Submission { deadline, ..Submission::new(intent, origin) };
    let judged = engine.judge(&submission, &mut rules)?;
    let running = Running { state: &state, config: &config, arguments };
    let asks = judged.ruled.ruling == Ruling::Ask;
    let (change, verdict) = if asks {
        running.ask(engine, submission, judged)?
    } else {
        let submitted = engine.submit(submission, &mut rules, now())?;
        // Let go of while the command runs.
        drop(engine);
        decided(submitted)
    };
    match verdict {
        Verdict::Permitted(subject) => running.carry_out(change, &subject),
        Verdict::Denied(told) => {
            running.report(change, "denied", &json!({ "told": told }), &format!("Not run. The agent is told: {told}"));
            Ok(ExitCode::from(if asks { DENIED } else { REFUSED }))
        }
        Verdict::Undecided => {
            say("Nothing was decided, so nothing was run.");
            Ok(ExitCode::from(DENIED))
        }
    }
}

/// What policy decided by itself.
fn decided(submitted: Submitted) -> (u64, Verdict) {
    match submitted {
        Submitted::Decided { proposed, decided: Decided::Permitted { subject, .. } } => {
            (proposed.change, Verdict::Permitted(subject))
        }
        Submitted::Decided { proposed, decided: Decided::Denied { told } }
        | Submitted::Impossible { proposed, told } => (proposed.change, Verdict::Denied(told)),
        Submitted::Decided { proposed, .. } | Submitted::Waiting(proposed) => (proposed.change, Verdict::Undecided),
    }
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
    config: &'a Config,
    arguments: &'a ExecArguments,
}

impl Running<'_> {
    fn terminal(&self) -> Terminal {
        Terminal::detect(self.arguments.place.color, self.arguments.place.theme)
    }

    /// Lets somebody decide: by a flag, at this terminal, or elsewhere.
    fn ask(&self, mut engine: Engine, submission: Submission, judged: Judged) -> Result<(u64, Verdict), Failure> {
        let agent = agents::speaks_for_one(self.state);
        let answer = match (&self.arguments.deny, self.arguments.approve) {
            (Some(reason), _) => {
                Some(Answer::Deny { reason: Some(reason.clone()).filter(|reason| !reason.is_empty()) })
            }
            (None, true) => Some(Answer::Approve),
            (None, false) => None,
        };
        if answer.is_some() {
            agents::refuse(self.state)?;
        }
        let elsewhere = answer.is_none() && (agent || !std::io::stdin().is_terminal());
        let patience = elsewhere.then(wait::Patience::new);
        let shown = show::text(&judged.subject, self.terminal());
        let proposed = engine.record_judged(submission, judged, now())?;
        if let Some(answer) = answer {
            return Ok((proposed.change, decide(&mut engine, &proposed, answer)?));
        }
        drop(engine);
        let mut output = Output::stdout();
        if let Some(patience) = &patience {
            // Known from now on, so that nothing waits for ever should this process be killed.
            let registered = agents::register(self.state, proposed.change)?;
            let record = wait::for_verdict(self.state, self.config, patience, proposed.change)?;
            let verdict = match record.status {
                ChangeStatus::Permitted => Verdict::Permitted(record.approved()),
                ChangeStatus::Denied => Verdict::Denied(record.told.unwrap_or_default()),
                _ => Verdict::Undecided,
            };
            if !matches!(verdict, Verdict::Permitted(_)) {
                registered.finished();
            }
            return Ok((proposed.change, verdict));
        }
        // Should this be interrupted, nobody is left to run it.
        let registered = agents::register(self.state, proposed.change)?;
        output.write(shown.as_bytes())?;
        let mut questions = Questions::open(Path::new(""), self.terminal())?;
        let verdict =
            ask_and_decide(self.state, self.config, &proposed, (&mut questions, &mut output), self.terminal())?;
        output.finish()?;
        registered.finished();
        Ok((proposed.change, verdict))
    }

    /// Runs what was approved, and finds what changed meanwhile.
    fn carry_out(&self, change: u64, subject: &Subject) -> Result<ExitCode, Failure> {
        let Subject::Command { command, directory, .. } = subject else {
            return Err(Failure::bad_input("that is no command"));
        };
        let registered = agents::register(self.state, change)?;
        // Whoever loses their parent stays below us, and speaks for an agent still.
        let _ = rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1));
        let code = spawn(command, &self.state.root.join(directory.as_str()), change, &registered);
        let mut engine = self.state.engine()?.keeping(self.config.snapshots());
        let finished = engine.finish(change, code.as_ref().ok().copied(), now())?;
        registered.finished();
        drop(engine);
        let code = code?;
        let files: Vec<String> = finished.record.steps.iter().map(|step| step.path.to_string()).collect();
        let details = json!({ "code": code, "changed": files, "not_captured": finished.uncaptured });
        self.report(change, "ran", &details, &summary(change, &finished));
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
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

/// Asks until there is an answer, and carries it out. No lock is held while a person decides.
fn ask_and_decide(
    state: &State,
    config: &Config,
    proposed: &Proposed,
    (questions, output): (&mut Questions, &mut Output),
    terminal: Terminal,
) -> Result<Verdict, Failure> {
    loop {
        match ask::ask(proposed, questions, output)? {
            Said::DryRun => {
                let dry_run = state.engine()?.rehearsal(proposed.change)?.run();
                output.write(ask::rehearsed(&dry_run).as_bytes())?;
            }
            Said::Nothing => {
                state.engine()?.cancel(proposed.change, now())?;
                return Ok(Verdict::Undecided);
            }
            Said::Answer(answer, from_now_on) => {
                let mut engine = state.engine()?.keeping(config.snapshots());
                if let Err(error) = engine.check_rules(proposed, &answer, &mut config.rules()?) {
                    output.write(format!("{error}\n").as_bytes())?;
                    continue;
                }
                if let (Answer::Command { command }, Subject::Command { directory, .. }) = (&answer, &proposed.subject)
                {
                    // What runs instead is shown before it runs, like anything else.
                    let preview = CommandPreview::of(command, directory, &state.root.to_string_lossy());
                    output.write(show::command(&preview, terminal).as_bytes())?;
                    if questions.line(output, "Run this instead [y,n]? ")?.as_deref() != Some("y") {
                        continue;
                    }
                }
                let rule = from_now_on.map(|meant| engine.rule_from(proposed, &answer, meant)).transpose();
                let verdict = decide(&mut engine, proposed, answer)?;
                keep(&mut engine, proposed, rule, from_now_on)?;
                return Ok(verdict);
            }
        }
    }
}

/// Answers a command or a call of a tool that waits, for `sayso review`.
pub(crate) fn review(
    state: &State,
    config: &Config,
    proposed: &Proposed,
    answering: (&mut Questions, &mut Output),
    terminal: Terminal,
) -> Result<String, Failure> {
    Ok(match ask_and_decide(state, config, proposed, answering, terminal)? {
        Verdict::Permitted(_) => format!("Change {} may go ahead.", proposed.change),
        Verdict::Denied(told) => format!("Denied. The agent is told: {told}"),
        Verdict::Undecided => "Nothing was decided.".to_owned(),
    })
}

/// Makes a rule of a verdict that was meant for what comes, too.
fn keep(
    engine: &mut Engine,
    proposed: &Proposed,
    rule: Result<Option<sayso_review::Rule>, sayso_gate::GateError>,
    from_now_on: Option<FromNowOn>,
) -> Result<(), Failure> {
    let rule = match rule {
        Ok(None) => return Ok(()),
        Ok(Some(rule)) => rule,
        Err(error) => {
            say(&format!("note: decided for this time only: {error}"));
            return Ok(());
        }
    };
    match (from_now_on.map(|answer| answer.scope), proposed.session(), user_file()) {
        (Some(RuleScope::Session), Some(session), _) => {
            engine.add_rule(session, rule, now())?;
            say(
                "note: these very words are allowed for the rest of the session; what a command writes is still judged as a write",
            );
        }
        (Some(RuleScope::Always), _, Some(path)) => {
            append_rule(&path, &rule)?;
            let path = path.display();
            say(&format!("note: a rule was added to {path}; what a command writes is still judged as a write"));
        }
        _ => say("note: decided for this time only: there is no session, or no configuration to keep a rule in"),
    }
    Ok(())
}

fn decide(engine: &mut Engine, proposed: &Proposed, answer: Answer) -> Result<Verdict, Failure> {
    Ok(match engine.decide(proposed, &proposed.verdict(answer), now())? {
        Decided::Permitted { subject, .. } => Verdict::Permitted(subject),
        Decided::Denied { told } => Verdict::Denied(told),
        _ => Verdict::Undecided,
    })
}

/// Runs a script with our own input, output and environment, and gives its exit code.
fn spawn(script: &str, directory: &Path, change: u64, registered: &Registered) -> Result<i32, Failure> {
    let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
    let failed = |error: std::io::Error| {
        Failure::bad_input(format!("the command could not be started in `{}`", directory.display())).why(&error)
    };
    // What a terminal sends reaches the command as well; we stay to see what it did.
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]).map_err(failed)?;
    let mut child = Command::new(shell)
        .arg("-c")
        .arg(script)
        .current_dir(directory)
        .env(agents::MARK, change.to_string())
        .spawn()
        .map_err(failed)?;
    registered.runs(child.id());
    let handle = signals.handle();
    let pid = rustix::process::Pid::from_child(&child);
    let forward = std::thread::spawn(move || {
        for signal in &mut signals {
            // These come to us alone.
            let forwarded = match signal {
                SIGTERM => rustix::process::Signal::TERM,
                SIGHUP => rustix::process::Signal::HUP,
                _ => continue,
            };
            let _ = rustix::process::kill_process(pid, forwarded);
        }
    });
    let status = child.wait().map_err(failed);
    handle.close();
    // It has nothing left to wait for.
    let _ = forward.join();
    let status = status?;
    // As shells report a program that a signal has ended.
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
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
