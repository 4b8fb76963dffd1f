//! Following the stream, over as many connections as it takes.

use std::time::Duration;

use super::call::Answers;
use super::error::{ClientError, Ended};
use super::patience::{Backoff, Patience};
use super::{Client, Role};
use crate::proto;
use crate::proto::__buffa::view::WatchResponseView;
use crate::proto::oneof::watch_response::Kind;

/// An engine that says nothing for this long is gone: it gives a sign of life more often than that.
pub(super) const SILENCE: Duration = Duration::from_mins(1);

/// Something that a watcher hears.
#[derive(Clone, Debug, PartialEq)]
pub enum Watched {
    /// The next event.
    Event(Box<proto::Event>),
    /// There is none for now.
    Heartbeat {
        /// The number of the last event.
        last: u64,
    },
}

/// The stream, from some event on: every event once, in order, whatever becomes of connections and engines meanwhile.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    after: u64,
    role: Role,
    backoff: Backoff,
    stream: Option<Box<Answers<WatchResponseView<'static>>>>,
}

impl Client {
    /// Follows the stream, from after the event with this number on.
    pub fn watch(&self, after: u64, role: Role, patience: Patience) -> Watch {
        Watch { client: self.clone(), after, role, backoff: Backoff::new(patience), stream: None }
    }
}

impl Watch {
    /// The number of the last event that was handed out.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// The next event, or a sign of life. Where this is dropped before it ends, nothing is lost.
    pub async fn next(&mut self) -> Result<Watched, ClientError> {
        loop {
            let ended = match self.heard().await {
                Ok(kind) => match self.take(kind)? {
                    Some(watched) => return Ok(watched),
                    None => continue,
                },
                Err(ended) => ended,
            };
            self.stream = None;
            match ended {
                Ended::Answered(error) => return Err(error),
                Ended::Unsent(why) | Ended::Cut(why) => self.backoff.again(why).await?,
            }
        }
    }

    /// The next message, of a new stream if there is none.
    async fn heard(&mut self) -> Result<Kind, Ended> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let role = match self.role {
                    Role::Observer => proto::watch_request::Role::Observer,
                    Role::Surface => proto::watch_request::Role::Surface,
                };
                let request = proto::WatchRequest { after: self.after, role: role.into(), ..Default::default() };
                let stream = self.client.stream(proto::REVIEW_SERVICE_WATCH_SPEC, request).await?;
                none.insert(Box::new(stream))
            }
        };
        let message = match tokio::time::timeout(SILENCE, stream.message()).await {
            Err(_) => return Err(Ended::Unsent("it has fallen silent".to_owned())),
            Ok(Err(error)) => return Err(Ended::of_stream(error)),
            Ok(Ok(None)) => return Err(Ended::Unsent("the engine has stopped".to_owned())),
            Ok(Ok(Some(message))) => message.to_owned_message(),
        };
        self.backoff.reset();
        message.kind.ok_or_else(|| Ended::Answered(ClientError::bad("a message of the stream is empty")))
    }

    /// What a message means to whoever has seen all before it; nothing, if they have seen it, too.
    fn take(&mut self, kind: Kind) -> Result<Option<Watched>, ClientError> {
        match kind {
            Kind::Heartbeat(heartbeat) if heartbeat.last_event < self.after => Err(ClientError::bad(format!(
                "event {} was seen, and the stream ends at {}: it is another history",
                self.after, heartbeat.last_event
            ))),
            Kind::Heartbeat(heartbeat) => Ok(Some(Watched::Heartbeat { last: heartbeat.last_event })),
            Kind::Event(event) if event.number <= self.after => Ok(None),
            Kind::Event(event) if event.number > self.after + 1 => {
                Err(ClientError::bad(format!("event {} came after event {}", event.number, self.after)))
            }
            Kind::Event(event) => {
                self.after = event.number;
                Ok(Some(Watched::Event(event)))
            }
        }
    }
}
