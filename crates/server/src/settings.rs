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
    /// The configuration in force, if it may have changed since the last call. Called before every judgement, so it is quick.
    /// `under_way` says whether a change that the engine let go ahead is not over: what it did to the configuration meanwhile
    /// does not count by itself.
    fn changed(&self, under_way: &dyn Fn() -> bool) -> Result<Option<Current>, Failure>;
    /// What is in force where the configuration cannot be understood: everything is denied.
    fn strictest(&self) -> Result<Current, Failure>;
    /// Writes a rule into the user's configuration, and says where, for a person.
    fn keep(&self, rule: &Rule) -> Result<String, Failure>;
}
