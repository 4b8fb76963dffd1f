//! Recording: turns events into journal batches with keys, contents and counters, and publishes them to the stream.

use std::ops::Range;
use std::sync::Arc;

use sayso_journal::{Batch, Journal, NewEvent};
use sayso_review::{
    ChangeId, Content, ContentHash, EVENT_VERSION, Event, EventBody, FilePreview, FileRecord, FileState, InlineCard,
    Preview, Recorded, Ruling,
};

use crate::engine::Engine;
use crate::error::GateError;
use crate::feed::Feed;

/// Counter of changes.
pub(crate) const CHANGES: &str = "changes";
/// Counter of changes that ended in any way.
pub(crate) const ENDED: &str = "ended";
/// Counter of plans whose application began.
pub(crate) const PLANS: &str = "plans";
/// Counter of plans that were applied or rolled back. One less than [`PLANS`] after a crash during an application.
pub(crate) const PLANS_ENDED: &str = "plans ended";
/// Key of events that begin an application.
pub(crate) const APPLYING: &str = "applying";
/// Key of events that permit an action.
pub(crate) const PERMITTED: &str = "permitted";
/// Key of changes that are reviewed at the end of their turn.
pub(crate) const LATER: &str = "later";
/// Key of events that start a session.
pub(crate) const SESSIONS: &str = "sessions";

/// Key of events that record how far a person has read.
pub(crate) const READ_THROUGH: &str = "read through";

/// Key of the marks of a change. Separate from the key of its other events, because marks may be many and no status depends on them.
pub(crate) fn seen_key(change: ChangeId) -> String {
    format!("seen:{change}")
}

pub(crate) fn change_key(change: ChangeId) -> String {
    format!("change:{change}")
}

pub(crate) fn session_key(session: &str) -> String {
    format!("session:{session}")
}

/// Key of events about the session's own state, without the changes in it, which may be many.
pub(crate) fn session_state_key(session: &str) -> String {
    format!("conversation:{session}")
}

pub(crate) fn turn_key(session: &str, turn: &str) -> String {
    // The length prevents ambiguity between session and turn.
    format!("turn:{}:{session}:{turn}", session.len())
}

pub(crate) fn call_key(call: &str) -> String {
    format!("call:{call}")
}

/// Events, contents and counters to record in one transaction.
#[derive(Default)]
pub(crate) struct JournalBatch<'c> {
    events: Vec<(Event, NewEvent)>,
    blobs: Vec<(ContentHash, &'c [u8])>,
    counters: Vec<(&'static str, u64)>,
}

impl<'c> JournalBatch<'c> {
    /// Creates a batch of events without contents.
    pub(crate) fn from_events(events: impl IntoIterator<Item = Event>) -> Self {
        let mut entry = Self::default();
        for event in events {
            entry.push_event(event, &[]);
        }
        entry
    }

    /// Adds an event with its contents.
    pub(crate) fn push_event(&mut self, event: Event, contents: &[&'c Content]) {
        let named: Vec<(ContentHash, &'c [u8])> =
            contents.iter().map(|content| (content.hash(), content.bytes())).collect();
        self.push_event_with_blobs(event, &named, &[]);
    }

    /// Adds an event with its blobs, and with the hashes of blobs that are stored already.
    pub(crate) fn push_event_with_blobs(
        &mut self,
        event: Event,
        blobs: &[(ContentHash, &'c [u8])],
        stored: &[ContentHash],
    ) {
        let mut keys = Vec::new();
        let is_mark = matches!(event, Event::HunksSeen { .. });
        let is_agent = matches!(event, Event::Agent(_));
        keys.extend(event.change().map(if is_mark { seen_key } else { change_key }));
        // The log of the built-in agent has keys of its own: a fold of the session must not read it.
        keys.extend(event.session().filter(|_| !is_agent).map(session_key));
        match &event {
            Event::Proposed { origin, ruling: ruled, .. } => {
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
            Event::SnapshotCaptured(_) | Event::SnapshotCorrelated { .. } | Event::SnapshotsFreed { .. } => {
                keys.push(crate::capture::SNAPSHOTS.to_owned());
                keys.extend(crate::capture::keys(&event));
            }
            Event::Request(event) => keys.extend(crate::request::keys(event)),
            Event::RequestMode(_) => keys.push(crate::request::MODES.to_owned()),
            Event::ReadThrough { .. } => keys.push(READ_THROUGH.to_owned()),
            Event::Agent(entry) => keys.extend(crate::agent_log::keys(entry)),
            _ => {}
        }
        if let (false, Some(session)) =
            (is_agent || matches!(event, Event::Proposed { .. } | Event::SnapshotCaptured(_)), event.session())
        {
            keys.push(session_state_key(session));
        }
        let new = NewEvent {
            version: EVENT_VERSION,
            time: 0,
            keys,
            blobs: blobs.iter().map(|(hash, _)| hash).chain(stored).copied().collect(),
            // Cannot fail: events consist of strings, numbers and lists.
            body: serde_json::to_vec(&event).unwrap_or_default(),
        };
        self.blobs.extend_from_slice(blobs);
        self.events.push((event, new));
    }

    /// Adds a blob that no event refers to. A collection deletes it unless told to keep it.
    pub(crate) fn add_unreferenced_blob(&mut self, blob: Option<(ContentHash, &'c [u8])>) {
        self.blobs.extend(blob);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.counters.is_empty()
    }

    pub(crate) fn set_counter(&mut self, name: &'static str, value: u64) {
        self.counters.push((name, value));
    }
}

impl Engine {
    /// Records a batch and wakes the subscribers.
    pub(crate) fn write(&mut self, entry: JournalBatch<'_>, now: i64) -> Result<Range<u64>, GateError> {
        entry.append_to(&mut self.journal, &self.feed, now).map(|(numbers, _tell)| numbers)
    }
}

/// Wakes the subscribers on drop.
pub(crate) struct WakeOnDrop {
    feed: Arc<Feed>,
    armed: bool,
}

impl WakeOnDrop {
    /// Cancels the wake-up, because a later one covers it.
    pub(crate) fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        if self.armed {
            self.feed.wake();
        }
    }
}

impl JournalBatch<'_> {
    /// Records a batch. The subscribers wake when the caller drops the guard.
    pub(crate) fn append_to(
        self,
        journal: &mut Journal,
        feed: &Arc<Feed>,
        now: i64,
    ) -> Result<(Range<u64>, WakeOnDrop), GateError> {
        let JournalBatch { events, blobs, counters } = self;
        let (events, mut stored): (Vec<Event>, Vec<NewEvent>) = events.into_iter().unzip();
        for event in &mut stored {
            event.time = now;
        }
        let batch = Batch { blobs: blobs.clone(), events: stored, counters };
        // Disk space is reserved before an action begins, so that its end can be recorded on a full disk.
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
        Ok((numbers, WakeOnDrop { feed: Arc::clone(feed), armed: true }))
    }
}

/// Returns the contents of file states.
pub(crate) fn state_contents<'s>(states: impl IntoIterator<Item = [&'s FileState; 2]>) -> Vec<&'s Content> {
    states.into_iter().flatten().filter_map(FileState::content).collect()
}

/// Returns the contents of a preview.
pub(crate) fn preview_contents(preview: &Preview) -> Vec<&Content> {
    state_contents(preview.files().iter().map(|file| [&file.before, &file.after]))
}

/// Files with a card in one event. This bounds the size of the event.
const MAX_CARDS: usize = 100;

/// Returns the record of a preview's files.
pub(crate) fn file_records(preview: &Preview) -> Vec<FileRecord> {
    let record = |(index, file): (usize, &FilePreview)| {
        let diff = file.diff();
        let counts = diff.counts();
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
            card: if index < MAX_CARDS { InlineCard::of(&diff) } else { None },
        }
    };
    preview.files().iter().enumerate().map(record).collect()
}
