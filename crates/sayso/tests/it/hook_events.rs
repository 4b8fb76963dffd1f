//! `sayso hook` through the turns of an agent: what it lets through, what it checks afterwards, and what the agent hears.

use std::path::Path;
use std::time::{Duration, Instant};

use sayso_api::client::{Client, PreviewDetail, RetryBudget};
use sayso_review::{
    Answer, ChangeRecord, Comment, CommentSide, Decider, RememberAs, RuleScope, Ruling, Verdict, WsPath,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::Scene;
use crate::hooks::{answer, begin, call, decision, journal};
use crate::served::{LONG, Served};

/// An agent whose hooks are called by hand, and a person beside it.
struct Talk {
    scene: Scene,
    served: Served,
    runtime: Runtime,
}

impl Talk {
    fn new(configuration: &str) -> Self {
        let scene = Scene::new(&[("a.txt", b"before\n")]);
        scene.configure(configuration);
        let served = Served::start(&scene, &[]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { scene, served, runtime }
    }

    fn root(&self) -> &Path {
        self.scene.directory.path()
    }

    fn client(&self) -> Client {
        self.served.client(RetryBudget::Limited(LONG))
    }

    /// Sends an event with additional fields to a hook, and returns its output.
    fn event(&self, name: &str, more: &Value) -> Value {
        let mut event = json!({"session_id": "s", "cwd": self.root(), "hook_event_name": name});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        answer(begin(&self.scene, &journal(&self.served), &[], &event))
    }

    /// A call of Write before or after it, as `more` says besides.
    fn write(&self, event: &str, content: &str, more: &Value) -> Value {
        let mut fields =
            call(self.root(), "Write", &json!({"file_path": self.scene.path("a.txt"), "content": content}));
        fields["tool_response"] = json!({});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields.as_object_mut().unwrap().remove("hook_event_name");
        self.event(event, &fields)
    }

    /// Lets the agent write, as its tool does.
    fn writes(&self, content: &str, more: &Value) -> Value {
        let said = self.write("PreToolUse", content, more);
        assert_eq!(decision(&said).0, "allow", "{said}");
        self.scene.write("a.txt", content.as_bytes());
        self.write("PostToolUse", content, more)
    }

    /// Returns the pending change.
    fn waiting(&self) -> Vec<ChangeRecord> {
        let pending = self.runtime.block_on(self.client().list_pending(None, PreviewDetail::Omitted)).unwrap();
        pending.into_iter().map(|progress| progress.record).collect()
    }

    fn denies(&self, record: &ChangeRecord, reason: &str, comments: Vec<Comment>) {
        let answer = Answer::Deny { reason: Some(reason.to_owned()) };
        let verdict = Verdict { preview: record.preview, answer, comments, message: None, by: Decider::PERSON };
        self.runtime.block_on(self.client().decide(record.change, verdict, None, PreviewDetail::Omitted)).unwrap();
    }

    /// Returns the activity and the parent of a session.
    fn session(&self, name: &str) -> Option<(bool, Option<String>)> {
        let sessions = self.runtime.block_on(self.client().list_sessions(10)).unwrap();
        let found = sessions.into_iter().find(|session| session.session == name);
        found.map(|session| (session.active, session.parent))
    }
}

/// Invariant 1: what an agent writes by itself is looked at afterwards.
#[test]
fn unapproved_write_of_tool_is_reported_and_undoable() {
    let talk = Talk::new("[[rule]]\nwrite = '**'\nthen = 'allow'\n");
    let silent = talk.writes("approved\n", &json!({}));
    assert_eq!(silent, json!({}), "it wrote what was approved");
    let other = json!({"tool_use_id": "other"});
    let said = talk.write("PreToolUse", "approved again\n", &other);
    assert_eq!(decision(&said).0, "allow", "{said}");
    talk.scene.write("a.txt", b"something else\n");
    let said = talk.write("PostToolUse", "approved again\n", &other);
    let told = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    assert!(told.contains("`a.txt` is not what was approved"), "{said}");
    let undone = talk.scene.run(&["undo"], b"");
    assert!(undone.status.success(), "{undone:?}");
    assert_eq!(talk.scene.read("a.txt"), "approved\n");
}

#[test]
fn later_change_is_reviewed_at_turn_end() {
    let talk = Talk::new("[[rule]]\nwrite = '**'\nthen = 'later'\n");
    talk.event("SessionStart", &json!({"source": "startup"}));
    talk.event("UserPromptSubmit", &json!({"prompt": "do it"}));
    talk.writes("first\n", &json!({}));
    assert_eq!(talk.waiting().len(), 0, "the turn goes on");
    assert_eq!(talk.event("Stop", &json!({})), json!({}));
    let waiting = talk.waiting();
    let [review] = &waiting[..] else { panic!("{waiting:?}") };
    assert!(review.is_review(), "{review:?}");
    // The next turn is another.
    talk.event("UserPromptSubmit", &json!({"prompt": "go on"}));
    talk.writes("second\n", &json!({"tool_use_id": "u"}));
    talk.event("Stop", &json!({}));
    let turns: Vec<_> = talk.waiting().into_iter().map(|record| record.origin.turn.unwrap()).collect();
    assert_eq!(turns.len(), 2);
    assert_ne!(turns[0], turns[1]);
    // What is refused is taken back, and the agent hears why when it next listens.
    let last = talk.waiting().pop().unwrap();
    talk.denies(&last, "not like this", Vec::new());
    assert_eq!(talk.scene.read("a.txt"), "first\n");
    let said = talk.event("UserPromptSubmit", &json!({"prompt": "and now"}));
    assert!(said.to_string().contains("not like this"), "{said}");
    let said = talk.event("UserPromptSubmit", &json!({"prompt": "once more"}));
    assert_eq!(said, json!({}), "it is told once");
}

#[test]
fn line_comment_reaches_the_agent() {
    let talk = Talk::new("");
    let input = json!({"file_path": talk.scene.path("a.txt"), "content": "before\nafter\n"});
    let hook = begin(&talk.scene, &journal(&talk.served), &[], &call(talk.root(), "Write", &input));
    let start = Instant::now();
    let record = loop {
        if let Some(record) = talk.waiting().pop() {
            break record;
        }
        assert!(start.elapsed() < LONG, "nothing waits");
        std::thread::sleep(Duration::from_millis(5));
    };
    let (path, side) = (WsPath::parse("a.txt").unwrap(), CommentSide::Proposed);
    let comment = Comment { path, line: 2, side, text: "say before what".to_owned() };
    talk.denies(&record, "not yet", vec![comment]);
    let said = answer(hook);
    let (permission, reason) = decision(&said);
    assert_eq!(permission, "deny", "{said}");
    assert!(reason.contains("not yet") && reason.contains("say before what") && reason.contains('2'), "{reason}");
}

#[test]
fn hook_denies_when_engine_ends() {
    let talk = Talk::new("");
    let input = json!({"file_path": talk.scene.path("a.txt"), "content": "after\n"});
    let hook = begin(&talk.scene, &journal(&talk.served), &[], &call(talk.root(), "Write", &input));
    // It has noted that it waits.
    let (start, note) = (Instant::now(), format!("{}-", hook.id()));
    let noted = || {
        let notes = std::fs::read_dir(talk.scene.state_path().join("sayso/agents"));
        notes.into_iter().flatten().flatten().any(|file| file.file_name().to_string_lossy().starts_with(&note))
    };
    while !noted() {
        assert!(start.elapsed() < LONG, "nothing waits");
        std::thread::sleep(Duration::from_millis(5));
    }
    talk.served.kill();
    let said = answer(hook);
    let (permission, reason) = decision(&said);
    assert_eq!(permission, "deny", "{said}");
    assert!(reason.contains("it ended while this waited"), "{reason}");
}

/// A subagent's session is a part of its agent's, and ends with it; what it did at once is reviewed then.
#[test]
fn subagent_changes_are_reviewed_at_its_stop() {
    let talk = Talk::new("[[rule]]\nwrite = '**'\nthen = 'later'\n");
    talk.event("SessionStart", &json!({"source": "startup"}));
    talk.event("UserPromptSubmit", &json!({"prompt": "do it"}));
    let subagent = json!({"agent_id": "helper"});
    talk.writes("by the helper\n", &subagent);
    assert_eq!(talk.session("s/helper"), Some((true, Some("s".to_owned()))));
    assert_eq!(talk.waiting().len(), 0, "it goes on");
    assert_eq!(talk.event("SubagentStop", &subagent), json!({}));
    assert_eq!(talk.session("s/helper"), Some((false, Some("s".to_owned()))));
    assert_eq!(talk.session("s"), Some((true, None)), "its agent goes on");
    let waiting = talk.waiting();
    let [review] = &waiting[..] else { panic!("{waiting:?}") };
    assert!(review.is_review() && review.origin.session.as_deref() == Some("s/helper"), "{review:?}");
    // The engine no longer listens, but its supervisor does.
    talk.denies(review, "we have that already", Vec::new());
    assert_eq!(talk.scene.read("a.txt"), "before\n");
    let said = talk.event("UserPromptSubmit", &json!({"prompt": "and now"}));
    assert!(said.to_string().contains("we have that already"), "{said}");
}

/// The message about an unreadable file has no content, and the approved edit runs as the agent asked.
#[test]
fn approved_edit_of_unreadable_file_goes_ahead() {
    let rules = "[[rule]]\nread = 'a.txt'\nthen = 'deny'\n[[rule]]\nwrite = '**'\nthen = 'allow'\n";
    let talk = Talk::new(rules);
    let silent = talk.writes("after\n", &json!({}));
    assert_eq!(silent, json!({}), "it wrote what was approved");
}

/// The number and status of the newest change.
fn newest(talk: &Talk) -> Value {
    let log = talk.scene.run(&["log", "--json"], b"");
    let log: Value = serde_json::from_slice(&log.stdout).unwrap();
    log[0].clone()
}

const ALLOW: &str = "[[rule]]\nwrite = '**'\nthen = 'allow'\n";

#[test]
fn failed_tool_call_is_logged_and_not_undone() {
    let talk = Talk::new(ALLOW);
    talk.write("PreToolUse", "approved\n", &json!({}));
    talk.scene.write("a.txt", b"by the user\n");
    let said = talk.write("PostToolUseFailure", "approved\n", &json!({"error": "the file has changed"}));
    assert_eq!(said, json!({}), "the agent knows it from its tool");
    let change = newest(&talk);
    assert_eq!(change["status"], "failed", "{change:#}");
    assert_eq!(change["reason"], "the agent's tool failed: the file has changed");
    let undone = talk.scene.run(&["undo", "1"], b"");
    assert!(!undone.status.success(), "{undone:?}");
    assert_eq!(talk.scene.read("a.txt"), "by the user\n");
}

#[test]
fn failed_tool_call_that_wrote_is_logged_as_applied() {
    let talk = Talk::new(ALLOW);
    talk.write("PreToolUse", "approved\n", &json!({}));
    talk.scene.write("a.txt", b"approved\n");
    let said = talk.write("PostToolUseFailure", "approved\n", &json!({"error": "the disk is slow"}));
    assert!(said.to_string().contains("Although the tool failed, `a.txt` was changed as approved."), "{said}");
    assert_eq!(newest(&talk)["status"], "applied");
    assert!(talk.scene.run(&["undo"], b"").status.success());
    assert_eq!(talk.scene.read("a.txt"), "before\n");
}

#[test]
fn tool_call_without_effect_is_logged_as_failed_and_told() {
    let talk = Talk::new(ALLOW);
    talk.write("PreToolUse", "approved\n", &json!({}));
    let said = talk.write("PostToolUse", "approved\n", &json!({}));
    assert!(said.to_string().contains("`a.txt` was not changed"), "{said}");
    assert_eq!(newest(&talk)["status"], "failed");
}

/// Codex calls no hook for a failed patch.
#[test]
fn unreported_tool_call_is_logged_from_disk() {
    let talk = Talk::new(ALLOW);
    talk.event("UserPromptSubmit", &json!({"prompt": "do it"}));
    for (content, on_disk, status) in
        [("one\n", "one\n", "applied"), ("two\n", "one\n", "failed"), ("three\n", "by the user\n", "failed")]
    {
        talk.write("PreToolUse", content, &json!({}));
        talk.scene.write("a.txt", on_disk.as_bytes());
        talk.event("Stop", &json!({}));
        assert_eq!(newest(&talk)["status"], status, "{content}");
        talk.event("UserPromptSubmit", &json!({"prompt": "go on"}));
    }
}

/// A verdict whose hook is gone is told with the next prompt, and not recorded as told before.
#[test]
fn verdict_without_a_hook_is_told_with_the_next_prompt() {
    let talk = Talk::new("");
    talk.event("SessionStart", &json!({"source": "startup"}));
    let input = json!({"file_path": talk.scene.path("a.txt"), "content": "before\nafter\n"});
    let mut hook = begin(&talk.scene, &journal(&talk.served), &[], &call(talk.root(), "Write", &input));
    let start = Instant::now();
    let record = loop {
        if let Some(record) = talk.waiting().pop() {
            break record;
        }
        assert!(start.elapsed() < LONG, "nothing waits");
        std::thread::sleep(Duration::from_millis(5));
    };
    // Stopped, so that it neither prints nor withdraws.
    rustix::process::kill_process(rustix::process::Pid::from_child(&hook), rustix::process::Signal::STOP).unwrap();
    talk.denies(&record, "not yet", Vec::new());
    hook.kill().unwrap();
    hook.wait().unwrap();
    let shown = |talk: &Talk| String::from_utf8(talk.scene.run(&["show", "1"], b"").stdout).unwrap();
    assert!(shown(&talk).contains("The agent has not been told yet:"), "{}", shown(&talk));
    let said = talk.event("UserPromptSubmit", &json!({"prompt": "and now"}));
    let told = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    assert_eq!(told, "About change 1: user denied this tool call: not yet", "{said}");
    assert!(shown(&talk).contains("The agent was told:"), "{}", shown(&talk));
    assert_eq!(talk.event("UserPromptSubmit", &json!({"prompt": "again"})), json!({}), "it is told once");
}

/// The effect of a tool that is not known is guessed from its arguments, and no content of it is kept.
#[test]
fn unknown_tool_that_writes_a_file_is_let_through() {
    let talk = Talk::new(
        "[[rule]]\ntool = 'mcp__files__write_file'\nthen = 'allow'\n[[rule]]\nwrite = '**'\nthen = 'allow'\n",
    );
    let input = json!({"path": talk.scene.path("a.txt"), "content": "by a tool\n"});
    let call = call(talk.root(), "mcp__files__write_file", &input);
    let said = answer(begin(&talk.scene, &journal(&talk.served), &[], &call));
    assert_eq!(decision(&said).0, "allow", "{said}");
}

/// "For the rest of the session" on a command that writes covers what it writes.
#[test]
fn session_rule_of_a_command_that_writes_is_not_asked_again() {
    let talk = Talk::new("");
    talk.event("SessionStart", &json!({"source": "startup"}));
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = elsewhere.path().join("out.txt");
    for (number, command) in
        ["touch a.txt && echo x > b.txt 2>/dev/null".to_owned(), format!("cp a.txt {}", outside.display())]
            .iter()
            .enumerate()
    {
        let calls = |name: &str| {
            let mut call = call(talk.root(), "Bash", &json!({"command": command}));
            call["tool_use_id"] = format!("{name}{number}").into();
            begin(&talk.scene, &journal(&talk.served), &[], &call)
        };
        let hook = calls("first");
        let start = Instant::now();
        let record = loop {
            if let Some(record) = talk.waiting().pop() {
                break record;
            }
            assert!(start.elapsed() < LONG, "nothing waits");
            std::thread::sleep(Duration::from_millis(5));
        };
        let (preview, comments) = (record.preview, Vec::new());
        let verdict = Verdict { preview, answer: Answer::Approve, comments, message: None, by: Decider::PERSON };
        let meant = RememberAs { scope: RuleScope::Session, ruling: Ruling::Allow };
        talk.runtime
            .block_on(talk.client().decide(record.change, verdict, Some(meant), PreviewDetail::Omitted))
            .unwrap();
        assert_eq!(decision(&answer(hook)).0, "allow");
        // The same command again, without a verdict.
        let said = answer(calls("again"));
        assert_eq!(decision(&said).0, "allow", "{command}: {said}");
    }
}

/// A rule without effect is rejected; the verdict counts once.
#[test]
fn rule_that_would_not_stick_is_refused() {
    let talk = Talk::new("");
    let input = json!({"command": "touch sayso.toml"});
    let hook = begin(&talk.scene, &journal(&talk.served), &[], &call(talk.root(), "Bash", &input));
    let start = Instant::now();
    let record = loop {
        if let Some(record) = talk.waiting().pop() {
            break record;
        }
        assert!(start.elapsed() < LONG, "nothing waits");
        std::thread::sleep(Duration::from_millis(5));
    };
    let verdict = Verdict {
        preview: record.preview,
        answer: Answer::Approve,
        comments: Vec::new(),
        message: None,
        by: Decider::PERSON,
    };
    let meant = RememberAs { scope: RuleScope::Always, ruling: Ruling::Allow };
    let client = talk.client();
    let refused =
        talk.runtime.block_on(client.decide(record.change, verdict, Some(meant), PreviewDetail::Omitted)).unwrap_err();
    assert!(refused.to_string().contains("(built-in rule: sayso.toml)"), "{refused}");
    talk.denies(&record, "no", Vec::new());
    assert_eq!(decision(&answer(hook)).0, "deny");
}

/// "Always" on a command that writes: the rule is shown before it is made, and covers the same command.
#[test]
fn always_on_a_command_that_writes_is_not_asked_again() {
    let talk = Talk::new("");
    let calls = |name: &str, command: &str| {
        let mut call = call(talk.root(), "Bash", &json!({"command": command}));
        call["tool_use_id"] = name.into();
        begin(&talk.scene, &journal(&talk.served), &[], &call)
    };
    let waits = || {
        let start = Instant::now();
        while talk.waiting().is_empty() {
            assert!(start.elapsed() < LONG, "nothing waits");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let hook = calls("first", "cp a.txt b.txt; touch d.txt");
    waits();
    let said = talk.scene.dialogue(&["review"], "a\ny\n");
    let rule = said.lines().find(|line| line.contains("rule of a and s: allow ")).unwrap_or_else(|| panic!("{said}"));
    for part in ["run `cp a.txt b.txt $`", "run `touch d.txt $`", "write `b.txt`", "write `d.txt`"] {
        assert!(rule.contains(part), "{rule}");
    }
    assert_eq!(decision(&answer(hook)).0, "allow");
    let file = std::fs::read_to_string(talk.scene.state_path().join("config/sayso/config.toml")).unwrap();
    assert!(file.contains("cp a.txt b.txt $") && file.contains("\"d.txt\""), "{file}");
    let again = answer(calls("again", "cp a.txt b.txt; touch d.txt"));
    assert_eq!(decision(&again).0, "allow", "{again}");
    // Other words, and other files, are asked about.
    let other = calls("other", "cp a.txt e.txt");
    waits();
    let record = talk.waiting().pop().unwrap();
    talk.denies(&record, "no", Vec::new());
    assert_eq!(decision(&answer(other)).0, "deny");
}
