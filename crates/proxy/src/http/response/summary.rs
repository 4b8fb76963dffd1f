//! Usage, finish reason, problems and tool calls of a response.

use std::collections::BTreeMap;
use std::fmt::Display;

use sayso_review::TokenUsage;
use sayso_wire::stream::collect::ModelResponse;
use sayso_wire::stream::{StreamEvent, StreamProblem, Usage};
use serde_json::Value;

use crate::http::tool_calls::ToolCall;

/// Facts about a response, collected while it is decoded.
#[derive(Default)]
pub(super) struct ResponseSummary {
    /// Incomplete tool calls, by block.
    open: BTreeMap<u32, ToolCall>,
    pub(super) usage: Usage,
    pub(super) finish: Option<String>,
    pub(super) problem: Option<String>,
    /// The first problem for which tool calls may have been missed.
    pub(super) undecodable: Option<String>,
}

impl ResponseSummary {
    /// Adds an event of a stream. Completed tool calls are appended to `calls`.
    pub(super) fn add(&mut self, event: StreamEvent<'_>, calls: &mut Vec<ToolCall>) {
        match event {
            StreamEvent::ToolCallStarted { block, id, name, .. } => {
                self.open.insert(block, ToolCall { id: id.into(), name: name.into(), arguments: String::new() });
            }
            StreamEvent::ToolArguments { block, piece } => {
                if let Some(call) = self.open.get_mut(&block) {
                    call.arguments.push_str(&piece);
                }
            }
            StreamEvent::ToolCallComplete { block, id, name, whole } => {
                let call = self.open.remove(&block);
                let arguments = whole.map(Into::into).or(call.map(|call| call.arguments)).unwrap_or_default();
                calls.push(ToolCall { id: id.into(), name: name.into(), arguments });
            }
            StreamEvent::Usage(usage) => self.usage.update(usage),
            StreamEvent::Finished { reason, .. } => self.finish = Some(reason.into()),
            StreamEvent::Error { kind, message, .. } => self.problem = Some(format!("{kind}: {message}")),
            StreamEvent::Problem(problem) => {
                // An agent does not run a truncated call.
                if !matches!(problem, StreamProblem::Truncated { .. }) {
                    self.mark_undecodable(&problem);
                }
                self.problem = Some(problem.to_string());
            }
            _ => {}
        }
    }

    /// Adds a non-streamed response, and returns its tool calls.
    pub(super) fn add_response(&mut self, response: ModelResponse) -> Vec<ToolCall> {
        self.usage = response.usage;
        self.finish = response.finish.map(|(reason, _)| reason);
        if let Some(problem) = response.problems.first() {
            self.mark_undecodable(problem);
        }
        response.blocks.into_iter().filter_map(|block| ToolCall::from_block(block.content)).collect()
    }

    pub(super) fn mark_undecodable(&mut self, problem: &dyn Display) {
        self.undecodable.get_or_insert_with(|| problem.to_string());
    }
}

pub(super) fn token_usage(usage: Usage) -> TokenUsage {
    let Usage { input, output, cache_read, cache_written, reasoning } = usage;
    TokenUsage { input, output, cache_read, cache_written, reasoning }
}

/// Parses the arguments of a tool call; text that is not JSON becomes a string.
pub(in crate::http) fn parse_arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
