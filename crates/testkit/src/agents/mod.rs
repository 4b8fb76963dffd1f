//! The real coding agents, in the versions that the tests were written for, from npm.
//!
//! `scripts/setup --agents` puts what `crates/testkit/agents` pins into `~/.cache/sayso`, or into the directory that
//! `SAYSO_TEST_AGENTS` names. Where it cannot, a test is skipped with the reason. They are only ever run with an empty environment, a
//! home of their own and a made-up key, against [`model`](crate::model) or what stands before it.
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
    /// Anthropic's Claude Code, which speaks Anthropic Messages.
    Claude,
    /// OpenAI's Codex, which speaks OpenAI Responses.
    Codex,
    /// Google's Gemini CLI, which speaks Gemini.
    Gemini,
    /// GitHub's Copilot CLI, which is told to speak OpenAI Chat Completions here.
    Copilot,
    /// opencode, which is told to speak OpenAI Chat Completions here.
    Opencode,
}

/// Why an agent cannot be run here; a test prints it and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Copilot, Self::Opencode];

    /// The name of its program.
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

    /// Its program, installed if need be.
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
        Err(Missing(format!("{} is not there in version {wanted} but {found:?}", program.display())))
    }

    /// What it calls the base URL of a server that has its API at the root.
    pub fn base_url(self, server: &str) -> String {
        match self {
            Self::Claude | Self::Gemini => server.to_owned(),
            Self::Codex | Self::Copilot | Self::Opencode => format!("{server}/v1"),
        }
    }

    /// What it is called with to work on a prompt without a person, allowed to do everything, and to end.
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

    /// A home in which it talks to a base URL of its own kind, trusts a workspace and knows nothing of the user.
    pub fn home(self, base_url: &str, workspace: &Path) -> Home {
        Home::of(self, base_url, workspace)
    }

    /// Its program, ready to work on a prompt in a workspace without a person. Its streams are the caller's to choose, but for
    /// its input, of which there is none.
    pub fn command(self, home: &Home, workspace: &Path, prompt: &str) -> Result<Command, Missing> {
        let mut command = Command::new(self.program()?);
        command
            .args(self.arguments(prompt))
            .current_dir(workspace)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(home.environment())
            .stdin(Stdio::null());
        Ok(command)
    }
}

/// Claude Code's program.
pub fn claude() -> Result<PathBuf, Missing> {
    Agent::Claude.program()
}

/// Codex's program.
pub fn codex() -> Result<PathBuf, Missing> {
    Agent::Codex.program()
}

/// Where the agents are, installed if need be.
fn directory() -> Result<PathBuf, Missing> {
    static DIRECTORY: OnceLock<Result<PathBuf, Missing>> = OnceLock::new();
    let install = || {
        let output = Command::new(root().join("scripts/setup"))
            .arg("--agents")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Missing(format!("scripts/setup does not run: {error}")))?;
        let said = String::from_utf8_lossy(&output.stdout).lines().last().map(PathBuf::from);
        said.filter(|_| output.status.success()).ok_or_else(|| {
            let told = String::from_utf8_lossy(&output.stderr);
            // What npm itself says comes before, and is long.
            Missing(told.rfind("note: ").map_or(&*told, |at| &told[at..]).trim().to_owned())
        })
    };
    DIRECTORY.get_or_init(install).clone()
}
