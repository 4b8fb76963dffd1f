//! Calls on behalf of an agent, for hooks and the command line.

use sayso_review::{ChangeId, Intent, Origin, Performer, Tier};
use serde_json::Value;

use super::error::{CallFailure, ClientError};
use super::responses::{ChangeDetails, Finished, PreviewDetail};
use super::retry::Backoff;
use super::watch::next_message;
use super::{AskMode, Client};
use crate::proto;
use crate::proto::__buffa::view;
use crate::proto::oneof::await_response::Kind;

/// An intent with its context.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    pub intent: Intent,
    pub origin: Origin,
    pub performer: Performer,
    /// Time at which it is denied if still pending, in milliseconds since 1970; `None` as configured.
    pub deadline: Option<i64>,
    /// JSON schema of the arguments of a tool call; `None` if unknown.
    pub schema: Option<Value>,
    pub ask_mode: AskMode,
}

/// A tool call whose files need snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub tier: Tier,
    pub session: Option<String>,
    /// Tool call id; `None` if unknown.
    pub call: Option<String>,
    pub tool: String,
    /// The engine infers the affected files from them.
    pub arguments: Value,
}

/// A session to start or resume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    pub session: String,
    pub agent: Option<String>,
    /// Working directory as the agent reports it.
    pub location: Option<String>,
    /// Parent session of a subagent.
    pub parent: Option<String>,
}

/// An order for `sayso call`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedCall {
    /// The argument of `sayso call`.
    pub id: String,
    /// `true` if a person approved the command, so that a shell runs its text.
    pub by_person: bool,
}

/// A tool call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallOver<'c> {
    pub session: &'c str,
    pub call: &'c str,
    /// The tool's error; `None` if it succeeded.
    pub tool_error: Option<&'c str>,
    /// Id of the order that `sayso call` ran.
    pub order: Option<&'c str>,
    /// `true` if the agent's own shell ran a command, without `sayso call`.
    pub in_place: bool,
}

impl<'c> CallOver<'c> {
    /// A successful call of a tool other than a command.
    pub fn new(session: &'c str, call: &'c str) -> Self {
        Self { session, call, tool_error: None, order: None, in_place: false }
    }
}

/// A message that an agent has not received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMessage {
    /// Event number, which acknowledges it.
    pub number: u64,
    /// `None` for general messages.
    pub change: Option<ChangeId>,
    /// The tool call that it answers.
    pub call: Option<String>,
    pub text: String,
}

impl Client {
    /// Submits an intent: policy decides it or leaves it pending. Not retried after a lost connection, as it may have been recorded.
    pub async fn submit(&self, submission: Submission, detail: PreviewDetail) -> Result<ChangeDetails, ClientError> {
        let Submission { intent, origin, performer, deadline, schema, ask_mode } = submission;
        let ask_mode = match ask_mode {
            AskMode::ByPolicy => proto::AskMode::Policy,
            AskMode::Always => proto::AskMode::Always,
        };
        let mut intent = proto::Intent::from(&intent);
        if let (Some(proto::oneof::intent::Intent::CallTool(call)), Some(schema)) = (&mut intent.intent, schema) {
            call.schema_json = Some(schema.to_string());
        }
        let request = proto::SubmitRequest {
            intent: Some(intent).into(),
            origin: Some((&origin).into()).into(),
            performer: proto::Performer::from(performer).into(),
            deadline_ms: deadline,
            view: proto::PreviewView::from(detail).into(),
            ask_mode: ask_mode.into(),
            ..Default::default()
        };
        let response =
            self.call::<_, view::SubmitResponseView<'static>, _>(proto::INTENT_SERVICE_SUBMIT_SPEC, request).await?;
        ChangeDetails::decode_field(response.details)
    }

    /// Waits until a change is no longer pending, across lost connections.
    pub async fn await_outcome(&self, change: ChangeId, detail: PreviewDetail) -> Result<ChangeDetails, ClientError> {
        let view = proto::PreviewView::from(detail).into();
        let request = proto::AwaitRequest { change, view, ..Default::default() };
        let mut backoff = Backoff::new(self.retry_budget);
        loop {
            match self.await_once(request.clone(), &mut backoff).await {
                Ok(details) => return ChangeDetails::decode(details),
                Err(CallFailure::Remote(error)) => return Err(error),
                Err(CallFailure::NotSent(cause) | CallFailure::ConnectionLost(cause)) => backoff.wait(cause).await?,
            }
        }
    }

    async fn await_once(
        &self,
        request: proto::AwaitRequest,
        backoff: &mut Backoff,
    ) -> Result<proto::ChangeDetails, CallFailure> {
        let mut stream =
            self.stream::<_, view::AwaitResponseView<'static>, _>(proto::INTENT_SERVICE_AWAIT_SPEC, request).await?;
        loop {
            let message = next_message(&mut stream).await?;
            backoff.reset();
            match message.kind {
                Some(Kind::Details(details)) => return Ok(*details),
                Some(Kind::Heartbeat(_)) | None => {}
            }
        }
    }

    /// Withdraws a pending intent.
    pub async fn withdraw(&self, change: ChangeId) -> Result<ChangeDetails, ClientError> {
        let request = proto::WithdrawRequest { change, ..Default::default() };
        let response = self
            .call::<_, view::WithdrawResponseView<'static>, _>(proto::INTENT_SERVICE_WITHDRAW_SPEC, request)
            .await?;
        ChangeDetails::decode_field(response.details)
    }

    /// Writes the order file with which `sayso call` runs a permitted command.
    pub async fn prepare_call(&self, change: ChangeId) -> Result<PreparedCall, ClientError> {
        let request = proto::PrepareCallRequest { change, ..Default::default() };
        let response = self
            .call::<_, view::PrepareCallResponseView<'static>, _>(proto::INTENT_SERVICE_PREPARE_CALL_SPEC, request)
            .await?;
        Ok(PreparedCall { id: response.id, by_person: response.approved_by_person })
    }

    /// Takes snapshots of files before a tool call, or records that the tool started.
    pub async fn capture(&self, call: ToolCall) -> Result<proto::CaptureResponse, ClientError> {
        let request = proto::CaptureRequest {
            tier: proto::Tier::from(call.tier).into(),
            session: call.session,
            call: call.call,
            tool: call.tool,
            arguments_json: call.arguments.to_string(),
            ..Default::default()
        };
        self.call::<_, view::CaptureResponseView<'static>, _>(proto::INTENT_SERVICE_CAPTURE_SPEC, request).await
    }

    /// Reports the end of a permitted change and returns its effect. `exit_code` is `None` if unknown.
    pub async fn finish(&self, change: ChangeId, exit_code: Option<i32>) -> Result<Finished, ClientError> {
        let request = proto::FinishRequest { change, exit_code, ..Default::default() };
        let response =
            self.call::<_, view::FinishResponseView<'static>, _>(proto::INTENT_SERVICE_FINISH_SPEC, request).await?;
        Finished::decode(response)
    }

    /// Reports that a permitted command did not start. The change is recorded as failed, unless files changed.
    pub async fn not_started(&self, change: ChangeId, reason: &str) -> Result<Finished, ClientError> {
        let request = proto::FinishRequest { change, start_error: Some(reason.to_owned()), ..Default::default() };
        let response =
            self.call::<_, view::FinishResponseView<'static>, _>(proto::INTENT_SERVICE_FINISH_SPEC, request).await?;
        Finished::decode(response)
    }

    /// Reports the end of a tool call and returns the effect of its permitted changes.
    pub async fn finish_call(&self, over: CallOver<'_>) -> Result<Finished, ClientError> {
        let request = proto::FinishRequest {
            session: Some(over.session.to_owned()),
            call: Some(over.call.to_owned()),
            tool_error: over.tool_error.map(str::to_owned),
            order: over.order.map(str::to_owned),
            in_place: over.in_place,
            ..Default::default()
        };
        let response =
            self.call::<_, view::FinishResponseView<'static>, _>(proto::INTENT_SERVICE_FINISH_SPEC, request).await?;
        Finished::decode(response)
    }

    /// Starts or resumes a session.
    pub async fn start_session(&self, new: NewSession) -> Result<(), ClientError> {
        let NewSession { session, agent, location, parent } = new;
        let request = proto::StartSessionRequest { session, agent, location, parent, ..Default::default() };
        self.call::<_, view::StartSessionResponseView<'static>, _>(proto::INTENT_SERVICE_START_SESSION_SPEC, request)
            .await?;
        Ok(())
    }

    /// Ends a session and withdraws its pending changes.
    pub async fn end_session(&self, session: &str) -> Result<(), ClientError> {
        let request = proto::EndSessionRequest { session: session.to_owned(), ..Default::default() };
        self.call::<_, view::EndSessionResponseView<'static>, _>(proto::INTENT_SERVICE_END_SESSION_SPEC, request)
            .await?;
        Ok(())
    }

    pub async fn start_turn(&self, session: &str, turn: &str) -> Result<(), ClientError> {
        let (session, turn) = (session.to_owned(), turn.to_owned());
        let request = proto::StartTurnRequest { session, turn, ..Default::default() };
        self.call::<_, view::StartTurnResponseView<'static>, _>(proto::INTENT_SERVICE_START_TURN_SPEC, request).await?;
        Ok(())
    }

    /// Ends a turn; `None` is the current one. Returns the pending review of changes applied under `later` rules, if any.
    pub async fn end_turn(&self, session: &str, turn: Option<&str>) -> Result<Option<ChangeId>, ClientError> {
        let (session, turn) = (session.to_owned(), turn.map(str::to_owned));
        let request = proto::EndTurnRequest { session, turn, ..Default::default() };
        let response =
            self.call::<_, view::EndTurnResponseView<'static>, _>(proto::INTENT_SERVICE_END_TURN_SPEC, request).await?;
        Ok(response.review)
    }

    /// Returns the queued messages of an agent and marks them as delivered.
    pub async fn take_messages(&self, session: &str) -> Result<Vec<String>, ClientError> {
        let request = proto::TakeMessagesRequest { session: session.to_owned(), ..Default::default() };
        let response = self
            .call::<_, view::TakeMessagesResponseView<'static>, _>(proto::INTENT_SERVICE_TAKE_MESSAGES_SPEC, request)
            .await?;
        Ok(response.messages)
    }

    /// Lists the undelivered messages of an agent, oldest first.
    pub async fn list_messages(&self, session: &str) -> Result<Vec<AgentMessage>, ClientError> {
        let request = proto::ListMessagesRequest { session: session.to_owned(), ..Default::default() };
        let response = self
            .call::<_, view::ListMessagesResponseView<'static>, _>(proto::INTENT_SERVICE_LIST_MESSAGES_SPEC, request)
            .await?;
        let message = |message: proto::list_messages_response::AgentMessage| AgentMessage {
            number: message.number,
            change: message.change,
            call: message.call,
            text: message.text,
        };
        Ok(response.messages.into_iter().map(message).collect())
    }

    /// Marks messages as delivered.
    pub async fn acknowledge_messages(&self, session: &str, numbers: Vec<u64>) -> Result<(), ClientError> {
        let session = session.to_owned();
        let request = proto::AcknowledgeMessagesRequest { session, numbers, ..Default::default() };
        let spec = proto::INTENT_SERVICE_ACKNOWLEDGE_MESSAGES_SPEC;
        self.call::<_, view::AcknowledgeMessagesResponseView<'static>, _>(spec, request).await?;
        Ok(())
    }
}
