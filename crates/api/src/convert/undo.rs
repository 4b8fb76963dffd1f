//! Targets of undo and redo.

use sayso_review::{IfChanged, Target};

use super::field::{oneof, paths};
use super::{BadMessage, texts};
use crate::proto;
use crate::proto::oneof as choice;

impl From<&Target> for proto::Target {
    fn from(target: &Target) -> Self {
        use choice::target::Target as Choice;
        use proto::target::{Files, Last, TurnOf};
        let target = match target {
            Target::Last => Last::default().into(),
            Target::Change { change } => Choice::Change(*change),
            Target::Files { change, paths } => {
                Files { change: *change, paths: texts(paths), ..Default::default() }.into()
            }
            Target::Call { call } => Choice::Call(call.clone()),
            Target::Turn { change } => TurnOf { change: *change, ..Default::default() }.into(),
            Target::Session { session } => Choice::Session(session.clone()),
        };
        Self { target: Some(target), ..Default::default() }
    }
}

impl TryFrom<proto::Target> for Target {
    type Error = BadMessage;

    fn try_from(target: proto::Target) -> Result<Self, BadMessage> {
        use choice::target::Target as Choice;
        Ok(match oneof(target.target, "target")? {
            Choice::Last(_) => Self::Last,
            Choice::Change(change) => Self::Change { change },
            Choice::Files(files) => Self::Files { change: files.change, paths: paths(&files.paths, "files.paths")? },
            Choice::Call(call) => Self::Call { call },
            Choice::Turn(turn) => Self::Turn { change: turn.change },
            Choice::Session(session) => Self::Session { session },
        })
    }
}

impl From<IfChanged> for proto::IfChanged {
    fn from(if_changed: IfChanged) -> Self {
        match if_changed {
            IfChanged::Refuse => Self::Refuse,
            IfChanged::Merge => Self::Merge,
        }
    }
}

/// Unspecified means refusal.
impl From<proto::IfChanged> for IfChanged {
    fn from(if_changed: proto::IfChanged) -> Self {
        match if_changed {
            proto::IfChanged::Unspecified | proto::IfChanged::Refuse => Self::Refuse,
            proto::IfChanged::Merge => Self::Merge,
        }
    }
}
