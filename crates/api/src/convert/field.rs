//! Reads the fields of a message, and names the field that is wrong.

use buffa::{EnumValue, Enumeration, MessageField, ProtoBox};
use sayso_review::{ContentHash, WsPath};
use serde::de::DeserializeOwned;

use super::BadMessage;

/// Reads a message that has to be there.
pub fn required<M, P, T>(field: MessageField<M, P>, name: &str) -> Result<T, BadMessage>
where
    M: Default,
    P: ProtoBox<M>,
    T: TryFrom<M>,
    BadMessage: From<T::Error>,
{
    optional(field, name)?.ok_or_else(|| BadMessage::new(name, "it is missing"))
}

/// Reads a message that may be there.
pub fn optional<M, P, T>(field: MessageField<M, P>, name: &str) -> Result<Option<T>, BadMessage>
where
    M: Default,
    P: ProtoBox<M>,
    T: TryFrom<M>,
    BadMessage: From<T::Error>,
{
    let value = field.into_option().map(T::try_from).transpose();
    value.map_err(|error| BadMessage::from(error).within(name))
}

/// Reads a list of messages.
pub fn list<M, T>(messages: Vec<M>, name: &str) -> Result<Vec<T>, BadMessage>
where
    T: TryFrom<M>,
    BadMessage: From<T::Error>,
{
    let read = |(index, message)| {
        T::try_from(message).map_err(|error| BadMessage::from(error).within(&format!("{name}[{index}]")))
    };
    messages.into_iter().enumerate().map(read).collect()
}

/// Reads which of several fields is there.
pub fn oneof<T>(field: Option<T>, name: &str) -> Result<T, BadMessage> {
    field
        .ok_or_else(|| BadMessage::new(name, "none of what it may be is there, or one that this version does not know"))
}

/// Reads a value of an enumeration.
pub fn enumeration<E, T>(value: EnumValue<E>, name: &str) -> Result<T, BadMessage>
where
    E: Enumeration,
    T: TryFrom<E>,
    BadMessage: From<T::Error>,
{
    match value {
        EnumValue::Known(known) => T::try_from(known).map_err(|error| BadMessage::from(error).within(name)),
        EnumValue::Unknown(number) => {
            Err(BadMessage::new(name, format!("this version does not know its value {number}")))
        }
    }
}

/// Reads a path inside the workspace.
pub fn path(text: &str, name: &str) -> Result<WsPath, BadMessage> {
    WsPath::parse(text).map_err(|error| BadMessage::new(name, error.to_string()))
}

/// Reads paths inside the workspace.
pub fn paths(texts: &[String], name: &str) -> Result<Vec<WsPath>, BadMessage> {
    texts.iter().enumerate().map(|(index, text)| path(text, &format!("{name}[{index}]"))).collect()
}

/// Reads the hash of a content or of a preview.
pub fn hash(text: &str, name: &str) -> Result<ContentHash, BadMessage> {
    text.parse().map_err(|error: sayso_review::NotAHash| BadMessage::new(name, error.to_string()))
}

/// Reads a value that is sent as JSON.
pub fn json<T: DeserializeOwned>(text: &str, name: &str) -> Result<T, BadMessage> {
    serde_json::from_str(text).map_err(|error| BadMessage::new(name, format!("as JSON: {error}")))
}

/// Reads a number of lines or the like, which this machine must be able to count.
pub fn count(number: u64, name: &str) -> Result<usize, BadMessage> {
    usize::try_from(number).map_err(|_| BadMessage::new(name, format!("{number} is too large for this machine")))
}

/// What an enumeration's first value, which stands for nothing said, is answered with where something has to be said.
pub(super) fn not_said() -> BadMessage {
    BadMessage::new("", "it is not said")
}
