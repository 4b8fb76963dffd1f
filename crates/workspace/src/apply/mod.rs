//! Carries a plan out, or leaves the tree as it was.
//!
//! The order is what makes it safe. [`Workspace::prepare`] looks and touches nothing; the caller writes [`Prepared::record`]
//! down, durable; only then does [`Prepared::apply`] start. It first puts every new content beside its target under a name
//! that carries the record's token, durable, and then exchanges names. What comes out of an exchange has to be, byte for byte,
//! what the plan starts from: if it is not, that name and all before it are exchanged back. After a crash,
//! [`Workspace::recover`] needs nothing but the record and the contents to finish or to take back.

mod attributes;
mod directories;
mod entry;
mod error;
mod parallel;
mod recover;
mod rescue;
mod work;

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use sayso_review::{ApplyRecord, FileState, Plan, WsPath};

pub(crate) use attributes::names as attribute_names;
use directories::Directories;
pub use entry::Swap;
pub use error::ApplyError;
pub use recover::{RecoverError, Recovery};
use work::Work;

use crate::confine::{OpenError, Workspace};

/// A plan of which it is known what it needs; nothing has happened yet.
#[derive(Debug)]
pub struct Prepared<'w> {
    workspace: &'w Workspace,
    plan: Plan,
    token: String,
    directories: Vec<WsPath>,
    emptied: Vec<WsPath>,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// What files had besides their content that could not be kept, such as their owner.
    pub lost: Vec<(WsPath, Vec<&'static str>)>,
}

impl Workspace {
    /// Finds out what a plan needs. `emptied` are directories to be removed afterwards if nothing is left in them, outermost
    /// first.
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
        // Nobody has to be unable to guess it: a name that is taken is never written to. It has to be another one each time.
        let token = format!("{:016x}", RandomState::new().build_hasher().finish());
        Ok(Prepared { workspace: self, plan, token, directories, emptied })
    }

    /// Whether a path belongs to what is never written to.
    pub(crate) fn is_protected(&self, path: &WsPath) -> bool {
        self.protected.iter().any(|tree| path.is_within(tree))
    }
}

impl Prepared<'_> {
    /// What has to be written down before [`apply`](Self::apply).
    pub fn record(&self) -> ApplyRecord {
        ApplyRecord {
            token: self.token.clone(),
            steps: self.plan.recorded(),
            directories: self.directories.clone(),
            emptied: self.emptied.clone(),
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Carries the plan out, or leaves the tree as it was.
    pub fn apply(self) -> Result<Applied, ApplyError> {
        let mut work = Work::new(Directories::new(self.workspace), self.plan.steps(), &self.token)
            .with_names_before(self.plan.renames());
        if let Err(error) = work.make_directories(&self.directories).and_then(|()| work.exchange_all()) {
            return Err(work.take_back(error));
        }
        if let Err(error) = work.clear_and_sync() {
            return Err(work.write_back(error));
        }
        Ok(Applied { lost: work.finish(&self.emptied) })
    }
}

/// The name of a temporary file. It is beside its target, since a name can only be exchanged within a file system.
fn temporary(token: &str, index: usize) -> String {
    format!(".sayso-{token}-{index}")
}
