//! The engine as many clients use it at once: commands in, events out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sayso_journal::Reader;
use sayso_review::{
    ChangeId, Command, Decider, FromNowOn, IfChanged, Origin, RequestId, Rule, RuleScope, Syntax, Target, Verdict,
    VerdictError,
};

use crate::action::Finished;
use crate::announce::{Announce, Announced, Announcement};
use crate::capture::{Capture, ToolCall};
use crate::engine::Engine;
use crate::error::GateError;
use crate::feed::{Feed, Subscription};
use crate::history::History;
use crate::peer::{Agents, Process};
use crate::proposed::{Decided, Proposed};
use crate::rules::Rules;
use crate::session::{NewSession, SessionRecord, Unread};
use crate::submit::{Submission, Submitted, syntax_of};
use crate::waiting::Ticked;
use sayso_review::DryRunOutput;

/// The engine of a workspace, shared by all who use it.
#[derive(Clone, Debug)]
pub struct Gate {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    feed: Arc<Feed>,
    /// For whoever only reads, and does not want to wait for whoever does something.
    reader: Mutex<Option<Reader>>,
    surfaces: AtomicUsize,
    /// How many requests to models wait.
    requests: AtomicUsize,
    announce: Box<dyn Announce>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine: Engine,
    pub(crate) rules: Rules,
    agents: Agents,
}

/// Who sends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Somebody on the other end of a connection, known by their process.
    Process(u32),
    /// A person at a surface in our own process, or one who showed that they know the token.
    Person,
}

/// What a command led to.
#[derive(Debug)]
pub enum Reply {
    /// An intent was taken.
    Submitted(Submitted),
    /// A verdict was carried out.
    Decided {
        /// How that ended.
        decided: Box<Decided>,
        /// A rule that is to be written into the user's configuration.
        keep: Option<Rule>,
    },
    /// Something that was permitted has been done.
    Finished(Finished),
    /// What a rehearsal said.
    DryRun(DryRunOutput),
    /// What was kept of a file.
    Captured(Capture),
    /// A session as it is now.
    Session(SessionRecord),
    /// What the turn changed at once waits for review; nothing, if nothing did.
    TurnEnded(Option<Box<Proposed>>),
    /// What an agent is to be told.
    Messages(Vec<String>),
    /// The messages that an agent has not received.
    Unread(Vec<Unread>),
    /// Done, and there is nothing to say.
    Done,
}

/// A surface that is attached: whoever waits for a verdict is shown there. Detached when dropped.
#[derive(Debug)]
pub struct Attached {
    shared: Arc<Shared>,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.shared.surfaces.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Gate {
    /// Opens an engine to many clients. What waits while no surface is attached is announced. Snapshots for which no tool has started
    /// are freed first: whoever would have started it spoke to an engine that is gone.
    pub fn new(mut engine: Engine, rules: Rules, announce: Box<dyn Announce>, now: i64) -> Result<Self, GateError> {
        engine.free_all_orphans(now)?;
        Ok(Self::taken_over(engine, rules, announce))
    }

    /// The same for an engine that takes over from another one: whoever spoke to that one goes on with this one, and with what it
    /// kept for them.
    pub fn taken_over(engine: Engine, rules: Rules, announce: Box<dyn Announce>) -> Self {
        let feed = Arc::clone(&engine.feed);
        let state = Mutex::new(State { engine, rules, agents: Agents::default() });
        let (surfaces, requests) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { shared: Arc::new(Shared { state, feed, reader: Mutex::new(None), surfaces, requests, announce }) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // What is true is in the journal, and an engine that panicked has written it whole or not at all.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what happened. Never waits for the engine.
    pub fn read<T>(&self, read: impl FnOnce(History<'_>) -> Result<T, GateError>) -> Result<T, GateError> {
        // A reader that somebody panicked with is still only a reader.
        let mut reader = self.shared.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = match &mut *reader {
            Some(reader) => reader,
            none => none.insert(Reader::open(self.shared.feed.folder())?),
        };
        read(History::of_engine(reader, &self.shared.feed))
    }

    /// How many surfaces are attached.
    pub fn surfaces(&self) -> usize {
        self.shared.surfaces.load(Ordering::Acquire)
    }

    /// The number of the last event.
    pub fn last_event(&self) -> u64 {
        self.shared.feed.last()
    }

    /// Ends the stream: whoever follows it is told so once they have seen all of it.
    pub fn end_stream(&self) {
        self.shared.feed.end();
    }

    /// Follows the stream, from after the event with this number on. Never waits for the engine.
    pub fn subscribe(&self, after: u64) -> Subscription {
        Subscription::new(Arc::clone(&self.shared.feed), after)
    }

    /// Attaches a surface.
    pub fn attach(&self) -> Attached {
        self.shared.surfaces.fetch_add(1, Ordering::AcqRel);
        Attached { shared: Arc::clone(&self.shared) }
    }

    /// Counts everything beneath a process as an agent's, which decides nothing.
    pub fn agent_started(&self, root: Process) {
        self.state().agents.add(root);
    }

    /// No longer does so.
    pub fn agent_ended(&self, root: Process) {
        self.state().agents.remove(root);
    }

    /// The file of the journal that was removed or replaced, if one was: this engine can do nothing more.
    pub fn displaced(&self) -> Option<std::path::PathBuf> {
        self.state().engine.journal.displaced().cloned()
    }

    /// `true` while a command or a tool that may write was let go ahead and is not over, or if that cannot be read.
    pub fn has_writer_under_way(&self) -> bool {
        self.state().engine.has_writer_under_way()
    }

    /// Shows a change that waits against its files as they are now.
    pub fn keep_current(&self, change: ChangeId, now: i64) -> Result<(), GateError> {
        self.state().engine.keep_current(change, now).map(drop)
    }

    /// Does what is due: deadlines that passed, previews that files outran.
    pub fn tick(&self, now: i64) -> Result<Ticked, GateError> {
        self.state().engine.tick(now)
    }

    /// When the next deadline is.
    pub fn next_deadline(&self) -> Result<Option<i64>, GateError> {
        self.state().engine.next_deadline()
    }

    /// The changes that wait for a verdict, in the order in which they came.
    pub fn waiting(&self) -> Result<Vec<ChangeId>, GateError> {
        self.state().engine.waiting()
    }

    /// A change that waits, with all that it shows.
    pub fn proposed(&self, change: ChangeId) -> Result<Proposed, GateError> {
        self.state().engine.proposed(change)
    }

    /// Ends the stream and gives the engine back, if nobody else uses it.
    pub fn close(self) -> Option<Engine> {
        self.shared.feed.end();
        let shared = Arc::into_inner(self.shared)?;
        Some(shared.state.into_inner().unwrap_or_else(PoisonError::into_inner).engine)
    }

    /// Carries out a command.
    pub fn command(&self, client: Client, command: Command, now: i64) -> Result<Reply, GateError> {
        // What takes a while is done before the engine is anybody's.
        let syntax = match &command {
            Command::Submit { intent, .. } => syntax_of(intent),
            _ => None,
        };
        let mut state = self.state();
        if let (true, Client::Process(id)) = (command.needs_a_person(), client) {
            state.agents.refuse(id)?;
        }
        if let Command::DryRun { change } = command {
            let rehearsal = state.engine.rehearsal(change)?;
            // It may take a while, and changes nothing.
            drop(state);
            return Ok(Reply::DryRun(rehearsal.run()));
        }
        let reply = state.carry_out(command, syntax, now)?;
        let waits = match &reply {
            Reply::Submitted(submitted) => waits_of(submitted),
            Reply::Decided { decided, .. } => match &**decided {
                Decided::Stale { next, .. } => Some(next.change),
                _ => None,
            },
            Reply::TurnEnded(Some(review)) => Some(review.change),
            _ => None,
        };
        self.announce(state, waits)?;
        Ok(reply)
    }

    /// Takes an intent.
    pub fn submit(&self, submission: Submission, now: i64) -> Result<Submitted, GateError> {
        let syntax = submission.syntax.clone().or_else(|| syntax_of(&submission.intent));
        let mut state = self.state();
        let State { engine, rules, .. } = &mut *state;
        let submitted = engine.submit(Submission { syntax, ..submission }, rules, now)?;
        self.announce(state, waits_of(&submitted))?;
        Ok(submitted)
    }

    /// Makes people look, if something waits and no surface shows it.
    fn announce(&self, mut state: MutexGuard<'_, State>, waits: Option<ChangeId>) -> Result<(), GateError> {
        if let (Some(change), 0) = (waits, self.surfaces()) {
            let changes = state.engine.waiting_count()?;
            drop(state);
            let requests = self.shared.requests.load(Ordering::Acquire);
            self.shared.announce.announce(&Announcement { changes, requests, came: Announced::Change(change) });
        }
        Ok(())
    }

    /// Takes note of how many requests to models wait.
    pub fn requests_wait(&self, count: usize) {
        self.shared.requests.store(count, Ordering::Release);
    }

    /// Makes people look at a request that waits, if no surface shows it.
    pub fn announce_request(&self, request: RequestId) {
        if self.surfaces() > 0 {
            return;
        }
        // That it waits is what matters, however many others do.
        let changes = self.state().engine.waiting_count().unwrap_or_default();
        let requests = self.shared.requests.load(Ordering::Acquire).max(1);
        self.shared.announce.announce(&Announcement { changes, requests, came: Announced::Request(request) });
    }
}

fn waits_of(submitted: &Submitted) -> Option<ChangeId> {
    if let Submitted::Waiting(proposed) = submitted { Some(proposed.change) } else { None }
}

impl State {
    fn carry_out(&mut self, command: Command, syntax: Option<Syntax>, now: i64) -> Result<Reply, GateError> {
        let Self { engine, rules, .. } = self;
        Ok(match command {
            Command::Submit { intent, origin, performer, deadline, schema } => {
                let submission = Submission { performer, deadline, schema, syntax, ..Submission::new(intent, origin) };
                Reply::Submitted(engine.submit(submission, rules, now)?)
            }
            Command::Decide { change, verdict, from_now_on } => self.decide(change, &verdict, from_now_on, now)?,
            Command::Withdraw { change } => {
                engine.cancel(change, now)?;
                Reply::Done
            }
            Command::Finish { change, code } => Reply::Finished(engine.finish(change, code, now)?),
            Command::DryRun { change } => Reply::DryRun(engine.rehearsal(change)?.run()),
            Command::Capture { tier, session, call, tool, arguments } => {
                let call = ToolCall { session, call, tool };
                Reply::Captured(engine.capture_call(tier, &call, &arguments, now)?)
            }
            Command::Undo { target, if_changed } => self.reverse(&target, if_changed, Engine::plan_undo, now)?,
            Command::Redo { target, if_changed } => self.reverse(&target, if_changed, Engine::plan_redo, now)?,
            Command::StartSession { session, agent, location, parent } => {
                Reply::Session(engine.start_session(NewSession { session, agent, location, parent }, now)?)
            }
            Command::EndSession { session } => {
                engine.end_session(&session, now)?;
                Reply::Done
            }
            Command::StartTurn { session, turn } => {
                engine.start_turn(&session, &turn, now)?;
                Reply::Done
            }
            Command::EndTurn { session, turn } => {
                Reply::TurnEnded(engine.end_turn(&session, &turn, now)?.map(Box::new))
            }
            Command::TakeMessages { session } => Reply::Messages(engine.take_messages(&session, now)?),
            Command::ListMessages { session } => Reply::Unread(engine.unread_messages(&session)?),
            Command::AcknowledgeMessages { session, numbers } => {
                engine.acknowledge_messages(&session, &numbers, now)?;
                Reply::Done
            }
            Command::Collect { before } => {
                engine.collect(Some(before), None)?;
                Reply::Done
            }
        })
    }

    fn decide(
        &mut self,
        change: ChangeId,
        verdict: &Verdict,
        from_now_on: Option<FromNowOn>,
        now: i64,
    ) -> Result<Reply, GateError> {
        // Policy is asked here and not by clients: none of them speaks for it.
        if verdict.by != Decider::Person {
            return Err(VerdictError::NotAnAnswer("anything: it claims to be a rule's").into());
        }
        let proposed = self.engine.proposed(change)?;
        self.engine.check_rules(&proposed, &verdict.answer, &mut self.rules)?;
        let rule = from_now_on
            .map(|meant| self.engine.offered_rule(&proposed, &verdict.answer, meant, &mut self.rules))
            .transpose()?;
        let decided = self.engine.decide(&proposed, verdict, now)?;
        let mut keep = None;
        let counts = !matches!(decided, Decided::Stale { .. } | Decided::Failed { .. });
        if let (Some(rule), Some(answer), true) = (rule, from_now_on, counts) {
            match (answer.scope, &proposed.origin.session) {
                (RuleScope::Session, Some(session)) => self.engine.add_rule(session, rule, now)?,
                _ => keep = Some(rule),
            }
        }
        Ok(Reply::Decided { decided: Box::new(decided), keep })
    }

    fn reverse(
        &mut self,
        target: &Target,
        if_changed: IfChanged,
        plan: fn(&Engine, &Target, IfChanged) -> Result<crate::undo::UndoPlan, GateError>,
        now: i64,
    ) -> Result<Reply, GateError> {
        let plan = plan(&self.engine, target, if_changed)?;
        let decided = self.engine.perform(plan, Origin::default(), now)?;
        Ok(Reply::Decided { decided: Box::new(decided), keep: None })
    }
}
