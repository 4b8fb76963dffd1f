//! Response streams. The client pulls each message, so a slow client delays only itself and no messages queue up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use connectrpc::{ConnectError, PreEncoded};
use sayso_api::proto::oneof::watch_response::Kind;
use sayso_api::proto::{self, PreviewView};
use sayso_gate::{Subscription, SurfaceGuard};
use sayso_review::{ChangeId, ChangeStatus, ErrorKind, Event, EventBody, FileRecord, Recorded, Surface};

use crate::caller::Peer;
use crate::change_details::{self, PreviewOf};
use crate::failure::Failure;
use crate::host::{AwaitGuard, Host, blocking};
use crate::surfaces::{FollowedSurfaces, SurfaceAttachment, SurfaceChange};

/// Longest interval between messages.
pub(super) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// Reads events that are no longer in memory, on a blocking thread.
pub(crate) async fn catch_up(subscription: &mut Subscription) -> Result<(), ConnectError> {
    let Some(backlog) = subscription.backlog() else { return Ok(()) };
    let read = tokio::task::spawn_blocking(move || Ok(backlog.read()?)).await;
    subscription.catch_up(read.unwrap_or_else(|error| Err(Failure::panicked(&error)))?);
    Ok(())
}

/// The stream of `Watch`.
pub(super) struct WatchStream {
    host: Arc<Host>,
    subscription: Subscription,
    has_started: bool,
    surfaces: FollowedSurfaces,
    /// Changes of surfaces that are not sent yet.
    surface_changes: VecDeque<SurfaceChange>,
    _attached: Option<(SurfaceGuard, SurfaceAttachment)>,
    /// `false` for an agent, which gets no contents.
    is_person: bool,
}

impl WatchStream {
    /// Creates a stream. With a surface, the caller is attached while the stream lasts.
    pub(super) fn new(host: Arc<Host>, subscription: Subscription, surface: Option<Surface>, is_person: bool) -> Self {
        let attached = surface.map(|surface| (host.gate.attach(), host.surfaces.attach(&surface)));
        // Follows after its own attachment, which is no news for the client.
        let surfaces = host.surfaces.follow();
        let surface_changes = VecDeque::new();
        Self { host, subscription, has_started: false, surfaces, surface_changes, _attached: attached, is_person }
    }

    /// Produces the next message: a heartbeat first, then events.
    pub(super) async fn next(mut self) -> Option<(Result<PreEncoded<proto::WatchResponse>, ConnectError>, Self)> {
        if !std::mem::replace(&mut self.has_started, true) {
            return Some((Ok(self.heartbeat()), self));
        }
        if let Err(error) = catch_up(&mut self.subscription).await {
            return Some((Err(error), self));
        }
        loop {
            if let Some(change) = self.surface_changes.pop_front() {
                return Some((Ok(surface_message(change)), self));
            }
            tokio::select! {
                biased;
                event = self.subscription.next() => return match event {
                    Ok(Some(event)) if !self.is_person && has_cards(&event) => Some((Ok(without_cards(&event)), self)),
                    Ok(Some(event)) => Some((Ok(self.host.encoded(&event)), self)),
                    Ok(None) => None,
                    Err(error) => Some((Err(Failure::from(error).into()), self)),
                },
                changes = self.surfaces.next() => self.surface_changes.extend(changes),
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => return Some((Ok(self.heartbeat()), self)),
            }
        }
    }

    fn heartbeat(&self) -> PreEncoded<proto::WatchResponse> {
        let last_event = self.host.gate.last_event();
        let heartbeat = proto::watch_response::Heartbeat { last_event, ..Default::default() };
        PreEncoded::from_message(&proto::WatchResponse { kind: heartbeat.into(), ..Default::default() })
    }
}

/// Returns the files of an event that may have cards.
fn files(event: &Recorded) -> &[FileRecord] {
    match &event.body {
        EventBody::Known(Event::Proposed { files, .. } | Event::Refreshed { files, .. }) => files,
        _ => &[],
    }
}

/// `true` if the event shows contents of files.
fn has_cards(event: &Recorded) -> bool {
    files(event).iter().any(|file| file.card.is_some())
}

/// Encodes an event without the contents of files. An agent may not be allowed to read them.
fn without_cards(event: &Recorded) -> PreEncoded<proto::WatchResponse> {
    let mut event = event.clone();
    if let EventBody::Known(Event::Proposed { files, .. } | Event::Refreshed { files, .. }) = &mut event.body {
        for file in files {
            file.card = None;
        }
    }
    let kind = Some(proto::Event::from(&event).into());
    PreEncoded::from_message(&proto::WatchResponse { kind, ..Default::default() })
}

fn surface_message(change: SurfaceChange) -> PreEncoded<proto::WatchResponse> {
    let kind = match change {
        SurfaceChange::Attached(surface) => Kind::SurfaceAttached(Box::new(surface)),
        SurfaceChange::Detached(surface) => Kind::SurfaceDetached(Box::new(surface)),
    };
    PreEncoded::from_message(&proto::WatchResponse { kind: Some(kind), ..Default::default() })
}

/// The stream of `Await` and `AwaitChange`. An item without details is a heartbeat.
pub(super) struct AwaitStream {
    peer: Option<Peer>,
    /// Keeps the change of an agent from being abandoned.
    _guard: Option<AwaitGuard>,
    host: Arc<Host>,
    change: ChangeId,
    view: PreviewView,
    subscription: Subscription,
    sent: Sent,
}

/// Progress of an [`AwaitStream`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Nothing,
    Heartbeat,
    /// The details, or an error.
    Last,
}

impl AwaitStream {
    pub(super) fn new(
        host: Arc<Host>,
        peer: Option<Peer>,
        change: ChangeId,
        view: PreviewView,
        guard: Option<AwaitGuard>,
    ) -> Self {
        // Subscribed before the first look at the change, so that no event in between is missed.
        let subscription = host.gate.subscribe(host.gate.last_event());
        Self { peer, _guard: guard, host, change, view, subscription, sent: Sent::Nothing }
    }

    /// Produces the next message: heartbeats, and at the end the details of the change.
    pub(super) async fn next(mut self) -> Option<(Result<Option<proto::ChangeDetails>, ConnectError>, Self)> {
        if self.sent == Sent::Last {
            return None;
        }
        loop {
            match self.read_details().await {
                Ok(Some(details)) => {
                    self.sent = Sent::Last;
                    return Some((Ok(Some(details)), self));
                }
                Ok(None) => {}
                Err(error) => {
                    self.sent = Sent::Last;
                    return Some((Err(error), self));
                }
            }
            // The first message is immediate, so that the client knows that the call was accepted.
            if self.sent == Sent::Nothing {
                self.sent = Sent::Heartbeat;
                return Some((Ok(None), self));
            }
            match self.wait_for_event().await {
                Ok(true) => {}
                Ok(false) => return Some((Ok(None), self)),
                Err(error) => {
                    self.sent = Sent::Last;
                    return Some((Err(error), self));
                }
            }
        }
    }

    /// Returns the details once the change is no longer pending.
    async fn read_details(&self) -> Result<Option<proto::ChangeDetails>, ConnectError> {
        let (change, view, peer) = (self.change, self.view, self.peer);
        blocking(&self.host, move |host| {
            let mut details = host.gate.read(|history| {
                // INTERRUPTED is the status while a plan is being applied: its end follows.
                let is_open =
                    matches!(history.change(change)?.status, ChangeStatus::Pending | ChangeStatus::Interrupted);
                if is_open {
                    return Ok(None);
                }
                change_details::of(history, change, view, PreviewOf::Proposed).map(Some)
            })?;
            if let Some(details) = &mut details {
                super::withhold(host, peer, details);
            }
            Ok(details)
        })
        .await
    }

    /// Waits for an event of the change. Returns `false` when a heartbeat is due.
    async fn wait_for_event(&mut self) -> Result<bool, ConnectError> {
        let wait = async {
            loop {
                catch_up(&mut self.subscription).await?;
                match self.subscription.next().await.map_err(Failure::from)? {
                    Some(event) => {
                        let concerns_change = match &event.body {
                            EventBody::Known(known) => known.change() == Some(self.change),
                            EventBody::Unknown(_) => false,
                        };
                        if concerns_change {
                            return Ok(true);
                        }
                    }
                    None => {
                        return Err(Failure::new(ErrorKind::Unavailable, "the engine is stopping")
                            .hint("call again; the change stays pending")
                            .into());
                    }
                }
            }
        };
        tokio::time::timeout(HEARTBEAT_INTERVAL, wait).await.unwrap_or(Ok(false))
    }
}
