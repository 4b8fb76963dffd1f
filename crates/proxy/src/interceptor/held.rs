//! Entries of the hold table, and the client's side of them.

use std::sync::Arc;

use sayso_review::{PauseReason, RequestEnd, RequestId};
use sayso_wire::RequestPurpose;
use sayso_wire::stream::Api;
use tokio::sync::oneshot;

use super::edits::{OriginalRequest, RequestEdits, RequestSnapshot};
use super::{Attribution, ForwardRequest, Interceptor, RequestMetadata};
use crate::recorder::now;

/// Treatment of a request's edits when it is resumed: saved as overrides, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaveOnResume {
    Yes,
    No,
}

/// End of a hold.
#[derive(Debug)]
pub enum HoldOutcome {
    Forward(ForwardRequest),
    Terminate(RequestEnd),
}

/// The client of a held request. Dropping it before the outcome records that the client disconnected.
#[derive(Debug)]
pub struct HoldGuard {
    pub(super) interceptor: Arc<Interceptor>,
    pub request: RequestId,
    pub api: Option<Api>,
    /// `None` if the body is not a known request.
    pub purpose: Option<RequestPurpose>,
    pub(super) outcome: oneshot::Receiver<HoldOutcome>,
}

impl HoldGuard {
    /// Waits for the outcome. Cancel-safe: the method can be called again after its future was dropped.
    pub async fn outcome(&mut self) -> HoldOutcome {
        // The hold table owns the sender, so it is only dropped without an outcome when the engine goes away.
        (&mut self.outcome).await.unwrap_or(HoldOutcome::Terminate(RequestEnd::EngineStopped))
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        self.interceptor.client_disconnected(self.request, now());
    }
}

/// An entry of the hold table.
#[derive(Debug)]
pub(super) struct HeldRequest {
    pub(super) attribution: Attribution,
    pub(super) metadata: RequestMetadata,
    pub(super) original: Arc<OriginalRequest>,
    pub(super) api: Option<Api>,
    pub(super) reason: PauseReason,
    /// Start of the hold, in milliseconds since 1970.
    pub(super) since: i64,
    pub(super) edits: RequestEdits,
    /// Hashes of the messages. A later request that starts with the same messages supersedes this one.
    pub(super) message_hashes: Vec<String>,
    /// Equal for a client's retry of this request.
    pub(super) retry_key: String,
    pub(super) save_on_resume: SaveOnResume,
    /// A request without tools (a title, a probe) supersedes none with tools.
    pub(super) has_tools: bool,
    /// `true` if the conversation contains an answer of the model.
    pub(super) has_history: bool,
    /// Number of edits, including undone ones.
    pub(super) revision: u64,
    pub(super) outcome: oneshot::Sender<HoldOutcome>,
}

impl HeldRequest {
    /// Copies the references that are needed to parse the request without the state lock.
    pub(super) fn snapshot(&self) -> RequestSnapshot {
        RequestSnapshot { original: Arc::clone(&self.original), edited: self.edits.edited.clone() }
    }
}
