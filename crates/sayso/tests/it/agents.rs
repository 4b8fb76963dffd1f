//! The real Claude Code and the real Codex under `sayso run`, headless, against a scripted model; a person decides elsewhere.

use std::path::{Path, PathBuf};

use sayso_review::{Answer, ChangeRecord, Comment, FileAnswer, HunkId};
use sayso_testkit::agents::{self, Home, Missing};
use sayso_testkit::model::{ModelServer, Turn};
use sayso_testkit::programs::run_with;
use serde_json::json;

use crate::agent_scene::{AgentScene, socket, subject};

const REASON: &str = "put it into the settings instead, please";

/// Twenty lines, and the same with the second and the last but one changed: two hunks.
pub(crate) fn lines(change: &[usize]) -> String {
    (1..=20).map(|line| format!("line {line}{}\n", if change.contains(&line) { " changed" } else { "" })).collect()
}

/// Denies with a reason. Approves the first hunk of the file with two hunks.
fn decide(_: &Path, record: &ChangeRecord) -> (Answer, Vec<Comment>) {
    let answer = match subject(record).as_str() {
        "hello.txt" => Answer::Approve,
        "twenty.txt" => {
            let hunks = FileAnswer::Hunks { hunks: [HunkId::whole(1)].into() };
            Answer::Files { files: [(record.files[0].path.clone(), hunks)].into(), reason: None }
        }
        _ => Answer::Deny { reason: Some(REASON.to_owned()) },
    };
    (answer, Vec::new())
}

struct Ran {
    scene: AgentScene,
    decided: Vec<String>,
    told: String,
}

/// Runs an agent under the gate. `None` if it is not installed.
fn run(
    agent: Result<PathBuf, Missing>,
    home: impl FnOnce(&ModelServer, &Path) -> Home,
    script: impl FnOnce(&Path) -> Vec<Turn>,
    arguments: &[&str],
) -> Option<Ran> {
    let scene = AgentScene::new(agent, home, &[("twenty.txt", &lines(&[]))])?;
    let (decided, output) = scene.run(arguments, script(scene.workspace.path()), decide);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    Some(Ran { scene, decided, told })
}

impl Ran {
    fn read(&self, path: &str) -> Option<String> {
        self.scene.read(path)
    }

    /// Approved parts are applied exactly, denied parts are not, and the model gets the reasons.
    fn check(&self, decided: &[&str]) {
        assert_eq!(self.decided, decided, "{}", self.told);
        assert_eq!(self.read("hello.txt").as_deref(), Some("hello\n"));
        assert_eq!(self.read("twenty.txt"), Some(lines(&[2])), "one hunk of two");
        assert_eq!(self.read("denied.txt"), None);
        assert_eq!(self.read("danger.txt"), None);
        let requests = self.scene.model.requests();
        let about = |text: &str| requests.iter().filter(|request| request.to_string().contains(text)).count();
        assert!(about(REASON) >= 2, "the reason reaches the model in its next request");
        // No engine outlives the run.
        assert_eq!(socket(self.scene.home.path()), None);
        assert!(self.told.contains("runs under the gate"), "{}", self.told);
    }

    /// All that the agent did can be taken back.
    fn undo(&self) {
        let log = self.scene.log();
        let session = log[0]["origin"]["session"].as_str().unwrap();
        let undo = self.scene.sayso(&["undo", "--session", session]);
        assert!(undo.status.success(), "{undo:?}");
        assert_eq!(self.read("twenty.txt"), Some(lines(&[])));
        assert_eq!(self.read("hello.txt"), None);
    }
}

#[test]
fn claude_code_applies_approved_part_and_gets_reasons() {
    let script = |root: &Path| {
        let path = |name: &str| root.join(name);
        vec![
            Turn::calls("Write", json!({"file_path": path("hello.txt"), "content": "hello\n"})),
            Turn::calls("Read", json!({"file_path": path("twenty.txt")})),
            Turn::calls(
                "Edit",
                json!({"file_path": path("twenty.txt"), "old_string": lines(&[]), "new_string": lines(&[2, 19])}),
            ),
            Turn::calls("Write", json!({"file_path": path("denied.txt"), "content": "no\n"})),
            Turn::calls("Bash", json!({"command": "touch danger.txt", "description": "makes a file"})),
            Turn::says("done"),
        ]
    };
    let arguments = ["-p", "do it", "--output-format", "json", "--permission-mode", "acceptEdits"];
    let home = |model: &ModelServer, _: &Path| Home::for_claude(model);
    let Some(ran) = run(agents::claude(), home, script, &arguments) else { return };
    ran.check(&["hello.txt", "twenty.txt", "denied.txt", "touch danger.txt"]);
    ran.undo();
}

#[test]
fn codex_applies_approved_part_and_gets_reasons() {
    let script = |_: &Path| {
        let add = |name: &str, line: &str| {
            let patch = format!("*** Begin Patch\n*** Add File: {name}\n+{line}\n*** End Patch\n");
            Turn::calls("apply_patch", patch)
        };
        let update = "*** Begin Patch\n*** Update File: twenty.txt\n@@\n line 1\n-line 2\n+line 2 changed\n line 3\n@@\n \
                      line 18\n-line 19\n+line 19 changed\n line 20\n*** End Patch\n";
        vec![
            add("hello.txt", "hello"),
            Turn::calls("apply_patch", update),
            add("denied.txt", "no"),
            Turn::calls("exec_command", json!({"cmd": "touch danger.txt"})),
            Turn::says("done"),
        ]
    };
    let arguments = ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "do it"];
    let Some(ran) = run(agents::codex(), Home::for_codex, script, &arguments) else { return };
    ran.check(&["hello.txt", "twenty.txt", "denied.txt", "touch danger.txt"]);
    ran.undo();
}

#[test]
fn codex_without_hook_trust_is_refused() {
    let workspace = tempfile::tempdir().unwrap();
    let program = workspace.path().join("codex");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let arguments = ["run", "--", program.to_str().unwrap(), "exec", "do it"];
    let output = run_with(workspace.path(), env!("CARGO_BIN_EXE_sayso"), &arguments, &[], b"");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("has not been told to trust") && told.contains("Hint:"), "{told}");
    // Trust of other hooks does not count: Codex has to trust each of sayso's hooks.
    let home = tempfile::tempdir().unwrap();
    let trusting = |events: &[&str], more: &str| {
        let state = |event: &&str| {
            format!("[hooks.state.\"/<session-flags>/config.toml:{event}:0:0\"]\ntrusted_hash = \"sha256:0\"\n{more}\n")
        };
        std::fs::write(home.path().join("config.toml"), events.iter().map(state).collect::<String>()).unwrap();
        let environment =
            [("CODEX_HOME", home.path().to_str().unwrap()), ("HOME", home.path().to_str().unwrap()), ("PATH", "/bin")];
        let output = run_with(workspace.path(), env!("CARGO_BIN_EXE_sayso"), &arguments, &environment, b"");
        assert_eq!(output.status.code(), Some(3), "it calls no hook: {output:?}");
        !String::from_utf8_lossy(&output.stderr).contains("has not been told to trust")
    };
    let all = [
        "session_start",
        "user_prompt_submit",
        "pre_tool_use",
        "post_tool_use",
        "stop",
        "subagent_stop",
        "session_end",
    ];
    assert!(trusting(&all, ""));
    assert!(!trusting(&all, "enabled = false"));
    assert!(!trusting(&["pre_tool_use"], ""));
    assert!(!trusting(&["permission_request"], "# pre_tool_use"));
}

#[test]
fn hook_without_engine_or_valid_input_denies() {
    let workspace = tempfile::tempdir().unwrap();
    let hook = |agent: &str, input: &[u8]| {
        run_with(workspace.path(), env!("CARGO_BIN_EXE_sayso"), &["hook", agent], &[], input)
    };
    let call = json!({
        "session_id": "s", "cwd": workspace.path(), "hook_event_name": "PreToolUse", "tool_name": "Write",
        "tool_input": {"file_path": workspace.path().join("a"), "content": "x"}, "tool_use_id": "t",
    });
    for agent in ["claude", "codex"] {
        let output = hook(agent, call.to_string().as_bytes());
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{output:?}");
        let reason = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
        assert!(reason.contains("no engine runs") && reason.contains("sayso run"), "{reason}");
        let output = hook(agent, b"{ not JSON");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("denied"), "{output:?}");
    }
    assert_eq!(hook("cursor", b"{}").status.code(), Some(2));
}

#[test]
fn missing_agent_is_not_announced() {
    let workspace = tempfile::tempdir().unwrap();
    let environment = [("PATH", "/nowhere"), ("HOME", workspace.path().to_str().unwrap())];
    for program in ["claude", "./claude"] {
        let arguments = ["run", "--", program, "-p", "do it"];
        let output = run_with(workspace.path(), env!("CARGO_BIN_EXE_sayso"), &arguments, &environment, b"");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(&format!("there is no program `{program}`")) && told.contains("Hint:"), "{told}");
        assert!(!told.contains("runs under the gate"), "{told}");
    }
}

#[test]
fn agent_version_prints_without_warning() {
    let workspace = tempfile::tempdir().unwrap();
    let program = workspace.path().join("claude");
    std::fs::write(&program, "#!/bin/sh\necho claude \"$@\"\nexit 7\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for word in ["--version", "-v", "--help", "-h"] {
        let arguments = ["run", "--", program.to_str().unwrap(), word];
        let output = run_with(workspace.path(), env!("CARGO_BIN_EXE_sayso"), &arguments, &[], b"");
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert_eq!((output.stdout, output.stderr), (format!("claude {word}\n").into_bytes(), Vec::new()));
    }
}
