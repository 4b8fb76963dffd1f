//! What policy is asked about.

use sayso_shell::Script;

use crate::effects::Place;

/// What somebody wants to do, as policy sees it.
///
/// Places are where things really are: whoever makes an act has followed symbolic links, and names both ends of a rename.
#[derive(Clone, Copy, Debug)]
pub enum Act<'a> {
    /// Read files.
    Read {
        /// Which.
        places: &'a [Place],
    },
    /// Write, make, rename or remove files.
    Write {
        /// Which.
        places: &'a [Place],
    },
    /// Run a command.
    Run {
        /// What it would run.
        script: &'a Script,
        /// What it appears to read.
        reads: &'a [Place],
        /// What it appears to write, the targets of its redirects among them.
        writes: &'a [Place],
    },
    /// Call a tool.
    Tool {
        /// Its name.
        name: &'a str,
        /// What it would read, as far as its arguments tell.
        reads: &'a [Place],
        /// What it would write, as far as its arguments tell.
        writes: &'a [Place],
    },
    /// Hand work to another agent.
    Delegate {
        /// Its name.
        agent: &'a str,
        /// The tools that it will have.
        tools: &'a [String],
    },
    /// Send a request to a model.
    Send {
        /// The upstream's name.
        upstream: &'a str,
    },
}

/// Who wants to do it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Who<'a> {
    /// The agent's name.
    pub agent: Option<&'a str>,
    /// The session's id.
    pub session: Option<&'a str>,
}
