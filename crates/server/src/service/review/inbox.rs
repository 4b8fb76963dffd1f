//! Calls about the inbox, and marks for what a person has seen.

use std::collections::VecDeque;
use std::sync::Arc;

use connectrpc::ConnectError;
use sayso_api::convert::field;
use sayso_api::proto::watch_inbox_response::{Heartbeat, Page};
use sayso_api::proto::{self, InboxItem, oneof};
use sayso_review::ErrorKind;
use tokio::sync::watch;

use crate::caller::Peer;
use crate::failure::Failure;
use crate::host::{Host, blocking, now};
use crate::inbox::{InboxDelta, InboxSnapshot};
use crate::service::stream::HEARTBEAT_INTERVAL;

/// Largest number of items in one message.
const MAX_PAGE_ITEMS: usize = 1_000;

/// The items that a caller may see.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    session: Option<String>,
    /// Requests are for persons only.
    includes_requests: bool,
}

impl Filter {
    fn new(host: &Host, peer: Option<Peer>, session: Option<String>) -> Self {
        Self { session, includes_requests: Peer::require_person(peer, &host.agents).is_ok() }
    }

    fn matches(&self, item: &InboxItem) -> bool {
        let is_request = matches!(item.subject, Some(oneof::inbox_item::Subject::Request(_)));
        (self.includes_requests || !is_request) && (self.session.is_none() || item.session == self.session)
    }
}

pub(super) fn list(
    host: &Host,
    peer: Option<Peer>,
    request: proto::ListInboxRequest,
) -> Result<proto::ListInboxResponse, Failure> {
    host.finish_abandoned()?;
    host.gate.tick(now())?;
    let filter = Filter::new(host, peer, request.session);
    let (snapshot, last_event) = host.inbox.update(host)?;
    let items: Vec<&Arc<InboxItem>> = snapshot.items.iter().filter(|item| filter.matches(item)).collect();
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
    receiver: watch::Receiver<Arc<InboxSnapshot>>,
    filter: Filter,
    /// The list that the client has, once all its pages and deltas are sent.
    sent: Arc<InboxSnapshot>,
    /// Index of the next item of the first pages. `None` after the last page.
    next_page: Option<usize>,
    deltas: VecDeque<InboxDelta>,
}

impl InboxStream {
    pub(super) async fn new(
        host: &Arc<Host>,
        peer: Option<Peer>,
        session: Option<String>,
    ) -> Result<Self, ConnectError> {
        let mut receiver = host.inbox.follow(host);
        let filter = blocking(host, move |host| {
            let filter = Filter::new(host, peer, session);
            host.inbox.update(host)?;
            Ok(filter)
        });
        let filter = filter.await?;
        let sent = Arc::clone(&receiver.borrow_and_update());
        Ok(Self { receiver, filter, sent, next_page: Some(0), deltas: VecDeque::new() })
    }

    /// Produces the next message: the pages of the list, then its differences.
    pub(super) async fn next(mut self) -> Option<(Result<proto::WatchInboxResponse, ConnectError>, Self)> {
        if let Some(start) = self.next_page {
            let page = self.page(start);
            return Some((Ok(response(page)), self));
        }
        loop {
            while let Some(delta) = self.deltas.pop_front() {
                if self.filter.matches(delta.item()) {
                    return Some((Ok(response(message(&delta))), self));
                }
            }
            match tokio::time::timeout(HEARTBEAT_INTERVAL, self.receiver.changed()).await {
                Err(_) => return Some((Ok(response(Heartbeat::default())), self)),
                Ok(Err(_)) => return None,
                Ok(Ok(())) => {
                    let current = Arc::clone(&self.receiver.borrow_and_update());
                    if current.has_ended {
                        return None;
                    }
                    self.deltas = current.since(&self.sent).into();
                    self.sent = current;
                }
            }
        }
    }

    /// Builds the page that starts at an index.
    fn page(&mut self, start: usize) -> Page {
        let mut page = Page::default();
        self.next_page = None;
        for (index, item) in self.sent.items.iter().enumerate().skip(start) {
            if !self.filter.matches(item) {
                continue;
            }
            if page.items.len() == MAX_PAGE_ITEMS {
                page.has_more = true;
                self.next_page = Some(index);
                break;
            }
            page.items.push(InboxItem::clone(item));
        }
        page
    }
}

fn message(delta: &InboxDelta) -> oneof::watch_inbox_response::Kind {
    use oneof::watch_inbox_response::Kind;
    match delta {
        InboxDelta::Added(item) => Kind::Added(Box::new(InboxItem::clone(item))),
        InboxDelta::Updated(item) => Kind::Updated(Box::new(InboxItem::clone(item))),
        InboxDelta::Removed(item) => Kind::Removed(item.key.clone()),
    }
}

fn response(kind: impl Into<oneof::watch_inbox_response::Kind>) -> proto::WatchInboxResponse {
    proto::WatchInboxResponse { kind: Some(kind.into()), ..Default::default() }
}
