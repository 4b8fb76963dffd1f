//! Call orders: what `sayso call` needs to carry out a command that was let go ahead, without the engine.
//!
//! `call` runs where the agent runs its commands, which may be a sandbox that forbids connecting to an engine. So the order contains
//! the command, its directory, and the rules by which `call` judges every program again just before it starts.

use sayso_review::{ChangeId, ChangeStatus, Decider, Layer, OutsidePath, Policy, PolicyError, Ruling, Subject, WsPath};
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::error::GateError;
use crate::live::Gate;
use crate::outside::handed_over;
use crate::rules::Rules;

/// A command that was let go ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallOrder {
    /// The change that it is.
    pub change: ChangeId,
    /// The script, with the edits of the person who approved it.
    pub command: String,
    /// The root of the workspace, absolute.
    pub root: String,
    /// The directory in which it was judged.
    pub directory: WsPath,
    /// The agent that wants it.
    pub agent: Option<String>,
    /// The session that it is of.
    pub session: Option<String>,
    /// What let it go ahead.
    pub basis: CallBasis,
}

/// What let a command go ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallBasis {
    /// Rules: every program is judged by them again, and no shell reads the script.
    Rules(RuleSet),
    /// A person approved this text: a shell runs it.
    Person,
}

/// The rules in force when a command was let go ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleSet {
    /// Those of files, then those of the session.
    pub layers: Vec<Layer>,
    /// The paths in the workspace that are sayso's own.
    pub protected: Vec<WsPath>,
    /// The paths outside that are sayso's own.
    pub protected_outside: Vec<OutsidePath>,
}

impl RuleSet {
    /// Compiles the rules.
    pub fn policy(&self) -> Result<Policy, PolicyError> {
        Ok(Policy::new(&self.layers, &self.protected)?.protecting(&self.protected_outside))
    }
}

impl Engine {
    /// Returns the order for a command that was let go ahead and is not over.
    pub(crate) fn call_order(
        &self,
        change: ChangeId,
        folders: &[OutsidePath],
        rules: &Rules,
    ) -> Result<CallOrder, GateError> {
        let record = self.history().change(change)?;
        let (ChangeStatus::Permitted, Subject::Command { command, directory, .. }) =
            (&record.status, record.approved())
        else {
            return Err(GateError::WrongStatus { change, verb: "called", status: record.status.to_string() });
        };
        let by_person = record.verdict.as_ref().is_some_and(|verdict| !matches!(verdict.by, Decider::Policy { .. }))
            || record.ruled.as_ref().is_some_and(|ruled| ruled.ruling >= Ruling::Ask);
        let session = record.origin.session.clone();
        let basis = if by_person {
            CallBasis::Person
        } else {
            let mut added = self.history().rules_of(session.as_deref())?;
            added.splice(..0, handed_over(folders));
            CallBasis::Rules(rules.snapshot(session.as_deref(), &added))
        };
        Ok(CallOrder {
            change,
            command,
            root: self.workspace.path().to_string_lossy().into_owned(),
            directory,
            agent: record.origin.agent,
            session,
            basis,
        })
    }
}

impl Gate {
    /// Returns the order for a command that was let go ahead and is not over. `folders` are those that the user hands to the agent.
    pub fn call_order(&self, change: ChangeId, folders: &[OutsidePath]) -> Result<CallOrder, GateError> {
        let state = self.state();
        state.engine.call_order(change, folders, &state.rules)
    }
}
