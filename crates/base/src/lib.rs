//! Types shared by all crates: paths, contents, file states, grants, error kinds.

mod content;
mod error_kind;
mod file_state;
mod grants;
mod outside_path;
mod severity;
mod ws_path;

pub use content::{Content, ContentHash, NotAHash};
pub use error_kind::ErrorKind;
pub use file_state::{FileMode, FileState, Fingerprint};
pub use grants::{BadGlob, Grants, PathGlobs};
pub use outside_path::{OutsidePath, OutsidePathError};
pub use severity::Severity;
pub use ws_path::{WsPath, WsPathError};
