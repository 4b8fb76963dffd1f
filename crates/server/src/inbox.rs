//! The inbox: one ordered list of what waits for a person.
//!
//! The list is computed once for each event and shared by all calls and watchers, and so are its encoded messages. A watcher keeps a
//! reference to the list that it sent last, and sends the difference to the current one. So nothing queues up for a slow watcher, and
//! it misses nothing.

mod board;
mod encoded;
mod item;
mod reason;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sayso_api::inbox::InboxPosition;
use sayso_api::proto::InboxItem;

pub(crate) use board::InboxBoard;
use encoded::DeltaKind;
pub(crate) use encoded::{InboxDelta, MAX_PAGE_ITEMS, encode};

/// A list of the inbox at one time.
#[derive(Debug, Default)]
pub(crate) struct InboxSnapshot {
    /// Number of the list; each differs from the one before.
    pub(crate) generation: u64,
    /// In the order of [`InboxPosition`].
    pub(crate) items: Vec<Arc<InboxItem>>,
    /// `true` once the engine stops.
    pub(crate) has_ended: bool,
}

/// Returns the differences between two lists: removals first, then the others in the order of the new list.
fn diff(old: &[Arc<InboxItem>], new: &[Arc<InboxItem>]) -> Vec<Arc<InboxDelta>> {
    // Most items are the same objects, and most changes are at the end.
    let same = |(old, new): &(&Arc<InboxItem>, &Arc<InboxItem>)| Arc::ptr_eq(old, new);
    let prefix = old.iter().zip(new).take_while(same).count();
    let (old, new) = (&old[prefix..], &new[prefix..]);
    let suffix = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let (old, new) = (&old[..old.len() - suffix], &new[..new.len() - suffix]);
    let mut before: HashMap<&str, &Arc<InboxItem>> = old.iter().map(|item| (item.key.as_str(), item)).collect();
    let mut set = Vec::new();
    for item in new {
        match before.remove(item.key.as_str()) {
            None => set.push(InboxDelta::new(DeltaKind::Added, item)),
            Some(earlier) if Arc::ptr_eq(earlier, item) || earlier == item => {}
            Some(_) => set.push(InboxDelta::new(DeltaKind::Updated, item)),
        }
    }
    let removed = old.iter().filter(|item| before.contains_key(item.key.as_str()));
    let mut deltas: Vec<Arc<InboxDelta>> = removed.map(|item| InboxDelta::new(DeltaKind::Removed, item)).collect();
    deltas.extend(set);
    deltas
}

/// Items by key and by position.
#[derive(Debug, Default)]
struct InboxIndex {
    items: BTreeMap<InboxPosition, Arc<InboxItem>>,
    positions: HashMap<String, InboxPosition>,
    /// `true` if an item differs from the last call of [`InboxIndex::take_changed`].
    has_changed: bool,
}

impl InboxIndex {
    /// An empty index that replaces one with items.
    fn changed() -> Self {
        Self { has_changed: true, ..Self::default() }
    }

    /// Adds an item or replaces the one with its key. An equal item stays the same object.
    fn set(&mut self, item: InboxItem) {
        let position = InboxPosition::of(&item);
        let earlier = self.positions.insert(item.key.clone(), position.clone());
        if let Some(moved) = earlier.filter(|earlier| *earlier != position) {
            self.items.remove(&moved);
        }
        if self.items.get(&position).is_some_and(|known| **known == item) {
            return;
        }
        self.has_changed = true;
        self.items.insert(position, Arc::new(item));
    }

    fn remove(&mut self, key: &str) {
        if let Some(position) = self.positions.remove(key) {
            self.items.remove(&position);
            self.has_changed = true;
        }
    }

    /// Tells whether an item was added, replaced or removed since the last call.
    fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    fn list(&self) -> Vec<Arc<InboxItem>> {
        self.items.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sayso_api::inbox::InboxList;
    use sayso_api::proto::inbox_item::{ChangeSubject, RequestSubject, TurnSubject};
    use sayso_api::proto::oneof::inbox_item::Subject;
    use sayso_api::proto::oneof::watch_inbox_response::Kind;

    use super::board::RecentLists;
    use super::*;

    /// Deterministic random numbers (SplitMix64).
    struct SplitMix(u64);

    impl SplitMix {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) % end
        }

        /// A random item. Its key has one of 60 values.
        fn item(&mut self) -> InboxItem {
            let number = self.below(20);
            let (key, subject) = match self.below(3) {
                0 => {
                    (format!("change:{number}"), Subject::from(ChangeSubject { change: number, ..Default::default() }))
                }
                1 => {
                    let turn = TurnSubject { session: "s".to_owned(), turn: number.to_string(), ..Default::default() };
                    (format!("turn:s/{number}"), turn.into())
                }
                _ => (format!("request:{number}"), RequestSubject { request: number, ..Default::default() }.into()),
            };
            let since_ms = i64::try_from(self.below(5)).unwrap_or_default();
            let summary = self.below(2).to_string();
            InboxItem { key, subject: Some(subject), summary, since_ms, ..Default::default() }
        }
    }

    fn apply(list: &mut InboxList, deltas: Vec<Arc<InboxDelta>>) {
        for delta in deltas {
            let key = delta.item.key.clone();
            let item = Box::new((*delta.item).clone());
            list.apply(match delta.kind {
                DeltaKind::Added => {
                    assert!(list.get(&key).is_none(), "{key} was added twice");
                    Kind::Added(item)
                }
                DeltaKind::Updated => {
                    assert_ne!(list.get(&key), Some(&*item), "{key} did not change");
                    Kind::Updated(item)
                }
                DeltaKind::Removed => {
                    assert!(list.get(&key).is_some(), "{key} was removed twice");
                    Kind::Removed(key)
                }
            });
        }
    }

    #[test]
    fn folded_deltas_equal_full_list() {
        for seed in 0..200 {
            let mut random = SplitMix(seed);
            let mut index = InboxIndex::default();
            let mut model: BTreeMap<String, InboxItem> = BTreeMap::new();
            let mut lists = RecentLists::default();
            let mut current = lists.current();
            // One follower reads every list, the other skips some.
            let mut followers =
                [(InboxList::default(), Arc::clone(&current)), (InboxList::default(), Arc::clone(&current))];
            for _ in 0..60 {
                for _ in 0..random.below(4) {
                    let item = random.item();
                    if random.below(3) == 0 {
                        model.remove(&item.key);
                        index.remove(&item.key);
                    } else {
                        model.insert(item.key.clone(), item.clone());
                        index.set(item);
                    }
                }
                if index.take_changed() {
                    lists.push(index.list());
                }
                current = lists.current();
                let is_read = random.below(3) == 0;
                for (follower, (list, seen)) in followers.iter_mut().enumerate() {
                    if follower == 0 || is_read {
                        apply(list, lists.since(seen, &current));
                        *seen = Arc::clone(&current);
                        let mut expected: Vec<InboxItem> = model.values().cloned().collect();
                        expected.sort_by_cached_key(InboxPosition::of);
                        assert_eq!(list.items(), expected, "seed {seed}");
                    }
                }
            }
        }
    }

    #[test]
    fn inbox_order_is_time_then_kind_then_number() {
        let mut random = SplitMix(7);
        let mut index = InboxIndex::default();
        for _ in 0..100 {
            index.set(random.item());
        }
        let keys = index.list().iter().map(|item| InboxPosition::of(item)).collect::<Vec<_>>();
        assert!(keys.is_sorted());
        let change = |since_ms, number| InboxItem {
            since_ms,
            subject: Some(ChangeSubject { change: number, ..Default::default() }.into()),
            ..Default::default()
        };
        let request = InboxItem { subject: Some(RequestSubject::default().into()), ..Default::default() };
        let positions = [change(0, 9), change(0, 10), request, change(1, 1)].map(|item| InboxPosition::of(&item));
        assert!(positions.is_sorted());
    }
}
