//! `IntentService`: intents of agents, from submission to outcome.

use std::sync::Arc;

use connectrpc::{ConnectError, RequestContext, Response, ServiceRequest, ServiceResult, ServiceStream};
use futures::{StreamExt as _, stream};
use sayso_api::convert::BadMessage;
use sayso_api::proto::capture_response::{CapturedFile, captured_file};
use sayso_api::proto::{self, PreviewView};
use sayso_gate::{
    CallBasis, CaptureTiming, Completion, Gate, GateError, NewSession, Submission, ToolCall, ToolReport, UnreadMessage,
};
use sayso_review::{ErrorKind, Intent, Origin, Performer, Tier};
use serde_json::Value;

use super::review::submitted;
use super::stream::AwaitStream;
use super::view_of;
use crate::caller::Peer;
use crate::change_details::{self, PreviewOf};
use crate::failure::Failure;
use crate::host::{Host, blocking, now};

/// Run note of a command that the agent's own shell ran.
const IN_PLACE_NOTE: &str = "ran in the agent's own shell, without marks";

#[derive(Clone, Debug)]
pub(crate) struct Intents(pub(crate) Arc<Host>);

impl Intents {
    /// Runs work on a blocking thread after checking that the caller may act in the session.
    async fn in_session<T: Send + 'static>(
        &self,
        context: &RequestContext,
        session: String,
        work: impl FnOnce(&Gate, &str) -> Result<T, GateError> + Send + 'static,
    ) -> Result<T, ConnectError> {
        let peer = Peer::of(context);
        blocking(&self.0, move |host| {
            host.authorize_session(peer, &session)?;
            Ok(work(&host.gate, &session)?)
        })
        .await
    }
}

impl proto::IntentService for Intents {
    async fn submit(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::SubmitRequest>,
    ) -> ServiceResult<proto::SubmitResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        let details = blocking(&self.0, move |host| {
            let mut details = submit(host, peer, request)?;
            super::withhold(host, peer, &mut details);
            Ok(details)
        })
        .await?;
        Response::ok(proto::SubmitResponse { details: details.into(), ..Default::default() })
    }

    async fn r#await(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::AwaitRequest>,
    ) -> ServiceResult<ServiceStream<proto::AwaitResponse>> {
        let (change, view) = (request.change, view_of(request.view));
        let guard = self.0.count_await(change);
        let stream = AwaitStream::new(Arc::clone(&self.0), Peer::of(&context), change, view, Some(guard));
        let response = |details: Option<proto::ChangeDetails>| {
            let kind = match details {
                Some(details) => details.into(),
                None => proto::await_response::Heartbeat::default().into(),
            };
            proto::AwaitResponse { kind: Some(kind), ..Default::default() }
        };
        Ok(Response::stream(stream::unfold(stream, AwaitStream::next).map(move |sent| sent.map(response))))
    }

    async fn withdraw(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::WithdrawRequest>,
    ) -> ServiceResult<proto::WithdrawResponse> {
        let (change, peer) = (request.change, Peer::of(&context));
        let details = blocking(&self.0, move |host| {
            host.authorize_change(peer, change)?;
            // Reviews belong to the person.
            if host.gate.read(|history| history.change(change))?.is_review() {
                Peer::require_person(peer, &host.agents)?;
            }
            host.gate.withdraw(change, now())?;
            let view = PreviewView::Unspecified;
            let preview_of = PreviewOf::Proposed;
            let mut details = host.gate.read(|history| change_details::of(history, change, view, preview_of))?;
            super::withhold(host, peer, &mut details);
            Ok(details)
        });
        Response::ok(proto::WithdrawResponse { details: details.await?.into(), ..Default::default() })
    }

    async fn capture(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::CaptureRequest>,
    ) -> ServiceResult<proto::CaptureResponse> {
        let request = request.to_owned_message();
        let arguments = value("arguments_json", &request.arguments_json).map_err(Failure::from)?;
        let tier = Tier::try_from(request.tier.as_known().unwrap_or_default()).map_err(Failure::from)?;
        let call = ToolCall { session: request.session, call: request.call, tool: request.tool };
        let peer = Peer::of(&context);
        let capture = blocking(&self.0, move |host| {
            if let Some(session) = &call.session {
                host.authorize_session(peer, session)?;
            }
            Ok(host.gate.capture(tier, &call, &arguments, now())?)
        });
        let capture = capture.await?;
        let files = capture.files.iter().map(|(path, timing)| {
            let (state, snapshot) = match timing {
                CaptureTiming::Now(id) => (captured_file::State::Captured, Some(*id)),
                CaptureTiming::Earlier(id) => (captured_file::State::CapturedEarlier, Some(*id)),
                CaptureTiming::Late(id) => (captured_file::State::CapturedLate, Some(*id)),
                CaptureTiming::Deferred => (captured_file::State::Deferred, None),
            };
            CapturedFile { path: path.to_string(), state: state.into(), snapshot, ..Default::default() }
        });
        Response::ok(proto::CaptureResponse {
            files: files.collect(),
            uncaptured: capture.uncaptured.iter().map(proto::Uncaptured::from).collect(),
            ..Default::default()
        })
    }

    async fn prepare_call(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::PrepareCallRequest>,
    ) -> ServiceResult<proto::PrepareCallResponse> {
        let (change, peer) = (request.change, Peer::of(&context));
        let prepared = blocking(&self.0, move |host| {
            host.authorize_change(peer, change)?;
            let folders = Peer::run(peer, &host.agents).map(|run| run.directories).unwrap_or_default();
            let order = host.gate.call_order(change, &folders)?;
            let id = host.calls.write(&order).map_err(|error| {
                Failure::new(ErrorKind::Unavailable, format!("cannot write the order of change {change}: {error}"))
                    .hint("check the free disk space")
            })?;
            let approved_by_person = order.basis == CallBasis::Person;
            Ok(proto::PrepareCallResponse { id, approved_by_person, ..Default::default() })
        });
        Response::ok(prepared.await?)
    }

    async fn finish(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::FinishRequest>,
    ) -> ServiceResult<proto::FinishResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        Response::ok(blocking(&self.0, move |host| finish(host, peer, &request)).await?)
    }

    async fn start_session(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::StartSessionRequest>,
    ) -> ServiceResult<proto::StartSessionResponse> {
        let proto::StartSessionRequest { session, agent, location, parent, .. } = request.to_owned_message();
        let peer = Peer::of(&context);
        let started = blocking(&self.0, move |host| {
            let mut origin = Origin { session: Some(session.clone()), agent, ..Origin::default() };
            host.authorize_origin(peer, &mut origin)?;
            let new = NewSession { session, agent: origin.agent, location, parent };
            Ok(host.gate.start_session(new, now())?)
        });
        started.await?;
        Response::ok(proto::StartSessionResponse::default())
    }

    async fn end_session(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::EndSessionRequest>,
    ) -> ServiceResult<proto::EndSessionResponse> {
        let (session, peer) = (request.to_owned_message().session, Peer::of(&context));
        let ended = blocking(&self.0, move |host| {
            host.authorize_session(peer, &session)?;
            // Tool calls of an ended session get no further reports.
            host.gate.finish_matching(Some(&session), None, ToolReport::Missing, now())?;
            Ok(host.gate.end_session(&session, now())?)
        });
        ended.await?;
        Response::ok(proto::EndSessionResponse::default())
    }

    async fn start_turn(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::StartTurnRequest>,
    ) -> ServiceResult<proto::StartTurnResponse> {
        let proto::StartTurnRequest { session, turn, .. } = request.to_owned_message();
        self.in_session(&context, session, move |gate, session| gate.start_turn(session, &turn, now())).await?;
        Response::ok(proto::StartTurnResponse::default())
    }

    async fn end_turn(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::EndTurnRequest>,
    ) -> ServiceResult<proto::EndTurnResponse> {
        let proto::EndTurnRequest { session, turn, .. } = request.to_owned_message();
        let peer = Peer::of(&context);
        let review = blocking(&self.0, move |host| {
            host.authorize_session(peer, &session)?;
            let current = || host.gate.read(|history| history.session(&session)).map(|record| record?.turn);
            let Some(turn) = (match turn {
                Some(turn) => Some(turn),
                None => current()?,
            }) else {
                return Ok(None);
            };
            // Some agents omit the end of a tool call.
            host.gate.finish_matching(Some(&session), None, ToolReport::Missing, now())?;
            Ok(host.gate.end_turn(&session, &turn, now())?.map(|review| review.change))
        });
        Response::ok(proto::EndTurnResponse { review: review.await?, ..Default::default() })
    }

    async fn take_messages(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::TakeMessagesRequest>,
    ) -> ServiceResult<proto::TakeMessagesResponse> {
        let session = request.to_owned_message().session;
        let messages = self.in_session(&context, session, |gate, session| gate.take_messages(session, now())).await?;
        Response::ok(proto::TakeMessagesResponse { messages, ..Default::default() })
    }

    async fn list_messages(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ListMessagesRequest>,
    ) -> ServiceResult<proto::ListMessagesResponse> {
        let session = request.to_owned_message().session;
        let unread = self.in_session(&context, session, Gate::unread_messages).await?;
        let message = |unread: UnreadMessage| proto::list_messages_response::AgentMessage {
            number: unread.number,
            change: unread.change,
            call: unread.call,
            text: unread.text,
            ..Default::default()
        };
        let messages = unread.into_iter().map(message).collect();
        Response::ok(proto::ListMessagesResponse { messages, ..Default::default() })
    }

    async fn acknowledge_messages(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::AcknowledgeMessagesRequest>,
    ) -> ServiceResult<proto::AcknowledgeMessagesResponse> {
        let proto::AcknowledgeMessagesRequest { session, numbers, .. } = request.to_owned_message();
        let work = move |gate: &Gate, session: &str| gate.acknowledge_messages(session, &numbers, now());
        self.in_session(&context, session, work).await?;
        Response::ok(proto::AcknowledgeMessagesResponse::default())
    }
}

fn value(field: &str, text: &str) -> Result<Value, BadMessage> {
    serde_json::from_str(text).map_err(|error| BadMessage::new(field, format!("cannot parse it as JSON: {error}")))
}

fn finish(host: &Host, peer: Option<Peer>, request: &proto::FinishRequest) -> Result<proto::FinishResponse, Failure> {
    let ended = if request.change == 0 {
        if let Some(session) = &request.session {
            host.authorize_session(peer, session)?;
        }
        let call = request.call.as_deref().ok_or_else(|| BadMessage::new("change", "it is missing, and `call` too"))?;
        let called = request.order.as_deref().and_then(|order| host.calls.take_report(order));
        let report = match (&called, request.tool_error.as_deref()) {
            (Some(called), _) => ToolReport::RanCommand { code: called.code, note: called.stopped.as_deref() },
            (None, _) if request.in_place => ToolReport::RanCommand { code: None, note: Some(IN_PLACE_NOTE) },
            (None, None) => ToolReport::Ran,
            (None, Some(error)) => ToolReport::Failed(error),
        };
        host.gate.finish_matching(request.session.as_deref(), Some(call), report, now())?
    } else {
        host.authorize_change(peer, request.change)?;
        if let Some(reason) = &request.start_error {
            return Ok(finished(&[host.gate.report_not_started(request.change, reason, now())?]));
        }
        vec![host.gate.finish(request.change, request.exit_code, now())?]
    };
    Ok(finished(&ended))
}

/// Merges the effects of several changes.
fn finished(completions: &[Completion]) -> proto::FinishResponse {
    let mut response = proto::FinishResponse::default();
    response.record.get_or_insert_default();
    for completion in completions {
        let record = response.record.get_or_insert_default();
        let done = proto::ApplyRecord::from(&completion.record);
        record.steps.extend(done.steps);
        record.directories.extend(done.directories);
        response.differing_files.extend(completion.differs.iter().map(ToString::to_string));
        response.unchanged.extend(completion.unchanged.iter().map(ToString::to_string));
        response.uncaptured.extend(completion.uncaptured.iter().map(proto::Uncaptured::from));
    }
    response
}

fn submit(host: &Host, peer: Option<Peer>, request: proto::SubmitRequest) -> Result<proto::ChangeDetails, Failure> {
    let intent = request.intent.into_option().ok_or_else(|| BadMessage::new("intent", "it is missing"))?;
    let schema = match &intent.intent {
        Some(proto::oneof::intent::Intent::CallTool(call)) => call.schema_json.as_deref(),
        _ => None,
    };
    let schema = schema.map(|text| value("intent.call_tool.schema_json", text)).transpose()?;
    let intent = Intent::try_from(intent)?;
    let performer =
        if request.performer == proto::Performer::PERFORMER_AGENT { Performer::Agent } else { Performer::Gate };
    let mut origin = super::origin(request.origin.into_option());
    let folders = host.authorize_origin(peer, &mut origin)?;
    if let (Some(session), None) = (&origin.session, &origin.turn) {
        // Hooks need not know the current turn.
        origin.turn = host.gate.read(|history| history.session(session))?.and_then(|record| record.turn);
    }
    host.refresh()?;
    let submission = Submission {
        performer,
        deadline: request.deadline_ms.or_else(|| host.deadline()),
        schema,
        ask_mode: Host::ask_mode(request.ask_mode == proto::AskMode::ASK_MODE_ALWAYS),
        folders,
        ..Submission::new(intent, origin)
    };
    submitted(host, host.gate.submit(submission, now())?, view_of(request.view))
}
