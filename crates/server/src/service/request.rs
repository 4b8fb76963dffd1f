//! `RequestService`: requests to models, their edits, modes and overrides. For persons only.

mod body;
mod context_window;
mod cost;
mod diff;
mod edit;
mod mask;
mod mode;
mod section;
mod show;

pub(super) use diff::{EditedText, edited_texts};

use std::sync::Arc;

use connectrpc::{ConnectError, RequestContext, Response, ServiceRequest, ServiceResult};
use sayso_api::convert::BadMessage;
use sayso_api::convert::field::enumeration;
use sayso_api::proto;
use sayso_api::proto::set_mode_response::StillHeld;
use sayso_api::request::HeldFate;
use sayso_proxy::interceptor::{ExpectedRevision, HeldAction, OneShot, ResumeError, ResumeReport};
use sayso_proxy::{AgentEndpoint, ReplayForm};
use sayso_review::{ErrorKind, RequestId, RequestMode, RequestRecord, RequestStatus};
use sayso_wire::Scope;

use crate::failure::Failure;
use crate::host::{Host, now, run_as_person};

/// Requests in a list without a limit.
const DEFAULT_LIMIT: u32 = 20;
const MAX_LIMIT: u32 = 1_000;

#[derive(Clone, Debug)]
pub(crate) struct Requests(pub(crate) Arc<Host>);

/// Builds a summary with the current state of a held request.
fn summary(host: &Host, record: &RequestRecord) -> proto::RequestSummary {
    let mut summary = proto::RequestSummary { cost: cost::cost(host, record).into(), ..record.into() };
    if let Some((edited, overrides)) = host.proxy.interceptor.edit_status(record.request) {
        (summary.held, summary.edited) = (true, edited);
        summary.overrides = (!overrides.is_empty()).then(|| proto::OverrideReport::from(&overrides)).into();
    }
    summary
}

fn scope(scope: buffa::EnumValue<proto::OverrideScope>, field: &str) -> Result<Option<Scope>, BadMessage> {
    match enumeration::<_, proto::OverrideScope>(scope, field)? {
        proto::OverrideScope::Unspecified => Ok(None),
        named => Scope::try_from(named).map(Some).map_err(|error| error.within(field)),
    }
}

fn list(host: &Host, request: &proto::ListRequestsRequest) -> Result<Vec<proto::RequestSummary>, Failure> {
    let interceptor = &host.proxy.interceptor;
    let limit = if request.limit == 0 { DEFAULT_LIMIT } else { request.limit.min(MAX_LIMIT) } as usize;
    let records: Vec<RequestRecord> = if request.held {
        let in_session =
            |record: &RequestRecord| request.session.is_none() || record.received.origin.session == request.session;
        let before = |id: &RequestId| request.before.is_none_or(|before| *id < before);
        let held = interceptor.held().into_iter().filter(before).map(|id| interceptor.record(id));
        // A request that has just ended may have no record to read.
        held.filter_map(Result::ok).filter(in_session).take(MAX_LIMIT as usize).collect()
    } else {
        interceptor.records(request.session.as_deref(), request.before, limit)?
    };
    Ok(records.iter().map(|record| summary(host, record)).collect())
}

fn endpoint(host: &Host, endpoint: &AgentEndpoint) -> proto::AgentEndpoint {
    let capability = &endpoint.capability;
    proto::AgentEndpoint {
        capability: capability.clone(),
        agent: endpoint.agent.clone(),
        run: endpoint.run().name,
        url: host.url.get().map(|url| format!("{}/p/{capability}", url.trim_end_matches('/'))),
        ..Default::default()
    }
}

impl Requests {
    /// Runs work for a person and flushes the journal, so that a crash cannot lose a confirmed change.
    async fn run<T: Send + 'static>(
        &self,
        context: &RequestContext,
        work: impl FnOnce(&Host) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, ConnectError> {
        let flushed = move |host: &Host| {
            let done = work(host)?;
            host.proxy.interceptor.flush();
            Ok(done)
        };
        run_as_person(&self.0, context, flushed).await
    }

    /// Arms a one-shot pause or capture of the next turn.
    async fn arm(
        &self,
        context: &RequestContext,
        session: Option<String>,
        once: OneShot,
    ) -> Result<proto::ModeState, ConnectError> {
        let armed = self.run(context, move |host| {
            host.refresh_if_readable();
            host.proxy.interceptor.arm(session.as_deref(), once);
            Ok(mode::state(host, session.as_deref()))
        });
        armed.await
    }
}

impl proto::RequestService for Requests {
    async fn list_requests(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ListRequestsRequest>,
    ) -> ServiceResult<proto::ListRequestsResponse> {
        let request = request.to_owned_message();
        let requests = self.run(&context, move |host| list(host, &request)).await?;
        Response::ok(proto::ListRequestsResponse { requests, ..Default::default() })
    }

    async fn show_request(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ShowRequestRequest>,
    ) -> ServiceResult<proto::ShowRequestResponse> {
        let request = request.to_owned_message();
        Response::ok(self.run(&context, move |host| show::show(host, &request)).await?)
    }

    async fn get_request_body(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::GetRequestBodyRequest>,
    ) -> ServiceResult<proto::GetRequestBodyResponse> {
        let request = request.to_owned_message();
        Response::ok(self.run(&context, move |host| body::part(host, &request)).await?)
    }

    async fn edit_request(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::EditRequestRequest>,
    ) -> ServiceResult<proto::EditRequestResponse> {
        let request = request.to_owned_message();
        Response::ok(self.run(&context, move |host| edit::edit(host, request)).await?)
    }

    async fn diff_request(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::DiffRequestRequest>,
    ) -> ServiceResult<proto::DiffRequestResponse> {
        let request = request.to_owned_message();
        Response::ok(self.run(&context, move |host| diff::diff(host, &request)).await?)
    }

    async fn resume_request(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ResumeRequestRequest>,
    ) -> ServiceResult<proto::ResumeRequestResponse> {
        let (id, expected) = (request.request, request.to_owned_message().revision);
        let resumed = self.run(&context, move |host| {
            let expected = expected.map_or(ExpectedRevision::Any, ExpectedRevision::Exactly);
            require_known(host, id)?;
            host.proxy.interceptor.resume(id, expected, now()).map_err(|error| describe_not_held(host, error))
        });
        let ResumeReport { captured, switched, turn_edits } = resumed.await?;
        Response::ok(proto::ResumeRequestResponse {
            saved: captured.saved as u64,
            removed: captured.removed as u64,
            new_mode: switched.map(|to| proto::RequestMode::from(to.mode)).unwrap_or_default().into(),
            new_mode_scope: switched.map(|to| proto::OverrideScope::from(to.scope)).unwrap_or_default().into(),
            turn_edits: turn_edits as u64,
            ..Default::default()
        })
    }

    async fn cancel_request(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::CancelRequestRequest>,
    ) -> ServiceResult<proto::CancelRequestResponse> {
        let id = request.request;
        let cancelled = self.run(&context, move |host| {
            require_known(host, id)?;
            host.proxy.interceptor.cancel(id, now()).map_err(|error| describe_not_held(host, error))
        });
        cancelled.await?;
        Response::ok(proto::CancelRequestResponse::default())
    }

    async fn get_modes(
        &self,
        context: RequestContext,
        _: ServiceRequest<'_, proto::GetModesRequest>,
    ) -> ServiceResult<proto::GetModesResponse> {
        Response::ok(self.run(&context, |host| Ok(mode::all(host))).await?)
    }

    async fn set_mode(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::SetModeRequest>,
    ) -> ServiceResult<proto::SetModeResponse> {
        let request = request.to_owned_message();
        let mode = enumeration::<_, Option<RequestMode>>(request.mode, "mode")?;
        if mode.is_none() && request.session.is_none() {
            return Err(BadMessage::new("mode", "it is not specified, which needs a session").into());
        }
        let held_action = match enumeration::<_, HeldFate>(request.held_requests, "held_requests")? {
            HeldFate::Resume => HeldAction::Resume,
            HeldFate::Cancel => HeldAction::Cancel,
        };
        let set = self.run(&context, move |host| {
            host.refresh_if_readable();
            let change = host.proxy.interceptor.change_mode(request.session.as_deref(), mode, held_action, now());
            let still_held = change.still_held.iter().map(|(request, error)| StillHeld {
                request: *request,
                reason: error.to_string(),
                ..Default::default()
            });
            Ok(proto::SetModeResponse {
                canceled: change.ended as u64,
                resumed: change.resumed as u64,
                still_held: still_held.collect(),
                state: mode::state(host, request.session.as_deref()).into(),
                ..Default::default()
            })
        });
        Response::ok(set.await?)
    }

    async fn pause_next(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::PauseNextRequest>,
    ) -> ServiceResult<proto::PauseNextResponse> {
        let state = self.arm(&context, request.to_owned_message().session, OneShot::Pause).await?;
        Response::ok(proto::PauseNextResponse { state: state.into(), ..Default::default() })
    }

    async fn capture_next(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::CaptureNextRequest>,
    ) -> ServiceResult<proto::CaptureNextResponse> {
        let state = self.arm(&context, request.to_owned_message().session, OneShot::Capture).await?;
        Response::ok(proto::CaptureNextResponse { state: state.into(), ..Default::default() })
    }

    async fn list_overrides(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ListOverridesRequest>,
    ) -> ServiceResult<proto::ListOverridesResponse> {
        let session = request.to_owned_message().session;
        let listed = self.run(&context, move |host| {
            let interceptor = &host.proxy.interceptor;
            let saved =
                session.map_or_else(|| interceptor.all_overrides(), |session| interceptor.overrides(Some(&session)))?;
            Ok(saved.iter().map(mode::override_message).collect())
        });
        Response::ok(proto::ListOverridesResponse { overrides: listed.await?, ..Default::default() })
    }

    async fn save_overrides(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::SaveOverridesRequest>,
    ) -> ServiceResult<proto::SaveOverridesResponse> {
        let (id, wanted) = (request.request, scope(request.to_owned_message().scope, "scope")?);
        let saved = self.run(&context, move |host| {
            host.refresh_if_readable();
            require_known(host, id)?;
            let scope = wanted.unwrap_or_else(|| host.proxy.interceptor.settings().scope);
            let saved = host.proxy.interceptor.save_overrides(id, scope, now())?;
            Ok(proto::SaveOverridesResponse {
                saved: saved.saved as u64,
                scope: proto::OverrideScope::from(scope).into(),
                new_mode: saved.switched.map(|to| proto::RequestMode::from(to.mode)).unwrap_or_default().into(),
                ..Default::default()
            })
        });
        Response::ok(saved.await?)
    }

    async fn remove_overrides(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::RemoveOverridesRequest>,
    ) -> ServiceResult<proto::RemoveOverridesResponse> {
        let request = request.to_owned_message();
        let scope = scope(request.scope, "scope")?.ok_or_else(|| BadMessage::new("scope", "it is not specified"))?;
        if scope == Scope::Session && request.session.is_none() {
            return Err(BadMessage::new("session", "it is missing, and the scope is SESSION").into());
        }
        let removed = self.run(&context, move |host| {
            let session = request.session.unwrap_or_default();
            Ok(host.proxy.interceptor.remove_overrides(scope, &session)? as u64)
        });
        Response::ok(proto::RemoveOverridesResponse { removed: removed.await?, ..Default::default() })
    }

    async fn list_subagents(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ListSubagentsRequest>,
    ) -> ServiceResult<proto::ListSubagentsResponse> {
        let request = request.to_owned_message();
        Response::ok(self.run(&context, move |host| Ok(show::subagents(host, &request))).await?)
    }

    async fn replay_request(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ReplayRequestRequest>,
    ) -> ServiceResult<proto::ReplayRequestResponse> {
        use proto::replay_request_request::Form;
        let (id, form) = (request.request, request.to_owned_message().form);
        let form = match enumeration::<_, Form>(form, "form")? {
            Form::Unspecified | Form::AsSent => ReplayForm::AsSent,
            Form::AsReceived => ReplayForm::AsReceived,
        };
        self.run(&context, Host::refresh).await?;
        let replayed = self.0.proxy.replay(id, form).await.map_err(Failure::from)?;
        Response::ok(proto::ReplayRequestResponse {
            request: replayed.request,
            status: replayed.status.into(),
            answer: replayed.answer,
            earlier_answer: replayed.earlier,
            diff: replayed.diff,
            ..Default::default()
        })
    }

    async fn get_cost(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::GetCostRequest>,
    ) -> ServiceResult<proto::GetCostResponse> {
        let request = request.to_owned_message();
        Response::ok(self.run(&context, move |host| cost::sums(host, &request)).await?)
    }

    async fn open_endpoint(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::OpenEndpointRequest>,
    ) -> ServiceResult<proto::OpenEndpointResponse> {
        let request = request.to_owned_message();
        let opened = self.run(&context, move |host| {
            let upstreams = request.upstreams.into_iter().collect();
            Ok(endpoint(host, &host.proxy.endpoints.open(request.agent, upstreams)?))
        });
        Response::ok(proto::OpenEndpointResponse { endpoint: opened.await?.into(), ..Default::default() })
    }

    async fn get_persistent_endpoint(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::GetPersistentEndpointRequest>,
    ) -> ServiceResult<proto::GetPersistentEndpointResponse> {
        let request = request.to_owned_message();
        let persistent = self.run(&context, move |host| {
            let upstreams = request.upstreams.into_iter().collect();
            Ok(endpoint(host, &host.proxy.endpoints.persistent(request.agent, upstreams)?))
        });
        Response::ok(proto::GetPersistentEndpointResponse { endpoint: persistent.await?.into(), ..Default::default() })
    }

    async fn close_endpoint(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::CloseEndpointRequest>,
    ) -> ServiceResult<proto::CloseEndpointResponse> {
        let capability = request.to_owned_message().capability;
        let closed = self.run(&context, move |host| {
            let closed = host.proxy.endpoints.close(&capability)?;
            if let Some(endpoint) = &closed {
                host.proxy.interceptor.end_run(&endpoint.run().name);
            }
            Ok(closed.is_some())
        });
        Response::ok(proto::CloseEndpointResponse { closed: closed.await?, ..Default::default() })
    }
}

/// Fails if there is no such request.
fn require_known(host: &Host, request: RequestId) -> Result<(), Failure> {
    if host.proxy.interceptor.held().contains(&request) {
        return Ok(());
    }
    host.proxy.interceptor.record(request)?;
    Ok(())
}

/// Adds the state of a request that cannot be resumed or cancelled because it is not held.
fn describe_not_held(host: &Host, error: ResumeError) -> Failure {
    let ResumeError::NotPaused(request) = error else { return error.into() };
    let Ok(record) = host.proxy.interceptor.record(request) else { return error.into() };
    let (state, hint) = match (record.status, &record.ended) {
        (RequestStatus::Sent, _) if record.upstream_retry.is_some() => {
            ("sayso is retrying it".to_owned(), Some("cancel it with `sayso request cancel`"))
        }
        (RequestStatus::Sent, _) => ("it is in flight".to_owned(), Some("stop it in its agent")),
        (RequestStatus::Answered, _) => ("it has a response".to_owned(), None),
        (RequestStatus::Ended, Some(end)) => (format!("it ended: {}", end.message()), None),
        (RequestStatus::Received | RequestStatus::Paused | RequestStatus::Ended, _) => return error.into(),
    };
    let failure = Failure::new(error.kind(), format!("{error}: {state}"));
    failure.hint(hint.map_or_else(|| error.hint(), str::to_owned))
}

/// The error for a part of a request that does not exist.
fn missing(message: impl Into<String>) -> Failure {
    Failure::new(ErrorKind::InvalidArgs, message)
}
