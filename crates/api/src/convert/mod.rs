//! Conversions between protocol messages and the types of `review`.
//!
//! Encoding (`From<&T>`) cannot fail. Decoding (`TryFrom`) checks every field; an error is a [`BadMessage`] that names the field.
//! Previews and subjects keep their hashes across the wire, so that a remote verdict covers the same bytes.
//!
//! # Limits
//!
//! - A dry run without words decodes as absent.
//! - UTF-8 patches and edited bytes decode as text, whichever variant held them before.

mod bad_message;
mod change;
mod command_preview;
mod conversation;
mod described;
mod diff;
mod diff_file;
mod dry_run;
mod event;
pub mod field;
mod file_record;
mod file_state;
mod intent;
mod origin;
mod preview;
mod request;
mod ruling;
mod snapshot;
mod step;
mod subject;
mod surface;
mod tool_preview;
mod undo;
mod verdict;

pub use bad_message::BadMessage;
pub use preview::preview;
pub use request::conversation;
pub use surface::seen;

use sayso_review::WsPath;

fn texts(paths: &[WsPath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

fn messages<'a, T: 'a, M: From<&'a T>>(values: &'a [T]) -> Vec<M> {
    values.iter().map(M::from).collect()
}
