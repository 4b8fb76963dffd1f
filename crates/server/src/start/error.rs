//! Why an engine could not be started.

use std::io;
use std::net::SocketAddr;

use sayso_gate::GateError;
use sayso_review::ErrorKind;
use sayso_workspace::OpenWorkspaceError;
use thiserror::Error;

use crate::failure::Failure;

/// Why an engine could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// Another process has the engine of this workspace, or is about to.
    #[error("another process has the engine of this workspace")]
    Taken,
    /// The workspace cannot be used.
    #[error(transparent)]
    Workspace(#[from] OpenWorkspaceError),
    /// The engine cannot be opened.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// The configuration cannot be used.
    #[error("{}", .0.message)]
    Settings(Failure),
    /// The socket cannot be made.
    #[error("the engine's socket `{path}` cannot be made: {error}")]
    Socket {
        /// Where.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// No port is free.
    #[error("`{address}` cannot be listened at: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// An address beyond this machine without a token.
    #[error("`{0}` can be reached from other machines, and without a token anybody there could decide")]
    OpenToAll(SocketAddr),
    /// The engine ended by itself.
    #[error("the engine ended: {0}")]
    Ended(String),
    /// The system fails.
    #[error("the engine cannot be started: {0}")]
    System(#[from] io::Error),
}

impl StartError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Workspace(_) | Self::OpenToAll(_) => ErrorKind::InvalidArgs,
            // The address is at fault, and another one will do.
            Self::Listen { error, .. } if is_of_address(error) => ErrorKind::InvalidArgs,
            Self::Gate(error) => error.kind(),
            Self::Settings(failure) => failure.kind,
            Self::Taken | Self::Ended(_) | Self::Socket { .. } | Self::Listen { .. } | Self::System(_) => {
                ErrorKind::Unavailable
            }
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Taken => Some("`sayso doctor` shows the engines that run".to_owned()),
            Self::Ended(_) => Some("nothing was done since; start it again".to_owned()),
            Self::Workspace(_) => Some("name a directory with --workspace".to_owned()),
            Self::Gate(error) => error.hint(),
            Self::Settings(failure) => failure.hint.clone(),
            Self::Listen { error, .. } if error.kind() == io::ErrorKind::AddrNotAvailable => {
                Some("--listen takes an address of this machine, such as 127.0.0.1".to_owned())
            }
            Self::Listen { .. } => Some("name another port with --port, or 0 for any".to_owned()),
            Self::OpenToAll(_) => Some("leave --no-auth out, or listen at 127.0.0.1".to_owned()),
            Self::Socket { .. } | Self::System(_) => {
                Some("look at the disk's free space and the folder's permissions".to_owned())
            }
        }
    }
}

/// Whether it is the address that cannot be listened at.
fn is_of_address(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    matches!(error.kind(), AddrInUse | AddrNotAvailable | PermissionDenied)
}
