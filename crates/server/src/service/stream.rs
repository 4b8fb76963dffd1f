//! Answers that go on: each is pulled by its client, one message after the other, and nothing is queued for anybody.

use std::sync::Arc;
use std::time::Duration;

use connectrpc::{ConnectError, PreEncoded};
use sayso_api::proto;
use sayso_gate::{Attached, Subscription};
use sayso_review::{ChangeStatus, ErrorKind, EventBody};

use super::view_of;
use crate::caller::Peer;
use crate::failure::Failure;
use crate::host::{Awaiting, Host, blocking};
use crate::progress::{self, Shown};

/// How long a stream is silent at most.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Reads what is no longer at hand away from those who only wait.
async fn catch_up(subscription: &mut Subscription) -> Result<(), ConnectError> {
    let Some(behind) = subscription.behind() else { return Ok(()) };
    let read = tokio::task::spawn_blocking(move || Ok(behind.read()?)).await;
    subscription.catch_up(read.unwrap_or_else(|error| Err(Failure::panicked(&error)))?);
    Ok(())
}

/// Somebody who follows the stream.
pub(super) struct Watching {
    host: Arc<Host>,
    subscription: Subscription,
    greeted: bool,
    _attached: Option<Attached>,
}

impl Watching {
    pub(super) fn new(host: Arc<Host>, subscription: Subscription, attached: Option<Attached>) -> Self {
        Self { host, subscription, greeted: false, _attached: attached }
    }

    /// The next message; one after the other, so that a slow client holds up nobody and nothing is queued for it.
    pub(super) async fn next(mut self) -> Option<(Result<PreEncoded<proto::WatchResponse>, ConnectError>, Self)> {
        if !std::mem::replace(&mut self.greeted, true) {
            return Some((Ok(self.heartbeat()), self));
        }
        if let Err(error) = catch_up(&mut self.subscription).await {
            return Some((Err(error), self));
        }
        match tokio::time::timeout(HEARTBEAT, self.subscription.next()).await {
            Err(_) => Some((Ok(self.heartbeat()), self)),
            Ok(Ok(Some(event))) => Some((Ok(self.host.encoded(&event)), self)),
            Ok(Ok(None)) => None,
            Ok(Err(error)) => Some((Err(Failure::from(error).into()), self)),
        }
    }

    fn heartbeat(&self) -> PreEncoded<proto::WatchResponse> {
        let last_event = self.host.gate.last_event();
        let heartbeat = proto::watch_response::Heartbeat { last_event, ..Default::default() };
        PreEncoded::from_message(&proto::WatchResponse { kind: heartbeat.into(), ..Default::default() })
    }
}

/// Somebody who waits for a verdict.
pub(super) struct Waiting {
    peer: Option<Peer>,
    _awaiting: Awaiting,
    host: Arc<Host>,
    request: proto::AwaitRequest,
    subscription: Subscription,
    told: Told,
}

/// How much they know.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Heartbeat,
    All,
}

impl Waiting {
    pub(super) fn new(
        host: Arc<Host>,
        peer: Option<Peer>,
        request: proto::AwaitRequest,
        subscription: Subscription,
        awaiting: Awaiting,
    ) -> Self {
        Self { peer, _awaiting: awaiting, host, request, subscription, told: Told::Nothing }
    }

    /// The next message, of which what became of the change is the last one.
    pub(super) async fn next(mut self) -> Option<(Result<proto::AwaitResponse, ConnectError>, Self)> {
        if self.told == Told::All {
            return None;
        }
        loop {
            match self.look().await {
                Ok(Some(progress)) => {
                    self.told = Told::All;
                    let response = proto::AwaitResponse { kind: Some(progress.into()), ..Default::default() };
                    return Some((Ok(response), self));
                }
                Ok(None) => {}
                Err(error) => {
                    self.told = Told::All;
                    return Some((Err(error), self));
                }
            }
            // Said at once, so that whoever waits knows that they are heard.
            if self.told == Told::Nothing {
                self.told = Told::Heartbeat;
                return Some((Ok(heartbeat()), self));
            }
            match self.about_it().await {
                Ok(true) => {}
                Ok(false) => return Some((Ok(heartbeat()), self)),
                Err(error) => {
                    self.told = Told::All;
                    return Some((Err(error), self));
                }
            }
        }
    }

    /// How far it has come, once it waits no longer.
    async fn look(&self) -> Result<Option<proto::Progress>, ConnectError> {
        let (change, view, peer) = (self.request.change, view_of(self.request.view), self.peer);
        blocking(&self.host, move |host| {
            let mut progress = host.gate.read(|history| {
                // While a plan is on its way, its end is what is waited for.
                let waits = matches!(history.change(change)?.status, ChangeStatus::Pending | ChangeStatus::Interrupted);
                if waits { Ok(None) } else { progress::of(history, change, view, Shown::Proposed).map(Some) }
            })?;
            if let Some(progress) = &mut progress {
                super::withhold(host, peer, progress);
            }
            Ok(progress)
        })
        .await
    }

    /// Waits until something happened to it. `false` if nothing did for a while.
    async fn about_it(&mut self) -> Result<bool, ConnectError> {
        let wait = async {
            loop {
                // Older events are in the journal, which is read elsewhere than on the threads that others are served by.
                catch_up(&mut self.subscription).await?;
                match self.subscription.next().await.map_err(Failure::from)? {
                    Some(event) => {
                        let about = match &event.body {
                            EventBody::Known(known) => known.change() == Some(self.request.change),
                            EventBody::Unknown(_) => false,
                        };
                        if about {
                            return Ok(true);
                        }
                    }
                    None => {
                        return Err(Failure::new(ErrorKind::Unavailable, "the engine stops")
                            .hint("what waits still waits; ask again")
                            .into());
                    }
                }
            }
        };
        tokio::time::timeout(HEARTBEAT, wait).await.unwrap_or(Ok(false))
    }
}

fn heartbeat() -> proto::AwaitResponse {
    let kind = proto::await_response::Heartbeat::default();
    proto::AwaitResponse { kind: kind.into(), ..Default::default() }
}
