//! Commands of the real Claude Code and the real Codex: each runs through `sayso call`, as it would without sayso.

use std::path::Path;

use sayso_review::{Answer, ChangeRecord, Comment};
use sayso_testkit::agents::{self, Home};
use sayso_testkit::model::{ModelServer, Turn};
use serde_json::{Value, json};

use crate::agent_scene::{AgentScene, subject};

const RULES: &str = "[[rule]]\nrun = ['cat', 'echo', 'wc', 'cd', 'pwd', 'exit']\nthen = 'allow'\n\
                     [[rule]]\nrun = 'rm'\nthen = 'deny'\n";
pub(crate) const CLAUDE: [&str; 6] = ["-p", "do it", "--output-format", "json", "--permission-mode", "acceptEdits"];
pub(crate) const CODEX: [&str; 5] =
    ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "do it"];

fn decide(_: &Path, record: &ChangeRecord) -> (Answer, Vec<Comment>) {
    let answer = match subject(record).as_str() {
        "printf original" => Answer::Command { command: "printf edited".to_owned() },
        command if command.contains("never") => Answer::Deny { reason: Some("not that".to_owned()) },
        _ => Answer::Approve,
    };
    (answer, Vec::new())
}

fn configure(scene: &AgentScene) {
    configure_with(scene, RULES);
}

pub(crate) fn configure_with(scene: &AgentScene, rules: &str) {
    let folder = scene.home.path().join(".config/sayso");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), rules).unwrap();
}

/// The results of the tool calls in the model's last request, in order.
pub(crate) fn results(scene: &AgentScene) -> Vec<String> {
    fn text(value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().map(|part| text(&part["text"])).collect(),
            other => other.to_string(),
        }
    }
    let mut results = Vec::new();
    for message in scene.last_request().as_array().unwrap() {
        if message["type"] == "function_call_output" {
            results.push(text(&message["output"]));
        }
        for part in message["content"].as_array().into_iter().flatten() {
            if part["type"] == "tool_result" {
                results.push(text(&part["content"]));
            }
        }
    }
    results
}

/// The exit code that the log has of a command.
pub(crate) fn code(scene: &AgentScene, command: &str) -> Value {
    let log = scene.log();
    let found =
        log.iter().find(|change| change["preview"]["script"].as_str().is_some_and(|script| script.contains(command)));
    found.unwrap_or_else(|| panic!("`{command}` is not in {log:#?}"))["exit_code"].clone()
}

#[test]
fn claude_code_runs_commands_through_call() {
    let home = |model: &ModelServer, _: &Path| Home::for_claude(model);
    let Some(scene) = AgentScene::new(agents::claude(), home, &[("a.txt", "alpha\n"), ("b.txt", "beta\n")]) else {
        return;
    };
    configure(&scene);
    std::fs::create_dir(scene.workspace.path().join("sub")).unwrap();
    std::fs::create_dir(scene.workspace.path().join(".claude")).unwrap();
    let settings = json!({ "permissions": { "deny": ["Bash(wc:*)"] } });
    std::fs::write(scene.workspace.path().join(".claude/settings.json"), settings.to_string()).unwrap();
    let bash = |command: &str| Turn::calls("Bash", json!({ "command": command, "description": "a command" }));
    let script = vec![
        bash("for f in *.txt; do cat \"$f\"; done"),
        bash("cd sub && pwd"),
        bash("pwd"),
        bash("cat ../a.txt; exit 3"),
        bash("printf original"),
        bash("grep NoNewPrivs /proc/self/status"),
        bash("echo never | tee x"),
        bash("rm ../a.txt"),
        bash("wc -c ../a.txt"),
        Turn::says("done"),
    ];
    let (decided, output) = scene.run(&CLAUDE, script, decide);
    let results = results(&scene);
    let sub = scene.workspace.path().canonicalize().unwrap().join("sub");
    assert_eq!(results[0], "alpha\nbeta", "{results:#?} {output:?}");
    assert_eq!(results[1], sub.to_str().unwrap(), "{results:#?}");
    assert_eq!(results[2], sub.to_str().unwrap(), "the directory is kept: {results:#?}");
    assert!(results[3].contains("alpha") && results[3].contains('3'), "{results:#?}");
    assert_eq!(results[4], "edited", "{results:#?}");
    assert_eq!(results[5], "NoNewPrivs:\t1", "{results:#?}");
    assert!(results[6].contains("not that"), "{results:#?}");
    assert!(results[7].contains("denied"), "{results:#?}");
    assert!(results[8].contains("Bash(wc:*)"), "{results:#?}");
    assert_eq!(decided, ["printf original", "grep NoNewPrivs /proc/self/status", "echo never | tee x"]);
    assert_eq!((code(&scene, "for f"), code(&scene, "exit 3")), (json!(0), json!(3)));
    assert!(scene.read("a.txt").is_some() && scene.read("sub/x").is_none());
}

#[test]
fn claude_code_snapshot_cannot_change_an_allowed_command() {
    let home = |model: &ModelServer, _: &Path| Home::for_claude(model);
    let Some(scene) = AgentScene::new(agents::claude(), home, &[("a.txt", "alpha\n")]) else { return };
    configure(&scene);
    let plant = "for f in ~/.claude/shell-snapshots/*; do printf 'cat() { echo planted; }\\n' >> \"$f\"; done";
    let bash = |command: &str| Turn::calls("Bash", json!({ "command": command, "description": "a command" }));
    let script = vec![bash(plant), bash("cat a.txt"), Turn::says("done")];
    scene.run(&CLAUDE, script, decide);
    assert_eq!(results(&scene)[1], "alpha");
}

#[test]
fn codex_runs_commands_through_call() {
    let files = [("a.txt", "alpha\n"), ("b.txt", "beta\n"), ("hostname", "inside\n")];
    let Some(scene) = AgentScene::new(agents::codex(), Home::for_codex, &files) else { return };
    configure(&scene);
    let exec = |arguments: Value| Turn::calls("exec_command", arguments);
    let script = vec![
        exec(json!({ "cmd": "for f in a.txt b.txt; do cat \"$f\"; done" })),
        exec(json!({ "cmd": "cat hostname", "workdir": "/etc" })),
        exec(json!({ "cmd": "printf original" })),
        exec(json!({ "cmd": "grep NoNewPrivs /proc/self/status; exit 4" })),
        exec(json!({ "cmd": "echo never | tee x" })),
        exec(json!({ "cmd": "rm a.txt" })),
        Turn::says("done"),
    ];
    let (decided, output) = scene.run(&CODEX, script, decide);
    let results = results(&scene);
    assert!(results[0].contains("alpha\nbeta"), "{results:#?} {output:?}");
    // The rules are about the workspace, and so is the file of that name.
    assert!(results[1].contains("outside the workspace") && !results[1].contains("inside"), "{results:#?}");
    assert!(results[2].contains("edited"), "{results:#?}");
    assert!(results[3].contains("NoNewPrivs:\t1") && results[3].contains("code 4"), "{results:#?}");
    assert!(results[4].contains("not that"), "{results:#?}");
    assert!(results[5].contains("denied"), "{results:#?}");
    assert_eq!(decided, ["printf original", "grep NoNewPrivs /proc/self/status; exit 4", "echo never | tee x"]);
    assert!(scene.read("a.txt").is_some() && scene.read("x").is_none());
}
