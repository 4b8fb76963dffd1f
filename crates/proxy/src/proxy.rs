//! The gateway of a workspace.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::{HeaderMap, Uri};
use sayso_review::{Event, EventBody};
use tokio::sync::Semaphore;

use crate::desk::Desk;
use crate::entrance::Entrances;
use crate::http::headers::{self, SecretQuery};
use crate::http::{Sender, Way, Ways};

/// How many requests are looked at at a time.
const MOST_LOOKING: usize = 16;

/// The gateway of a workspace.
#[derive(Debug)]
pub struct Proxy {
    /// Where requests wait.
    pub desk: Arc<Desk>,
    /// Where agents come in.
    pub entrances: Entrances,
    /// The ways of the last requests.
    pub(crate) ways: Ways,
    /// Places for those that are looked at at a time.
    pub(crate) looking: Arc<Semaphore>,
    /// How many requests are under way.
    places: Arc<AtomicUsize>,
    /// Made when it is first needed: certificates are many.
    sender: OnceLock<Sender>,
    /// The credentials of the last requests to each upstream, in memory only, and where they went; the newest run's at the end.
    credentials: Mutex<BTreeMap<String, Vec<Remembered>>>,
}

/// How many runs are remembered.
const MOST_RUNS: usize = 32;

/// The last request of a run to an upstream.
#[derive(Clone)]
pub(crate) struct Remembered {
    /// Two runs may have two servers, and two keys, by one name.
    run: String,
    pub(crate) base: Uri,
    pub(crate) credentials: HeaderMap,
    pub(crate) query: SecretQuery,
}

/// What is remembered of requests to an upstream.
#[derive(Debug)]
pub(crate) enum Found {
    Nothing,
    One(Box<Remembered>),
    /// They went to several servers.
    Several,
}

impl std::fmt::Debug for Remembered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remembered").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Proxy {
    /// A gateway with a desk and entrances.
    pub fn new(desk: Arc<Desk>, entrances: Entrances) -> Self {
        let places = Arc::new(AtomicUsize::new(0));
        Self {
            desk,
            entrances,
            ways: Ways::default(),
            looking: Arc::new(Semaphore::new(MOST_LOOKING)),
            places,
            sender: OnceLock::new(),
            credentials: Mutex::default(),
        }
    }

    /// Follows what happens in the workspace: with a session, all that belongs to it here is over.
    pub async fn follow(self: Arc<Self>) {
        let mut stream = self.desk.gate.subscribe(self.desk.gate.last_event());
        while let Ok(Some(recorded)) = stream.next().await {
            if let EventBody::Known(Event::SessionEnded { session }) = &recorded.body {
                let (desk, session) = (Arc::clone(&self.desk), session.clone());
                // It waits for what is yet to be recorded. Should it fail, those after it are over all the same.
                let _ = tokio::task::spawn_blocking(move || desk.session_over(&session)).await;
            }
        }
    }

    /// Remembers the credentials of a request, for those that are sent again.
    pub(crate) fn remember(&self, way: &Way, headers: &HeaderMap) {
        let Way { run, upstream, base, path, .. } = way;
        let query = SecretQuery::of(path);
        let mut all = self.credentials.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &Remembered| {
            known.run == run.name
                && known.base == *base
                && known.query == query
                && headers::are_credentials(&known.credentials, headers)
        };
        if all.get(upstream).and_then(|runs| runs.last()).is_some_and(same) {
            return;
        }
        let runs = all.entry(upstream.clone()).or_default();
        runs.retain(|known| known.run != run.name);
        if runs.len() == MOST_RUNS {
            runs.remove(0);
        }
        let (run, base) = (run.name.clone(), base.clone());
        runs.push(Remembered { run, base, credentials: headers::credentials(headers), query });
    }

    /// Where the last request of a run to an upstream went, and its credentials. If the run is not known, that of any run, if all of them
    /// went to one server: what was said to one is not for another.
    pub(crate) fn remembered(&self, upstream: &str, run: Option<&str>) -> Found {
        let all = self.credentials.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((last, others)) = all.get(upstream).and_then(|runs| runs.split_last()) else { return Found::Nothing };
        let own = run.and_then(|run| others.iter().chain([last]).find(|known| known.run == run));
        match own {
            Some(own) => Found::One(Box::new(own.clone())),
            None if others.iter().all(|other| other.base == last.base) => Found::One(Box::new(last.clone())),
            None => Found::Several,
        }
    }

    /// A place for a request, unless as many are taken as may be.
    pub(crate) fn place(&self, most: usize) -> Option<Place> {
        let place = Place(Arc::clone(&self.places));
        // One too many gives its own back when it is dropped.
        (self.places.fetch_add(1, Ordering::AcqRel) < most).then_some(place)
    }

    pub(crate) fn sender(&self) -> &Sender {
        self.sender.get_or_init(Sender::new)
    }
}

/// A place of a request that is under way.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
