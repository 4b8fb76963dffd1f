//! Real coding agents from npm, in pinned versions.
//!
//! `scripts/setup --agents` installs the versions of `crates/testkit/agents/package.json` into `~/.cache/sayso`, or into the
//! directory in `SAYSO_TEST_AGENTS`. If it fails, the tests are skipped with its message. Agents run with an empty environment, a
//! temporary home and a fake key, against a [`model`](crate::model) server or a proxy in front of it.
//!
//! ```no_run
//! use sayso_testkit::agents::Agent;
//! use sayso_testkit::model::{ModelServer, Turn};
//!
//! # fn main() -> Result<(), sayso_testkit::agents::Missing> {
//! let model = ModelServer::start([Turn::says("hello")]);
//! let workspace = std::path::Path::new("/some/where");
//! let home = Agent::Gemini.home(&Agent::Gemini.base_url(&model.url()), workspace);
//! let output = Agent::Gemini.command(&home, workspace, "say hello")?.output();
//! # Ok(()) }
//! ```

mod home;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::programs::root;
pub use home::Home;

/// A coding agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Agent {
    /// Claude Code, with the Anthropic Messages API.
    Claude,
    /// Codex, with the OpenAI Responses API.
    Codex,
    /// Gemini CLI, with the Gemini API.
    Gemini,
    /// Copilot CLI, configured for the OpenAI Chat Completions API.
    Copilot,
    /// opencode, configured for the OpenAI Chat Completions API.
    Opencode,
}

/// Reason why an agent cannot run on this machine. A test passes it to [`skip`](crate::skip::skip).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

impl Agent {
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Copilot, Self::Opencode];

    /// Name of the agent's program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::Gemini => "@google/gemini-cli",
            Self::Copilot => "@github/copilot",
            Self::Opencode => "opencode-ai",
        }
    }

    /// Returns the agent's program, and installs it if necessary.
    pub fn program(self) -> Result<PathBuf, Missing> {
        let modules = directory()?.join("node_modules");
        let program = modules.join(".bin").join(self.name());
        let version = |manifest: &Path, pointer: &str| -> Option<String> {
            let manifest: Value = serde_json::from_slice(&std::fs::read(manifest).ok()?).ok()?;
            Some(manifest.pointer(pointer)?.as_str()?.to_owned())
        };
        let pinned = format!("/dependencies/{}", self.package().replace('/', "~1"));
        let wanted = version(&root().join("crates/testkit/agents/package.json"), &pinned);
        let found = version(&modules.join(self.package()).join("package.json"), "/version");
        if wanted.is_some() && wanted == found && program.exists() {
            return Ok(program);
        }
        let wanted = wanted.unwrap_or_default();
        Err(Missing(format!("cannot find {} in version {wanted}: found {found:?}", program.display())))
    }

    /// Returns the agent's base URL setting for a server with the API at its root.
    pub fn base_url(self, server: &str) -> String {
        match self {
            Self::Claude | Self::Gemini => server.to_owned(),
            Self::Codex | Self::Copilot | Self::Opencode => format!("{server}/v1"),
        }
    }

    /// Returns arguments for a non-interactive run of a prompt with all permissions.
    pub fn arguments(self, prompt: &str) -> Vec<String> {
        let arguments: &[&str] = match self {
            Self::Claude => {
                &["-p", prompt, "--output-format", "json", "--permission-mode", "acceptEdits", "--allowedTools", "Bash"]
            }
            Self::Codex => &["exec", "--json", "--skip-git-repo-check", prompt],
            Self::Gemini => {
                &["-m", "gemini-2.5-pro", "-p", prompt, "--approval-mode", "yolo", "--output-format", "json"]
            }
            Self::Copilot => {
                &["-p", prompt, "--allow-all-tools", "--allow-all-paths", "--trust-folder", "--output-format", "json"]
            }
            Self::Opencode => &["run", "--format", "json", prompt],
        };
        arguments.iter().map(|argument| (*argument).to_owned()).collect()
    }

    /// Returns arguments for a non-interactive run that continues the last session of a home.
    pub fn arguments_to_continue(self, prompt: &str) -> Vec<String> {
        let mut arguments = self.arguments(prompt);
        // A continued session was trusted at its start.
        arguments.retain(|argument| argument != "--trust-folder");
        let at = if self == Self::Codex || self == Self::Opencode { 1 } else { arguments.len() };
        let more: &[&str] = match self {
            Self::Claude | Self::Copilot | Self::Opencode => &["--continue"],
            Self::Codex => &["resume", "--last"],
            Self::Gemini => &["--resume", "latest"],
        };
        arguments.splice(at..at, more.iter().map(|argument| (*argument).to_owned()));
        arguments
    }

    /// Creates a temporary home that configures the agent for a base URL and trusts a workspace.
    pub fn home(self, base_url: &str, workspace: &Path) -> Home {
        Home::of(self, base_url, workspace)
    }

    /// Returns a command for a non-interactive run in a workspace. Its standard input is empty; the caller chooses the outputs.
    pub fn command(self, home: &Home, workspace: &Path, prompt: &str) -> Result<Command, Missing> {
        self.command_with(&self.arguments(prompt), home, workspace)
    }

    /// Returns a command like [`Self::command`] that continues the last session of the home.
    pub fn command_to_continue(self, home: &Home, workspace: &Path, prompt: &str) -> Result<Command, Missing> {
        self.command_with(&self.arguments_to_continue(prompt), home, workspace)
    }

    fn command_with(self, arguments: &[String], home: &Home, workspace: &Path) -> Result<Command, Missing> {
        let mut command = Command::new(self.program()?);
        command
            .args(arguments)
            .current_dir(workspace)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(home.environment())
            .stdin(Stdio::null());
        Ok(command)
    }
}

/// Returns the program of Claude Code.
pub fn claude() -> Result<PathBuf, Missing> {
    Agent::Claude.program()
}

/// Returns the program of Codex.
pub fn codex() -> Result<PathBuf, Missing> {
    Agent::Codex.program()
}

/// Returns the directory with the agents, and installs them if necessary.
fn directory() -> Result<PathBuf, Missing> {
    static DIRECTORY: OnceLock<Result<PathBuf, Missing>> = OnceLock::new();
    let install = || {
        let output = Command::new(root().join("scripts/setup"))
            .arg("--agents")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Missing(format!("cannot run scripts/setup: {error}")))?;
        let last_line = String::from_utf8_lossy(&output.stdout).lines().last().map(PathBuf::from);
        last_line.filter(|_| output.status.success()).ok_or_else(|| {
            let stderr = String::from_utf8_lossy(&output.stderr);
            // The output of npm precedes the note and is long.
            Missing(stderr.rfind("note: ").map_or(&*stderr, |at| &stderr[at..]).trim().to_owned())
        })
    };
    DIRECTORY.get_or_init(install).clone()
}
