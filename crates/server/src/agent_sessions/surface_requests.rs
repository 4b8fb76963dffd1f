//! Requests of the agent to surfaces, and their answers.
//!
//! The first answer counts. A request ends without one at its deadline, or when no surface that could answer is attached for a grace
//! period, so that a surface can reconnect.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sayso_agent::host::SurfaceAnswer;
use tokio::sync::{oneshot, watch};

/// Ended requests that are remembered, to tell a late answer from one without a request.
const MAX_ENDED: usize = 256;

/// Time limits of requests to surfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurfaceTiming {
    /// The text of a file.
    pub file_read: Duration,
    /// A command in a terminal of the user.
    pub command: Duration,
    /// Time for a surface to reconnect.
    pub reconnect: Duration,
}

impl SurfaceTiming {
    pub const DEFAULT: Self = Self {
        file_read: Duration::from_secs(10),
        command: Duration::from_mins(10),
        reconnect: Duration::from_secs(5),
    };
}

/// Kind of a request. An answer must be of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    FileRead,
    Command,
    Question,
}

/// Result of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Submitted {
    Accepted,
    TooLate,
    Unknown,
    /// The request is of another kind.
    Mismatch,
}

/// The open requests of a session.
#[derive(Debug)]
pub(crate) struct SurfaceRequests {
    state: Mutex<RequestState>,
    /// Number of attached surfaces that answer.
    surfaces: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct RequestState {
    last: u64,
    open: BTreeMap<String, (RequestKind, oneshot::Sender<SurfaceAnswer>)>,
    ended: VecDeque<String>,
}

impl Default for SurfaceRequests {
    fn default() -> Self {
        Self { state: Mutex::default(), surfaces: watch::Sender::new(0) }
    }
}

/// An open request. Dropping it ends the request.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    requests: Arc<SurfaceRequests>,
    pub(crate) id: String,
    answer: oneshot::Receiver<SurfaceAnswer>,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.requests.state().end(&self.id);
    }
}

/// A surface that answers. Dropping it detaches the surface.
#[derive(Debug)]
pub(crate) struct AttachedSurface(Arc<SurfaceRequests>);

impl Drop for AttachedSurface {
    fn drop(&mut self) {
        self.0.surfaces.send_modify(|count| *count -= 1);
    }
}

impl RequestState {
    fn end(&mut self, id: &str) {
        if self.open.remove(id).is_some() {
            self.remember(id);
        }
    }

    fn remember(&mut self, id: &str) {
        if self.ended.len() == MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(id.to_owned());
    }
}

impl SurfaceRequests {
    fn state(&self) -> MutexGuard<'_, RequestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches a surface that answers.
    pub(crate) fn attach(self: &Arc<Self>) -> AttachedSurface {
        self.surfaces.send_modify(|count| *count += 1);
        AttachedSurface(Arc::clone(self))
    }

    /// `true` if a surface that answers is attached.
    pub(crate) fn has_surface(&self) -> bool {
        *self.surfaces.borrow() > 0
    }

    /// `true` while a question waits for a person.
    pub(crate) fn is_asking(&self) -> bool {
        self.state().open.values().any(|(kind, _)| *kind != RequestKind::FileRead)
    }

    /// Opens a request. Its id is unique in the session.
    pub(crate) fn open(self: &Arc<Self>, kind: RequestKind) -> OpenRequest {
        let (sender, answer) = oneshot::channel();
        let mut state = self.state();
        state.last += 1;
        let id = format!("r{}", state.last);
        state.open.insert(id.clone(), (kind, sender));
        drop(state);
        OpenRequest { requests: Arc::clone(self), id, answer }
    }

    /// Passes an answer on. The first one counts.
    pub(crate) fn submit(&self, id: &str, kind: RequestKind, answer: SurfaceAnswer) -> Submitted {
        let mut state = self.state();
        match state.open.get(id) {
            Some((asked, _)) if *asked != kind => return Submitted::Mismatch,
            Some(_) => {}
            None if state.ended.iter().any(|ended| ended == id) => return Submitted::TooLate,
            None => return Submitted::Unknown,
        }
        let Some((_, sender)) = state.open.remove(id) else { return Submitted::Unknown };
        state.remember(id);
        drop(state);
        // Fails if the agent gave up at this moment.
        if sender.send(answer).is_ok() { Submitted::Accepted } else { Submitted::TooLate }
    }
}

impl OpenRequest {
    /// Waits for the answer, the deadline, or the end of the last surface. `None` for no deadline.
    pub(crate) async fn answer(mut self, limit: Option<Duration>, reconnect: Duration) -> SurfaceAnswer {
        let requests = Arc::clone(&self.requests);
        let deadline = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // An answer at the last moment counts.
            biased;
            answer = &mut self.answer => answer.unwrap_or(SurfaceAnswer::NoSurface),
            () = deadline => SurfaceAnswer::TimedOut,
            () = requests.abandoned(reconnect) => SurfaceAnswer::NoSurface,
        }
    }
}

impl SurfaceRequests {
    /// Completes once no surface was attached for a time.
    async fn abandoned(&self, grace: Duration) {
        let mut surfaces = self.surfaces.subscribe();
        loop {
            // Cannot fail: the sender lives as long as this.
            if surfaces.wait_for(|count| *count == 0).await.is_err() {
                return;
            }
            if tokio::time::timeout(grace, surfaces.wait_for(|count| *count > 0)).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);
    const RECONNECT: Duration = Duration::from_secs(5);

    fn text(text: &str) -> SurfaceAnswer {
        SurfaceAnswer::Text(text.to_owned())
    }

    #[tokio::test]
    async fn first_answer_counts() {
        let requests = Arc::<SurfaceRequests>::default();
        let _surface = requests.attach();
        let open = requests.open(RequestKind::Question);
        let id = open.id.clone();
        assert_eq!(requests.submit(&id, RequestKind::FileRead, text("wrong kind")), Submitted::Mismatch);
        assert_eq!(requests.submit(&id, RequestKind::Question, text("yes")), Submitted::Accepted);
        assert_eq!(requests.submit(&id, RequestKind::Question, text("no")), Submitted::TooLate);
        assert_eq!(requests.submit("r99", RequestKind::Question, text("no")), Submitted::Unknown);
        assert_eq!(open.answer(None, RECONNECT).await, text("yes"));
    }

    #[tokio::test(start_paused = true)]
    async fn deadline_ends_request() {
        let requests = Arc::<SurfaceRequests>::default();
        let _surface = requests.attach();
        let open = requests.open(RequestKind::FileRead);
        let id = open.id.clone();
        assert_eq!(open.answer(Some(LIMIT), RECONNECT).await, SurfaceAnswer::TimedOut);
        assert_eq!(requests.submit(&id, RequestKind::FileRead, text("late")), Submitted::TooLate);
    }

    #[tokio::test(start_paused = true)]
    async fn vanished_surface_ends_request_after_grace_period() {
        let requests = Arc::<SurfaceRequests>::default();
        let surface = requests.attach();
        let open = requests.open(RequestKind::Question);
        let waiting = tokio::spawn(open.answer(None, RECONNECT));
        tokio::task::yield_now().await;
        drop(surface);
        assert_eq!(waiting.await.ok(), Some(SurfaceAnswer::NoSurface));
    }

    #[tokio::test(start_paused = true)]
    async fn reconnected_surface_can_answer() {
        let requests = Arc::<SurfaceRequests>::default();
        let surface = requests.attach();
        let open = requests.open(RequestKind::Question);
        let id = open.id.clone();
        let waiting = tokio::spawn(open.answer(None, RECONNECT));
        tokio::task::yield_now().await;
        drop(surface);
        tokio::time::sleep(RECONNECT / 2).await;
        let _again = requests.attach();
        tokio::time::sleep(RECONNECT * 10).await;
        assert_eq!(requests.submit(&id, RequestKind::Question, text("here")), Submitted::Accepted);
        assert_eq!(waiting.await.ok(), Some(text("here")));
    }
}
