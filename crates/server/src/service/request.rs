//! Requests to models: what they say, what a person makes of them, and how they are treated. All of it for persons only.

mod body;
mod diff;
mod edit;
mod mode;
mod section;
mod show;
mod veil;
mod window;

use std::sync::Arc;

use connectrpc::{ConnectError, RequestContext, Response, ServiceRequest, ServiceResult};
use sayso_api::convert::BadMessage;
use sayso_api::convert::field::enumeration;
use sayso_api::proto;
use sayso_api::proto::set_mode_response::StillWaiting;
use sayso_proxy::desk::{EndError, Expected, OnWaiting, Once, Resumed};
use sayso_proxy::{Entrance, Which};
use sayso_review::{ErrorKind, RequestId, RequestMode, RequestRecord, RequestStatus};
use sayso_wire::Scope;

use crate::failure::Failure;
use crate::host::{Host, by_a_person, now};

/// Requests that are listed where nobody says how many, and at most.
const SOME: u32 = 20;
const MOST: u32 = 1_000;

/// The service.
#[derive(Clone, Debug)]
pub(crate) struct Requests(pub(crate) Arc<Host>);

/// A request with whether it waits.
fn summary(host: &Host, record: &RequestRecord) -> proto::RequestSummary {
    let mut summary = proto::RequestSummary::from(record);
    if let Some((edited, saved)) = host.proxy.desk.edits(record.request) {
        (summary.waiting, summary.edited) = (true, edited);
        summary.saved = (!saved.is_empty()).then(|| proto::SavedEditsOutcome::from(&saved)).into();
    }
    summary
}

fn scope(scope: buffa::EnumValue<proto::OverrideScope>, field: &str) -> Result<Option<Scope>, BadMessage> {
    Ok(match enumeration::<_, proto::OverrideScope>(scope, field)? {
        proto::OverrideScope::Unspecified => None,
        proto::OverrideScope::Global => Some(Scope::Global),
        proto::OverrideScope::Workspace => Some(Scope::Workspace),
        proto::OverrideScope::Session => Some(Scope::Session),
    })
}

fn scope_message(scope: Scope) -> proto::OverrideScope {
    match scope {
        Scope::Global => proto::OverrideScope::Global,
        Scope::Workspace => proto::OverrideScope::Workspace,
        Scope::Session => proto::OverrideScope::Session,
    }
}

fn list(host: &Host, request: &proto::ListRequestsRequest) -> Result<Vec<proto::RequestSummary>, Failure> {
    let desk = &host.proxy.desk;
    let limit = if request.limit == 0 { SOME } else { request.limit.min(MOST) } as usize;
    let records: Vec<RequestRecord> = if request.waiting {
        let of = |record: &RequestRecord| request.session.is_none() || record.seen.origin.session == request.session;
        let before = |id: &RequestId| request.before.is_none_or(|before| *id < before);
        let waiting = desk.waiting().into_iter().filter(before).map(|id| desk.record(id));
        // One that ended since is none that waits.
        waiting.filter_map(Result::ok).filter(of).take(MOST as usize).collect()
    } else {
        desk.records(request.session.as_deref(), request.before, limit)?
    };
    Ok(records.iter().map(|record| summary(host, record)).collect())
}

fn entrance(host: &Host, entrance: &Entrance) -> proto::Entrance {
    let capability = &entrance.capability;
    proto::Entrance {
        capability: capability.clone(),
        agent: entrance.agent.clone(),
        run: entrance.run().name,
        url: host.url.get().map(|url| format!("{}/p/{capability}", url.trim_end_matches('/'))),
        ..Default::default()
    }
}

impl Requests {
    async fn person<T: Send + 'static>(
        &self,
        context: &RequestContext,
        work: impl FnOnce(&Host) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, ConnectError> {
        // Whoever is answered can rely on what they did: a kill of the engine does not lose it.
        let recorded = move |host: &Host| {
            let done = work(host)?;
            host.proxy.desk.settle();
            Ok(done)
        };
        by_a_person(&self.0, context, recorded).await
    }

    /// Puts up a flag for the next turn.
    async fn arm(
        &self,
        context: &RequestContext,
        session: Option<String>,
        once: Once,
    ) -> Result<proto::ModeState, ConnectError> {
        let armed = self.person(context, move |host| {
            host.refresh_if_readable();
            host.proxy.desk.arm(session.as_deref(), once);
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
        let requests = self.person(&context, move |host| list(host, &request)).await?;
        Response::ok(proto::ListRequestsResponse { requests, ..Default::default() })
    }

    async fn show_request(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ShowRequestRequest>,
    ) -> ServiceResult<proto::ShowRequestResponse> {
        let request = request.to_owned_message();
        Response::ok(self.person(&context, move |host| show::show(host, &request)).await?)
    }

    async fn get_request_body(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::GetRequestBodyRequest>,
    ) -> ServiceResult<proto::GetRequestBodyResponse> {
        let request = request.to_owned_message();
        Response::ok(self.person(&context, move |host| body::part(host, &request)).await?)
    }

    async fn edit_request(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::EditRequestRequest>,
    ) -> ServiceResult<proto::EditRequestResponse> {
        let request = request.to_owned_message();
        Response::ok(self.person(&context, move |host| edit::edit(host, request)).await?)
    }

    async fn diff_request(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::DiffRequestRequest>,
    ) -> ServiceResult<proto::DiffRequestResponse> {
        let request = request.to_owned_message();
        Response::ok(self.person(&context, move |host| diff::diff(host, &request)).await?)
    }

    async fn resume_request(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ResumeRequestRequest>,
    ) -> ServiceResult<proto::ResumeRequestResponse> {
        let (id, expected) = (request.request, request.to_owned_message().revision);
        let resumed = self.person(&context, move |host| {
            let expected = expected.map_or(Expected::Any, Expected::Version);
            known(host, id)?;
            host.proxy.desk.resume(id, expected, now()).map_err(|error| not_ended(host, error))
        });
        let Resumed { captured, switched, turn_edits } = resumed.await?;
        Response::ok(proto::ResumeRequestResponse {
            saved: captured.saved as u64,
            removed: captured.removed as u64,
            switched_to: switched.map(|to| proto::RequestMode::from(to.mode)).unwrap_or_default().into(),
            switched_in: switched.map(|to| scope_message(to.scope)).unwrap_or_default().into(),
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
        let cancelled = self.person(&context, move |host| {
            known(host, id)?;
            host.proxy.desk.cancel(id, now()).map_err(|error| not_ended(host, error))
        });
        cancelled.await?;
        Response::ok(proto::CancelRequestResponse::default())
    }

    async fn get_modes(
        &self,
        context: RequestContext,
        _: ServiceRequest<'_, proto::GetModesRequest>,
    ) -> ServiceResult<proto::GetModesResponse> {
        Response::ok(self.person(&context, |host| Ok(mode::all(host))).await?)
    }

    async fn set_mode(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::SetModeRequest>,
    ) -> ServiceResult<proto::SetModeResponse> {
        let request = request.to_owned_message();
        let mode = enumeration::<_, Option<RequestMode>>(request.mode, "mode")?;
        if mode.is_none() && request.session.is_none() {
            return Err(BadMessage::new("mode", "it is not said, and there is no session that could do without").into());
        }
        let waiting = match enumeration::<_, proto::WaitingRequests>(request.waiting, "waiting")? {
            proto::WaitingRequests::Resume => OnWaiting::Resume,
            proto::WaitingRequests::Cancel => OnWaiting::Cancel,
            proto::WaitingRequests::Unspecified => {
                let why = "it is not said whether paused requests go on (RESUME) or end (CANCEL)";
                return Err(BadMessage::new("waiting", why).into());
            }
        };
        let set = self.person(&context, move |host| {
            host.refresh_if_readable();
            let change = host.proxy.desk.change_mode(request.session.as_deref(), mode, waiting, now());
            let still_waiting = change.waiting.iter().map(|(request, error)| StillWaiting {
                request: *request,
                reason: error.to_string(),
                ..Default::default()
            });
            Ok(proto::SetModeResponse {
                ended: change.ended as u64,
                resumed: change.resumed as u64,
                still_waiting: still_waiting.collect(),
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
        let state = self.arm(&context, request.to_owned_message().session, Once::Pause).await?;
        Response::ok(proto::PauseNextResponse { state: state.into(), ..Default::default() })
    }

    async fn capture_next(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::CaptureNextRequest>,
    ) -> ServiceResult<proto::CaptureNextResponse> {
        let state = self.arm(&context, request.to_owned_message().session, Once::Capture).await?;
        Response::ok(proto::CaptureNextResponse { state: state.into(), ..Default::default() })
    }

    async fn list_overrides(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ListOverridesRequest>,
    ) -> ServiceResult<proto::ListOverridesResponse> {
        let session = request.to_owned_message().session;
        let listed = self.person(&context, move |host| {
            let desk = &host.proxy.desk;
            let saved = session.map_or_else(|| desk.saved_anywhere(), |session| desk.saved(Some(&session)))?;
            Ok(saved.iter().map(mode::saved_edit).collect())
        });
        Response::ok(proto::ListOverridesResponse { overrides: listed.await?, ..Default::default() })
    }

    async fn save_overrides(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::SaveOverridesRequest>,
    ) -> ServiceResult<proto::SaveOverridesResponse> {
        let (id, wanted) = (request.request, scope(request.to_owned_message().scope, "scope")?);
        let saved = self.person(&context, move |host| {
            host.refresh_if_readable();
            known(host, id)?;
            let scope = wanted.unwrap_or_else(|| host.proxy.desk.settings().scope);
            let saved = host.proxy.desk.save(id, scope, now())?;
            Ok(proto::SaveOverridesResponse {
                saved: saved.saved as u64,
                scope: scope_message(scope).into(),
                switched_to: saved.switched.map(|to| proto::RequestMode::from(to.mode)).unwrap_or_default().into(),
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
        let scope = scope(request.scope, "scope")?.ok_or_else(|| BadMessage::new("scope", "it is not said"))?;
        if scope == Scope::Session && request.session.is_none() {
            return Err(BadMessage::new("session", "it is missing, and the scope is a session").into());
        }
        let removed = self.person(&context, move |host| {
            let session = request.session.unwrap_or_default();
            Ok(host.proxy.desk.remove_saved(scope, &session)? as u64)
        });
        Response::ok(proto::RemoveOverridesResponse { removed: removed.await?, ..Default::default() })
    }

    async fn list_subagents(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ListSubagentsRequest>,
    ) -> ServiceResult<proto::ListSubagentsResponse> {
        let request = request.to_owned_message();
        Response::ok(self.person(&context, move |host| Ok(show::subagents(host, &request))).await?)
    }

    async fn replay_request(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ReplayRequestRequest>,
    ) -> ServiceResult<proto::ReplayRequestResponse> {
        use proto::replay_request_request::Which as Wanted;
        let (id, which) = (request.request, request.to_owned_message().which);
        let which = match enumeration::<_, Wanted>(which, "which")? {
            Wanted::Unspecified | Wanted::AsSent => Which::AsItWasSent,
            Wanted::AsCame => Which::AsItCame,
        };
        self.person(&context, Host::refresh).await?;
        let replayed = self.0.proxy.replay(id, which).await.map_err(Failure::from)?;
        Response::ok(proto::ReplayRequestResponse {
            request: replayed.request,
            status: replayed.status.into(),
            answer: replayed.answer,
            earlier: replayed.earlier,
            diff: replayed.diff,
            ..Default::default()
        })
    }

    async fn open_entrance(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::OpenEntranceRequest>,
    ) -> ServiceResult<proto::OpenEntranceResponse> {
        let request = request.to_owned_message();
        let opened = self.person(&context, move |host| {
            let upstreams = request.upstreams.into_iter().collect();
            Ok(entrance(host, &host.proxy.entrances.open(request.agent, upstreams)?))
        });
        Response::ok(proto::OpenEntranceResponse { entrance: opened.await?.into(), ..Default::default() })
    }

    async fn lasting_entrance(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::LastingEntranceRequest>,
    ) -> ServiceResult<proto::LastingEntranceResponse> {
        let request = request.to_owned_message();
        let lasting = self.person(&context, move |host| {
            let upstreams = request.upstreams.into_iter().collect();
            Ok(entrance(host, &host.proxy.entrances.lasting(request.agent, upstreams)?))
        });
        Response::ok(proto::LastingEntranceResponse { entrance: lasting.await?.into(), ..Default::default() })
    }

    async fn close_entrance(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::CloseEntranceRequest>,
    ) -> ServiceResult<proto::CloseEntranceResponse> {
        let capability = request.to_owned_message().capability;
        let closed = self.person(&context, move |host| {
            let closed = host.proxy.entrances.close(&capability)?;
            if let Some(entrance) = &closed {
                host.proxy.desk.run_over(&entrance.run().name);
            }
            Ok(closed.is_some())
        });
        Response::ok(proto::CloseEntranceResponse { closed: closed.await?, ..Default::default() })
    }
}

/// Tells a request that does not wait from one that there is not.
fn known(host: &Host, request: RequestId) -> Result<(), Failure> {
    if host.proxy.desk.waiting().contains(&request) {
        return Ok(());
    }
    host.proxy.desk.record(request)?;
    Ok(())
}

/// Why a request could not be resumed or cancelled: of one that does not wait, what it does instead.
fn not_ended(host: &Host, error: EndError) -> Failure {
    let EndError::NotWaiting(request) = error else { return error.into() };
    let Ok(record) = host.proxy.desk.record(request) else { return error.into() };
    let (what, hint) = match (record.status, &record.ended) {
        (RequestStatus::Sent, _) if record.turned_away.is_some() => {
            ("its upstream turned it away, and it is tried again".to_owned(), Some("it can be cancelled"))
        }
        (RequestStatus::Sent, _) => ("it was sent".to_owned(), Some("only its agent can break it off")),
        (RequestStatus::Answered, _) => ("it was answered".to_owned(), None),
        (RequestStatus::Ended, Some(why)) => (format!("it ended: {}", why.message()), None),
        (RequestStatus::Seen | RequestStatus::Paused | RequestStatus::Ended, _) => return error.into(),
    };
    let failure = Failure::new(error.kind(), format!("{error}: {what}"));
    failure.hint(hint.map_or_else(|| error.hint(), str::to_owned))
}

/// What cannot be had of a request that is there.
fn missing(message: impl Into<String>) -> Failure {
    Failure::new(ErrorKind::InvalidArgs, message)
}
