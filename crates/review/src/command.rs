//! What a surface may ask the engine to do.

use serde::{Deserialize, Serialize};

use crate::event::{ChangeId, Origin};
use crate::intent::Intent;
use crate::preview::IfChanged;
use crate::verdict::Verdict;

/// What a surface may ask the engine to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Preview an intent and wait for a verdict.
    Propose {
        /// What is to happen.
        intent: Intent,
        /// Where it comes from.
        #[serde(default)]
        origin: Origin,
    },
    /// Answer a preview.
    Decide {
        /// The change.
        change: ChangeId,
        /// The answer.
        verdict: Verdict,
    },
    /// Take changes back.
    Undo {
        /// Which.
        target: Target,
        /// What to do with files that changed since.
        if_changed: IfChanged,
    },
    /// Make changes again that were taken back.
    Redo {
        /// Which.
        target: Target,
        /// What to do with files that changed since.
        if_changed: IfChanged,
    },
    /// Drop contents that are older than a time, in milliseconds since 1970.
    Collect {
        /// The time.
        before: i64,
    },
}

/// Which changes an undo or a redo is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "target", rename_all = "snake_case")]
pub enum Target {
    /// The last one that can be undone or redone.
    Last,
    /// One by its number.
    Change {
        /// The number.
        change: ChangeId,
    },
    /// All of a tool call.
    Call {
        /// The call's id.
        call: String,
    },
    /// All of the turn that a change belongs to; of the last change, if none is named.
    Turn {
        /// A change of that turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<ChangeId>,
    },
    /// All of a session.
    Session {
        /// The session's id.
        session: String,
    },
}
