//! Event stream: every event from a given number on, without gaps or duplicates.
//!
//! Subscribers pull: each holds the number of its last event, and the engine has no queue per subscriber. Recent events
//! are shared in memory; older events are read from the journal. So a slow subscriber misses no event and does not
//! delay the engine.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use event_listener::{Event as Woken, Listener as _};
use sayso_journal::Reader;
use sayso_review::{ContentHash, Recorded};

use crate::error::GateError;
use crate::history::decode_event;
use crate::recent_cache::RecentCache;

/// Recent events kept in memory.
const MAX_RECENT_EVENTS: usize = 1_024;
const PAGE_SIZE: usize = 256;

/// Event stream of one engine.
#[derive(Debug)]
pub(crate) struct Feed {
    recent: Mutex<Recent>,
    woken: Woken,
    cache: Mutex<RecentCache>,
    /// For events that are no longer in memory. Subscribers share one connection, since such reads are rare.
    folder: PathBuf,
    older: Mutex<Option<Reader>>,
}

#[derive(Debug)]
struct Recent {
    /// Without gaps; the last one has the number `last`.
    events: VecDeque<Arc<Recorded>>,
    last: u64,
    ended: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No holder of these locks can panic with a half-changed value.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feed {
    /// Creates a stream whose last event has the number `last`.
    pub(crate) fn new(folder: PathBuf, last: u64) -> Self {
        let recent = Recent { events: VecDeque::new(), last, ended: false };
        Self {
            recent: Mutex::new(recent),
            woken: Woken::new(),
            cache: Mutex::default(),
            folder,
            older: Mutex::new(None),
        }
    }

    /// Adds recorded events. The caller wakes the subscribers.
    pub(crate) fn publish(&self, events: impl IntoIterator<Item = Arc<Recorded>>, contents: &[(ContentHash, &[u8])]) {
        // Cached before the events become visible, so that a subscriber finds their contents in the cache.
        let mut cache = lock(&self.cache);
        for (hash, bytes) in contents {
            cache.add_content(*hash, bytes);
        }
        let mut recent = lock(&self.recent);
        for event in events {
            cache.add_event(&event);
            recent.last = event.number;
            recent.events.push_back(event);
        }
        let surplus = recent.events.len().saturating_sub(MAX_RECENT_EVENTS);
        recent.events.drain(..surplus);
    }

    /// Wakes all waiting subscribers.
    pub(crate) fn wake(&self) {
        self.woken.notify(usize::MAX);
    }

    pub(crate) fn cache(&self) -> MutexGuard<'_, RecentCache> {
        lock(&self.cache)
    }

    /// Returns the number of the last event.
    pub(crate) fn last(&self) -> u64 {
        lock(&self.recent).last
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ends the stream. Each subscription ends once it has delivered all events.
    pub(crate) fn end(&self) {
        lock(&self.recent).ended = true;
        self.woken.notify(usize::MAX);
    }

    fn after(&self, number: u64) -> Result<Page, GateError> {
        let recent = lock(&self.recent);
        if number >= recent.last {
            return Ok(if recent.ended { Page::Ended } else { Page::UpToDate });
        }
        let first = recent.last + 1 - recent.events.len() as u64;
        if number + 1 >= first {
            let skipped = usize::try_from(number + 1 - first).unwrap_or(usize::MAX);
            // One event at a time, so that no subscriber holds references to the shared events.
            return Ok(Page::Events(recent.events.iter().skip(skipped).take(1).cloned().collect()));
        }
        drop(recent);
        let events = self.read_older(number)?;
        Ok(if events.is_empty() { Page::UpToDate } else { Page::Events(events) })
    }

    fn read_older(&self, number: u64) -> Result<VecDeque<Arc<Recorded>>, GateError> {
        let mut older = lock(&self.older);
        let reader = match &mut *older {
            Some(reader) => reader,
            none => none.insert(Reader::open(&self.folder)?),
        };
        Ok(reader.events(number, PAGE_SIZE)?.iter().map(|event| Arc::new(decode_event(event))).collect())
    }

    /// `true` if the event after `number` is only in the journal.
    fn is_backlogged(&self, number: u64) -> bool {
        let recent = lock(&self.recent);
        number + 1 < recent.last + 1 - recent.events.len() as u64
    }
}

enum Page {
    Events(VecDeque<Arc<Recorded>>),
    UpToDate,
    Ended,
}

/// Position of one subscriber in the stream.
#[derive(Debug)]
pub struct Subscription {
    feed: Arc<Feed>,
    seen: u64,
    /// Events that were read from the journal and not delivered yet.
    page: VecDeque<Arc<Recorded>>,
}

/// Events that a subscriber must read from the journal. An async caller reads them on a blocking thread.
#[derive(Debug)]
pub struct Backlog {
    feed: Arc<Feed>,
    seen: u64,
}

#[derive(Debug)]
pub struct BacklogPage(VecDeque<Arc<Recorded>>);

impl Backlog {
    /// Reads the first of these events.
    pub fn read(self) -> Result<BacklogPage, GateError> {
        self.feed.read_older(self.seen).map(BacklogPage)
    }
}

/// Result of [`Subscription::try_next`].
#[derive(Clone, Debug, PartialEq)]
pub enum NextEvent {
    Event(Arc<Recorded>),
    /// There is no further event yet.
    NotYet,
    /// The stream has ended.
    Ended,
}

impl Subscription {
    pub(crate) fn new(feed: Arc<Feed>, after: u64) -> Self {
        Self { feed, seen: after, page: VecDeque::new() }
    }

    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the events that must be read from the journal next, if any.
    pub fn backlog(&self) -> Option<Backlog> {
        let behind = self.page.is_empty() && self.feed.is_backlogged(self.seen);
        behind.then(|| Backlog { feed: Arc::clone(&self.feed), seen: self.seen })
    }

    /// Queues events that were read from the journal.
    pub fn catch_up(&mut self, older: BacklogPage) {
        let seen = self.seen;
        if self.page.is_empty() {
            self.page = older.0;
            self.page.retain(|event| event.number > seen);
        }
    }

    /// Returns the next event without waiting. May read the journal.
    pub fn try_next(&mut self) -> Result<NextEvent, GateError> {
        if self.page.is_empty() {
            match self.feed.after(self.seen)? {
                Page::Events(events) => self.page = events,
                Page::UpToDate => return Ok(NextEvent::NotYet),
                Page::Ended => return Ok(NextEvent::Ended),
            }
        }
        match self.page.pop_front() {
            Some(event) => {
                self.seen = event.number;
                Ok(NextEvent::Event(event))
            }
            None => Ok(NextEvent::NotYet),
        }
    }

    /// Returns the next event. Waits at most `timeout` for it.
    pub fn wait(&mut self, timeout: Duration) -> Result<NextEvent, GateError> {
        loop {
            // Registered before the check, so that an event in between is not missed.
            let woken = self.feed.woken.listen();
            match self.try_next()? {
                NextEvent::NotYet => {}
                next => return Ok(next),
            }
            if woken.wait_timeout(timeout).is_none() {
                return self.try_next();
            }
        }
    }

    /// Waits for the next event; `None` once the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Arc<Recorded>>, GateError> {
        loop {
            let woken = self.feed.woken.listen();
            match self.try_next()? {
                NextEvent::Event(event) => return Ok(Some(event)),
                NextEvent::Ended => return Ok(None),
                NextEvent::NotYet => woken.await,
            }
        }
    }
}
