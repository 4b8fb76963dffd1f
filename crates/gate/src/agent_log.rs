//! The log of the built-in agent: its sessions, their conversations, settings and todo lists.
//!
//! The engine does not read the content of an entry. Small contents are stored in the event, large ones as blobs. The log has keys of
//! its own, so that the cost of reading a session or its changes does not grow with the conversation.

use std::collections::{BTreeMap, BTreeSet};

use sayso_review::{AgentEntry, AgentEntryKind, ContentHash, Event, EventBody};
use serde_json::Value;

use crate::engine::Engine;
use crate::error::GateError;
use crate::gate::Gate;
use crate::history::{History, decode_event};
use crate::record::JournalBatch;

/// Key of the entries with a blob.
const BLOBS: &str = "agent blobs";
/// Largest content stored in an event, in bytes.
const MAX_INLINE_BYTES: usize = 4 << 10;
/// Entries read from the journal at a time.
const PAGE_SIZE: usize = 500;

/// Key of the entries of a session.
fn log_key(session: &str) -> String {
    format!("agent:{session}")
}

/// Key of the entries of a kind in a session. Of settings and todo lists only the last one counts.
fn kind_key(session: &str, kind: AgentEntryKind) -> String {
    match kind {
        AgentEntryKind::Log => log_key(session),
        AgentEntryKind::Settings => format!("agent settings:{session}"),
        AgentEntryKind::Todos => format!("agent todos:{session}"),
        AgentEntryKind::Reads => format!("agent reads:{session}"),
        AgentEntryKind::Cleared => format!("agent cleared:{session}"),
    }
}

/// Returns the keys of an entry.
pub(crate) fn keys(entry: &AgentEntry) -> Vec<String> {
    let mut keys = vec![kind_key(&entry.session, entry.kind)];
    keys.extend(entry.blob.map(|_| BLOBS.to_owned()));
    keys
}

/// An entry to record.
#[derive(Clone, Copy, Debug)]
pub struct NewAgentEntry<'e> {
    pub session: &'e str,
    pub kind: AgentEntryKind,
    /// Version of the content's format.
    pub version: u32,
    pub content: &'e Value,
}

/// A recorded entry.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredAgentEntry {
    /// Number of its event.
    pub number: u64,
    /// In milliseconds since 1970.
    pub time: i64,
    pub version: u32,
    /// `None` if retention deleted it.
    pub content: Option<Value>,
}

impl Engine {
    /// Records entries in one transaction. Returns the number of the last event.
    pub fn record_agent_entries(&mut self, entries: &[NewAgentEntry<'_>], now: i64) -> Result<u64, GateError> {
        let encoded: Vec<Vec<u8>> = entries.iter().map(|entry| encode(entry.content)).collect();
        let mut batch = JournalBatch::default();
        for (new, bytes) in entries.iter().zip(&encoded) {
            let NewAgentEntry { session, kind, version, content } = *new;
            let blob = (bytes.len() > MAX_INLINE_BYTES).then(|| ContentHash::of(bytes));
            let content = if blob.is_some() { Value::Null } else { content.clone() };
            let entry = AgentEntry { session: session.to_owned(), kind, version, content, blob };
            let blobs: Vec<(ContentHash, &[u8])> = blob.iter().map(|hash| (*hash, &bytes[..])).collect();
            batch.push_event_with_blobs(Event::Agent(entry), &blobs, &[]);
        }
        let numbers = self.write(batch, now)?;
        Ok(numbers.end.saturating_sub(1))
    }

    /// Returns the numbers of the entries whose blobs retention keeps: those of active sessions with an entry since `before`, and of
    /// all active sessions without `before`.
    pub(crate) fn agent_blobs_in_use(&self, before: Option<i64>) -> Result<BTreeSet<u64>, GateError> {
        let mut by_session: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let mut after = 0;
        loop {
            let page = self.journal.reader().events_with(BLOBS, after, PAGE_SIZE)?;
            let Some(last) = page.last() else { break };
            after = last.number;
            for event in &page {
                if let EventBody::Known(Event::Agent(entry)) = decode_event(event).body {
                    by_session.entry(entry.session).or_default().push(event.number);
                }
            }
        }
        let mut kept = BTreeSet::new();
        for (session, numbers) in by_session {
            let history = self.history();
            let is_active =
                history.session(&session)?.is_some_and(|record| record.status == crate::session::SessionStatus::Active);
            let last = self.journal.reader().latest_with(&log_key(&session), None, 1)?.pop();
            let is_recent = before.is_none_or(|before| last.is_some_and(|last| last.time >= before));
            if is_active && is_recent {
                let cleared = history.agent_log_start(&session)?;
                kept.extend(numbers.into_iter().filter(|number| *number > cleared));
            }
        }
        Ok(kept)
    }
}

impl Gate {
    /// Records entries of the built-in agent's log in one transaction. They are durable when this returns the last number.
    pub fn record_agent_entries(&self, entries: &[NewAgentEntry<'_>], now: i64) -> Result<u64, GateError> {
        self.state().engine.record_agent_entries(entries, now)
    }
}

impl History<'_> {
    /// Returns the conversation entries of a session after a number, oldest first. Entries before the last clearing do not count.
    pub fn agent_log(&self, session: &str, after: u64, limit: usize) -> Result<Vec<StoredAgentEntry>, GateError> {
        self.agent_entries(session, AgentEntryKind::Log, after, limit)
    }

    /// Returns the entries of a kind in a session after a number, oldest first. Entries before the last clearing do not count.
    pub fn agent_entries(
        &self,
        session: &str,
        kind: AgentEntryKind,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StoredAgentEntry>, GateError> {
        let start = self.agent_log_start(session)?.max(after);
        self.stored(self.reader().events_with(&kind_key(session, kind), start, limit)?)
    }

    /// Returns the last entry of a kind in a session.
    pub fn last_agent_entry(&self, session: &str, kind: AgentEntryKind) -> Result<Option<StoredAgentEntry>, GateError> {
        Ok(self.stored(self.reader().latest_with(&kind_key(session, kind), None, 1)?)?.pop())
    }

    /// Returns the number of the event that cleared a session; 0 if none did.
    pub fn agent_log_start(&self, session: &str) -> Result<u64, GateError> {
        let key = kind_key(session, AgentEntryKind::Cleared);
        Ok(self.reader().latest_with(&key, None, 1)?.pop().map_or(0, |event| event.number))
    }

    fn stored(&self, events: Vec<sayso_journal::StoredEvent>) -> Result<Vec<StoredAgentEntry>, GateError> {
        let mut entries = Vec::new();
        for event in events {
            let EventBody::Known(Event::Agent(entry)) = decode_event(&event).body else { continue };
            let content = match entry.blob {
                None => Some(entry.content),
                Some(hash) => self.content(hash)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()),
            };
            entries.push(StoredAgentEntry { number: event.number, time: event.time, version: entry.version, content });
        }
        Ok(entries)
    }
}

fn encode(content: &Value) -> Vec<u8> {
    // Cannot fail: a value has string keys.
    serde_json::to_vec(content).unwrap_or_default()
}
