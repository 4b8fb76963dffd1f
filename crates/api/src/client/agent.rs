//! Sessions of the built-in agent: start, invocations with their events, answers to its requests, todo lists and settings.

use super::Client;
use super::call::ResponseStream;
use super::error::{CallFailure, ClientError};
use super::responses::required;
use super::retry::{Backoff, RetryBudget};
use super::watch::next_message;
use crate::proto;
use crate::proto::__buffa::view;
use crate::proto::oneof::attach_response::Kind as AttachKind;
use crate::proto::oneof::invoke_response::Kind as InvokeKind;

/// Part of a client in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentRole {
    /// Shows events and answers the agent's requests to surfaces.
    Answers,
    /// Shows events only.
    Follows,
}

impl AgentRole {
    fn follows_only(self) -> bool {
        self == Self::Follows
    }
}

/// The origin of a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionSource {
    New,
    /// Id of a session, or the start or end of it.
    Resume(String),
    /// The conversation of a recorded request.
    Request(u64),
}

/// The events of one invocation: each once, in order. If the connection breaks, the stream goes on where it was.
#[derive(Debug)]
pub struct Invocation {
    client: Client,
    session: String,
    role: AgentRole,
    /// Number of the last event.
    after: u64,
    backoff: Backoff,
    stream: InvocationStream,
}

#[derive(Debug)]
enum InvocationStream {
    Invoked(Box<ResponseStream<view::InvokeResponseView<'static>>>),
    Attached(Box<ResponseStream<view::AttachResponseView<'static>>>),
    /// The connection broke.
    Lost,
    Ended,
}

impl Client {
    /// Starts or resumes a session of the built-in agent.
    pub async fn start_agent_session(
        &self,
        source: SessionSource,
        settings: proto::SessionSettingsPatch,
        branch_task: Option<String>,
    ) -> Result<proto::AgentSession, ClientError> {
        use proto::agent_service_start_session_request::FromRequest;
        let source = match source {
            SessionSource::New => None,
            SessionSource::Resume(session) => {
                Some(proto::oneof::agent_service_start_session_request::Source::Resume(session))
            }
            SessionSource::Request(request) => FromRequest { request, ..Default::default() }.into(),
        };
        let request = proto::AgentServiceStartSessionRequest {
            source,
            settings: settings.into(),
            branch_task,
            ..Default::default()
        };
        let spec = proto::AGENT_SERVICE_START_SESSION_SPEC;
        let response = self.call::<_, view::AgentServiceStartSessionResponseView<'static>, _>(spec, request).await?;
        required::<proto::AgentSession>(response.session, "session")
    }

    /// Lists sessions of the built-in agent, newest first. A limit of 0 is the engine's default of 100.
    pub async fn list_agent_sessions(&self, limit: u32) -> Result<Vec<proto::AgentSession>, ClientError> {
        let request = proto::AgentServiceListSessionsRequest { limit, ..Default::default() };
        let spec = proto::AGENT_SERVICE_LIST_SESSIONS_SPEC;
        let response = self.call::<_, view::AgentServiceListSessionsResponseView<'static>, _>(spec, request).await?;
        Ok(response.sessions)
    }

    /// Removes the history of a session.
    pub async fn clear_agent_session(&self, session: &str) -> Result<(), ClientError> {
        let request = proto::ClearSessionRequest { session: session.to_owned(), ..Default::default() };
        let spec = proto::AGENT_SERVICE_CLEAR_SESSION_SPEC;
        self.call::<_, view::ClearSessionResponseView<'static>, _>(spec, request).await.map(drop)
    }

    /// Lists scenarios, and the problems of their files.
    pub async fn list_scenarios(&self) -> Result<(Vec<proto::Scenario>, Vec<String>), ClientError> {
        let spec = proto::AGENT_SERVICE_LIST_SCENARIOS_SPEC;
        let request = proto::ListScenariosRequest::default();
        let response = self.call::<_, view::ListScenariosResponseView<'static>, _>(spec, request).await?;
        Ok((response.scenarios, response.problems))
    }

    /// Sends a prompt. It is sent once: a lost connection is continued by attaching.
    pub async fn invoke(&self, request: proto::InvokeRequest, role: AgentRole) -> Result<Invocation, ClientError> {
        let session = request.session.clone();
        // The position before the prompt, from which a lost stream is continued.
        let sessions = self.list_agent_sessions(1_000).await?;
        let after = sessions.iter().find(|known| known.session == session).map_or(0, |known| known.last_event);
        let request = proto::InvokeRequest { follows_only: role.follows_only(), ..request };
        let opened = self.stream(proto::AGENT_SERVICE_INVOKE_SPEC, request).await;
        let stream = match opened {
            Ok(stream) => InvocationStream::Invoked(Box::new(stream)),
            Err(CallFailure::Remote(error)) => return Err(error),
            Err(CallFailure::NotSent(cause) | CallFailure::ConnectionLost(cause)) => {
                return Err(ClientError::Unreachable { cause, side_effect: super::error::SideEffect::Unknown });
            }
        };
        let backoff = Backoff::new(self.retry_budget);
        Ok(Invocation { client: self.clone(), session, role, after, backoff, stream })
    }

    /// Follows the events of a session after a number; 0 starts with the running or last invocation.
    pub fn attach_agent(&self, session: &str, after: u64, role: AgentRole, budget: RetryBudget) -> Invocation {
        Invocation {
            client: self.clone(),
            session: session.to_owned(),
            role,
            after,
            backoff: Backoff::new(budget),
            stream: InvocationStream::Lost,
        }
    }

    /// Interrupts the running invocation. Returns `false` if none ran.
    pub async fn interrupt_agent(&self, session: &str) -> Result<bool, ClientError> {
        let request = proto::InterruptRequest { session: session.to_owned(), clear_queue: true, ..Default::default() };
        let spec = proto::AGENT_SERVICE_INTERRUPT_SPEC;
        let response = self.call::<_, view::InterruptResponseView<'static>, _>(spec, request).await?;
        Ok(response.interrupted)
    }

    /// Answers a request of the agent.
    pub async fn submit_client_event(
        &self,
        session: &str,
        event: proto::ClientEvent,
    ) -> Result<proto::submit_client_event_response::Status, ClientError> {
        let request =
            proto::SubmitClientEventRequest { session: session.to_owned(), event: event.into(), ..Default::default() };
        let spec = proto::AGENT_SERVICE_SUBMIT_CLIENT_EVENT_SPEC;
        let response = self.call::<_, view::SubmitClientEventResponseView<'static>, _>(spec, request).await?;
        Ok(response.status.as_known().unwrap_or_default())
    }

    /// Returns the todo list of a session.
    pub async fn agent_todos(&self, session: &str) -> Result<Vec<proto::Todo>, ClientError> {
        let request = proto::GetTodosRequest { session: session.to_owned(), ..Default::default() };
        let spec = proto::AGENT_SERVICE_GET_TODOS_SPEC;
        Ok(self.call::<_, view::GetTodosResponseView<'static>, _>(spec, request).await?.todos)
    }

    /// Writes the todo list of a session, and returns it.
    pub async fn write_agent_todos(&self, request: proto::WriteTodosRequest) -> Result<Vec<proto::Todo>, ClientError> {
        let spec = proto::AGENT_SERVICE_WRITE_TODOS_SPEC;
        Ok(self.call::<_, view::WriteTodosResponseView<'static>, _>(spec, request).await?.todos)
    }

    /// Returns the settings of a session, or those of new sessions, with the values that can be chosen.
    pub async fn agent_settings(&self, session: Option<&str>) -> Result<proto::GetSettingsResponse, ClientError> {
        let request = proto::GetSettingsRequest { session: session.map(str::to_owned), ..Default::default() };
        let spec = proto::AGENT_SERVICE_GET_SETTINGS_SPEC;
        self.call::<_, view::GetSettingsResponseView<'static>, _>(spec, request).await
    }

    /// Changes the settings of a session, or those of new sessions.
    pub async fn set_agent_settings(
        &self,
        session: Option<&str>,
        settings: proto::SessionSettingsPatch,
    ) -> Result<proto::SessionSettings, ClientError> {
        let session = session.map(str::to_owned);
        let request = proto::SetSettingsRequest { session, settings: settings.into(), ..Default::default() };
        let spec = proto::AGENT_SERVICE_SET_SETTINGS_SPEC;
        let response = self.call::<_, view::SetSettingsResponseView<'static>, _>(spec, request).await?;
        required::<proto::SessionSettings>(response.settings, "settings")
    }
}

impl Invocation {
    /// Number of the last event returned.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Returns the next event; `None` at the end of the invocation. Cancel-safe: dropping the future loses no event.
    pub async fn next(&mut self) -> Result<Option<proto::InvokeEvent>, ClientError> {
        loop {
            let event = match self.receive().await {
                Ok(event) => event,
                Err(CallFailure::Remote(error)) => return Err(error),
                Err(CallFailure::NotSent(cause) | CallFailure::ConnectionLost(cause)) => {
                    if matches!(self.stream, InvocationStream::Ended) {
                        return Ok(None);
                    }
                    self.stream = InvocationStream::Lost;
                    self.backoff.wait(cause).await?;
                    continue;
                }
            };
            if let Some(event) = event
                && event.number > self.after
            {
                self.after = event.number;
                return Ok(Some(event));
            }
        }
    }

    /// Receives a message. `None` is a keep-alive.
    async fn receive(&mut self) -> Result<Option<proto::InvokeEvent>, CallFailure> {
        if matches!(self.stream, InvocationStream::Lost) {
            let request = proto::AttachRequest {
                session: self.session.clone(),
                after: self.after,
                follows_only: self.role.follows_only(),
                ..Default::default()
            };
            let stream = self.client.stream(proto::AGENT_SERVICE_ATTACH_SPEC, request).await?;
            self.stream = InvocationStream::Attached(Box::new(stream));
        }
        let event = match &mut self.stream {
            InvocationStream::Invoked(stream) => {
                let message = tokio::time::timeout(super::watch::STREAM_TIMEOUT, stream.message()).await;
                match message {
                    Err(_) => return Err(CallFailure::NotSent("the stream timed out".to_owned())),
                    Ok(Err(error)) => return Err(CallFailure::of_stream(error)),
                    Ok(Ok(None)) => {
                        self.stream = InvocationStream::Ended;
                        return Err(CallFailure::NotSent("the invocation ended".to_owned()));
                    }
                    Ok(Ok(Some(message))) => match message.to_owned_message().kind {
                        Some(InvokeKind::Event(event)) => Some(*event),
                        Some(InvokeKind::Heartbeat(_)) | None => None,
                    },
                }
            }
            InvocationStream::Attached(stream) => match next_message(stream).await?.kind {
                Some(AttachKind::Event(event)) => Some(*event),
                Some(AttachKind::Reset(_)) => {
                    // Numbers start again after a restart of the engine.
                    self.after = 0;
                    None
                }
                Some(AttachKind::Heartbeat(_)) | None => None,
            },
            InvocationStream::Lost | InvocationStream::Ended => {
                return Err(CallFailure::NotSent("the invocation ended".to_owned()));
            }
        };
        self.backoff.reset();
        Ok(event)
    }
}
