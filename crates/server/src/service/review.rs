//! `ReviewService`: events, pending changes, verdicts and history.

mod decide;
mod diff;
mod inbox;
mod pending;
mod session;
mod status;
mod suggest;

use std::sync::Arc;

use connectrpc::{ConnectError, PreEncoded, RequestContext, Response, ServiceRequest, ServiceResult, ServiceStream};
use futures::{StreamExt as _, stream};
use sayso_api::convert::BadMessage;
use sayso_api::proto::watch_request::Role;
use sayso_api::proto::{self, PreviewView};
use sayso_gate::Reversal;
use sayso_review::ContentHash;

pub(crate) use self::diff::PlannedSubjects;
use self::inbox::InboxStream;
use super::stream::{AwaitStream, WatchStream};
use super::view_of;
use crate::caller::Peer;
use crate::change_details::{self, PreviewOf};
use crate::host::{Host, blocking, now, run_as_person, run_inline};

/// Changes or sessions in a list without a limit.
const DEFAULT_LIMIT: u32 = 20;
/// Largest limit of a list.
const MAX_LIMIT: u32 = 1_000;

pub(super) use decide::submitted;

#[derive(Clone, Debug)]
pub(crate) struct Review(pub(crate) Arc<Host>);

fn limit(requested: u32) -> usize {
    (if requested == 0 { DEFAULT_LIMIT } else { requested.min(MAX_LIMIT) }) as usize
}

fn hash(text: &str) -> Result<ContentHash, BadMessage> {
    text.parse().map_err(|_| BadMessage::new("preview_hash", format!("`{text}` is not a hash")))
}

impl Review {
    async fn plan(
        &self,
        context: &RequestContext,
        reversal: Reversal,
        view: PreviewView,
    ) -> Result<proto::UndoPlan, ConnectError> {
        let peer = Peer::of(context);
        blocking(&self.0, move |host| {
            let plan = host.gate.plan(&reversal)?;
            let mut message = proto::UndoPlan {
                changes: plan.changes().to_vec(),
                preview: sayso_api::convert::preview(&plan.preview, view).into(),
                preview_hash: plan.preview.hash().to_string(),
                uncaptured: plan.uncaptured.iter().map(proto::Uncaptured::from).collect(),
                ..Default::default()
            };
            super::withhold_preview(host, peer, &mut message.preview);
            Ok(message)
        })
        .await
    }

    async fn reverse(
        &self,
        context: &RequestContext,
        reversal: Reversal,
        expected_hash: Option<String>,
    ) -> Result<proto::ChangeDetails, ConnectError> {
        run_as_person(&self.0, context, move |host| {
            let expected = expected_hash.as_deref().map(hash).transpose()?;
            let (change, decided) = host.gate.reverse(&reversal, expected, now())?;
            change_details::decided(host, change, &decided, PreviewView::Unspecified)
        })
        .await
    }
}

impl proto::ReviewService for Review {
    async fn status(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, proto::StatusRequest>,
    ) -> ServiceResult<proto::StatusResponse> {
        let request = request.to_owned_message();
        Response::ok(run_inline(&self.0, move |host| status::status(host, &request)).await?)
    }

    async fn watch(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::WatchRequest>,
    ) -> ServiceResult<ServiceStream<PreEncoded<proto::WatchResponse>>> {
        let request = request.to_owned_message();
        let (gate, peer) = (&self.0.gate, Peer::of(&context));
        // A surface of an agent cannot decide, so it does not suppress notifications.
        let decides = request.role == Role::ROLE_SURFACE
            && blocking(&self.0, move |host| Ok(Peer::require_decider(peer, &host.agents).is_ok())).await?;
        let surface = decides.then(|| request.surface.into_option().unwrap_or_default().into());
        let subscription = gate.subscribe(request.after);
        let is_person = blocking(&self.0, move |host| Ok(Peer::require_person(peer, &host.agents).is_ok())).await?;
        let stream = WatchStream::new(Arc::clone(&self.0), subscription, surface, is_person);
        Ok(Response::stream(stream::unfold(stream, WatchStream::next)))
    }

    async fn list_pending(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ListPendingRequest>,
    ) -> ServiceResult<proto::ListPendingResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        let pending = blocking(&self.0, move |host| pending::list(host, peer, &request));
        Response::ok(proto::ListPendingResponse { pending: pending.await?, ..Default::default() })
    }

    async fn decide(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::DecideRequest>,
    ) -> ServiceResult<proto::DecideResponse> {
        let request = request.to_owned_message();
        let peer = Peer::of(&context);
        let details = run_inline(&self.0, move |host| {
            Peer::require_person(peer, &host.agents)?;
            decide::decide(host, request)
        })
        .await?;
        Response::ok(proto::DecideResponse { details: details.into(), ..Default::default() })
    }

    async fn create_login(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::CreateLoginRequest>,
    ) -> ServiceResult<proto::CreateLoginResponse> {
        let link = request.link;
        Response::ok(run_as_person(&self.0, &context, move |host| status::create_login(host, link)).await?)
    }

    async fn propose(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ProposeRequest>,
    ) -> ServiceResult<proto::ProposeResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        let details = run_inline(&self.0, move |host| {
            let mut details = decide::propose(host, peer, request)?;
            super::withhold(host, peer, &mut details);
            Ok(details)
        })
        .await?;
        Response::ok(proto::ProposeResponse { details: details.into(), ..Default::default() })
    }

    async fn get_change(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::GetChangeRequest>,
    ) -> ServiceResult<proto::GetChangeResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        let details = blocking(&self.0, move |host| {
            let applied = request.preview_of == proto::get_change_request::PreviewOf::PREVIEW_OF_APPLIED;
            let preview_of = if applied { PreviewOf::Applied } else { PreviewOf::Proposed };
            let view = view_of(request.view);
            if !applied && view != PreviewView::Unspecified {
                host.gate.refresh_if_stale(request.change, now())?;
            }
            let mut details =
                host.gate.read(|history| change_details::of(history, request.change, view, preview_of))?;
            super::withhold(host, peer, &mut details);
            Ok(details)
        });
        Response::ok(proto::GetChangeResponse { details: details.await?.into(), ..Default::default() })
    }

    async fn get_diff(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::GetDiffRequest>,
    ) -> ServiceResult<proto::GetDiffResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        Response::ok(blocking(&self.0, move |host| diff::get_diff(host, peer, request)).await?)
    }

    async fn list_changes(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, proto::ListChangesRequest>,
    ) -> ServiceResult<proto::ListChangesResponse> {
        let request = request.to_owned_message();
        let changes = blocking(&self.0, move |host| {
            let limit = limit(request.limit);
            let records = host.gate.read(|history| match &request.session {
                Some(session) => history.changes_of(session, request.before, limit),
                None => history.changes(request.before).take(limit).collect(),
            })?;
            Ok(records.iter().map(proto::Change::from).collect())
        });
        Response::ok(proto::ListChangesResponse { changes: changes.await?, ..Default::default() })
    }

    async fn list_sessions(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, proto::ListSessionsRequest>,
    ) -> ServiceResult<proto::ListSessionsResponse> {
        let limit = limit(request.limit);
        let sessions = blocking(&self.0, move |host| {
            let sessions = host.gate.read(|history| history.sessions(limit))?;
            Ok(sessions.iter().map(super::session).collect())
        });
        Response::ok(proto::ListSessionsResponse { sessions: sessions.await?, ..Default::default() })
    }

    async fn resolve_session(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, proto::ResolveSessionRequest>,
    ) -> ServiceResult<proto::ResolveSessionResponse> {
        let given = request.to_owned_message().given;
        let session = blocking(&self.0, move |host| session::resolve(host, &given)).await?;
        Response::ok(proto::ResolveSessionResponse { session, ..Default::default() })
    }

    async fn plan_undo(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::PlanUndoRequest>,
    ) -> ServiceResult<proto::PlanUndoResponse> {
        let request = request.to_owned_message();
        let (target, if_changed) = super::target(request.target.into_option(), request.if_changed)?;
        let plan = self.plan(&context, Reversal::Undo { target, if_changed }, view_of(request.view)).await?;
        Response::ok(proto::PlanUndoResponse { plan: plan.into(), ..Default::default() })
    }

    async fn undo(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::UndoRequest>,
    ) -> ServiceResult<proto::UndoResponse> {
        let request = request.to_owned_message();
        let (target, if_changed) = super::target(request.target.into_option(), request.if_changed)?;
        let reversal = Reversal::Undo { target, if_changed };
        let details = self.reverse(&context, reversal, request.preview_hash).await?;
        Response::ok(proto::UndoResponse { details: details.into(), ..Default::default() })
    }

    async fn plan_redo(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::PlanRedoRequest>,
    ) -> ServiceResult<proto::PlanRedoResponse> {
        let request = request.to_owned_message();
        let (target, if_changed) = super::target(request.target.into_option(), request.if_changed)?;
        let plan = self.plan(&context, Reversal::Redo { target, if_changed }, view_of(request.view)).await?;
        Response::ok(proto::PlanRedoResponse { plan: plan.into(), ..Default::default() })
    }

    async fn redo(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::RedoRequest>,
    ) -> ServiceResult<proto::RedoResponse> {
        let request = request.to_owned_message();
        let (target, if_changed) = super::target(request.target.into_option(), request.if_changed)?;
        let reversal = Reversal::Redo { target, if_changed };
        let details = self.reverse(&context, reversal, request.preview_hash).await?;
        Response::ok(proto::RedoResponse { details: details.into(), ..Default::default() })
    }

    async fn dry_run(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::DryRunRequest>,
    ) -> ServiceResult<proto::DryRunResponse> {
        let change = request.change;
        let output =
            run_as_person(&self.0, &context, move |host| Ok(proto::DryRunResponse::from(&host.gate.dry_run(change)?)));
        Response::ok(output.await?)
    }

    async fn review_turn(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ReviewTurnRequest>,
    ) -> ServiceResult<proto::ReviewTurnResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        let details = blocking(&self.0, move |host| {
            let Some(review) = host.gate.review_turn(&request.session, &request.turn, now())? else { return Ok(None) };
            let view = view_of(request.view);
            let preview_of = PreviewOf::Proposed;
            let mut details = host.gate.read(|history| change_details::of(history, review.change, view, preview_of))?;
            super::withhold(host, peer, &mut details);
            Ok(Some(details))
        });
        Response::ok(proto::ReviewTurnResponse { details: details.await?.into(), ..Default::default() })
    }

    async fn list_snapshots(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, proto::ListSnapshotsRequest>,
    ) -> ServiceResult<proto::ListSnapshotsResponse> {
        let call = request.to_owned_message().call;
        let snapshots = blocking(&self.0, move |host| {
            let records = host.gate.read(|history| match &call {
                Some(call) => history.snapshots_of_call(call),
                None => history.snapshots(),
            })?;
            Ok(records.iter().take(MAX_LIMIT as usize).map(proto::SnapshotRecord::from).collect())
        });
        Response::ok(proto::ListSnapshotsResponse { snapshots: snapshots.await?, ..Default::default() })
    }

    async fn plan_restore(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::PlanRestoreRequest>,
    ) -> ServiceResult<proto::PlanRestoreResponse> {
        let request = request.to_owned_message();
        let plan = self.plan(&context, Reversal::Restore { snapshot: request.snapshot }, view_of(request.view)).await?;
        Response::ok(proto::PlanRestoreResponse { plan: plan.into(), ..Default::default() })
    }

    async fn restore(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::RestoreRequest>,
    ) -> ServiceResult<proto::RestoreResponse> {
        let request = request.to_owned_message();
        let reversal = Reversal::Restore { snapshot: request.snapshot };
        let details = self.reverse(&context, reversal, request.preview_hash).await?;
        Response::ok(proto::RestoreResponse { details: details.into(), ..Default::default() })
    }

    async fn collect(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::CollectRequest>,
    ) -> ServiceResult<proto::CollectResponse> {
        let request = request.to_owned_message();
        let response = run_as_person(&self.0, &context, move |host| {
            host.finish_abandoned()?;
            let mut active = host.agents.active_changes(&host.journal);
            active.extend(host.awaited());
            let report = host.gate.collect(&active, request.before_ms, request.max_bytes, now())?;
            Ok(proto::CollectResponse {
                cancelled: report.cancelled,
                dropped: report.collected.blobs,
                freed_bytes: report.collected.file_bytes,
                compressed: report.compacted.blobs,
                ..Default::default()
            })
        });
        Response::ok(response.await?)
    }

    async fn list_inbox(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ListInboxRequest>,
    ) -> ServiceResult<proto::ListInboxResponse> {
        let request = request.to_owned_message();
        Response::ok(run_as_person(&self.0, &context, move |host| inbox::list(host, &request)).await?)
    }

    async fn watch_inbox(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::WatchInboxRequest>,
    ) -> ServiceResult<ServiceStream<PreEncoded<proto::WatchInboxResponse>>> {
        let session = request.to_owned_message().session;
        let stream = InboxStream::new(&self.0, &context, session).await?;
        Ok(Response::stream(stream::unfold(stream, InboxStream::next)))
    }

    async fn await_change(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::AwaitChangeRequest>,
    ) -> ServiceResult<ServiceStream<proto::AwaitChangeResponse>> {
        let (change, view) = (request.change, view_of(request.view));
        let stream = AwaitStream::new(Arc::clone(&self.0), Peer::of(&context), change, view, None);
        let response = |details: Option<proto::ChangeDetails>| {
            let kind = match details {
                Some(details) => details.into(),
                None => proto::await_change_response::Heartbeat::default().into(),
            };
            proto::AwaitChangeResponse { kind: Some(kind), ..Default::default() }
        };
        Ok(Response::stream(stream::unfold(stream, AwaitStream::next).map(move |sent| sent.map(response))))
    }

    async fn mark_seen(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::MarkSeenRequest>,
    ) -> ServiceResult<proto::MarkSeenResponse> {
        let request = request.to_owned_message();
        Response::ok(run_as_person(&self.0, &context, move |host| inbox::mark_seen(host, &request)).await?)
    }

    async fn mark_read(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::MarkReadRequest>,
    ) -> ServiceResult<proto::MarkReadResponse> {
        let through = request.through;
        let marked = run_as_person(&self.0, &context, move |host| Ok(host.gate.mark_read(through, now())?));
        Response::ok(proto::MarkReadResponse { through: marked.await?, ..Default::default() })
    }

    async fn list_surfaces(
        &self,
        _: RequestContext,
        _: ServiceRequest<'_, proto::ListSurfacesRequest>,
    ) -> ServiceResult<proto::ListSurfacesResponse> {
        Response::ok(proto::ListSurfacesResponse { surfaces: self.0.surfaces.list(), ..Default::default() })
    }

    async fn suggest_rule(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, proto::SuggestRuleRequest>,
    ) -> ServiceResult<proto::SuggestRuleResponse> {
        let request = request.to_owned_message();
        Response::ok(blocking(&self.0, move |host| suggest::suggest_rule(host, request)).await?)
    }
}
