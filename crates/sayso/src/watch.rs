//! `sayso watch`: what happens, as it happens.

mod requests;

use std::process::ExitCode;

use sayso_api::client::{Extent, Patience, Role, Watched};
use sayso_api::proto::oneof::event::Kind;
use sayso_api::proto::outcome::Kind as Outcome;
use sayso_api::proto::{Event, FileRecord, Operation};
use sayso_review::Subject;

use crate::cli::WatchArguments;
use crate::diff::style::Styles;
use crate::engine::Connected;
use crate::failure::Failure;
use crate::output::Output;
use crate::pending;
use crate::state::State;
use crate::terminal::Terminal;
use crate::visible::visible;

pub(crate) fn run(arguments: &WatchArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    let told = pending::Patience::new()?;
    let connected = Connected::to(&state)?;
    let client = connected.client();
    let after = match arguments.after {
        Some(after) => after,
        None => connected.block(client.status(Extent::Counts))?.last_event,
    };
    let mut watch = client.watch(after, Role::Observer, Patience::Always);
    let styles = Styles::of(Terminal::detect(arguments.place.color, arguments.place.theme));
    let mut output = Output::stdout();
    let followed = connected.wait(async {
        let mut told = told.listen()?;
        loop {
            let watched = tokio::select! {
                watched = watch.next() => watched?,
                () = told.end() => return Ok(()),
            };
            let Watched::Event(event) = watched else { continue };
            if arguments.place.json {
                let line = serde_json::to_string(&event).map_err(|error| Failure::bad_input("no JSON").why(&error))?;
                output.write(line.as_bytes())?;
            } else {
                output.write(line(&event, &styles).as_bytes())?;
            }
            output.write(b"\n")?;
            output.flush()?;
        }
    });
    match followed {
        // Whoever read it has heard enough.
        Ok(()) | Err(Failure::BrokenPipe) => Ok(ExitCode::SUCCESS),
        Err(failure) => Err(failure),
    }
}

/// An event in one line: when, which change, what.
fn line(event: &Event, styles: &Styles) -> String {
    let mut text = String::new();
    styles.paint(&mut text, styles.number, &clock(event.time_ms));
    let (change, what) = describe(event);
    let number = change.map(|change| change.to_string()).unwrap_or_default();
    styles.paint(&mut text, styles.title, &format!("  {number:>4}  "));
    text.push_str(&what);
    text
}

/// The time of day in UTC, of milliseconds since 1970.
pub(crate) fn clock(milliseconds: i64) -> String {
    let seconds = milliseconds.div_euclid(1000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The change that an event is about, and what happened.
fn describe(event: &Event) -> (Option<u64>, String) {
    let Some(kind) = &event.kind else { return (None, "something that this version does not know".to_owned()) };
    match kind {
        Kind::Proposed(proposed) => {
            let subject = proposed.subject.as_option().cloned().and_then(|subject| Subject::try_from(subject).ok());
            let what = match subject {
                Some(Subject::Command { command, .. }) => {
                    format!("`{}`", visible(command.lines().next().unwrap_or_default()))
                }
                Some(Subject::Tool { name, .. }) => format!("call of {}", visible(&name)),
                _ => files(&proposed.files),
            };
            let by = proposed.origin.as_option().and_then(|origin| origin.agent.as_deref());
            let by = by.map(|agent| format!(" by {}", visible(agent))).unwrap_or_default();
            (Some(proposed.change), format!("proposed{by}: {what}"))
        }
        Kind::Refreshed(refreshed) => (Some(refreshed.change), format!("shows anew: {}", files(&refreshed.files))),
        Kind::Decided(decided) => (Some(decided.change), format!("decided: {}", first(&decided.told))),
        Kind::Applying(applying) => (Some(applying.change), "is being applied".to_owned()),
        Kind::Permitted(permitted) => (Some(permitted.change), "may go ahead".to_owned()),
        Kind::Observed(observed) => {
            let steps = observed.record.as_option().map_or(0, |record| record.steps.len());
            (Some(observed.change), format!("changed {}", count(steps)))
        }
        Kind::Reviewed(reviewed) => (Some(reviewed.change), format!("reviewed by {}", reviewed.by)),
        Kind::Ended(ended) => {
            let outcome = ended.outcome.as_option();
            let word = match outcome.and_then(|outcome| outcome.kind.as_known()).unwrap_or_default() {
                Outcome::KIND_APPLIED => "applied",
                Outcome::KIND_SENT => "sent",
                Outcome::KIND_RAN => "ran",
                Outcome::KIND_DENIED => "denied",
                Outcome::KIND_STALE => "stale",
                Outcome::KIND_CANCELLED => "cancelled",
                Outcome::KIND_FAILED => "failed",
                Outcome::KIND_UNSPECIFIED => "ended",
            };
            let code = outcome.and_then(|outcome| outcome.code).map(|code| format!(", ended with {code}"));
            let reason = outcome.and_then(|outcome| outcome.reason.as_deref()).map(|why| format!(": {}", first(why)));
            (Some(ended.change), format!("{word}{}{}", code.unwrap_or_default(), reason.unwrap_or_default()))
        }
        Kind::Undone(undone) => (Some(undone.change), format!("undone by {}", undone.by)),
        Kind::Redone(redone) => (Some(redone.change), format!("made again by {}", redone.by)),
        Kind::Recovered(recovered) => {
            let what = if recovered.finished { "finished" } else { "taken back" };
            (Some(recovered.change), format!("was interrupted, and {what}"))
        }
        Kind::Message(message) => (message.change, format!("to be told: {}", first(&message.text))),
        Kind::Told(told) => (told.change, "the agent was told".to_owned()),
        Kind::Request(event) => (None, format!("request {} {}", event.request, requests::step(event))),
        Kind::RequestMode(set) => (None, requests::mode(set)),
        Kind::Overrides(set) => (None, requests::overrides(set)),
        Kind::RequestLook(look) => (None, requests::look(look)),
        other => (None, of_a_session(other)),
    }
}

/// What happened besides changes.
fn of_a_session(kind: &Kind) -> String {
    match kind {
        Kind::SessionStarted(started) => {
            let agent = started.agent.as_deref().unwrap_or("an agent");
            format!("session {} of {} began", visible(&started.session), visible(agent))
        }
        Kind::SessionResumed(resumed) => format!("session {} goes on", visible(&resumed.session)),
        Kind::SessionEnded(ended) => format!("session {} ended", visible(&ended.session)),
        Kind::TurnStarted(turn) => format!("turn {} of session {} began", visible(&turn.turn), visible(&turn.session)),
        Kind::TurnEnded(turn) => format!("turn {} of session {} ended", visible(&turn.turn), visible(&turn.session)),
        Kind::RuleAdded(rule) => format!("a rule for session {}: {}", visible(&rule.session), visible(&rule.rule_json)),
        Kind::Delivered(delivered) => format!("session {} was told what there was", visible(&delivered.session)),
        Kind::Captured(captured) => format!("kept {} as snapshot {}", visible(&captured.path), captured.snapshot),
        Kind::Correlated(correlated) => {
            format!("snapshot {} is of call {}", correlated.snapshot, visible(&correlated.call))
        }
        Kind::Freed(freed) => {
            let numbers: Vec<String> = freed.snapshots.iter().map(ToString::to_string).collect();
            format!("no longer keeps snapshot {}", numbers.join(", "))
        }
        _ => "something that this version does not know".to_owned(),
    }
}

fn first(text: &str) -> String {
    visible(text.lines().next().unwrap_or_default()).into_owned()
}

fn count(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

fn files(records: &[FileRecord]) -> String {
    const MOST: usize = 3;
    let mut files: Vec<String> = records.iter().take(MOST).map(file).collect();
    if records.len() > MOST {
        files.push(format!("and {} more", records.len() - MOST));
    }
    if files.is_empty() { "no file".to_owned() } else { files.join(", ") }
}

fn file(record: &FileRecord) -> String {
    let path = visible(&record.path);
    match record.operation.as_known().unwrap_or_default() {
        Operation::OPERATION_CREATE => format!("{path} (new, +{})", record.added),
        Operation::OPERATION_DELETE => format!("{path} (deleted)"),
        Operation::OPERATION_RENAME => {
            let from = record.renamed_from.as_deref().unwrap_or_default();
            format!("{} → {path} (+{} -{})", visible(from), record.added, record.removed)
        }
        _ => format!("{path} (+{} -{})", record.added, record.removed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day() {
        assert_eq!(clock(0), "00:00:00Z");
        assert_eq!(clock(1_700_000_000_123), "22:13:20Z");
        assert_eq!(clock(-1), "23:59:59Z");
    }
}
