//! Where requests wait: who sent them, why they wait, what a person made of them, and how they ended.
//!
//! Everything here is synchronous and knows nothing of HTTP. A request arrives and is sent on at once, refused, or gets a
//! [`Ticket`] by which its client waits. Surfaces look at what waits, edit it, and end the waiting; a ticket that is dropped says that
//! the client went away.

mod bodies;
mod edit;
mod end;
mod mode;
mod monitor;
mod past;
mod pause;
mod saved;
mod unanswered;
mod view;
mod whose;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use sayso_gate::{Gate, GateError};
use sayso_review::{
    BodyRecord, Event, PauseReason, RequestEnd, RequestId, RequestSeen, RequestStep, Resumer, Ruling,
    SavedEdits as SavedOutcome,
};
use sayso_wire::stream::Api;
use sayso_wire::tokens::TokenCounter;
use sayso_wire::{Head, ModelRequest, Purpose};
use tokio::sync::oneshot;

use crate::log::{Haste, Log};
use crate::settings::{Keep, Settings};
use bodies::Bodies;
use mode::Modes;
use monitor::Monitor;
use past::{Fate, Past};
use pause::Saved;
use saved::SavedEdits;

pub use edit::{Edit, EditRequestError, Edited, FromNowOn, Place};
pub use end::{EndError, Expected};
pub use mode::{Effective, Once};
pub use monitor::SubagentRun;
pub use saved::SavedError;
pub(crate) use saved::write as write_file;
pub use unanswered::Unanswered;
pub use view::{Looked, OverrideView, SessionView, Waits};
pub use whose::{Run, Whose};

/// Sessions that are remembered for a person to choose from.
const MOST_SESSIONS: usize = 200;

/// A request that came in, but for its body.
#[derive(Clone, Debug)]
pub struct Came {
    /// The run that it belongs to.
    pub run: Run,
    /// The upstream's name.
    pub upstream: String,
    /// The method.
    pub method: String,
    /// The path beneath the upstream, and the headers that are no credentials.
    pub head: Head,
    /// How the body is compressed.
    pub encoding: Option<String>,
    /// The hash of the key that it came with.
    pub key: Option<String>,
    /// Whether its body is signed, so that nobody can edit it.
    pub signed: Signed,
    /// When its client will have given up, in milliseconds since 1970.
    pub deadline: Option<i64>,
}

/// Whether all of a body came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Complete {
    Yes,
    No,
}

/// Whether a body is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// What becomes of a request that arrived.
#[derive(Debug)]
pub enum Arrived {
    /// It goes on.
    Send(Outgoing),
    /// It waits for a person.
    Wait(Ticket),
    /// It ends here.
    Refuse {
        /// The request.
        request: RequestId,
        /// The API that its client speaks.
        api: Option<Api>,
        /// Why.
        why: RequestEnd,
    },
}

/// A request that goes on.
#[derive(Debug)]
pub struct Outgoing {
    /// The API that its client speaks.
    pub api: Option<Api>,
    /// What is sent, if that is not what came.
    pub body: Option<Arc<[u8]>>,
    /// What becomes of it.
    pub unanswered: Unanswered,
}

/// Whether an answer is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// What a person, or something that happened, makes of a request that waits.
#[derive(Debug)]
pub enum Verdict {
    /// It goes on.
    Send(Outgoing),
    /// It ends.
    End(RequestEnd),
}

/// A client that waits. Dropped before there is a verdict, it says that the client went away.
#[derive(Debug)]
pub struct Ticket {
    desk: Arc<Desk>,
    /// The request.
    pub request: RequestId,
    /// The API that the client speaks.
    pub api: Option<Api>,
    /// Whether it wants a stream.
    pub purpose: Option<Purpose>,
    verdict: oneshot::Receiver<Verdict>,
}

impl Ticket {
    /// Waits for the verdict. Can be called again when it was given up in between.
    pub async fn verdict(&mut self) -> Verdict {
        // The desk holds the other end for as long as the request waits.
        (&mut self.verdict).await.unwrap_or(Verdict::End(RequestEnd::EngineStopped))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.desk.client_gone(self.request, crate::log::now());
    }
}

/// A request that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    whose: Whose,
    came: Came,
    body: Arc<[u8]>,
    api: Option<Api>,
    why: PauseReason,
    since: i64,
    /// Made when somebody looks, or when there are edits: sections of a thousand requests that nobody looks at cost too much.
    request: Option<Box<ModelRequest>>,
    /// The messages and the whole, for comparing.
    said: Vec<String>,
    identity: String,
    saved: SavedOutcome,
    /// How many edits there were, undone ones included.
    revision: u64,
    verdict: oneshot::Sender<Verdict>,
}

impl Waiting {
    /// The request in sections.
    fn request(&mut self, id: RequestId) -> &mut ModelRequest {
        let (head, body) = (&self.came.head, &self.body);
        self.request.get_or_insert_with(|| Box::new(ModelRequest::new(id.to_string(), head.clone(), Arc::clone(body))))
    }

    fn is_edited(&self) -> bool {
        self.request.as_ref().is_some_and(|request| request.is_dirty())
    }
}

#[derive(Debug)]
struct Session {
    agent: Option<String>,
    model: Option<String>,
    run: String,
    last: i64,
    requests: u64,
}

#[derive(Debug)]
struct State {
    waiting: BTreeMap<RequestId, Waiting>,
    modes: Modes,
    past: Past,
    monitor: Monitor,
    saved: SavedEdits,
    sessions: BTreeMap<String, Session>,
}

/// Where requests wait.
#[derive(Debug)]
pub struct Desk {
    pub(crate) gate: Gate,
    pub(crate) log: Arc<Log>,
    settings: RwLock<Arc<Settings>>,
    last: AtomicU64,
    /// Whether every request is sent as it comes.
    quiet: AtomicBool,
    /// Whether the policy says anything about requests.
    judged: AtomicBool,
    state: Mutex<State>,
    bodies: Mutex<Bodies>,
    counter: Mutex<TokenCounter>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds one of these locks leaves its value half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// Opens the desk of a workspace, with its journal's folder and sayso's own.
    pub fn open(gate: Gate, settings: Settings, journal: &Path, home: &Path) -> Result<Arc<Self>, GateError> {
        let (last, modes) = (gate.last_request()?, gate.read(|history| history.request_modes())?);
        let gate_judges = gate.policy(None, sayso_review::Policy::judges_requests)?;
        let log = Arc::new(Log::start(gate.clone()).map_err(GateError::Thread)?);
        let state = State {
            waiting: BTreeMap::new(),
            modes: Modes::new(modes),
            past: Past::default(),
            monitor: Monitor::default(),
            saved: SavedEdits::new(journal, home),
            sessions: BTreeMap::new(),
        };
        let desk = Self {
            gate,
            log,
            settings: RwLock::new(Arc::new(settings)),
            last: AtomicU64::new(last),
            quiet: AtomicBool::new(false),
            judged: AtomicBool::new(gate_judges),
            state: Mutex::new(state),
            bodies: Mutex::default(),
            counter: Mutex::new(TokenCounter::new(1 << 14)),
        };
        desk.notice(&lock(&desk.state));
        Ok(Arc::new(desk))
    }

    /// What the user has configured.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Goes by other settings from now on.
    pub fn configure(&self, settings: Settings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        // What cannot be asked judges: the answer is then why nothing is sent.
        let judges = self.gate.policy(None, sayso_review::Policy::judges_requests).unwrap_or(true);
        self.judged.store(judges, Ordering::Release);
        self.notice(&lock(&self.state));
    }

    /// Whether every request is sent as it comes, so that it need not be looked at before.
    pub fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Acquire)
    }

    /// Takes note of whether there is anything to look out for.
    fn notice(&self, state: &State) {
        let forgotten = state.past.is_empty() && state.waiting.is_empty();
        let ruled = self.judged.load(Ordering::Acquire) || !self.settings().rules.is_empty();
        let quiet = state.modes.is_quiet() && forgotten && !ruled;
        self.quiet.store(quiet, Ordering::Release);
    }

    /// The number of the next request.
    pub fn number(&self) -> RequestId {
        self.last.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Takes note of a request that was sent as it came.
    pub(crate) fn passed(
        &self,
        request: RequestId,
        came: &Came,
        body: &Arc<[u8]>,
        complete: Complete,
        room: Option<tokio::sync::OwnedSemaphorePermit>,
        now: i64,
    ) {
        let whose = Whose::by_glance(&came.run, &came.head, came.key.as_deref(), body);
        let settings = self.settings();
        self.met(request, &whose, came, body, &settings, now);
        if settings.keep == Keep::All {
            let mut record = lock(&self.bodies).cut(&whose.session, body);
            record.cut = complete == Complete::No;
            let api = crate::route::api_of(came.head.route());
            let seen = Self::seen(&whose, came, api, record.clone());
            let body = (record, Arc::clone(body));
            self.log.step_with(request, RequestStep::Seen(Box::new(seen)), body, Haste::Soon, room);
            let sent = RequestStep::Sent { body: None, saved: SavedOutcome::default() };
            self.log.step(request, sent, Haste::Soon);
        }
    }

    /// Takes in a request, and says what becomes of it.
    pub fn arrive(self: &Arc<Self>, came: Came, body: Arc<[u8]>, now: i64) -> Arrived {
        let request = self.number();
        let settings = self.settings();
        let mut parsed = ModelRequest::new(request.to_string(), came.head.clone(), Arc::clone(&body));
        let whose = Whose::by_marks(&came.run, &came.head, came.key.as_deref(), &body, parsed.marks());
        let api = parsed.dialect().map(sayso_wire::dialect::Dialect::api);
        let purpose = parsed.purpose();
        self.met(request, &whose, &came, &body, &settings, now);
        let ruled = self.ruled(&whose, &came.upstream);
        let mut state = lock(&self.state);
        let identity = parsed.identity();
        let record = || {
            let record = lock(&self.bodies).cut(&whose.session, &body);
            let seen = Self::seen(&whose, &came, api, record.clone());
            (RequestStep::Seen(Box::new(seen)), (record, Arc::clone(&body)))
        };
        let see = |haste| {
            let (step, body) = record();
            self.log.step_with(request, step, body, haste, None);
        };
        if let Some((Ruling::Deny, message)) = ruled {
            see(Haste::Now);
            let why = RequestEnd::Denied { message };
            self.log.step(request, RequestStep::Ended { why: why.clone() }, Haste::Now);
            return Arrived::Refuse { request, api, why };
        }
        // What a client sends again is not asked about again, and goes the way that it went.
        state.past.forget_old(now);
        let again = state.past.take(&whose.conversation(), &identity, now);
        let mut inherited = None;
        match again {
            Some((_, Fate::Canceled)) => {
                see(Haste::Now);
                let why = RequestEnd::CanceledBefore;
                self.log.step(request, RequestStep::Ended { why: why.clone() }, Haste::Now);
                return Arrived::Refuse { request, api, why };
            }
            Some((_, Fate::Approved { edited })) if edit::go_on(edited.as_deref(), &mut parsed) => {
                see(Haste::Now);
                self.log.step(request, RequestStep::Resumed { by: Resumer::Retry }, Haste::Now);
                let sent = parsed.is_dirty().then(|| Arc::from(parsed.to_bytes().as_ref()));
                self.sent(request, sent.as_ref(), SavedOutcome::default());
                state.past.remember(request, whose.conversation(), identity, Fate::Approved { edited }, now);
                return Arrived::Send(Outgoing { api, body: sent, unanswered: self.unanswered(request, Keeps::Yes) });
            }
            Some((earlier, Fate::Gone { edited } | Fate::Approved { edited })) => inherited = Some((earlier, edited)),
            None => {}
        }
        let said = parsed.conversation();
        if let Some(edits) = self.supersede(&mut state, request, &whose, &said, &identity) {
            inherited = Some(edits);
        }
        let effective = state.modes.effective(Some(&whose.session));
        let turn = pause::is_turn(&whose, &parsed);
        let overrides = match state.saved.all(&whose.session, settings.preview_limit) {
            Ok(overrides) => overrides,
            Err(error) => {
                tracing::error!(%error, "saved edits are not applied");
                sayso_wire::Overrides::default()
            }
        };
        let saved = if overrides.edits.is_empty() { Saved::None } else { Saved::Some };
        let why = {
            let mut counter = lock(&self.counter);
            let by_rule = pause::reason(&whose, &parsed, effective, saved, &settings.rules, &mut counter);
            let by_policy = ruled.filter(|(ruling, _)| *ruling == Ruling::Ask && pause::is_answered(&parsed));
            let by_policy = by_policy.map(|(_, rule)| PauseReason::Rule { rule });
            by_policy.or(by_rule).or(inherited.is_some().then_some(PauseReason::Retry))
        };
        let mut outcome = SavedOutcome::default();
        let applies = turn && effective.mode != sayso_review::RequestMode::Off && came.signed == Signed::No;
        let edits = inherited.as_mut().and_then(|(_, edited)| edited.take());
        if let Some(edited) = edits {
            // What cannot be carried over is not there any more; the person looks at it anyway.
            let _ = edit::go_on(Some(&edited), &mut parsed);
        } else if applies {
            outcome = edit::apply_saved(&overrides, &mut parsed);
        }
        let Some(why) = why else {
            let body = parsed.is_dirty().then(|| Arc::from(parsed.to_bytes().as_ref()));
            let keep = settings.keep == Keep::All || body.is_some() || !outcome.is_empty();
            if keep {
                see(Haste::Soon);
                self.sent(request, body.as_ref(), outcome);
            }
            self.notice(&state);
            let keeps = if keep { Keeps::Yes } else { Keeps::No };
            return Arrived::Send(Outgoing { api, body, unanswered: self.unanswered(request, keeps) });
        };
        match why {
            PauseReason::NextTurn => self.disarm(&mut state, &whose.session, Once::Pause),
            PauseReason::Capture => self.disarm(&mut state, &whose.session, Once::Capture),
            _ => {}
        }
        see(Haste::Now);
        let inherits = inherited.map(|(earlier, _)| earlier);
        let paused = RequestStep::Paused { why: why.clone(), deadline: came.deadline, inherits };
        self.log.step(request, paused, Haste::Now);
        let (sender, verdict) = oneshot::channel();
        let edited = parsed.is_dirty().then(|| Box::new(parsed));
        let waiting = Waiting {
            whose,
            came,
            body,
            api,
            why,
            since: now,
            request: edited,
            said,
            identity,
            saved: outcome,
            revision: 0,
            verdict: sender,
        };
        state.waiting.insert(request, waiting);
        self.notice(&state);
        drop(state);
        Arrived::Wait(Ticket { desk: Arc::clone(self), request, api, purpose, verdict })
    }

    /// What policy says to a request, and the rule.
    fn ruled(&self, whose: &Whose, upstream: &str) -> Option<(Ruling, String)> {
        if !self.judged.load(Ordering::Acquire) {
            return None;
        }
        let ruled = match self.gate.judge_request(upstream, whose.agent.as_deref(), &whose.session) {
            Ok(ruled) => ruled?,
            Err(error) => return Some((Ruling::Deny, error.to_string())),
        };
        let rule = ruled.by.short();
        let message = match (&ruled.ruling, &ruled.reason) {
            (Ruling::Deny, Some(reason)) => format!("Request denied by {rule}: {reason}"),
            (Ruling::Deny, None) => format!("Request denied by {rule}"),
            _ => rule,
        };
        Some((ruled.ruling, message))
    }

    /// Takes note of a request's session, and of its subagent.
    fn met(&self, request: RequestId, whose: &Whose, came: &Came, body: &Arc<[u8]>, settings: &Settings, now: i64) {
        let mut state = lock(&self.state);
        if !state.sessions.contains_key(&whose.session) && state.sessions.len() >= MOST_SESSIONS {
            let oldest = state.sessions.iter().min_by_key(|(_, session)| session.last).map(|(name, _)| name.clone());
            oldest.map(|oldest| state.sessions.remove(&oldest));
        }
        let session = state.sessions.entry(whose.session.clone()).or_insert_with(|| Session {
            agent: whose.agent.clone(),
            model: None,
            run: came.run.name.clone(),
            last: now,
            requests: 0,
        });
        session.last = now;
        session.requests += 1;
        if whose.subagent.is_none() && whose.model.is_some() {
            session.model.clone_from(&whose.model);
        }
        if whose.subagent.is_some() {
            let (head, body) = (came.head.clone(), Arc::clone(body));
            state.monitor.saw(request, whose, head, body, settings.monitor, now);
        }
    }

    fn seen(whose: &Whose, came: &Came, api: Option<Api>, body: BodyRecord) -> RequestSeen {
        let api = api.and_then(|api| serde_json::to_value(api).ok()?.as_str().map(str::to_owned));
        RequestSeen {
            origin: whose.origin(),
            upstream: came.upstream.clone(),
            method: came.method.clone(),
            path: came.head.path.clone(),
            api,
            model: whose.model.clone(),
            subagent: whose.subagent.clone(),
            body,
            encoding: came.encoding.clone(),
            headers: came.head.headers.clone(),
        }
    }

    /// Records that a request goes on.
    fn sent(&self, request: RequestId, body: Option<&Arc<[u8]>>, saved: SavedOutcome) {
        let record = body.map(|body| BodyRecord::of(body));
        let step = RequestStep::Sent { body: record.clone(), saved };
        match (record, body) {
            (Some(record), Some(body)) => {
                self.log.step_with(request, step, (record, Arc::clone(body)), Haste::Soon, None);
            }
            _ => self.log.step(request, step, Haste::Soon),
        }
    }

    fn disarm(&self, state: &mut State, session: &str, once: Once) {
        if let Some(set) = state.modes.disarm(session, once) {
            self.log.event(Event::RequestMode(set), Haste::Now);
        }
        self.notice(state);
    }

    /// Ends requests that this one takes the place of, and hands over the edits of one that is the same.
    fn supersede(
        &self,
        state: &mut State,
        request: RequestId,
        whose: &Whose,
        said: &[String],
        identity: &str,
    ) -> Option<(RequestId, Option<Box<ModelRequest>>)> {
        let conversation = whose.conversation();
        let goes_on = |waiting: &Waiting| {
            waiting.whose.conversation() == conversation && !waiting.said.is_empty() && said.starts_with(&waiting.said)
        };
        let old: Vec<RequestId> =
            state.waiting.iter().filter(|(_, waiting)| goes_on(waiting)).map(|(id, _)| *id).collect();
        let mut inherited = None;
        for id in old {
            let Some(mut waiting) = state.waiting.remove(&id) else { continue };
            if waiting.identity == identity {
                inherited = Some((id, waiting.request.take()));
            }
            self.close(id, waiting, RequestEnd::Superseded { by: request });
        }
        inherited
    }
}
