//! How what happens becomes events: keys to find them by, contents they keep, and whoever follows the stream told of them.

use std::ops::Range;
use std::sync::Arc;

use sayso_journal::{Batch, Journal, NewEvent};
use sayso_review::{
    ChangeId, Content, ContentHash, EVENT_VERSION, Event, EventBody, FilePreview, FileRecord, FileState, Preview,
    Recorded, Ruling,
};

use crate::engine::Engine;
use crate::error::GateError;
use crate::feed::Feed;

/// The counter of changes.
pub(crate) const CHANGES: &str = "changes";
/// The counter of changes that ended, one way or another.
pub(crate) const ENDED: &str = "ended";
/// The counter of plans that were on their way to the tree.
pub(crate) const PLANS: &str = "plans";
/// The counter of plans that arrived or were taken back: one less than [`PLANS`] if something was interrupted.
pub(crate) const PLANS_ENDED: &str = "plans ended";
/// The key of events that say that a plan is on its way.
pub(crate) const APPLYING: &str = "applying";
/// The key of events that let somebody go ahead.
pub(crate) const PERMITTED: &str = "permitted";
/// The key of changes that are reviewed at the end of their turn.
pub(crate) const LATER: &str = "later";
/// The key of events that say that a session began.
pub(crate) const SESSIONS: &str = "sessions";

pub(crate) fn change_key(change: ChangeId) -> String {
    format!("change:{change}")
}

pub(crate) fn session_key(session: &str) -> String {
    format!("session:{session}")
}

/// The key of what says how a session stands, and not of what happens in it, which may be much.
pub(crate) fn conversation_key(session: &str) -> String {
    format!("conversation:{session}")
}

pub(crate) fn turn_key(session: &str, turn: &str) -> String {
    // With its length, so that no name can be mistaken for another's.
    format!("turn:{}:{session}:{turn}", session.len())
}

pub(crate) fn call_key(call: &str) -> String {
    format!("call:{call}")
}

/// What is to be recorded together.
#[derive(Default)]
pub(crate) struct Entry<'c> {
    events: Vec<(Event, NewEvent)>,
    blobs: Vec<(ContentHash, &'c [u8])>,
    counters: Vec<(&'static str, u64)>,
}

impl<'c> Entry<'c> {
    /// Of events that keep no contents.
    pub(crate) fn of(events: impl IntoIterator<Item = Event>) -> Self {
        let mut entry = Self::default();
        for event in events {
            entry.push(event, &[]);
        }
        entry
    }

    /// Adds an event and the contents it is about.
    pub(crate) fn push(&mut self, event: Event, contents: &[&'c Content]) {
        let named: Vec<(ContentHash, &'c [u8])> =
            contents.iter().map(|content| (content.hash(), content.bytes())).collect();
        self.push_blobs(event, &named, &[]);
    }

    /// Adds an event, the bytes it is about, under their names, and the names of others that are stored already.
    pub(crate) fn push_blobs(&mut self, event: Event, blobs: &[(ContentHash, &'c [u8])], stored: &[ContentHash]) {
        let mut keys = Vec::new();
        keys.extend(event.change().map(change_key));
        keys.extend(event.session().map(session_key));
        match &event {
            Event::Proposed { origin, ruled, .. } => {
                keys.extend(origin.call.as_deref().map(call_key));
                if let Some(session) = &origin.session {
                    keys.push(turn_key(session, origin.turn.as_deref().unwrap_or_default()));
                }
                if ruled.as_ref().is_some_and(|ruled| ruled.ruling == Ruling::Later) {
                    keys.push(LATER.to_owned());
                }
            }
            Event::Applying { .. } => keys.push(APPLYING.to_owned()),
            Event::Permitted { .. } => keys.push(PERMITTED.to_owned()),
            Event::SessionStarted { .. } => keys.push(SESSIONS.to_owned()),
            Event::Captured(_) | Event::Correlated { .. } | Event::Freed { .. } => {
                keys.push(crate::capture::SNAPSHOTS.to_owned());
                keys.extend(crate::capture::keys(&event));
            }
            Event::Request(event) => keys.extend(crate::request::keys(event)),
            Event::RequestMode(_) => keys.push(crate::request::MODES.to_owned()),
            _ => {}
        }
        if let (false, Some(session)) = (matches!(event, Event::Proposed { .. } | Event::Captured(_)), event.session())
        {
            keys.push(conversation_key(session));
        }
        let new = NewEvent {
            version: EVENT_VERSION,
            time: 0,
            keys,
            blobs: blobs.iter().map(|(hash, _)| hash).chain(stored).copied().collect(),
            // Made of strings, numbers and lists only, which always have a JSON form.
            body: serde_json::to_vec(&event).unwrap_or_default(),
        };
        self.blobs.extend_from_slice(blobs);
        self.events.push((event, new));
    }

    /// Adds bytes that no event keeps: they go with a collection that is not told to keep them.
    pub(crate) fn keep_loosely(&mut self, blob: Option<(ContentHash, &'c [u8])>) {
        self.blobs.extend(blob);
    }

    /// Sets a counter.
    pub(crate) fn count(&mut self, name: &'static str, value: u64) {
        self.counters.push((name, value));
    }
}

impl Engine {
    /// Records, and tells whoever follows the stream.
    pub(crate) fn write(&mut self, entry: Entry<'_>, now: i64) -> Result<Range<u64>, GateError> {
        entry.record(&mut self.journal, &self.feed, now).map(|(numbers, _tell)| numbers)
    }
}

/// Whoever follows the stream is told of what was recorded once this is dropped.
pub(crate) struct Telling {
    feed: Arc<Feed>,
    needed: bool,
}

impl Telling {
    /// They were told since, of this and of more.
    pub(crate) fn drop_untold(mut self) {
        self.needed = false;
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        if self.needed {
            self.feed.wake();
        }
    }
}

impl Entry<'_> {
    /// Records, and leaves it to the caller when whoever follows the stream is told.
    pub(crate) fn record(
        self,
        journal: &mut Journal,
        feed: &Arc<Feed>,
        now: i64,
    ) -> Result<(Range<u64>, Telling), GateError> {
        let Entry { events, blobs, counters } = self;
        let (events, mut stored): (Vec<Event>, Vec<NewEvent>) = events.into_iter().unzip();
        for event in &mut stored {
            event.time = now;
        }
        let batch = Batch { blobs: blobs.clone(), events: stored, counters };
        // What is about to happen needs room for its end, and what happened is recorded in that room if there is no other.
        if events.iter().any(|event| matches!(event, Event::Applying { .. } | Event::Permitted { .. })) {
            journal.reserve()?;
        }
        let ends = |event: &Event| matches!(event, Event::Ended { .. } | Event::Recovered { .. });
        let numbers = if events.iter().any(ends) { journal.append_end(&batch)? } else { journal.append(&batch)? };
        let recorded = numbers
            .clone()
            .zip(events)
            .map(|(number, event)| Arc::new(Recorded { number, time: now, body: EventBody::Known(event) }));
        feed.publish(recorded, &blobs);
        Ok((numbers, Telling { feed: Arc::clone(feed), needed: true }))
    }
}

/// The contents of states, before and after.
pub(crate) fn contents<'s>(states: impl IntoIterator<Item = [&'s FileState; 2]>) -> Vec<&'s Content> {
    states.into_iter().flatten().filter_map(FileState::content).collect()
}

/// The contents that a preview shows.
pub(crate) fn shown(preview: &Preview) -> Vec<&Content> {
    contents(preview.files().iter().map(|file| [&file.before, &file.after]))
}

/// What a preview shows, as it is recorded.
pub(crate) fn file_records(preview: &Preview) -> Vec<FileRecord> {
    let record = |file: &FilePreview| {
        let counts = file.counts();
        FileRecord {
            path: file.path.clone(),
            location: file.location.clone(),
            operation: file.operation.clone(),
            before: file.before.fingerprint(),
            after: file.after.fingerprint(),
            added: counts.added,
            removed: counts.removed,
            notes: file.notes.clone(),
            problem: file.problem.clone(),
            settled: preview.is_settled(&file.path),
        }
    };
    preview.files().iter().map(record).collect()
}
