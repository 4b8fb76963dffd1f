//! Starts: one engine for each workspace, whoever comes first.
//!
//! The journal's lock says who that is, so that there is no moment at which two believe it of themselves: only its holder binds the
//! socket, and takes it away again before letting go of the lock.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use sayso_gate::{Announce, Engine, Gate, GateError, RecoveredChange};
use sayso_journal::{Journal, OpenJournalError, Options};
use sayso_proxy::{Desk, Entrances, Proxy};
use sayso_review::ErrorKind;
use sayso_workspace::git::Environment;
use sayso_workspace::{OpenWorkspaceError, Workspace};
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::agents::Notes;
use crate::failure::Failure;
use crate::guard::Guard;
use crate::host::{Host, Hosting, now};
use crate::listen::{Door, Serving, Timing};
use crate::place::EnginePlace;
use crate::settings::Settings;
use crate::token::Token;
use crate::traffic::Traffic;

/// Where `sayso serve` listens unless told otherwise.
pub const PORT: u16 = 7777;
/// Ports that are tried after the first.
const MORE_PORTS: u16 = 100;
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

/// Whether another port will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// The next free one will.
    OrNext,
    /// This one or none.
    Exactly,
}

/// Why an engine could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// Another process has the engine of this workspace, or is about to.
    #[error("another process has the engine of this workspace")]
    Taken,
    /// The workspace cannot be used.
    #[error(transparent)]
    Workspace(#[from] OpenWorkspaceError),
    /// The engine cannot be opened.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// The configuration cannot be used.
    #[error("{}", .0.message)]
    Settings(Failure),
    /// The socket cannot be made.
    #[error("the engine's socket `{path}` cannot be made: {error}")]
    Socket {
        /// Where.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// No port is free.
    #[error("`{address}` cannot be listened at: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// An address beyond this machine without a token.
    #[error("`{0}` can be reached from other machines, and without a token anybody there could decide")]
    OpenToAll(SocketAddr),
    /// The system fails.
    #[error("the engine cannot be started: {0}")]
    System(#[from] io::Error),
}

impl StartError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Workspace(_) | Self::OpenToAll(_) => ErrorKind::InvalidArgs,
            // The address is at fault, and another one will do.
            Self::Listen { error, .. } if is_of_address(error) => ErrorKind::InvalidArgs,
            Self::Gate(error) => error.kind(),
            Self::Settings(failure) => failure.kind,
            Self::Taken | Self::Socket { .. } | Self::Listen { .. } | Self::System(_) => ErrorKind::Unavailable,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Taken => Some("`sayso doctor` shows the engines that run".to_owned()),
            Self::Workspace(_) => Some("name a directory with --workspace".to_owned()),
            Self::Gate(error) => error.hint(),
            Self::Settings(failure) => failure.hint.clone(),
            Self::Listen { error, .. } if error.kind() == io::ErrorKind::AddrNotAvailable => {
                Some("--listen takes an address of this machine, such as 127.0.0.1".to_owned())
            }
            Self::Listen { .. } => Some("name another port with --port, or 0 for any".to_owned()),
            Self::OpenToAll(_) => Some("leave --no-auth out, or listen at 127.0.0.1".to_owned()),
            Self::Socket { .. } | Self::System(_) => {
                Some("look at the disk's free space and the folder's permissions".to_owned())
            }
        }
    }
}

/// Whether it is the address that cannot be listened at.
fn is_of_address(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    matches!(error.kind(), AddrInUse | AddrNotAvailable | PermissionDenied)
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
    listener: std::os::unix::net::UnixListener,
    traffic: std::os::unix::net::UnixListener,
    recovered: Option<RecoveredChange>,
}

impl Opened {
    fn new(options: EngineOptions) -> Result<Self, StartError> {
        let EngineOptions { root, journal: folder, home, settings, announce, environment, version } = options;
        let current = settings.changed().map_err(StartError::Settings)?;
        let Some(current) = current else { return Err(StartError::System(io::Error::other("no configuration"))) };
        let open = || Ok::<_, StartError>(Workspace::open(&root)?.protecting(&home));
        let journal = match Journal::open(&folder, Options { wait: Duration::ZERO }) {
            Err(OpenJournalError::Locked { .. }) => return Err(StartError::Taken),
            opened => opened.map_err(GateError::from)?,
        };
        let (engine, recovered) = Engine::open(open()?, journal, now())?;
        let gate = Gate::taken_over(engine.keeping(current.snapshots), current.rules, announce);
        let desk = Desk::open(gate.clone(), current.requests, &folder, &home)?;
        let proxy = Arc::new(Proxy::new(desk, Entrances::load(&folder)));
        let place = EnginePlace::new(&folder);
        let socket = || place.socket().display().to_string();
        let (listener, traffic) = place.listen().map_err(|error| StartError::Socket { path: socket(), error })?;
        let hosting = Hosting {
            settings,
            notes: Notes::new(&home),
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
        Ok(Self { host, place, listener, traffic, recovered })
    }

    /// Serves until told to stop, and then until those who are served have their answers.
    async fn serve(self, http: Option<Http>, timing: Timing) {
        let Self { host, place, listener, traffic, .. } = self;
        // Whoever serves this machine was asked to; an engine in a command makes room for them.
        let makes_room = http.is_none().then(|| place.clone());
        let here = Handle::current();
        let elsewhere = http.as_ref().map(|http| http.traffic.clone());
        let serving = Serving::new(&host, timing, elsewhere.clone());
        let mut tasks = tokio::task::JoinSet::new();
        let models = elsewhere.unwrap_or_else(|| here.clone());
        for (listener, door, on) in [(listener, Door::Services, here), (traffic, Door::Models, models)] {
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
        let guard = Arc::new(Guard::new(http.token, http.hosts, http.origins));
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(Self { opened, listener, guard, timing: http.timing, runtime, url })
    }

    /// What the start settled.
    pub fn recovered(&self) -> Option<&RecoveredChange> {
        self.opened.recovered.as_ref()
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
        let proxy = Arc::clone(&opened.host.proxy);
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
        served
    }
}

fn listen(address: SocketAddr, choice: PortChoice) -> Result<std::net::TcpListener, StartError> {
    let last = match choice {
        PortChoice::Exactly => address.port(),
        PortChoice::OrNext => address.port().saturating_add(MORE_PORTS),
    };
    let mut failed = None;
    for port in address.port()..=last {
        match std::net::TcpListener::bind(SocketAddr::new(address.ip(), port)) {
            Ok(listener) => {
                listener.set_nonblocking(true)?;
                return Ok(listener);
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let error = failed.unwrap_or_else(|| io::ErrorKind::AddrInUse.into());
    Err(StartError::Listen { address, error })
}

/// An address under which a server is reached from this machine: one that stands for all of them is the name of none.
fn reached_at(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The address that only this machine reaches.
pub fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port)
}
