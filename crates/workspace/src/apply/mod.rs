//! Application of plans: all steps, or none.
//!
//! The order of the phases makes it safe.
//!
//! - [`Workspace::prepare`] reads the tree and changes nothing.
//! - The caller makes [`Prepared::record`] durable.
//! - [`Prepared::apply`] writes every new content beside its target, under a name with the record's token, and syncs
//!   it.
//! - It exchanges names. Each displaced file must equal the plan's base, byte for byte; if one does not, all exchanges
//!   are reverted.
//! - After a crash, [`Workspace::recover`] needs only the record and the contents to complete the plan or to roll it
//!   back.

mod attributes;
mod crash_state;
mod directories;
mod entry;
mod error;
mod parallel;
mod recover;
mod transaction;

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use sayso_review::{ApplyRecord, FileState, Plan, WsPath};

pub(crate) use attributes::names as attribute_names;
use directories::Directories;
pub use entry::Swap;
pub use error::ApplyError;
pub use recover::{RecoverError, Recovery};
use transaction::Transaction;

use crate::confine::{OpenError, Workspace};

/// A plan that is ready to apply. Nothing has been changed yet.
#[derive(Debug)]
pub struct Prepared<'w> {
    workspace: &'w Workspace,
    plan: Plan,
    token: String,
    directories: Vec<WsPath>,
    emptied: Vec<WsPath>,
}

/// Result of [`Prepared::apply`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Attributes of files that could not be preserved, such as the owner.
    pub lost: Vec<(WsPath, Vec<&'static str>)>,
}

impl Workspace {
    /// Prepares a plan. `emptied` are directories to remove afterwards if they are empty, outermost first.
    pub fn prepare(&self, plan: Plan, emptied: Vec<WsPath>) -> Result<Prepared<'_>, ApplyError> {
        let mut directories: Vec<WsPath> = Vec::new();
        let mut known = BTreeSet::new();
        for step in plan.steps() {
            if self.is_protected(&step.path) {
                let reason = "it belongs to sayso's own records".to_owned();
                return Err(ApplyError::Outside { path: step.path.clone(), reason });
            }
            if step.after == FileState::Absent {
                continue;
            }
            let mut missing = Vec::new();
            let mut above = step.path.parent();
            while let Some(directory) = above {
                if !known.insert(directory.clone()) {
                    break;
                }
                match self.open_directory(&directory) {
                    Ok(_) => break,
                    Err(OpenError::NotFound(_)) => {}
                    Err(error) => return Err(ApplyError::opening(&step.path, &error)),
                }
                above = directory.parent();
                missing.push(directory);
            }
            directories.extend(missing.into_iter().rev());
        }
        // The token need not be secret, because an existing name is never written to. It must only differ each time.
        let token = format!("{:016x}", RandomState::new().build_hasher().finish());
        Ok(Prepared { workspace: self, plan, token, directories, emptied })
    }

    /// `true` if the path is in a protected directory.
    pub(crate) fn is_protected(&self, path: &WsPath) -> bool {
        self.protected.iter().any(|tree| path.is_within(tree))
    }
}

impl Prepared<'_> {
    /// Returns the record that the caller must make durable before [`apply`](Self::apply).
    pub fn record(&self) -> ApplyRecord {
        ApplyRecord {
            token: self.token.clone(),
            steps: self.plan.recorded(),
            directories: self.directories.clone(),
            emptied: self.emptied.clone(),
        }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Applies the plan. On error the tree is as before, unless the error is [`ApplyError::Torn`].
    pub fn apply(self) -> Result<Applied, ApplyError> {
        let mut transaction = Transaction::new(Directories::new(self.workspace), self.plan.steps(), &self.token)
            .with_names_before(self.plan.renames());
        if let Err(error) = transaction.make_directories(&self.directories).and_then(|()| transaction.exchange_all()) {
            return Err(transaction.roll_back(error));
        }
        if let Err(error) = transaction.clear_and_sync() {
            return Err(transaction.write_back(error));
        }
        Ok(Applied { lost: transaction.finish(&self.emptied) })
    }
}

/// Returns the name of a temporary file. It is beside its target, because names can only be exchanged within a file
/// system.
fn temporary(token: &str, index: usize) -> String {
    format!(".sayso-{token}-{index}")
}
