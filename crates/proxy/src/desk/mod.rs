//! Where requests wait: who sent them, why they wait, what a person made of them, and how they ended.
//!
//! Everything here is synchronous and knows nothing of HTTP. A request arrives and is sent on at once, refused, or gets a
//! [`Ticket`] by which its client waits. Surfaces look at what waits, edit it, and end the waiting; a ticket that is dropped says that
//! the client went away.

mod arrive;
mod bell;
mod bodies;
mod edit;
mod end;
mod handover;
mod mode;
mod monitor;
mod passed;
mod past;
mod pause;
mod redacted;
mod saved;
mod sequel;
mod taken;
mod tries;
mod turn;
mod unanswered;
mod unreadable;
mod view;
mod whose;
mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use sayso_gate::{Gate, GateError};
use sayso_review::{PauseReason, RequestEnd, RequestId, RequestMode};
use sayso_wire::stream::Api;
use sayso_wire::tokens::TokenCounter;
use sayso_wire::{Head, ModelRequest, Purpose};
use tokio::sync::oneshot;

use crate::log::{Log, now};
use crate::settings::Settings;
use bell::Bell;
use bodies::Bodies;
use mode::Modes;
use monitor::Monitor;
use past::Past;
use saved::SavedEdits;
use work::{Current, Original, Work};

pub use edit::{Edit, EditRequestError, Edited, FromNowOn, Place};
pub use end::{EndError, Expected, ModeChange, OnWaiting, Resumed, Saved, Switched};
pub use mode::{Effective, Once};
pub use monitor::SubagentRun;
pub(crate) use passed::entry;
pub use pause::no_turn_because;
pub(crate) use redacted::ExactValues;
pub use redacted::{is_credential_path, redacted_paths};
pub use saved::SavedError;
pub(crate) use saved::write as write_file;
pub(crate) use sequel::Sequel;
pub(crate) use taken::{Following, Taken};
pub(crate) use tries::Tried;
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
    /// URL of the upstream, without a user and a password.
    pub server: String,
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
    /// The earlier one that a person had sent again.
    pub replay_of: Option<RequestId>,
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
    /// Whose it is.
    pub whose: Whose,
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

/// Whether the edits of a request that waits are saved once it is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Captures {
    Yes,
    No,
}

/// Whether a request offers tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tools {
    Some,
    None,
}

impl Tools {
    fn of(request: &ModelRequest) -> Self {
        if request.has_tools() { Self::Some } else { Self::None }
    }
}

/// Whether the model has answered before in the conversation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum History {
    Some,
    None,
}

impl History {
    fn of(request: &ModelRequest) -> Self {
        if request.has_answers() { Self::Some } else { Self::None }
    }
}

/// What a request takes over from an earlier one that was the same.
#[derive(Debug)]
struct Inherited {
    /// The earlier one.
    earlier: RequestId,
    /// What was made of it.
    work: Work,
    captures: Captures,
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
        self.desk.client_gone(self.request, now());
    }
}

/// A request that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    whose: Whose,
    came: Came,
    original: Arc<Original>,
    api: Option<Api>,
    why: PauseReason,
    since: i64,
    work: Work,
    /// The messages and the whole, for comparing.
    said: Vec<String>,
    identity: String,
    captures: Captures,
    /// Whether it offers tools: what offers none takes the place of none that does.
    tools: Tools,
    history: History,
    /// How many edits there were, undone ones included.
    revision: u64,
    verdict: oneshot::Sender<Verdict>,
}

impl Waiting {
    /// The request as it is now. It takes a while to make its sections, during which nobody is to hold the lock.
    fn current(&self) -> Current {
        Current { original: Arc::clone(&self.original), edited: self.work.edited.clone() }
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
    /// Those that were sent after their client had its status, and how whoever tries them is told that they are cancelled.
    tried: BTreeMap<RequestId, oneshot::Sender<()>>,
    modes: Modes,
    past: Past,
    monitor: Monitor,
    sessions: BTreeMap<String, Session>,
    turns: turn::Turns,
    /// The request whose differences were looked at last, and how many edits it had.
    compared: Option<(RequestId, u64)>,
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
    /// Whether the engine stops: what breaks off now is not the agent's doing.
    stops: Arc<AtomicBool>,
    state: Mutex<State>,
    saved: SavedEdits,
    /// The file for the edits of running turns.
    turns_path: PathBuf,
    bodies: Mutex<Bodies>,
    counter: Mutex<TokenCounter>,
    /// Another one for rules: requests do not wait for those who look at one.
    rules_counter: Mutex<TokenCounter>,
    bell: Bell,
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
        let saved = SavedEdits::new(journal, home);
        // Edits that are saved for every workspace are applied where nobody has chosen a mode.
        let everywhere = saved.of(sayso_wire::Scope::Global, "").is_ok_and(|edits| !edits.is_empty());
        let fallback = if everywhere { RequestMode::AutoOverride } else { RequestMode::Off };
        let turns_path = journal.join("overrides").join("turns.json");
        let (past, ended) = handover::take_over(&gate, now());
        let state = State {
            waiting: BTreeMap::new(),
            tried: BTreeMap::new(),
            modes: Modes::new(modes).or(fallback),
            past,
            monitor: Monitor::default(),
            sessions: BTreeMap::new(),
            turns: turn::read_turns(&turns_path),
            compared: None,
        };
        let desk = Self {
            gate,
            log,
            settings: RwLock::new(Arc::new(settings)),
            last: AtomicU64::new(last),
            quiet: AtomicBool::new(false),
            judged: AtomicBool::new(gate_judges),
            stops: Arc::default(),
            state: Mutex::new(state),
            saved,
            turns_path,
            bodies: Mutex::default(),
            counter: Mutex::new(TokenCounter::new(1 << 14)),
            rules_counter: Mutex::new(TokenCounter::new(1 << 10)),
            bell: Bell::default(),
        };
        desk.settle_killed(ended);
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
        let forgotten = state.past.is_empty() && state.waiting.is_empty() && state.turns.is_empty();
        let ruled = self.judged.load(Ordering::Acquire) || !self.settings().rules.is_empty();
        let quiet = state.modes.is_quiet() && forgotten && !ruled;
        self.quiet.store(quiet, Ordering::Release);
        self.gate.requests_wait(state.waiting.len());
    }

    /// Whether the engine stops.
    pub(crate) fn stops(&self) -> bool {
        self.stops.load(Ordering::Acquire)
    }

    /// The number of the next request.
    pub fn number(&self) -> RequestId {
        self.last.fetch_add(1, Ordering::AcqRel) + 1
    }
}
