//! What is asked, and what may be answered.
//!
//! The vocabulary that every other part shares, as data: no file, clock or network is ever touched here, so that a policy
//! decision or a path check gives the same answer on any machine. It begins with paths inside the workspace ([`WsPath`]),
//! what an agent was granted ([`Grants`]) and the kinds that every error has ([`ErrorKind`]); intents, previews and
//! verdicts join them.

mod error_kind;
mod grants;
mod ws_path;

pub use error_kind::ErrorKind;
pub use grants::{BadGlob, Grants, PathGlobs};
pub use ws_path::{WsPath, WsPathError};
