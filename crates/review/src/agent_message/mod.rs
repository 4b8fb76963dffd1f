//! Messages to the agent about verdicts: the accepted, edited and denied parts, with reasons.
//!
//! All messages are composed here, so every agent receives the same text. The agent has not seen the preview, only its
//! own proposal and the files it read. A message therefore includes a diff of everything that differs from the
//! proposal, and a comment quotes its line.

mod action;
mod review;

use std::collections::BTreeSet;
use std::fmt::{Display, Write};

use sayso_base::{FileState, WsPath};
use sayso_diff::{Diff, Rendering, Side, Unified, UnifiedOptions, plain_text};

use crate::decide::{Acceptance, Decision, FileDecision};
use crate::note::Note;
use crate::plan::Plan;
use crate::preview::{CONTEXT, FilePreview, Operation, Placement, Preview, Problem, Rebased};
use crate::verdict::{Answer, Comment, CommentSide, Decider, HunkId, Verdict};

pub use action::{action_message, dependency_denied};

/// Text of a denial; the reason follows, if there is one.
pub const DENIED: &str = "user denied this tool call";

/// First words of a message about a change that left the tree unchanged.
const NOTHING: &str = "nothing was written";

/// Maximum size of a diff in a message, in bytes. A longer diff would fill the model's context.
const MAX_DIFF_BYTES: usize = 16 * 1024;

/// Maximum number of listed conflicts.
const MAX_CONFLICTS: usize = 5;

/// Maximum length of a quoted line, in characters.
const MAX_LINE_CHARS: usize = 80;

pub(crate) fn compose(preview: &Preview, verdict: &Verdict, files: &[FileDecision], plan: &Plan) -> String {
    if preview.placement() == Placement::InPlace {
        return review::compose(preview, verdict, files, plan);
    }
    let mut message = String::new();
    if files.is_empty() && !matches!(verdict.answer, Answer::Deny { .. }) {
        push_line(&mut message, "no file had to change");
        push_message(verdict, &mut message);
        message.truncate(message.trim_end().len());
        return message;
    }
    let nothing = files.iter().all(|file| matches!(file.acceptance, Acceptance::Denied { .. }));
    let general = verdict.answer.reason();
    if nothing {
        push_denial(general, &verdict.by, files, &mut message);
    } else {
        for (file, decision) in preview.files().iter().zip(files) {
            describe_file(file, decision, general, plan, &mut message);
        }
        if let Some(reason) = general {
            push_line(&mut message, format_args!("{} says: {reason}", decider_name(&verdict.by)));
        }
    }
    push_message(verdict, &mut message);
    comments(preview, verdict, &mut message);
    message.truncate(message.trim_end().len());
    message
}

impl Decision {
    /// `true` if the message says more than that the change was made as proposed.
    pub fn says_more(&self, preview: &Preview, verdict: &Verdict) -> bool {
        let is_other = |note: &Note| {
            matches!(note, Note::Merged | Note::Moved { .. } | Note::Loosened { .. } | Note::Ambiguous { .. })
        };
        verdict.has_remarks()
            || verdict.answer.reason().is_some()
            || self.files.iter().any(|file| file.acceptance != Acceptance::All)
            || preview.files().iter().any(|file| file.notes.iter().any(is_other))
    }
}

/// Appends the decider's message about the whole change.
fn push_message(verdict: &Verdict, message: &mut String) {
    if let Some(text) = &verdict.message {
        push_line(message, format_args!("{} says: {}", decider_name(&verdict.by), text.trim_end()));
    }
}

fn comments(preview: &Preview, verdict: &Verdict, message: &mut String) {
    if !verdict.comments.is_empty() {
        push_line(message, "Comments on lines:");
        for comment in &verdict.comments {
            describe_comment(preview, comment, message);
        }
    }
}

impl Rebased {
    /// Returns the message about a stale change that was rebased and is shown again.
    pub fn agent_message(&self) -> String {
        let changed: Vec<&WsPath> = self.preview.asked().map(changed_name).collect();
        if changed.is_empty() {
            return format!("{NOTHING}: files changed while it was being applied. The change is pending again.");
        }
        let mut message =
            format!("{NOTHING}: {} changed after {} shown", quote_paths(&changed), pronoun_were(changed.len()));
        let conflicts: Vec<(&WsPath, &Problem)> = self.preview.problems().collect();
        if conflicts.is_empty() {
            message.push_str(
                ". Both changes were merged, and the result is pending a new decision.\n\
                 Read the file again before changing it further.",
            );
        } else {
            message.push_str(", and the two changes conflict:\n");
            for (path, problem) in conflicts {
                describe_problem(path, problem, &mut message);
            }
            message.push_str("Read what is there now and propose the change anew.");
        }
        message
    }
}

impl Preview {
    /// Returns the message about a proposal that cannot be applied; `None` if it can.
    pub fn problems_message(&self) -> Option<String> {
        let problems: Vec<(&WsPath, &Problem)> = self.problems().collect();
        if problems.is_empty() {
            return None;
        }
        let mut message = format!("{NOTHING}: the change cannot be made as proposed\n");
        for (path, problem) in &problems {
            describe_problem(path, problem, &mut message);
        }
        match self.files().len() - problems.len() {
            0 => {}
            1 => push_line(&mut message, "The change of the other file fits, and was not made either."),
            count => push_line(
                &mut message,
                format_args!("The changes of {count} other files fit, and were not made either."),
            ),
        }
        message.truncate(message.trim_end().len());
        Some(message)
    }
}

/// Returns the message about an approved change that failed. The error describes the state of the tree.
pub fn failure_message(error: &impl Display) -> String {
    format!("approved, but it could not be done: {error}")
}

/// Returns the message about an approved change that the agent's own tool did not make. It revokes the verdict text.
pub fn unperformed_message(reason: &str, verdict: &str) -> String {
    format!("{NOTHING}: {reason}\nThis verdict on the proposal no longer applies:\n{verdict}")
}

/// Returns the path that changed after the proposal. For a rename that is the old path, unless the new one exists.
fn changed_name(file: &FilePreview) -> &WsPath {
    match &file.operation {
        Operation::Rename { from } if file.problem != Some(Problem::Exists) => from,
        _ => &file.path,
    }
}

fn describe_problem(path: &WsPath, problem: &Problem, message: &mut String) {
    push_line(message, format_args!("{path}: {problem}"));
    if let Problem::Conflicts { conflicts } = problem {
        for conflict in conflicts.iter().filter(|conflict| conflict.line > 0).take(MAX_CONFLICTS) {
            let now: Vec<&str> = conflict.current.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            match now.first() {
                Some(first) => {
                    push_line(message, format_args!("  line {} is now `{}`", conflict.line, truncate_line(first)));
                }
                None => push_line(message, format_args!("  line {} is gone", conflict.line)),
            }
        }
    }
}

fn push_line(message: &mut String, text: impl Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(message, "{text}");
}

fn quote_paths(paths: &[&WsPath]) -> String {
    join_list(&paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>())
}

fn pronoun_were(count: usize) -> &'static str {
    if count == 1 { "it was" } else { "they were" }
}

fn join_list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn decider_name(by: &Decider) -> String {
    match by {
        Decider::Person { .. } => "The user".to_owned(),
        Decider::Policy { rule } => format!("The rule `{rule}`"),
    }
}

fn push_denial(general: Option<&str>, by: &Decider, files: &[FileDecision], message: &mut String) {
    let denied = match by {
        Decider::Person { .. } => DENIED.to_owned(),
        Decider::Policy { rule } => format!("denied by the rule `{rule}`"),
    };
    match general {
        Some(reason) => push_line(message, format_args!("{denied}: {reason}")),
        None => push_line(message, denied),
    }
    for file in files {
        if let Acceptance::Denied { reason: Some(why) } = &file.acceptance
            && Some(why.as_str()) != general
        {
            push_line(message, format_args!("{}: {why}", file.path));
        }
    }
}

fn describe_file(
    file: &FilePreview,
    decision: &FileDecision,
    general: Option<&str>,
    plan: &Plan,
    message: &mut String,
) {
    let path = &file.path;
    let written = plan.step(&file.location).map_or(&file.before, |step| &step.after);
    let now = format!("{path} (as it is now)");
    let proposed = format!("{path} (proposed)");
    match &decision.acceptance {
        Acceptance::All if file.is_unchanged() => push_line(message, format_args!("{path}: already as proposed")),
        Acceptance::All => {
            push_line(message, format_args!("{path}: {} as proposed", participle(file)));
            describe_placement(file, message);
        }
        Acceptance::Hunks { accepted, rejected, count } => {
            let partly =
                if file.operation == Operation::Delete { "not deleted, but changed" } else { &participle(file) };
            let hunks = hunks(accepted, rejected, *count);
            push_line(message, format_args!("{path}: {partly} in part. Accepted: {hunks}. Rejected, and not applied:"));
            push_diff(written, &file.after, (&now, &proposed), message);
            if file.before.mode().is_some_and(|mode| file.after.mode().is_some_and(|after| mode != after)) {
                push_line(message, "The file mode was not changed.");
            }
            describe_placement(file, message);
        }
        Acceptance::Edited if file.operation == Operation::Delete => {
            push_line(message, format_args!("{path}: not deleted; the user edited the content instead:"));
            push_diff(&file.before, written, (&format!("{path} (before)"), &now), message);
        }
        Acceptance::Edited => {
            push_line(
                message,
                format_args!("{path}: {} with edits by the user. How it differs from the proposal:", participle(file)),
            );
            push_diff(&file.after, written, (&proposed, &now), message);
        }
        Acceptance::Denied { reason } => {
            let why = reason.as_deref().filter(|reason| Some(*reason) != general);
            let why = why.map(|reason| format!(": {reason}")).unwrap_or_default();
            push_line(message, format_args!("{path}: denied, not {}{why}", participle(file)));
        }
    }
}

fn participle(file: &FilePreview) -> String {
    match &file.operation {
        Operation::Create => "created".to_owned(),
        Operation::Update => "changed".to_owned(),
        Operation::Delete => "deleted".to_owned(),
        Operation::Rename { from } if file.before == file.after => format!("renamed from {from}"),
        Operation::Rename { from } => format!("renamed from {from} and changed"),
    }
}

/// Describes the accepted hunks: `hunks 1 and 3 of 3`, `hunk 1 of 2 and part 2 of hunk 2`.
fn hunks(accepted: &BTreeSet<HunkId>, rejected: &BTreeSet<usize>, count: usize) -> String {
    let whole: Vec<String> = (1..=count).filter(|hunk| !rejected.contains(hunk)).map(|hunk| hunk.to_string()).collect();
    let parts = accepted.iter().filter(|id| rejected.contains(&id.hunk));
    let parts = parts.filter_map(|id| Some(format!("part {} of hunk {}", id.part?, id.hunk)));
    let whole = match &whole[..] {
        [] => None,
        [one] => Some(format!("hunk {one} of {count}")),
        more => Some(format!("hunks {} of {count}", join_list(more))),
    };
    join_list(&whole.into_iter().chain(parts).collect::<Vec<_>>())
}

/// Appends notes about an accepted change whose result differs from the agent's expectation.
fn describe_placement(file: &FilePreview, message: &mut String) {
    for note in &file.notes {
        match note {
            Note::Merged => {
                push_line(message, "  It also holds what others changed meanwhile: read it before changing it again.");
            }
            Note::Moved { .. } | Note::Loosened { .. } | Note::Ambiguous { .. } => {
                push_line(message, format_args!("  Of the patch, {note}."));
            }
            _ => {}
        }
    }
}

fn describe_comment(preview: &Preview, comment: &Comment, message: &mut String) {
    let file = preview.files().iter().find(|file| file.path == comment.path);
    let (state, side) = match comment.side {
        CommentSide::Current => (file.map(|file| &file.before), " (before the change)"),
        CommentSide::Proposed => (file.map(|file| &file.after), ""),
    };
    let text = state.and_then(FileState::bytes).and_then(plain_text);
    let commented = text.as_deref().and_then(|text| text.lines().nth(comment.line.checked_sub(1)?)).map(str::trim);
    let quote = match commented {
        Some(line) if !line.is_empty() => format!(" `{}`", truncate_line(line)),
        _ => String::new(),
    };
    let remark = comment.text.trim_end().replace('\n', "\n  ");
    push_line(message, format_args!("{}:{}{side}{quote}: {remark}", comment.path, comment.line));
}

fn truncate_line(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn push_diff(old: &FileState, new: &FileState, labels: (&str, &str), message: &mut String) {
    fn side(state: &FileState) -> Side<'_> {
        state.bytes().map_or(Side::Absent, Side::Present)
    }
    let diff = Diff::new(side(old), side(new));
    if diff.is_binary() {
        push_line(message, "(binary content)");
        return;
    }
    let options = UnifiedOptions {
        context: CONTEXT,
        old_label: labels.0,
        new_label: labels.1,
        rendering: Rendering::Readable,
        limit: Some(MAX_DIFF_BYTES),
    };
    if let Unified::Changes { text, truncated } = diff.unified(&options) {
        message.push_str(&String::from_utf8_lossy(&text));
        if truncated {
            push_line(message, format_args!("[truncated at {MAX_DIFF_BYTES} bytes]"));
        }
    }
}
