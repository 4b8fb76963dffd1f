//! `sayso propose`: shows, asks, does.

mod approve;
pub(crate) mod ask;
mod deciding;
pub(crate) mod edit;
pub(crate) mod keys;
pub(crate) mod preview;

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::process::ExitCode;

use sayso_api::client::{Proposed, Proposing, View};
use sayso_review::{ChangeStatus, ErrorKind, Proposal, Ruling};
use serde_json::json;

use crate::agents;
use crate::cli::ProposeArguments;
use crate::engine::Connected;
use crate::failure::{Failure, exit_code};
use crate::output::{Output, say};
use crate::pending::{Patience, Pending, Withdrawing};
use crate::state::{DENIED, State};
pub(crate) use deciding::{Deciding, Reviewed};

/// Larger proposals are mistakes.
const LIMIT: u64 = 256 << 20;

pub(crate) fn run(arguments: &ProposeArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    let text = read(&arguments.proposal)?;
    // Before an engine is bothered, which would leave a trace.
    Proposal::parse(&text).map_err(|error| Failure::of(error.kind(), error.to_string()).hint(error.hint()))?;
    let proposing = Text { text, arguments };
    let answered = arguments.answers.approve.is_some() || arguments.answers.deny.is_some();
    if arguments.place.json && !answered {
        return proposing.preview(&state);
    }
    // What was interrupted is settled before anything is looked at, and a journal that cannot be used says so before anybody answers.
    let connected = Connected::to(&state)?;
    state.tell_where();
    let mut deciding =
        Deciding::new(&connected, &arguments.answers, &arguments.place, &arguments.proposal, Output::stdout());
    if agents::speaks_for_one(&state) {
        if answered {
            agents::refuse(&state)?;
        }
        return proposing.wait(&state, &connected, &mut deciding);
    }
    // Where a person is, what waits need not be announced.
    let attached = if std::io::stdin().is_terminal() { Some(connected.attach()?) } else { None };
    let withdrawing = Withdrawing::new(&connected)?;
    let mut asked = None;
    if answered {
        let shown = Pending::of(proposing.send(&connected, Proposing::Preview)?)?;
        if shown.record.ruled.as_ref().is_none_or(|ruled| ruled.ruling != Ruling::Deny) {
            // An answer that does not fit is nobody's decision, and not worth a record.
            asked = Some((shown.record.preview, deciding.answer_that_fits(&shown)?));
        }
    }
    let mode = if answered { Proposing::Ask } else { Proposing::Record };
    let progress = proposing.send(&connected, mode)?;
    let change = progress.record.change;
    if progress.record.status != ChangeStatus::Pending {
        return deciding.ruled(progress);
    }
    let asks = progress.record.ruled.as_ref().is_none_or(|ruled| ruled.ruling == Ruling::Ask);
    if !asks && !answered {
        say(&format!("Change {change} waits for another of the same file: `sayso review`."));
        return Ok(ExitCode::from(DENIED));
    }
    withdrawing.asks_about(change);
    let registered = agents::register(&state, change)?;
    let pending = Pending::of(progress)?;
    let code = match asked {
        Some((shown, asked)) => deciding.answered(pending, shown, asked),
        None => deciding.ask(pending),
    };
    withdrawing.asks_about(0);
    registered.finished();
    drop(attached);
    code
}

/// A proposal on its way.
struct Text<'a> {
    text: Vec<u8>,
    arguments: &'a ProposeArguments,
}

impl Text<'_> {
    fn send(&self, connected: &Connected, proposing: Proposing) -> Result<sayso_api::client::Progress, Failure> {
        let (text, origin) = (Proposed::Text(self.text.clone()), self.arguments.source.origin());
        connected.block(connected.client().propose(text, origin, proposing, View::Content))
    }

    /// Shows what it would do to a program.
    fn preview(&self, state: &State) -> Result<ExitCode, Failure> {
        let shown = Pending::of(self.send(&Connected::asking(state)?, Proposing::Preview)?)?;
        let mut output = Output::stdout();
        output.json(&json!(shown.preview.object()))?;
        output.finish()?;
        let conflict = shown.preview.problems().next().is_some();
        Ok(if conflict { exit_code(ErrorKind::Conflict) } else { ExitCode::SUCCESS })
    }

    /// Proposes for an agent, and waits until somebody decides elsewhere.
    fn wait(&self, state: &State, connected: &Connected, deciding: &mut Deciding<'_>) -> Result<ExitCode, Failure> {
        let patience = Patience::new()?;
        let progress = self.send(connected, Proposing::Record)?;
        if progress.record.status != ChangeStatus::Pending {
            return deciding.ruled(progress);
        }
        // Known from now on, so that it does not wait for ever should this process be killed.
        let registered = agents::register(state, progress.record.change)?;
        let record = patience.for_verdict(connected, progress.record.change)?;
        registered.finished();
        deciding.ended(&record)
    }
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
