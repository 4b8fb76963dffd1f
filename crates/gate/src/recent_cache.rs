//! Cache of recently recorded events and contents. Proposing, deciding and displaying a change follow each other, and
//! would each read the journal.
//!
//! It is only a cache: entries are written to the journal first and never change, and misses are read from the journal.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sayso_review::{ChangeId, ContentHash, Event, EventBody, Recorded};

/// Maximum number of cached changes; the oldest are dropped first.
const MAX_CHANGES: usize = 64;
/// Changes with more events are not cached.
const MAX_EVENTS_PER_CHANGE: usize = 32;
/// Larger contents are not cached.
const MAX_CONTENT_BYTES: usize = 16 << 10;
const MAX_TOTAL_BYTES: usize = 512 << 10;

#[derive(Debug, Default)]
pub(crate) struct RecentCache {
    /// All events of a change, including its proposal.
    changes: BTreeMap<ChangeId, Vec<Arc<Recorded>>>,
    contents: BTreeMap<ContentHash, Arc<[u8]>>,
    /// Hashes of the contents, oldest first.
    order: VecDeque<ContentHash>,
    bytes: usize,
}

impl RecentCache {
    /// Adds a recorded event.
    pub(crate) fn add_event(&mut self, recorded: &Arc<Recorded>) {
        let EventBody::Known(event) = &recorded.body else { return };
        if matches!(event, Event::HunksSeen { .. }) {
            // Marks are not part of the change's record, and have a key of their own.
            return;
        }
        let Some(change) = event.change() else { return };
        if matches!(event, Event::Proposed { .. }) {
            self.changes.insert(change, vec![Arc::clone(recorded)]);
            if self.changes.len() > MAX_CHANGES {
                self.changes.pop_first();
            }
        } else if let Some(events) = self.changes.get_mut(&change) {
            events.push(Arc::clone(recorded));
            if events.len() > MAX_EVENTS_PER_CHANGE {
                self.changes.remove(&change);
            }
        }
    }

    /// Adds a stored content.
    pub(crate) fn add_content(&mut self, hash: ContentHash, bytes: &[u8]) {
        if bytes.len() > MAX_CONTENT_BYTES || self.contents.contains_key(&hash) {
            return;
        }
        self.bytes += bytes.len();
        self.order.push_back(hash);
        self.contents.insert(hash, bytes.into());
        while self.bytes > MAX_TOTAL_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.contents.remove(&oldest).map_or(0, |bytes| bytes.len());
        }
    }

    /// Returns all events of a change, if cached.
    pub(crate) fn events(&self, change: ChangeId) -> Option<Vec<Arc<Recorded>>> {
        self.changes.get(&change).cloned()
    }

    /// Returns a content, if cached.
    pub(crate) fn content(&self, hash: ContentHash) -> Option<Arc<[u8]>> {
        self.contents.get(&hash).cloned()
    }

    /// Clears the contents, because a collection may have deleted some of them from the journal.
    pub(crate) fn drop_contents(&mut self) {
        self.contents.clear();
        self.order.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use sayso_review::Outcome;

    use super::*;

    fn recorded(number: u64, event: Event) -> Arc<Recorded> {
        Arc::new(Recorded { number, time: 0, body: EventBody::Known(event) })
    }

    fn proposed(change: ChangeId) -> Arc<Recorded> {
        let text = r#"{"event":"proposed","change":CHANGE,"origin":{},"cause":{"cause":"proposal"},"files":[],
            "preview":"HASH"}"#;
        let hash = ContentHash::of(b"").to_string();
        let body = EventBody::decode(text.replace("CHANGE", &change.to_string()).replace("HASH", &hash).as_bytes());
        assert!(matches!(body, EventBody::Known(Event::Proposed { .. })), "{body:?}");
        Arc::new(Recorded { number: change, time: 0, body })
    }

    fn ended(change: ChangeId) -> Arc<Recorded> {
        recorded(change + 1, Event::Ended { change, outcome: Outcome::Cancelled, agent_message: None })
    }

    #[test]
    fn change_without_proposal_is_not_cached() {
        let mut cache = RecentCache::default();
        cache.add_event(&ended(1));
        assert_eq!(cache.events(1), None);
        cache.add_event(&proposed(2));
        cache.add_event(&ended(2));
        assert_eq!(cache.events(2), Some(vec![proposed(2), ended(2)]));
        for _ in 0..MAX_EVENTS_PER_CHANGE {
            cache.add_event(&ended(2));
        }
        assert_eq!(cache.events(2), None);
    }

    #[test]
    fn oldest_changes_are_evicted_first() {
        let mut cache = RecentCache::default();
        for change in 1..=MAX_CHANGES as u64 + 1 {
            cache.add_event(&proposed(change));
        }
        assert_eq!(cache.events(1), None);
        assert!(cache.events(2).is_some());
    }

    #[test]
    fn cached_contents_stay_within_limits() {
        let mut cache = RecentCache::default();
        let content = |number: usize| [number.to_le_bytes().to_vec(), vec![0; MAX_CONTENT_BYTES - 8]].concat();
        let last = MAX_TOTAL_BYTES / MAX_CONTENT_BYTES;
        for number in 0..=last {
            let bytes = content(number);
            cache.add_content(ContentHash::of(&bytes), &bytes);
        }
        assert_eq!(cache.content(ContentHash::of(&content(0))), None);
        assert_eq!(cache.content(ContentHash::of(&content(last))).as_deref(), Some(&content(last)[..]));
        let large = vec![1; MAX_CONTENT_BYTES + 1];
        cache.add_content(ContentHash::of(&large), &large);
        assert_eq!(cache.content(ContentHash::of(&large)), None);
        cache.drop_contents();
        assert_eq!(cache.content(ContentHash::of(&content(last))), None);
    }
}
