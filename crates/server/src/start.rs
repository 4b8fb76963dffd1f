//! Starts: one engine for each workspace, whoever comes first.
//!
//! The journal's lock says who that is, so that there is no moment at which two believe it of themselves: only its holder binds the
//! socket, and takes it away again before letting go of the lock.

mod address;
mod error;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use sayso_gate::{Announce, Engine, Gate, GateError, RecoveredChange};
use sayso_journal::{Journal, OpenJournalError, Options};
use sayso_proxy::{Desk, Entrances, Proxy};
use sayso_workspace::Workspace;
use sayso_workspace::git::Environment;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::agents::Notes;
use crate::calls::CallFiles;
use crate::failure::Failure;
use crate::guard::Guard;
use crate::host::{Host, Hosting, now};
use crate::listen::{Door, Serving, Timing};
use crate::login::Logins;
use crate::place::{EnginePlace, Listeners};
use crate::settings::Settings;
use crate::standing;
use crate::token::Token;
use crate::traffic::Traffic;
pub use address::{PORT, PortChoice, loopback};
use address::{listen, reached_at};
pub use error::StartError;

/// How often what is due is done.
const TICK: Duration = Duration::from_secs(1);
/// How long work in progress is waited for at the end. An apply takes milliseconds; a scan of a large tree, seconds.
const LAST_WORK: Duration = Duration::from_secs(30);

/// What an engine is made of.
pub struct EngineOptions {
    /// The workspace's root.
    pub root: PathBuf,
    /// The folder of its journal.
    pub journal: PathBuf,
    /// The folder of all of sayso's records, which no change touches.
    pub home: PathBuf,
    /// What the user has configured.
    pub settings: Box<dyn Settings>,
    /// Whoever makes people look.
    pub announce: Box<dyn Announce>,
    /// How git is found.
    pub environment: Environment,
    /// The version of the program.
    pub version: &'static str,
}

impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOptions").field("root", &self.root).finish_non_exhaustive()
    }
}

/// Who may call over TCP, and where.
#[derive(Debug)]
pub struct HttpOptions {
    /// The address; the next free port is taken if this one is not, unless it was asked for by name.
    pub address: SocketAddr,
    /// Whether another port will do.
    pub port: PortChoice,
    /// What has to be shown; `None` if nothing has.
    pub token: Option<Token>,
    /// Names of this server besides those of this machine.
    pub hosts: Vec<String>,
    /// Origins of pages that may call.
    pub origins: Vec<String>,
    /// How long clients may take, over TCP and on the socket.
    pub timing: Timing,
}

/// How an engine is served over TCP.
struct Http {
    listener: TcpListener,
    guard: Arc<Guard>,
    /// Where requests to models pass.
    traffic: Handle,
}

/// An engine that was opened and is not served yet.
struct Opened {
    host: Arc<Host>,
    place: EnginePlace,
    listeners: Listeners,
    recovered: Option<RecoveredChange>,
}

impl Opened {
    fn new(options: EngineOptions) -> Result<Self, StartError> {
        let EngineOptions { root, journal: folder, home, settings, announce, environment, version } = options;
        let open = || Ok::<_, StartError>(Workspace::open(&root)?.protecting(&home));
        let journal = match Journal::open(&folder, Options { wait: Duration::ZERO }) {
            Err(OpenJournalError::Locked { .. }) => return Err(StartError::Taken),
            opened => opened.map_err(GateError::from)?,
        };
        let (engine, recovered) = Engine::open(open()?, journal, now())?;
        let current = match settings.changed(&|| engine.has_writer_under_way()) {
            Ok(Some(current)) => current,
            Ok(None) => return Err(StartError::System(io::Error::other("no configuration"))),
            // What happened can be looked at and taken back all the same. Nothing is judged until it is understood.
            Err(_) => settings.strictest().map_err(StartError::Settings)?,
        };
        let gate = Gate::taken_over(engine.keeping(current.snapshots), current.rules, announce);
        let desk = Desk::open(gate.clone(), current.requests, &folder, &home)?;
        let proxy = Arc::new(Proxy::new(desk, Entrances::load(&folder)));
        let place = EnginePlace::new(&folder);
        let socket = || place.socket().display().to_string();
        let listeners = place.listen().map_err(|error| StartError::Socket { path: socket(), error })?;
        let hosting = Hosting {
            settings,
            notes: Notes::new(&home),
            calls: CallFiles::new(&home),
            workspace: open()?,
            root,
            journal: folder,
            version,
            environment,
            deadline: current.deadline,
            branch_prefix: current.branch_prefix,
        };
        let host = Host::new(gate, proxy, hosting);
        if let Err(failure) = host.settle() {
            tracing::warn!(reason = failure.message, "what was left behind could not be settled");
        }
        Ok(Self { host, place, listeners, recovered })
    }

    /// Serves until told to stop, and then until those who are served have their answers.
    async fn serve(self, http: Option<Http>, timing: Timing) {
        let Self { host, place, listeners, .. } = self;
        // Whoever serves this machine was asked to; an engine in a command makes room for them.
        let makes_room = (http.is_none() || standing::is_marked()).then(|| place.clone());
        let here = Handle::current();
        let elsewhere = http.as_ref().map(|http| http.traffic.clone());
        let serving = Serving::new(&host, timing, elsewhere.clone());
        let mut tasks = tokio::task::JoinSet::new();
        let models = elsewhere.unwrap_or_else(|| here.clone());
        let Listeners { services, traffic, verdicts } = listeners;
        let doors = [(Some(services), Door::Services, here.clone()), (verdicts, Door::Verdicts, here)];
        let doors = doors.into_iter().chain([(Some(traffic), Door::Models, models)]);
        for (listener, door, on) in doors.filter_map(|(listener, door, on)| Some((listener?, door, on))) {
            let serving = serving.clone();
            let serve = async move {
                match UnixListener::from_std(listener) {
                    Ok(listener) => serving.unix(listener, door).await,
                    Err(error) => tracing::error!(%error, "the socket cannot be served"),
                }
            };
            tasks.spawn_on(serve, &on);
        }
        if let Some(Http { listener, guard, .. }) = http {
            tasks.spawn(serving.clone().tcp(listener, guard));
        }
        drop(serving);
        let ticking = tokio::spawn(tick(Arc::clone(&host), makes_room));
        let following = tokio::spawn(Arc::clone(&host.proxy).follow());
        let mut stopping = host.stopping.subscribe();
        // It cannot go away while we hold it.
        let _ = stopping.wait_for(|stopping| *stopping).await;
        // Before anything else: whoever comes now looks for another engine.
        place.leave();
        host.proxy.desk.stop();
        host.gate.end_stream();
        while tasks.join_next().await.is_some() {}
        ticking.abort();
        following.abort();
        tracing::info!("stopped");
    }
}

/// Does what is due, again and again, and stops the engine once somebody wants it whom it makes room for.
async fn tick(host: Arc<Host>, makes_room: Option<EnginePlace>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let (host, makes_room) = (Arc::clone(&host), makes_room.clone());
        let done = tokio::task::spawn_blocking(move || {
            if makes_room.is_some_and(|place| place.wanted(&host.notes).is_some()) {
                host.stopping.send_replace(true);
                return Ok(());
            }
            if let Some(path) = host.gate.displaced() {
                let path = path.display();
                tracing::error!(%path, "a file of the journal was removed or replaced; the engine ends");
                let _ = host.ended_by.set(format!("`{path}` was removed or replaced while the engine used it"));
                host.stopping.send_replace(true);
                return Ok(());
            }
            host.settle()?;
            // Requests to models go by it, too.
            host.refresh_if_readable();
            // What waits may be outrun by files or by its deadline; without it there is nothing to do.
            if host.gate.read(|history| history.status())?.pending > 0 {
                host.gate.tick(now())?;
            }
            Ok::<_, Failure>(())
        });
        if let Ok(Err(failure)) = done.await {
            tracing::warn!(reason = failure.message, "what is due could not be done");
        }
    }
}

/// An engine in this process, reached through its socket like any other. Stops when dropped.
#[derive(Debug)]
pub struct Here {
    /// What the start settled.
    pub recovered: Option<RecoveredChange>,
    /// Gone once it has made room for another.
    host: Weak<Host>,
    thread: Option<JoinHandle<()>>,
}

impl Here {
    /// Starts an engine in this process.
    pub fn start(options: EngineOptions) -> Result<Self, StartError> {
        let mut opened = Opened::new(options)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (recovered, host) = (opened.recovered.take(), Arc::downgrade(&opened.host));
        let serve = move || {
            runtime.block_on(opened.serve(None, Timing::USUAL));
            runtime.shutdown_timeout(LAST_WORK);
        };
        let thread = std::thread::Builder::new().name("engine".to_owned()).spawn(serve)?;
        Ok(Self { recovered, host, thread: Some(thread) })
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        if let Some(host) = self.host.upgrade() {
            host.stopping.send_replace(true);
        }
        if let Some(thread) = self.thread.take() {
            // It has nothing left to wait for but work in progress.
            let _ = thread.join();
        }
    }
}

/// An engine that serves this machine.
pub struct Server {
    opened: Opened,
    listener: std::net::TcpListener,
    guard: Arc<Guard>,
    timing: Timing,
    runtime: Runtime,
    /// The address.
    pub url: String,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Ends a server from elsewhere.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Host>);

impl Stop {
    /// Ends it: streams end, work in progress is finished.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }
}

impl Server {
    /// Starts a server. Nobody is served before [`run`](Self::run), but everybody can connect.
    pub fn start(options: EngineOptions, http: HttpOptions) -> Result<Self, StartError> {
        if http.token.is_none() && !http.address.ip().is_loopback() {
            return Err(StartError::OpenToAll(http.address));
        }
        let opened = Opened::new(options)?;
        let listener = match listen(http.address, http.port) {
            Ok(listener) => listener,
            Err(error) => {
                // While the lock is held, the socket is ours to take away.
                opened.place.leave();
                return Err(error);
            }
        };
        let address = listener.local_addr()?;
        let url = format!("http://{}", reached_at(address));
        opened.place.note(&url, http.token.as_ref())?;
        // Set once, here.
        let _ = opened.host.url.set(url.clone());
        let logins = opened.host.logins.clone();
        let guard = Arc::new(Guard::new(http.token, http.hosts, http.origins, logins));
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(Self { opened, listener, guard, timing: http.timing, runtime, url })
    }

    /// What the start settled.
    pub fn recovered(&self) -> Option<&RecoveredChange> {
        self.opened.recovered.as_ref()
    }

    /// The logins of its engine, for the process that started it.
    pub fn logins(&self) -> Logins {
        self.opened.host.logins.clone()
    }

    /// How to end it.
    pub fn stopper(&self) -> Stop {
        Stop(Arc::clone(&self.opened.host))
    }

    /// Serves until told to stop.
    pub fn run(self) -> Result<(), StartError> {
        let Self { opened, listener, guard, timing, runtime, .. } = self;
        let traffic = match Traffic::start(LAST_WORK) {
            Ok(traffic) => traffic,
            Err(error) => {
                opened.place.leave();
                return Err(error.into());
            }
        };
        let (proxy, host) = (Arc::clone(&opened.host.proxy), Arc::clone(&opened.host));
        let served = runtime.block_on(async {
            let listener = TcpListener::from_std(listener)?;
            let http = Http { listener, guard, traffic: traffic.handle.clone() };
            opened.serve(Some(http), timing).await;
            Ok(())
        });
        traffic.end();
        runtime.shutdown_timeout(LAST_WORK);
        // What ended just now is recorded, too.
        proxy.desk.settle();
        match host.ended_by.get() {
            Some(reason) => Err(StartError::Ended(reason.clone())),
            None => served,
        }
    }
}
