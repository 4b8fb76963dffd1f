//! Requests to attached surfaces: file contents, commands in a terminal of the user, and questions.

use std::time::Duration;

use sayso_agent::host::{SurfaceAnswer, SurfaceRequest};
use sayso_api::proto;
use sayso_api::proto::oneof::invoke_event::Event;

use super::SessionHost;
use crate::agent_sessions::{RequestKind, WaitingFor};
use crate::host::now;

/// Asks the attached surfaces. The first answer counts.
pub(super) async fn ask(host: &SessionHost, request: SurfaceRequest) -> SurfaceAnswer {
    let requests = &host.live.requests;
    if !requests.has_surface() {
        return SurfaceAnswer::NoSurface;
    }
    let timing = host.host.agent_sessions.timing();
    let (kind, limit) = match &request {
        SurfaceRequest::FileRead { .. } => (RequestKind::FileRead, Some(timing.file_read)),
        SurfaceRequest::ExecuteCommand { .. } => (RequestKind::Command, Some(timing.command)),
        SurfaceRequest::Question { .. } => (RequestKind::Question, None),
    };
    let open = requests.open(kind);
    let invocation = host.live.invocation();
    // A person has to answer, except for a file.
    let waiting = (kind != RequestKind::FileRead).then(|| host.live.wait_for(&invocation, WaitingFor::Answer));
    host.live.push(&invocation, event(request, open.id.clone(), limit));
    let answer = open.answer(limit, timing.reconnect).await;
    drop(waiting);
    answer
}

fn event(request: SurfaceRequest, request_id: String, limit: Option<Duration>) -> Event {
    let deadline_ms =
        limit.map_or(0, |limit| now().saturating_add(i64::try_from(limit.as_millis()).unwrap_or(i64::MAX)));
    match request {
        SurfaceRequest::FileRead { path, offset, limit, reason } => {
            proto::RequestFileRead { request_id, path, offset, limit, reason, deadline_ms, ..Default::default() }.into()
        }
        SurfaceRequest::ExecuteCommand { command, directory, terminal_name, change } => proto::ExecuteCommandRequest {
            request_id,
            command,
            cwd: directory,
            terminal_name,
            reveal: true,
            deadline_ms,
            change,
            ..Default::default()
        }
        .into(),
        SurfaceRequest::Question { question, options } => {
            proto::AskQuestion { request_id, question, options, ..Default::default() }.into()
        }
    }
}
