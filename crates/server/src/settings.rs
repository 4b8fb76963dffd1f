//! What the user has configured, as far as an engine needs it.

use std::fmt;
use std::time::Duration;

use sayso_gate::{Rules, SnapshotLimits};
use sayso_review::Rule;

use crate::failure::Failure;

/// What is in force.
#[derive(Debug)]
pub struct Current {
    /// The rules.
    pub rules: Rules,
    /// How much is kept for the sake of undoing what commands do.
    pub snapshots: SnapshotLimits,
    /// When what nobody decided is denied.
    pub deadline: Option<Duration>,
    /// How names of branches begin.
    pub branch_prefix: String,
    /// How requests to models are treated.
    pub requests: sayso_proxy::Settings,
}

/// Whoever knows the user's configuration: the program, not the server.
pub trait Settings: Send + Sync + fmt::Debug {
    /// What is in force, if that may have changed since it was last asked for. Called before every judgement, so it is quick.
    fn changed(&self) -> Result<Option<Current>, Failure>;
    /// What is in force where the configuration cannot be understood: everything is denied.
    fn strictest(&self) -> Result<Current, Failure>;
    /// Writes a rule into the user's configuration, and says where, for a person.
    fn keep(&self, rule: &Rule) -> Result<String, Failure>;
}
