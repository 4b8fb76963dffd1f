//! Following the event stream across connections.

use std::time::Duration;

use buffa::{HasMessageView, Message, MessageView};
use connectrpc::JsonDeserialize;
use sayso_review::{EventBody, Recorded};
use serde_json::json;

use super::call::ResponseStream;
use super::error::{CallFailure, ClientError};
use super::inbox::AttachedSurface;
use super::retry::{Backoff, RetryBudget};
use super::{Client, Role};
use crate::proto;
use crate::proto::__buffa::view::WatchResponseView;
use crate::proto::oneof::watch_response::Kind;

/// A stream without a message for this long is dead: the engine sends heartbeats more often.
pub(super) const STREAM_TIMEOUT: Duration = Duration::from_mins(1);

/// A message of the event stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Watched {
    /// The next event. If this version cannot read it, its body is [`EventBody::Unknown`].
    Event(Box<Recorded>),
    /// Keep-alive.
    Heartbeat {
        last_event: u64,
    },
    SurfaceAttached(AttachedSurface),
    SurfaceDetached(AttachedSurface),
}

/// Receives the next message of a stream.
pub(super) async fn next_message<View, Owned>(stream: &mut ResponseStream<View>) -> Result<Owned, CallFailure>
where
    View: MessageView<'static, Owned = Owned> + Send,
    Owned: HasMessageView<View<'static> = View> + Message + JsonDeserialize,
{
    match tokio::time::timeout(STREAM_TIMEOUT, stream.message()).await {
        Err(_) => Err(CallFailure::NotSent("the stream timed out".to_owned())),
        Ok(Err(error)) => Err(CallFailure::of_stream(error)),
        Ok(Ok(None)) => Err(CallFailure::NotSent("the engine has stopped".to_owned())),
        Ok(Ok(Some(message))) => Ok(message.to_owned_message()),
    }
}

/// The event stream after a number: each event once, in order, across lost connections and restarted engines.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    after: u64,
    role: Role,
    backoff: Backoff,
    stream: Option<Box<ResponseStream<WatchResponseView<'static>>>>,
}

impl Client {
    /// Follows the event stream. `after` is the number of the last known event; 0 starts at the first one.
    pub fn watch(&self, after: u64, role: Role, budget: RetryBudget) -> Watch {
        Watch { client: self.clone(), after, role, backoff: Backoff::new(budget), stream: None }
    }
}

impl Watch {
    /// Number of the last event returned.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Returns the next message. Cancel-safe: dropping the future loses no event.
    pub async fn next(&mut self) -> Result<Watched, ClientError> {
        loop {
            let failure = match self.receive().await {
                Ok(kind) => match self.accept(kind)? {
                    Some(watched) => return Ok(watched),
                    None => continue,
                },
                Err(failure) => failure,
            };
            self.stream = None;
            match failure {
                CallFailure::Remote(error) => return Err(error),
                CallFailure::NotSent(cause) | CallFailure::ConnectionLost(cause) => self.backoff.wait(cause).await?,
            }
        }
    }

    /// Receives a message, from a new stream if none is open.
    async fn receive(&mut self) -> Result<Kind, CallFailure> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let role = match self.role {
                    Role::Observer => proto::watch_request::Role::Observer,
                    Role::Surface => proto::watch_request::Role::Surface,
                };
                let surface = self.client.surface.as_ref().map(proto::Surface::from).into();
                let request =
                    proto::WatchRequest { after: self.after, role: role.into(), surface, ..Default::default() };
                let stream = self.client.stream(proto::REVIEW_SERVICE_WATCH_SPEC, request).await?;
                none.insert(Box::new(stream))
            }
        };
        let message = next_message(stream).await?;
        self.backoff.reset();
        message.kind.ok_or_else(|| CallFailure::Remote(ClientError::bad("a message of the stream is empty")))
    }

    /// Checks a message against the last number. Returns `None` for an event that was returned before.
    fn accept(&mut self, kind: Kind) -> Result<Option<Watched>, ClientError> {
        match kind {
            Kind::Heartbeat(heartbeat) if heartbeat.last_event < self.after => Err(ClientError::bad(format!(
                "the stream ends at event {}, but event {} was received before: the journal was replaced",
                heartbeat.last_event, self.after
            ))),
            Kind::Heartbeat(heartbeat) => Ok(Some(Watched::Heartbeat { last_event: heartbeat.last_event })),
            Kind::SurfaceAttached(attached) => Ok(Some(Watched::SurfaceAttached((*attached).into()))),
            Kind::SurfaceDetached(detached) => Ok(Some(Watched::SurfaceDetached((*detached).into()))),
            Kind::Event(event) if event.number <= self.after => Ok(None),
            Kind::Event(event) if event.number > self.after + 1 => {
                Err(ClientError::bad(format!("event {} follows event {}", event.number, self.after)))
            }
            Kind::Event(event) => {
                self.after = event.number;
                Ok(Some(Watched::Event(Box::new(decode(*event)))))
            }
        }
    }
}

/// Reads an event. A field that this version does not know makes the body unknown, so that a newer engine cannot end the watch.
fn decode(event: proto::Event) -> Recorded {
    let (number, time) = (event.number, event.time_ms);
    event.try_into().unwrap_or_else(|error: crate::convert::BadMessage| Recorded {
        number,
        time,
        body: EventBody::Unknown(json!({ "unreadable": error.to_string() })),
    })
}
