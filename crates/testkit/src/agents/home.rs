//! Temporary homes of agents.

use std::path::Path;

use serde_json::{Value, json};

use super::Agent;
use crate::model::ModelServer;

/// Path of Codex's configuration below its home.
const CODEX_CONFIG: &str = ".codex/config.toml";
/// Path of Gemini CLI's settings below its home.
const GEMINI_SETTINGS: &str = ".gemini/settings.json";
/// Path of opencode's configuration below its home.
const OPENCODE_CONFIG: &str = ".config/opencode/opencode.json";

/// A temporary home that configures an agent for a scripted model, independent of the user's configuration.
#[derive(Debug)]
pub struct Home {
    directory: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

impl Home {
    /// Creates a home for Claude Code.
    pub fn for_claude(model: &ModelServer) -> Self {
        claude(&model.url())
    }

    /// Creates a home for Codex that trusts a workspace and disables Codex's sandbox.
    pub fn for_codex(model: &ModelServer, workspace: &Path) -> Self {
        codex(&Agent::Codex.base_url(&model.url()), workspace)
    }

    pub(super) fn of(agent: Agent, base_url: &str, workspace: &Path) -> Self {
        match agent {
            Agent::Claude => claude(base_url),
            Agent::Codex => codex(base_url, workspace),
            Agent::Gemini => gemini(base_url),
            Agent::Copilot => copilot(base_url),
            Agent::Opencode => opencode(base_url),
        }
    }

    fn new(environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut home = Self { directory, environment: Vec::new() };
        for (name, value) in environment {
            home.set(name, value);
        }
        let path = home.path().display().to_string();
        home.set("HOME", &path);
        // Some agents leave megabytes of temporary files.
        let temporary = home.path().join("tmp");
        std::fs::create_dir(&temporary).expect("a new home is empty");
        home.set("TMPDIR", &temporary.display().to_string());
        home
    }

    /// Sets a variable of the agent's environment.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Makes Codex try a WebSocket before plain HTTP.
    pub fn prefer_websockets(&self) {
        let configuration = self.read(CODEX_CONFIG);
        let responses = "wire_api = \"responses\"\n";
        assert!(configuration.contains(responses), "a home of Codex");
        self.write(
            CODEX_CONFIG,
            &configuration.replace(responses, &format!("{responses}supports_websockets = true\n")),
        );
    }

    /// Configures an agent for tests of long sessions: it compacts its history early and may start subagents.
    pub fn configure_for_long_sessions(&self, agent: Agent) {
        match agent {
            Agent::Codex => self.delegate_and_compact(),
            Agent::Gemini => self.compact_always(),
            Agent::Opencode => self.limit_context(),
            // They have a command for the one and do the other by default.
            Agent::Claude | Agent::Copilot => {}
        }
    }

    /// Lets Codex start subagents, and compact its history after a response that reports more than 5,000 tokens.
    fn delegate_and_compact(&self) {
        let configuration = self.read(CODEX_CONFIG);
        let (limit, features) = ("model_auto_compact_token_limit = 5000", "[features]\nmulti_agent_v2 = true");
        self.write(CODEX_CONFIG, &format!("{limit}\n{configuration}{features}\n"));
    }

    /// Lets Gemini CLI compact the history of every continued session.
    fn compact_always(&self) {
        let mut settings: Value = serde_json::from_str(&self.read(GEMINI_SETTINGS)).expect("settings are JSON");
        settings["model"] = json!({"compressionThreshold": 0.0001});
        self.write(GEMINI_SETTINGS, &settings.to_string());
    }

    /// Lets opencode compact its history after a response that reports more than 20,000 tokens.
    fn limit_context(&self) {
        let mut configuration: Value =
            serde_json::from_str(&self.read(OPENCODE_CONFIG)).expect("a configuration is JSON");
        configuration["provider"]["scripted"]["models"]["scripted-1"]["limit"] =
            json!({"context": 20_000, "output": 1_000});
        self.write(OPENCODE_CONFIG, &configuration.to_string());
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the agent's environment, without `PATH`.
    pub fn environment(&self) -> Vec<(&str, &str)> {
        self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path().join(path)).expect("a home of this agent")
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("a new home is empty");
        std::fs::write(path, content).expect("a new home can be written");
    }
}

fn claude(base_url: &str) -> Home {
    Home::new(&[
        ("ANTHROPIC_BASE_URL", base_url),
        ("ANTHROPIC_API_KEY", "sk-ant-made-up"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ])
}

fn codex(base_url: &str, workspace: &Path) -> Home {
    let home = Home::new(&[("SCRIPTED_MODEL_KEY", "made-up")]);
    // Codex offers `apply_patch` only to models that it knows.
    let configuration = format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\n\
         sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\
         [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{base_url}\"\nenv_key = \"SCRIPTED_MODEL_KEY\"\n\
         wire_api = \"responses\"\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
        workspace.display()
    );
    home.write(CODEX_CONFIG, &configuration);
    home
}

fn gemini(base_url: &str) -> Home {
    let home = Home::new(&[
        ("GOOGLE_GEMINI_BASE_URL", base_url),
        ("GEMINI_API_KEY", "made-up"),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    ]);
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
    });
    home.write(GEMINI_SETTINGS, &settings.to_string());
    home
}

fn copilot(base_url: &str) -> Home {
    Home::new(&[
        ("COPILOT_OFFLINE", "true"),
        ("COPILOT_PROVIDER_BASE_URL", base_url),
        ("COPILOT_PROVIDER_TYPE", "openai"),
        ("COPILOT_PROVIDER_API_KEY", "made-up"),
        ("COPILOT_PROVIDER_WIRE_API", "completions"),
        ("COPILOT_PROVIDER_TRANSPORT", "http"),
        ("COPILOT_MODEL", "gpt-4.1"),
    ])
}

fn opencode(base_url: &str) -> Home {
    let home = Home::new(&[("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_AUTOUPDATE", "1")]);
    let configuration = json!({
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": false,
        "share": "disabled",
        "model": "scripted/scripted-1",
        "small_model": "scripted/scripted-1",
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": base_url, "apiKey": "made-up"},
            "models": {"scripted-1": {"name": "scripted"}},
        }},
        "permission": {"edit": "allow", "bash": "allow"},
    });
    home.write(OPENCODE_CONFIG, &configuration.to_string());
    home
}
