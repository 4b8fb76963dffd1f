//! A hook for the real agents that writes down what it is handed and answers what a test wants.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sayso_adapters::hook::{Agent, HookCall};
use serde_json::Value;

/// The hook's directory: its program, its answers by the name of the call, and what it was handed.
pub(crate) struct Recorder {
    directory: tempfile::TempDir,
}

impl Recorder {
    /// One that answers these calls, and says nothing to any other.
    pub(crate) fn new(answers: &BTreeMap<String, Value>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (call, answer) in answers {
            std::fs::write(directory.path().join(call), answer.to_string()).unwrap();
        }
        // One file for each call: hooks may run at the same time.
        let program = "cd \"$(dirname \"$0\")\"\nevent=$(mktemp event.XXXXXX)\ncat > \"$event\"\n\
                       id=$(sed -n 's/.*\"hook_event_name\":\"PreToolUse\".*\"tool_use_id\":\"\\([^\"]*\\)\".*/\\1/p' \"$event\")\n\
                       if [ -n \"$id\" ] && [ -e \"$id\" ]; then cat \"$id\"; fi\n";
        std::fs::write(directory.path().join("hook.sh"), program).unwrap();
        Self { directory }
    }

    /// The command that an agent is to start.
    pub(crate) fn command(&self) -> String {
        format!("sh {}/hook.sh", self.directory.path().display())
    }

    /// Where a file of the test can lie.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What the hook was handed, all of which must be understood, in no order.
    pub(crate) fn calls(&self, agent: Agent) -> Vec<HookCall> {
        let is_event = |path: &Path| path.file_name().unwrap().to_string_lossy().starts_with("event.");
        let files = std::fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let read = |path: PathBuf| HookCall::parse(agent, &std::fs::read(path).unwrap()).unwrap();
        files.filter(|path| is_event(path)).map(read).collect()
    }
}
