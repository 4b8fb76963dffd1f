//! The engine that commands speak to: the one that runs, or else one in this process. Either way through a socket: the one for verdicts,
//! or under the gate, where that is out of reach, the one for proposals.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sayso_api::LocalStream;
use sayso_api::client::{Client, ClientError, Connection, Dial, Extent, Patience, Role, Watch};
use sayso_review::ErrorKind;
use sayso_server::agents::Notes;
use sayso_server::{EnginePlace, Here, StartError, Wanting, is_marked, marked_peer};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;
use crate::settings::engine_options;
use crate::state::{State, check_clock, tell};

/// How long to wait for another sayso that is about to have the engine, or to let go of it.
const WAIT: Duration = Duration::from_secs(10);
/// How long until it is looked at again.
const PAUSE: Duration = Duration::from_millis(10);
/// How long an engine that went away is looked for.
const PATIENCE: Patience = Patience::For(Duration::from_secs(1));

/// A connection to the engine of a workspace.
pub(crate) struct Connected {
    // Dropped in this order: an engine in this process waits for connections that are open, ours among them.
    runtime: Runtime,
    client: Client,
    finding: Arc<Finding>,
}

impl Connected {
    /// Speaks to the engine of a workspace.
    pub(crate) fn to(state: &State) -> Result<Self, Failure> {
        Self::over(state, None)
    }

    /// The same for what only asks: where nothing was ever recorded, no trace of it is left.
    pub(crate) fn asking(state: &State) -> Result<Self, Failure> {
        if state.has_history() {
            return Self::to(state);
        }
        let failed = |error: io::Error| Failure::bad_input("there is no room for temporary files").why(&error);
        Self::over(state, Some(tempfile::tempdir().map_err(failed)?))
    }

    fn over(state: &State, scratch: Option<TempDir>) -> Result<Self, Failure> {
        check_clock()?;
        let mut state = state.clone();
        if let Some(scratch) = &scratch {
            scratch.path().clone_into(&mut state.folder);
        }
        let place = EnginePlace::new(&state.folder);
        let finding = Arc::new(Finding {
            state,
            place,
            here: Mutex::default(),
            first: Mutex::default(),
            wanting: Mutex::default(),
            scratch,
        });
        // Found before anything is asked, so that what is in the way is told in its own words.
        let mut waited = Duration::ZERO;
        while !finding.is_found()? {
            if waited >= WAIT {
                return Err(finding.taken());
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
        if finding.scratch.is_none() {
            finding.state.remember();
        }
        let client = finding.client();
        Ok(Self { runtime: runtime()?, client, finding })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Whoever makes connections, for another thread.
    pub(crate) fn finding(&self) -> Arc<Finding> {
        Arc::clone(&self.finding)
    }

    /// Waits for a call to end.
    pub(crate) fn block<T>(&self, call: impl Future<Output = Result<T, ClientError>>) -> Result<T, Failure> {
        Ok(self.wait(call)?)
    }

    /// Waits for something to end.
    pub(crate) fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    /// Says that a person decides here, so that what waits need not be announced, for as long as the stream is held.
    pub(crate) fn attach(&self) -> Result<Watch, Failure> {
        let last = self.block(self.client.status(Extent::Counts))?.last_event;
        let mut watch = self.client.watch(last, Role::Surface, PATIENCE);
        self.block(watch.next())?;
        Ok(watch)
    }
}

pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let failed = |error: io::Error| Failure::bad_input("nothing can be waited for").why(&error);
    Builder::new_current_thread().enable_all().build().map_err(failed)
}

/// How the engine of a workspace is found, or started here if there is none.
#[derive(Debug)]
pub(crate) struct Finding {
    state: State,
    place: EnginePlace,
    here: Mutex<Option<Here>>,
    /// The connection by which it was found.
    first: Mutex<Option<UnixStream>>,
    /// The engine under the gate that is asked to make room, and how.
    wanting: Mutex<Option<(u32, Wanting)>>,
    /// Where the records are of an engine that leaves none, for as long as it is there.
    scratch: Option<TempDir>,
}

impl Finding {
    /// A client with connections of its own.
    pub(crate) fn client(self: &Arc<Self>) -> Client {
        Client::new(Arc::new(Dialling(Arc::clone(self))), None).with_patience(PATIENCE)
    }

    fn is_found(&self) -> Result<bool, Failure> {
        let found = self.find()?;
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        *first = found;
        Ok(first.is_some())
    }

    /// Connects to the engine that runs, or starts one. `None` if another process is about to do so, or wants to.
    fn find(&self) -> Result<Option<UnixStream>, Failure> {
        if let Some(stream) = self.connect()? {
            return Ok(Some(stream));
        }
        if self.place.wanted(&Notes::new(&self.state.home)).is_some() {
            return Ok(None);
        }
        let started = match Here::start(engine_options(&self.state)) {
            Ok(started) => started,
            Err(StartError::Taken) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if let Some(recovered) = &started.recovered {
            tell(recovered);
        }
        *self.here.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
        self.connect()
    }

    fn connect(&self) -> Result<Option<UnixStream>, Failure> {
        let failed = |error: io::Error| {
            let socket = self.place.socket();
            Failure::bad_input(format!("the engine's socket `{}` cannot be used", socket.display())).why(&error)
        };
        if !is_marked()
            && let Some(stream) = self.place.connect_to_decide().map_err(failed)?
        {
            *self.wanting() = None;
            return Ok(Some(stream));
        }
        let Some(stream) = self.place.connect().map_err(failed)? else { return Ok(None) };
        // An engine under the gate takes no verdicts, and makes room for one outside.
        match marked_peer(&stream) {
            Some(engine) if !is_marked() => {
                let mut wanting = self.wanting();
                if wanting.is_none() {
                    *wanting = Some((engine, self.place.want().map_err(failed)?));
                }
                Ok(None)
            }
            _ => Ok(Some(stream)),
        }
    }

    fn wanting(&self) -> MutexGuard<'_, Option<(u32, Wanting)>> {
        self.wanting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says who has the engine and does not let go of it.
    fn taken(&self) -> Failure {
        match &*self.wanting() {
            None => StartError::Taken.into(),
            Some((engine, _)) => Failure::of(
                ErrorKind::Unavailable,
                format!("process {engine} under the gate has the engine of this workspace, and does not make room"),
            )
            .hint(format!("end it: `kill {engine}`")),
        }
    }
}

#[derive(Debug)]
struct Dialling(Arc<Finding>);

impl Dial for Dialling {
    fn dial(&self) -> futures::future::BoxFuture<'static, io::Result<Connection>> {
        let finding = Arc::clone(&self.0);
        Box::pin(async move {
            let mut waited = Duration::ZERO;
            loop {
                let first = finding.first.lock().unwrap_or_else(PoisonError::into_inner).take();
                let found = match first {
                    Some(stream) => Some(stream),
                    None => finding.find().map_err(|failure| io::Error::other(failure.message()))?,
                };
                match found {
                    Some(stream) => return Ok(Box::new(LocalStream::new(stream)?) as Connection),
                    None if waited >= WAIT => return Err(io::Error::other(finding.taken().message())),
                    None => {}
                }
                tokio::time::sleep(PAUSE).await;
                waited += PAUSE;
            }
        })
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let failure = Self::of(error.kind(), error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
