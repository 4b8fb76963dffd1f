//! Errors of starting or running an engine.

use std::io;
use std::net::SocketAddr;

use sayso_gate::GateError;
use sayso_review::ErrorKind;
use sayso_workspace::OpenWorkspaceError;
use thiserror::Error;

use crate::failure::Failure;

/// Failure to start an engine, or to keep it running.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("another process runs the engine of this workspace")]
    Taken,
    #[error(transparent)]
    Workspace(#[from] OpenWorkspaceError),
    #[error(transparent)]
    Gate(#[from] GateError),
    #[error("{}", .0.message)]
    Settings(Failure),
    #[error("cannot create the engine's socket `{path}`: {error}")]
    Socket { path: String, error: io::Error },
    #[error("cannot listen on `{address}`: {error}")]
    Listen { address: SocketAddr, error: io::Error },
    /// An address beyond this machine, without a token.
    #[error("cannot listen on `{0}` without a token: other machines can reach it")]
    Unprotected(SocketAddr),
    /// The engine stopped by itself. Holds the reason.
    #[error("the engine stopped: {0}")]
    Ended(String),
    #[error("cannot start the engine: {0}")]
    System(#[from] io::Error),
}

impl StartError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Workspace(_) | Self::Unprotected(_) => ErrorKind::InvalidArgs,
            Self::Listen { error, .. } if is_wrong_address(error) => ErrorKind::InvalidArgs,
            Self::Gate(error) => error.kind(),
            Self::Settings(failure) => failure.kind,
            Self::Taken | Self::Ended(_) | Self::Socket { .. } | Self::Listen { .. } | Self::System(_) => {
                ErrorKind::Unavailable
            }
        }
    }

    /// Imperative, for a person.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Taken => Some("run `sayso doctor` to list running engines".to_owned()),
            Self::Ended(_) => Some("start it again; recorded changes are intact".to_owned()),
            Self::Workspace(_) => Some("name a directory with --workspace".to_owned()),
            Self::Gate(error) => error.hint(),
            Self::Settings(failure) => failure.hint.clone(),
            Self::Listen { error, .. } if error.kind() == io::ErrorKind::AddrNotAvailable => {
                Some("pass an address of this machine to --listen, such as 127.0.0.1".to_owned())
            }
            Self::Listen { .. } => Some("pass another port to --port, or 0 for any free port".to_owned()),
            Self::Unprotected(_) => Some("omit --no-auth, or listen on 127.0.0.1".to_owned()),
            Self::Socket { .. } | Self::System(_) => {
                Some("check the free disk space and the permissions of the directory".to_owned())
            }
        }
    }
}

/// `true` if another address or port would work.
fn is_wrong_address(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    matches!(error.kind(), AddrInUse | AddrNotAvailable | PermissionDenied)
}
