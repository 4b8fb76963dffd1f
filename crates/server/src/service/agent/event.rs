//! Conversion of the agent's events and settings to messages.

use sayso_agent::settings::name_of_dialect;
use sayso_agent::{
    FinishedReason, InvocationUsage, LiveEventKind, ProposedFile, Settings, StatusEvent, StepState, Todo, TodoWriter,
};
use sayso_api::proto;
use sayso_api::proto::oneof::invoke_event::Event;
use sayso_review::{ChangeId, TokenUsage};
use sayso_tools::TodoState;

/// Converts an event. `review` is the pending review of the turn, for its end.
pub(crate) fn live_event(kind: LiveEventKind, review: Option<ChangeId>) -> Event {
    match kind {
        LiveEventKind::Status(status) => status_event(status).into(),
        LiveEventKind::ThinkingDelta { text } => proto::ThinkingDelta { text, ..Default::default() }.into(),
        LiveEventKind::TextDelta { text } => proto::TextDelta { text, ..Default::default() }.into(),
        LiveEventKind::ToolCall { call, tool, arguments_json, summary } => {
            proto::ToolCallStarted { call, tool, arguments_json, summary, ..Default::default() }.into()
        }
        LiveEventKind::ToolOutputDelta { call, text } => {
            proto::ToolOutputDelta { call, text, ..Default::default() }.into()
        }
        LiveEventKind::ToolResult { call, tool, text, is_error, change, duration_ms } => {
            proto::ToolResult { call, tool, text, is_error, change, duration_ms, ..Default::default() }.into()
        }
        LiveEventKind::ProposedChanges { changes, change } => proto::ProposedChanges {
            changes: changes.changes.into_iter().map(proposed_file).collect(),
            has_conflicts: changes.has_conflicts,
            warnings: changes.warnings,
            change,
            ..Default::default()
        }
        .into(),
        LiveEventKind::Todos { todos } => {
            proto::TodoList { todos: todos.iter().map(todo).collect(), ..Default::default() }.into()
        }
        LiveEventKind::Usage(usage) => invocation_usage(&usage).into(),
        LiveEventKind::Settings { settings } => {
            proto::SettingsChanged { settings: session_settings(&settings).into(), ..Default::default() }.into()
        }
        LiveEventKind::Finished { reason, text, usage } => {
            let reason = match reason {
                FinishedReason::Completed => proto::invocation_finished::Reason::Completed,
                FinishedReason::Interrupted => proto::invocation_finished::Reason::Interrupted,
                FinishedReason::Limit => proto::invocation_finished::Reason::Limit,
                FinishedReason::Cancelled => proto::invocation_finished::Reason::Cancelled,
            };
            let usage = invocation_usage(&usage).into();
            proto::InvocationFinished { reason: reason.into(), text, usage, review, ..Default::default() }.into()
        }
        LiveEventKind::Failed { message, hint } => {
            proto::InvocationFailed { message, hint, ..Default::default() }.into()
        }
    }
}

fn status_event(status: StatusEvent) -> proto::InvocationStatus {
    use proto::invocation_status::State;
    let state = match status.state {
        StepState::Queued => State::Queued,
        StepState::Requesting => State::Requesting,
        StepState::Streaming => State::Streaming,
        StepState::RunningTool => State::RunningTool,
        StepState::Waiting => State::Waiting,
        StepState::Retrying => State::Retrying,
        StepState::Compacting => State::Compacting,
        StepState::Pruned => State::Pruned,
    };
    let StatusEvent { text, request, retry_ms, .. } = status;
    proto::InvocationStatus { state: state.into(), text, request, retry_ms, ..Default::default() }
}

fn proposed_file(file: ProposedFile) -> proto::proposed_changes::FileChange {
    let ProposedFile { path, operation, unified_diff, new_content, conflict, warning } = file;
    proto::proposed_changes::FileChange {
        path,
        operation,
        unified_diff,
        new_content,
        conflict,
        warning,
        ..Default::default()
    }
}

fn invocation_usage(usage: &InvocationUsage) -> proto::InvocationUsage {
    proto::InvocationUsage {
        usage: token_usage(usage.tokens).into(),
        cost_micro_usd: usage.cost_micro_usd,
        context_percent: usage.context_percent,
        requests: usage.requests,
        ..Default::default()
    }
}

fn token_usage(usage: TokenUsage) -> proto::TokenUsage {
    let TokenUsage { input, output, cache_read, cache_written, reasoning } = usage;
    proto::TokenUsage { input, output, cache_read, cache_written, reasoning, ..Default::default() }
}

pub(super) fn todo(todo: &Todo) -> proto::Todo {
    let state = match todo.state {
        TodoState::Pending => proto::todo::State::Pending,
        TodoState::InProgress => proto::todo::State::InProgress,
        TodoState::Done => proto::todo::State::Done,
    };
    proto::Todo {
        id: todo.id.clone(),
        text: todo.text.clone(),
        state: state.into(),
        by_agent: todo.writer == TodoWriter::Agent,
        updated_ms: todo.updated_ms,
        ..Default::default()
    }
}

pub(super) fn session_settings(settings: &Settings) -> proto::SessionSettings {
    let limits = proto::SessionLimits {
        turns: settings.limits.turns,
        cost_micro_usd: settings.limits.cost_micro_usd,
        time_ms: settings.limits.time_ms,
        ..Default::default()
    };
    proto::SessionSettings {
        model: settings.model.clone(),
        dialect: name_of_dialect(settings.dialect).to_owned(),
        upstream: settings.upstream.clone(),
        scenario: settings.scenario.clone(),
        limits: limits.into(),
        show_thinking: settings.show_thinking,
        ..Default::default()
    }
}
