//! Start of an engine. The first process that starts one serves the workspace.
//!
//! The journal's lock guarantees a single engine: only its holder binds the sockets, and it removes them before it releases the lock.

mod address;
mod error;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use sayso_gate::{Engine, Gate, GateError, Notify, RecoveredChange};
use sayso_journal::{Journal, OpenJournalError, Options};
use sayso_proxy::{AgentEndpoints, Interceptor, Proxy};
use sayso_workspace::Workspace;
use sayso_workspace::git::Environment;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::agent_registry::AgentRegistry;
use crate::agent_sessions;
use crate::call_files::CallFiles;
use crate::editors::EditorRegistry;
use crate::engine_socket::{EngineSocket, Listeners};
use crate::failure::Failure;
use crate::guard::Guard;
use crate::host::{Host, HostOptions, now};
use crate::kernel_marks;
use crate::listen::{ConnectionServer, Listener, Timing};
use crate::login::Logins;
use crate::proxy_thread::ProxyThread;
use crate::settings::Settings;
use crate::token::Token;
use crate::work::WorkMonitor;
pub use address::{PORT, PortChoice, loopback};
use address::{listen, reachable_address};
pub use error::StartError;

/// Interval of periodic maintenance.
const TICK: Duration = Duration::from_secs(1);
/// Time limit for blocking work at shutdown. An apply takes milliseconds; a scan of a large tree, seconds.
const BLOCKING_SHUTDOWN_LIMIT: Duration = Duration::from_secs(30);

/// Parameters of an engine.
pub struct EngineOptions {
    /// Root of the workspace.
    pub root: PathBuf,
    /// Directory of its journal.
    pub journal: PathBuf,
    /// sayso's state directory, which no change may touch.
    pub home: PathBuf,
    pub settings: Box<dyn Settings>,
    /// Notifies a person of pending decisions.
    pub notify: Box<dyn Notify>,
    /// Environment of git.
    pub environment: Environment,
    /// Version of the program.
    pub version: &'static str,
    /// The program itself, which commands of the built-in agent start with.
    pub program: PathBuf,
}

impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOptions").field("root", &self.root).finish_non_exhaustive()
    }
}

/// Parameters of an HTTP server.
#[derive(Debug)]
pub struct HttpOptions {
    pub address: SocketAddr,
    pub port: PortChoice,
    /// `None` if no token is required.
    pub token: Option<Token>,
    /// Host names of this server in addition to those of this machine.
    pub hosts: Vec<String>,
    /// Origins of pages that may call in addition to its own.
    pub origins: Vec<String>,
    /// Time limits for clients, on all sockets.
    pub timing: Timing,
}

/// A bound HTTP server.
struct Http {
    listener: TcpListener,
    guard: Arc<Guard>,
    /// Runtime for requests to models.
    proxy_runtime: Handle,
}

/// An engine that does not serve connections yet.
struct Opened {
    host: Arc<Host>,
    socket: EngineSocket,
    listeners: Listeners,
    recovered: Option<RecoveredChange>,
}

impl Opened {
    fn new(options: EngineOptions) -> Result<Self, StartError> {
        let EngineOptions { root, journal: directory, home, settings, notify, environment, version, program } = options;
        let open = || Ok::<_, StartError>(Workspace::open(&root)?.protecting(&home));
        let journal = match Journal::open(&directory, Options { wait: Duration::ZERO }) {
            Err(OpenJournalError::Locked { .. }) => return Err(StartError::Taken),
            opened => opened.map_err(GateError::from)?,
        };
        let (engine, recovered) = Engine::open(open()?, journal, now())?;
        let current = match settings.changed(&|| engine.has_running_writer()) {
            Ok(Some(current)) => current,
            Ok(None) => return Err(StartError::System(io::Error::other("the configuration is missing"))),
            // History and undo work without a readable configuration. Until it is readable, policy denies everything.
            Err(_) => settings.strictest().map_err(StartError::Settings)?,
        };
        let editors = Arc::new(EditorRegistry::default());
        let engine = engine.with_limits(current.snapshots).with_editors(Arc::clone(&editors) as _);
        let gate = Gate::new(engine, current.rules, notify, now())?;
        let interceptor = Interceptor::open(gate.clone(), current.requests, &directory, &home)?;
        let proxy = Arc::new(Proxy::new(interceptor, AgentEndpoints::load(&directory)));
        let socket = EngineSocket::new(&directory);
        let path = || socket.path().display().to_string();
        let listeners = socket.listen().map_err(|error| StartError::Socket { path: path(), error })?;
        let options = HostOptions {
            settings,
            agents: AgentRegistry::new(&home),
            calls: CallFiles::new(&home),
            workspace: open()?,
            root,
            journal: directory,
            version,
            environment,
            deadline: current.deadline,
            branch_prefix: current.branch_prefix,
            editors,
            program,
        };
        let host = Host::new(gate, proxy, options);
        host.agent_sessions.configure(current.agent);
        if let Err(failure) = host.finish_abandoned() {
            tracing::warn!(reason = failure.message, "cannot finish abandoned changes");
        }
        Ok(Self { host, socket, listeners, recovered })
    }

    /// Serves until the engine is told to stop, and then until open requests have their responses.
    async fn serve(self, http: Option<Http>, timing: Timing) {
        let Self { host, socket, listeners, .. } = self;
        host.editors.set_timing(timing.editor);
        host.agent_sessions.set_timing(timing.agent);
        // Only an engine inside another command yields to `sayso serve`.
        let yields = (http.is_none() || kernel_marks::is_marked()).then(|| socket.clone());
        let runtime = Handle::current();
        let proxy_runtime = http.as_ref().map(|http| http.proxy_runtime.clone());
        let server = ConnectionServer::new(&host, timing, proxy_runtime.clone());
        let mut tasks = tokio::task::JoinSet::new();
        let proxy_runtime = proxy_runtime.unwrap_or_else(|| runtime.clone());
        let Listeners { services, models, verdicts } = listeners;
        let listeners = [
            (Some(services), Listener::Api, &runtime),
            (verdicts, Listener::Verdicts, &runtime),
            (Some(models), Listener::Proxy, &proxy_runtime),
        ];
        for (bound, listener, runtime) in listeners {
            let (Some(bound), server) = (bound, server.clone()) else { continue };
            let serve = async move {
                match UnixListener::from_std(bound) {
                    Ok(bound) => server.serve_unix(bound, listener).await,
                    Err(error) => tracing::error!(%error, "cannot serve a Unix socket"),
                }
            };
            tasks.spawn_on(serve, runtime);
        }
        if let Some(Http { listener, guard, .. }) = http {
            tasks.spawn(server.clone().serve_tcp(listener, guard));
        }
        drop(server);
        let ticking = tokio::spawn(tick(Arc::clone(&host), yields));
        let following = tokio::spawn(Arc::clone(&host.proxy).follow());
        let following_agent = tokio::spawn(agent_sessions::follow(Arc::clone(&host)));
        let mut stopping = host.stopping.subscribe();
        // Cannot fail: this function holds the sender.
        let _ = stopping.wait_for(|stopping| *stopping).await;
        // First, so that new clients look for another engine.
        socket.remove_all();
        host.agent_sessions.stop();
        host.agent_sessions.close_mcp().await;
        host.proxy.interceptor.stop();
        host.gate.end_stream();
        while tasks.join_next().await.is_some() {}
        ticking.abort();
        following.abort();
        following_agent.abort();
        tracing::info!("stopped");
    }
}

/// Runs periodic maintenance. Stops the engine if another process requests a takeover and `yields` is set, or if its journal was
/// removed.
async fn tick(host: Arc<Host>, yields: Option<EngineSocket>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let (host, yields) = (Arc::clone(&host), yields.clone());
        let done = tokio::task::spawn_blocking(move || {
            if yields.is_some_and(|socket| socket.takeover_requested(&host.agents).is_some()) {
                host.stopping.send_replace(true);
                return Ok(());
            }
            if let Some(path) = host.gate.displaced() {
                let path = path.display();
                tracing::error!(%path, "stopping: a file of the journal was removed or replaced");
                let _ = host.stop_reason.set(format!("`{path}` was removed or replaced"));
                host.stopping.send_replace(true);
                return Ok(());
            }
            host.finish_abandoned()?;
            // Requests to models use the configuration without a call that reloads it.
            host.refresh_if_readable();
            // Refreshes stale previews and denies changes past their deadline.
            if host.gate.read(|history| history.status())?.pending > 0 {
                host.gate.tick(now())?;
            }
            Ok::<_, Failure>(())
        });
        if let Ok(Err(failure)) = done.await {
            tracing::warn!(reason = failure.message, "periodic maintenance failed");
        }
    }
}

/// An engine in this process, reached through its socket like any other. Stops when dropped.
#[derive(Debug)]
pub struct InProcessEngine {
    /// Change that crash recovery completed or rolled back.
    pub recovered: Option<RecoveredChange>,
    /// Dropped once the engine has stopped, for example after a takeover.
    host: Weak<Host>,
    thread: Option<JoinHandle<()>>,
}

impl InProcessEngine {
    /// Starts an engine in this process.
    pub fn start(options: EngineOptions) -> Result<Self, StartError> {
        let mut opened = Opened::new(options)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (recovered, host) = (opened.recovered.take(), Arc::downgrade(&opened.host));
        let serve = move || {
            runtime.block_on(opened.serve(None, Timing::DEFAULT));
            runtime.shutdown_timeout(BLOCKING_SHUTDOWN_LIMIT);
        };
        let thread = std::thread::Builder::new().name("engine".to_owned()).spawn(serve)?;
        Ok(Self { recovered, host, thread: Some(thread) })
    }
}

impl Drop for InProcessEngine {
    fn drop(&mut self) {
        if let Some(host) = self.host.upgrade() {
            host.stopping.send_replace(true);
        }
        if let Some(thread) = self.thread.take() {
            // The thread waits for blocking work only.
            let _ = thread.join();
        }
    }
}

/// An engine with an HTTP server.
pub struct Server {
    opened: Opened,
    listener: std::net::TcpListener,
    guard: Arc<Guard>,
    timing: Timing,
    runtime: Runtime,
    /// Address of the server.
    pub url: String,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Handle that stops a server from another thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Host>);

impl Stop {
    /// Ends streams and waits for open requests.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }
}

impl Server {
    /// Starts a server. Clients can connect from here on, and get responses once [`run`](Self::run) is called.
    pub fn start(options: EngineOptions, http: HttpOptions) -> Result<Self, StartError> {
        if http.token.is_none() && !http.address.ip().is_loopback() {
            return Err(StartError::Unprotected(http.address));
        }
        let opened = Opened::new(options)?;
        let listener = match listen(http.address, http.port) {
            Ok(listener) => listener,
            Err(error) => {
                // Before the drop of `opened` releases the lock.
                opened.socket.remove_all();
                return Err(error);
            }
        };
        let address = listener.local_addr()?;
        let url = format!("http://{}", reachable_address(address));
        opened.socket.write_server(&url, http.token.as_ref())?;
        // Cannot fail: set here only.
        let _ = opened.host.url.set(url.clone());
        let logins = opened.host.logins.clone();
        let guard = Arc::new(Guard::new(http.token, http.hosts, http.origins, logins));
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(Self { opened, listener, guard, timing: http.timing, runtime, url })
    }

    /// Change that crash recovery completed or rolled back.
    pub fn recovered(&self) -> Option<&RecoveredChange> {
        self.opened.recovered.as_ref()
    }

    /// Logins of its engine, for the process that started it.
    pub fn logins(&self) -> Logins {
        self.opened.host.logins.clone()
    }

    /// Creates a link that logs a browser in, once, within five minutes.
    pub fn login_link(&self) -> Result<String, StartError> {
        Ok(self.opened.host.logins.create_link_to(&self.url)?)
    }

    /// Returns a handle that stops the server.
    pub fn stopper(&self) -> Stop {
        Stop(Arc::clone(&self.opened.host))
    }

    /// Returns a handle that reads the server's counters.
    pub fn work_monitor(&self) -> WorkMonitor {
        WorkMonitor(Arc::clone(&self.opened.host))
    }

    /// Serves until the engine stops. Fails if it stopped by itself.
    pub fn run(self) -> Result<(), StartError> {
        let Self { opened, listener, guard, timing, runtime, .. } = self;
        let proxy_thread = match ProxyThread::start(BLOCKING_SHUTDOWN_LIMIT) {
            Ok(thread) => thread,
            Err(error) => {
                opened.socket.remove_all();
                return Err(error.into());
            }
        };
        let (proxy, host) = (Arc::clone(&opened.host.proxy), Arc::clone(&opened.host));
        let served = runtime.block_on(async {
            let listener = TcpListener::from_std(listener)?;
            let http = Http { listener, guard, proxy_runtime: proxy_thread.handle.clone() };
            opened.serve(Some(http), timing).await;
            Ok(())
        });
        proxy_thread.stop();
        runtime.shutdown_timeout(BLOCKING_SHUTDOWN_LIMIT);
        // Records requests that ended during shutdown.
        proxy.interceptor.flush();
        match host.stop_reason.get() {
            Some(reason) => Err(StartError::Ended(reason.clone())),
            None => served,
        }
    }
}
