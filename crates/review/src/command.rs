//! What clients may ask the engine to do: agents through entrances, people through surfaces.

use sayso_base::WsPath;
use sayso_policy::FromNowOn;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{ChangeId, Origin, Performer, Tier};
use crate::intent::Intent;
use crate::preview::IfChanged;
use crate::verdict::Verdict;

/// What a client may ask the engine to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Preview an intent, ask policy, and wait for a verdict where policy asks.
    Submit {
        /// What is to happen.
        intent: Intent,
        /// Where it comes from.
        #[serde(default)]
        origin: Origin,
        /// Who carries it out.
        #[serde(default)]
        performer: Performer,
        /// When it is denied if nobody has decided, in milliseconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<i64>,
        /// What the called tool says of its arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<Value>,
    },
    /// Answer a preview.
    Decide {
        /// The change.
        change: ChangeId,
        /// The answer.
        verdict: Verdict,
        /// What it means for what comes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_now_on: Option<FromNowOn>,
    },
    /// Withdraw an intent: whoever wanted it has given up.
    Withdraw {
        /// The change.
        change: ChangeId,
    },
    /// Say that something which was permitted has been done.
    Finish {
        /// The change.
        change: ChangeId,
        /// What it ended with, if it is a command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
    },
    /// Run the harmless rehearsal that the preview of a command offers.
    DryRun {
        /// The change.
        change: ChangeId,
    },
    /// Keep what a file is before a tool call changes it.
    Capture {
        /// Where in the call's life this is.
        tier: Tier,
        /// The session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// The call's id, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// The tool's name.
        tool: String,
        /// Its arguments, which say what files it is about.
        arguments: Value,
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
    /// Begin a session, or go on with it.
    StartSession {
        /// Its id.
        session: String,
        /// The agent's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Where it works, as it says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<String>,
        /// The session that it is a part of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// End a session.
    EndSession {
        /// Its id.
        session: String,
    },
    /// Begin a turn.
    StartTurn {
        /// The session.
        session: String,
        /// The turn.
        turn: String,
    },
    /// End a turn, and put up for review what happened in it at once.
    EndTurn {
        /// The session.
        session: String,
        /// The turn.
        turn: String,
    },
    /// Hand over what an agent is to be told.
    TakeMessages {
        /// The session.
        session: String,
    },
    /// List the messages that an agent has not received.
    ListMessages {
        /// The session.
        session: String,
    },
    /// Record that an agent has received messages.
    AcknowledgeMessages {
        /// The session.
        session: String,
        /// The numbers of the messages.
        numbers: Vec<u64>,
    },
    /// Drop contents that are older than a time, in milliseconds since 1970.
    Collect {
        /// The time.
        before: i64,
    },
}

impl Command {
    /// Whether only a person may say it: it decides, or changes files without asking.
    pub fn needs_a_person(&self) -> bool {
        matches!(
            self,
            Self::Decide { .. } | Self::Undo { .. } | Self::Redo { .. } | Self::DryRun { .. } | Self::Collect { .. }
        )
    }
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
    /// Some files of one.
    Files {
        /// The number.
        change: ChangeId,
        /// The files.
        paths: Vec<WsPath>,
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
