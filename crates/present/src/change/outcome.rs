//! Outcomes as sentences: what a verdict, a policy decision, a run or an undo led to.

use sayso_review::{
    AppliedPart, ChangeId, ChangeRecord, ChangeStatus, Decider, FileRecord, Fingerprint, RecordedStep, Uncaptured,
};

use super::summary::change_summary;
use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};
use crate::words::{count, join_numbers};

/// Files and uncaptured paths that a run's summary lists.
const MAX_LISTED_FILES: usize = 10;

/// Describes the result of an applied verdict.
pub fn applied_text(record: &ChangeRecord) -> String {
    let change = record.change;
    let steps = record.applied.as_ref().map_or(0, |applied| applied.steps.len());
    if record.is_review() {
        return reviewed_text(change, steps);
    }
    let is_changed = |file: &&FileRecord| record.applied_part(file) != AppliedPart::Nothing;
    match record.files.iter().filter(is_changed).count() {
        _ if steps == 0 => "Nothing had to be changed.".to_owned(),
        files => {
            let part = if record.partial { " in part" } else { "" };
            let files = count(files as u64, "file");
            format!("Applied{part} as change {change}: {files}. `sayso undo {change}` takes it back.")
        }
    }
}

/// Describes the result of a turn review that wrote some files.
fn reviewed_text(change: ChangeId, files: usize) -> String {
    if files == 0 {
        return "Kept all of it.".to_owned();
    }
    let files = count(files as u64, "file");
    format!(
        "Took back what you refused, as change {change}: {files}. The agent is told; `sayso undo {change}` takes that back."
    )
}

/// Explains why a change that a person was asked about is no longer pending.
pub fn decided_elsewhere_text(record: &ChangeRecord, deadline_rule: &str) -> &'static str {
    if record.status == ChangeStatus::Cancelled {
        return "It was withdrawn; nobody waits for it any more.";
    }
    match record.verdict.as_ref().map(|verdict| &verdict.by) {
        Some(Decider::Policy { rule }) if rule == deadline_rule => "Nobody decided in time.",
        Some(Decider::Policy { .. }) => "A rule decided.",
        _ => "Somebody else decided first.",
    }
}

/// Renders one line about a change that a rule decided. `None` if a person decided it.
pub fn policy_decision_text(record: &ChangeRecord) -> Option<StyledText> {
    let Decider::Policy { rule } = &record.verdict.as_ref()?.by else { return None };
    let (change, status, summary) = (record.change, &record.status, change_summary(record));
    let mut text = StyledText::new();
    text.push(Style::Dim, format!("Change {change} is {status} by {}: {summary}\n", escape_unprintable(rule)));
    Some(text)
}

/// Summarises the files that changed while a command ran. Empty if none did.
pub fn run_summary(change: ChangeId, steps: &[RecordedStep], uncaptured: &[Uncaptured]) -> String {
    let mut text = String::new();
    if !steps.is_empty() {
        text.push_str(&format!("Changed while it ran, as change {change}: {}\n", count(steps.len() as u64, "file")));
        for step in steps.iter().take(MAX_LISTED_FILES) {
            let event = match (&step.before, &step.after) {
                (Fingerprint::Absent, _) => " (new)",
                (_, Fingerprint::Absent) => " (deleted)",
                _ => "",
            };
            text.push_str(&format!("  {}{event}\n", escape_unprintable(step.path.as_str())));
        }
        if steps.len() > MAX_LISTED_FILES {
            text.push_str(&format!("  and {} more\n", steps.len() - MAX_LISTED_FILES));
        }
        text.push_str(&format!(
            "`sayso show {change}` shows the diff, `sayso undo {change}` takes it back, with --file PATH in part.\n"
        ));
    }
    text.push_str(&uncaptured_notes(&uncaptured[..uncaptured.len().min(MAX_LISTED_FILES)]));
    if uncaptured.len() > MAX_LISTED_FILES {
        text.push_str(&format!("note: and {} more that cannot be put back\n", uncaptured.len() - MAX_LISTED_FILES));
    }
    text.truncate(text.trim_end().len());
    text
}

/// Formats a note for each path that undo cannot restore.
pub fn uncaptured_notes(uncaptured: &[Uncaptured]) -> String {
    let note = |entry: &Uncaptured| {
        let (path, reason) = (escape_unprintable(&entry.path), escape_unprintable(&entry.reason));
        format!("note: cannot be put back: {path}: {reason}\n")
    };
    uncaptured.iter().map(note).collect()
}

/// Formats the heading above the preview of an undo or redo. `verb` is `Takes back` or `Makes again`.
pub fn undo_title(verb: &str, changes: &[ChangeId]) -> String {
    let noun = if changes.len() == 1 { "change" } else { "changes" };
    format!("{verb} {noun} {}:", join_numbers(changes))
}
