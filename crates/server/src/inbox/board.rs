//! The current inbox of an engine, kept up to date with its events.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sayso_api::proto::InboxItem;
use sayso_gate::{GateError, NextEvent, Subscription, needs_turn_review};
use sayso_present::inbox::needs_person;
use sayso_review::{Cause, ChangeId, ChangeRecord, ChangeStatus, Event, EventBody, RequestId, SeenMarks};
use tokio::sync::watch;

use super::encoded::{EncodedPage, InboxDelta, InboxPages};
use super::item::{change_item, change_key, request_item, request_key, turn_item, turn_key};
use super::reason::AgentReasons;
use super::{InboxIndex, InboxSnapshot, diff};
use crate::failure::Failure;
use crate::host::{Host, blocking};

/// Longest time between two updates. Held requests change without an event if their client disconnects.
const UPDATE_INTERVAL: Duration = Duration::from_secs(10);

/// Lists whose differences are in memory. A watcher that is further behind compares its list with the current one.
const MAX_RECENT_LISTS: usize = 32;

/// Session and turn.
type TurnId = (String, String);

/// The inbox of one engine.
#[derive(Debug, Default)]
pub(crate) struct InboxBoard {
    state: Mutex<BoardState>,
    lists: Mutex<RecentLists>,
    /// The current list.
    current: watch::Sender<Arc<InboxSnapshot>>,
    pages: InboxPages,
    /// `true` once a task keeps the list current for watchers.
    has_task: AtomicBool,
}

#[derive(Debug, Default)]
struct BoardState {
    /// Position in the events. `None` before the first load.
    subscription: Option<Subscription>,
    index: InboxIndex,
    /// Changes to review, by turn.
    later: BTreeMap<TurnId, BTreeMap<ChangeId, ChangeRecord>>,
    /// Turns of the changes in `later`.
    turns: HashMap<ChangeId, TurnId>,
    /// Pending reviews of turns.
    reviews: BTreeMap<TurnId, ChangeRecord>,
    held: BTreeSet<RequestId>,
    /// Working directories of sessions.
    locations: HashMap<String, Option<String>>,
    reasons: AgentReasons,
    /// Changes whose reason is provisional, by session.
    unexplained: BTreeMap<String, BTreeSet<ChangeId>>,
}

/// Changes and requests of new events.
#[derive(Debug, Default)]
struct Touched {
    changes: BTreeSet<ChangeId>,
    requests: BTreeSet<RequestId>,
}

/// The latest lists, with the differences between them.
#[derive(Debug, Default)]
pub(super) struct RecentLists {
    current: Arc<InboxSnapshot>,
    /// Differences from the list before, by generation. The last one belongs to the current list.
    deltas: VecDeque<(u64, Vec<Arc<InboxDelta>>)>,
    /// Lists that a watcher may hold.
    live: Vec<Weak<InboxSnapshot>>,
}

impl RecentLists {
    pub(super) fn current(&self) -> Arc<InboxSnapshot> {
        Arc::clone(&self.current)
    }

    /// Adds a list. Returns `false` if it equals the current one.
    pub(super) fn push(&mut self, items: Vec<Arc<InboxItem>>) -> bool {
        let deltas = diff(&self.current.items, &items);
        if deltas.is_empty() {
            return false;
        }
        self.set_current(InboxSnapshot { generation: self.current.generation + 1, items, has_ended: false });
        if self.deltas.len() == MAX_RECENT_LISTS {
            self.deltas.pop_front();
        }
        self.deltas.push_back((self.current.generation, deltas));
        true
    }

    fn set_current(&mut self, list: InboxSnapshot) {
        self.current = Arc::new(list);
        self.live.retain(|list| list.strong_count() > 0);
        self.live.push(Arc::downgrade(&self.current));
    }

    /// Returns the differences between two lists. A watcher that is far behind gets those of the two lists alone.
    pub(super) fn since(&self, earlier: &InboxSnapshot, later: &InboxSnapshot) -> Vec<Arc<InboxDelta>> {
        let first = self.deltas.front().map_or(u64::MAX, |(generation, _)| *generation);
        if earlier.generation + 1 < first {
            return diff(&earlier.items, &later.items);
        }
        let generations = earlier.generation + 1..=later.generation;
        let between = self.deltas.iter().filter(|(generation, _)| generations.contains(generation));
        between.flat_map(|(_, deltas)| deltas).cloned().collect()
    }
}

impl InboxBoard {
    /// Brings the list up to date. Returns it with the number of the last event that it includes. Reads the journal.
    pub(crate) fn update(&self, host: &Host) -> Result<(Arc<InboxSnapshot>, u64), Failure> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let last_event = match state.update(host) {
            Ok(last_event) => last_event,
            Err(failure) => {
                // Events may be lost, so that the next update starts anew.
                *state = BoardState { index: InboxIndex::changed(), ..BoardState::default() };
                return Err(failure);
            }
        };
        let mut lists = self.lists();
        if state.index.take_changed() && lists.push(state.index.list()) {
            self.current.send_replace(lists.current());
        }
        Ok((lists.current(), last_event))
    }

    /// Follows the list. A task keeps it current from the first call on.
    pub(crate) fn follow(&self, host: &Arc<Host>) -> watch::Receiver<Arc<InboxSnapshot>> {
        if !self.has_task.swap(true, Ordering::AcqRel) {
            // Subscribed before the list is first read, so that no event in between is missed.
            let subscription = host.gate.subscribe(host.gate.last_event());
            tokio::spawn(keep_current(Arc::downgrade(host), subscription));
        }
        self.current.subscribe()
    }

    /// Returns the differences between two lists.
    pub(crate) fn since(&self, earlier: &InboxSnapshot, later: &InboxSnapshot) -> Vec<Arc<InboxDelta>> {
        self.lists().since(earlier, later)
    }

    /// Returns the page of a list that starts at an index. `session` selects items.
    pub(crate) fn page(&self, host: &Host, list: &InboxSnapshot, start: usize, session: Option<&str>) -> EncodedPage {
        self.pages.page(list, start, session, &host.work.inbox_messages)
    }

    /// Counts the lists in memory.
    pub(crate) fn live_lists(&self) -> u64 {
        self.lists().live.iter().filter(|list| list.strong_count() > 0).count() as u64
    }

    /// Ends the streams of watchers.
    fn end(&self) {
        let mut lists = self.lists();
        let generation = lists.current.generation;
        lists.set_current(InboxSnapshot { generation, items: Vec::new(), has_ended: true });
        self.current.send_replace(lists.current());
    }

    fn lists(&self) -> MutexGuard<'_, RecentLists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Updates the list after events, until the stream of events ends.
async fn keep_current(host: Weak<Host>, mut subscription: Subscription) {
    loop {
        let has_ended = match tokio::time::timeout(UPDATE_INTERVAL, subscription.next()).await {
            Ok(Ok(event)) => event.is_none(),
            // The update itself reports an unreadable journal.
            Ok(Err(_)) | Err(_) => false,
        };
        let Some(host) = host.upgrade() else { return };
        if has_ended {
            host.inbox.end();
            return;
        }
        if let Err(error) = blocking(&host, |host| host.inbox.update(host)).await {
            tracing::warn!(%error, "cannot update the inbox");
            drop(host);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

impl BoardState {
    fn update(&mut self, host: &Host) -> Result<u64, Failure> {
        let mut subscription = match self.subscription.take() {
            Some(subscription) => subscription,
            None => self.load(host)?,
        };
        let Touched { mut changes, requests } = self.read_events(host, &mut subscription)?;
        changes.extend(self.forget_reasons(host, &requests));
        for change in changes {
            self.read_change(host, change)?;
        }
        self.read_requests(host, &requests)?;
        let last_event = subscription.seen();
        self.subscription = Some(subscription);
        Ok(last_event)
    }

    /// Reads the events since the last call.
    fn read_events(&mut self, host: &Host, subscription: &mut Subscription) -> Result<Touched, Failure> {
        let mut touched = Touched::default();
        while let NextEvent::Event(event) = subscription.try_next()? {
            host.work.inbox_events.add(1);
            let EventBody::Known(event) = &event.body else { continue };
            touched.changes.extend(event.change());
            touched.requests.extend(event.request());
            if let Event::SessionStarted { session, .. } = event {
                self.locations.remove(session);
            }
        }
        Ok(touched)
    }

    /// Forgets what the sessions of requests said. Returns the changes whose reason may differ now.
    fn forget_reasons(&mut self, host: &Host, requests: &BTreeSet<RequestId>) -> BTreeSet<ChangeId> {
        let mut changes = BTreeSet::new();
        for request in requests {
            let Ok(record) = host.proxy.interceptor.record(*request) else { continue };
            let Some(session) = record.received.origin.session else { continue };
            self.reasons.forget(&session);
            changes.extend(self.unexplained.get(&session).into_iter().flatten());
            // The item of a turn has the last text of the turn, or the last one before it.
            let turns = self.later.range((session.clone(), String::new())..);
            let turns = turns.take_while(|((of, _), _)| *of == session);
            changes.extend(turns.filter_map(|(_, changes)| Some(changes.last_key_value()?.0)));
        }
        changes
    }

    /// Reads the whole inbox from the journal.
    fn load(&mut self, host: &Host) -> Result<Subscription, Failure> {
        let gate = &host.gate;
        // Subscribed first: what happens during the load is read again.
        let subscription = gate.subscribe(gate.last_event());
        for change in gate.pending_changes()? {
            self.read_change(host, change)?;
        }
        for record in gate.read(|history| history.unreviewed_changes())? {
            self.set_change(host, record, &SeenMarks::default())?;
        }
        Ok(subscription)
    }

    fn read_change(&mut self, host: &Host, change: ChangeId) -> Result<(), Failure> {
        let read = host.gate.read(|history| {
            let record = history.change(change)?;
            let is_pending = record.status == ChangeStatus::Pending;
            let marks = if is_pending { history.seen_marks(&record)? } else { SeenMarks::default() };
            Ok((record, marks))
        });
        match read {
            Ok((record, marks)) => self.set_change(host, record, &marks),
            // The first event of a change can be lost in a damaged journal.
            Err(GateError::NoSuchChange(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Updates the items that a change affects: its own, and the one of its turn.
    fn set_change(&mut self, host: &Host, record: ChangeRecord, marks: &SeenMarks) -> Result<(), Failure> {
        let change = record.change;
        let is_pending = record.status == ChangeStatus::Pending;
        let mut touched = BTreeSet::new();
        if let Some(turn) = self.turns.remove(&change) {
            if let Some(changes) = self.later.get_mut(&turn) {
                changes.remove(&change);
            }
            touched.insert(turn);
        }
        if let Some(session) = &record.origin.session {
            self.set_explained(session, change);
        }
        if let (Cause::Review { turn, .. }, Some(session)) = (&record.cause, &record.origin.session) {
            let turn = (session.clone(), turn.clone());
            if is_pending {
                self.reviews.insert(turn.clone(), record);
            } else if self.reviews.get(&turn).is_some_and(|review| review.change == change) {
                self.reviews.remove(&turn);
            }
            touched.insert(turn);
        } else if is_pending && needs_person(&record) {
            let location = self.location(host, record.origin.session.as_deref())?;
            let reason = self.reasons.of_change(host, &record)?;
            if let (true, Some(session)) = (reason.is_provisional, &record.origin.session) {
                self.unexplained.entry(session.clone()).or_default().insert(change);
            }
            self.index.set(change_item(&record, marks, location, reason.text));
        } else {
            self.index.remove(&change_key(change));
            if let (true, Some(session)) = (needs_turn_review(&record), &record.origin.session) {
                let turn = (session.clone(), record.origin.turn.clone().unwrap_or_default());
                self.turns.insert(change, turn.clone());
                touched.insert(turn.clone());
                self.later.entry(turn).or_default().insert(change, record);
            }
        }
        for turn in touched {
            self.set_turn(host, &turn)?;
        }
        Ok(())
    }

    fn set_explained(&mut self, session: &str, change: ChangeId) {
        if let Some(changes) = self.unexplained.get_mut(session) {
            changes.remove(&change);
            if changes.is_empty() {
                self.unexplained.remove(session);
            }
        }
    }

    /// Updates the item of a turn. A pending review belongs to the item of its turn.
    fn set_turn(&mut self, host: &Host, turn: &TurnId) -> Result<(), Failure> {
        let location = self.location(host, Some(&turn.0))?;
        let records: Vec<&ChangeRecord> = self.later.get(turn).into_iter().flat_map(BTreeMap::values).collect();
        if let Some(last) = records.last() {
            let reason = self.reasons.of_turn(host, turn, last.time)?;
            let item = turn_item(turn, &records, self.reviews.get(turn), location, reason);
            self.index.set(item);
        } else {
            self.later.remove(turn);
            self.index.remove(&turn_key(&turn.0, &turn.1));
        }
        Ok(())
    }

    fn read_requests(&mut self, host: &Host, touched: &BTreeSet<RequestId>) -> Result<(), Failure> {
        let interceptor = &host.proxy.interceptor;
        let held: BTreeSet<RequestId> = interceptor.held().into_iter().collect();
        for &gone in self.held.difference(&held) {
            self.index.remove(&request_key(gone));
        }
        let mut known = BTreeSet::new();
        for request in held {
            if self.held.contains(&request) && !touched.contains(&request) {
                known.insert(request);
                continue;
            }
            // The record follows the hold. Without it, the next update tries again.
            let Ok(record) = interceptor.record(request) else { continue };
            let location = self.location(host, record.received.origin.session.as_deref())?;
            let reason = self.reasons.of_request(host, &record)?;
            self.index.set(request_item(&record, location, reason));
            known.insert(request);
        }
        self.held = known;
        Ok(())
    }

    fn location(&mut self, host: &Host, session: Option<&str>) -> Result<Option<String>, Failure> {
        let Some(session) = session else { return Ok(None) };
        if let Some(known) = self.locations.get(session) {
            return Ok(known.clone());
        }
        let location = host.gate.read(|history| history.session(session))?.and_then(|record| record.location);
        self.locations.insert(session.to_owned(), location.clone());
        Ok(location)
    }
}
