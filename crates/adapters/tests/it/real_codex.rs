//! The real Codex, headless, against a scripted model.

use std::collections::BTreeMap;
use std::path::Path;

use sayso_adapters::Agent;
use sayso_adapters::hook::{HookEvent, Permission, Rewrite, codex_arguments, rewrite};
use sayso_testkit::agents::{self, Home};
use sayso_testkit::model::{ModelServer, Turn};
use sayso_testkit::programs::run_with;
use sayso_testkit::skip::skip;
use serde_json::{Value, json};

use super::recorder::Recorder;
use super::rewriting::{call, step};

/// State of Codex's trust in the hooks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    Given,
    NotGiven,
}

/// Runs Codex with scripted turns and hook outputs. Returns `None`, and skips the test, if Codex is not installed.
fn run(
    workspace: &Path,
    script: Vec<Turn>,
    answers: &BTreeMap<String, Value>,
    trust: Trust,
) -> Option<(ModelServer, Recorder)> {
    let program = match agents::codex() {
        Ok(program) => program,
        Err(missing) => {
            skip(missing);
            return None;
        }
    };
    let model = ModelServer::start(script);
    let home = Home::for_codex(&model, workspace);
    let recorder = Recorder::new(answers);
    let hooks = codex_arguments(&recorder.command());
    let mut arguments: Vec<&str> = hooks.iter().map(String::as_str).collect();
    arguments.extend(["exec", "--json", "--skip-git-repo-check"]);
    if trust == Trust::Given {
        // Applies to this run only.
        arguments.push("--dangerously-bypass-hook-trust");
    }
    arguments.push("do it");
    let output = run_with(workspace, program.to_str().unwrap(), &arguments, &home.environment(), b"");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(model.turns_left(), 0, "{output:?}");
    Some((model, recorder))
}

fn patch(path: &str, lines: &str) -> String {
    format!("*** Begin Patch\n*** Update File: {path}\n{lines}*** End Patch\n")
}

#[test]
fn codex_makes_the_compiled_content() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path().to_str().unwrap().to_owned();
    let many = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
    let pairs = [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\nb\na\nb\na\nb\na\nb\na\nb\n", "a\nb\na\nb\na\nb\na\nb\na\nX\n"),
        ("x\nx\nx\nx\nx\nx\nx\nx\nx\n", "x\nx\nx\nx\ny\nx\nx\nx\nx\nx\n"),
        ("a\nb", "a\nb\n"),
        ("a\nb", "A\nb\n"),
        ("a\n", ""),
        ("", "a\n"),
        ("\n\n", "\nX\n\n"),
        ("a\nb\n\n\n", "a\nb\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nX\r\nY\r\nc\r\n"),
        ("a\r\nb\nc\r\nd\n", "a\r\nb\nX\r\nd\n"),
        ("a\nb\n", "a  \nb\t\n  \n"),
        ("\u{feff}a\nb\n", "\u{feff}A\nb\n"),
        ("+a\n-b\n@@\n*** End Patch\n", "+a\n-B\n@@\n*** End Patch\n*** Update File: x\n"),
        (many, "A\nb\nc\nd\ne\nf\ng\nh\ni\nJ\n"),
        ("a\0\nb\n", "a\0\nB\u{2028}\u{b}\n"),
    ];
    let mut steps = Vec::new();
    for (index, (before, after)) in pairs.iter().enumerate() {
        let name = format!("{index}.txt");
        std::fs::write(workspace.path().join(&name), before).unwrap();
        steps.push(step(&name, Some(before.as_bytes()), Some(after.as_bytes())));
    }
    std::fs::write(workspace.path().join("gone"), "x").unwrap();
    steps.push(step("gone", Some(b"x"), None));
    steps.push(step("deep/new", None, Some(b"\n+n\n")));
    let original = "*** Begin Patch\n*** Add File: not-approved\n+x\n*** End Patch\n";
    let call = call(Agent::Codex, "apply_patch", json!({"command": original}));
    let Ok(Rewrite::Input(updated)) = rewrite(&call, &steps, &root) else { panic!("it is not what was approved") };
    let answers =
        BTreeMap::from([("call_1_0".to_owned(), call.permission_output(&Permission::AllowWith(updated), None))]);
    let script = vec![Turn::calls("apply_patch", original), Turn::says("bye")];
    let Some((model, _)) = run(workspace.path(), script, &answers, Trust::Given) else { return };
    let told = model.requests()[1]["input"].as_array().unwrap().last().unwrap().to_string();
    for step in &steps {
        let made = std::fs::read(workspace.path().join(step.path.as_str())).ok();
        assert_eq!(made.as_deref(), step.after.bytes(), "{}: {told}", step.path);
    }
    assert!(!workspace.path().join("not-approved").exists());
}

#[test]
fn codex_patch_matches_its_model() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path().to_str().unwrap().to_owned();
    let cases = [
        ("a\nb\nc\n", "@@\n a\n-b\n+X\n"),
        ("a\nb", "@@\n-b\n+X\n"),
        ("a\nb\nc", "@@\n-a\n+X\n"),
        ("a\nb\nc\n", "@@\n+X\n"),
        ("a\nb\nz\nb\n", "@@ z\n-b\n+X\n"),
        ("c\na\nb\nc\n", "@@\n c\n+X\n*** End of File\n"),
        ("x\nx\nx\nx\n", "@@\n-x\n+A\n@@\n-x\n+B\n"),
        ("a\r\nb\r\nc\r\n", "@@\n a\n-b\n+X\n"),
        ("a\r\nb\nc\nd\n", "@@\n-c\n+X\n"),
        ("a\nb\n", "@@\n-a\n-b\n"),
    ];
    let mut change = Turn::default();
    for (index, (before, lines)) in cases.iter().enumerate() {
        std::fs::write(workspace.path().join(format!("{index}.txt")), before).unwrap();
        change = change.and_calls("apply_patch", patch(&format!("{index}.txt"), lines));
    }
    let script = vec![change, Turn::says("bye")];
    let Some((model, _)) = run(workspace.path(), script, &BTreeMap::new(), Trust::Given) else { return };
    let told = model.requests().last().unwrap()["input"].to_string();
    for (index, (before, lines)) in cases.iter().enumerate() {
        let name = format!("{index}.txt");
        let made = std::fs::read(workspace.path().join(&name)).unwrap();
        assert_ne!(made, before.as_bytes(), "{name}: {told}");
        let call = call(Agent::Codex, "apply_patch", json!({"command": patch(&name, lines)}));
        let mut call = call;
        call.cwd.clone_from(&root);
        let rewritten = rewrite(&call, &[step(&name, Some(before.as_bytes()), Some(&made))], &root);
        assert_eq!(rewritten, Ok(Rewrite::AsIs), "{before:?} {lines:?} gave {:?}", String::from_utf8_lossy(&made));
    }
}

#[test]
fn codex_delivers_denials_and_events() {
    let workspace = tempfile::tempdir().unwrap();
    let script_patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: s.txt\n+s\n*** End Patch\nEOF\n";
    let script = vec![
        Turn::calls("apply_patch", "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch\n"),
        Turn::calls("exec_command", json!({"cmd": "touch b.txt"})),
        Turn::calls("exec_command", json!({"cmd": "touch c.txt"})),
        Turn::calls("exec_command", json!({"cmd": script_patch})),
        Turn::says("bye"),
    ];
    let any = call(Agent::Codex, "Bash", json!({"command": script_patch}));
    let deny = |reason: &str| any.permission_output(&Permission::Deny { reason: reason.to_owned() }, None);
    let root = workspace.path().to_str().unwrap().to_owned();
    let Ok(Rewrite::Input(updated)) = rewrite(&any, &[step("s.txt", None, Some(b"approved\n"))], &root) else {
        panic!("it is not what was approved")
    };
    let answers = BTreeMap::from([
        ("call_1_0".to_owned(), deny("line 1: not like this")),
        ("call_2_0".to_owned(), any.permission_output(&Permission::Ask, None)),
        ("call_3_0".to_owned(), any.permission_output(&Permission::Allow, Some("run, as asked"))),
        ("call_4_0".to_owned(), any.permission_output(&Permission::AllowWith(updated), None)),
    ]);
    let Some((model, recorder)) = run(workspace.path(), script, &answers, Trust::Given) else { return };
    let told = |request: usize| model.requests()[request]["input"].as_array().unwrap().last().unwrap().to_string();
    assert!(told(1).contains("line 1: not like this"), "{}", told(1));
    assert!(told(2).contains("must be asked"), "{}", told(2));
    assert!(model.requests()[3]["input"].to_string().contains("run, as asked"));
    let exists = |name: &str| workspace.path().join(name).exists();
    assert!(!exists("a.txt") && !exists("b.txt") && exists("c.txt"));
    assert_eq!(std::fs::read_to_string(workspace.path().join("s.txt")).unwrap(), "approved\n");

    let calls = recorder.calls(Agent::Codex);
    let count = |matches: fn(&HookEvent) -> bool| calls.iter().filter(|call| matches(&call.event)).count();
    assert_eq!(count(|event| matches!(event, HookEvent::SessionStart { source } if source == "startup")), 1);
    assert_eq!(count(|event| matches!(event, HookEvent::UserPromptSubmit { prompt } if prompt == "do it")), 1);
    assert_eq!(count(|event| matches!(event, HookEvent::PreToolUse { .. })), 4);
    assert_eq!(count(|event| matches!(event, HookEvent::PostToolUse { tool, .. } if tool == "Bash")), 1);
    assert_eq!(count(|event| matches!(event, HookEvent::Stop(_))), 1);
}

#[test]
fn codex_skips_untrusted_hooks() {
    let workspace = tempfile::tempdir().unwrap();
    let script = vec![Turn::calls("exec_command", json!({"cmd": "touch b.txt"})), Turn::says("bye")];
    let deny =
        call(Agent::Codex, "Bash", json!({})).permission_output(&Permission::Deny { reason: "no".to_owned() }, None);
    let answers = BTreeMap::from([("call_1_0".to_owned(), deny)]);
    let Some((_, recorder)) = run(workspace.path(), script, &answers, Trust::NotGiven) else { return };
    assert!(recorder.calls(Agent::Codex).is_empty() && workspace.path().join("b.txt").exists());
}
