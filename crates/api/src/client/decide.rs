//! Verdicts that count exactly once, even if the connection is lost.

use connectrpc::ErrorCode;
use sayso_review::{Cause, ChangeId, ChangeStatus, ErrorKind, RememberAs, Verdict};

use super::error::{CallFailure, ClientError};
use super::responses::{ChangeDetails, PreviewDetail};
use super::retry::Backoff;
use super::{Client, PreviewOf};
use crate::error::RemoteError;
use crate::proto;
use crate::proto::__buffa::view::DecideResponseView;

impl Client {
    /// Decides a pending change. If the response is lost, the state of the change tells if the verdict arrived.
    pub async fn decide(
        &self,
        change: ChangeId,
        verdict: Verdict,
        remember_as: Option<RememberAs>,
        detail: PreviewDetail,
    ) -> Result<ChangeDetails, ClientError> {
        let request = proto::DecideRequest {
            change,
            verdict: Some((&verdict).into()).into(),
            remember_as: remember_as.as_ref().map(Into::into).into(),
            view: proto::PreviewView::from(detail).into(),
            surface: self.surface.as_ref().map(proto::Surface::from).into(),
            ..Default::default()
        };
        let mut backoff = Backoff::new(self.retry_budget);
        loop {
            let once =
                self.once::<_, DecideResponseView<'static>, _>(proto::REVIEW_SERVICE_DECIDE_SPEC, request.clone());
            match once.await {
                Ok(response) => return ChangeDetails::decode_field(response.details),
                Err(CallFailure::Remote(error)) => return Err(error),
                Err(CallFailure::NotSent(cause)) => backoff.wait(cause).await?,
                Err(CallFailure::ConnectionLost(cause)) => {
                    if let Some(details) = self.decided_meanwhile(change, &verdict, detail).await? {
                        return Ok(details);
                    }
                    backoff.wait(cause).await?;
                }
            }
        }
    }

    /// Returns the change if it is decided with this verdict, and `None` if it is still pending.
    async fn decided_meanwhile(
        &self,
        change: ChangeId,
        verdict: &Verdict,
        detail: PreviewDetail,
    ) -> Result<Option<ChangeDetails>, ClientError> {
        let mut details = self.get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed).await?;
        let record = &details.record;
        if record.status == ChangeStatus::Pending {
            // Sending the verdict again is safe: the engine rejects it if the preview has changed.
            return Ok(None);
        }
        if !record.verdict.as_ref().is_some_and(|recorded| is_same(recorded, verdict)) {
            return Err(RemoteError {
                kind: ErrorKind::Conflict,
                code: ErrorCode::FailedPrecondition,
                message: format!("change {change} has been decided meanwhile and is {}", record.status),
                hint: Some(format!("run `sayso show {change}` for details")),
                data: None,
            }
            .into());
        }
        if record.status == ChangeStatus::Stale {
            let pending = self.list_pending(None, detail).await?;
            let merged = pending.into_iter().find(|other| match &other.record.cause {
                Cause::Rebase { original } => *original == change,
                cause @ Cause::Review { .. } => *cause == record.cause,
                _ => false,
            });
            if let Some(merged) = merged {
                (details.merged_change, details.preview) = (Some(merged.record.change), merged.preview);
            }
        }
        Ok(Some(details))
    }
}

/// `true` if the engine recorded this verdict. It sets the decider itself.
fn is_same(recorded: &Verdict, sent: &Verdict) -> bool {
    recorded.by.is_person()
        && recorded.preview == sent.preview
        && recorded.answer == sent.answer
        && recorded.comments == sent.comments
}
