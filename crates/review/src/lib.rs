//! What is asked, and what may be answered.
//!
//! The vocabulary that every other part shares, as data: no file, clock or network is ever touched here, so that a policy
//! decision or a path check gives the same answer on any machine. It begins with paths inside the workspace ([`WsPath`]),
//! what an agent was granted ([`Grants`]) and the kinds that every error has ([`ErrorKind`]); intents, previews and
//! verdicts join them.

mod content;
mod error_kind;
mod file_state;
mod grants;
mod note;
mod ws_path;

pub use content::{Content, ContentHash, NotAHash};
pub use error_kind::ErrorKind;
pub use file_state::{FileMode, FileState, Fingerprint};
pub use grants::{BadGlob, Grants, PathGlobs};
pub use note::{Note, Rights, SecretKind, Severity, notes};
pub use ws_path::{WsPath, WsPathError};
