//! `sayso review`: decides pending changes, and reviews changes that rules applied at once.

mod follow;

use std::path::Path;
use std::process::ExitCode;

use sayso_api::client::{PreviewDetail, PreviewOf};
use sayso_api::inbox::InboxList;
use sayso_present::change::{change_summary, review_heading};
use sayso_present::command::render_subject;
use sayso_present::command_prompt::deny;
use sayso_present::escape::escape_unprintable;
use sayso_present::file_review::Leave;
use sayso_present::inbox::{
    Inbox, LeaveResult, held_requests, held_requests_text, pending_changes, still_pending_text, turns_to_review,
};
use sayso_review::{Answer, ChangeRecord, ChangeStatus, ErrorKind, Subject, Verdict};
use serde_json::json;

use crate::agents;
use crate::change_diff::{ChangeDiff, FileFacts};
use crate::cli::{ReviewArguments, VerdictOptions};
use crate::engine::EngineConnection;
use crate::error::{CliError, DENIED};
use crate::exec::review::{CommandOutcome, CommandReview};
use crate::output::{Output, say};
use crate::pending::{Pending, settled};
use crate::propose::prompt::Prompter;
use crate::propose::{FileReview, Reviewed};
use crate::records;
use crate::session;
use crate::settings::report_unconfirmed_rules;
use crate::terminal::Terminal;
use crate::workspace_location::WorkspaceLocation;

pub(crate) fn run(arguments: &ReviewArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    agents::refuse(&location)?;
    report_unconfirmed_rules(&location);
    if arguments.follow {
        return follow::run(&location, arguments);
    }
    let mut code = review_workspace(&location, arguments)?;
    if arguments.changes.is_empty() && !arguments.common.json {
        for (nested, pending) in records::pending_in_nested(&location) {
            let root = nested.root.to_string_lossy();
            if !arguments.everywhere {
                say(&format!("{pending} in {}: `sayso review --everywhere`", escape_unprintable(&root)));
                continue;
            }
            say(&format!("In {}:", escape_unprintable(&root)));
            let ended = review_workspace(&nested, arguments)?;
            if ended != ExitCode::SUCCESS {
                code = ended;
            }
        }
    }
    Ok(code)
}

fn review_workspace(location: &WorkspaceLocation, arguments: &ReviewArguments) -> Result<ExitCode, CliError> {
    if !location.has_history() {
        say("Nothing waits. `sayso propose` and `sayso exec` bring something up.");
        return Ok(ExitCode::SUCCESS);
    }
    location.announce();
    let engine = EngineConnection::open(location)?;
    agents::report_orphaned_commands(location);
    let session = session::find_or_given(&engine, arguments.session.as_deref())?;
    let session = session.as_deref();
    let has_answer = arguments.verdict.approve.is_some() || arguments.verdict.deny.is_some();
    if let (Some(given), [_, _, ..]) = (&arguments.verdict.approve, &arguments.changes[..])
        && given != "all"
        && given != "none"
    {
        let message = format!("`--approve {given}` can only be about one change; nothing was decided");
        return Err(CliError::invalid_input(message).hint("name one change, or give all or none"));
    }
    let list = list_inbox(&engine, session)?;
    let changes =
        if arguments.changes.is_empty() { pending_changes(&list) } else { named_changes(&engine, arguments)? };
    if arguments.common.json && !has_answer {
        let mut changes = changes;
        changes.extend(turn_reviews(&engine, &list)?.iter().map(|review| review.change));
        changes.sort_unstable();
        changes.dedup();
        return print_json(&engine, &changes);
    }
    let mut reviewer = Reviewer::new(location, &engine, arguments);
    if has_answer {
        // Only changes that were pending when the command started are answered.
        let changes = if arguments.changes.is_empty() { only_change(&engine, &list)? } else { changes };
        let pending = changes.into_iter().map(|change| Pending::get(&engine, change));
        for pending in pending.collect::<Result<Vec<_>, _>>()? {
            reviewer.review(pending, None)?;
        }
    } else {
        let left = reviewer.review_all(Inbox::new(changes))?;
        if arguments.changes.is_empty() && left != Some(Leave::Quit) {
            reviewer.review_turns(session)?;
        }
    }
    let held = held_requests(&list_inbox(&engine, None)?);
    report_held_requests(held);
    if held == 0 && !reviewer.has_reviewed {
        say("Nothing waits.");
    }
    Ok(reviewer.code)
}

/// Points to the command for held requests. They are not decided here.
fn report_held_requests(held: u64) {
    if let Some(text) = held_requests_text(held) {
        say(&text);
    }
}

/// Lists what waits for a person. `None` is all sessions.
fn list_inbox(engine: &EngineConnection, session: Option<&str>) -> Result<InboxList, CliError> {
    engine.block(engine.client().list_inbox(session))
}

/// Returns the changes of the command line. Fails unless all are pending.
fn named_changes(engine: &EngineConnection, arguments: &ReviewArguments) -> Result<Vec<u64>, CliError> {
    for &change in &arguments.changes {
        let details = engine.client().get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed);
        let status = engine.block(details)?.record.status;
        if status != ChangeStatus::Pending {
            let message = format!("change {change} cannot be decided: it is {status}");
            return Err(
                CliError::new(ErrorKind::Conflict, message).hint("`sayso log` lists the changes of this workspace")
            );
        }
    }
    Ok(arguments.changes.clone())
}

/// Opens the reviews of all turns of a list.
fn turn_reviews(engine: &EngineConnection, list: &InboxList) -> Result<Vec<ChangeRecord>, CliError> {
    let mut reviews = Vec::new();
    for (session, turn) in turns_to_review(list) {
        let review = engine.block(engine.client().review_turn(&session, &turn, PreviewDetail::Omitted))?;
        reviews.extend(review.map(|review| review.record));
    }
    Ok(reviews)
}

/// Returns the change that an answer without a number is about. Fails if several are pending.
fn only_change(engine: &EngineConnection, list: &InboxList) -> Result<Vec<u64>, CliError> {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for change in pending_changes(list) {
        let item = list.get(&format!("change:{change}"));
        lines.push((change, item.map(|item| item.summary.clone()).unwrap_or_default()));
    }
    lines.extend(turn_reviews(engine, list)?.iter().map(|review| (review.change, change_summary(review))));
    let changes: Vec<u64> = lines.iter().map(|(change, _)| *change).collect();
    if changes.len() < 2 {
        return Ok(changes);
    }
    let mut text = format!("{} changes wait, and none is named; nothing was decided", changes.len());
    for (change, summary) in lines {
        text.push_str(&format!("\n  {change}  {summary}"));
    }
    let numbers = changes.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    Err(CliError::invalid_input(text).hint(format!("name the changes to decide: `sayso review {numbers} …`")))
}

fn print_json(engine: &EngineConnection, changes: &[u64]) -> Result<ExitCode, CliError> {
    let mut objects = Vec::new();
    for &change in changes {
        let pending = Pending::get(engine, change)?;
        let preview = pending.preview(engine)?.object();
        objects.push(json!({ "change": change, "subject": pending.record.subject, "preview": preview }));
    }
    let mut output = Output::stdout();
    output.json(&json!(objects))?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// A person who decides one change after the other.
struct Reviewer<'a> {
    location: &'a WorkspaceLocation,
    engine: &'a EngineConnection,
    arguments: &'a ReviewArguments,
    terminal: Terminal,
    code: ExitCode,
    /// `true` once a pending change was shown.
    has_reviewed: bool,
}

impl<'a> Reviewer<'a> {
    fn new(location: &'a WorkspaceLocation, engine: &'a EngineConnection, arguments: &'a ReviewArguments) -> Self {
        let terminal = Terminal::detect(arguments.common.color, arguments.common.theme);
        Self { location, engine, arguments, terminal, code: ExitCode::SUCCESS, has_reviewed: false }
    }

    /// Reviews all changes of the inbox. Returns the direction if some are left pending.
    fn review_all(&mut self, mut inbox: Inbox) -> Result<Option<Leave>, CliError> {
        while let Some(change) = inbox.next_change() {
            let Some(leave) = self.review(Pending::get(self.engine, change)?, None)? else {
                inbox.decided();
                continue;
            };
            match inbox.leave(change, leave) {
                LeaveResult::Continue => {}
                LeaveResult::NoPrevious => say("There is nothing before it that waits."),
                LeaveResult::Quit { pending } => {
                    self.report_still_pending(pending);
                    return Ok(Some(Leave::Quit));
                }
            }
        }
        let put_off = inbox.put_off();
        if put_off > 0 {
            self.report_still_pending(put_off);
            return Ok(Some(Leave::Later));
        }
        Ok(None)
    }

    fn report_still_pending(&mut self, count: usize) {
        self.code = ExitCode::from(DENIED);
        say(&still_pending_text(count));
    }

    /// Reviews turns one after the other, because a denied part of one turn may change the next review.
    fn review_turns(&mut self, session: Option<&str>) -> Result<(), CliError> {
        let client = self.engine.client();
        for (session, turn) in turns_to_review(&list_inbox(self.engine, session)?) {
            let review = self.engine.block(client.review_turn(&session, &turn, PreviewDetail::Omitted))?;
            if let Some(review) = review
                && self.review(Pending::get(self.engine, review.record.change)?, None)? == Some(Leave::Quit)
            {
                break;
            }
        }
        Ok(())
    }

    /// Shows a change and takes the verdict. Returns the direction if the person leaves it pending.
    fn review(&mut self, pending: Pending, prompter: Option<&mut Prompter>) -> Result<Option<Leave>, CliError> {
        if !pending.is_pending() {
            let change = pending.change();
            let status = settled(self.engine, change)?.status;
            say(&format!("Change {change} is {status} by now."));
            return Ok(None);
        }
        self.has_reviewed = true;
        match self.decide(pending, prompter)? {
            Reviewed::Left(leave) => return Ok(Some(leave)),
            Reviewed::Ended(code) if code != ExitCode::SUCCESS => self.code = code,
            Reviewed::Ended(_) => {}
        }
        Ok(None)
    }

    fn decide(&self, pending: Pending, prompter: Option<&mut Prompter>) -> Result<Reviewed, CliError> {
        let Self { engine, arguments, terminal, .. } = *self;
        let mut output = Output::stdout();
        if !arguments.common.json {
            output.write(review_heading(&pending.record).as_bytes())?;
        }
        if pending.record.subject.is_files() {
            let mut review = FileReview::new(engine, &arguments.verdict, &arguments.common, Path::new(""), output);
            return match prompter {
                Some(prompter) => review.with_prompter(prompter).review(pending),
                None => review.review(pending),
            };
        }
        let answer = action_answer(&pending, &arguments.verdict)?;
        output.styled(&render_subject(&pending.record.subject), terminal)?;
        if !pending.record.files.is_empty() {
            let diff = ChangeDiff::of_pending(engine, terminal, &pending)?;
            diff.draw(&mut output, |path| FileFacts::recorded(&pending.record.files, path))?;
        }
        let Some(answer) = answer else {
            let mut own;
            let prompter = if let Some(prompter) = prompter {
                prompter
            } else {
                own = Prompter::open(Path::new(""), terminal);
                &mut own
            };
            return self.ask_about_action(&pending, prompter, output);
        };
        output.finish()?;
        let is_denied = matches!(answer, Answer::Deny { .. });
        let message = arguments.verdict.message.clone();
        let verdict = Verdict { message, ..pending.verdict(answer, Vec::new()) };
        engine.block(engine.client().decide(pending.change(), verdict, None, PreviewDetail::Omitted))?;
        say(&format!("Change {} {}.", pending.change(), if is_denied { "is denied" } else { "may go ahead" }));
        Ok(Reviewed::Ended(if is_denied { ExitCode::from(DENIED) } else { ExitCode::SUCCESS }))
    }

    /// Asks about a command or a tool call.
    fn ask_about_action(
        &self,
        pending: &Pending,
        prompter: &mut Prompter,
        mut output: Output,
    ) -> Result<Reviewed, CliError> {
        let root = self.location.root.to_string_lossy();
        let message = self.arguments.verdict.message.as_deref();
        let mut review = CommandReview { engine: self.engine, root: &root, prompter, terminal: self.terminal, message };
        let outcome = review.decide(pending, &mut output)?;
        output.finish()?;
        let change = pending.change();
        say(&match outcome {
            CommandOutcome::Permitted(_) => format!("Change {change} may go ahead."),
            CommandOutcome::Denied(message) => format!("Denied. The agent is told: {message}"),
            CommandOutcome::Left(leave) => return Ok(Reviewed::Left(leave)),
            CommandOutcome::Undecided => "Nothing was decided.".to_owned(),
            CommandOutcome::Ended(status) => format!("Change {change} is {status}."),
        });
        Ok(Reviewed::Ended(ExitCode::SUCCESS))
    }
}

/// Returns the answer of the options to a command or tool call. `None` without one.
fn action_answer(pending: &Pending, verdict: &VerdictOptions) -> Result<Option<Answer>, CliError> {
    let change = pending.change();
    let is_command = matches!(pending.record.subject, Subject::Command { .. });
    let action = if is_command { "a command" } else { "a tool call" };
    if !verdict.comment.is_empty() {
        let message = format!("change {change} is {action}, which has no lines to comment on");
        return Err(CliError::invalid_input(message).hint("give a reason with --deny, or leave out --comment"));
    }
    Ok(match (verdict.approve.as_deref(), &verdict.deny) {
        (_, Some(reason)) => Some(deny(reason)),
        (Some("all"), None) => Some(Answer::Approve),
        (Some("none"), None) => Some(deny("")),
        (Some(given), None) => {
            let message = format!(
                "`--approve {given}`: change {change} is {action}, which takes `all` or `none`; nothing was decided"
            );
            let hint = format!("give `sayso review {change} --approve all`, or --deny with a reason");
            return Err(CliError::invalid_input(message).hint(hint));
        }
        (None, None) => None,
    })
}
