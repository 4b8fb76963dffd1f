//! The coding agents that sayso can run.

use std::fmt;
use std::str::FromStr;

use sayso_review::ErrorKind;
use thiserror::Error;

/// A coding agent. sayso routes the model requests of all of them and handles the hooks of [`Agent::WITH_HOOKS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Agent {
    Claude,
    Codex,
    Gemini,
    Copilot,
    Opencode,
}

/// Rejection of an agent's name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownAgent {
    #[error("unknown agent `{0}`")]
    Name(String),
    #[error("cannot handle hooks of {0}: only Claude Code and Codex are supported")]
    NoHooks(Agent),
}

impl UnknownAgent {
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgs
    }

    /// An imperative for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Name(_) => "use claude, codex, gemini, copilot or opencode",
            Self::NoHooks(_) => "use claude or codex",
        }
    }
}

impl Agent {
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Copilot, Self::Opencode];

    /// Agents whose hooks sayso handles.
    pub const WITH_HOOKS: [Self; 2] = [Self::Claude, Self::Codex];

    pub fn has_hooks(self) -> bool {
        Self::WITH_HOOKS.contains(&self)
    }

    /// Parses the name of an agent whose hooks sayso handles.
    pub fn parse_with_hooks(name: &str) -> Result<Self, UnknownAgent> {
        let agent: Self = name.parse()?;
        if agent.has_hooks() { Ok(agent) } else { Err(UnknownAgent::NoHooks(agent)) }
    }

    /// Name of the agent's program, and of the agent on sayso's command line and in rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
        }
    }

    /// The agent's own tools that change no file of the user and run no program. File reads by these tools are still subject
    /// to policy.
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
            Self::Gemini | Self::Copilot | Self::Opencode => &[],
        }
    }
}

/// The product name, for prose. [`Agent::name`] is the program.
impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "Copilot CLI",
            Self::Opencode => "opencode",
        })
    }
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(name: &str) -> Result<Self, UnknownAgent> {
        Self::ALL.into_iter().find(|agent| agent.name() == name).ok_or_else(|| UnknownAgent::Name(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_names_round_trip() {
        for agent in Agent::ALL {
            assert_eq!(agent.name().parse(), Ok(agent));
            assert_eq!(Agent::parse_with_hooks(agent.name()).is_ok(), agent.has_hooks());
        }
        assert_eq!("cursor".parse::<Agent>(), Err(UnknownAgent::Name("cursor".to_owned())));
    }
}
