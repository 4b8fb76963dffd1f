//! Calls of surfaces: pending changes, history, undo and snapshots.

use sayso_review::{
    ChangeId, ChangeRecord, ContentHash, DryRunOutput, IfChanged, Origin, Proposal, SnapshotId, SnapshotRecord, Target,
};

use super::error::ClientError;
use super::responses::{ChangeDetails, PreviewDetail, Status, UndoPlan, decode, decode_all};
use super::{Client, PreviewOf, ProposeMode};
use crate::proto;
use crate::proto::__buffa::view;
use crate::proto::oneof::propose_request::Changes;

/// Content of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proposed {
    Proposal(Proposal),
    /// A patch or JSON, which the engine parses.
    Text(Vec<u8>),
}

/// Amount of information in a [`Status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusDetail {
    /// Counts only. The fastest.
    Counts,
    /// Also the last change, storage figures and the newest pending changes, at most `max_pending`.
    Full { max_pending: u32 },
}

/// Credentials for verdicts over TCP. `Debug` hides the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Address of the server.
    pub url: String,
    /// The token, or the link if one was requested.
    pub secret: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Client {
    /// Creates a login, or a link with which a browser logs in. Accepted on the verdict socket only.
    pub async fn create_login(&self, link: bool) -> Result<Login, ClientError> {
        let request = proto::CreateLoginRequest { link, ..Default::default() };
        let response = self
            .call::<_, view::CreateLoginResponseView<'static>, _>(proto::REVIEW_SERVICE_CREATE_LOGIN_SPEC, request)
            .await?;
        let secret = response.token.or(response.link).ok_or_else(|| ClientError::bad("it has no login"))?;
        Ok(Login { url: response.url, secret })
    }

    /// Returns the state of the engine and its workspace.
    pub async fn status(&self, detail: StatusDetail) -> Result<Status, ClientError> {
        let request = match detail {
            StatusDetail::Counts => proto::StatusRequest::default(),
            StatusDetail::Full { max_pending } => {
                proto::StatusRequest { max_pending, details: true, ..Default::default() }
            }
        };
        Status::decode(
            self.call::<_, view::StatusResponseView<'static>, _>(proto::REVIEW_SERVICE_STATUS_SPEC, request).await?,
        )
    }

    /// Lists pending changes, oldest first. `None` is all sessions.
    pub async fn list_pending(
        &self,
        session: Option<&str>,
        detail: PreviewDetail,
    ) -> Result<Vec<ChangeDetails>, ClientError> {
        let request = proto::ListPendingRequest {
            session: session.map(str::to_owned),
            view: proto::PreviewView::from(detail).into(),
            ..Default::default()
        };
        let response = self
            .call::<_, view::ListPendingResponseView<'static>, _>(proto::REVIEW_SERVICE_LIST_PENDING_SPEC, request)
            .await?;
        response.pending.into_iter().map(ChangeDetails::decode).collect()
    }

    pub async fn get_change(
        &self,
        change: ChangeId,
        detail: PreviewDetail,
        preview_of: PreviewOf,
    ) -> Result<ChangeDetails, ClientError> {
        let preview_of = match preview_of {
            PreviewOf::Proposed => proto::get_change_request::PreviewOf::Proposed,
            PreviewOf::Applied => proto::get_change_request::PreviewOf::Applied,
        };
        let view = proto::PreviewView::from(detail).into();
        let request = proto::GetChangeRequest { change, view, preview_of: preview_of.into(), ..Default::default() };
        let response = self
            .call::<_, view::GetChangeResponseView<'static>, _>(proto::REVIEW_SERVICE_GET_CHANGE_SPEC, request)
            .await?;
        ChangeDetails::decode_field(response.details)
    }

    /// Returns the files of a diff, or a page of one file. Rows convert to [`sayso_diff::DiffRow`] and its kin.
    pub async fn get_diff(&self, request: proto::GetDiffRequest) -> Result<proto::GetDiffResponse, ClientError> {
        self.call::<_, view::GetDiffResponseView<'static>, _>(proto::REVIEW_SERVICE_GET_DIFF_SPEC, request).await
    }

    /// Lists changes with numbers below `before`, newest first. A limit of 0 is the engine's default of 20.
    pub async fn list_changes(
        &self,
        limit: u32,
        before: Option<ChangeId>,
        session: Option<&str>,
    ) -> Result<Vec<ChangeRecord>, ClientError> {
        let session = session.map(str::to_owned);
        let request = proto::ListChangesRequest { limit, before, session, ..Default::default() };
        let response = self
            .call::<_, view::ListChangesResponseView<'static>, _>(proto::REVIEW_SERVICE_LIST_CHANGES_SPEC, request)
            .await?;
        decode_all(response.changes)
    }

    /// Lists sessions, newest first. A limit of 0 is the engine's default of 20.
    pub async fn list_sessions(&self, limit: u32) -> Result<Vec<proto::Session>, ClientError> {
        let request = proto::ListSessionsRequest { limit, ..Default::default() };
        let response = self
            .call::<_, view::ListSessionsResponseView<'static>, _>(proto::REVIEW_SERVICE_LIST_SESSIONS_SPEC, request)
            .await?;
        Ok(response.sessions)
    }

    /// Resolves the start or end of a session id to the full id. Fails with [`crate::error::ErrorData::AmbiguousSession`] unless
    /// exactly one session matches.
    pub async fn resolve_session(&self, given: &str) -> Result<String, ClientError> {
        let request = proto::ResolveSessionRequest { given: given.to_owned(), ..Default::default() };
        let response = self
            .call::<_, view::ResolveSessionResponseView<'static>, _>(
                proto::REVIEW_SERVICE_RESOLVE_SESSION_SPEC,
                request,
            )
            .await?;
        Ok(response.session)
    }

    /// Proposes a change of files. Not retried after a lost connection, as it may have been recorded.
    pub async fn propose(
        &self,
        proposed: Proposed,
        origin: Origin,
        mode: ProposeMode,
        detail: PreviewDetail,
    ) -> Result<ChangeDetails, ClientError> {
        let mode = match mode {
            ProposeMode::Record => proto::propose_request::Mode::Record,
            ProposeMode::Preview => proto::propose_request::Mode::Preview,
            ProposeMode::Ask => proto::propose_request::Mode::Ask,
        };
        let changes = match proposed {
            Proposed::Proposal(proposal) => Changes::Proposal(Box::new((&proposal).into())),
            Proposed::Text(text) => Changes::Text(text),
        };
        let request = proto::ProposeRequest {
            changes: Some(changes),
            origin: Some((&origin).into()).into(),
            mode: mode.into(),
            view: proto::PreviewView::from(detail).into(),
            ..Default::default()
        };
        let response =
            self.call::<_, view::ProposeResponseView<'static>, _>(proto::REVIEW_SERVICE_PROPOSE_SPEC, request).await?;
        ChangeDetails::decode_field(response.details)
    }

    /// Returns the effect of [`Client::undo`].
    pub async fn plan_undo(&self, target: Target, if_changed: IfChanged) -> Result<UndoPlan, ClientError> {
        let request = proto::PlanUndoRequest {
            target: Some((&target).into()).into(),
            if_changed: proto::IfChanged::from(if_changed).into(),
            view: proto::PreviewView::Content.into(),
            ..Default::default()
        };
        let response = self
            .call::<_, view::PlanUndoResponseView<'static>, _>(proto::REVIEW_SERVICE_PLAN_UNDO_SPEC, request)
            .await?;
        UndoPlan::decode_field(response.plan)
    }

    /// Restores the content from before the changes. Fails with `Stale` if `expected` is not the hash of the plan.
    pub async fn undo(
        &self,
        target: Target,
        if_changed: IfChanged,
        expected: Option<ContentHash>,
    ) -> Result<ChangeDetails, ClientError> {
        let request = proto::UndoRequest {
            target: Some((&target).into()).into(),
            if_changed: proto::IfChanged::from(if_changed).into(),
            preview_hash: expected.map(|hash| hash.to_string()),
            ..Default::default()
        };
        let response =
            self.call::<_, view::UndoResponseView<'static>, _>(proto::REVIEW_SERVICE_UNDO_SPEC, request).await?;
        ChangeDetails::decode_field(response.details)
    }

    /// Returns the effect of [`Client::redo`].
    pub async fn plan_redo(&self, target: Target, if_changed: IfChanged) -> Result<UndoPlan, ClientError> {
        let request = proto::PlanRedoRequest {
            target: Some((&target).into()).into(),
            if_changed: proto::IfChanged::from(if_changed).into(),
            view: proto::PreviewView::Content.into(),
            ..Default::default()
        };
        let response = self
            .call::<_, view::PlanRedoResponseView<'static>, _>(proto::REVIEW_SERVICE_PLAN_REDO_SPEC, request)
            .await?;
        UndoPlan::decode_field(response.plan)
    }

    /// Applies undone changes again. Fails with `Stale` if `expected` is not the hash of the plan.
    pub async fn redo(
        &self,
        target: Target,
        if_changed: IfChanged,
        expected: Option<ContentHash>,
    ) -> Result<ChangeDetails, ClientError> {
        let request = proto::RedoRequest {
            target: Some((&target).into()).into(),
            if_changed: proto::IfChanged::from(if_changed).into(),
            preview_hash: expected.map(|hash| hash.to_string()),
            ..Default::default()
        };
        let response =
            self.call::<_, view::RedoResponseView<'static>, _>(proto::REVIEW_SERVICE_REDO_SPEC, request).await?;
        ChangeDetails::decode_field(response.details)
    }

    /// Runs the dry run that a command preview offers.
    pub async fn dry_run(&self, change: ChangeId) -> Result<DryRunOutput, ClientError> {
        let request = proto::DryRunRequest { change, ..Default::default() };
        let response =
            self.call::<_, view::DryRunResponseView<'static>, _>(proto::REVIEW_SERVICE_DRY_RUN_SPEC, request).await?;
        decode(response)
    }

    /// Opens the review of a turn's changes that were applied under `later` rules; `None` if there are none.
    pub async fn review_turn(
        &self,
        session: &str,
        turn: &str,
        detail: PreviewDetail,
    ) -> Result<Option<ChangeDetails>, ClientError> {
        let request = proto::ReviewTurnRequest {
            session: session.to_owned(),
            turn: turn.to_owned(),
            view: proto::PreviewView::from(detail).into(),
            ..Default::default()
        };
        let response = self
            .call::<_, view::ReviewTurnResponseView<'static>, _>(proto::REVIEW_SERVICE_REVIEW_TURN_SPEC, request)
            .await?;
        response.details.into_option().map(ChangeDetails::decode).transpose()
    }

    /// Lists snapshots of files before tool calls, newest first. `None` is all calls.
    pub async fn list_snapshots(&self, call: Option<&str>) -> Result<Vec<SnapshotRecord>, ClientError> {
        let request = proto::ListSnapshotsRequest { call: call.map(str::to_owned), ..Default::default() };
        let response = self
            .call::<_, view::ListSnapshotsResponseView<'static>, _>(proto::REVIEW_SERVICE_LIST_SNAPSHOTS_SPEC, request)
            .await?;
        decode_all(response.snapshots)
    }

    /// Returns the effect of [`Client::restore`].
    pub async fn plan_restore(&self, snapshot: SnapshotId) -> Result<UndoPlan, ClientError> {
        let view = proto::PreviewView::Content.into();
        let request = proto::PlanRestoreRequest { snapshot, view, ..Default::default() };
        let response = self
            .call::<_, view::PlanRestoreResponseView<'static>, _>(proto::REVIEW_SERVICE_PLAN_RESTORE_SPEC, request)
            .await?;
        UndoPlan::decode_field(response.plan)
    }

    /// Restores a file from a snapshot. Fails with `Stale` if `expected` is not the hash of the plan.
    pub async fn restore(
        &self,
        snapshot: SnapshotId,
        expected: Option<ContentHash>,
    ) -> Result<ChangeDetails, ClientError> {
        let preview_hash = expected.map(|hash| hash.to_string());
        let request = proto::RestoreRequest { snapshot, preview_hash, ..Default::default() };
        let response =
            self.call::<_, view::RestoreResponseView<'static>, _>(proto::REVIEW_SERVICE_RESTORE_SPEC, request).await?;
        ChangeDetails::decode_field(response.details)
    }

    /// Deletes stored contents that only changes before a time need, and cancels orphaned pending changes.
    pub async fn collect(&self, before_ms: i64, max_bytes: Option<u64>) -> Result<proto::CollectResponse, ClientError> {
        let request = proto::CollectRequest { before_ms, max_bytes, ..Default::default() };
        self.call::<_, view::CollectResponseView<'static>, _>(proto::REVIEW_SERVICE_COLLECT_SPEC, request).await
    }
}
