//! What the agent is told about a verdict: precisely what was accepted, changed or refused, and why. Composed here and nowhere
//! else, so that every agent hears the same.

use sayso_diff::{Diff, Rendering, Side, Unified, UnifiedOptions};

use crate::decide::{FileDecision, Taken};
use crate::file_state::FileState;
use crate::plan::Plan;
use crate::preview::{CONTEXT, FilePreview, Operation, Preview};
use crate::verdict::{Answer, CommentSide, Decider, Verdict};

/// What a plain denial says; the reason follows where there is one.
pub const DENIED: &str = "user denied this tool call";

/// More of a diff than this would fill a model's context without telling it more.
const MOST_DIFF: usize = 16 * 1024;

pub(crate) fn compose(preview: &Preview, verdict: &Verdict, files: &[FileDecision], plan: &Plan) -> String {
    let mut told = String::new();
    let nothing = files.iter().all(|file| matches!(file.taken, Taken::Nothing { .. }));
    if nothing {
        denial(verdict, files, &mut told);
    } else {
        for (file, decision) in preview.files().iter().zip(files) {
            about_file(file, decision, plan, &mut told);
        }
        if let Answer::Files { reason: Some(reason), .. } = &verdict.answer {
            told.push_str(&format!("The user says: {reason}\n"));
        }
    }
    if !verdict.comments.is_empty() {
        told.push_str("Comments:\n");
        for comment in &verdict.comments {
            let side = match comment.side {
                CommentSide::Current => " (before the change)",
                CommentSide::Proposed => "",
            };
            told.push_str(&format!("{}:{}{side}: {}\n", comment.path, comment.line, comment.text.trim_end()));
        }
    }
    told.truncate(told.trim_end().len());
    told
}

fn denial(verdict: &Verdict, files: &[FileDecision], told: &mut String) {
    let reason = match &verdict.answer {
        Answer::Deny { reason } | Answer::Files { reason, .. } => reason.as_deref(),
        Answer::Approve => None,
    };
    match (reason, &verdict.by) {
        (Some(reason), _) => told.push_str(&format!("{DENIED}: {reason}\n")),
        (None, Decider::Policy { rule }) => told.push_str(&format!("denied by the rule `{rule}`\n")),
        (None, Decider::Person) => told.push_str(&format!("{DENIED}\n")),
    }
    for file in files {
        if let Taken::Nothing { reason: Some(why) } = &file.taken
            && Some(why.as_str()) != reason
        {
            told.push_str(&format!("{}: {why}\n", file.path));
        }
    }
}

fn about_file(file: &FilePreview, decision: &FileDecision, plan: &Plan, told: &mut String) {
    let path = &file.path;
    let done = match &file.operation {
        Operation::Create => "created".to_owned(),
        Operation::Update => "changed".to_owned(),
        Operation::Delete => "deleted".to_owned(),
        Operation::Rename { from } => format!("renamed from {from}"),
    };
    let written = plan.steps().iter().find(|step| step.path == file.location).map(|step| &step.after);
    match &decision.taken {
        Taken::All if file.is_unchanged() => told.push_str(&format!("{path}: already as proposed\n")),
        Taken::All => told.push_str(&format!("{path}: {done} as proposed\n")),
        Taken::Hunks { taken, refused } => {
            let list = |ids: Vec<String>| ids.join(", ");
            told.push_str(&format!(
                "{path}: {done} in part. The user accepted hunk {} and refused hunk {}. What was refused is not in the file:\n",
                list(taken.iter().map(ToString::to_string).collect()),
                list(refused.iter().map(ToString::to_string).collect()),
            ));
            difference(written, &file.after, (&format!("{path} (as it is now)"), &format!("{path} (refused)")), told);
        }
        Taken::Edited => {
            told.push_str(&format!(
                "{path}: {done}, but not as proposed: the user edited the content first. How it differs from the proposal:\n"
            ));
            let Some(written) = written else { return };
            difference(Some(&file.after), written, (&format!("{path} (proposed)"), &format!("{path} (written)")), told);
        }
        Taken::Nothing { reason } => {
            let why = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
            told.push_str(&format!("{path}: refused, not {done}{why}\n"));
        }
    }
}

fn difference(old: Option<&FileState>, new: &FileState, labels: (&str, &str), told: &mut String) {
    let old = old.and_then(FileState::bytes).map_or(Side::Absent, Side::Present);
    let new = new.bytes().map_or(Side::Absent, Side::Present);
    let diff = Diff::new(old, new);
    if diff.is_binary() {
        told.push_str("(binary content)\n");
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
            told.push_str(&format!("[cut at {MOST_DIFF} bytes]\n"));
        }
    }
}
