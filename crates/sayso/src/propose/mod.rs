//! `sayso propose`: previews a proposal, asks, and applies what was approved.

pub(crate) mod editor;
mod file_review;
pub(crate) mod prompt;

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::process::ExitCode;

use sayso_api::client::{ChangeDetails, PreviewDetail, ProposeMode, Proposed};
use sayso_review::{ChangeStatus, ErrorKind, Proposal, Ruling};
use serde_json::json;

use crate::agents;
use crate::cli::ProposeArguments;
use crate::engine::EngineConnection;
use crate::error::{CliError, DENIED, exit_code};
use crate::output::{Output, say};
use crate::pending::Pending;
use crate::signals::{TerminationSignals, WithdrawOnSignal};
use crate::workspace_location::WorkspaceLocation;
pub(crate) use file_review::{FileReview, Reviewed};

/// Size of the largest proposal. A larger one is a mistake.
const MAX_PROPOSAL_BYTES: u64 = 256 << 20;

pub(crate) fn run(arguments: &ProposeArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    let text = read(&arguments.proposal)?;
    // Checked before an engine starts, which would create a journal.
    Proposal::parse(&text).map_err(|error| CliError::new(error.kind(), error.to_string()).hint(error.hint()))?;
    let submission = ProposalText { text, arguments };
    let has_answer = arguments.verdict.approve.is_some() || arguments.verdict.deny.is_some();
    if arguments.common.json && !has_answer {
        return submission.print_preview(&location);
    }
    // Connected before a person is asked: interrupted changes are settled, and a damaged journal is reported.
    let engine = EngineConnection::open(&location)?;
    location.announce();
    let mut review =
        FileReview::new(&engine, &arguments.verdict, &arguments.common, &arguments.proposal, Output::stdout());
    if agents::acts_for_agent(&location) {
        if has_answer {
            agents::refuse(&location)?;
        }
        return submission.submit_for_agent(&location, &engine, &mut review);
    }
    let attached = if std::io::stdin().is_terminal() { Some(engine.attach()?) } else { None };
    let on_signal = WithdrawOnSignal::new(&engine)?;
    let mut checked = None;
    if has_answer {
        let shown = Pending::from_details(submission.send(&engine, ProposeMode::Preview)?);
        if shown.record.ruling.as_ref().is_none_or(|ruling| ruling.ruling != Ruling::Deny) {
            // An answer that does not fit fails before the proposal is recorded.
            checked = Some((shown.record.preview, review.checked_answer(&shown)?));
        }
    }
    let mode = if has_answer { ProposeMode::Ask } else { ProposeMode::Record };
    let details = submission.send(&engine, mode)?;
    let change = details.record.change;
    if details.record.status != ChangeStatus::Pending {
        return review.report_policy_decision(details);
    }
    let needs_answer = details.record.ruling.as_ref().is_none_or(|ruling| ruling.ruling == Ruling::Ask);
    if !needs_answer && !has_answer {
        say(&format!("Change {change} waits for another of the same file: `sayso review`."));
        return Ok(ExitCode::from(DENIED));
    }
    on_signal.watch(change);
    let registration = agents::register(&location, change)?;
    let pending = Pending::from_details(details);
    let code = match checked {
        Some((preview, answer)) => review.decide_checked(pending, preview, answer),
        None => review.ask(pending),
    };
    on_signal.watch(0);
    registration.unregister();
    drop(attached);
    code
}

/// A proposal with its origin.
struct ProposalText<'a> {
    text: Vec<u8>,
    arguments: &'a ProposeArguments,
}

impl ProposalText<'_> {
    fn send(&self, engine: &EngineConnection, mode: ProposeMode) -> Result<ChangeDetails, CliError> {
        let (text, origin) = (Proposed::Text(self.text.clone()), self.arguments.origin.origin());
        // A preview is not recorded, so that its contents come with it or not at all.
        let has_contents = self.arguments.common.json || mode == ProposeMode::Preview;
        let detail = if has_contents { PreviewDetail::Contents } else { PreviewDetail::Omitted };
        engine.block(engine.client().propose(text, origin, mode, detail))
    }

    /// Prints the preview as JSON, without recording the proposal.
    fn print_preview(&self, location: &WorkspaceLocation) -> Result<ExitCode, CliError> {
        let engine = EngineConnection::read_only(location)?;
        let preview = Pending::from_details(self.send(&engine, ProposeMode::Preview)?).preview(&engine)?;
        let mut output = Output::stdout();
        output.json(&json!(preview.object()))?;
        output.finish()?;
        let has_conflict = preview.problems().next().is_some();
        Ok(if has_conflict { exit_code(ErrorKind::Conflict) } else { ExitCode::SUCCESS })
    }

    /// Submits the proposal for an agent, and waits until a person decides elsewhere.
    fn submit_for_agent(
        &self,
        location: &WorkspaceLocation,
        engine: &EngineConnection,
        review: &mut FileReview<'_>,
    ) -> Result<ExitCode, CliError> {
        let signals = TerminationSignals::new()?;
        let details = self.send(engine, ProposeMode::Record)?;
        if details.record.status != ChangeStatus::Pending {
            return review.report_policy_decision(details);
        }
        // Registered, so that the engine cancels the change if this process is killed.
        let registration = agents::register(location, details.record.change)?;
        let record = signals.wait_for_verdict(engine, details.record.change)?;
        registration.unregister();
        review.report_decided(&record)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let failed = |error: std::io::Error| {
        CliError::invalid_input(format!("cannot read the proposal `{}`", path.display()))
            .caused_by(&error)
            .hint("name a file, or `-` for standard input")
    };
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().take(MAX_PROPOSAL_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let file = std::fs::File::open(path);
        file.and_then(|file| file.take(MAX_PROPOSAL_BYTES + 1).read_to_end(&mut bytes)).map_err(failed)?;
    }
    if bytes.len() as u64 > MAX_PROPOSAL_BYTES {
        let message = format!("the proposal is larger than {} MB", MAX_PROPOSAL_BYTES >> 20);
        return Err(CliError::invalid_input(message));
    }
    Ok(bytes)
}
