//! A hook for the real agents that records its inputs and prints prepared outputs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sayso_adapters::Agent;
use sayso_adapters::hook::HookCall;
use serde_json::Value;

/// Directory with the hook's program, its outputs by call id, and its recorded inputs.
pub(crate) struct Recorder {
    directory: tempfile::TempDir,
}

impl Recorder {
    /// Creates a hook that prints these outputs by call id, and prints no output for other calls.
    pub(crate) fn new(answers: &BTreeMap<String, Value>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (call, answer) in answers {
            std::fs::write(directory.path().join(call), answer.to_string()).unwrap();
        }
        // One file per input: hooks may run concurrently.
        let program = "cd \"$(dirname \"$0\")\"\nevent=$(mktemp event.XXXXXX)\ncat > \"$event\"\n\
                       id=$(sed -n 's/.*\"hook_event_name\":\"PreToolUse\".*\"tool_use_id\":\"\\([^\"]*\\)\".*/\\1/p' \"$event\")\n\
                       if [ -n \"$id\" ] && [ -e \"$id\" ]; then cat \"$id\"; fi\n";
        std::fs::write(directory.path().join("hook.sh"), program).unwrap();
        Self { directory }
    }

    /// Returns the hook's command line.
    pub(crate) fn command(&self) -> String {
        format!("sh {}/hook.sh", self.directory.path().display())
    }

    /// Returns a path for another file of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Parses all recorded inputs, in no particular order.
    pub(crate) fn calls(&self, agent: Agent) -> Vec<HookCall> {
        let is_event = |path: &Path| path.file_name().unwrap().to_string_lossy().starts_with("event.");
        let files = std::fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let read = |path: PathBuf| HookCall::parse(agent, &std::fs::read(path).unwrap()).unwrap();
        files.filter(|path| is_event(path)).map(read).collect()
    }
}
