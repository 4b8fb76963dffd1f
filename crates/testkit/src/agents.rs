//! The real coding agents, in the versions that the tests were written for, from npm.
//!
//! They are kept in `~/.cache/sayso/agents`, or in the directory that `SAYSO_TEST_AGENTS` names, and installed there when they
//! are missing and npm can. Where it cannot, a test is skipped with the reason. They are only ever run with an empty environment, a
//! home of their own and a made-up key, against [`model`](crate::model).

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::model::ModelServer;

/// The packages with their versions.
const PACKAGES: [&str; 2] = ["@anthropic-ai/claude-code@2.1.197", "@openai/codex@0.166.0"];

/// Why an agent cannot be run here; a test prints it and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped: {}", self.0)
    }
}

/// A throw-away home in which an agent talks to a scripted model and knows nothing of the user.
#[derive(Debug)]
pub struct Home {
    directory: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

impl Home {
    /// One for Claude Code.
    pub fn for_claude(model: &ModelServer) -> Self {
        Self::new(&[
            ("ANTHROPIC_BASE_URL", &model.url()),
            ("ANTHROPIC_API_KEY", "sk-ant-made-up"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ])
    }

    /// One for Codex, which trusts a workspace and is not held back by a sandbox of its own.
    pub fn for_codex(model: &ModelServer, workspace: &Path) -> Self {
        let home = Self::new(&[("SCRIPTED_MODEL_KEY", "made-up")]);
        let configuration = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\n\
             sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\
             [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{}/v1\"\nenv_key = \"SCRIPTED_MODEL_KEY\"\n\
             wire_api = \"responses\"\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
            model.url(),
            workspace.display()
        );
        std::fs::create_dir(home.path().join(".codex")).expect("a new home is empty");
        std::fs::write(home.path().join(".codex/config.toml"), configuration).expect("a new home can be written");
        home
    }

    fn new(environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut environment: Vec<_> = environment.iter().map(own).collect();
        environment.push(("HOME".to_owned(), directory.path().display().to_string()));
        Self { directory, environment }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// All that the agent's environment needs beside a search path.
    pub fn environment(&self) -> Vec<(&str, &str)> {
        self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }
}

/// Claude Code's program.
pub fn claude() -> Result<PathBuf, Missing> {
    find("claude", "2.1.197 (Claude Code)")
}

/// Codex's program.
pub fn codex() -> Result<PathBuf, Missing> {
    find("codex", "codex-cli 0.166.0")
}

fn find(name: &str, version: &str) -> Result<PathBuf, Missing> {
    let directory = directory()?;
    let program = directory.join("node_modules/.bin").join(name);
    if says(&program, version) {
        return Ok(program);
    }
    install(&directory, &program, version)?;
    if says(&program, version) {
        Ok(program)
    } else {
        Err(Missing(format!("{} does not say that it is {version}", program.display())))
    }
}

fn directory() -> Result<PathBuf, Missing> {
    if let Some(directory) = std::env::var_os("SAYSO_TEST_AGENTS") {
        return Ok(directory.into());
    }
    let home = std::env::var_os("HOME")
        .ok_or_else(|| Missing("HOME is not set, so there is nowhere to keep agents".to_owned()))?;
    Ok(Path::new(&home).join(".cache/sayso/agents"))
}

/// Whether a program runs here and says this version.
fn says(program: &Path, version: &str) -> bool {
    let output = Command::new(program)
        .arg("--version")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).lines().any(|line| line == version))
}

/// Installs all of them, unless another test did so while this one waited for its turn.
fn install(directory: &Path, program: &Path, version: &str) -> Result<(), Missing> {
    let failed = |what: &str, error: &dyn fmt::Display| Missing(format!("{what} in {}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(|error| failed("no place for agents", &error))?;
    let lock = File::create(directory.join(".lock")).map_err(|error| failed("no lock", &error))?;
    lock.lock().map_err(|error| failed("no lock", &error))?;
    if says(program, version) {
        return Ok(());
    }
    let output = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix"])
        .arg(directory)
        .args(PACKAGES)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed("npm does not run, so there are no agents", &error))?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr).lines().take(3).collect::<Vec<_>>().join(" ");
    Err(failed("npm could not install the agents", &told))
}
