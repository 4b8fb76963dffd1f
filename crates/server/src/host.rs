//! The engine as the services share it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use connectrpc::{ConnectError, PreEncoded, RequestContext};
use sayso_api::proto;
use sayso_gate::{Asking, Gate, Process};
use sayso_proxy::Proxy;
use sayso_review::{ChangeId, ErrorKind, Origin, OutsidePath, Recorded};
use sayso_workspace::Workspace;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::watch;

use crate::agents::{Notes, Run};
use crate::caller::Peer;
use crate::calls::CallFiles;
use crate::failure::Failure;
use crate::login::Logins;
use crate::settings::Settings;
use crate::standing;

/// Calls that are carried out where they came in at a time. Each takes a thread of the runtime's, of which there are some hundreds, and
/// those who only wait need some as well.
const IN_PLACE: usize = 64;
/// Events that are kept as they are sent, for all who are nearly up to date.
const ENCODED: usize = 256;

/// The engine and what belongs to it.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) gate: Gate,
    /// The gateway for requests to models.
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) settings: Box<dyn Settings>,
    pub(crate) notes: Notes,
    pub(crate) calls: CallFiles,
    /// The workspace, for those who only look.
    pub(crate) workspace: Workspace,
    /// The workspace's root.
    pub(crate) root: PathBuf,
    /// The journal's folder.
    pub(crate) journal: PathBuf,
    pub(crate) started: i64,
    pub(crate) version: &'static str,
    /// The address of the HTTP server, once there is one.
    pub(crate) url: OnceLock<String>,
    /// How programs that the engine starts find others.
    pub(crate) environment: sayso_workspace::git::Environment,
    refreshing: Mutex<()>,
    /// What was wrong with the configuration when it was last said.
    unreadable: Mutex<Option<String>>,
    /// How many wait for what becomes of a change.
    awaited: Mutex<BTreeMap<ChangeId, usize>>,
    /// Held while it is noted which run of an agent has which session.
    claiming: Mutex<()>,
    deadline: Mutex<Option<Duration>>,
    branch_prefix: Mutex<String>,
    encoded: Mutex<VecDeque<(u64, PreEncoded<proto::WatchResponse>)>>,
    /// How many calls are carried out where they came in.
    in_place: AtomicUsize,
    /// Whether the engine is to stop.
    pub(crate) stopping: watch::Sender<bool>,
    /// Why it stops, if nobody asked for it.
    pub(crate) ended_by: OnceLock<String>,
    /// What verdicts over TCP have to show.
    pub(crate) logins: Logins,
}

/// Who a host is, before it has an engine.
pub(crate) struct Hosting {
    pub(crate) settings: Box<dyn Settings>,
    pub(crate) notes: Notes,
    pub(crate) calls: CallFiles,
    pub(crate) workspace: Workspace,
    pub(crate) root: PathBuf,
    pub(crate) journal: PathBuf,
    pub(crate) version: &'static str,
    pub(crate) environment: sayso_workspace::git::Environment,
    pub(crate) deadline: Option<Duration>,
    pub(crate) branch_prefix: String,
}

impl Host {
    pub(crate) fn new(gate: Gate, proxy: Arc<Proxy>, hosting: Hosting) -> Arc<Self> {
        let Hosting { settings, notes, calls, workspace, root, journal, version, environment, deadline, branch_prefix } =
            hosting;
        Arc::new(Self {
            gate,
            proxy,
            settings,
            notes,
            calls,
            workspace,
            root,
            journal,
            started: now(),
            version,
            url: OnceLock::new(),
            environment,
            refreshing: Mutex::new(()),
            unreadable: Mutex::new(None),
            awaited: Mutex::default(),
            claiming: Mutex::default(),
            deadline: Mutex::new(deadline),
            branch_prefix: Mutex::new(branch_prefix),
            encoded: Mutex::new(VecDeque::new()),
            in_place: AtomicUsize::new(0),
            stopping: watch::Sender::new(false),
            ended_by: OnceLock::new(),
            logins: Logins::default(),
        })
    }

    /// Takes up what the user has configured since. What cannot be understood judges nothing: it may forbid something.
    pub(crate) fn refresh(&self) -> Result<(), Failure> {
        // One after the other, so that whoever comes second judges by what the first has read.
        let _refreshing = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = self.settings.changed(&|| self.gate.has_writer_under_way())? {
            *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = current.deadline;
            *self.branch_prefix.lock().unwrap_or_else(PoisonError::into_inner) = current.branch_prefix;
            self.gate.use_rules(current.rules, current.snapshots);
            self.proxy.desk.configure(current.requests);
            *self.unreadable.lock().unwrap_or_else(PoisonError::into_inner) = None;
            tracing::info!("the configuration changed");
        }
        Ok(())
    }

    /// The same for what does not go by rules: what cannot be understood is no reason not to do it, and the last configuration counts.
    pub(crate) fn refresh_if_readable(&self) {
        if let Err(failure) = self.refresh() {
            let mut told = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
            if told.as_ref() != Some(&failure.message) {
                tracing::warn!(reason = failure.message, "the configuration cannot be read; the last one counts");
                *told = Some(failure.message);
            }
        }
    }

    /// When something that comes now is denied if nobody decides.
    pub(crate) fn deadline(&self) -> Option<i64> {
        let span = (*self.deadline.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some(now().saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Whether a person has to be asked. An engine under the gate lets nothing through by itself: an agent may have started it to have
    /// its rules applied by a program of its own.
    pub(crate) fn asking(wants_a_person: bool) -> Asking {
        if wants_a_person || standing::is_marked() { Asking::Always } else { Asking::AsPolicySays }
    }

    /// How names of branches begin.
    pub(crate) fn branch_prefix(&self) -> String {
        self.branch_prefix.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Settles changes whose process is gone.
    pub(crate) fn settle(&self) -> Result<(), Failure> {
        for abandoned in self.notes.abandoned(&self.journal) {
            if abandoned.still_runs {
                continue;
            }
            if let Some(change) = abandoned.change {
                tracing::info!(change, "whoever wanted it is gone");
                self.gate.abandon(change, abandoned.code, now())?;
            }
            abandoned.settled();
        }
        Ok(())
    }

    /// Counts somebody who waits for a change, for as long as what is returned is held.
    pub(crate) fn awaiting(self: &Arc<Self>, change: ChangeId) -> Awaiting {
        *self.awaited.lock().unwrap_or_else(PoisonError::into_inner).entry(change).or_default() += 1;
        Awaiting { host: Arc::clone(self), change }
    }

    /// The changes for which somebody waits.
    pub(crate) fn awaited(&self) -> BTreeSet<ChangeId> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// Whatever an agent says of itself, it speaks under its own name, and in sessions that no other run has. Gives the folders outside
    /// the workspace that the user handed to its run.
    pub(crate) fn own(&self, peer: Option<Peer>, origin: &mut Origin) -> Result<Vec<OutsidePath>, Failure> {
        let run = Peer::run(peer, &self.notes);
        if let Some(session) = &origin.session {
            self.claim(peer, run.as_ref(), session)?;
        }
        let Some(run) = run else { return Ok(Vec::new()) };
        origin.agent = Some(run.agent);
        Ok(run.folders)
    }

    /// The same for what is about a session alone.
    pub(crate) fn own_session(&self, peer: Option<Peer>, session: &str) -> Result<(), Failure> {
        self.claim(peer, Peer::run(peer, &self.notes).as_ref(), session)
    }

    /// The same for what is about a change: a person's is theirs alone.
    pub(crate) fn own_change(&self, peer: Option<Peer>, change: ChangeId) -> Result<(), Failure> {
        let run = Peer::run(peer, &self.notes);
        let origin = self.gate.read(|history| history.change(change))?.origin;
        match (origin.session, origin.agent, &run) {
            (Some(session), _, _) => self.claim(peer, run.as_ref(), &session),
            (None, Some(agent), Some(run)) if agent == run.agent => Ok(()),
            (None, agent, _) => {
                // What `sayso exec` runs is no run of an agent, and may have asked for something itself.
                if Peer::person(peer, &self.notes).is_ok() || Peer::has_noted(peer, &self.notes, change, &self.journal)
                {
                    return Ok(());
                }
                let whose = agent.map_or_else(|| "no agent's".to_owned(), |agent| format!("of {agent}"));
                Err(another(format!("change {change} is {whose}, so that it is not for this agent to end it")))
            }
        }
    }

    fn claim(&self, peer: Option<Peer>, run: Option<&Run>, session: &str) -> Result<(), Failure> {
        let Some(run) = run else {
            // What `sayso exec` runs is no run of an agent, and still no person.
            return match self.notes.holder(&self.journal, session) {
                Some(other) if Peer::person(peer, &self.notes).is_err() => Err(of_another_run(session, other)),
                _ => Ok(()),
            };
        };
        // One after the other, so that of two that want the same one gets it.
        let _claiming = self.claiming.lock().unwrap_or_else(PoisonError::into_inner);
        let claimed = self.notes.claim(run, &self.journal, session).map_err(|error| {
            Failure::new(ErrorKind::Unavailable, format!("it cannot be noted whose session this is: {error}"))
                .hint("look at the disk's free space")
        })?;
        claimed.map_or(Ok(()), |other| Err(of_another_run(session, other)))
    }

    /// An event as it is sent, made once for all who get it.
    pub(crate) fn encoded(&self, event: &Recorded) -> PreEncoded<proto::WatchResponse> {
        let mut encoded = self.encoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = encoded.iter().rev().find(|(number, _)| *number == event.number) {
            return found.clone();
        }
        let response = proto::WatchResponse { kind: Some(proto::Event::from(event).into()), ..Default::default() };
        let made = PreEncoded::from_message(&response);
        if encoded.back().is_none_or(|(number, _)| *number < event.number) {
            if encoded.len() == ENCODED {
                encoded.pop_front();
            }
            encoded.push_back((event.number, made.clone()));
        }
        made
    }
}

fn of_another_run(session: &str, run: Process) -> Failure {
    another(format!("session `{session}` is of another run, by process {}", run.id))
}

fn another(message: String) -> Failure {
    Failure::new(ErrorKind::ToolDenied, message).hint("an agent speaks for itself only")
}

/// Somebody who waits for a change.
#[derive(Debug)]
pub(crate) struct Awaiting {
    host: Arc<Host>,
    change: ChangeId,
}

impl Drop for Awaiting {
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

/// Does what may take a while away from those who only wait. Goes on to its end even if the caller goes away.
pub(crate) async fn blocking<T: Send + 'static>(
    host: &Arc<Host>,
    work: impl FnOnce(&Host) -> Result<T, Failure> + Send + 'static,
) -> Result<T, ConnectError> {
    let (host, span) = (Arc::clone(host), tracing::Span::current());
    let done = tokio::task::spawn_blocking(move || span.in_scope(|| work(&host))).await;
    Ok(done.unwrap_or_else(|error| Err(Failure::panicked(&error)))?)
}

/// The same for what is quickly done: carried out where it came in, which spares two changes of threads. Those who only wait go on
/// elsewhere meanwhile, and since nothing is waited for in between, it goes on to its end as well.
pub(crate) async fn promptly<T: Send + 'static>(
    host: &Arc<Host>,
    work: impl FnOnce(&Host) -> Result<T, Failure> + Send + 'static,
) -> Result<T, ConnectError> {
    let Some(_place) = InPlace::take(host) else { return blocking(host, work).await };
    // As on a thread of its own: what panics ends the call, and not the connection.
    let done = tokio::task::block_in_place(|| catch_unwind(AssertUnwindSafe(|| work(host))));
    Ok(done.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().copied();
        let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Failure::panicked(&said.unwrap_or("nothing was said")))
    })?)
}

/// One of the calls that are carried out where they came in.
struct InPlace<'h>(&'h Host);

impl<'h> InPlace<'h> {
    /// Takes a place, if there is one, and others can go on elsewhere.
    fn take(host: &'h Host) -> Option<Self> {
        if Handle::current().runtime_flavor() != RuntimeFlavor::MultiThread {
            return None;
        }
        let taken = host.in_place.fetch_add(1, Ordering::Relaxed);
        // Given back at once where there is none.
        let place = Self(host);
        (taken < IN_PLACE).then_some(place)
    }
}

impl Drop for InPlace<'_> {
    fn drop(&mut self) {
        self.0.in_place.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The same for what only a person may say.
pub(crate) async fn by_a_person<T: Send + 'static>(
    host: &Arc<Host>,
    context: &RequestContext,
    work: impl FnOnce(&Host) -> Result<T, Failure> + Send + 'static,
) -> Result<T, ConnectError> {
    let peer = Peer::of(context);
    blocking(host, move |host| {
        Peer::person(peer, &host.notes)?;
        work(host)
    })
    .await
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
