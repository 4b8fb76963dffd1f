//! What the agent is told about a command or a call of a tool.

use super::{DENIED, line, shortened};
use crate::event::{ChangeId, Subject};
use crate::verdict::{Answer, Decider, Verdict};

/// What the agent is told about a verdict on a command or a call of a tool, before it runs or instead of that.
pub fn told_action(subject: &Subject, verdict: &Verdict) -> String {
    let what = match subject {
        Subject::Files => "change",
        Subject::Command { .. } => "command",
        Subject::Tool { .. } => "tool call",
    };
    let mut told = match (&verdict.answer, &verdict.by) {
        (Answer::Deny { reason }, by) => {
            let denied = match by {
                Decider::Person => DENIED.to_owned(),
                Decider::Policy { rule } => format!("denied by the rule `{rule}`"),
            };
            match reason {
                Some(reason) => format!("{denied}: {reason}"),
                None => denied,
            }
        }
        (Answer::Command { command }, _) => {
            // Of several calls at once, the agent has to know which one this is about.
            let asked = match subject {
                Subject::Command { command, .. } => shortened(command.lines().next().unwrap_or_default()),
                _ => String::new(),
            };
            format!("`{asked}` was approved with an edit by the user; what runs is:\n{command}")
        }
        (Answer::Arguments { arguments }, _) => {
            format!("approved with an edit by the user; the arguments are:\n{arguments}")
        }
        (Answer::Approve | Answer::Files { .. }, _) => format!("the {what} was approved"),
    };
    for comment in &verdict.comments {
        line(&mut told, format_args!("\n{}:{}: {}", comment.path, comment.line, comment.text));
    }
    told.truncate(told.trim_end().len());
    told
}

/// What is said of a change that was made for files as another change would have left them, which it never did.
pub fn told_without(before: ChangeId) -> String {
    format!("it came after change {before} of the same file, which did not happen")
}
