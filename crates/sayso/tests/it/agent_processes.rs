//! Long commands of the real Claude Code and the real Codex through `sayso call`: input to a running command, background, time-out.

use std::path::Path;

use sayso_review::{Answer, ChangeRecord, Comment};
use sayso_testkit::agents::{self, Home};
use sayso_testkit::model::{Answer as ModelAnswer, ModelServer, Received, Turn};
use serde_json::{Value, json};

use crate::agent_commands::{CLAUDE, CODEX, code, configure_with, results};
use crate::agent_scene::AgentScene;

const RULES: &str = "[[rule]]\nrun = ['./reads', './slow', 'sleep', 'echo', 'cat', 'exit', 'ls']\noptions = 'any'\nthen = 'allow'\n\
                     [[rule]]\nwrite = '**'\nthen = 'allow'\n";

/// Reads a line from each place where a program finds its terminal.
const READS: &str = "#!/bin/bash\nsleep 2\nread -r line < /dev/tty && echo \"GOT $line\"\nread -r line && echo \"GOT $line\"\n\
                     read -r line <&1 && echo \"GOT $line\"\necho OVER\nexit 7\n";

fn approve(_: &Path, _: &ChangeRecord) -> (Answer, Vec<Comment>) {
    (Answer::Approve, Vec::new())
}

fn write_program(scene: &AgentScene, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = scene.workspace.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The number behind the last `session ID` in a request of Codex.
fn session(received: &Received) -> Option<u64> {
    let result = received.tool_results().pop()?;
    let (_, rest) = result.text.rsplit_once("session ID ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Runs one command in Codex and sends `input` to it with `write_stdin` while it runs. Returns the results of both tools.
fn codex_writes(scene: &AgentScene, command: &Value, input: &str) -> Vec<String> {
    // The id of the process is in the request, so its answer comes only at the second attempt.
    scene.model.once(|received| session(received).is_some(), ModelAnswer::error(503, "not yet"));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut id = None;
            scene.model.wait_until(|received| {
                id = received.iter().find_map(session);
                id.is_some()
            });
            let arguments = json!({ "session_id": id, "chars": input, "yield_time_ms": 10_000 });
            scene.model.then(Turn::calls("write_stdin", arguments));
            scene.model.then(Turn::says("done"));
        });
        scene.run(&CODEX, vec![Turn::calls("exec_command", command.clone())], approve);
    });
    results(scene)
}

#[test]
fn codex_input_does_not_reach_an_allowed_command() {
    let Some(scene) = AgentScene::new(agents::codex(), Home::for_codex, &[]) else { return };
    configure_with(&scene, RULES);
    write_program(&scene, "reads", READS);
    let command = json!({ "cmd": "./reads", "tty": true, "yield_time_ms": 500 });
    let results = codex_writes(&scene, &command, "typed\n");
    // The terminal echoes the input, and no program reads it.
    assert!(results[1].contains("typed") && results[1].contains("/dev/tty: No such device or address"), "{results:#?}");
    assert!(results[1].contains("OVER") && !results[1].contains("GOT"), "{results:#?}");
    assert!(results[1].contains("code 7"), "{results:#?}");
    assert_eq!(code(&scene, "./reads"), json!(7));
}

#[test]
fn codex_polls_a_running_command() {
    let Some(scene) = AgentScene::new(agents::codex(), Home::for_codex, &[]) else { return };
    configure_with(&scene, RULES);
    let command = json!({ "cmd": "echo early; sleep 3; echo late; exit 5", "yield_time_ms": 500 });
    let results = codex_writes(&scene, &command, "");
    assert!(results[0].contains("early") && !results[0].contains("late"), "{results:#?}");
    assert!(results[1].contains("late") && results[1].contains("code 5"), "{results:#?}");
    assert_eq!(code(&scene, "echo late"), json!(5));
}

#[test]
fn claude_code_background_and_timeout_work() {
    let home = |model: &ModelServer, _: &Path| Home::for_claude(model);
    let Some(scene) = AgentScene::new(agents::claude(), home, &[]) else { return };
    configure_with(&scene, RULES);
    let bash = |command: &str, more: Value| {
        let mut input = json!({ "command": command, "description": "a command" });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Turn::calls("Bash", input)
    };
    let script = vec![
        bash("sleep 1; echo over > finished", json!({ "run_in_background": true })),
        bash("ls", json!({})),
        bash("sleep 3; cat finished", json!({})),
        bash("echo started > second; sleep 60; echo over > third", json!({ "timeout": 1000 })),
        bash("cat second; ls", json!({})),
        Turn::says("done"),
    ];
    scene.run(&CLAUDE, script, approve);
    let results = results(&scene);
    assert!(results[0].contains("background"), "{results:#?}");
    assert!(!results[1].contains("finished"), "it returns at once: {results:#?}");
    assert_eq!(results[2], "over", "{results:#?}");
    assert!(results[3].contains("timed out") || results[3].contains("background"), "{results:#?}");
    assert!(results[4].contains("started") && !results[4].contains("third"), "{results:#?}");
}
