//! Sessions and turns. A session is one conversation with one agent; a turn is everything between two prompts.

use sayso_review::{ChangeId, Event, EventBody, Origin, Performer, Recorded, Rule};
use serde::Serialize;

use crate::engine::Engine;
use crate::error::GateError;
use crate::history::{History, decode_event};
use crate::record::{JournalBatch, SESSIONS, session_state_key};

const PAGE_SIZE: usize = 1_000;
/// Maximum nesting of subagents that is followed.
const MAX_SUBAGENT_DEPTH: usize = 16;

/// State of a session, folded from its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionRecord {
    pub session: String,
    pub agent: Option<String>,
    /// Working directory, as the agent reports it.
    pub location: Option<String>,
    /// Session of the agent that started this subagent.
    pub parent: Option<String>,
    /// Start time, in milliseconds since 1970.
    pub time: i64,
    pub status: SessionStatus,
    /// Current turn.
    pub turn: Option<String>,
    /// Rules that verdicts added.
    pub rules: Vec<Rule>,
    /// Messages that the agent has not received.
    pub unread: Vec<UnreadMessage>,
}

/// Message that an agent has not received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreadMessage {
    /// Number of its event.
    pub number: u64,
    pub change: Option<ChangeId>,
    /// Tool call that the message answers.
    pub call: Option<String>,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    Active,
    Ended,
}

/// Parameters of [`Engine::start_session`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    pub session: String,
    pub agent: Option<String>,
    /// Working directory, as the agent reports it.
    pub location: Option<String>,
    /// Session of the agent that started this subagent.
    pub parent: Option<String>,
}

impl SessionRecord {
    fn fold(session: &str, events: impl IntoIterator<Item = Recorded>) -> Option<Self> {
        let mut record: Option<Self> = None;
        for Recorded { number, time, body } in events {
            let EventBody::Known(event) = body else { continue };
            match event {
                Event::SessionStarted { session, agent, location, parent } if record.is_none() => {
                    record = Some(Self { agent, location, parent, ..Self::new(session, time) });
                }
                // Any event of a session implies the session, even if its start was never reported.
                event => {
                    let record = record.get_or_insert_with(|| Self::new(session.to_owned(), time));
                    record.apply(number, event);
                }
            }
        }
        record
    }

    fn new(session: String, time: i64) -> Self {
        Self {
            session,
            agent: None,
            location: None,
            parent: None,
            time,
            status: SessionStatus::Active,
            turn: None,
            rules: Vec::new(),
            unread: Vec::new(),
        }
    }

    fn apply(&mut self, number: u64, event: Event) {
        match event {
            Event::SessionResumed { .. } => self.status = SessionStatus::Active,
            Event::SessionEnded { .. } => (self.status, self.turn) = (SessionStatus::Ended, None),
            Event::TurnStarted { turn, .. } => self.turn = Some(turn),
            Event::TurnEnded { .. } => self.turn = None,
            Event::RuleAdded { rule, .. } => self.rules.push(rule),
            Event::MessageQueued { change, call, text, .. } => {
                // The outcome of a call replaces the message about its verdict.
                self.unread.retain(|unread| call.is_none() || (unread.change, &unread.call) != (change, &call));
                self.unread.push(UnreadMessage { number, change, call, text });
            }
            Event::MessageDelivered { message, .. } => self.unread.retain(|unread| unread.number != message),
            // As earlier versions recorded it: everything up to a number.
            Event::Delivered { through, .. } => self.unread.retain(|unread| unread.number > through),
            _ => {}
        }
    }
}

impl History<'_> {
    /// Returns a session; `None` if it has no event.
    pub fn session(&self, session: &str) -> Result<Option<SessionRecord>, GateError> {
        let mut events = Vec::new();
        let mut after = 0;
        loop {
            let page = self.reader().events_with(&session_state_key(session), after, PAGE_SIZE)?;
            let Some(last) = page.last() else { break };
            after = last.number;
            events.extend(page.iter().map(decode_event));
        }
        Ok(SessionRecord::fold(session, events))
    }

    /// Returns the rules of a session and of its parents, outermost first.
    pub(crate) fn session_rules(&self, session: Option<&str>) -> Result<Vec<Rule>, GateError> {
        let mut next = session.map(|session| self.session(session)).transpose()?.flatten();
        let mut rules = Vec::new();
        for _ in 0..MAX_SUBAGENT_DEPTH {
            let Some(record) = next.take() else { break };
            // Later rules take precedence, so inner sessions come last.
            rules.splice(..0, record.rules);
            next = record.parent.map(|parent| self.session(&parent)).transpose()?.flatten();
        }
        Ok(rules)
    }

    /// Returns the session that can still receive messages: for an ended subagent, that of its parent.
    pub(crate) fn listening_session(&self, session: &str) -> Result<String, GateError> {
        let mut listener = session.to_owned();
        for _ in 0..MAX_SUBAGENT_DEPTH {
            match self.session(&listener)? {
                Some(SessionRecord { status: SessionStatus::Ended, parent: Some(parent), .. }) => listener = parent,
                _ => break,
            }
        }
        Ok(listener)
    }

    /// Returns the sessions with a reported start, newest first.
    pub fn sessions(&self, limit: usize) -> Result<Vec<SessionRecord>, GateError> {
        let mut records: Vec<SessionRecord> = Vec::new();
        for event in self.reader().latest_with(SESSIONS, None, limit)? {
            let EventBody::Known(Event::SessionStarted { session, .. }) = decode_event(&event).body else { continue };
            records.extend(self.session(&session)?);
        }
        Ok(records)
    }
}

impl Engine {
    /// Starts a session, or resumes the one with that id. Subagents do not report their start, so every action of
    /// theirs may come with this; for an active subagent it has no effect.
    pub fn start_session(&mut self, new: NewSession, now: i64) -> Result<SessionRecord, GateError> {
        let NewSession { session, agent, location, parent } = new;
        if session.trim().is_empty() || session.chars().any(char::is_control) {
            return Err(GateError::BadSession(session));
        }
        let event = match self.history().session(&session)? {
            Some(record) if parent.is_some() && record.status == SessionStatus::Active => return Ok(record),
            Some(_) => Event::SessionResumed { session: session.clone() },
            None => Event::SessionStarted { session: session.clone(), agent, location, parent },
        };
        self.write(JournalBatch::from_events([event]), now)?;
        self.existing_session(&session)
    }

    /// Ends a session. Cancels its pending changes and frees its pending snapshots.
    pub fn end_session(&mut self, session: &str, now: i64) -> Result<(), GateError> {
        let record = self.existing_session(session)?;
        let mut waiting: Vec<ChangeId> = Vec::new();
        for change in self.pending_changes()? {
            let record = self.history().change(change)?;
            // A review belongs to the person, not to the agent.
            if record.origin.session.as_deref() == Some(session) && !record.is_review() {
                waiting.push(change);
            }
        }
        for change in waiting {
            // A dependent change may have ended with another one.
            if self.pending_record(change).is_ok() {
                self.cancel(change, now)?;
            }
        }
        self.free_session_orphans(session, now)?;
        // The agent may have ended its session itself.
        if record.status == SessionStatus::Active {
            self.write(JournalBatch::from_events([Event::SessionEnded { session: session.to_owned() }]), now)?;
        }
        Ok(())
    }

    /// Starts a turn.
    pub fn start_turn(&mut self, session: &str, turn: &str, now: i64) -> Result<(), GateError> {
        let event = Event::TurnStarted { session: session.to_owned(), turn: turn.to_owned() };
        self.write(JournalBatch::from_events([event]), now)?;
        Ok(())
    }

    /// Returns the unread messages of a session, and records their delivery.
    pub fn take_messages(&mut self, session: &str, now: i64) -> Result<Vec<String>, GateError> {
        let unread = self.unread_messages(session)?;
        let numbers: Vec<u64> = unread.iter().map(|unread| unread.number).collect();
        self.acknowledge_messages(session, &numbers, now)?;
        Ok(unread.into_iter().map(|unread| unread.text).collect())
    }

    /// Queues a message for the agent of a session. Its next request delivers it.
    pub fn queue_message(
        &mut self,
        session: &str,
        change: Option<ChangeId>,
        text: &str,
        now: i64,
    ) -> Result<(), GateError> {
        let (session, text) = (session.to_owned(), text.to_owned());
        self.write(JournalBatch::from_events([Event::MessageQueued { session, change, call: None, text }]), now)?;
        Ok(())
    }

    /// Returns the unread messages of a session, oldest first.
    pub fn unread_messages(&self, session: &str) -> Result<Vec<UnreadMessage>, GateError> {
        Ok(self.history().session(session)?.map(|record| record.unread).unwrap_or_default())
    }

    /// Records the delivery of messages. Ignores numbers of other events.
    pub fn acknowledge_messages(&mut self, session: &str, numbers: &[u64], now: i64) -> Result<(), GateError> {
        let unread = self.unread_messages(session)?;
        let received = unread.into_iter().filter(|unread| numbers.contains(&unread.number));
        let delivered = |unread: UnreadMessage| Event::MessageDelivered {
            session: session.to_owned(),
            change: unread.change,
            message: unread.number,
        };
        let events: Vec<Event> = received.map(delivered).collect();
        if !events.is_empty() {
            self.write(JournalBatch::from_events(events), now)?;
        }
        Ok(())
    }

    /// Returns the event that queues a message about a change; `None` unless a hook of the agent asked.
    ///
    /// A hook returns a permission without an explanation, and its agent may be gone by then. So the message stays with
    /// the session until a hook reports its delivery. Other clients have the message in their response.
    pub(crate) fn queued_message(
        &self,
        origin: &Origin,
        performer: Performer,
        change: ChangeId,
        agent_message: &str,
    ) -> Result<Option<Event>, GateError> {
        let (Performer::Agent, Some(session), Some(call)) = (performer, &origin.session, &origin.call) else {
            return Ok(None);
        };
        let session = self.history().listening_session(session)?;
        Ok(Some(Event::MessageQueued {
            session,
            change: Some(change),
            call: Some(call.clone()),
            text: agent_message.to_owned(),
        }))
    }

    /// Adds a rule for the rest of a session.
    pub fn add_rule(&mut self, session: &str, rule: Rule, now: i64) -> Result<(), GateError> {
        self.write(JournalBatch::from_events([Event::RuleAdded { session: session.to_owned(), rule }]), now)?;
        Ok(())
    }

    fn existing_session(&self, session: &str) -> Result<SessionRecord, GateError> {
        self.history().session(session)?.ok_or_else(|| GateError::NoSuchSession(session.to_owned()))
    }
}
