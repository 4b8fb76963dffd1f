//! Log entries of the built-in agent, without their content.

use sayso_review::{AgentEntry, AgentEntryKind};
use serde_json::Value;

use crate::convert::BadMessage;
use crate::convert::field::{enumeration, unspecified};
use crate::proto;
use crate::proto::agent_log_entry::Kind;

impl From<AgentEntryKind> for Kind {
    fn from(kind: AgentEntryKind) -> Self {
        match kind {
            AgentEntryKind::Log => Self::Log,
            AgentEntryKind::Settings => Self::Settings,
            AgentEntryKind::Todos => Self::Todos,
            AgentEntryKind::Reads => Self::Reads,
            AgentEntryKind::Cleared => Self::Cleared,
        }
    }
}

impl TryFrom<Kind> for AgentEntryKind {
    type Error = BadMessage;

    fn try_from(kind: Kind) -> Result<Self, BadMessage> {
        Ok(match kind {
            Kind::Unspecified => return Err(unspecified()),
            Kind::Log => Self::Log,
            Kind::Settings => Self::Settings,
            Kind::Todos => Self::Todos,
            Kind::Reads => Self::Reads,
            Kind::Cleared => Self::Cleared,
        })
    }
}

impl TryFrom<proto::AgentLogEntry> for AgentEntry {
    type Error = BadMessage;

    fn try_from(message: proto::AgentLogEntry) -> Result<Self, BadMessage> {
        let proto::AgentLogEntry { session, kind, version, .. } = message;
        Ok(Self { session, kind: enumeration(kind, "kind")?, version, content: Value::Null, blob: None })
    }
}
