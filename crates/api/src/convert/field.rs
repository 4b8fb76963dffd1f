//! Field readers. Each error names its field.

use buffa::{EnumValue, Enumeration, MessageField, ProtoBox};
use sayso_review::{ContentHash, NotAHash, WsPath};
use serde::de::DeserializeOwned;

use super::BadMessage;

/// Reads a submessage. Fails if it is absent.
pub fn required<M, P, T>(field: MessageField<M, P>, name: &str) -> Result<T, BadMessage>
where
    M: Default,
    P: ProtoBox<M>,
    T: TryFrom<M>,
    BadMessage: From<T::Error>,
{
    optional(field, name)?.ok_or_else(|| missing(name))
}

/// Reads a submessage; `None` if it is absent.
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

/// Reads repeated submessages. An error names the index.
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

/// Reads a oneof. Fails if no member is set, which is also how a member of a newer version appears.
pub fn oneof<T>(field: Option<T>, name: &str) -> Result<T, BadMessage> {
    field.ok_or_else(|| BadMessage::new(name, "no member is set, or only one that this version does not know"))
}

/// Reads an enumeration. Fails on a number without a name in this version.
pub fn enumeration<E, T>(value: EnumValue<E>, name: &str) -> Result<T, BadMessage>
where
    E: Enumeration,
    T: TryFrom<E>,
    BadMessage: From<T::Error>,
{
    match value {
        EnumValue::Known(known) => T::try_from(known).map_err(|error| BadMessage::from(error).within(name)),
        EnumValue::Unknown(number) => Err(BadMessage::new(name, format!("this version does not know value {number}"))),
    }
}

/// Reads a path inside the workspace.
pub fn path(text: &str, name: &str) -> Result<WsPath, BadMessage> {
    WsPath::parse(text).map_err(|error| BadMessage::new(name, error.to_string()))
}

/// Reads paths inside the workspace. An error names the index.
pub fn paths(texts: &[String], name: &str) -> Result<Vec<WsPath>, BadMessage> {
    texts.iter().enumerate().map(|(index, text)| path(text, &format!("{name}[{index}]"))).collect()
}

/// Reads a hash in hexadecimal.
pub fn hash(text: &str, name: &str) -> Result<ContentHash, BadMessage> {
    text.parse().map_err(|error: NotAHash| BadMessage::new(name, error.to_string()))
}

/// Reads a value that crosses the wire as JSON text.
pub fn json<T: DeserializeOwned>(text: &str, name: &str) -> Result<T, BadMessage> {
    serde_json::from_str(text).map_err(|error| BadMessage::new(name, format!("cannot parse it as JSON: {error}")))
}

/// Reads a count, such as a number of lines. Fails if it exceeds `usize`.
pub fn count(number: u64, name: &str) -> Result<usize, BadMessage> {
    usize::try_from(number).map_err(|_| BadMessage::new(name, format!("{number} is too large for this machine")))
}

/// The error for an absent field.
pub(crate) fn missing(name: &str) -> BadMessage {
    BadMessage::new(name, "it is missing")
}

/// The error for `UNSPECIFIED` where the field has no default. The caller adds the field name.
pub(crate) fn unspecified() -> BadMessage {
    BadMessage::new("", "it is not specified")
}
