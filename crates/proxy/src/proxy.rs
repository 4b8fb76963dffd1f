//! The gateway of a workspace.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::{HeaderMap, Uri};
use sayso_review::{Event, EventBody};
use tokio::sync::Semaphore;

use crate::desk::Desk;
use crate::entrance::Entrances;
use crate::http::{Sender, headers};

/// The gateway of a workspace.
#[derive(Debug)]
pub struct Proxy {
    /// Where requests wait.
    pub desk: Arc<Desk>,
    /// Where agents come in.
    pub entrances: Entrances,
    pub(crate) permits: Arc<Semaphore>,
    /// Made when it is first needed: certificates are many.
    sender: OnceLock<Sender>,
    /// The credentials of the last request to each upstream, in memory only, and where it went.
    credentials: Mutex<BTreeMap<String, Remembered>>,
}

/// The last request to an upstream.
struct Remembered {
    base: Uri,
    credentials: HeaderMap,
}

impl std::fmt::Debug for Remembered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remembered").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Proxy {
    /// A gateway with a desk and entrances.
    pub fn new(desk: Arc<Desk>, entrances: Entrances) -> Self {
        let permits = Arc::new(Semaphore::new(desk.settings().most_at_once));
        Self { desk, entrances, permits, sender: OnceLock::new(), credentials: Mutex::default() }
    }

    /// Follows what happens in the workspace: with a session, all that belongs to it here is over.
    pub async fn follow(self: Arc<Self>) {
        let mut stream = self.desk.gate.subscribe(self.desk.gate.last_event());
        while let Ok(Some(recorded)) = stream.next().await {
            if let EventBody::Known(Event::SessionEnded { session }) = &recorded.body {
                self.desk.session_over(session);
            }
        }
    }

    /// Remembers the credentials of a request, for those that are sent again.
    pub(crate) fn remember(&self, upstream: &str, base: &Uri, headers: &HeaderMap) {
        let mut all = self.credentials.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(upstream);
        if !known.is_some_and(|known| known.base == *base && headers::are_credentials(&known.credentials, headers)) {
            let remembered = Remembered { base: base.clone(), credentials: headers::credentials(headers) };
            all.insert(upstream.to_owned(), remembered);
        }
    }

    /// Where the last request to an upstream went, and its credentials.
    pub(crate) fn remembered(&self, upstream: &str) -> Option<(Uri, HeaderMap)> {
        let all = self.credentials.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(upstream).map(|known| (known.base.clone(), known.credentials.clone()))
    }

    pub(crate) fn sender(&self) -> &Sender {
        self.sender.get_or_init(Sender::new)
    }
}
