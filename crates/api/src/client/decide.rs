//! Deciding, exactly once.

use connectrpc::ErrorCode;
use sayso_review::{Cause, ChangeId, ChangeStatus, ErrorKind, FromNowOn, Verdict};

use super::answers::{Progress, View};
use super::error::{ClientError, Ended};
use super::patience::Backoff;
use super::{Client, Shown};
use crate::error::RemoteError;
use crate::proto;
use crate::proto::__buffa::view::DecideResponseView;

impl Client {
    /// Answers a preview, and carries the answer out. Where the call was cut, what became of the change tells whether it arrived.
    pub async fn decide(
        &self,
        change: ChangeId,
        verdict: Verdict,
        from_now_on: Option<FromNowOn>,
        view: View,
    ) -> Result<Progress, ClientError> {
        let request = proto::DecideRequest {
            change,
            verdict: Some((&verdict).into()).into(),
            from_now_on: from_now_on.as_ref().map(Into::into).into(),
            view: proto::PreviewView::from(view).into(),
            ..Default::default()
        };
        let mut backoff = Backoff::new(self.patience);
        loop {
            let once =
                self.once::<_, DecideResponseView<'static>, _>(proto::REVIEW_SERVICE_DECIDE_SPEC, request.clone());
            match once.await {
                Ok(answer) => return Progress::of(answer.progress),
                Err(Ended::Answered(error)) => return Err(error),
                Err(Ended::Unsent(why)) => backoff.again(why).await?,
                Err(Ended::Cut(why)) => {
                    if let Some(progress) = self.decided_meanwhile(change, &verdict, view).await? {
                        return Ok(progress);
                    }
                    backoff.again(why).await?;
                }
            }
        }
    }

    /// What became of a change after a verdict on it was sent; `None` if it waits still.
    async fn decided_meanwhile(
        &self,
        change: ChangeId,
        verdict: &Verdict,
        view: View,
    ) -> Result<Option<Progress>, ClientError> {
        let mut progress = self.get_change(change, View::Nothing, Shown::Proposed).await?;
        let record = &progress.record;
        if record.status == ChangeStatus::Pending {
            // Should it show something else by now, the engine refuses the verdict by itself.
            return Ok(None);
        }
        if record.verdict.as_ref() != Some(verdict) {
            let message = format!("change {change} is {} meanwhile", record.status);
            let hint = Some(format!("`sayso show {change}` tells more"));
            return Err(
                RemoteError { kind: ErrorKind::Conflict, code: ErrorCode::FailedPrecondition, message, hint }.into()
            );
        }
        if record.status == ChangeStatus::Stale {
            let waiting = self.list_pending(None, view).await?;
            let next = waiting.into_iter().find(|other| match &other.record.cause {
                Cause::Rebase { of } => *of == change,
                cause @ Cause::Review { .. } => *cause == record.cause,
                _ => false,
            });
            if let Some(next) = next {
                (progress.next, progress.preview) = (Some(next.record.change), next.preview);
            }
        }
        Ok(Some(progress))
    }
}
