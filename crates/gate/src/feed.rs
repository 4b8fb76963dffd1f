//! The stream for whoever follows it: every event from any number on, without a gap and without a duplicate.
//!
//! Followers pull. Each holds the number it wants next, and nothing is queued for anybody: what is recent is shared by all, what is
//! older is read from the journal. So a slow follower costs the engine nothing and misses nothing, and a thousand of them cost
//! a thousand numbers.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use event_listener::{Event as Woken, Listener as _};
use sayso_journal::Reader;
use sayso_review::{ContentHash, Recorded};

use crate::error::GateError;
use crate::history::recorded;
use crate::lately::Lately;

/// Events that are kept at hand for those who are nearly up to date.
const RECENT: usize = 1_024;
/// Events that are read from the journal in one go.
const SOME: usize = 256;

/// The stream of one engine.
#[derive(Debug)]
pub(crate) struct Feed {
    recent: Mutex<Recent>,
    woken: Woken,
    lately: Mutex<Lately>,
    /// The journal's folder, and whoever reads from it what is no longer at hand; one for all, since this is rare.
    folder: PathBuf,
    older: Mutex<Option<Reader>>,
}

#[derive(Debug)]
struct Recent {
    /// Without gaps, the last one being `last`.
    events: VecDeque<Arc<Recorded>>,
    last: u64,
    ended: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds one of these locks leaves its value half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feed {
    /// A stream whose last event has this number.
    pub(crate) fn new(folder: PathBuf, last: u64) -> Self {
        let recent = Recent { events: VecDeque::new(), last, ended: false };
        Self {
            recent: Mutex::new(recent),
            woken: Woken::new(),
            lately: Mutex::default(),
            folder,
            older: Mutex::new(None),
        }
    }

    /// Adds events that were recorded. Whoever waits for them has to be woken.
    pub(crate) fn publish(&self, events: impl IntoIterator<Item = Arc<Recorded>>, contents: &[(ContentHash, &[u8])]) {
        // First, so that whoever has heard of an event finds it here as well.
        let mut lately = lock(&self.lately);
        for (hash, bytes) in contents {
            lately.keep(*hash, bytes);
        }
        let mut recent = lock(&self.recent);
        for event in events {
            lately.add(&event);
            recent.last = event.number;
            recent.events.push_back(event);
        }
        let surplus = recent.events.len().saturating_sub(RECENT);
        recent.events.drain(..surplus);
    }

    /// Tells whoever waits that there is something.
    pub(crate) fn wake(&self) {
        self.woken.notify(usize::MAX);
    }

    /// What was recorded a moment ago.
    pub(crate) fn lately(&self) -> MutexGuard<'_, Lately> {
        lock(&self.lately)
    }

    /// The number of the last event.
    pub(crate) fn last(&self) -> u64 {
        lock(&self.recent).last
    }

    /// The journal's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ends the stream: whoever has seen all of it is told so.
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
            // One at a time, so that no follower holds on to events that all share.
            return Ok(Page::Events(recent.events.iter().skip(skipped).take(1).cloned().collect()));
        }
        drop(recent);
        let events = self.older(number)?;
        Ok(if events.is_empty() { Page::UpToDate } else { Page::Events(events) })
    }

    fn older(&self, number: u64) -> Result<VecDeque<Arc<Recorded>>, GateError> {
        let mut older = lock(&self.older);
        let reader = match &mut *older {
            Some(reader) => reader,
            none => none.insert(Reader::open(&self.folder)?),
        };
        Ok(reader.events(number, SOME)?.iter().map(|event| Arc::new(recorded(event))).collect())
    }

    /// Whether what follows a number is in the journal only.
    fn is_older(&self, number: u64) -> bool {
        let recent = lock(&self.recent);
        number + 1 < recent.last + 1 - recent.events.len() as u64
    }
}

enum Page {
    Events(VecDeque<Arc<Recorded>>),
    UpToDate,
    Ended,
}

/// One follower of the stream.
#[derive(Debug)]
pub struct Subscription {
    feed: Arc<Feed>,
    /// The number of the last event that was handed out.
    seen: u64,
    /// Read from the journal already, and next in line.
    page: VecDeque<Arc<Recorded>>,
}

/// Events that a follower has to read from the journal. Where waiting must not block, that is done elsewhere.
#[derive(Debug)]
pub struct Behind {
    feed: Arc<Feed>,
    seen: u64,
}

/// Events that were read from the journal.
#[derive(Debug)]
pub struct Older(VecDeque<Arc<Recorded>>);

impl Behind {
    /// Reads some of them.
    pub fn read(self) -> Result<Older, GateError> {
        self.feed.older(self.seen).map(Older)
    }
}

/// What a follower gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// The next event.
    Event(Arc<Recorded>),
    /// There is none yet.
    NotYet,
    /// The engine stopped, and there will be none.
    Ended,
}

impl Subscription {
    pub(crate) fn new(feed: Arc<Feed>, after: u64) -> Self {
        Self { feed, seen: after, page: VecDeque::new() }
    }

    /// The number of the last event that was handed out.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// What has to be read from the journal next, if it does.
    pub fn behind(&self) -> Option<Behind> {
        let behind = self.page.is_empty() && self.feed.is_older(self.seen);
        behind.then(|| Behind { feed: Arc::clone(&self.feed), seen: self.seen })
    }

    /// Takes up what was read for it.
    pub fn catch_up(&mut self, older: Older) {
        let seen = self.seen;
        if self.page.is_empty() {
            self.page = older.0;
            self.page.retain(|event| event.number > seen);
        }
    }

    /// The next event, if there is one. Never waits.
    pub fn try_next(&mut self) -> Result<Next, GateError> {
        if self.page.is_empty() {
            match self.feed.after(self.seen)? {
                Page::Events(events) => self.page = events,
                Page::UpToDate => return Ok(Next::NotYet),
                Page::Ended => return Ok(Next::Ended),
            }
        }
        match self.page.pop_front() {
            Some(event) => {
                self.seen = event.number;
                Ok(Next::Event(event))
            }
            None => Ok(Next::NotYet),
        }
    }

    /// The next event; waits for it, but not longer than told.
    pub fn wait(&mut self, longest: Duration) -> Result<Next, GateError> {
        loop {
            // Asked for before looking, or what comes in between would go unnoticed.
            let woken = self.feed.woken.listen();
            match self.try_next()? {
                Next::NotYet => {}
                next => return Ok(next),
            }
            if woken.wait_timeout(longest).is_none() {
                return self.try_next();
            }
        }
    }

    /// The next event, whenever it comes; `None` once the engine stopped.
    pub async fn next(&mut self) -> Result<Option<Arc<Recorded>>, GateError> {
        loop {
            let woken = self.feed.woken.listen();
            match self.try_next()? {
                Next::Event(event) => return Ok(Some(event)),
                Next::Ended => return Ok(None),
                Next::NotYet => woken.await,
            }
        }
    }
}
