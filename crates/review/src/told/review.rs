//! What the agent is told after a review of what it did: it thinks that its files are as it left them.

use super::{comments, difference, hunks, line, who};
use crate::decide::{FileDecision, Taken};
use crate::plan::Plan;
use crate::preview::{Operation, Preview};
use crate::verdict::Verdict;

pub(super) fn compose(preview: &Preview, verdict: &Verdict, files: &[FileDecision], plan: &Plan) -> String {
    let who = who(&verdict.by);
    let mut told = String::new();
    if plan.is_empty() {
        line(&mut told, format_args!("{who} reviewed what you changed in this turn and kept all of it."));
    } else {
        line(
            &mut told,
            format_args!("{who} reviewed what you changed in this turn. Your files are not all as you left them:"),
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
        match &decision.taken {
            Taken::All => line(&mut told, format_args!("{path}: kept")),
            Taken::Nothing { reason } => {
                let back = match &file.operation {
                    Operation::Create => "taken back; the file is gone again",
                    Operation::Delete => "taken back; the file is there again",
                    _ => "all changes of this turn taken back",
                };
                line(&mut told, format_args!("{path}: {back}{}", why(reason)));
                continue;
            }
            Taken::Hunks { taken, refused, count } => {
                let kept = hunks(taken, refused, *count);
                line(&mut told, format_args!("{path}: kept in part: {kept}. What was taken back:"));
            }
            Taken::Edited => line(&mut told, format_args!("{path}: edited by the user:")),
        }
        difference(&file.after, now, (&labels.0, &labels.1), &mut told);
    }
    if let Some(reason) = general {
        line(&mut told, format_args!("{who} says: {reason}"));
    }
    comments(preview, verdict, &mut told);
    told.truncate(told.trim_end().len());
    told
}
