//! One test binary for the program: it runs the real `sayso`, in a throw-away directory, with an empty environment.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests panic to fail, make files to compare, and say what they measured"
)]

mod agent_commands;
mod agent_conformance;
mod agent_headless;
mod agent_mcp;
mod agent_messages;
mod agent_processes;
mod agent_scene;
mod agents;
mod branch;
mod call;
mod command_line;
mod concurrent_clients;
mod config;
mod conformance;
mod conformance_rust;
mod controlling_terminal;
mod crash;
mod crash_restart;
mod diff_drawn;
mod diff_files;
mod diff_trees;
mod documents;
mod edited_since;
mod exec;
mod faults;
mod hidden;
mod history;
mod hook_events;
mod hooks;

mod live_env;
mod live_requests;
mod outside;
mod places;
mod policy;
mod propose;
mod pty;
mod request_agent;
mod request_editor;
mod request_redacted;
mod request_shown;
mod request_stands;
mod request_tls;
mod requests;
mod review;
mod review_on_a_terminal;
mod running;
mod self_approval;
mod self_approval_other;
mod served;
mod serving;

mod tool;
mod trust;
mod uncertain_part;
mod undo;

use std::path::PathBuf;
use std::process::Output;

use sayso_testkit::programs;
use tempfile::TempDir;

/// A throw-away directory to run in.
pub(crate) struct Scene {
    pub(crate) directory: TempDir,
    state: TempDir,
}

impl Scene {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let scene = Self { directory: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
        for (path, content) in files {
            scene.write(path, content);
        }
        scene
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    pub(crate) fn state_path(&self) -> PathBuf {
        self.state.path().to_owned()
    }

    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Writes the user's own configuration.
    pub(crate) fn configure(&self, text: &str) {
        let folder = self.state.path().join("config/sayso");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), text).unwrap();
    }

    /// All that a run knows of its surroundings.
    pub(crate) fn environment(&self) -> [(&'static str, String); 4] {
        let state = self.state.path().to_str().unwrap();
        [
            ("XDG_STATE_HOME", state.to_owned()),
            ("XDG_CONFIG_HOME", format!("{state}/config")),
            ("EDITOR", "sed -i s/EDIT/edited/".to_owned()),
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ]
    }

    pub(crate) fn run(&self, arguments: &[&str], input: &[u8]) -> Output {
        let environment = self.environment();
        let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
        programs::run_with(self.directory.path(), env!("CARGO_BIN_EXE_sayso"), arguments, &environment, input)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path(path)).unwrap()).into_owned()
    }

    /// The one JSON value that a run printed, and its exit code.
    pub(crate) fn json(&self, arguments: &[&str]) -> (serde_json::Value, i32) {
        let output = self.run(arguments, b"");
        let value = serde_json::from_slice(&output.stdout);
        (value.unwrap_or_else(|error| panic!("{error}: {output:?}")), output.status.code().unwrap())
    }

    /// Output and exit code of a run, with escapes as `\\e` and placeholders for directories.
    pub(crate) fn transcript(&self, arguments: &[&str]) -> String {
        self.dialogue(arguments, "")
    }

    /// A transcript of a run that asks.
    pub(crate) fn dialogue(&self, arguments: &[&str], answers: &str) -> String {
        let Output { status, stdout, stderr } = self.run(arguments, answers.as_bytes());
        let clean = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).replace('\x1b', "\\e");
            let text = text.replace(self.state.path().to_str().unwrap(), "[STATE]");
            text.replace(self.directory.path().to_str().unwrap(), "[DIR]")
        };
        let mut text = format!("$ sayso {}\n{}", arguments.join(" "), clean(&stdout));
        if !stderr.is_empty() {
            text.push_str(&format!("--- stderr\n{}", clean(&stderr)));
        }
        text.push_str(&format!("--- exit {}\n", status.code().unwrap()));
        text
    }
}
