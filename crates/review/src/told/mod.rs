//! What the agent is told about a verdict: precisely what was accepted, changed or refused, and why. Composed here and nowhere
//! else, so that every agent hears the same.
//!
//! An agent has not seen the preview: it knows what it sent and what it read before. So what differs from that is given as a
//! diff, and a comment carries the line that it is about.

mod action;
mod review;

use std::collections::BTreeSet;
use std::fmt::{Display, Write};

use sayso_base::{FileState, WsPath};
use sayso_diff::{Diff, Rendering, Side, Unified, UnifiedOptions, plain_text};

use crate::decide::{Decision, FileDecision, Taken};
use crate::note::Note;
use crate::plan::Plan;
use crate::preview::{CONTEXT, FilePreview, Operation, Placement, Preview, Problem, Rebased};
use crate::verdict::{Answer, Comment, CommentSide, Decider, HunkId, Verdict};

pub use action::{told_action, told_without};

/// What a plain denial says; the reason follows where there is one.
pub const DENIED: &str = "user denied this tool call";

/// What is said first where something was approved, or could not be, and nothing happened.
const NOTHING: &str = "nothing was written";

/// More of a diff than this would fill a model's context without telling it more.
const MOST_DIFF: usize = 16 * 1024;

/// More places than these have to be read in the file.
const MOST_CLASHES: usize = 5;

/// Enough of a line to know it by.
const MOST_LINE: usize = 80;

pub(crate) fn compose(preview: &Preview, verdict: &Verdict, files: &[FileDecision], plan: &Plan) -> String {
    if preview.placement() == Placement::InPlace {
        return review::compose(preview, verdict, files, plan);
    }
    let mut told = String::new();
    if files.is_empty() && !matches!(verdict.answer, Answer::Deny { .. }) {
        return "no file had to change".to_owned();
    }
    let nothing = files.iter().all(|file| matches!(file.taken, Taken::Nothing { .. }));
    let general = verdict.answer.reason();
    if nothing {
        denial(general, &verdict.by, files, &mut told);
    } else {
        for (file, decision) in preview.files().iter().zip(files) {
            about_file(file, decision, general, plan, &mut told);
        }
        if let Some(reason) = general {
            line(&mut told, format_args!("{} says: {reason}", who(&verdict.by)));
        }
    }
    comments(preview, verdict, &mut told);
    told.truncate(told.trim_end().len());
    told
}

impl Decision {
    /// Whether the agent has to hear more than that its change was made as proposed.
    pub fn says_more(&self, preview: &Preview, verdict: &Verdict) -> bool {
        let is_other = |note: &Note| {
            matches!(note, Note::Merged | Note::Moved { .. } | Note::Loosened { .. } | Note::Ambiguous { .. })
        };
        !verdict.comments.is_empty()
            || verdict.answer.reason().is_some()
            || self.files.iter().any(|file| file.taken != Taken::All)
            || preview.files().iter().any(|file| file.notes.iter().any(is_other))
    }
}

fn comments(preview: &Preview, verdict: &Verdict, told: &mut String) {
    if !verdict.comments.is_empty() {
        line(told, "Comments on lines:");
        for comment in &verdict.comments {
            about_line(preview, comment, told);
        }
    }
}

impl Rebased {
    /// What the agent is told if this was made because what was approved had become stale.
    pub fn told(&self) -> String {
        let changed: Vec<&WsPath> = self.preview.asked().map(changed_name).collect();
        if changed.is_empty() {
            return format!(
                "{NOTHING}: files changed for a moment while it was done. The change waits for a decision again."
            );
        }
        let mut told = format!("{NOTHING}: {} changed after {} shown", names(&changed), were(changed.len()));
        let clashes: Vec<(&WsPath, &Problem)> = self.preview.problems().collect();
        if clashes.is_empty() {
            told.push_str(
                ". Both changes go together; what they make together waits for a decision of its own.\n\
                 Read the file again before changing it further.",
            );
        } else {
            told.push_str(", and both changes do not go together:\n");
            for (path, problem) in clashes {
                about_problem(path, problem, &mut told);
            }
            told.push_str("Read what is there now and propose the change anew.");
        }
        told
    }
}

impl Preview {
    /// What the agent is told if its change cannot be made as proposed; `None` if it can.
    pub fn told_problems(&self) -> Option<String> {
        let problems: Vec<(&WsPath, &Problem)> = self.problems().collect();
        if problems.is_empty() {
            return None;
        }
        let mut told = format!("{NOTHING}: the change cannot be made as proposed\n");
        for (path, problem) in &problems {
            about_problem(path, problem, &mut told);
        }
        match self.files().len() - problems.len() {
            0 => {}
            1 => line(&mut told, "The change of the other file fits, and was not made either."),
            count => line(&mut told, format_args!("The changes of {count} other files fit, and were not made either.")),
        }
        told.truncate(told.trim_end().len());
        Some(told)
    }
}

/// What the agent is told if what was approved could not be done. The error says what that means for the tree.
pub fn told_failure(error: &impl Display) -> String {
    format!("approved, but it could not be done: {error}")
}

/// What the agent is told if its own tool did not make what was approved: the verdict would read as if it had.
pub fn told_unmade(reason: &str, verdict: &str) -> String {
    format!("{NOTHING}: {reason}\nThis was decided about the proposal, and counts for nothing now:\n{verdict}")
}

/// The name of what changed: of a file that was to be renamed, the old one, unless the new one is taken.
fn changed_name(file: &FilePreview) -> &WsPath {
    match &file.operation {
        Operation::Rename { from } if file.problem != Some(Problem::Exists) => from,
        _ => &file.path,
    }
}

fn about_problem(path: &WsPath, problem: &Problem, told: &mut String) {
    line(told, format_args!("{path}: {problem}"));
    if let Problem::Conflicts { clashes } = problem {
        for clash in clashes.iter().filter(|clash| clash.line > 0).take(MOST_CLASHES) {
            let now: Vec<&str> = clash.current.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            match now.first() {
                Some(first) => line(told, format_args!("  line {} is now `{}`", clash.line, shortened(first))),
                None => line(told, format_args!("  line {} is gone", clash.line)),
            }
        }
    }
}

fn line(told: &mut String, text: impl Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(told, "{text}");
}

fn names(paths: &[&WsPath]) -> String {
    listed(&paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>())
}

fn were(count: usize) -> &'static str {
    if count == 1 { "it was" } else { "they were" }
}

/// `1`, `1 and 2`, `1, 2 and 3`.
fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn who(by: &Decider) -> String {
    match by {
        Decider::Person => "The user".to_owned(),
        Decider::Policy { rule } => format!("The rule `{rule}`"),
    }
}

fn denial(general: Option<&str>, by: &Decider, files: &[FileDecision], told: &mut String) {
    let denied = match by {
        Decider::Person => DENIED.to_owned(),
        Decider::Policy { rule } => format!("denied by the rule `{rule}`"),
    };
    match general {
        Some(reason) => line(told, format_args!("{denied}: {reason}")),
        None => line(told, denied),
    }
    for file in files {
        if let Taken::Nothing { reason: Some(why) } = &file.taken
            && Some(why.as_str()) != general
        {
            line(told, format_args!("{}: {why}", file.path));
        }
    }
}

fn about_file(file: &FilePreview, decision: &FileDecision, general: Option<&str>, plan: &Plan, told: &mut String) {
    let path = &file.path;
    let written = plan.step(&file.location).map_or(&file.before, |step| &step.after);
    let now = format!("{path} (as it is now)");
    let proposed = format!("{path} (proposed)");
    match &decision.taken {
        Taken::All if file.is_unchanged() => line(told, format_args!("{path}: already as proposed")),
        Taken::All => {
            line(told, format_args!("{path}: {} as proposed", done(file)));
            placed(file, told);
        }
        Taken::Hunks { taken, refused, count } => {
            let partly = if file.operation == Operation::Delete { "not deleted, but changed" } else { &done(file) };
            let taken = hunks(taken, refused, *count);
            line(
                told,
                format_args!("{path}: {partly} in part. Accepted: {taken}. What was refused, and is not there:"),
            );
            difference(written, &file.after, (&now, &proposed), told);
            if file.before.mode().is_some_and(|mode| file.after.mode().is_some_and(|after| mode != after)) {
                line(told, "The file mode was not changed.");
            }
            placed(file, told);
        }
        Taken::Edited if file.operation == Operation::Delete => {
            line(told, format_args!("{path}: not deleted; the user edited the content instead:"));
            difference(&file.before, written, (&format!("{path} (before)"), &now), told);
        }
        Taken::Edited => {
            line(
                told,
                format_args!("{path}: {} with edits by the user. How it differs from the proposal:", done(file)),
            );
            difference(&file.after, written, (&proposed, &now), told);
        }
        Taken::Nothing { reason } => {
            let why = reason.as_deref().filter(|reason| Some(*reason) != general);
            let why = why.map(|reason| format!(": {reason}")).unwrap_or_default();
            line(told, format_args!("{path}: refused, not {}{why}", done(file)));
        }
    }
}

fn done(file: &FilePreview) -> String {
    match &file.operation {
        Operation::Create => "created".to_owned(),
        Operation::Update => "changed".to_owned(),
        Operation::Delete => "deleted".to_owned(),
        Operation::Rename { from } if file.before == file.after => format!("renamed from {from}"),
        Operation::Rename { from } => format!("renamed from {from} and changed"),
    }
}

/// Which hunks were accepted: `hunks 1 and 3 of 3`, `hunk 1 of 2 and part 2 of hunk 2`.
fn hunks(taken: &BTreeSet<HunkId>, refused: &BTreeSet<usize>, count: usize) -> String {
    let whole: Vec<String> = (1..=count).filter(|hunk| !refused.contains(hunk)).map(|hunk| hunk.to_string()).collect();
    let parts = taken.iter().filter(|id| refused.contains(&id.hunk));
    let parts = parts.filter_map(|id| Some(format!("part {} of hunk {}", id.part?, id.hunk)));
    let whole = match &whole[..] {
        [] => None,
        [one] => Some(format!("hunk {one} of {count}")),
        more => Some(format!("hunks {} of {count}", listed(more))),
    };
    listed(&whole.into_iter().chain(parts).collect::<Vec<_>>())
}

/// What came out otherwise than the agent may think, although it was accepted.
fn placed(file: &FilePreview, told: &mut String) {
    for note in &file.notes {
        match note {
            Note::Merged => {
                line(told, "  It also holds what others changed meanwhile: read it before changing it again.");
            }
            Note::Moved { .. } | Note::Loosened { .. } | Note::Ambiguous { .. } => {
                line(told, format_args!("  Of the patch, {note}."));
            }
            _ => {}
        }
    }
}

fn about_line(preview: &Preview, comment: &Comment, told: &mut String) {
    let file = preview.files().iter().find(|file| file.path == comment.path);
    let (state, side) = match comment.side {
        CommentSide::Current => (file.map(|file| &file.before), " (before the change)"),
        CommentSide::Proposed => (file.map(|file| &file.after), ""),
    };
    let text = state.and_then(FileState::bytes).and_then(plain_text);
    let commented = text.as_deref().and_then(|text| text.lines().nth(comment.line.checked_sub(1)?)).map(str::trim);
    let quote = match commented {
        Some(line) if !line.is_empty() => format!(" `{}`", shortened(line)),
        _ => String::new(),
    };
    let remark = comment.text.trim_end().replace('\n', "\n  ");
    line(told, format_args!("{}:{}{side}{quote}: {remark}", comment.path, comment.line));
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(MOST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn difference(old: &FileState, new: &FileState, labels: (&str, &str), told: &mut String) {
    fn side(state: &FileState) -> Side<'_> {
        state.bytes().map_or(Side::Absent, Side::Present)
    }
    let diff = Diff::new(side(old), side(new));
    if diff.is_binary() {
        line(told, "(binary content)");
        return;
    }
    let options = UnifiedOptions {
        context: CONTEXT,
        old_label: labels.0,
        new_label: labels.1,
        rendering: Rendering::Readable,
        limit: Some(MOST_DIFF),
    };
    if let Unified::Changes { text, truncated } = diff.unified(&options) {
        told.push_str(&String::from_utf8_lossy(&text));
        if truncated {
            line(told, format_args!("[cut at {MOST_DIFF} bytes]"));
        }
    }
}
