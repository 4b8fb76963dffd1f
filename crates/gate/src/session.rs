//! Sessions and turns: one conversation of one agent, and what happens between two prompts.

use sayso_review::{ChangeId, Event, EventBody, Origin, Performer, Recorded, Rule};
use serde::Serialize;

use crate::engine::Engine;
use crate::error::GateError;
use crate::history::{History, recorded};
use crate::record::{Entry, SESSIONS, conversation_key};

/// Events that are looked at in one go.
const SOME: usize = 1_000;
/// How deep subagents are within each other at most, as far as anybody looks.
const DEEPEST: usize = 16;

/// A conversation as its events tell it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionRecord {
    /// Its id.
    pub session: String,
    /// The agent's name.
    pub agent: Option<String>,
    /// Where it works, as it says.
    pub location: Option<String>,
    /// The session that it is a part of, if it is a subagent's.
    pub parent: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub time: i64,
    /// Whether it goes on.
    pub status: SessionStatus,
    /// The turn that it is in.
    pub turn: Option<String>,
    /// What was decided for all that comes in it.
    pub rules: Vec<Rule>,
    /// What its agent is to be told at its next opportunity.
    pub unread: Vec<Unread>,
}

/// A message that an agent has not received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// The number of its event.
    pub number: u64,
    /// The change that it is about.
    pub change: Option<ChangeId>,
    /// The tool call that it answers.
    pub call: Option<String>,
    /// What to say.
    pub text: String,
}

/// Whether a conversation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// It does.
    Active,
    /// It ended.
    Ended,
}

/// A conversation that begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub session: String,
    /// The agent's name.
    pub agent: Option<String>,
    /// Where it works, as it says.
    pub location: Option<String>,
    /// The session that it is a part of, if it is a subagent's.
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
                // Whatever is about it shows that there is one, whether or not it said so.
                event => {
                    let record = record.get_or_insert_with(|| Self::new(session.to_owned(), time));
                    record.play(number, event);
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

    fn play(&mut self, number: u64, event: Event) {
        match event {
            Event::SessionResumed { .. } => self.status = SessionStatus::Active,
            Event::SessionEnded { .. } => (self.status, self.turn) = (SessionStatus::Ended, None),
            Event::TurnStarted { turn, .. } => self.turn = Some(turn),
            Event::TurnEnded { .. } => self.turn = None,
            Event::RuleAdded { rule, .. } => self.rules.push(rule),
            Event::Message { change, call, text, .. } => {
                // The outcome of a call replaces the verdict on it.
                self.unread.retain(|unread| call.is_none() || (unread.change, &unread.call) != (change, &call));
                self.unread.push(Unread { number, change, call, text });
            }
            Event::Told { message, .. } => self.unread.retain(|unread| unread.number != message),
            // As earlier versions recorded it: everything up to a number.
            Event::Delivered { through, .. } => self.unread.retain(|unread| unread.number > through),
            _ => {}
        }
    }
}

impl History<'_> {
    /// One session.
    pub fn session(&self, session: &str) -> Result<Option<SessionRecord>, GateError> {
        let mut events = Vec::new();
        let mut after = 0;
        loop {
            let page = self.reader().events_with(&conversation_key(session), after, SOME)?;
            let Some(last) = page.last() else { break };
            after = last.number;
            events.extend(page.iter().map(recorded));
        }
        Ok(SessionRecord::fold(session, events))
    }

    /// What was decided for all that comes in a session, and in those that it is a part of.
    pub(crate) fn rules_of(&self, session: Option<&str>) -> Result<Vec<Rule>, GateError> {
        let mut next = session.map(|session| self.session(session)).transpose()?.flatten();
        let mut rules = Vec::new();
        for _ in 0..DEEPEST {
            let Some(record) = next.take() else { break };
            // What is said nearer by comes later, and counts.
            rules.splice(..0, record.rules);
            next = record.parent.map(|parent| self.session(&parent)).transpose()?.flatten();
        }
        Ok(rules)
    }

    /// The session in which an agent still listens: where a subagent's is over, that of whoever started it.
    pub(crate) fn listener(&self, session: &str) -> Result<String, GateError> {
        let mut listener = session.to_owned();
        for _ in 0..DEEPEST {
            match self.session(&listener)? {
                Some(SessionRecord { status: SessionStatus::Ended, parent: Some(parent), .. }) => listener = parent,
                _ => break,
            }
        }
        Ok(listener)
    }

    /// The sessions that said that they began, newest first.
    pub fn sessions(&self, limit: usize) -> Result<Vec<SessionRecord>, GateError> {
        let mut records: Vec<SessionRecord> = Vec::new();
        for event in self.reader().latest_with(SESSIONS, None, limit)? {
            let EventBody::Known(Event::SessionStarted { session, .. }) = recorded(&event).body else { continue };
            records.extend(self.session(&session)?);
        }
        Ok(records)
    }
}

impl Engine {
    /// Begins a session, or goes on with it if there is one of that id. Of a subagent nobody says when it begins, so that whatever it does
    /// may come with this; one that goes on already just does.
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
        self.write(Entry::of([event]), now)?;
        self.known_session(&session)
    }

    /// Ends a session: what still waits in it is withdrawn, and snapshots that no tool asked for are freed.
    pub fn end_session(&mut self, session: &str, now: i64) -> Result<(), GateError> {
        let record = self.known_session(session)?;
        let mut waiting: Vec<ChangeId> = Vec::new();
        for change in self.waiting()? {
            let record = self.history().change(change)?;
            // A review is the person's, not the agent's.
            if record.origin.session.as_deref() == Some(session) && !record.is_review() {
                waiting.push(change);
            }
        }
        for change in waiting {
            // One that counted on another may have ended with it.
            if self.pending(change).is_ok() {
                self.cancel(change, now)?;
            }
        }
        self.free_orphans(session, now)?;
        // Whoever started an agent ends what it left behind, whether or not it said goodbye itself.
        if record.status == SessionStatus::Active {
            self.write(Entry::of([Event::SessionEnded { session: session.to_owned() }]), now)?;
        }
        Ok(())
    }

    /// Begins a turn: a prompt came.
    pub fn start_turn(&mut self, session: &str, turn: &str, now: i64) -> Result<(), GateError> {
        let event = Event::TurnStarted { session: session.to_owned(), turn: turn.to_owned() };
        self.write(Entry::of([event]), now)?;
        Ok(())
    }

    /// What an agent is to be told, which counts as told from now on.
    pub fn take_messages(&mut self, session: &str, now: i64) -> Result<Vec<String>, GateError> {
        let unread = self.unread_messages(session)?;
        let numbers: Vec<u64> = unread.iter().map(|unread| unread.number).collect();
        self.acknowledge_messages(session, &numbers, now)?;
        Ok(unread.into_iter().map(|unread| unread.text).collect())
    }

    /// The messages that an agent has not received, oldest first.
    pub fn unread_messages(&self, session: &str) -> Result<Vec<Unread>, GateError> {
        Ok(self.history().session(session)?.map(|record| record.unread).unwrap_or_default())
    }

    /// Records that an agent has received messages. A number of no waiting message changes nothing.
    pub fn acknowledge_messages(&mut self, session: &str, numbers: &[u64], now: i64) -> Result<(), GateError> {
        let unread = self.unread_messages(session)?;
        let received = unread.into_iter().filter(|unread| numbers.contains(&unread.number));
        let told =
            |unread: Unread| Event::Told { session: session.to_owned(), change: unread.change, message: unread.number };
        let events: Vec<Event> = received.map(told).collect();
        if !events.is_empty() {
            self.write(Entry::of(events), now)?;
        }
        Ok(())
    }

    /// The message about a change to an agent that asked through a hook; `None` for others, whose answer says it all.
    ///
    /// A hook answers with a permission, which has no room for an explanation, and its agent may be gone by now. So the message
    /// stays with the session until a hook reports that it was handed over.
    pub(crate) fn message(
        &self,
        origin: &Origin,
        performer: Performer,
        change: ChangeId,
        told: &str,
    ) -> Result<Option<Event>, GateError> {
        let (Performer::Agent, Some(session), Some(call)) = (performer, &origin.session, &origin.call) else {
            return Ok(None);
        };
        let session = self.history().listener(session)?;
        Ok(Some(Event::Message { session, change: Some(change), call: Some(call.clone()), text: told.to_owned() }))
    }

    /// Adds a rule for the rest of a session.
    pub fn add_rule(&mut self, session: &str, rule: Rule, now: i64) -> Result<(), GateError> {
        self.write(Entry::of([Event::RuleAdded { session: session.to_owned(), rule }]), now)?;
        Ok(())
    }

    fn known_session(&self, session: &str) -> Result<SessionRecord, GateError> {
        self.history().session(session)?.ok_or_else(|| GateError::NoSuchSession(session.to_owned()))
    }
}
