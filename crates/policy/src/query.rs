//! Input of policy: an intended action and the agent that intends it.

use sayso_shell::Script;

use crate::effects::PathTarget;

/// An intended action.
///
/// The caller has followed symbolic links in all paths, and lists both ends of a rename.
#[derive(Clone, Copy, Debug)]
pub enum PolicyQuery<'a> {
    /// Read these files.
    Read { targets: &'a [PathTarget] },
    /// Create, change, rename or remove these files.
    Write { targets: &'a [PathTarget] },
    /// Run a command.
    Run {
        script: &'a Script,
        /// Paths that the script appears to read.
        reads: &'a [PathTarget],
        /// Paths that the script appears to write, targets of redirects included.
        writes: &'a [PathTarget],
    },
    /// Call a tool. `reads` and `writes` are the paths that its arguments name.
    Tool { name: &'a str, reads: &'a [PathTarget], writes: &'a [PathTarget] },
    /// Delegate work to another agent, which gets `tools`.
    Delegate { agent: &'a str, tools: &'a [String] },
    /// Send a request to a model provider.
    Send { upstream: &'a str },
}

/// The agent and session on whose behalf a query is made. Rules can be limited to either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Principal<'a> {
    pub agent: Option<&'a str>,
    /// Id of the session.
    pub session: Option<&'a str>,
}
