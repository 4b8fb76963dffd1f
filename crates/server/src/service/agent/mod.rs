//! `AgentService`: the built-in agent. For persons only.

mod answer;
mod event;
mod session;
mod settings;
mod stream;

use std::sync::Arc;

use connectrpc::{RequestContext, Response, ServiceRequest, ServiceResult, ServiceStream};
use futures::stream as futures_stream;
use sayso_agent::ClearQueue;
use sayso_api::convert::BadMessage;
use sayso_api::proto;

use crate::agent_sessions::{self, LiveSession};
use crate::failure::Failure;
use crate::host::{Host, run_as_person};

pub(crate) use event::live_event;

#[derive(Clone, Debug)]
pub(crate) struct AgentCalls(pub(crate) Arc<Host>);

impl AgentCalls {
    /// Returns a session after checking that the caller is a person.
    async fn open(
        &self,
        context: &RequestContext,
        session: String,
    ) -> Result<Arc<LiveSession>, connectrpc::ConnectError> {
        let host = Arc::clone(&self.0);
        run_as_person(&self.0, context, move |_| agent_sessions::open(&host, &session)).await
    }
}

/// Returns the agent of a session.
fn agent(live: &LiveSession) -> Result<&sayso_agent::AgentSession, Failure> {
    live.agent().ok_or_else(|| agent_sessions::no_session(&live.id))
}

impl proto::AgentService for AgentCalls {
    async fn start_session(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::AgentServiceStartSessionRequest>,
    ) -> ServiceResult<proto::AgentServiceStartSessionResponse> {
        let (request, host) = (request.to_owned_message(), Arc::clone(&self.0));
        let session = run_as_person(&self.0, &context, move |_| session::start(&host, request)).await?;
        Response::ok(proto::AgentServiceStartSessionResponse { session: session.into(), ..Default::default() })
    }

    async fn clear_session(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ClearSessionRequest>,
    ) -> ServiceResult<proto::ClearSessionResponse> {
        let (session, host) = (request.to_owned_message().session, Arc::clone(&self.0));
        run_as_person(&self.0, &context, move |_| {
            let session = session::resolve(&host, &session)?;
            agent_sessions::clear(&host, &session)
        })
        .await?;
        Response::ok(proto::ClearSessionResponse::default())
    }

    async fn list_sessions(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::AgentServiceListSessionsRequest>,
    ) -> ServiceResult<proto::AgentServiceListSessionsResponse> {
        let limit = request.to_owned_message().limit;
        let sessions = run_as_person(&self.0, &context, move |host| session::list(host, limit)).await?;
        Response::ok(proto::AgentServiceListSessionsResponse { sessions, ..Default::default() })
    }

    async fn list_scenarios(
        &self,
        context: RequestContext,
        _: ServiceRequest<'_, proto::ListScenariosRequest>,
    ) -> ServiceResult<proto::ListScenariosResponse> {
        Response::ok(run_as_person(&self.0, &context, |host| Ok(settings::scenarios(host))).await?)
    }

    async fn invoke(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::InvokeRequest>,
    ) -> ServiceResult<ServiceStream<proto::InvokeResponse>> {
        let request = request.to_owned_message();
        let live = self.open(&context, request.session.clone()).await?;
        let stream = stream::InvokeStream::start(Arc::clone(&self.0), live, request)?;
        Response::stream_ok(futures_stream::unfold(stream, stream::InvokeStream::next))
    }

    async fn attach(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::AttachRequest>,
    ) -> ServiceResult<ServiceStream<proto::AttachResponse>> {
        let request = request.to_owned_message();
        let live = self.open(&context, request.session.clone()).await?;
        let stream = stream::AttachStream::new(Arc::clone(&self.0), live, &request);
        Response::stream_ok(futures_stream::unfold(stream, stream::AttachStream::next))
    }

    async fn interrupt(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::InterruptRequest>,
    ) -> ServiceResult<proto::InterruptResponse> {
        let request = request.to_owned_message();
        let live = self.open(&context, request.session).await?;
        let clear = if request.clear_queue { ClearQueue::Yes } else { ClearQueue::No };
        let interrupted = agent(&live)?.interrupt(clear);
        Response::ok(proto::InterruptResponse { interrupted, ..Default::default() })
    }

    async fn submit_client_event(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::SubmitClientEventRequest>,
    ) -> ServiceResult<proto::SubmitClientEventResponse> {
        let request = request.to_owned_message();
        let live = self.open(&context, request.session).await?;
        let event = request.event.into_option().and_then(|event| event.event);
        let event = event.ok_or_else(|| Failure::from(BadMessage::new("event", "no member is set")))?;
        let status = answer::submit(&live, event)?;
        Response::ok(proto::SubmitClientEventResponse { status: status.into(), ..Default::default() })
    }

    async fn get_todos(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::GetTodosRequest>,
    ) -> ServiceResult<proto::GetTodosResponse> {
        let live = self.open(&context, request.to_owned_message().session).await?;
        let todos = agent(&live)?.todos().iter().map(event::todo).collect();
        Response::ok(proto::GetTodosResponse { todos, ..Default::default() })
    }

    async fn write_todos(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::WriteTodosRequest>,
    ) -> ServiceResult<proto::WriteTodosResponse> {
        let request = request.to_owned_message();
        let live = self.open(&context, request.session.clone()).await?;
        let todos = crate::host::blocking(&self.0, move |_| session::write_todos(&live, request)).await?;
        Response::ok(proto::WriteTodosResponse { todos, ..Default::default() })
    }

    async fn get_settings(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::GetSettingsRequest>,
    ) -> ServiceResult<proto::GetSettingsResponse> {
        let (session, host) = (request.to_owned_message().session, Arc::clone(&self.0));
        Response::ok(run_as_person(&self.0, &context, move |_| settings::get(&host, session)).await?)
    }

    async fn set_settings(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::SetSettingsRequest>,
    ) -> ServiceResult<proto::SetSettingsResponse> {
        let (request, host) = (request.to_owned_message(), Arc::clone(&self.0));
        let settings = run_as_person(&self.0, &context, move |_| settings::set(&host, request)).await?;
        Response::ok(proto::SetSettingsResponse { settings: settings.into(), ..Default::default() })
    }
}
