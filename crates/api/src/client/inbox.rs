//! Calls about the inbox, surfaces and marks.

use sayso_review::{ChangeId, ErrorKind, RememberAs, SeenMarks, Surface, WsPath};

use super::Client;
use super::call::ResponseStream;
use super::error::{CallFailure, ClientError};
use super::responses::{ChangeDetails, PreviewDetail};
use super::retry::{Backoff, RetryBudget};
use super::watch::next_message;
use crate::convert::field;
use crate::inbox::{InboxList, InboxUpdate};
use crate::proto;
use crate::proto::__buffa::view;
use crate::proto::oneof::await_change_response::Kind as AwaitKind;

/// Attempts to list an inbox that changes between its pages.
const LIST_ATTEMPTS: usize = 10;

/// A surface that is attached to the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedSurface {
    /// Number of the attachment.
    pub id: u64,
    pub surface: Surface,
    /// Start of the attachment, in milliseconds since 1970.
    pub since: i64,
}

impl From<proto::AttachedSurface> for AttachedSurface {
    fn from(attached: proto::AttachedSurface) -> Self {
        let surface = attached.surface.into_option().unwrap_or_default().into();
        Self { id: attached.id, surface, since: attached.since_ms }
    }
}

/// A rule that a verdict would create, and the past decisions that it would have covered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSuggestion {
    /// The rule as it is written in a configuration file.
    pub toml: String,
    /// Configuration file that the rule goes to. `None` for a rule of the session.
    pub file: Option<String>,
    /// Session that the rule goes to. `None` for a rule in a file.
    pub session: Option<String>,
    /// The rule in words.
    pub explanation: String,
    /// Number of inspected decisions, the latest ones.
    pub inspected: u32,
    /// Newest first.
    pub covered: Vec<CoveredDecision>,
}

/// A decision that a rule would have covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoveredDecision {
    pub change: ChangeId,
    /// `true` if the change was approved, at least in part.
    pub approved: bool,
    /// `true` if a person decided, `false` if a rule did.
    pub by_person: bool,
}

impl From<proto::SuggestRuleResponse> for RuleSuggestion {
    fn from(response: proto::SuggestRuleResponse) -> Self {
        let covered = response.covered.into_iter().map(|decision| CoveredDecision {
            change: decision.change,
            approved: decision.approved,
            by_person: decision.by_person,
        });
        Self {
            toml: response.rule_toml,
            file: response.file,
            session: response.session,
            explanation: response.explanation,
            inspected: response.inspected,
            covered: covered.collect(),
        }
    }
}

/// The inbox, kept current across lost connections and restarted engines.
#[derive(Debug)]
pub struct InboxWatch {
    client: Client,
    session: Option<String>,
    list: InboxList,
    backoff: Backoff,
    stream: Option<Box<ResponseStream<view::WatchInboxResponseView<'static>>>>,
}

impl InboxWatch {
    /// The list after the last update.
    pub fn list(&self) -> &InboxList {
        &self.list
    }

    /// Returns the next update of the list. Cancel-safe: dropping the future loses no update.
    pub async fn next(&mut self) -> Result<InboxUpdate, ClientError> {
        loop {
            match self.receive().await {
                Ok(InboxUpdate::Unchanged) => {}
                Ok(update) => return Ok(update),
                Err(CallFailure::Remote(error)) => return Err(error),
                Err(CallFailure::NotSent(cause) | CallFailure::ConnectionLost(cause)) => {
                    self.stream = None;
                    self.list.restart();
                    self.backoff.wait(cause).await?;
                }
            }
        }
    }

    async fn receive(&mut self) -> Result<InboxUpdate, CallFailure> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let request = proto::WatchInboxRequest { session: self.session.clone(), ..Default::default() };
                let stream = self.client.stream(proto::REVIEW_SERVICE_WATCH_INBOX_SPEC, request).await?;
                none.insert(Box::new(stream))
            }
        };
        let message = next_message(stream).await?;
        self.backoff.reset();
        Ok(message.kind.map_or(InboxUpdate::Unchanged, |kind| self.list.apply(kind)))
    }
}

impl Client {
    /// Lists the inbox of a session. `None` is all sessions.
    pub async fn list_inbox(&self, session: Option<&str>) -> Result<InboxList, ClientError> {
        let mut attempts = 0;
        loop {
            match self.inbox_pages(session).await {
                Err(ClientError::Remote(error)) if error.kind == ErrorKind::Stale && attempts < LIST_ATTEMPTS => {
                    attempts += 1;
                }
                listed => return listed.map(InboxList::new),
            }
        }
    }

    /// Reads all pages. Fails with `Stale` if the last item of a page is gone before the next page is read.
    async fn inbox_pages(&self, session: Option<&str>) -> Result<Vec<proto::InboxItem>, ClientError> {
        let mut items: Vec<proto::InboxItem> = Vec::new();
        loop {
            let request = proto::ListInboxRequest {
                session: session.map(str::to_owned),
                after_key: items.last().map(|item| item.key.clone()),
                ..Default::default()
            };
            let page = self
                .call::<_, view::ListInboxResponseView<'static>, _>(proto::REVIEW_SERVICE_LIST_INBOX_SPEC, request)
                .await?;
            let is_last = !page.has_more || page.items.is_empty();
            items.extend(page.items);
            if is_last {
                return Ok(items);
            }
        }
    }

    /// Follows the inbox of a session. `None` is all sessions.
    pub fn watch_inbox(&self, session: Option<&str>, budget: RetryBudget) -> InboxWatch {
        let session = session.map(str::to_owned);
        let (list, backoff) = (InboxList::default(), Backoff::new(budget));
        InboxWatch { client: self.clone(), session, list, backoff, stream: None }
    }

    /// Waits until a change is no longer pending, across lost connections. For persons and agents.
    pub async fn await_change(&self, change: ChangeId, detail: PreviewDetail) -> Result<ChangeDetails, ClientError> {
        let view = proto::PreviewView::from(detail).into();
        let request = proto::AwaitChangeRequest { change, view, ..Default::default() };
        let mut backoff = Backoff::new(self.retry_budget);
        loop {
            match self.await_change_once(request.clone(), &mut backoff).await {
                Ok(details) => return ChangeDetails::decode(details),
                Err(CallFailure::Remote(error)) => return Err(error),
                Err(CallFailure::NotSent(cause) | CallFailure::ConnectionLost(cause)) => backoff.wait(cause).await?,
            }
        }
    }

    async fn await_change_once(
        &self,
        request: proto::AwaitChangeRequest,
        backoff: &mut Backoff,
    ) -> Result<proto::ChangeDetails, CallFailure> {
        let spec = proto::REVIEW_SERVICE_AWAIT_CHANGE_SPEC;
        let mut stream = self.stream::<_, view::AwaitChangeResponseView<'static>, _>(spec, request).await?;
        loop {
            let message = next_message(&mut stream).await?;
            backoff.reset();
            if let Some(AwaitKind::Details(details)) = message.kind {
                return Ok(*details);
            }
        }
    }

    /// Records that hunks of a pending change were on screen. Returns all marks of the change.
    pub async fn mark_seen(&self, change: ChangeId, path: &WsPath, hunks: &[usize]) -> Result<SeenMarks, ClientError> {
        let hunks = hunks.iter().map(|hunk| *hunk as u64).collect();
        let request = proto::MarkSeenRequest { change, path: path.to_string(), hunks, ..Default::default() };
        let response = self
            .call::<_, view::MarkSeenResponseView<'static>, _>(proto::REVIEW_SERVICE_MARK_SEEN_SPEC, request)
            .await?;
        seen_marks(&response.seen).map_err(ClientError::bad)
    }

    /// Records that a person has read all events up to a number. Returns the number that counts.
    pub async fn mark_read(&self, through: u64) -> Result<u64, ClientError> {
        let request = proto::MarkReadRequest { through, ..Default::default() };
        let response = self
            .call::<_, view::MarkReadResponseView<'static>, _>(proto::REVIEW_SERVICE_MARK_READ_SPEC, request)
            .await?;
        Ok(response.through)
    }

    /// Lists the attached surfaces, in the order of attachment.
    pub async fn list_surfaces(&self) -> Result<Vec<AttachedSurface>, ClientError> {
        let request = proto::ListSurfacesRequest::default();
        let response = self
            .call::<_, view::ListSurfacesResponseView<'static>, _>(proto::REVIEW_SERVICE_LIST_SURFACES_SPEC, request)
            .await?;
        Ok(response.surfaces.into_iter().map(AttachedSurface::from).collect())
    }

    /// Returns the rule that a verdict on a pending change would create. Changes nothing.
    pub async fn suggest_rule(&self, change: ChangeId, remember_as: RememberAs) -> Result<RuleSuggestion, ClientError> {
        let remember_as = Some((&remember_as).into()).into();
        let request = proto::SuggestRuleRequest { change, remember_as, ..Default::default() };
        let response = self
            .call::<_, view::SuggestRuleResponseView<'static>, _>(proto::REVIEW_SERVICE_SUGGEST_RULE_SPEC, request)
            .await?;
        Ok(response.into())
    }
}

/// Reads the marks of a change.
pub(super) fn seen_marks(files: &[proto::SeenFile]) -> Result<SeenMarks, crate::convert::BadMessage> {
    let mut marks = SeenMarks::default();
    for (index, file) in files.iter().enumerate() {
        let path = field::path(&file.path, &format!("seen[{index}].path"))?;
        let hunks = marks.files.entry(path).or_default();
        for hunk in &file.hunks {
            hunks.insert(field::count(*hunk, &format!("seen[{index}].hunks"))?);
        }
    }
    Ok(marks)
}
