//! Messages about commands and tool calls.

use super::{DENIED, push_line, push_message, truncate_line};
use crate::event::{ChangeId, Subject};
use crate::verdict::{Answer, Decider, Verdict};

/// Returns the message about a verdict on a command or a tool call.
pub fn action_message(subject: &Subject, verdict: &Verdict) -> String {
    let what = match subject {
        Subject::Files => "change",
        Subject::Command { .. } => "command",
        Subject::Tool { .. } => "tool call",
    };
    let mut message = match (&verdict.answer, &verdict.by) {
        (Answer::Deny { reason }, by) => {
            let denied = match by {
                Decider::Person { .. } => DENIED.to_owned(),
                Decider::Policy { rule } => format!("denied by the rule `{rule}`"),
            };
            match reason {
                Some(reason) => format!("{denied}: {reason}"),
                None => denied,
            }
        }
        (Answer::Command { command }, _) => {
            // Several calls may be pending at once; quote the proposed command to identify this one.
            let asked = match subject {
                Subject::Command { command, .. } => truncate_line(command.lines().next().unwrap_or_default()),
                _ => String::new(),
            };
            format!("`{asked}` was approved with an edit by the user; what runs is:\n{command}")
        }
        (Answer::Arguments { arguments }, _) => {
            format!("approved with an edit by the user; the arguments are:\n{arguments}")
        }
        (Answer::Approve | Answer::Files { .. }, _) => format!("the {what} was approved"),
    };
    if verdict.message.is_some() {
        message.push('\n');
        push_message(verdict, &mut message);
    }
    for comment in &verdict.comments {
        push_line(&mut message, format_args!("\n{}:{}: {}", comment.path, comment.line, comment.text));
    }
    message.truncate(message.trim_end().len());
    message
}

/// Returns the reason for denying a change that was based on the result of another change, which was dropped.
pub fn dependency_denied(before: ChangeId) -> String {
    format!("it depends on change {before} of the same file, which was dropped")
}
