//! Call orders, with which `sayso call` runs a permitted command without the engine.
//!
//! `call` runs where the agent runs its commands, which may be a sandbox without access to the engine. So the order
//! contains the command, its directory, and the rules by which `call` judges every program again just before it starts.

use sayso_review::{ChangeId, ChangeStatus, Decider, Layer, OutsidePath, Policy, PolicyError, Ruling, Subject, WsPath};
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::error::GateError;
use crate::gate::Gate;
use crate::outside::added_folders_rule;
use crate::rules::Rules;

/// Order for a permitted command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallOrder {
    pub change: ChangeId,
    /// Script, with the edits of the person who approved it.
    pub command: String,
    /// Absolute path of the workspace.
    pub root: String,
    /// Working directory of the command when it was judged.
    pub directory: WsPath,
    pub agent: Option<String>,
    pub session: Option<String>,
    pub basis: CallBasis,
}

/// Basis of the permission for a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallBasis {
    /// Rules allowed the command. `call` judges every program again, and no shell reads the script.
    Rules(RuleSet),
    /// A person approved the text. A shell runs it.
    Person,
}

/// Rules in force when a command was permitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleSet {
    /// Layers of configuration, then the rules of the session.
    pub layers: Vec<Layer>,
    /// Paths in the workspace that belong to sayso.
    pub protected: Vec<WsPath>,
    /// Paths outside the workspace that belong to sayso.
    pub protected_outside: Vec<OutsidePath>,
}

impl RuleSet {
    pub fn policy(&self) -> Result<Policy, PolicyError> {
        Ok(Policy::new(&self.layers, &self.protected)?.with_protected_outside(&self.protected_outside))
    }
}

impl Engine {
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
            || record.ruling.as_ref().is_some_and(|ruled| ruled.ruling >= Ruling::Ask);
        let session = record.origin.session.clone();
        let basis = if by_person {
            CallBasis::Person
        } else {
            let mut added = self.history().session_rules(session.as_deref())?;
            added.splice(..0, added_folders_rule(folders));
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
    pub fn call_order(&self, change: ChangeId, folders: &[OutsidePath]) -> Result<CallOrder, GateError> {
        let state = self.state();
        state.engine.call_order(change, folders, &state.rules)
    }
}
