//! Answers of surfaces to the agent's requests.

use sayso_agent::host::{CommandDispatch, EditorText, SurfaceAnswer};
use sayso_api::convert::BadMessage;
use sayso_api::proto;
use sayso_api::proto::command_dispatch_response::Status as DispatchStatus;
use sayso_api::proto::oneof::client_event::Event;
use sayso_api::proto::submit_client_event_response::Status;

use crate::agent_sessions::{LiveSession, RequestKind, Submitted};
use crate::failure::Failure;

/// Characters of a text in an answer. The agent shortens what it passes on.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// Passes an answer on.
pub(super) fn submit(live: &LiveSession, event: Event) -> Result<Status, Failure> {
    let (request, kind, answer) = read(event)?;
    match live.requests.submit(&request, kind, answer) {
        Submitted::Accepted => Ok(Status::Accepted),
        Submitted::TooLate => Ok(Status::TooLate),
        Submitted::Unknown => Ok(Status::Unknown),
        Submitted::Mismatch => Err(BadMessage::new("event", format!("request `{request}` is of another kind")).into()),
    }
}

fn read(event: Event) -> Result<(String, RequestKind, SurfaceAnswer), Failure> {
    let limited = |name: &str, text: &str| {
        if text.len() <= MAX_TEXT_BYTES {
            return Ok(());
        }
        Err(Failure::from(BadMessage::new(name, format!("it is longer than {MAX_TEXT_BYTES} bytes"))))
    };
    Ok(match event {
        Event::FileReadResponse(response) => {
            let proto::FileReadResponse { request_id, content, error, dirty, .. } = *response;
            limited("event.file_read_response.content", &content)?;
            let answer = match error {
                Some(message) => SurfaceAnswer::FileError { message },
                None => SurfaceAnswer::FileText(EditorText { content, unsaved: dirty }),
            };
            (request_id, RequestKind::FileRead, answer)
        }
        Event::CommandDispatchResponse(response) => {
            let proto::CommandDispatchResponse { request_id, terminal_id, status, exit_code, output, error, .. } =
                *response;
            let output = output.filter(|output| !output.is_empty());
            limited("event.command_dispatch_response.output", output.as_deref().unwrap_or_default())?;
            let dispatch = match status.as_known().unwrap_or_default() {
                DispatchStatus::SENT => CommandDispatch::Sent { terminal: terminal_id },
                DispatchStatus::RAN => CommandDispatch::Ran { terminal: terminal_id, exit_code, output },
                DispatchStatus::ERROR => {
                    CommandDispatch::Failed { message: error.unwrap_or_else(|| "no reason was given".to_owned()) }
                }
                DispatchStatus::STATUS_UNSPECIFIED => {
                    let field = "event.command_dispatch_response.status";
                    return Err(BadMessage::new(field, "it is not SENT, RAN or ERROR").into());
                }
            };
            (request_id, RequestKind::Command, SurfaceAnswer::Command(dispatch))
        }
        Event::QuestionResponse(response) => {
            let proto::QuestionResponse { request_id, answer, .. } = *response;
            limited("event.question_response.answer", &answer)?;
            (request_id, RequestKind::Question, SurfaceAnswer::Text(answer))
        }
    })
}
