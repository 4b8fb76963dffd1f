//! What an entrance needs: whatever speaks for an agent.

use std::sync::Arc;

use connectrpc::{ConnectError, RequestContext, Response, ServiceRequest, ServiceResult, ServiceStream};
use futures::stream;
use sayso_api::convert::BadMessage;
use sayso_api::proto::capture_response::kept::When;
use sayso_api::proto::{self, PreviewView};
use sayso_gate::{CallBasis, Client, Finished, Kept, Reply, Report, Submission, Unread};
use sayso_review::{Command, ErrorKind, Intent, Origin, Performer, Tier};
use serde_json::Value;

use super::review::submitted;
use super::stream::Waiting;
use super::view_of;
use crate::caller::Peer;
use crate::failure::Failure;
use crate::host::{Host, blocking, now};
use crate::progress::{self, Shown};

/// Recorded of a command that the agent's own shell ran.
const IN_PLACE: &str = "ran in the agent's own shell, without marks";

/// The service.
#[derive(Clone, Debug)]
pub(crate) struct Intents(pub(crate) Arc<Host>);

impl Intents {
    /// Carries out what is about a session, for whoever has it.
    async fn command(
        &self,
        context: &RequestContext,
        session: Option<String>,
        command: Command,
    ) -> Result<Reply, ConnectError> {
        let peer = Peer::of(context);
        blocking(&self.0, move |host| {
            if let Some(session) = session {
                host.own_session(peer, &session)?;
            }
            Ok(host.gate.command(Client::Person, command, now())?)
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
        let progress = blocking(&self.0, move |host| {
            let mut progress = submit(host, peer, request)?;
            super::withhold(host, peer, &mut progress);
            Ok(progress)
        })
        .await?;
        Response::ok(proto::SubmitResponse { progress: progress.into(), ..Default::default() })
    }

    async fn r#await(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::AwaitRequest>,
    ) -> ServiceResult<ServiceStream<proto::AwaitResponse>> {
        let request = request.to_owned_message();
        // Followed from now on, before it is looked at for the first time.
        let subscription = self.0.gate.subscribe(self.0.gate.last_event());
        let awaiting = self.0.awaiting(request.change);
        let waiting = Waiting::new(Arc::clone(&self.0), Peer::of(&context), request, subscription, awaiting);
        Ok(Response::stream(stream::unfold(waiting, Waiting::next)))
    }

    async fn withdraw(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::WithdrawRequest>,
    ) -> ServiceResult<proto::WithdrawResponse> {
        let (change, peer) = (request.change, Peer::of(&context));
        let progress = blocking(&self.0, move |host| {
            host.own_change(peer, change)?;
            // A review is the person's, not the agent's.
            if host.gate.read(|history| history.change(change))?.is_review() {
                Peer::person(peer, &host.notes)?;
            }
            host.gate.command(Client::Person, Command::Withdraw { change }, now())?;
            let view = PreviewView::Unspecified;
            let mut progress = host.gate.read(|history| progress::of(history, change, view, Shown::Proposed))?;
            super::withhold(host, peer, &mut progress);
            Ok(progress)
        });
        Response::ok(proto::WithdrawResponse { progress: progress.await?.into(), ..Default::default() })
    }

    async fn capture(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::CaptureRequest>,
    ) -> ServiceResult<proto::CaptureResponse> {
        let request = request.to_owned_message();
        let arguments = value("arguments_json", &request.arguments_json).map_err(Failure::from)?;
        let tier = Tier::try_from(request.tier.as_known().unwrap_or_default()).map_err(Failure::from)?;
        let (session, call, tool) = (request.session, request.call, request.tool);
        let command = Command::Capture { tier, session: session.clone(), call, tool, arguments };
        let Reply::Captured(capture) = self.command(&context, session, command).await? else {
            return Err(super::unexpected().into());
        };
        let files = capture.files.iter().map(|(path, kept)| {
            let (when, snapshot) = match kept {
                Kept::Now(id) => (When::WHEN_NOW, Some(*id)),
                Kept::Earlier(id) => (When::WHEN_EARLIER, Some(*id)),
                Kept::Late(id) => (When::WHEN_LATE, Some(*id)),
                Kept::AfterTheOther => (When::WHEN_AFTER_THE_OTHER, None),
            };
            proto::capture_response::Kept { path: path.to_string(), when: when.into(), snapshot, ..Default::default() }
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
            host.own_change(peer, change)?;
            let folders = Peer::run(peer, &host.notes).map(|run| run.folders).unwrap_or_default();
            let order = host.gate.call_order(change, &folders)?;
            let id = host.calls.write(&order).map_err(|error| {
                Failure::new(ErrorKind::Unavailable, format!("cannot write the order of change {change}: {error}"))
                    .hint("look at the disk's free space")
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
            host.own(peer, &mut origin)?;
            let command = Command::StartSession { session, agent: origin.agent, location, parent };
            Ok(host.gate.command(Client::Person, command, now())?)
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
            host.own_session(peer, &session)?;
            // Whatever it was at, it is no longer.
            host.gate.finish_all(Some(&session), None, Report::Missing, now())?;
            Ok(host.gate.command(Client::Person, Command::EndSession { session }, now())?)
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
        self.command(&context, Some(session.clone()), Command::StartTurn { session, turn }).await?;
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
            host.own_session(peer, &session)?;
            let current = || host.gate.read(|history| history.session(&session)).map(|record| record?.turn);
            let Some(turn) = (match turn {
                Some(turn) => Some(turn),
                None => current()?,
            }) else {
                return Ok(None);
            };
            // Some agents do not say of everything that it is over.
            host.gate.finish_all(Some(&session), None, Report::Missing, now())?;
            match host.gate.command(Client::Person, Command::EndTurn { session, turn }, now())? {
                Reply::TurnEnded(review) => Ok(review.map(|review| review.change)),
                _ => Err(super::unexpected()),
            }
        });
        Response::ok(proto::EndTurnResponse { review: review.await?, ..Default::default() })
    }

    async fn take_messages(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::TakeMessagesRequest>,
    ) -> ServiceResult<proto::TakeMessagesResponse> {
        let session = request.to_owned_message().session;
        let command = Command::TakeMessages { session: session.clone() };
        let Reply::Messages(messages) = self.command(&context, Some(session), command).await? else {
            return Err(super::unexpected().into());
        };
        Response::ok(proto::TakeMessagesResponse { messages, ..Default::default() })
    }

    async fn list_messages(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ListMessagesRequest>,
    ) -> ServiceResult<proto::ListMessagesResponse> {
        let session = request.to_owned_message().session;
        let command = Command::ListMessages { session: session.clone() };
        let Reply::Unread(unread) = self.command(&context, Some(session), command).await? else {
            return Err(super::unexpected().into());
        };
        let message = |unread: Unread| proto::list_messages_response::AgentMessage {
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
        let command = Command::AcknowledgeMessages { session: session.clone(), numbers };
        self.command(&context, Some(session), command).await?;
        Response::ok(proto::AcknowledgeMessagesResponse::default())
    }
}

fn value(field: &str, text: &str) -> Result<Value, BadMessage> {
    serde_json::from_str(text).map_err(|error| BadMessage::new(field, format!("it is not JSON: {error}")))
}

fn finish(host: &Host, peer: Option<Peer>, request: &proto::FinishRequest) -> Result<proto::FinishResponse, Failure> {
    let ended = if request.change == 0 {
        if let Some(session) = &request.session {
            host.own_session(peer, session)?;
        }
        let call =
            request.call.as_deref().ok_or_else(|| BadMessage::new("change", "neither it nor `call` is there"))?;
        let called = request.order.as_deref().and_then(|order| host.calls.take_report(order));
        let report = match (&called, request.failed.as_deref()) {
            (Some(called), _) => Report::RanCommand { code: called.code, note: called.stopped.as_deref() },
            (None, _) if request.in_place => Report::RanCommand { code: None, note: Some(IN_PLACE) },
            (None, None) => Report::Ran,
            (None, Some(error)) => Report::Failed(error),
        };
        host.gate.finish_all(request.session.as_deref(), Some(call), report, now())?
    } else {
        host.own_change(peer, request.change)?;
        if let Some(reason) = &request.not_started {
            return Ok(finished(&[host.gate.not_started(request.change, reason, now())?]));
        }
        let command = Command::Finish { change: request.change, code: request.code };
        match host.gate.command(Client::Person, command, now())? {
            Reply::Finished(one) => vec![one],
            _ => return Err(super::unexpected()),
        }
    };
    Ok(finished(&ended))
}

/// What all of it did.
fn finished(ended: &[Finished]) -> proto::FinishResponse {
    let mut response = proto::FinishResponse::default();
    response.record.get_or_insert_default();
    for one in ended {
        let record = response.record.get_or_insert_default();
        let done = proto::ApplyRecord::from(&one.record);
        record.steps.extend(done.steps);
        record.directories.extend(done.directories);
        response.differs.extend(one.differs.iter().map(ToString::to_string));
        response.unchanged.extend(one.unchanged.iter().map(ToString::to_string));
        response.uncaptured.extend(one.uncaptured.iter().map(proto::Uncaptured::from));
    }
    response
}

fn submit(host: &Host, peer: Option<Peer>, request: proto::SubmitRequest) -> Result<proto::Progress, Failure> {
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
    let folders = host.own(peer, &mut origin)?;
    if let (Some(session), None) = (&origin.session, &origin.turn) {
        // Whoever speaks for an agent need not know in which turn it is.
        origin.turn = host.gate.read(|history| history.session(session))?.and_then(|record| record.turn);
    }
    host.refresh()?;
    let submission = Submission {
        performer,
        deadline: request.deadline_ms.or_else(|| host.deadline()),
        schema,
        asking: Host::asking(request.ask),
        folders,
        ..Submission::new(intent, origin)
    };
    submitted(host, host.gate.submit(submission, now())?, view_of(request.view))
}
