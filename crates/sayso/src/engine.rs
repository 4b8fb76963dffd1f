//! The connection to the engine of a workspace. This process starts an engine if none runs.
//!
//! Either way commands talk through a socket and `api`. A process outside the gate uses the socket for verdicts. A process under the
//! gate cannot reach that socket and uses the one for proposals.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sayso_api::LocalStream;
use sayso_api::client::{Client, ClientError, Connection, Dial, RetryBudget, Role, StatusDetail, Watch};
pub(crate) use sayso_gate::DEADLINE_RULE;
use sayso_review::ErrorKind;
use sayso_server::agent_registry::AgentRegistry;
use sayso_server::{EngineSocket, InProcessEngine, StartError, TakeoverRequest, is_marked, marked_peer};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::error::CliError;
use crate::settings::engine_options;
use crate::terminal;
use crate::workspace_location::{WorkspaceLocation, check_clock, report_recovery};

/// Time for another sayso process to start its engine or to hand it over.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between attempts to connect.
const RETRY_PAUSE: Duration = Duration::from_millis(10);
/// Time for a lost engine to come back.
const RETRY_BUDGET: RetryBudget = RetryBudget::Limited(Duration::from_secs(1));

/// A connection to the engine of a workspace.
pub(crate) struct EngineConnection {
    // Fields are dropped in this order. An engine in this process waits for open connections, ours among them, so that the client
    // has to go before the locator, which holds the engine.
    runtime: Runtime,
    client: Client,
    locator: Arc<EngineLocator>,
}

impl EngineConnection {
    /// Connects to the engine of a workspace, and starts it in this process if none runs.
    pub(crate) fn open(location: &WorkspaceLocation) -> Result<Self, CliError> {
        Self::with_scratch(location, None)
    }

    /// Connects for a command that only reads. A workspace without a history gets none: the journal is temporary.
    pub(crate) fn read_only(location: &WorkspaceLocation) -> Result<Self, CliError> {
        if location.has_history() {
            return Self::open(location);
        }
        let scratch =
            tempfile::tempdir().map_err(|error| CliError::io("cannot create a temporary directory", &error))?;
        Self::with_scratch(location, Some(scratch))
    }

    fn with_scratch(location: &WorkspaceLocation, scratch: Option<TempDir>) -> Result<Self, CliError> {
        check_clock()?;
        let mut location = location.clone();
        if let Some(scratch) = &scratch {
            scratch.path().clone_into(&mut location.folder);
        }
        let locator = Arc::new(EngineLocator {
            socket: EngineSocket::new(&location.folder),
            location,
            in_process: Mutex::default(),
            first: Mutex::default(),
            takeover: Mutex::default(),
            scratch,
        });
        // Connected before the first call, so that a failure is reported with its own text and hint.
        let mut waited = Duration::ZERO;
        while !locator.connect_first()? {
            if waited >= HANDOVER_TIMEOUT {
                return Err(locator.busy());
            }
            std::thread::sleep(RETRY_PAUSE);
            waited += RETRY_PAUSE;
        }
        if locator.scratch.is_none() {
            locator.location.record_root();
        }
        let client = locator.client();
        Ok(Self { runtime: runtime()?, client, locator })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The locator, for connections of another thread.
    pub(crate) fn locator(&self) -> Arc<EngineLocator> {
        Arc::clone(&self.locator)
    }

    /// Waits for a call.
    pub(crate) fn block<T>(&self, call: impl Future<Output = Result<T, ClientError>>) -> Result<T, CliError> {
        Ok(self.wait(call)?)
    }

    /// Waits for a future.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Registers this process as a surface. While the stream is held, pending changes trigger no notification.
    pub(crate) fn attach(&self) -> Result<Watch, CliError> {
        let last = self.block(self.client.status(StatusDetail::Counts))?.last_event;
        let mut watch = self.client.watch(last, Role::Surface, RETRY_BUDGET);
        self.block(watch.next())?;
        Ok(watch)
    }
}

pub(crate) fn runtime() -> Result<Runtime, CliError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CliError::io("cannot start the async runtime", &error))
}

/// Finds the engine of a workspace, or starts it in this process.
#[derive(Debug)]
pub(crate) struct EngineLocator {
    location: WorkspaceLocation,
    socket: EngineSocket,
    in_process: Mutex<Option<InProcessEngine>>,
    /// The connection by which the engine was found. The first dial takes it.
    first: Mutex<Option<UnixStream>>,
    /// A request to an engine under the gate to hand over, with the id of its process.
    takeover: Mutex<Option<(u32, TakeoverRequest)>>,
    /// The journal of a read-only engine. Deleted with the locator.
    scratch: Option<TempDir>,
}

impl EngineLocator {
    /// Returns a client with connections of its own.
    pub(crate) fn client(self: &Arc<Self>) -> Client {
        let client = Client::new(Arc::new(EngineDialer(Arc::clone(self))), None);
        client.with_retry_budget(RETRY_BUDGET).with_surface(terminal::surface())
    }

    fn connect_first(&self) -> Result<bool, CliError> {
        let stream = self.connect_or_start()?;
        let is_found = stream.is_some();
        *lock(&self.first) = stream;
        Ok(is_found)
    }

    /// Connects to the running engine, or starts one. `None` while another process is starting or taking over the engine.
    fn connect_or_start(&self) -> Result<Option<UnixStream>, CliError> {
        if let Some(stream) = self.connect()? {
            return Ok(Some(stream));
        }
        if self.socket.takeover_requested(&AgentRegistry::new(&self.location.home)).is_some() {
            return Ok(None);
        }
        let started = match InProcessEngine::start(engine_options(&self.location)) {
            Ok(started) => started,
            Err(StartError::Taken) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if let Some(recovered) = &started.recovered {
            report_recovery(recovered);
        }
        *lock(&self.in_process) = Some(started);
        self.connect()
    }

    fn connect(&self) -> Result<Option<UnixStream>, CliError> {
        let failed = |error: io::Error| {
            CliError::io(format!("cannot use the engine's socket `{}`", self.socket.path().display()), &error)
        };
        if !is_marked()
            && let Some(stream) = self.socket.connect_to_decide().map_err(failed)?
        {
            *lock(&self.takeover) = None;
            return Ok(Some(stream));
        }
        let Some(stream) = self.socket.connect().map_err(failed)? else { return Ok(None) };
        match marked_peer(&stream) {
            // An engine under the gate accepts no verdicts, so that it hands over to a process outside.
            Some(engine) if !is_marked() => {
                let mut takeover = lock(&self.takeover);
                if takeover.is_none() {
                    *takeover = Some((engine, self.socket.request_takeover().map_err(failed)?));
                }
                Ok(None)
            }
            _ => Ok(Some(stream)),
        }
    }

    /// Creates the error about an engine that is not handed over in time.
    fn busy(&self) -> CliError {
        match &*lock(&self.takeover) {
            None => StartError::Taken.into(),
            Some((engine, _)) => CliError::new(
                ErrorKind::Unavailable,
                format!("process {engine} under the gate has the engine of this workspace, and does not hand it over"),
            )
            .hint(format!("end it: `kill {engine}`")),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Dials the engine for each new connection of a client.
#[derive(Debug)]
struct EngineDialer(Arc<EngineLocator>);

impl Dial for EngineDialer {
    fn dial(&self) -> futures::future::BoxFuture<'static, io::Result<Connection>> {
        let locator = Arc::clone(&self.0);
        Box::pin(async move {
            let mut waited = Duration::ZERO;
            loop {
                let first = lock(&locator.first).take();
                let stream = match first {
                    Some(stream) => Some(stream),
                    None => locator.connect_or_start().map_err(|error| io::Error::other(error.message()))?,
                };
                match stream {
                    Some(stream) => return Ok(Box::new(LocalStream::new(stream)?) as Connection),
                    None if waited >= HANDOVER_TIMEOUT => return Err(io::Error::other(locator.busy().message())),
                    None => {}
                }
                tokio::time::sleep(RETRY_PAUSE).await;
                waited += RETRY_PAUSE;
            }
        })
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        Self::new(error.kind(), error.to_string()).optional_hint(error.hint())
    }
}
