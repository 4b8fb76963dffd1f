//! A pending change with its preview, and the result of a change that others decided.

use std::time::Duration;

use sayso_api::client::{ChangeDetails, PreviewDetail, PreviewOf};
use sayso_present::change::decided_elsewhere_text;
use sayso_review::{Answer, ChangeRecord, ChangeStatus, Comment, Decider, ErrorKind, Placement, Preview, Verdict};

use crate::engine::{DEADLINE_RULE, EngineConnection};
use crate::error::CliError;
use crate::output::say;

/// Time for a decided change to reach the tree.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);

/// A change that a person is asked about. Its diff is fetched when it is drawn.
pub(crate) struct Pending {
    pub(crate) record: ChangeRecord,
    /// The contents, if the call that returned the change had them.
    preview: Option<Preview>,
}

impl Pending {
    /// Fetches a change. It may be decided by now.
    pub(crate) fn get(engine: &EngineConnection, change: u64) -> Result<Self, CliError> {
        let details = engine.client().get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed);
        Ok(Self::from_details(engine.block(details)?))
    }

    pub(crate) fn from_details(details: ChangeDetails) -> Self {
        Self { record: details.record, preview: details.preview }
    }

    /// Returns the preview with its contents. Fails if they are no longer stored.
    pub(crate) fn preview(&self, engine: &EngineConnection) -> Result<Preview, CliError> {
        if let Some(preview) = &self.preview {
            return Ok(preview.clone());
        }
        let details = engine.client().get_change(self.change(), PreviewDetail::Contents, PreviewOf::Proposed);
        engine.block(details)?.preview.ok_or_else(|| {
            let message = format!("the content of change {} is no longer stored", self.change());
            CliError::new(ErrorKind::Stale, message).hint("contents are dropped by `sayso gc` when they are old")
        })
    }

    /// The place where the proposed content is.
    pub(crate) fn placement(&self) -> Placement {
        if self.record.is_review() { Placement::InPlace } else { Placement::Proposed }
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.record.status == ChangeStatus::Pending
    }

    pub(crate) fn change(&self) -> u64 {
        self.record.change
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.record.origin.session.as_deref()
    }

    /// Makes a person's verdict on the preview.
    pub(crate) fn verdict(&self, answer: Answer, comments: Vec<Comment>) -> Verdict {
        Verdict { preview: self.record.preview, answer, comments, message: None, by: Decider::PERSON }
    }
}

/// Withdraws a change. Has no effect on a decided change.
pub(crate) fn withdraw(engine: &EngineConnection, change: u64) {
    let _ = engine.wait(engine.client().withdraw(change));
}

/// Reports why a change is no longer pending, and returns its final state.
pub(crate) fn report_decided_elsewhere(engine: &EngineConnection, change: u64) -> Result<ChangeRecord, CliError> {
    let record = settled(engine, change)?;
    say(decided_elsewhere_text(&record, DEADLINE_RULE));
    Ok(record)
}

/// Returns a decided change once its effect is in the tree, at the latest after [`SETTLE_TIMEOUT`].
pub(crate) fn settled(engine: &EngineConnection, change: u64) -> Result<ChangeRecord, CliError> {
    let client = engine.client();
    let outcome =
        async { tokio::time::timeout(SETTLE_TIMEOUT, client.await_outcome(change, PreviewDetail::Omitted)).await };
    match engine.wait(outcome) {
        Ok(details) => Ok(details?.record),
        // The engine's next start settles it.
        Err(_) => Ok(engine.block(client.get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed))?.record),
    }
}
