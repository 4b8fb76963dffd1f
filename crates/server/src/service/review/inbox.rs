//! Calls about the inbox, and marks for what a person has seen.

use std::collections::VecDeque;
use std::sync::Arc;

use connectrpc::{ConnectError, PreEncoded, RequestContext};
use sayso_api::convert::field;
use sayso_api::proto::watch_inbox_response::Heartbeat;
use sayso_api::proto::{self, InboxItem};
use sayso_review::ErrorKind;
use tokio::sync::watch;

use crate::failure::Failure;
use crate::host::{Host, now, run_as_person};
use crate::inbox::{InboxDelta, InboxSnapshot, MAX_PAGE_ITEMS, encode};
use crate::service::stream::HEARTBEAT_INTERVAL;

pub(super) fn list(host: &Host, request: &proto::ListInboxRequest) -> Result<proto::ListInboxResponse, Failure> {
    host.finish_abandoned()?;
    host.gate.tick(now())?;
    let (snapshot, last_event) = host.inbox.update(host)?;
    let is_listed = |item: &&Arc<InboxItem>| request.session.is_none() || item.session == request.session;
    let items: Vec<&Arc<InboxItem>> = snapshot.items.iter().filter(is_listed).collect();
    let start = match &request.after_key {
        None => 0,
        Some(key) => {
            let index = items.iter().position(|item| item.key == *key);
            1 + index.ok_or_else(|| {
                let message = format!("`{}` is no longer in the inbox", key.escape_debug());
                Failure::new(ErrorKind::Stale, message).hint("list the inbox again from its start")
            })?
        }
    };
    let limit = if request.limit == 0 { MAX_PAGE_ITEMS } else { (request.limit as usize).min(MAX_PAGE_ITEMS) };
    let page = items[start..].iter().take(limit).map(|item| InboxItem::clone(item)).collect::<Vec<_>>();
    Ok(proto::ListInboxResponse {
        has_more: start + page.len() < items.len(),
        total: items.len() as u64,
        items: page,
        last_event,
        ..Default::default()
    })
}

pub(super) fn mark_seen(host: &Host, request: &proto::MarkSeenRequest) -> Result<proto::MarkSeenResponse, Failure> {
    let path = field::path(&request.path, "path")?;
    let hunks = request.hunks.iter().map(|hunk| field::count(*hunk, "hunks"));
    let marks = host.gate.mark_seen(request.change, &path, &hunks.collect::<Result<Vec<_>, _>>()?, now())?;
    Ok(proto::MarkSeenResponse { seen: sayso_api::convert::seen(&marks), ..Default::default() })
}

/// The stream of `WatchInbox`.
pub(super) struct InboxStream {
    host: Arc<Host>,
    receiver: watch::Receiver<Arc<InboxSnapshot>>,
    /// Selects items.
    session: Option<String>,
    /// The list that the client has, once all its pages and deltas are sent.
    sent: Arc<InboxSnapshot>,
    /// Index of the next item of the first pages. `None` after the last page.
    next_page: Option<usize>,
    deltas: VecDeque<Arc<InboxDelta>>,
}

impl InboxStream {
    /// Creates a stream. Fails if the caller is an agent.
    pub(super) async fn new(
        host: &Arc<Host>,
        context: &RequestContext,
        session: Option<String>,
    ) -> Result<Self, ConnectError> {
        let mut receiver = host.inbox.follow(host);
        run_as_person(host, context, |host| host.inbox.update(host)).await?;
        let sent = Arc::clone(&receiver.borrow_and_update());
        Ok(Self { host: Arc::clone(host), receiver, session, sent, next_page: Some(0), deltas: VecDeque::new() })
    }

    /// Produces the next message: the pages of the list, then its differences.
    pub(super) async fn next(mut self) -> Option<(Result<PreEncoded<proto::WatchInboxResponse>, ConnectError>, Self)> {
        if let Some(start) = self.next_page {
            let page = self.host.inbox.page(&self.host, &self.sent, start, self.session.as_deref());
            self.next_page = page.next;
            return Some((Ok(page.message), self));
        }
        loop {
            while let Some(delta) = self.deltas.pop_front() {
                if self.session.is_none() || delta.item.session == self.session {
                    return Some((Ok(delta.message(&self.host.work.inbox_messages)), self));
                }
            }
            match tokio::time::timeout(HEARTBEAT_INTERVAL, self.receiver.changed()).await {
                Err(_) => return Some((Ok(encode(Heartbeat::default())), self)),
                Ok(Err(_)) => return None,
                Ok(Ok(())) => {
                    let current = Arc::clone(&self.receiver.borrow_and_update());
                    if current.has_ended {
                        return None;
                    }
                    self.deltas = self.host.inbox.since(&self.sent, &current).into();
                    self.sent = current;
                }
            }
        }
    }
}
