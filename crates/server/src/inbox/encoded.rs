//! Messages of the inbox, encoded once for all watchers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use connectrpc::PreEncoded;
use sayso_api::proto::watch_inbox_response::Page;
use sayso_api::proto::{self, InboxItem, oneof};

use super::InboxSnapshot;
use crate::work::WorkCounter;

/// Largest number of items in one message.
pub(crate) const MAX_PAGE_ITEMS: usize = 1_000;
/// Pages in memory. Watchers that connect at the same time share them.
const MAX_CACHED_PAGES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeltaKind {
    Added,
    Updated,
    Removed,
}

/// A difference between two lists.
#[derive(Debug)]
pub(crate) struct InboxDelta {
    pub(super) kind: DeltaKind,
    pub(crate) item: Arc<InboxItem>,
    message: OnceLock<PreEncoded<proto::WatchInboxResponse>>,
}

impl InboxDelta {
    pub(super) fn new(kind: DeltaKind, item: &Arc<InboxItem>) -> Arc<Self> {
        Arc::new(Self { kind, item: Arc::clone(item), message: OnceLock::new() })
    }

    pub(crate) fn message(&self, encoded: &WorkCounter) -> PreEncoded<proto::WatchInboxResponse> {
        use oneof::watch_inbox_response::Kind;
        let item = || Box::new(InboxItem::clone(&self.item));
        let message = self.message.get_or_init(|| {
            encoded.add(1);
            encode(match self.kind {
                DeltaKind::Added => Kind::Added(item()),
                DeltaKind::Updated => Kind::Updated(item()),
                DeltaKind::Removed => Kind::Removed(self.item.key.clone()),
            })
        });
        message.clone()
    }
}

pub(crate) fn encode(kind: impl Into<oneof::watch_inbox_response::Kind>) -> PreEncoded<proto::WatchInboxResponse> {
    PreEncoded::from_message(&proto::WatchInboxResponse { kind: Some(kind.into()), ..Default::default() })
}

/// A part of a list.
#[derive(Clone, Debug)]
pub(crate) struct EncodedPage {
    pub(crate) message: PreEncoded<proto::WatchInboxResponse>,
    /// Index of the first item of the next page. `None` for the last page.
    pub(crate) next: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct InboxPageKey {
    generation: u64,
    start: usize,
    session: Option<String>,
}

/// The pages that were sent last.
#[derive(Debug, Default)]
pub(super) struct InboxPages(Mutex<VecDeque<(InboxPageKey, EncodedPage)>>);

impl InboxPages {
    /// Returns the page of a list that starts at an index. `session` selects items.
    pub(super) fn page(
        &self,
        list: &InboxSnapshot,
        start: usize,
        session: Option<&str>,
        encoded: &WorkCounter,
    ) -> EncodedPage {
        let key = InboxPageKey { generation: list.generation, start, session: session.map(str::to_owned) };
        // Held while a page is encoded, so that no second watcher encodes the same page.
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = pages.iter().find(|(known, _)| *known == key) {
            return found.clone();
        }
        encoded.add(1);
        let page = encode_page(list, start, session);
        if pages.len() == MAX_CACHED_PAGES {
            pages.pop_front();
        }
        pages.push_back((key, page.clone()));
        page
    }
}

fn encode_page(list: &InboxSnapshot, start: usize, session: Option<&str>) -> EncodedPage {
    let (mut page, mut next) = (Page::default(), None);
    for (index, item) in list.items.iter().enumerate().skip(start) {
        if session.is_some() && item.session.as_deref() != session {
            continue;
        }
        if page.items.len() == MAX_PAGE_ITEMS {
            page.has_more = true;
            next = Some(index);
            break;
        }
        page.items.push(InboxItem::clone(item));
    }
    EncodedPage { message: encode(page), next }
}
