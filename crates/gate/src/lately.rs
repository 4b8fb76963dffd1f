//! What was recorded a moment ago, at hand: whoever proposes, decides and looks does so about the same change, and would have the
//! journal read it back each time.
//!
//! A cache and nothing else. Everything in it was written first, nothing in it is ever changed, and what is not in it is read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sayso_review::{ChangeId, ContentHash, Event, EventBody, Recorded};

/// Changes whose events are at hand, the newest ones.
const CHANGES: usize = 64;
/// Events of one change, after which it is not at hand any more.
const EVENTS: usize = 32;
/// The largest content that is kept at hand.
const LARGEST: usize = 16 << 10;
/// Bytes of contents that are kept at hand.
const BYTES: usize = 512 << 10;

/// What was recorded a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Lately {
    /// All events of a change, from its proposal on.
    changes: BTreeMap<ChangeId, Vec<Arc<Recorded>>>,
    contents: BTreeMap<ContentHash, Arc<[u8]>>,
    /// The contents, oldest first.
    order: VecDeque<ContentHash>,
    bytes: usize,
}

impl Lately {
    /// Adds an event that was recorded.
    pub(crate) fn add(&mut self, recorded: &Arc<Recorded>) {
        let EventBody::Known(event) = &recorded.body else { return };
        let Some(change) = event.change() else { return };
        if matches!(event, Event::Proposed { .. }) {
            self.changes.insert(change, vec![Arc::clone(recorded)]);
            if self.changes.len() > CHANGES {
                self.changes.pop_first();
            }
        } else if let Some(events) = self.changes.get_mut(&change) {
            events.push(Arc::clone(recorded));
            if events.len() > EVENTS {
                self.changes.remove(&change);
            }
        }
    }

    /// Adds a content that was stored.
    pub(crate) fn keep(&mut self, hash: ContentHash, bytes: &[u8]) {
        if bytes.len() > LARGEST || self.contents.contains_key(&hash) {
            return;
        }
        self.bytes += bytes.len();
        self.order.push_back(hash);
        self.contents.insert(hash, bytes.into());
        while self.bytes > BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.contents.remove(&oldest).map_or(0, |bytes| bytes.len());
        }
    }

    /// All events of a change, if they are at hand.
    pub(crate) fn events(&self, change: ChangeId) -> Option<Vec<Arc<Recorded>>> {
        self.changes.get(&change).cloned()
    }

    /// A content, if it is at hand.
    pub(crate) fn content(&self, hash: ContentHash) -> Option<Arc<[u8]>> {
        self.contents.get(&hash).cloned()
    }

    /// Lets go of all contents: some of them may be dropped from the journal, and are not there then for anybody.
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
        recorded(change + 1, Event::Ended { change, outcome: Outcome::Cancelled, told: None })
    }

    #[test]
    fn a_change_is_at_hand_from_its_proposal_on_or_not_at_all() {
        let mut lately = Lately::default();
        lately.add(&ended(1));
        assert_eq!(lately.events(1), None);
        lately.add(&proposed(2));
        lately.add(&ended(2));
        assert_eq!(lately.events(2), Some(vec![proposed(2), ended(2)]));
        for _ in 0..EVENTS {
            lately.add(&ended(2));
        }
        assert_eq!(lately.events(2), None);
    }

    #[test]
    fn the_oldest_changes_go_first() {
        let mut lately = Lately::default();
        for change in 1..=CHANGES as u64 + 1 {
            lately.add(&proposed(change));
        }
        assert_eq!(lately.events(1), None);
        assert!(lately.events(2).is_some());
    }

    #[test]
    fn contents_take_a_bounded_place() {
        let mut lately = Lately::default();
        let content = |number: usize| [number.to_le_bytes().to_vec(), vec![0; LARGEST - 8]].concat();
        let most = BYTES / LARGEST;
        for number in 0..=most {
            let bytes = content(number);
            lately.keep(ContentHash::of(&bytes), &bytes);
        }
        assert_eq!(lately.content(ContentHash::of(&content(0))), None);
        assert_eq!(lately.content(ContentHash::of(&content(most))).as_deref(), Some(&content(most)[..]));
        let large = vec![1; LARGEST + 1];
        lately.keep(ContentHash::of(&large), &large);
        assert_eq!(lately.content(ContentHash::of(&large)), None);
        lately.drop_contents();
        assert_eq!(lately.content(ContentHash::of(&content(most))), None);
    }
}
