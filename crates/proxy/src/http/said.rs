//! What is known of an answer by what was read of it.

use std::collections::BTreeMap;
use std::fmt::Display;

use sayso_review::TokenUsage;
use sayso_wire::stream::collect::Answer;
use sayso_wire::stream::{Problem, StreamEvent, Usage};
use serde_json::Value;

use super::calls::Call;

/// What was said so far.
#[derive(Default)]
pub(super) struct Said {
    open: BTreeMap<u32, Call>,
    pub(super) usage: Usage,
    pub(super) finish: Option<String>,
    pub(super) problem: Option<String>,
    /// Why part of it could not be read.
    pub(super) unread: Option<String>,
}

impl Said {
    /// Takes note of an event of a stream, and of the calls that are complete with it.
    pub(super) fn take(&mut self, event: StreamEvent<'_>, complete: &mut Vec<Call>) {
        match event {
            StreamEvent::ToolCallStarted { block, id, name, .. } => {
                self.open.insert(block, Call { id: id.into(), name: name.into(), arguments: String::new() });
            }
            StreamEvent::ToolArguments { block, piece } => {
                if let Some(call) = self.open.get_mut(&block) {
                    call.arguments.push_str(&piece);
                }
            }
            StreamEvent::ToolCallComplete { block, id, name, whole } => {
                let call = self.open.remove(&block);
                let arguments = whole.map(Into::into).or(call.map(|call| call.arguments)).unwrap_or_default();
                complete.push(Call { id: id.into(), name: name.into(), arguments });
            }
            StreamEvent::Usage(later) => self.usage.update(later),
            StreamEvent::Finished { reason, .. } => self.finish = Some(reason.into()),
            StreamEvent::Error { kind, message, .. } => self.problem = Some(format!("{kind}: {message}")),
            StreamEvent::Problem(found) => {
                // Nobody runs a call that was cut.
                if !matches!(found, Problem::Cut { .. }) {
                    self.unread(&found);
                }
                self.problem = Some(found.to_string());
            }
            _ => {}
        }
    }

    /// Takes note of an answer in one piece, and gives the calls in it.
    pub(super) fn whole(&mut self, answer: Answer) -> Vec<Call> {
        self.usage = answer.usage;
        self.finish = answer.finish.map(|(said, _)| said);
        if let Some(problem) = answer.problems.first() {
            self.unread(problem);
        }
        answer.blocks.into_iter().filter_map(|block| Call::of(block.content)).collect()
    }

    /// Takes note that part of it could not be read.
    pub(super) fn unread(&mut self, why: &dyn Display) {
        self.unread.get_or_insert_with(|| why.to_string());
    }
}

pub(super) fn counted(usage: Usage) -> TokenUsage {
    let Usage { input, output, cache_read, cache_written, reasoning } = usage;
    TokenUsage { input, output, cache_read, cache_written, reasoning }
}

/// Arguments as a tool gets them: JSON where they are, else text.
pub(super) fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
