//! Between the messages of the protocol and our own types.
//!
//! Towards the wire nothing can fail (`From<&T>`); from the wire everything is checked (`TryFrom`), and what is wrong is a
//! [`BadMessage`] that names the field. Whoever reads a message gets exactly what the other side had: a preview and a subject
//! have the same hashes afterwards, so that a verdict given over the wire is bound to the same bytes.
//!
//! # Limits
//!
//! - A rehearsal without any word is none: the protocol does not tell the two apart.
//! - A patch, or edited bytes, that are UTF-8 are text afterwards, whichever way they were held.

mod bad_message;
mod change;
mod command_preview;
mod described;
mod event;
pub mod field;
mod file_record;
mod file_state;
mod intent;
mod origin;
mod preview;
mod rehearsal;
mod request;
mod request_event;
mod ruling;
mod snapshot;
mod step;
mod subject;
mod tool_preview;
mod undo;
mod verdict;

pub use bad_message::BadMessage;
pub use preview::preview;
pub use request::conversation;

use sayso_review::WsPath;

/// Paths as they are sent.
fn texts(paths: &[WsPath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

/// The messages of values.
fn messages<'a, T: 'a, M: From<&'a T>>(values: &'a [T]) -> Vec<M> {
    values.iter().map(M::from).collect()
}
