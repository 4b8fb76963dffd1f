//! Selection of changes for an undo or a redo.

use sayso_base::WsPath;
use serde::{Deserialize, Serialize};

use crate::event::ChangeId;

/// The changes to undo or redo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "target", rename_all = "snake_case")]
pub enum Target {
    /// The latest change that can be undone or redone.
    Last,
    Change {
        change: ChangeId,
    },
    /// Some files of a change.
    Files {
        change: ChangeId,
        paths: Vec<WsPath>,
    },
    /// All changes of a tool call.
    Call {
        call: String,
    },
    /// All changes of a turn.
    Turn {
        /// A change of that turn; `None` for the turn of the latest change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<ChangeId>,
    },
    /// All changes of a session.
    Session {
        session: String,
    },
}
