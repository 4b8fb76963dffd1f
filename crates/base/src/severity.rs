//! How much a finding matters.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

/// How much a note or an effect matters; the later, the more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// To be looked at before approving.
    Warning,
    /// What an attack or a shortcut would look like.
    Critical,
}

impl Display for Severity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        })
    }
}
