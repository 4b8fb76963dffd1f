//! Files outside the workspace: what rules of the user let an agent do there, and what the log says of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sayso_api::client::{PreviewDetail, RetryBudget};
use sayso_review::{Answer, ChangeRecord, Comment, Decider, Verdict};
use sayso_testkit::agents::{self, Home};
use sayso_testkit::model::{ModelServer, Turn};
use serde_json::{Value, json};

use crate::Scene;
use crate::agent_scene::AgentScene;
use crate::hooks::{answer, begin, call, decision, journal};
use crate::served::{LONG, Served};

/// A workspace, an engine and a folder that is not in the workspace.
struct Outside {
    scene: Scene,
    served: Served,
    folder: tempfile::TempDir,
}

impl Outside {
    /// With rules in which `OUT` stands for the folder.
    fn new(rules: &str) -> Self {
        let scene = Scene::new(&[("a.txt", b"inside\n")]);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("there.txt"), "before\n").unwrap();
        scene.configure(&rules.replace("OUT", folder.path().to_str().unwrap()));
        let served = Served::start(&scene, &[]);
        Self { scene, served, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn hook(&self, directory: &Path, tool: &str, input: &Value) -> std::process::Child {
        begin(&self.scene, &journal(&self.served), &[], &call(directory, tool, input))
    }

    fn asks(&self, tool: &str, input: &Value) -> Value {
        answer(self.hook(self.scene.directory.path(), tool, input))
    }

    fn writes(&self, name: &str) -> Value {
        self.asks("Write", &json!({"file_path": self.path(name), "content": "after\n"}))
    }

    fn waiting(&self) -> ChangeRecord {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = self.served.client(RetryBudget::Limited(LONG));
        let start = Instant::now();
        loop {
            let pending = runtime.block_on(client.list_pending(None, PreviewDetail::Omitted)).unwrap();
            if let Some(progress) = pending.into_iter().next() {
                return progress.record;
            }
            assert!(start.elapsed() < LONG, "nothing waits");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn decides(&self, record: &ChangeRecord, answer: Answer) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let verdict =
            Verdict { preview: record.preview, answer, comments: Vec::new(), message: None, by: Decider::PERSON };
        let client = self.served.client(RetryBudget::Limited(LONG));
        runtime.block_on(client.decide(record.change, verdict, None, PreviewDetail::Omitted)).unwrap();
    }

    /// The changes of the log, newest first.
    fn log(&self) -> Vec<Value> {
        let log = self.scene.run(&["log", "--json"], b"");
        serde_json::from_slice(&log.stdout).unwrap_or_else(|error| panic!("{error}: {log:?}"))
    }
}

#[test]
fn outside_write_without_a_rule_is_asked_and_logged() {
    let outside = Outside::new("");
    let input = json!({"file_path": outside.path("there.txt"), "content": "after\n"});
    // Another change comes first, so that this one has another number.
    outside.asks("Read", &json!({"file_path": outside.scene.path("a.txt")}));
    let hook = outside.hook(outside.scene.directory.path(), "Write", &input);
    let record = outside.waiting();
    outside.decides(&record, Answer::Deny { reason: Some("not there".to_owned()) });
    let said = answer(hook);
    assert_eq!(decision(&said), ("deny", "user denied this tool call: not there"), "{said}");
    let log = outside.log();
    assert_eq!((&log[0]["change"], &log[0]["status"]), (&json!(2), &json!("denied")), "{:#}", log[0]);
    assert!(log[0].to_string().contains("there.txt"), "{:#}", log[0]);
    assert!(log[0]["ruling"]["rule"].as_str().unwrap().contains("outside the workspace"), "{:#}", log[0]);
}

#[test]
fn outside_read_is_allowed_by_a_rule_of_the_user() {
    let outside = Outside::new("[[rule]]\nread = 'OUT/there.txt'\nthen = 'allow'\n");
    let said = outside.asks("Read", &json!({"file_path": outside.path("there.txt")}));
    assert_eq!(decision(&said).0, "allow", "{said}");
    // The shell is under the same rule.
    let command = format!("cat {}", outside.path("there.txt").display());
    outside.scene.configure(&format!(
        "[[rule]]\nread = '{}'\nthen = 'allow'\n[[rule]]\nrun = 'cat'\nthen = 'allow'\n",
        outside.path("there.txt").display()
    ));
    let said = outside.asks("Bash", &json!({"command": command}));
    assert_eq!(decision(&said).0, "allow", "{said}");
    // A pattern of the shell could stand for more than it reads.
    for command in [format!("cat {}/*", outside.folder.path().display()), "cat ~/x".to_owned()] {
        let hook = outside.hook(outside.scene.directory.path(), "Bash", &json!({"command": command}));
        outside.decides(&outside.waiting(), Answer::Deny { reason: None });
        assert_eq!(decision(&answer(hook)).0, "deny", "{command}");
    }
}

#[test]
fn undo_names_outside_write_that_stays() {
    let outside = Outside::new("[[rule]]\nwrite = 'OUT/**'\nthen = 'allow'\n");
    let said = outside.writes("there.txt");
    assert_eq!(decision(&said).0, "allow", "{said}");
    std::fs::write(outside.path("there.txt"), "after\n").unwrap();
    let input = json!({"file_path": outside.path("there.txt"), "content": "after\n"});
    let mut after = call(outside.scene.directory.path(), "Write", &input);
    (after["hook_event_name"], after["tool_response"]) = ("PostToolUse".into(), json!({}));
    answer(begin(&outside.scene, &journal(&outside.served), &[], &after));
    let log = outside.log();
    assert_eq!(log[0]["status"], "applied", "{:#}", log[0]);
    let shown = String::from_utf8(outside.scene.run(&["show", "1"], b"").stdout).unwrap();
    assert!(shown.contains("cannot be put back") && shown.contains("there.txt"), "{shown}");
    let undone = outside.scene.run(&["undo"], b"");
    assert_eq!(undone.status.code(), Some(4), "{undone:?}");
    let told = String::from_utf8_lossy(&undone.stdout).into_owned();
    assert!(told.contains("outside the workspace") && told.contains("there.txt"), "{told}");
    assert_eq!(std::fs::read_to_string(outside.path("there.txt")).unwrap(), "after\n");
}

/// A failed tool has not written, outside the workspace either.
#[test]
fn failed_outside_write_is_logged_as_failed() {
    let outside = Outside::new("[[rule]]\nwrite = 'OUT/**'\nthen = 'allow'\n");
    outside.writes("there.txt");
    let input = json!({"file_path": outside.path("there.txt"), "content": "after\n"});
    let mut after = call(outside.scene.directory.path(), "Write", &input);
    (after["hook_event_name"], after["error"]) = ("PostToolUseFailure".into(), "no".into());
    answer(begin(&outside.scene, &journal(&outside.served), &[], &after));
    assert_eq!(outside.log()[0]["status"], "failed", "{:#}", outside.log()[0]);
}

#[test]
fn link_out_of_an_allowed_folder_is_asked_about() {
    let outside = Outside::new("[[rule]]\nwrite = 'OUT/**'\nthen = 'allow'\n");
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), outside.path("link")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("new"), outside.path("dangling")).unwrap();
    for name in ["link/x", "dangling"] {
        let input = json!({"file_path": outside.path(name), "content": "after\n"});
        let hook = outside.hook(outside.scene.directory.path(), "Write", &input);
        outside.decides(&outside.waiting(), Answer::Deny { reason: None });
        assert_eq!(decision(&answer(hook)).0, "deny", "{name}");
    }
}

#[test]
fn own_records_of_sayso_are_refused_and_logged() {
    let outside = Outside::new("[[rule]]\nwrite = '/**'\nthen = 'allow'\n[[rule]]\nread = '/**'\nthen = 'allow'\n");
    let own = journal(&outside.served).join("journal.db");
    for (tool, input) in [
        ("Write", json!({"file_path": own, "content": "x"})),
        ("Read", json!({"file_path": own})),
        ("Write", json!({"file_path": outside.scene.state_path().join("config/sayso/config.toml"), "content": ""})),
    ] {
        let said = outside.asks(tool, &input);
        assert_eq!(decision(&said).0, "deny", "{said}");
        assert_eq!(outside.log()[0]["status"], "denied");
    }
    assert_eq!(outside.log().len(), 3);
}

#[test]
fn refusal_before_a_preview_is_logged_with_its_reason() {
    let outside = Outside::new("");
    let said = answer(outside.hook(outside.folder.path(), "Bash", &json!({"command": "ls"})));
    assert_eq!(decision(&said).0, "deny", "{said}");
    let log = outside.log();
    assert_eq!((log.len(), &log[0]["status"]), (1, &json!("denied")), "{log:#?}");
    assert!(log[0]["agent_message"].as_str().unwrap().contains("outside the workspace"), "{:#}", log[0]);
    // A client that is no hook gets its error, and the refusal is in the log all the same.
    outside.scene.write("outside.json", br#"[{"path":"../x","operation":"delete"}]"#);
    let proposed = outside.scene.run(&["propose", "outside.json"], b"");
    assert!(!proposed.status.success(), "{proposed:?}");
    let log = outside.log();
    assert_eq!((log.len(), &log[0]["status"]), (2, &json!("denied")), "{log:#?}");
    let shown = String::from_utf8(outside.scene.run(&["log"], b"").stdout).unwrap();
    assert_eq!(shown.matches("denied").count(), 2, "{shown}");
}

#[test]
fn workspace_rule_with_outside_path_is_an_error() {
    for (key, pattern) in [("read", "/etc/hostname"), ("write", "~/notes/**")] {
        let file = format!(
            "# mine\n[[rule]]\nrun = 'ls'\nthen = 'ask'\n[[rule]]\n{key} = ['a', '{pattern}']\nthen = 'allow'\n"
        );
        let scene = Scene::new(&[("sayso.toml", file.as_bytes())]);
        let output = scene.run(&["policy", "explain", "write", "a"], b"");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("sayso.toml, line 6") && told.contains(pattern), "{told}");
        assert!(told.contains("~/.config/sayso/config.toml"), "{told}");
    }
}

fn approve_nothing(_: &Path, _: &ChangeRecord) -> (Answer, Vec<Comment>) {
    (Answer::Deny { reason: Some("nobody was to be asked".to_owned()) }, Vec::new())
}

/// The real Claude Code reads what a rule names, and keeps its plans, unasked.
#[test]
fn claude_code_reads_and_plans_outside_without_a_question() {
    let home = |model: &ModelServer, _: &Path| Home::for_claude(model);
    let Some(scene) = AgentScene::new(agents::claude(), home, &[]) else { return };
    let notes = scene.home.path().join("notes.txt");
    std::fs::write(&notes, "a note outside\n").unwrap();
    let config = scene.home.path().join(".config/sayso");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "[[rule]]\nread = '~/notes.txt'\nthen = 'allow'\n").unwrap();
    let added = tempfile::tempdir().unwrap();
    std::fs::write(added.path().join("lib.txt"), "a line of a library\n").unwrap();
    let plan = scene.home.path().join(".claude/plans/plan.md");
    let script = vec![
        Turn::calls("Read", json!({"file_path": notes})),
        Turn::calls("Write", json!({"file_path": plan, "content": "the plan\n"})),
        Turn::calls("Read", json!({"file_path": added.path().join("lib.txt")})),
        Turn::says("done"),
    ];
    let folder = added.path().to_str().unwrap();
    let arguments = ["-p", "do it", "--output-format", "json", "--permission-mode", "acceptEdits", "--add-dir", folder];
    let (decided, _) = scene.run(&arguments, script, approve_nothing);
    assert_eq!(decided, Vec::<String>::new());
    let heard = scene.last_request().to_string();
    assert!(heard.contains("a note outside") && heard.contains("a line of a library"), "{heard}");
    // Claude Code itself writes the plan of its plan mode only, without a hook.
    let log = scene.log();
    let planned = log.iter().find(|change| change.to_string().contains("plan.md")).unwrap();
    assert_eq!(planned["ruling"]["ruling"], "allow", "{planned:#}");
    assert_eq!((planned["status"] == "applied", planned["status"] == "failed"), (plan.exists(), !plan.exists()));
}
