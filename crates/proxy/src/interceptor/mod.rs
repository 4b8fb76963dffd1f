//! Admission, hold table and edits: decides for each request whether it is forwarded, held or rejected.
//!
//! The interceptor is synchronous and independent of HTTP. [`Interceptor::admit`] returns an [`Admission`]. A held request gets a
//! [`HoldGuard`], through which its client waits for the [`HoldOutcome`]; dropping the guard means that the client disconnected. Surfaces
//! view, edit, resume and cancel held requests in the meantime.
//!
//! # Locks
//!
//! One mutex guards the `State`, so that admission, decisions and mode changes are atomic. It is held for map operations only.
//! Parsing, hashing, token counting and disk access happen before it is taken or after it is released; the revision of a held request
//! then tells whether it was edited in between.

mod admit;
mod assess;
mod attempts;
mod attribution;
mod attribution_source;
mod edit_request;
mod edits;
mod handover;
mod held;
mod in_flight;
mod mode_change;
mod modes;
mod monitor;
mod notifier;
mod override_capture;
mod override_store;
mod pause;
mod prior;
mod read_model;
mod recent_decisions;
mod recording;
mod resume;
mod session_registry;
mod sessions;
mod turn_edits;
mod undecodable;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use sayso_gate::{Gate, GateError};
use sayso_review::{RequestId, RequestMode};
use sayso_wire::RequestHead;
use sayso_wire::tokens::TokenCounter;
use tokio::sync::oneshot;

use crate::bodies::BodyCache;
use crate::lock;
use crate::recorder::{Recorder, now};
use crate::settings::Settings;
use held::HeldRequest;
use modes::Modes;
use notifier::Notifier;
use override_store::OverrideStore;
use read_model::RequestReadModel;
use recent_decisions::RecentDecisions;
use session_registry::SessionRegistry;
use turn_edits::Turns;

pub use crate::bodies::{is_credential_path, redacted_paths};
pub use admit::{Admission, ForwardRequest};
pub(crate) use attempts::AttemptsEnd;
pub(crate) use attribution::ConversationKey;
pub use attribution::{AgentRun, Attribution};
pub(crate) use attribution_source::{AttributionSource, BodyAttribution};
pub use edit_request::{ApplyScope, EditReport, EditRequestError};
// The edits are data of `wire`.
pub use held::{HoldGuard, HoldOutcome};
pub use in_flight::{InFlight, Recording};
pub use mode_change::{HeldAction, ModeChange};
pub use modes::{EffectiveMode, OneShot};
pub use monitor::SubagentRun;
pub use override_capture::{ModeSwitch, SaveReport};
pub use override_store::StateFileError;
pub(crate) use override_store::write as write_file;
pub use pause::no_turn_because;
pub use read_model::{HoldStatus, OverrideView, RequestView, SessionView};
pub(crate) use recording::{ForwardedBody, RequestEnvelope, entry};
pub use resume::{ExpectedRevision, ResumeError, ResumeReport};
pub use sayso_wire::{Edit, EditTarget};

/// Cached token counts of texts: one cache for surfaces, one for rules.
const COUNTER_ENTRIES: usize = 1 << 14;
const RULES_COUNTER_ENTRIES: usize = 1 << 10;

/// All of a received request except its body.
#[derive(Clone, Debug)]
pub struct RequestMetadata {
    pub run: AgentRun,
    /// Name of the upstream in the configuration.
    pub upstream: String,
    /// URL of the upstream, without user and password.
    pub server: String,
    pub method: String,
    /// The path beneath the upstream, and the headers that are not credentials.
    pub head: RequestHead,
    /// The `content-encoding` header.
    pub encoding: Option<String>,
    /// Hash of the API key.
    pub key: Option<String>,
    pub signed: BodySignature,
    /// Client timeout, in milliseconds since 1970.
    pub deadline: Option<i64>,
    /// The recorded request that this one replays.
    pub replay_of: Option<RequestId>,
}

/// Tells whether the client signed the body. An edited body would no longer match its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySignature {
    Signed,
    Unsigned,
}

/// State that changes together.
#[derive(Debug)]
struct State {
    /// The hold table.
    held: BTreeMap<RequestId, HeldRequest>,
    /// Requests that are sent after their client got its status. The sender cancels the attempts.
    attempts: BTreeMap<RequestId, oneshot::Sender<()>>,
    decisions: RecentDecisions,
    registry: SessionRegistry,
    turns: Turns,
}

/// Decides what happens to each request of a workspace.
#[derive(Debug)]
pub struct Interceptor {
    pub(crate) gate: Gate,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) bodies: Arc<BodyCache>,
    settings: RwLock<Arc<Settings>>,
    last_id: AtomicU64,
    /// `true` while every request is forwarded unread.
    passthrough: AtomicBool,
    /// `true` if the policy has rules about requests.
    has_policy: AtomicBool,
    /// `true` once the engine stops. Connections that break then are not the agent's doing.
    shutting_down: Arc<AtomicBool>,
    state: Mutex<State>,
    overrides: OverrideStore,
    /// File with the edits of running turns.
    turns_path: PathBuf,
    read_model: RequestReadModel,
    /// Separate from the counter of the read model: admission does not wait for surfaces.
    rules_counter: Mutex<TokenCounter>,
    notifier: Notifier,
}

impl Interceptor {
    /// Opens the interceptor of a workspace. `journal` is the folder of its journal, `home` the user's folder for all workspaces.
    pub fn open(gate: Gate, settings: Settings, journal: &Path, home: &Path) -> Result<Arc<Self>, GateError> {
        let (last_id, modes) = (gate.last_request()?, gate.read(|history| history.request_modes())?);
        let has_policy = gate.policy(None, sayso_review::Policy::evaluates_requests)?;
        let recorder = Arc::new(Recorder::start(gate.clone()).map_err(GateError::Thread)?);
        let overrides = OverrideStore::new(journal, home);
        // Global overrides are meant for every workspace, so a workspace without a mode applies them.
        let has_global = overrides.of(sayso_wire::Scope::Global, "").is_ok_and(|edits| !edits.is_empty());
        let fallback = if has_global { RequestMode::AutoOverride } else { RequestMode::Off };
        let turns_path = journal.join("overrides").join("turns.json");
        let (decisions, ended) = handover::take_over(&gate, now());
        let state = State {
            held: BTreeMap::new(),
            attempts: BTreeMap::new(),
            decisions,
            registry: SessionRegistry::new(Modes::new(modes).or(fallback)),
            turns: turn_edits::read_turns(&turns_path),
        };
        let interceptor = Self {
            read_model: RequestReadModel::new(gate.clone(), Arc::clone(&recorder), TokenCounter::new(COUNTER_ENTRIES)),
            gate,
            recorder,
            bodies: Arc::default(),
            settings: RwLock::new(Arc::new(settings)),
            last_id: AtomicU64::new(last_id),
            passthrough: AtomicBool::new(false),
            has_policy: AtomicBool::new(has_policy),
            shutting_down: Arc::default(),
            state: Mutex::new(state),
            overrides,
            turns_path,
            rules_counter: Mutex::new(TokenCounter::new(RULES_COUNTER_ENTRIES)),
            notifier: Notifier::default(),
        };
        interceptor.record_killed(ended);
        interceptor.update_passthrough(&lock(&interceptor.state));
        Ok(Arc::new(interceptor))
    }

    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the settings.
    pub fn configure(&self, settings: Settings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        // If the policy cannot be read, requests are evaluated and denied with the error.
        let has_policy = self.gate.policy(None, sayso_review::Policy::evaluates_requests).unwrap_or(true);
        self.has_policy.store(has_policy, Ordering::Release);
        self.update_passthrough(&lock(&self.state));
    }

    /// `true` while every request is forwarded unread: no mode, rule, policy, prior decision or turn edit concerns any request.
    pub fn is_passthrough(&self) -> bool {
        self.passthrough.load(Ordering::Acquire)
    }

    fn update_passthrough(&self, state: &State) {
        let is_idle = state.decisions.is_empty() && state.held.is_empty() && state.turns.is_empty();
        let has_rules = self.has_policy.load(Ordering::Acquire) || !self.settings().rules.is_empty();
        let passthrough = state.registry.modes.is_passthrough() && is_idle && !has_rules;
        self.passthrough.store(passthrough, Ordering::Release);
        self.gate.set_paused_requests(state.held.len());
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Acquire)
    }

    /// Allocates the number of the next request.
    pub fn next_id(&self) -> RequestId {
        self.last_id.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Blocks until all entries so far are in the journal.
    pub fn flush(&self) {
        self.recorder.flush();
    }
}
