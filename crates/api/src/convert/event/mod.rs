//! Journal events, both ways.
//!
//! Fields that only the engine uses do not cross the wire: the stored intent of a change, the chunks of a body, recorded patches,
//! handovers, and the content of the built-in agent's log, which agents may not read. They are absent after a round trip; all others are equal.

mod agent;
mod decode;
mod encode;

use sayso_review::{EventBody, Recorded};
use serde_json::{Map, Value};

use super::BadMessage;
use super::field::json;
use crate::proto;
use crate::proto::oneof::event::Kind;

impl From<&Recorded> for proto::Event {
    fn from(recorded: &Recorded) -> Self {
        let kind = match &recorded.body {
            EventBody::Known(event) => event.into(),
            EventBody::Unknown(value) => Kind::UnknownJson(value.to_string()),
        };
        Self { number: recorded.number, time_ms: recorded.time, kind: Some(kind), ..Default::default() }
    }
}

/// An event of a kind that this version does not know becomes [`EventBody::Unknown`], without its data.
impl TryFrom<proto::Event> for Recorded {
    type Error = BadMessage;

    fn try_from(event: proto::Event) -> Result<Self, BadMessage> {
        let body = match event.kind {
            None => EventBody::Unknown(Value::Object(Map::new())),
            Some(Kind::UnknownJson(text)) => EventBody::Unknown(json(&text, "unknown_json")?),
            Some(kind) => EventBody::Known(decode::event(kind)?),
        };
        Ok(Self { number: event.number, time: event.time_ms, body })
    }
}
