//! What an entrance needs: whatever speaks for an agent.

use sayso_review::{ChangeId, Intent, Origin, Performer, Tier};
use serde_json::Value;

use super::answers::{Finished, Progress, View};
use super::error::{ClientError, Ended};
use super::patience::Backoff;
use super::watch::SILENCE;
use super::{Client, Consent};
use crate::proto;
use crate::proto::__buffa::view;
use crate::proto::oneof::await_response::Kind;

/// An intent on its way to the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// What is to happen.
    pub intent: Intent,
    /// Where it comes from.
    pub origin: Origin,
    /// Who carries it out.
    pub performer: Performer,
    /// When it is denied if nobody has decided, in milliseconds since 1970; as configured, if not said.
    pub deadline: Option<i64>,
    /// The JSON schema of the called tool's arguments, if it is known.
    pub schema: Option<Value>,
    /// Who may let it through.
    pub consent: Consent,
}

/// A call of a tool, before it changes files.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Where in the call's life this is.
    pub tier: Tier,
    /// The session.
    pub session: Option<String>,
    /// The call's id, if it is known.
    pub call: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// Its arguments, which say what files it is about.
    pub arguments: Value,
}

/// A conversation that begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub session: String,
    /// The agent's name.
    pub agent: Option<String>,
    /// Where it works, as it says.
    pub location: Option<String>,
    /// The session that it is a part of, if it is a subagent's.
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

/// A tool call that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallOver<'c> {
    /// The session.
    pub session: &'c str,
    /// The call's id.
    pub call: &'c str,
    /// The error of the tool, if it failed.
    pub failed: Option<&'c str>,
    /// The order that `sayso call` carried out.
    pub order: Option<&'c str>,
    /// `true` if the agent's own shell ran a command.
    pub in_place: bool,
}

impl<'c> CallOver<'c> {
    /// A call of a tool that ran to its end.
    pub fn new(session: &'c str, call: &'c str) -> Self {
        Self { session, call, failed: None, order: None, in_place: false }
    }
}

/// A message that an agent has not received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMessage {
    /// The number of its event, by which it is acknowledged.
    pub number: u64,
    /// The change that it is about.
    pub change: Option<ChangeId>,
    /// The tool call that it answers.
    pub call: Option<String>,
    /// What to say.
    pub text: String,
}

impl Client {
    /// Hands an intent over: policy decides, or it waits. A call that was cut may have been recorded, and is not made again.
    pub async fn submit(&self, submission: Submission, view: View) -> Result<Progress, ClientError> {
        let Submission { intent, origin, performer, deadline, schema, consent } = submission;
        let mut intent = proto::Intent::from(&intent);
        if let (Some(proto::oneof::intent::Intent::CallTool(call)), Some(schema)) = (&mut intent.intent, schema) {
            call.schema_json = Some(schema.to_string());
        }
        let request = proto::SubmitRequest {
            intent: Some(intent).into(),
            origin: Some((&origin).into()).into(),
            performer: proto::Performer::from(performer).into(),
            deadline_ms: deadline,
            view: proto::PreviewView::from(view).into(),
            ask: consent == Consent::Person,
            ..Default::default()
        };
        let answer =
            self.call::<_, view::SubmitResponseView<'static>, _>(proto::INTENT_SERVICE_SUBMIT_SPEC, request).await?;
        Progress::of(answer.progress)
    }

    /// Waits until a change no longer waits for a verdict, over as many connections as it takes.
    pub async fn await_outcome(&self, change: ChangeId, view: View) -> Result<Progress, ClientError> {
        let view = proto::PreviewView::from(view).into();
        let request = proto::AwaitRequest { change, view, ..Default::default() };
        let mut backoff = Backoff::new(self.patience);
        loop {
            match self.await_once(request.clone(), &mut backoff).await {
                Ok(progress) => return Progress::read(progress),
                Err(Ended::Answered(error)) => return Err(error),
                Err(Ended::Unsent(why) | Ended::Cut(why)) => backoff.again(why).await?,
            }
        }
    }

    async fn await_once(&self, request: proto::AwaitRequest, backoff: &mut Backoff) -> Result<proto::Progress, Ended> {
        let mut stream =
            self.stream::<_, view::AwaitResponseView<'static>, _>(proto::INTENT_SERVICE_AWAIT_SPEC, request).await?;
        loop {
            let message = match tokio::time::timeout(SILENCE, stream.message()).await {
                Err(_) => return Err(Ended::Unsent("it has fallen silent".to_owned())),
                Ok(Err(error)) => return Err(Ended::of_stream(error)),
                Ok(Ok(None)) => return Err(Ended::Unsent("the engine has stopped".to_owned())),
                Ok(Ok(Some(message))) => message.to_owned_message(),
            };
            backoff.reset();
            match message.kind {
                Some(Kind::Progress(progress)) => return Ok(*progress),
                Some(Kind::Heartbeat(_)) | None => {}
            }
        }
    }

    /// Withdraws an intent that waits.
    pub async fn withdraw(&self, change: ChangeId) -> Result<Progress, ClientError> {
        let request = proto::WithdrawRequest { change, ..Default::default() };
        let answer = self
            .call::<_, view::WithdrawResponseView<'static>, _>(proto::INTENT_SERVICE_WITHDRAW_SPEC, request)
            .await?;
        Progress::of(answer.progress)
    }

    /// Has the engine write the order for `sayso call`, which carries out a permitted command.
    pub async fn prepare_call(&self, change: ChangeId) -> Result<PreparedCall, ClientError> {
        let request = proto::PrepareCallRequest { change, ..Default::default() };
        let answer = self
            .call::<_, view::PrepareCallResponseView<'static>, _>(proto::INTENT_SERVICE_PREPARE_CALL_SPEC, request)
            .await?;
        Ok(PreparedCall { id: answer.id, by_person: answer.approved_by_person })
    }

    /// Keeps what files are before a tool call changes them, or says that the tool started.
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

    /// Says that something which was permitted has been done, and finds what it did.
    pub async fn finish(&self, change: ChangeId, code: Option<i32>) -> Result<Finished, ClientError> {
        let request = proto::FinishRequest { change, code, ..Default::default() };
        let answer =
            self.call::<_, view::FinishResponseView<'static>, _>(proto::INTENT_SERVICE_FINISH_SPEC, request).await?;
        Finished::read(answer)
    }

    /// Says that a command that was permitted could not be started.
    pub async fn not_started(&self, change: ChangeId, reason: &str) -> Result<Finished, ClientError> {
        let request = proto::FinishRequest { change, not_started: Some(reason.to_owned()), ..Default::default() };
        let answer =
            self.call::<_, view::FinishResponseView<'static>, _>(proto::INTENT_SERVICE_FINISH_SPEC, request).await?;
        Finished::read(answer)
    }

    /// Says that a tool call is over, and finds what it did.
    pub async fn finish_call(&self, over: CallOver<'_>) -> Result<Finished, ClientError> {
        let request = proto::FinishRequest {
            session: Some(over.session.to_owned()),
            call: Some(over.call.to_owned()),
            failed: over.failed.map(str::to_owned),
            order: over.order.map(str::to_owned),
            in_place: over.in_place,
            ..Default::default()
        };
        let answer =
            self.call::<_, view::FinishResponseView<'static>, _>(proto::INTENT_SERVICE_FINISH_SPEC, request).await?;
        Finished::read(answer)
    }

    /// Begins a session, or goes on with it.
    pub async fn start_session(&self, new: NewSession) -> Result<(), ClientError> {
        let NewSession { session, agent, location, parent } = new;
        let request = proto::StartSessionRequest { session, agent, location, parent, ..Default::default() };
        self.call::<_, view::StartSessionResponseView<'static>, _>(proto::INTENT_SERVICE_START_SESSION_SPEC, request)
            .await?;
        Ok(())
    }

    /// Ends a session: what still waits in it is withdrawn.
    pub async fn end_session(&self, session: &str) -> Result<(), ClientError> {
        let request = proto::EndSessionRequest { session: session.to_owned(), ..Default::default() };
        self.call::<_, view::EndSessionResponseView<'static>, _>(proto::INTENT_SERVICE_END_SESSION_SPEC, request)
            .await?;
        Ok(())
    }

    /// Begins a turn.
    pub async fn start_turn(&self, session: &str, turn: &str) -> Result<(), ClientError> {
        let (session, turn) = (session.to_owned(), turn.to_owned());
        let request = proto::StartTurnRequest { session, turn, ..Default::default() };
        self.call::<_, view::StartTurnResponseView<'static>, _>(proto::INTENT_SERVICE_START_TURN_SPEC, request).await?;
        Ok(())
    }

    /// Ends a turn, the one that the session is in if none is named; gives the review that waits, if something happened at once.
    pub async fn end_turn(&self, session: &str, turn: Option<&str>) -> Result<Option<ChangeId>, ClientError> {
        let (session, turn) = (session.to_owned(), turn.map(str::to_owned));
        let request = proto::EndTurnRequest { session, turn, ..Default::default() };
        let answer =
            self.call::<_, view::EndTurnResponseView<'static>, _>(proto::INTENT_SERVICE_END_TURN_SPEC, request).await?;
        Ok(answer.review)
    }

    /// What an agent is to be told besides, which counts as told from now on.
    pub async fn take_messages(&self, session: &str) -> Result<Vec<String>, ClientError> {
        let request = proto::TakeMessagesRequest { session: session.to_owned(), ..Default::default() };
        let answer = self
            .call::<_, view::TakeMessagesResponseView<'static>, _>(proto::INTENT_SERVICE_TAKE_MESSAGES_SPEC, request)
            .await?;
        Ok(answer.messages)
    }

    /// Lists the messages that an agent has not received, oldest first.
    pub async fn list_messages(&self, session: &str) -> Result<Vec<AgentMessage>, ClientError> {
        let request = proto::ListMessagesRequest { session: session.to_owned(), ..Default::default() };
        let answer = self
            .call::<_, view::ListMessagesResponseView<'static>, _>(proto::INTENT_SERVICE_LIST_MESSAGES_SPEC, request)
            .await?;
        let message = |message: proto::list_messages_response::AgentMessage| AgentMessage {
            number: message.number,
            change: message.change,
            call: message.call,
            text: message.text,
        };
        Ok(answer.messages.into_iter().map(message).collect())
    }

    /// Records that an agent has received messages.
    pub async fn acknowledge_messages(&self, session: &str, numbers: Vec<u64>) -> Result<(), ClientError> {
        let session = session.to_owned();
        let request = proto::AcknowledgeMessagesRequest { session, numbers, ..Default::default() };
        let spec = proto::INTENT_SERVICE_ACKNOWLEDGE_MESSAGES_SPEC;
        self.call::<_, view::AcknowledgeMessagesResponseView<'static>, _>(spec, request).await?;
        Ok(())
    }
}
