//! Origins, causes and performers of changes.

use sayso_review::{Cause, Origin, Performer};

use super::field::{oneof, paths};
use super::{BadMessage, texts};
use crate::proto;
use crate::proto::oneof as choice;

impl From<&Origin> for proto::Origin {
    fn from(origin: &Origin) -> Self {
        Self {
            agent: origin.agent.clone(),
            session: origin.session.clone(),
            turn: origin.turn.clone(),
            call: origin.call.clone(),
            ..Default::default()
        }
    }
}

impl From<proto::Origin> for Origin {
    fn from(origin: proto::Origin) -> Self {
        Self { agent: origin.agent, session: origin.session, turn: origin.turn, call: origin.call }
    }
}

impl From<&Cause> for proto::Cause {
    fn from(cause: &Cause) -> Self {
        use choice::cause::Cause as Choice;
        use proto::cause::{Proposed, Rebase, Restore, Reversal, Review};
        let reversal = |changes: &[u64], paths| {
            Box::new(Reversal { changes: changes.to_vec(), paths: texts(paths), ..Default::default() })
        };
        let cause = match cause {
            Cause::Proposal => Proposed::default().into(),
            Cause::Undo { changes, paths } => Choice::Undo(reversal(changes, paths)),
            Cause::Redo { changes, paths } => Choice::Redo(reversal(changes, paths)),
            Cause::Review { changes, turn } => {
                Review { changes: changes.clone(), turn: turn.clone(), ..Default::default() }.into()
            }
            Cause::Restore { snapshot } => Restore { snapshot: *snapshot, ..Default::default() }.into(),
            Cause::Rebase { original } => Rebase { change: *original, ..Default::default() }.into(),
        };
        Self { cause: Some(cause), ..Default::default() }
    }
}

impl TryFrom<proto::Cause> for Cause {
    type Error = BadMessage;

    fn try_from(cause: proto::Cause) -> Result<Self, BadMessage> {
        use choice::cause::Cause as Choice;
        Ok(match oneof(cause.cause, "cause")? {
            Choice::Proposed(_) => Self::Proposal,
            Choice::Undo(undo) => Self::Undo { paths: paths(&undo.paths, "undo.paths")?, changes: undo.changes },
            Choice::Redo(redo) => Self::Redo { paths: paths(&redo.paths, "redo.paths")?, changes: redo.changes },
            Choice::Review(review) => Self::Review { changes: review.changes, turn: review.turn },
            Choice::Restore(restore) => Self::Restore { snapshot: restore.snapshot },
            Choice::Rebase(rebase) => Self::Rebase { original: rebase.change },
        })
    }
}

impl From<Performer> for proto::Performer {
    fn from(performer: Performer) -> Self {
        match performer {
            Performer::Gate => Self::Gate,
            Performer::Agent => Self::Agent,
        }
    }
}

/// Defaults to the engine.
impl From<proto::Performer> for Performer {
    fn from(performer: proto::Performer) -> Self {
        match performer {
            proto::Performer::Unspecified | proto::Performer::Gate => Self::Gate,
            proto::Performer::Agent => Self::Agent,
        }
    }
}
