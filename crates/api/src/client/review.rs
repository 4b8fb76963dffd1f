//! What a surface needs: what waits, verdicts, and what happened so far.

use sayso_review::{
    ChangeId, ChangeRecord, ContentHash, DryRunOutput, IfChanged, Origin, Proposal, SnapshotId, SnapshotRecord, Target,
};

use super::answers::{Progress, Status, UndoPlan, View, each, understood};
use super::error::ClientError;
use super::{Client, Proposing, Shown};
use crate::proto;
use crate::proto::__buffa::view;
use crate::proto::oneof::propose_request::Changes;

/// What is proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proposed {
    /// As data.
    Proposal(Proposal),
    /// As text, which the engine reads.
    Text(Vec<u8>),
}

/// How much is wanted of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Counts alone, which is the fastest.
    Counts,
    /// Also the last change, what is kept, and at most this many of the changes that wait.
    Details {
        /// So many.
        most_waiting: u32,
    },
}

/// A login, or a link to one. Its secret is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The address of the server.
    pub url: String,
    /// What was asked for: the login, or the link.
    pub secret: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Client {
    /// Has the engine hand out a login; for a browser, a link that becomes one. Only on the socket for verdicts.
    pub async fn create_login(&self, link: bool) -> Result<Login, ClientError> {
        let request = proto::CreateLoginRequest { link, ..Default::default() };
        let answer = self
            .call::<_, view::CreateLoginResponseView<'static>, _>(proto::REVIEW_SERVICE_CREATE_LOGIN_SPEC, request)
            .await?;
        let secret = answer.token.or(answer.link).ok_or_else(|| ClientError::bad("there is no login in it"))?;
        Ok(Login { url: answer.url, secret })
    }

    /// How the engine and its workspace stand.
    pub async fn status(&self, extent: Extent) -> Result<Status, ClientError> {
        let request = match extent {
            Extent::Counts => proto::StatusRequest::default(),
            Extent::Details { most_waiting } => {
                proto::StatusRequest { most_waiting, details: true, ..Default::default() }
            }
        };
        Status::read(
            self.call::<_, view::StatusResponseView<'static>, _>(proto::REVIEW_SERVICE_STATUS_SPEC, request).await?,
        )
    }

    /// What waits for a verdict, in the order in which it came; only of a session, if one is named.
    pub async fn list_pending(&self, session: Option<&str>, view: View) -> Result<Vec<Progress>, ClientError> {
        let request = proto::ListPendingRequest {
            session: session.map(str::to_owned),
            view: proto::PreviewView::from(view).into(),
            ..Default::default()
        };
        let answer = self
            .call::<_, view::ListPendingResponseView<'static>, _>(proto::REVIEW_SERVICE_LIST_PENDING_SPEC, request)
            .await?;
        answer.pending.into_iter().map(Progress::read).collect()
    }

    /// One change.
    pub async fn get_change(&self, change: ChangeId, view: View, shown: Shown) -> Result<Progress, ClientError> {
        let shown = match shown {
            Shown::Proposed => proto::get_change_request::Shown::Proposed,
            Shown::Applied => proto::get_change_request::Shown::Applied,
        };
        let view = proto::PreviewView::from(view).into();
        let request = proto::GetChangeRequest { change, view, shown: shown.into(), ..Default::default() };
        let answer = self
            .call::<_, view::GetChangeResponseView<'static>, _>(proto::REVIEW_SERVICE_GET_CHANGE_SPEC, request)
            .await?;
        Progress::of(answer.progress)
    }

    /// The changes of the workspace, newest first, from before one on; only of a session, if one is named.
    pub async fn list_changes(
        &self,
        limit: u32,
        before: Option<ChangeId>,
        session: Option<&str>,
    ) -> Result<Vec<ChangeRecord>, ClientError> {
        let session = session.map(str::to_owned);
        let request = proto::ListChangesRequest { limit, before, session, ..Default::default() };
        let answer = self
            .call::<_, view::ListChangesResponseView<'static>, _>(proto::REVIEW_SERVICE_LIST_CHANGES_SPEC, request)
            .await?;
        each(answer.changes)
    }

    /// The sessions that said that they began, newest first.
    pub async fn list_sessions(&self, limit: u32) -> Result<Vec<proto::Session>, ClientError> {
        let request = proto::ListSessionsRequest { limit, ..Default::default() };
        let answer = self
            .call::<_, view::ListSessionsResponseView<'static>, _>(proto::REVIEW_SERVICE_LIST_SESSIONS_SPEC, request)
            .await?;
        Ok(answer.sessions)
    }

    /// Proposes a change of files. A call that was cut may have been recorded, and is not made again.
    pub async fn propose(
        &self,
        proposed: Proposed,
        origin: Origin,
        proposing: Proposing,
        view: View,
    ) -> Result<Progress, ClientError> {
        let mode = match proposing {
            Proposing::Record => proto::propose_request::Mode::Record,
            Proposing::Preview => proto::propose_request::Mode::Preview,
            Proposing::Ask => proto::propose_request::Mode::Ask,
        };
        let changes = match proposed {
            Proposed::Proposal(proposal) => Changes::Proposal(Box::new((&proposal).into())),
            Proposed::Text(text) => Changes::Text(text),
        };
        let request = proto::ProposeRequest {
            changes: Some(changes),
            origin: Some((&origin).into()).into(),
            mode: mode.into(),
            view: proto::PreviewView::from(view).into(),
            ..Default::default()
        };
        let answer =
            self.call::<_, view::ProposeResponseView<'static>, _>(proto::REVIEW_SERVICE_PROPOSE_SPEC, request).await?;
        Progress::of(answer.progress)
    }

    /// What an undo would do.
    pub async fn plan_undo(&self, target: Target, if_changed: IfChanged) -> Result<UndoPlan, ClientError> {
        let request = proto::PlanUndoRequest {
            target: Some((&target).into()).into(),
            if_changed: proto::IfChanged::from(if_changed).into(),
            view: proto::PreviewView::Content.into(),
            ..Default::default()
        };
        let answer = self
            .call::<_, view::PlanUndoResponseView<'static>, _>(proto::REVIEW_SERVICE_PLAN_UNDO_SPEC, request)
            .await?;
        UndoPlan::read(answer.plan)
    }

    /// Takes changes back; where a plan was shown, only if that is still what would happen.
    pub async fn undo(
        &self,
        target: Target,
        if_changed: IfChanged,
        shown: Option<ContentHash>,
    ) -> Result<Progress, ClientError> {
        let request = proto::UndoRequest {
            target: Some((&target).into()).into(),
            if_changed: proto::IfChanged::from(if_changed).into(),
            preview_hash: shown.map(|hash| hash.to_string()),
            ..Default::default()
        };
        let answer =
            self.call::<_, view::UndoResponseView<'static>, _>(proto::REVIEW_SERVICE_UNDO_SPEC, request).await?;
        Progress::of(answer.progress)
    }

    /// What a redo would do.
    pub async fn plan_redo(&self, target: Target, if_changed: IfChanged) -> Result<UndoPlan, ClientError> {
        let request = proto::PlanRedoRequest {
            target: Some((&target).into()).into(),
            if_changed: proto::IfChanged::from(if_changed).into(),
            view: proto::PreviewView::Content.into(),
            ..Default::default()
        };
        let answer = self
            .call::<_, view::PlanRedoResponseView<'static>, _>(proto::REVIEW_SERVICE_PLAN_REDO_SPEC, request)
            .await?;
        UndoPlan::read(answer.plan)
    }

    /// Makes changes again; where a plan was shown, only if that is still what would happen.
    pub async fn redo(
        &self,
        target: Target,
        if_changed: IfChanged,
        shown: Option<ContentHash>,
    ) -> Result<Progress, ClientError> {
        let request = proto::RedoRequest {
            target: Some((&target).into()).into(),
            if_changed: proto::IfChanged::from(if_changed).into(),
            preview_hash: shown.map(|hash| hash.to_string()),
            ..Default::default()
        };
        let answer =
            self.call::<_, view::RedoResponseView<'static>, _>(proto::REVIEW_SERVICE_REDO_SPEC, request).await?;
        Progress::of(answer.progress)
    }

    /// Runs the harmless rehearsal that the preview of a command offers.
    pub async fn rehearse(&self, change: ChangeId) -> Result<DryRunOutput, ClientError> {
        let request = proto::RehearseRequest { change, ..Default::default() };
        let answer = self
            .call::<_, view::RehearseResponseView<'static>, _>(proto::REVIEW_SERVICE_REHEARSE_SPEC, request)
            .await?;
        understood(answer)
    }

    /// Puts up for review what happened at once in a turn; `None` if nothing did.
    pub async fn review_turn(&self, session: &str, turn: &str, view: View) -> Result<Option<Progress>, ClientError> {
        let request = proto::ReviewTurnRequest {
            session: session.to_owned(),
            turn: turn.to_owned(),
            view: proto::PreviewView::from(view).into(),
            ..Default::default()
        };
        let answer = self
            .call::<_, view::ReviewTurnResponseView<'static>, _>(proto::REVIEW_SERVICE_REVIEW_TURN_SPEC, request)
            .await?;
        answer.progress.into_option().map(Progress::read).transpose()
    }

    /// What files were before tool calls, as far as it is kept; only of a call, if one is named.
    pub async fn list_snapshots(&self, call: Option<&str>) -> Result<Vec<SnapshotRecord>, ClientError> {
        let request = proto::ListSnapshotsRequest { call: call.map(str::to_owned), ..Default::default() };
        let answer = self
            .call::<_, view::ListSnapshotsResponseView<'static>, _>(proto::REVIEW_SERVICE_LIST_SNAPSHOTS_SPEC, request)
            .await?;
        each(answer.snapshots)
    }

    /// What putting a file back would do.
    pub async fn plan_restore(&self, snapshot: SnapshotId) -> Result<UndoPlan, ClientError> {
        let view = proto::PreviewView::Content.into();
        let request = proto::PlanRestoreRequest { snapshot, view, ..Default::default() };
        let answer = self
            .call::<_, view::PlanRestoreResponseView<'static>, _>(proto::REVIEW_SERVICE_PLAN_RESTORE_SPEC, request)
            .await?;
        UndoPlan::read(answer.plan)
    }

    /// Puts a file back; where a plan was shown, only if that is still what would happen.
    pub async fn restore(&self, snapshot: SnapshotId, shown: Option<ContentHash>) -> Result<Progress, ClientError> {
        let preview_hash = shown.map(|hash| hash.to_string());
        let request = proto::RestoreRequest { snapshot, preview_hash, ..Default::default() };
        let answer =
            self.call::<_, view::RestoreResponseView<'static>, _>(proto::REVIEW_SERVICE_RESTORE_SPEC, request).await?;
        Progress::of(answer.progress)
    }

    /// Drops contents that only changes before a time need, and ends what waits for nobody.
    pub async fn collect(&self, before: i64, most_bytes: Option<u64>) -> Result<proto::CollectResponse, ClientError> {
        let request = proto::CollectRequest { before_ms: before, most_bytes, ..Default::default() };
        self.call::<_, view::CollectResponseView<'static>, _>(proto::REVIEW_SERVICE_COLLECT_SPEC, request).await
    }
}
