//! Messages about the review of applied changes, where the agent assumes that its files are unchanged.

use super::{comments, decider_name, hunks, push_diff, push_line, push_message};
use crate::decide::{Acceptance, FileDecision};
use crate::plan::Plan;
use crate::preview::{Operation, Preview};
use crate::verdict::Verdict;

pub(super) fn compose(preview: &Preview, verdict: &Verdict, files: &[FileDecision], plan: &Plan) -> String {
    let decider = decider_name(&verdict.by);
    let mut message = String::new();
    if plan.is_empty() {
        push_line(&mut message, format_args!("{decider} reviewed what you changed in this turn and kept all of it."));
    } else {
        push_line(
            &mut message,
            format_args!("{decider} reviewed what you changed in this turn. Your files are not all as you left them:"),
        );
    }
    let general = verdict.answer.reason();
    for (file, decision) in preview.files().iter().zip(files).filter(|_| !plan.is_empty()) {
        let path = &file.path;
        let now = plan.step(&file.location).map_or(&file.after, |step| &step.after);
        let labels = (format!("{path} (as you left it)"), format!("{path} (as it is now)"));
        let why = |reason: &Option<String>| match reason {
            Some(reason) if Some(reason.as_str()) != general => format!(": {reason}"),
            _ => String::new(),
        };
        match &decision.acceptance {
            Acceptance::All => push_line(&mut message, format_args!("{path}: kept")),
            Acceptance::Denied { reason } => {
                let back = match &file.operation {
                    Operation::Create => "reverted; the file is deleted again",
                    Operation::Delete => "reverted; the file is restored",
                    _ => "all changes of this turn reverted",
                };
                push_line(&mut message, format_args!("{path}: {back}{}", why(reason)));
                continue;
            }
            Acceptance::Hunks { accepted, rejected, count } => {
                let kept = hunks(accepted, rejected, *count);
                push_line(&mut message, format_args!("{path}: kept in part: {kept}. Reverted:"));
            }
            Acceptance::Edited => push_line(&mut message, format_args!("{path}: edited by the user:")),
        }
        push_diff(&file.after, now, (&labels.0, &labels.1), &mut message);
    }
    if let Some(reason) = general {
        push_line(&mut message, format_args!("{decider} says: {reason}"));
    }
    push_message(verdict, &mut message);
    comments(preview, verdict, &mut message);
    message.truncate(message.trim_end().len());
    message
}
