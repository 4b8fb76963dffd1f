//! The gateway of a workspace: shared state of all its requests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use http::{HeaderMap, Uri};
use sayso_review::{Event, EventBody};
use tokio::sync::Semaphore;

use crate::endpoint::AgentEndpoints;
use crate::http::headers::{self, SecretQuery};
use crate::http::{Route, RouteCache, Sender};
use crate::interceptor::Interceptor;
use crate::lock;

/// Requests that are parsed and admitted at the same time.
const MAX_CONCURRENT_ADMISSIONS: usize = 16;
/// Runs per upstream whose credentials are cached. The run that was idle longest is evicted.
const MAX_CACHED_RUNS: usize = 32;

/// The gateway of a workspace.
#[derive(Debug)]
pub struct Proxy {
    pub interceptor: Arc<Interceptor>,
    pub endpoints: AgentEndpoints,
    pub(crate) routes: RouteCache,
    pub(crate) admissions: Arc<Semaphore>,
    in_progress: Arc<AtomicUsize>,
    /// Created on first use: loading the system's certificates is slow.
    sender: OnceLock<Sender>,
    /// Credentials by upstream, the run of the last request at the end. Never written to disk.
    credentials: Mutex<BTreeMap<String, Vec<CachedCredentials>>>,
}

/// Credentials and server of a run's last request to an upstream. Two runs may use the same upstream name for different servers.
#[derive(Clone)]
pub(crate) struct CachedCredentials {
    run: String,
    pub(crate) base: Uri,
    pub(crate) credentials: HeaderMap,
    pub(crate) query: SecretQuery,
}

/// Result of a credential lookup.
#[derive(Debug)]
pub(crate) enum CredentialLookup {
    Missing,
    Found(Box<CachedCredentials>),
    /// The run is unknown, and the cached runs used several servers.
    Ambiguous,
}

impl std::fmt::Debug for CachedCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedCredentials").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Proxy {
    pub fn new(interceptor: Arc<Interceptor>, endpoints: AgentEndpoints) -> Self {
        Self {
            interceptor,
            endpoints,
            routes: RouteCache::default(),
            admissions: Arc::new(Semaphore::new(MAX_CONCURRENT_ADMISSIONS)),
            in_progress: Arc::default(),
            sender: OnceLock::new(),
            credentials: Mutex::default(),
        }
    }

    /// Follows the event stream of the workspace, and ends sessions here when they end there.
    pub async fn follow(self: Arc<Self>) {
        let mut stream = self.interceptor.gate.subscribe(self.interceptor.gate.last_event());
        while let Ok(Some(recorded)) = stream.next().await {
            if let EventBody::Known(Event::SessionEnded { session }) = &recorded.body {
                let (interceptor, session) = (Arc::clone(&self.interceptor), session.clone());
                // Flushes the recorder, which blocks. A panic must not stop the loop.
                let _ = tokio::task::spawn_blocking(move || interceptor.end_session(&session)).await;
            }
        }
    }

    /// Caches the credentials of a request for replays.
    pub(crate) fn cache_credentials(&self, route: &Route, headers: &HeaderMap) {
        let Route { run, upstream, base, path, .. } = route;
        let query = SecretQuery::of(path);
        let mut all = lock(&self.credentials);
        let is_same = |cached: &CachedCredentials| {
            cached.run == run.name
                && cached.base == *base
                && cached.query == query
                && headers::are_credentials(&cached.credentials, headers)
        };
        if all.get(upstream).and_then(|runs| runs.last()).is_some_and(is_same) {
            return;
        }
        let runs = all.entry(upstream.clone()).or_default();
        runs.retain(|cached| cached.run != run.name);
        if runs.len() == MAX_CACHED_RUNS {
            runs.remove(0);
        }
        let (run, base) = (run.name.clone(), base.clone());
        runs.push(CachedCredentials { run, base, credentials: headers::credentials(headers), query });
    }

    /// Looks up the credentials of a run. For an unknown run, the credentials of any run are used if all runs sent to one server: a
    /// credential must not reach another server.
    pub(crate) fn cached_credentials(&self, upstream: &str, run: Option<&str>) -> CredentialLookup {
        let all = lock(&self.credentials);
        let Some((last, others)) = all.get(upstream).and_then(|runs| runs.split_last()) else {
            return CredentialLookup::Missing;
        };
        let own = run.and_then(|run| others.iter().chain([last]).find(|cached| cached.run == run));
        match own {
            Some(own) => CredentialLookup::Found(Box::new(own.clone())),
            None if others.iter().all(|other| other.base == last.base) => {
                CredentialLookup::Found(Box::new(last.clone()))
            }
            None => CredentialLookup::Ambiguous,
        }
    }

    /// Takes a permit for a request; `None` if `max` requests are in progress.
    pub(crate) fn try_acquire(&self, max: usize) -> Option<ConcurrencyPermit> {
        let permit = ConcurrencyPermit(Arc::clone(&self.in_progress));
        // Above the limit, dropping the permit subtracts the increment again.
        (self.in_progress.fetch_add(1, Ordering::AcqRel) < max).then_some(permit)
    }

    pub(crate) fn sender(&self) -> &Sender {
        self.sender.get_or_init(Sender::new)
    }
}

/// Counts a request as in progress until it is dropped.
pub(crate) struct ConcurrencyPermit(Arc<AtomicUsize>);

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
