//! The current inbox of an engine, kept up to date with its events.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sayso_gate::{GateError, NextEvent, Subscription, needs_turn_review};
use sayso_present::inbox::needs_person;
use sayso_review::{Cause, ChangeId, ChangeRecord, ChangeStatus, Event, EventBody, RequestId, SeenMarks};
use tokio::sync::watch;

use super::item::{change_item, change_key, request_item, request_key, turn_item, turn_key};
use super::{InboxIndex, InboxSnapshot};
use crate::failure::Failure;
use crate::host::{Host, blocking};

/// Longest time between two updates. Held requests change without an event if their client disconnects.
const UPDATE_INTERVAL: Duration = Duration::from_secs(10);

/// Session and turn.
type TurnId = (String, String);

/// The inbox of one engine.
#[derive(Debug)]
pub(crate) struct InboxBoard {
    state: Mutex<BoardState>,
    current: watch::Sender<Arc<InboxSnapshot>>,
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
}

impl Default for InboxBoard {
    fn default() -> Self {
        Self { state: Mutex::default(), current: watch::Sender::default(), has_task: AtomicBool::new(false) }
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
                *state = BoardState::default();
                return Err(failure);
            }
        };
        let items = state.index.list();
        self.current.send_if_modified(|current| match current.next(items) {
            Some(next) => {
                *current = Arc::new(next);
                true
            }
            None => false,
        });
        Ok((Arc::clone(&self.current.borrow()), last_event))
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
}

/// Updates the list after events, until the stream of events ends.
async fn keep_current(host: std::sync::Weak<Host>, mut subscription: Subscription) {
    loop {
        let has_ended = match tokio::time::timeout(UPDATE_INTERVAL, subscription.next()).await {
            Ok(Ok(event)) => event.is_none(),
            // The update itself reports an unreadable journal.
            Ok(Err(_)) | Err(_) => false,
        };
        let Some(host) = host.upgrade() else { return };
        if has_ended {
            let current = &host.inbox.current;
            let generation = current.borrow().generation;
            current.send_replace(Arc::new(InboxSnapshot { generation, has_ended: true, ..InboxSnapshot::default() }));
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
        let (mut changes, mut requests) = (BTreeSet::new(), BTreeSet::new());
        while let NextEvent::Event(event) = subscription.try_next()? {
            let EventBody::Known(event) = &event.body else { continue };
            changes.extend(event.change());
            requests.extend(event.request());
            if let Event::SessionStarted { session, .. } = event {
                self.locations.remove(session);
            }
        }
        for change in changes {
            self.read_change(host, change)?;
        }
        self.read_requests(host, &requests)?;
        let last_event = subscription.seen();
        self.subscription = Some(subscription);
        Ok(last_event)
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
            self.index.set(change_item(&record, marks, location));
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

    /// Updates the item of a turn. A pending review belongs to the item of its turn.
    fn set_turn(&mut self, host: &Host, turn: &TurnId) -> Result<(), Failure> {
        let location = self.location(host, Some(&turn.0))?;
        let records: Vec<&ChangeRecord> = self.later.get(turn).into_iter().flat_map(BTreeMap::values).collect();
        if records.is_empty() {
            self.later.remove(turn);
            self.index.remove(&turn_key(&turn.0, &turn.1));
        } else {
            let item = turn_item(turn, &records, self.reviews.get(turn), location);
            self.index.set(item);
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
            self.index.set(request_item(&record, location));
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
