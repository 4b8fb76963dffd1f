//! What a surface needs: the stream, what waits, verdicts, and what happened so far.

use std::sync::Arc;

use connectrpc::{ConnectError, PreEncoded, RequestContext, Response, ServiceRequest, ServiceResult, ServiceStream};
use futures::stream;
use sayso_api::convert::BadMessage;
use sayso_api::proto::propose_request::Mode;
use sayso_api::proto::watch_request::Role;
use sayso_api::proto::{self, PreviewView};
use sayso_gate::{Client, Decided, Reply, Reversal, Submission, Submitted};
use sayso_review::{Command, ContentHash, Decider, ErrorKind, FromNowOn, Intent, Proposal, Verdict};

use super::stream::Watching;
use super::view_of;
use crate::answer::LOGIN;
use crate::caller::Peer;
use crate::failure::Failure;
use crate::host::{Host, blocking, by_a_person, now, promptly};
use crate::progress::{self, Shown};

/// Changes that are listed where nobody says how many.
const SOME: u32 = 20;
/// Changes that are listed at most.
const MOST: u32 = 1_000;

/// Bytes of previews in one answer, after which the others come without.
const MOST_PREVIEWED: usize = 16 << 20;

/// The service.
#[derive(Clone, Debug)]
pub(crate) struct Review(pub(crate) Arc<Host>);

fn hash(text: &str) -> Result<ContentHash, BadMessage> {
    text.parse().map_err(|_| BadMessage::new("preview_hash", format!("`{text}` is no hash")))
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
            let mut shown = proto::UndoPlan {
                of: plan.changes().to_vec(),
                preview: sayso_api::convert::preview(&plan.preview, view).into(),
                preview_hash: plan.preview.hash().to_string(),
                uncaptured: plan.uncaptured.iter().map(proto::Uncaptured::from).collect(),
                ..Default::default()
            };
            super::withhold_preview(host, peer, &mut shown.preview);
            Ok(shown)
        })
        .await
    }

    async fn reverse(
        &self,
        context: &RequestContext,
        reversal: Reversal,
        shown: Option<String>,
    ) -> Result<proto::Progress, ConnectError> {
        by_a_person(&self.0, context, move |host| {
            let shown = shown.as_deref().map(hash).transpose()?;
            let (change, decided) = host.gate.reverse(&reversal, shown, now())?;
            progress::decided(host, change, &decided, PreviewView::Unspecified)
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
        Response::ok(promptly(&self.0, move |host| status(host, &request)).await?)
    }

    async fn watch(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::WatchRequest>,
    ) -> ServiceResult<ServiceStream<PreEncoded<proto::WatchResponse>>> {
        let request = request.to_owned_message();
        let (gate, peer) = (&self.0.gate, Peer::of(&context));
        // Where an agent looks, nobody is there to decide, and what waits is announced all the same.
        let decides = request.role == Role::ROLE_SURFACE
            && blocking(&self.0, move |host| Ok(Peer::decides(peer, &host.notes).is_ok())).await?;
        let attached = decides.then(|| gate.attach());
        let subscription = gate.subscribe(request.after);
        let watching = Watching::new(Arc::clone(&self.0), subscription, attached);
        Ok(Response::stream(stream::unfold(watching, Watching::next)))
    }

    async fn list_pending(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ListPendingRequest>,
    ) -> ServiceResult<proto::ListPendingResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        let pending = blocking(&self.0, move |host| {
            host.settle()?;
            host.gate.tick(now())?;
            let mut view = view_of(request.view);
            let (mut pending, mut size) = (Vec::new(), 0);
            for change in host.gate.waiting()? {
                let progress = host.gate.read(|history| {
                    let record = history.change(change)?;
                    let asked = request.session.is_none() || record.origin.session == request.session;
                    if asked { progress::of(history, change, view, Shown::Proposed).map(Some) } else { Ok(None) }
                })?;
                if let Some(mut progress) = progress {
                    super::withhold(host, peer, &mut progress);
                    size += buffa::Message::encoded_len(&progress) as usize;
                    pending.push(progress);
                    if size > MOST_PREVIEWED {
                        view = PreviewView::Unspecified;
                    }
                }
            }
            Ok(pending)
        });
        Response::ok(proto::ListPendingResponse { pending: pending.await?, ..Default::default() })
    }

    async fn decide(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::DecideRequest>,
    ) -> ServiceResult<proto::DecideResponse> {
        let request = request.to_owned_message();
        let peer = Peer::of(&context);
        let progress = promptly(&self.0, move |host| {
            Peer::person(peer, &host.notes)?;
            decide(host, request)
        })
        .await?;
        Response::ok(proto::DecideResponse { progress: progress.into(), ..Default::default() })
    }

    async fn create_login(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::CreateLoginRequest>,
    ) -> ServiceResult<proto::CreateLoginResponse> {
        let link = request.link;
        Response::ok(by_a_person(&self.0, &context, move |host| create_login(host, link)).await?)
    }

    async fn propose(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ProposeRequest>,
    ) -> ServiceResult<proto::ProposeResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        let progress = promptly(&self.0, move |host| {
            let mut progress = propose(host, peer, request)?;
            super::withhold(host, peer, &mut progress);
            Ok(progress)
        })
        .await?;
        Response::ok(proto::ProposeResponse { progress: progress.into(), ..Default::default() })
    }

    async fn get_change(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::GetChangeRequest>,
    ) -> ServiceResult<proto::GetChangeResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        let progress = blocking(&self.0, move |host| {
            let applied = request.shown == proto::get_change_request::Shown::SHOWN_APPLIED;
            let shown = if applied { Shown::Applied } else { Shown::Proposed };
            let view = view_of(request.view);
            if !applied && view != PreviewView::Unspecified {
                host.gate.keep_current(request.change, now())?;
            }
            let mut progress = host.gate.read(|history| progress::of(history, request.change, view, shown))?;
            super::withhold(host, peer, &mut progress);
            Ok(progress)
        });
        Response::ok(proto::GetChangeResponse { progress: progress.await?.into(), ..Default::default() })
    }

    async fn list_changes(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, proto::ListChangesRequest>,
    ) -> ServiceResult<proto::ListChangesResponse> {
        let request = request.to_owned_message();
        let changes = blocking(&self.0, move |host| {
            let limit = if request.limit == 0 { SOME } else { request.limit.min(MOST) } as usize;
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
        let limit = if request.limit == 0 { SOME } else { request.limit.min(MOST) } as usize;
        let sessions = blocking(&self.0, move |host| {
            let sessions = host.gate.read(|history| history.sessions(limit))?;
            Ok(sessions.iter().map(super::session).collect())
        });
        Response::ok(proto::ListSessionsResponse { sessions: sessions.await?, ..Default::default() })
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
        let progress = self.reverse(&context, reversal, request.preview_hash).await?;
        Response::ok(proto::UndoResponse { progress: progress.into(), ..Default::default() })
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
        let progress = self.reverse(&context, reversal, request.preview_hash).await?;
        Response::ok(proto::RedoResponse { progress: progress.into(), ..Default::default() })
    }

    async fn rehearse(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::RehearseRequest>,
    ) -> ServiceResult<proto::RehearseResponse> {
        let change = request.change;
        let said = by_a_person(&self.0, &context, move |host| {
            match host.gate.command(Client::Person, Command::DryRun { change }, now())? {
                Reply::DryRun(output) => Ok(proto::RehearseResponse::from(&output)),
                _ => Err(super::unexpected()),
            }
        });
        Response::ok(said.await?)
    }

    async fn review_turn(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::ReviewTurnRequest>,
    ) -> ServiceResult<proto::ReviewTurnResponse> {
        let (request, peer) = (request.to_owned_message(), Peer::of(&context));
        let progress = blocking(&self.0, move |host| {
            let Some(review) = host.gate.review_turn(&request.session, &request.turn, now())? else { return Ok(None) };
            let view = view_of(request.view);
            let mut shown = host.gate.read(|history| progress::of(history, review.change, view, Shown::Proposed))?;
            super::withhold(host, peer, &mut shown);
            Ok(Some(shown))
        });
        Response::ok(proto::ReviewTurnResponse { progress: progress.await?.into(), ..Default::default() })
    }

    async fn list_snapshots(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, proto::ListSnapshotsRequest>,
    ) -> ServiceResult<proto::ListSnapshotsResponse> {
        let call = request.to_owned_message().call;
        let snapshots = blocking(&self.0, move |host| {
            let records = host.gate.read(|history| match &call {
                Some(call) => history.snapshots_of(call),
                None => history.snapshots(),
            })?;
            Ok(records.iter().take(MOST as usize).map(proto::SnapshotRecord::from).collect())
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
        let progress = self.reverse(&context, reversal, request.preview_hash).await?;
        Response::ok(proto::RestoreResponse { progress: progress.into(), ..Default::default() })
    }

    async fn collect(
        &self,
        context: RequestContext,
        request: ServiceRequest<'_, proto::CollectRequest>,
    ) -> ServiceResult<proto::CollectResponse> {
        let request = request.to_owned_message();
        let response = by_a_person(&self.0, &context, move |host| {
            host.settle()?;
            let mut alive = host.notes.alive(&host.journal);
            alive.extend(host.awaited());
            let upkeep = host.gate.collect(&alive, request.before_ms, request.most_bytes, now())?;
            Ok(proto::CollectResponse {
                cancelled: upkeep.cancelled,
                dropped: upkeep.collected.blobs,
                freed_bytes: upkeep.collected.file_bytes,
                compressed: upkeep.compacted.blobs,
                ..Default::default()
            })
        });
        Response::ok(response.await?)
    }
}

fn status(host: &Host, request: &proto::StatusRequest) -> Result<proto::StatusResponse, Failure> {
    let gate = &host.gate;
    // The engine knows them; in the journal they would have to be looked for.
    let newest = if request.most_waiting == 0 { Vec::new() } else { gate.waiting()? };
    let newest = newest.into_iter().rev().take(request.most_waiting.min(MOST) as usize);
    let requests = host.proxy.desk.waiting().len();
    Ok(gate.read(|history| {
        let status = history.status()?;
        let turns = history.unreviewed()?;
        let turn = |(session, turn)| proto::Turn { session, turn, ..Default::default() };
        let mut waiting = Vec::new();
        for change in newest {
            waiting.push(proto::Change::from(&history.change(change)?));
        }
        let mut response = proto::StatusResponse {
            version: host.version.to_owned(),
            process: std::process::id(),
            workspace: host.root.to_string_lossy().into_owned(),
            started_ms: host.started,
            changes: status.changes,
            pending: status.pending,
            turns_to_review: turns.into_iter().map(turn).collect(),
            last_event: gate.last_event(),
            surfaces: u32::try_from(gate.surfaces()).unwrap_or(u32::MAX),
            journal: host.journal.to_string_lossy().into_owned(),
            waiting,
            url: host.url.get().cloned(),
            requests_waiting: requests as u64,
            ..Default::default()
        };
        if request.details {
            let sizes = history.sizes()?;
            (response.contents, response.stored_bytes) = (sizes.blobs, sizes.file_bytes);
            response.last = history.changes(None).next().transpose()?.as_ref().map(proto::Change::from).into();
        }
        Ok(response)
    })?)
}

fn decide(host: &Host, request: proto::DecideRequest) -> Result<proto::Progress, Failure> {
    let change = request.change;
    let verdict = request.verdict.into_option().ok_or_else(|| BadMessage::new("verdict", "it is missing"))?;
    // Whoever calls is a person, whatever they say they are.
    let verdict = Verdict { by: Decider::Person, ..Verdict::try_from(verdict)? };
    let from_now_on = request.from_now_on.into_option().map(FromNowOn::try_from).transpose()?;
    host.refresh()?;
    // What nobody waits for any more is not let go ahead.
    host.settle()?;
    let command = Command::Decide { change, verdict, from_now_on };
    let Reply::Decided { decided, keep } = host.gate.command(Client::Person, command, now())? else {
        return Err(super::unexpected());
    };
    let mut progress = progress::decided(host, change, &decided, view_of(request.view))?;
    let counts = !matches!(*decided, Decided::Stale { .. } | Decided::Failed { .. });
    let scope = from_now_on.filter(|_| counts).map(|meant| meant.scope);
    progress.rule_kept = progress::keep(host, scope, keep.as_ref());
    Ok(progress)
}

fn create_login(host: &Host, link: bool) -> Result<proto::CreateLoginResponse, Failure> {
    let failed = |error: std::io::Error| Failure::new(ErrorKind::Unavailable, format!("cannot make a login: {error}"));
    let Some(url) = host.url.get() else {
        let message = "this engine is not served over HTTP, so there is nowhere to log in";
        return Err(Failure::new(ErrorKind::InvalidArgs, message).hint("start `sayso serve` and try again"));
    };
    let mut response = proto::CreateLoginResponse { url: url.clone(), ..Default::default() };
    if link {
        let code = host.logins.create_link().map_err(failed)?;
        response.link = Some(format!("{}{LOGIN}{}", url.trim_end_matches('/'), code.reveal()));
    } else {
        response.token = Some(host.logins.create().map_err(failed)?.reveal().to_owned());
    }
    Ok(response)
}

fn propose(host: &Host, peer: Option<Peer>, request: proto::ProposeRequest) -> Result<proto::Progress, Failure> {
    use sayso_api::proto::oneof::propose_request::Changes;
    let proposal = match request.changes {
        Some(Changes::Proposal(proposal)) => Proposal::try_from(*proposal)?,
        Some(Changes::Text(text)) => Proposal::parse(&text)?,
        None => return Err(BadMessage::new("changes", "neither `proposal` nor `text` is there").into()),
    };
    let mut origin = super::origin(request.origin.into_option());
    host.own(peer, &mut origin)?;
    let view = view_of(request.view);
    let mode = request.mode.as_known().unwrap_or_default();
    let asking = Host::asking(mode == Mode::MODE_ASK);
    host.refresh()?;
    let submission =
        Submission { deadline: host.deadline(), asking, ..Submission::new(Intent::ChangeFiles(proposal), origin) };
    if mode == Mode::MODE_PREVIEW {
        let record = submission.clone();
        let judged = host.gate.judge(submission)?;
        return Ok(progress::unrecorded(&judged, record.origin, view));
    }
    submitted(host, host.gate.submit(submission, now())?, view)
}

/// What became of an intent at once.
pub(super) fn submitted(host: &Host, submitted: Submitted, view: PreviewView) -> Result<proto::Progress, Failure> {
    let (proposed, decided) = match submitted {
        Submitted::Decided { proposed, decided } => (proposed, Some(decided)),
        Submitted::Waiting(proposed) | Submitted::Impossible { proposed, .. } => (proposed, None),
    };
    let change = proposed.change;
    match decided {
        Some(decided) => progress::decided(host, change, &decided, view),
        None => Ok(host.gate.read(|history| progress::of(history, change, view, Shown::Proposed))?),
    }
}
