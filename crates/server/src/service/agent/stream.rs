//! Streams of a session's events. The client pulls each message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use connectrpc::ConnectError;
use sayso_agent::log::ImageData;
use sayso_agent::{AgentSession, SessionState, UserPrompt};
use sayso_api::convert::BadMessage;
use sayso_api::proto;
use tokio::sync::watch;

use super::super::stream::HEARTBEAT_INTERVAL;
use super::agent;
use crate::agent_sessions::{self, AttachedSurface, LiveSession, RingRead};
use crate::failure::Failure;
use crate::host::Host;

/// Size of an image in a prompt, in bytes.
const MAX_IMAGE_BYTES: usize = 5_000_000;
/// Types of images in prompts.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The events of a session after a number.
struct Events {
    host: Arc<Host>,
    live: Arc<LiveSession>,
    changed: watch::Receiver<u64>,
    after: u64,
    ready: VecDeque<Arc<proto::InvokeEvent>>,
    has_started: bool,
    /// `None` for a stream that only follows.
    _surface: Option<AttachedSurface>,
}

/// The next message of a stream.
enum Next {
    Heartbeat,
    Event(Arc<proto::InvokeEvent>),
    Reset,
    /// All events were sent. The caller decides if more can follow.
    Drained,
}

impl Events {
    fn new(host: Arc<Host>, live: Arc<LiveSession>, after: u64, follows_only: bool) -> Self {
        let surface = (!follows_only).then(|| live.requests.attach());
        let changed = live.ring.subscribe();
        Self { host, live, changed, after, ready: VecDeque::new(), has_started: false, _surface: surface }
    }

    /// Returns the next message without waiting.
    fn poll(&mut self) -> Next {
        if !std::mem::replace(&mut self.has_started, true) {
            return Next::Heartbeat;
        }
        if self.ready.is_empty() {
            // Marked first, so that an event after the read wakes the stream.
            self.changed.mark_unchanged();
            match self.live.ring.after(self.after) {
                RingRead::Events(events) => self.ready.extend(events),
                RingRead::Reset { next } => {
                    self.after = next;
                    return Next::Reset;
                }
            }
        }
        match self.ready.pop_front() {
            Some(event) => {
                self.after = event.number;
                Next::Event(event)
            }
            None => Next::Drained,
        }
    }

    /// Waits for more. Returns `false` when a heartbeat is due, and fails when the engine stops.
    async fn wait(&mut self) -> Result<bool, ConnectError> {
        let mut stopping = self.host.stopping.subscribe();
        tokio::select! {
            changed = self.changed.changed() => Ok(changed.is_ok()),
            () = tokio::time::sleep(HEARTBEAT_INTERVAL) => Ok(false),
            _ = stopping.wait_for(|stopping| *stopping) => {
                Err(Failure::new(sayso_review::ErrorKind::Unavailable, "the engine is stopping")
                    .hint("attach again; the session resumes")
                    .into())
            }
        }
    }
}

fn heartbeat() -> proto::StreamHeartbeat {
    proto::StreamHeartbeat::default()
}

/// The stream of `Invoke`. It ends with the invocation of its prompt.
pub(super) struct InvokeStream {
    events: Events,
    agent: AgentSession,
    /// The prompt was processed, or joined a running invocation.
    is_accepted: Arc<AtomicBool>,
    has_failed: bool,
}

impl InvokeStream {
    /// Sends the prompt. The invocation goes on if the stream ends.
    pub(super) fn start(
        host: Arc<Host>,
        live: Arc<LiveSession>,
        request: proto::InvokeRequest,
    ) -> Result<Self, Failure> {
        let agent = agent(&live)?.clone();
        let follows_only = request.follows_only;
        let prompt = prompt(request, &agent)?;
        // Subscribed before the prompt is sent, so that no event is missed.
        let events = Events::new(host, Arc::clone(&live), live.ring.last(), follows_only);
        let is_accepted = Arc::new(AtomicBool::new(false));
        let (accepted, session) = (Arc::clone(&is_accepted), agent.clone());
        let engine = Arc::clone(&events.host);
        tokio::spawn(async move {
            agent_sessions::connect_servers(&engine, &live).await;
            let _ = match prompt {
                Some(prompt) => session.invoke(prompt).await,
                None => session.continue_conversation().await,
            };
            accepted.store(true, Ordering::Release);
            live.ring.notify();
        });
        Ok(Self { events, agent, is_accepted, has_failed: false })
    }

    pub(super) async fn next(mut self) -> Option<(Result<proto::InvokeResponse, ConnectError>, Self)> {
        let of = |kind| Some(Ok(proto::InvokeResponse { kind, ..Default::default() }));
        if self.has_failed {
            return None;
        }
        loop {
            let response = match self.events.poll() {
                // After a reset, the client lags by more than is kept. It continues with the conversation.
                Next::Heartbeat | Next::Reset => of(heartbeat().into()),
                Next::Event(event) => of(event.as_ref().clone().into()),
                Next::Drained => None,
            };
            if let Some(response) = response {
                return Some((response, self));
            }
            let is_idle = self.agent.state() == SessionState::Idle && self.agent.queued() == 0;
            if self.is_accepted.load(Ordering::Acquire) && is_idle {
                // The last events precede the idle state.
                if let Next::Event(event) = self.events.poll() {
                    return of(event.as_ref().clone().into()).map(|response| (response, self));
                }
                return None;
            }
            match self.events.wait().await {
                Ok(true) => {}
                Ok(false) => return of(heartbeat().into()).map(|response| (response, self)),
                Err(error) => {
                    self.has_failed = true;
                    return Some((Err(error), self));
                }
            }
        }
    }
}

/// Reads a prompt. `None` continues an interrupted conversation.
fn prompt(request: proto::InvokeRequest, agent: &AgentSession) -> Result<Option<UserPrompt>, Failure> {
    let proto::InvokeRequest { prompt, files, images, .. } = request;
    if prompt.trim().is_empty() && files.is_empty() && images.is_empty() {
        if agent.history().items().is_empty() {
            return Err(BadMessage::new("prompt", "it is empty, and there is no conversation to continue").into());
        }
        return Ok(None);
    }
    let image = |(at, image): (usize, proto::ImageAttachment)| {
        let field = format!("images[{at}]");
        if !IMAGE_TYPES.contains(&image.media_type.as_str()) {
            let reason = format!("`{}` is not one of {}", image.media_type, IMAGE_TYPES.join(", "));
            return Err(Failure::from(BadMessage::new(format!("{field}.media_type"), reason)));
        }
        if image.data.len() > MAX_IMAGE_BYTES {
            let reason = format!("it has {} bytes; the limit is {MAX_IMAGE_BYTES}", image.data.len());
            return Err(BadMessage::new(format!("{field}.data"), reason).into());
        }
        Ok(ImageData { media_type: image.media_type, base64: base64(&image.data) })
    };
    let images = images.into_iter().enumerate().map(image).collect::<Result<_, _>>()?;
    Ok(Some(UserPrompt { text: prompt, files, images }))
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The stream of `Attach`, over all invocations.
pub(super) struct AttachStream {
    events: Events,
    has_failed: bool,
}

impl AttachStream {
    pub(super) fn new(host: Arc<Host>, live: Arc<LiveSession>, request: &proto::AttachRequest) -> Self {
        let after = if request.after == 0 { live.ring.before_invocation() } else { request.after };
        Self { events: Events::new(host, live, after, request.follows_only), has_failed: false }
    }

    pub(super) async fn next(mut self) -> Option<(Result<proto::AttachResponse, ConnectError>, Self)> {
        let of = |kind| Ok(proto::AttachResponse { kind, ..Default::default() });
        if self.has_failed {
            return None;
        }
        loop {
            match self.events.poll() {
                Next::Heartbeat => return Some((of(heartbeat().into()), self)),
                Next::Event(event) => return Some((of(event.as_ref().clone().into()), self)),
                Next::Reset => {
                    let last_block = self.events.live.blocks();
                    let reset = proto::StreamReset { last_block, ..Default::default() };
                    return Some((of(reset.into()), self));
                }
                Next::Drained => match self.events.wait().await {
                    Ok(true) => {}
                    Ok(false) => return Some((of(heartbeat().into()), self)),
                    Err(error) => {
                        self.has_failed = true;
                        return Some((Err(error), self));
                    }
                },
            }
        }
    }
}
