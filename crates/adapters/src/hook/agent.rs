//! Which agent.

use std::fmt;
use std::str::FromStr;

use sayso_review::ErrorKind;
use thiserror::Error;

/// An agent whose hooks are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

/// A name that is no agent's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no agent whose hooks are understood")]
pub struct UnknownAgent(String);

impl UnknownAgent {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgs
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "the agents are `claude` and `codex`"
    }
}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Claude, Self::Codex];

    /// The agent's own tools that only look, or keep its own books: they change nothing that is anybody else's. What they read is
    /// judged as reading all the same.
    pub fn quiet_tools(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[
                "Read",
                "Glob",
                "Grep",
                "LS",
                "NotebookRead",
                "TodoRead",
                "TodoWrite",
                "TaskCreate",
                "TaskGet",
                "TaskList",
                "TaskUpdate",
                "TaskOutput",
                "BashOutput",
                "ToolSearch",
                "AskUserQuestion",
                "EnterPlanMode",
                "ExitPlanMode",
            ],
            Self::Codex => &["view_image", "update_plan"],
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(name: &str) -> Result<Self, UnknownAgent> {
        match name {
            "claude" => Ok(Self::Claude),
            "codex" => Ok(Self::Codex),
            _ => Err(UnknownAgent(name.to_owned())),
        }
    }
}
