//! A change in one line.

use sayso_review::{AppliedPart, Cause, ChangeRecord, ChangeStatus, FileRecord, Operation, Subject};

use crate::escape::escape_unprintable;
use crate::span::Style;
use crate::words::join_numbers;

/// Files that a one-line summary names.
const MAX_NAMED_FILES: usize = 3;
/// Characters of a session id where room is short. They tell random ids apart.
const SHORT_SESSION_CHARACTERS: usize = 8;

/// The first characters of a session id.
pub fn short_session_id(session: &str) -> String {
    escape_unprintable(&session.chars().take(SHORT_SESSION_CHARACTERS).collect::<String>()).into_owned()
}

/// The agent and the short session id that a change comes from; empty if neither is known.
pub fn origin_label(record: &ChangeRecord) -> String {
    let agent = record.origin.agent.as_deref().map(|agent| escape_unprintable(agent).into_owned());
    let session = record.origin.session.as_deref().map(short_session_id);
    [agent, session].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The style of a change's status.
pub fn status_style(status: &ChangeStatus) -> Style {
    match status {
        ChangeStatus::Applied => Style::Added,
        ChangeStatus::Pending | ChangeStatus::Interrupted | ChangeStatus::Permitted => Style::Note,
        ChangeStatus::Undone { .. } | ChangeStatus::Cancelled => Style::Dim,
        ChangeStatus::Denied | ChangeStatus::Stale | ChangeStatus::Failed { .. } => Style::Removed,
    }
}

/// The status of a change, such as `applied in part` or `ran`.
pub fn status_text(record: &ChangeRecord) -> String {
    if !record.subject.is_files() && record.status == ChangeStatus::Applied {
        return "ran".to_owned();
    }
    let part = if record.partial && record.status == ChangeStatus::Applied { " in part" } else { "" };
    format!("{}{part}", record.status)
}

/// Summarises a change: its cause, its command or tool, and its files.
pub fn change_summary(record: &ChangeRecord) -> String {
    let cause = match &record.cause {
        Cause::Proposal => String::new(),
        Cause::Undo { changes, .. } => format!("undo of {}: ", join_numbers(changes)),
        Cause::Redo { changes, .. } => format!("redo of {}: ", join_numbers(changes)),
        Cause::Rebase { original } => format!("merge of {original}: "),
        Cause::Review { changes, .. } => format!("review of {}: ", join_numbers(changes)),
        Cause::Restore { snapshot } => format!("snapshot {snapshot} put back: "),
    };
    let action = match &record.subject {
        Subject::Files => None,
        Subject::Command { .. } => {
            // An edited command is summarised as it was approved.
            let Subject::Command { command, directory, .. } = record.approved() else { return cause };
            let directory = if directory.is_root() {
                String::new()
            } else {
                format!(" in {}/", escape_unprintable(directory.as_str()))
            };
            let code = record.exit_code.map(|code| format!(" ended with {code}")).unwrap_or_default();
            Some(format!("{}{directory}{code}", command_summary(&command)))
        }
        Subject::Tool { name, .. } => Some(tool_summary(name)),
    };
    if let Some(action) = action {
        let steps = record.applied.as_ref().map_or(&[][..], |applied| &applied.steps);
        let files = list_files(steps, |step| escape_unprintable(step.path.as_str()).into_owned());
        let changed = if files.is_empty() { String::new() } else { format!(", changed {files}") };
        return format!("{cause}{action}{changed}");
    }
    let applied: Vec<&FileRecord> =
        record.files.iter().filter(|file| record.applied_part(file) != AppliedPart::Nothing).collect();
    format!("{cause}{}", list_files(&applied, |file| applied_file_summary(record, file)))
}

/// The first line of a command, in backticks.
pub(crate) fn command_summary(command: &str) -> String {
    format!("`{}`", escape_unprintable(command.lines().next().unwrap_or_default()))
}

pub(crate) fn tool_summary(name: &str) -> String {
    format!("call of {}", escape_unprintable(name))
}

/// Joins the summaries of the first files and counts the rest.
pub(crate) fn list_files<T>(files: &[T], summary: impl Fn(&T) -> String) -> String {
    let mut named: Vec<String> = files.iter().take(MAX_NAMED_FILES).map(summary).collect();
    if files.len() > MAX_NAMED_FILES {
        named.push(format!("and {} more", files.len() - MAX_NAMED_FILES));
    }
    named.join(", ")
}

/// Summarises a file of a change as far as it was applied.
pub(crate) fn applied_file_summary(record: &ChangeRecord, file: &FileRecord) -> String {
    if record.applied_part(file) == AppliedPart::Partial {
        return format!("{} (in part)", escape_unprintable(file.path.as_str()));
    }
    file_summary(file)
}

/// Summarises a file of a change: its path, its operation and its counts.
pub fn file_summary(file: &FileRecord) -> String {
    let path = escape_unprintable(file.path.as_str());
    let counts = format!("+{} -{}", file.added, file.removed);
    match &file.operation {
        Operation::Create => format!("{path} (new, +{})", file.added),
        Operation::Delete => format!("{path} (deleted)"),
        Operation::Update => format!("{path} ({counts})"),
        Operation::Rename { from } => format!("{} → {path} ({counts})", escape_unprintable(from.as_str())),
    }
}
