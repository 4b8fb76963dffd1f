//! The inbox as a list that a client keeps current.

use crate::proto::InboxItem;
use crate::proto::oneof::inbox_item::Subject;
use crate::proto::oneof::watch_inbox_response::Kind;

/// Position of an item. All clients and the engine sort by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InboxPosition {
    /// Start of the wait, in milliseconds since 1970.
    since: i64,
    rank: u8,
    /// Number of the change or request; 0 for a turn.
    number: u64,
    /// Session and turn; empty for other items.
    turn: (String, String),
}

impl InboxPosition {
    pub fn of(item: &InboxItem) -> Self {
        let (rank, number, turn) = match &item.subject {
            Some(Subject::Change(subject)) => (0, subject.change, Default::default()),
            Some(Subject::Turn(subject)) => (1, 0, (subject.session.clone(), subject.turn.clone())),
            Some(Subject::Request(subject)) => (2, subject.request, Default::default()),
            None => (3, 0, (item.key.clone(), String::new())),
        };
        Self { since: item.since_ms, rank, number, turn }
    }
}

/// The effect of a message on an [`InboxList`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InboxUpdate {
    /// The list is complete. The first effect after each connection.
    Listed,
    /// An item with this key is new or has changed.
    Set {
        key: String,
    },
    Removed {
        key: String,
    },
    /// No effect: a part of the list, a keep-alive, or a message of a newer version.
    Unchanged,
}

/// The items of an inbox, folded from the messages of `WatchInbox`.
#[derive(Clone, Debug, Default)]
pub struct InboxList {
    items: Vec<InboxItem>,
    /// Items of the pages received so far, while the list is not complete.
    pages: Vec<InboxItem>,
}

impl InboxList {
    pub fn new(items: Vec<InboxItem>) -> Self {
        let mut list = Self { items, pages: Vec::new() };
        list.items.sort_by_cached_key(InboxPosition::of);
        list
    }

    /// Items in the order of the inbox.
    pub fn items(&self) -> &[InboxItem] {
        &self.items
    }

    pub fn get(&self, key: &str) -> Option<&InboxItem> {
        self.items.iter().find(|item| item.key == key)
    }

    /// Applies a message of the stream.
    pub fn apply(&mut self, message: Kind) -> InboxUpdate {
        match message {
            Kind::Page(page) => {
                self.pages.extend(page.items);
                if page.has_more {
                    return InboxUpdate::Unchanged;
                }
                *self = Self::new(std::mem::take(&mut self.pages));
                InboxUpdate::Listed
            }
            Kind::Added(item) | Kind::Updated(item) => {
                let key = item.key.clone();
                self.remove(&key);
                let position = InboxPosition::of(&item);
                let index = self.items.partition_point(|other| InboxPosition::of(other) < position);
                self.items.insert(index, *item);
                InboxUpdate::Set { key }
            }
            Kind::Removed(key) => {
                self.remove(&key);
                InboxUpdate::Removed { key }
            }
            Kind::Heartbeat(_) => InboxUpdate::Unchanged,
        }
    }

    /// Drops the pages of a connection that was lost.
    pub fn restart(&mut self) {
        self.pages.clear();
    }

    fn remove(&mut self, key: &str) {
        self.items.retain(|item| item.key != key);
    }
}
