//! The messages that a verdict has for a model, read from the request that the scripted model receives from the real agent.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use sayso_review::{Answer, ChangeRecord, Comment, CommentSide, FileAnswer, HunkId};
use sayso_testkit::agents::{self, Home};
use sayso_testkit::model::{ModelServer, Turn};
use serde_json::{Value, json};

use crate::agent_scene::{AgentScene, Person, subject};
use crate::agents::lines;

const PARTIAL: &str = "Accepted: hunk 1 of 2. Rejected, and not applied:";
const COMMENT: &str = "give this file a better name";
const EDITED_FILE: &str = "with edits by the user. How it differs from the proposal:";
const EDITED_COMMAND: &str = "`echo original` was approved with an edit by the user; what runs is:";
const ALL: [&str; 4] = [PARTIAL, COMMENT, EDITED_FILE, EDITED_COMMAND];

/// Approves one hunk of two, edits a file and a command, and comments on a line of another file.
fn decide(_: &Path, record: &ChangeRecord) -> (Answer, Vec<Comment>) {
    let about = subject(record);
    let file =
        |answer: FileAnswer| Answer::Files { files: [(record.files[0].path.clone(), answer)].into(), reason: None };
    match about.as_str() {
        "twenty.txt" => (file(FileAnswer::Hunks { hunks: [HunkId::whole(1)].into() }), Vec::new()),
        "edited.txt" => (file(FileAnswer::EditedText { text: "by the user\n".to_owned() }), Vec::new()),
        "commented.txt" => {
            let (path, side) = (record.files[0].path.clone(), CommentSide::Proposed);
            (Answer::Approve, vec![Comment { path, line: 1, side, text: COMMENT.to_owned() }])
        }
        "echo original" => (Answer::Command { command: "echo edited".to_owned() }, Vec::new()),
        _ => (Answer::Approve, Vec::new()),
    }
}

/// The text that the model has got, with its escapes undone.
fn heard(messages: &Value) -> String {
    fn collect(value: &Value, text: &mut String) {
        match value {
            Value::String(one) => text.push_str(&format!("{one}\n")),
            Value::Array(all) => all.iter().for_each(|one| collect(one, text)),
            Value::Object(all) => all.values().for_each(|one| collect(one, text)),
            _ => {}
        }
    }
    let mut text = String::new();
    collect(messages, &mut text);
    text
}

/// Each message is in the request after its call and in every later one, once.
fn check_requests(requests: &[Value], after: &[(usize, &str)]) {
    for (call, text) in after {
        for (number, request) in requests.iter().enumerate() {
            let messages = if request["messages"].is_array() { &request["messages"] } else { &request["input"] };
            let expected = usize::from(number >= *call);
            assert_eq!(heard(messages).matches(text).count(), expected, "request {number}, `{text}`: {messages:#}");
        }
    }
}

/// Checks that `show` reports a delivered message for exactly the changes that have one.
fn check_history(scene: &AgentScene) {
    let log = scene.log();
    for change in &log {
        let number = change["change"].to_string();
        let shown = String::from_utf8_lossy(&scene.sayso(&["show", &number]).stdout).into_owned();
        let told = change["agent_message"].as_str().unwrap_or_default();
        if ALL.iter().any(|text| told.contains(text)) {
            assert_eq!(change["delivery"], "delivered", "{change:#}");
            assert!(shown.contains("The agent was told:"), "{shown}");
        } else {
            assert!(!shown.contains("The agent was told:"), "{shown}");
        }
    }
}

fn claude_script(root: &Path) -> Vec<Turn> {
    let path = |name: &str| root.join(name);
    let edit = json!({"file_path": path("twenty.txt"), "old_string": lines(&[]), "new_string": lines(&[2, 19])});
    vec![
        Turn::calls("Read", json!({"file_path": path("twenty.txt")})),
        Turn::calls("Edit", edit),
        Turn::calls("Write", json!({"file_path": path("edited.txt"), "content": "by the agent\n"})),
        Turn::calls("Write", json!({"file_path": path("commented.txt"), "content": "content\n"})),
        Turn::calls("Bash", json!({"command": "echo original", "description": "says a word"})),
        Turn::says("done"),
    ]
}

const CLAUDE: [&str; 6] = ["-p", "do it", "--output-format", "json", "--permission-mode", "acceptEdits"];

fn claude(files: &[(&str, &str)]) -> Option<AgentScene> {
    AgentScene::new(agents::claude(), |model: &ModelServer, _: &Path| Home::for_claude(model), files)
}

#[test]
fn claude_code_gets_partial_edited_and_commented_approvals() {
    let Some(scene) = claude(&[("twenty.txt", &lines(&[]))]) else { return };
    scene.run(&CLAUDE, claude_script(scene.workspace.path()), decide);
    assert_eq!(scene.read("twenty.txt"), Some(lines(&[2])));
    assert_eq!(scene.read("edited.txt").as_deref(), Some("by the user\n"));
    let after = [(2, PARTIAL), (3, EDITED_FILE), (4, COMMENT), (5, EDITED_COMMAND)];
    check_requests(&scene.model.requests(), &after);
    check_history(&scene);
    // The conversation keeps them when it goes on.
    let session = scene.log()[0]["origin"]["session"].as_str().unwrap().to_owned();
    for arguments in [&["--resume", &session][..], &["--continue"]] {
        scene.run(&[&CLAUDE[..], arguments].concat(), vec![Turn::says("still here")], decide);
        let messages = scene.last_request();
        let text = heard(&messages);
        assert!(ALL.iter().all(|told| text.matches(told).count() == 1), "{arguments:?}: {messages:#}");
    }
}

#[test]
fn claude_code_gets_edit_notice_around_plan_mode() {
    let Some(scene) = claude(&[("twenty.txt", &lines(&[]))]) else { return };
    let bash = || Turn::calls("Bash", json!({"command": "echo original", "description": "says a word"}));
    let plan = ["-p", "do it", "--output-format", "json", "--permission-mode", "plan"];
    scene.run(&plan, vec![bash(), Turn::says("planned")], decide);
    check_requests(&scene.model.requests(), &[(1, EDITED_COMMAND)]);
    let script = claude_script(scene.workspace.path()).into_iter().take(2).chain([Turn::says("done")]).collect();
    scene.run(&[&CLAUDE[..], &["--continue"]].concat(), script, decide);
    let text = heard(&scene.last_request());
    assert!(text.contains(EDITED_COMMAND) && text.contains(PARTIAL), "{text}");
    check_history(&scene);
}

#[test]
fn claude_code_gets_edit_notice_after_clear() {
    let Some(scene) = claude(&[]) else { return };
    let bash = || Turn::calls("Bash", json!({"command": "echo original", "description": "says a word"}));
    for turn in [bash(), Turn::says("done"), bash(), Turn::says("done")] {
        scene.model.then(turn);
    }
    let person = Person::sits_down(scene.home.path(), scene.workspace.path(), decide);
    let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["run", "--", scene.agent.to_str().unwrap(), "-p", "--input-format", "stream-json"])
        .args(["--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"])
        .current_dir(scene.workspace.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(scene.home.environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    for prompt in ["first", "/clear", "second"] {
        let message = json!({"type": "user", "message": {"role": "user", "content": prompt}});
        writeln!(stdin, "{message}").unwrap();
        let is_result = |line: &str| line.contains("\"type\":\"result\"");
        assert!(output.by_ref().map_while(Result::ok).any(|line| is_result(&line)), "no answer to {prompt}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(person.goes().len(), 2);
    let requests = scene.model.requests();
    assert_eq!(requests.len(), 4);
    check_requests(&requests[..2], &[(1, EDITED_COMMAND)]);
    check_requests(&requests[2..], &[(1, EDITED_COMMAND)]);
    let sessions: Vec<Value> = scene.log().iter().map(|change| change["origin"]["session"].clone()).collect();
    assert_ne!(sessions[0], sessions[1], "a cleared conversation is another session");
    check_history(&scene);
}

const CODEX: [&str; 5] = ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "do it"];

#[test]
fn codex_gets_partial_edited_and_commented_approvals() {
    let Some(scene) = AgentScene::new(agents::codex(), Home::for_codex, &[("twenty.txt", &lines(&[]))]) else { return };
    let add = |name: &str, line: &str| {
        Turn::calls("apply_patch", format!("*** Begin Patch\n*** Add File: {name}\n+{line}\n*** End Patch\n"))
    };
    let update = "*** Begin Patch\n*** Update File: twenty.txt\n@@\n line 1\n-line 2\n+line 2 changed\n line 3\n@@\n \
                  line 18\n-line 19\n+line 19 changed\n line 20\n*** End Patch\n";
    let script = vec![
        Turn::calls("apply_patch", update),
        add("edited.txt", "by the agent"),
        add("commented.txt", "content"),
        Turn::calls("exec_command", json!({"cmd": "echo original"})),
        Turn::says("done"),
    ];
    scene.run(&CODEX, script, decide);
    assert_eq!(scene.read("twenty.txt"), Some(lines(&[2])));
    assert_eq!(scene.read("edited.txt").as_deref(), Some("by the user\n"));
    let after = [(1, PARTIAL), (2, EDITED_FILE), (3, COMMENT), (4, EDITED_COMMAND)];
    check_requests(&scene.model.requests(), &after);
    check_history(&scene);
    // The conversation keeps them when it goes on.
    let resume = [&CODEX[..4], &["resume", "--last", "go on"]].concat();
    scene.run(&resume, vec![Turn::says("still here")], decide);
    let messages = scene.last_request();
    let text = heard(&messages);
    assert!(ALL.iter().all(|told| text.matches(told).count() == 1), "{messages:#}");
}

/// Claude Code's tool refuses to write a file that changed after the agent read it.
#[test]
fn claude_code_refused_write_is_logged_as_failed() {
    fn edits_meanwhile(workspace: &Path, _: &ChangeRecord) -> (Answer, Vec<Comment>) {
        // Once, while the first preview waits.
        let file = workspace.join("twenty.txt");
        if !std::fs::read_to_string(&file).unwrap().contains("mine") {
            std::fs::write(&file, lines(&[]).replace("line 10\n", "line 10 mine\n")).unwrap();
        }
        (Answer::Approve, Vec::new())
    }
    let Some(scene) = claude(&[("twenty.txt", &lines(&[]))]) else { return };
    let mine = lines(&[]).replace("line 10\n", "line 10 mine\n");
    let script = claude_script(scene.workspace.path()).into_iter().take(2).chain([Turn::says("done")]).collect();
    scene.run(&CLAUDE, script, edits_meanwhile);
    let answer = heard(&scene.last_request());
    assert!(answer.contains("changed since it was last read"), "{answer}");
    assert!(answer.contains("nothing was written: the agent's tool failed"), "{answer}");
    assert_eq!(scene.read("twenty.txt").as_ref(), Some(&mine), "the tool wrote nothing");
    let log = scene.log();
    let wrote = |change: &&Value| change["status"] == "applied" && change["files"] != json!([]);
    assert_eq!(log.iter().find(wrote), None);
    let failed = log.iter().find(|change| change["status"] == "failed").unwrap_or_else(|| panic!("{log:#?}"));
    assert!(failed["reason"].as_str().unwrap().contains("changed since it was last read"), "{failed:#}");
    let undo = scene.sayso(&["undo", &failed["change"].to_string()]);
    assert!(!undo.status.success(), "{undo:?}");
    assert_eq!(scene.read("twenty.txt"), Some(mine), "undo leaves the user's edit");
}
