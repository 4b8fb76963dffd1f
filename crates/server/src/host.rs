//! The engine's shared state.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use connectrpc::{ConnectError, PreEncoded, RequestContext};
use sayso_api::proto;
use sayso_gate::{AskMode, Gate, Process};
use sayso_proxy::Proxy;
use sayso_review::{ChangeId, ErrorKind, Origin, OutsidePath, Recorded};
use sayso_workspace::Workspace;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::watch;

use crate::agent_registry::{AgentRegistry, Run};
use crate::agent_sessions::AgentSessions;
use crate::call_files::CallFiles;
use crate::caller::Peer;
use crate::conversation::Conversations;
use crate::diff_cache::DiffCache;
use crate::editors::EditorRegistry;
use crate::failure::Failure;
use crate::inbox::InboxBoard;
use crate::kernel_marks;
use crate::login::Logins;
use crate::service::review::PlannedSubjects;
use crate::settings::Settings;
use crate::surfaces::Surfaces;
use crate::work::Work;

/// Calls that run inline at the same time. Each occupies one of the runtime's blocking threads, of which tokio has 512.
const MAX_INLINE_CALLS: usize = 64;
/// Recent events whose encoded form is cached for all watchers.
const ENCODED_EVENTS: usize = 256;

/// An engine and its context, shared by all services.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) gate: Gate,
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) settings: Box<dyn Settings>,
    pub(crate) agents: AgentRegistry,
    pub(crate) calls: CallFiles,
    /// For reads that bypass the gate.
    pub(crate) workspace: Workspace,
    pub(crate) root: PathBuf,
    /// Directory of the journal.
    pub(crate) journal: PathBuf,
    /// In milliseconds since 1970.
    pub(crate) started: i64,
    pub(crate) version: &'static str,
    /// Address of the HTTP server. Unset if none runs.
    pub(crate) url: OnceLock<String>,
    /// Environment of programs that the engine starts.
    pub(crate) environment: sayso_workspace::git::Environment,
    /// Serialises reloads of the configuration.
    refreshing: Mutex<()>,
    /// The last logged error of the configuration, so that each is logged once.
    logged_error: Mutex<Option<String>>,
    /// Number of `Await` calls per change.
    awaited: Mutex<BTreeMap<ChangeId, usize>>,
    /// Serialises the assignment of sessions to runs.
    claiming: Mutex<()>,
    /// Time after which a pending change is denied.
    deadline: Mutex<Option<Duration>>,
    branch_prefix: Mutex<String>,
    encoded: Mutex<VecDeque<(u64, PreEncoded<proto::WatchResponse>)>>,
    inline_calls: AtomicUsize,
    /// Becomes `true` when the engine is to stop.
    pub(crate) stopping: watch::Sender<bool>,
    /// The reason, if the engine stops by itself.
    pub(crate) stop_reason: OnceLock<String>,
    pub(crate) logins: Logins,
    pub(crate) conversations: Conversations,
    pub(crate) agent_sessions: AgentSessions,
    /// This program, which commands of the built-in agent start with.
    pub(crate) program: PathBuf,
    pub(crate) inbox: InboxBoard,
    pub(crate) surfaces: Arc<Surfaces>,
    pub(crate) editors: Arc<EditorRegistry>,
    pub(crate) diffs: DiffCache,
    pub(crate) diff_plans: PlannedSubjects,
    pub(crate) work: Work,
}

/// Parts of a [`Host`] that do not depend on its engine.
pub(crate) struct HostOptions {
    pub(crate) settings: Box<dyn Settings>,
    pub(crate) agents: AgentRegistry,
    pub(crate) calls: CallFiles,
    pub(crate) workspace: Workspace,
    pub(crate) root: PathBuf,
    pub(crate) journal: PathBuf,
    pub(crate) version: &'static str,
    pub(crate) environment: sayso_workspace::git::Environment,
    pub(crate) deadline: Option<Duration>,
    pub(crate) branch_prefix: String,
    pub(crate) editors: Arc<EditorRegistry>,
    pub(crate) program: PathBuf,
}

impl Host {
    pub(crate) fn new(gate: Gate, proxy: Arc<Proxy>, options: HostOptions) -> Arc<Self> {
        let HostOptions {
            settings,
            agents,
            calls,
            workspace,
            root,
            journal,
            version,
            environment,
            deadline,
            branch_prefix,
            editors,
            program,
        } = options;
        Arc::new(Self {
            gate,
            proxy,
            settings,
            agents,
            calls,
            workspace,
            root,
            journal,
            started: now(),
            version,
            url: OnceLock::new(),
            environment,
            refreshing: Mutex::new(()),
            logged_error: Mutex::new(None),
            awaited: Mutex::default(),
            claiming: Mutex::default(),
            deadline: Mutex::new(deadline),
            branch_prefix: Mutex::new(branch_prefix),
            encoded: Mutex::new(VecDeque::new()),
            inline_calls: AtomicUsize::new(0),
            stopping: watch::Sender::new(false),
            stop_reason: OnceLock::new(),
            logins: Logins::default(),
            conversations: Conversations::default(),
            agent_sessions: AgentSessions::default(),
            program,
            inbox: InboxBoard::default(),
            surfaces: Arc::default(),
            editors,
            diffs: DiffCache::default(),
            diff_plans: PlannedSubjects::default(),
            work: Work::default(),
        })
    }

    /// Reloads a changed configuration. Fails if it is unreadable: the call must not proceed, because it might be denied now.
    pub(crate) fn refresh(&self) -> Result<(), Failure> {
        // A second caller waits, so that it uses the configuration that the first one loads.
        let _refreshing = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = self.settings.changed(&|| self.gate.has_running_writer())? {
            *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = current.deadline;
            *self.branch_prefix.lock().unwrap_or_else(PoisonError::into_inner) = current.branch_prefix;
            self.gate.use_rules(current.rules, current.snapshots);
            self.proxy.interceptor.configure(current.requests);
            self.agent_sessions.configure(current.agent);
            *self.logged_error.lock().unwrap_or_else(PoisonError::into_inner) = None;
            tracing::info!("configuration reloaded");
        }
        Ok(())
    }

    /// Reloads a changed configuration for operations without policy. An unreadable one is logged once, and the previous one stays.
    pub(crate) fn refresh_if_readable(&self) {
        if let Err(failure) = self.refresh() {
            let mut logged = self.logged_error.lock().unwrap_or_else(PoisonError::into_inner);
            if logged.as_ref() != Some(&failure.message) {
                tracing::warn!(reason = failure.message, "cannot read the configuration; using the previous one");
                *logged = Some(failure.message);
            }
        }
    }

    /// Time at which a new change is denied if still pending, in milliseconds since 1970; `None` is never.
    pub(crate) fn deadline(&self) -> Option<i64> {
        let span = (*self.deadline.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some(now().saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns [`AskMode::Always`] if requested, or if this engine runs under the gate: an agent may have started it with rules of
    /// its own.
    pub(crate) fn ask_mode(always: bool) -> AskMode {
        if always || kernel_marks::is_marked() { AskMode::Always } else { AskMode::ByPolicy }
    }

    /// Configured prefix of task branches.
    pub(crate) fn branch_prefix(&self) -> String {
        self.branch_prefix.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Finishes changes whose process has exited.
    pub(crate) fn finish_abandoned(&self) -> Result<(), Failure> {
        for abandoned in self.agents.abandoned(&self.journal) {
            if !abandoned.running.is_empty() {
                continue;
            }
            if abandoned.change.is_some_and(|change| self.agent_sessions.is_running(change)) {
                // The task of the command records its end.
                continue;
            }
            if let Some(change) = abandoned.change {
                tracing::info!(change, "finishing a change whose process has exited");
                self.gate.abandon(change, abandoned.exit_code, now())?;
            }
            abandoned.remove();
        }
        Ok(())
    }

    /// Counts an `Await` call for a change until the guard is dropped.
    pub(crate) fn count_await(self: &Arc<Self>, change: ChangeId) -> AwaitGuard {
        *self.awaited.lock().unwrap_or_else(PoisonError::into_inner).entry(change).or_default() += 1;
        AwaitGuard { host: Arc::clone(self), change }
    }

    /// Changes with an `Await` call.
    pub(crate) fn awaited(&self) -> BTreeSet<ChangeId> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// Checks the origin that a caller claims: an agent acts under its own name only, and never in a session of another run. Corrects
    /// the agent name. Returns the directories outside the workspace that the user granted to the run.
    pub(crate) fn authorize_origin(
        &self,
        peer: Option<Peer>,
        origin: &mut Origin,
    ) -> Result<Vec<OutsidePath>, Failure> {
        let run = Peer::run(peer, &self.agents);
        if let Some(session) = &origin.session {
            self.claim(peer, run.as_ref(), session)?;
        }
        let Some(run) = run else { return Ok(Vec::new()) };
        origin.agent = Some(run.agent);
        Ok(run.directories)
    }

    /// Checks that a caller may act in a session.
    pub(crate) fn authorize_session(&self, peer: Option<Peer>, session: &str) -> Result<(), Failure> {
        self.claim(peer, Peer::run(peer, &self.agents).as_ref(), session)
    }

    /// Checks that a caller may act on a change: a person on any, an agent on its own.
    pub(crate) fn authorize_change(&self, peer: Option<Peer>, change: ChangeId) -> Result<(), Failure> {
        let run = Peer::run(peer, &self.agents);
        let origin = self.gate.read(|history| history.change(change))?.origin;
        match (origin.session, origin.agent, &run) {
            (Some(session), _, _) => self.claim(peer, run.as_ref(), &session),
            (None, Some(agent), Some(run)) if agent == run.agent => Ok(()),
            (None, agent, _) => {
                // A process of `sayso exec` belongs to no run, but may have registered itself for a change.
                if Peer::require_person(peer, &self.agents).is_ok()
                    || Peer::is_registered(peer, &self.agents, change, &self.journal)
                {
                    return Ok(());
                }
                let owner = agent.map_or_else(|| "a person".to_owned(), |agent| format!("agent `{agent}`"));
                Err(foreign(format!("change {change} belongs to {owner}, not to this agent")))
            }
        }
    }

    fn claim(&self, peer: Option<Peer>, run: Option<&Run>, session: &str) -> Result<(), Failure> {
        let Some(run) = run else {
            // A process of `sayso exec` belongs to no run, but is not a person either.
            return match self.agents.holder(&self.journal, session) {
                Some(other) if Peer::require_person(peer, &self.agents).is_err() => Err(of_another_run(session, other)),
                _ => Ok(()),
            };
        };
        // Between the check and the assignment, no other run may take the session.
        let _claiming = self.claiming.lock().unwrap_or_else(PoisonError::into_inner);
        let claimed = self.agents.claim(run, &self.journal, session).map_err(|error| {
            Failure::new(ErrorKind::Unavailable, format!("cannot record the owner of session `{session}`: {error}"))
                .hint("check the free disk space")
        })?;
        claimed.map_or(Ok(()), |other| Err(of_another_run(session, other)))
    }

    /// Returns the encoded form of an event, which all watchers share.
    pub(crate) fn encoded(&self, event: &Recorded) -> PreEncoded<proto::WatchResponse> {
        let mut encoded = self.encoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = encoded.iter().rev().find(|(number, _)| *number == event.number) {
            return found.clone();
        }
        let response = proto::WatchResponse { kind: Some(proto::Event::from(event).into()), ..Default::default() };
        let new = PreEncoded::from_message(&response);
        if encoded.back().is_none_or(|(number, _)| *number < event.number) {
            if encoded.len() == ENCODED_EVENTS {
                encoded.pop_front();
            }
            encoded.push_back((event.number, new.clone()));
        }
        new
    }
}

fn of_another_run(session: &str, run: Process) -> Failure {
    foreign(format!("session `{session}` belongs to another run, of process {}", run.id))
}

fn foreign(message: String) -> Failure {
    Failure::new(ErrorKind::ToolDenied, message).hint("use a session of this run; agents act for themselves only")
}

/// A counted `Await` call.
#[derive(Debug)]
pub(crate) struct AwaitGuard {
    host: Arc<Host>,
    change: ChangeId,
}

impl Drop for AwaitGuard {
    fn drop(&mut self) {
        let mut awaited = self.host.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = awaited.get_mut(&self.change) {
            *count -= 1;
            if *count == 0 {
                awaited.remove(&self.change);
            }
        }
    }
}

/// Runs work on a blocking thread. It completes even if the caller disconnects.
pub(crate) async fn blocking<T: Send + 'static>(
    host: &Arc<Host>,
    work: impl FnOnce(&Host) -> Result<T, Failure> + Send + 'static,
) -> Result<T, ConnectError> {
    let (host, span) = (Arc::clone(host), tracing::Span::current());
    let done = tokio::task::spawn_blocking(move || span.in_scope(|| work(&host))).await;
    Ok(done.unwrap_or_else(|error| Err(Failure::panicked(&error)))?)
}

/// Runs short work on the current thread, which saves two switches of threads. Tokio moves other tasks to another thread meanwhile.
/// Without an await point, the work completes even if the caller disconnects.
pub(crate) async fn run_inline<T: Send + 'static>(
    host: &Arc<Host>,
    work: impl FnOnce(&Host) -> Result<T, Failure> + Send + 'static,
) -> Result<T, ConnectError> {
    let Some(_permit) = InlinePermit::try_acquire(host) else { return blocking(host, work).await };
    // As on a blocking thread, a panic ends the call and not the connection.
    let done = tokio::task::block_in_place(|| catch_unwind(AssertUnwindSafe(|| work(host))));
    Ok(done.unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<&str>().copied();
        let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Failure::panicked(&message.unwrap_or("panic without a message")))
    })?)
}

/// Permission to run a call inline.
struct InlinePermit<'h>(&'h Host);

impl<'h> InlinePermit<'h> {
    /// Returns `None` at the limit, or if the runtime has one thread only and inline work would block all tasks.
    fn try_acquire(host: &'h Host) -> Option<Self> {
        if Handle::current().runtime_flavor() != RuntimeFlavor::MultiThread {
            return None;
        }
        let before = host.inline_calls.fetch_add(1, Ordering::Relaxed);
        // At the limit, dropping the permit restores the count.
        let permit = Self(host);
        (before < MAX_INLINE_CALLS).then_some(permit)
    }
}

impl Drop for InlinePermit<'_> {
    fn drop(&mut self) {
        self.0.inline_calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs work on a blocking thread after checking that the caller is not an agent.
pub(crate) async fn run_as_person<T: Send + 'static>(
    host: &Arc<Host>,
    context: &RequestContext,
    work: impl FnOnce(&Host) -> Result<T, Failure> + Send + 'static,
) -> Result<T, ConnectError> {
    let peer = Peer::of(context);
    blocking(host, move |host| {
        Peer::require_person(peer, &host.agents)?;
        work(host)
    })
    .await
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
