//! `sayso propose`: shows, asks, does.

mod approve;
mod ask;
mod edit;
pub(crate) mod preview;

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use sayso_gate::{Decided, Engine, GateError, Proposed};
use sayso_review::{Answer, Comment, Decider, ErrorKind, FileDecision, Origin, Preview, Proposal, Taken, Verdict};
use serde_json::{Value, json};

use crate::cli::ProposeArguments;
use crate::failure::{Failure, exit_code};
use crate::output::{Output, say};
use crate::state::{DENIED, STALE, State, now};
use crate::terminal::Terminal;
use ask::{Asked, Questions};

/// Larger proposals are mistakes.
const LIMIT: u64 = 256 << 20;

pub(crate) fn run(arguments: &ProposeArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    let proposal = Proposal::parse(&read(&arguments.proposal)?)
        .map_err(|error| Failure::of(error.kind(), error.to_string()).hint(error.hint()))?;
    let answered = arguments.approve.is_some() || arguments.deny.is_some();
    let mut output = Output::stdout();
    if arguments.place.json && !answered {
        let preview = sayso_gate::preview(&state.workspace()?, &proposal)?;
        output.json(&json!(preview.object()))?;
        output.finish()?;
        let conflict = preview.problems().next().is_some();
        return Ok(if conflict { exit_code(ErrorKind::Conflict) } else { ExitCode::SUCCESS });
    }
    let origin = Origin {
        agent: arguments.agent.clone(),
        session: arguments.session.clone(),
        turn: arguments.turn.clone(),
        call: arguments.call.clone(),
    };
    // What was interrupted is settled before anything is looked at, and a journal that cannot be used says so before anybody answers.
    drop(state.engine()?);
    state.tell_where();
    let preview = sayso_gate::preview(&state.workspace()?, &proposal)?;
    let mut deciding = Deciding { state: &state, arguments, terminal: terminal(arguments), output };
    deciding.run(preview, origin)
}

fn terminal(arguments: &ProposeArguments) -> Terminal {
    Terminal::detect(arguments.place.color, arguments.place.theme)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::bad_input(format!("the proposal `{}` cannot be read", path.display()))
            .why(&error)
            .hint("name a file, or `-` for standard input")
    };
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().take(LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes)).map_err(failed)?;
    }
    if bytes.len() as u64 > LIMIT {
        return Err(Failure::bad_input(format!("the proposal is larger than {} MB", LIMIT >> 20)));
    }
    Ok(bytes)
}

fn undecided() -> ExitCode {
    say("Nothing was decided, so nothing was done.");
    ExitCode::from(DENIED)
}

struct Deciding<'a> {
    state: &'a State,
    arguments: &'a ProposeArguments,
    terminal: Terminal,
    output: Output,
}

impl Deciding<'_> {
    /// Asks, and does. Nothing is recorded and no lock is held while a person decides, so that they can take their time, or leave.
    fn run(&mut self, preview: Preview, origin: Origin) -> Result<ExitCode, Failure> {
        let Some(asked) = self.answer(&preview)? else { return Ok(undecided()) };
        // An answer that does not fit is nobody's decision, and not worth a record.
        let verdict = Verdict {
            preview: preview.hash(),
            answer: asked.answer.clone(),
            comments: asked.comments.clone(),
            by: Decider::Person,
        };
        preview.decide(&verdict).map_err(GateError::from)?;
        let mut engine = self.state.engine()?;
        let proposed = engine.record(preview, origin, now())?;
        self.decide(engine, proposed, asked)
    }

    fn decide(&mut self, mut engine: Engine, mut proposed: Proposed, mut asked: Asked) -> Result<ExitCode, Failure> {
        loop {
            let mut verdict = proposed.verdict(asked.answer);
            verdict.comments = asked.comments;
            let decided = match engine.decide(&proposed, &verdict, now()) {
                Ok(decided) => decided,
                Err(error) => {
                    // It ends here if it still waits; what went wrong first is what is told.
                    let _ = engine.cancel(proposed.change, now());
                    return Err(error.into());
                }
            };
            let Decided::Stale { next, files, told } = decided else {
                drop(engine);
                return self.report(&proposed, &decided);
            };
            let names = files.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
            let nothing_to_ask = next.preview.asked().next().is_none();
            if self.arguments.approve.is_some() || nothing_to_ask || next.preview.problems().next().is_some() {
                engine.cancel(next.change, now())?;
                return self.stale(&proposed, &next, &names, &told);
            }
            // Let go of while the person decides again.
            drop(engine);
            self.output.flush()?;
            say(&format!("{names} changed while you decided; nothing was written. Both changes together:"));
            let answer = self.answer(&next.preview);
            engine = self.state.engine()?;
            asked = match answer {
                Ok(Some(asked)) => asked,
                other => {
                    engine.cancel(next.change, now())?;
                    other?;
                    return Ok(undecided());
                }
            };
            proposed = *next;
        }
    }

    fn answer(&mut self, preview: &Preview) -> Result<Option<Asked>, Failure> {
        let comments = self.arguments.comment.iter().map(|text| approve::comment(text, preview));
        let comments = comments.collect::<Result<Vec<Comment>, Failure>>()?;
        let answer = match (&self.arguments.approve, &self.arguments.deny) {
            (Some(text), _) => approve::answer(text, preview)?,
            (None, Some(reason)) => Answer::Deny { reason: Some(reason.clone()).filter(|reason| !reason.is_empty()) },
            (None, None) => {
                let mut questions = Questions::open(&self.arguments.proposal, self.terminal)?;
                let asked = questions.ask(preview, &mut self.output)?;
                return Ok(asked.map(|mut asked| {
                    asked.comments.splice(0..0, comments);
                    asked
                }));
            }
        };
        if !self.arguments.place.json {
            self.output.write(preview::text(preview, self.terminal).as_bytes())?;
        }
        Ok(Some(Asked { answer, comments }))
    }

    fn stale(&mut self, proposed: &Proposed, next: &Proposed, names: &str, told: &str) -> Result<ExitCode, Failure> {
        if self.arguments.place.json {
            let outcome = json!({ "outcome": "stale", "told": told, "merged": next.preview.object() });
            self.json(proposed, outcome)?;
        } else {
            self.output.write(preview::text(&next.preview, self.terminal).as_bytes())?;
            self.output.flush()?;
            say(&format!(
                "Error: {names} changed after it was shown; nothing was written\nHint: propose it again to decide about both changes together"
            ));
        }
        self.output.flush()?;
        Ok(exit_code(STALE))
    }

    fn report(&mut self, proposed: &Proposed, decided: &Decided) -> Result<ExitCode, Failure> {
        let (code, outcome, text) = match decided {
            Decided::Applied { told, decision, lost } => {
                let whole = decision.files.iter().all(|file| file.taken == Taken::All);
                let changed = |file: &FileDecision| !matches!(file.taken, Taken::Nothing { .. });
                let files = if decision.plan.is_empty() {
                    0
                } else {
                    decision.files.iter().filter(|file| changed(file)).count()
                };
                let number = proposed.change;
                let mut text = match files {
                    0 => "Nothing had to be changed.".to_owned(),
                    files => {
                        let part = if whole { "" } else { " in part" };
                        let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
                        format!("Applied{part} as change {number}: {files}. `sayso undo {number}` takes it back.")
                    }
                };
                for (path, what) in lost {
                    text.push_str(&format!("\nnote: `{path}` could not keep its {}", what.join(" and ")));
                }
                let code = if whole { ExitCode::SUCCESS } else { ExitCode::from(DENIED) };
                (code, json!({ "outcome": "applied", "in_part": !whole, "told": told }), text)
            }
            Decided::Denied { told, .. } => {
                let outcome = json!({ "outcome": "denied", "told": told });
                (ExitCode::from(DENIED), outcome, format!("Denied; nothing was written. The agent is told: {told}"))
            }
            Decided::Failed { error, told } => {
                let outcome = json!({ "outcome": "failed", "reason": error.to_string(), "told": told });
                (exit_code(error.kind()), outcome, format!("Error: {error}"))
            }
            Decided::Permitted { told, .. } => {
                (ExitCode::SUCCESS, json!({ "outcome": "permitted", "told": told }), told.clone())
            }
            Decided::Stale { .. } => (exit_code(STALE), json!({ "outcome": "stale" }), String::new()),
        };
        if self.arguments.place.json {
            self.json(proposed, outcome)?;
        }
        self.output.flush()?;
        if !self.arguments.place.json {
            say(&text);
        }
        Ok(code)
    }

    fn json(&mut self, proposed: &Proposed, mut outcome: Value) -> Result<(), Failure> {
        outcome["change"] = json!(proposed.change);
        outcome["preview"] = json!(proposed.preview.object());
        self.output.json(&outcome)
    }
}
