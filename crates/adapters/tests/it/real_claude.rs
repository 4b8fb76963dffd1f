//! The real Claude Code, headless, against a scripted model.

use std::collections::BTreeMap;
use std::path::Path;

use sayso_adapters::Agent;
use sayso_adapters::hook::{HookCall, HookEvent, Permission, Rewrite, claude_settings, rewrite};
use sayso_testkit::agents::{self, Home};
use sayso_testkit::model::{ModelServer, Turn};
use sayso_testkit::programs::run_with;
use sayso_testkit::skip::skip;
use serde_json::{Value, json};

use super::recorder::Recorder;
use super::rewriting::{call, step};

/// Hooks that a run registers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hooks {
    All,
    /// Only `PreToolUse` of file tools, to save time.
    BeforeChanges,
}

/// Runs Claude Code with scripted turns and hook outputs. Returns `None`, and skips the test, if Claude Code is not installed.
fn run(
    workspace: &Path,
    script: Vec<Turn>,
    answers: &BTreeMap<String, Value>,
    hooks: Hooks,
) -> Option<(ModelServer, Recorder)> {
    let program = match agents::claude() {
        Ok(program) => program,
        Err(missing) => {
            skip(missing);
            return None;
        }
    };
    let model = ModelServer::start(script);
    let home = Home::for_claude(&model);
    let recorder = Recorder::new(answers);
    let settings = recorder.path("settings.json");
    let mut content = claude_settings(&recorder.command());
    if hooks == Hooks::BeforeChanges {
        let mut before = content["hooks"]["PreToolUse"].take();
        before[0]["matcher"] = "Edit|Write".into();
        content["hooks"] = json!({"PreToolUse": before});
    }
    std::fs::write(&settings, content.to_string()).unwrap();
    let settings = settings.display().to_string();
    let arguments =
        ["-p", "do it", "--output-format", "json", "--settings", &settings, "--permission-mode", "acceptEdits"];
    let output = run_with(workspace, program.to_str().unwrap(), &arguments, &home.environment(), b"");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(model.turns_left(), 0, "{output:?}");
    Some((model, recorder))
}

fn edit(path: &Path, old: &str, new: &str) -> Value {
    json!({"file_path": path, "old_string": old, "new_string": new, "replace_all": false})
}

/// Pairs of original and approved content.
fn approved() -> Vec<(Vec<u8>, Vec<u8>)> {
    let wide =
        |text: &str| [&[0xFF, 0xFE][..], &text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()].concat();
    let repeated = |line: &str, count: usize| line.repeat(count);
    let texts = [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\nb\nc\nb\n", "a\nb\nc\nB\n"),
        ("x\nx\nx\nx\n", "x\nx\ny\nx\nx\n"),
        ("a\nb", "a\nc"),
        ("a\nb\n", "a\nb"),
        ("a\nb\nc", "a\nc"),
        ("a\nxb\nc\n", "a\nx\nc\n"),
        ("b\nb", "b\n"),
        ("a\n", ""),
        ("a\r\nb\r\nc\r\n", "a\r\nX\r\nY\r\nc\r\n"),
        ("a\r\nb\r\n", "a\r\nb"),
        ("a\nb\r\nc\n", "A\nb\r\nc\n"),
        ("a\nb\n", "a  \nb\t\n\n  "),
        ("“a”\nb\n", "\"a\"\nb\n"),
        ("a\n\"b\"\n", "a\n“b”\n"),
        ("\u{feff}a\nb\n", "\u{feff}A\nb\n"),
        ("a $& b\n", "$& $1 $$ $`\n"),
        ("a\rb\nc\n", "a\rb\nC\n"),
        ("a\0b\nc\n", "a\0b\nC\n"),
    ];
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> =
        texts.iter().map(|(before, after)| (before.as_bytes().to_vec(), after.as_bytes().to_vec())).collect();
    pairs.push((wide("a\r\nb\r\n"), wide("a\r\né\r\n")));
    // CRLF prevails in the first 4096 bytes, but not in the first 4096 characters.
    let uneven = repeated("éé\r\n", 600) + &repeated("b\n", 2000);
    pairs.push((uneven.clone().into_bytes(), (uneven + "more\n").into_bytes()));
    pairs
}

/// Returns the text that `Edit` of Claude Code searches.
fn seen(bytes: &[u8]) -> String {
    let text = if bytes.starts_with(&[0xFF, 0xFE]) {
        let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        String::from_utf16(&units).unwrap()
    } else {
        String::from_utf8(bytes.to_vec()).unwrap()
    };
    text.replace("\r\n", "\n")
}

#[test]
fn claude_makes_the_compiled_content() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path().to_str().unwrap().to_owned();
    let (mut read, mut change, mut answers) = (Turn::default(), Turn::default(), BTreeMap::new());
    let pairs = approved();
    for (index, (before, after)) in pairs.iter().enumerate() {
        for tool in ["Edit", "Write"] {
            let name = format!("{tool}{index}.txt");
            let path = workspace.path().join(&name);
            std::fs::write(&path, before).unwrap();
            read = read.and_calls("Read", json!({"file_path": path}));
            let input = match tool {
                "Edit" => edit(&path, &seen(before), "not approved\n"),
                _ => json!({"file_path": path, "content": "not approved\n"}),
            };
            let call = call(Agent::Claude, tool, input.clone());
            let rewritten = rewrite(&call, &[step(&name, Some(before), Some(after))], &root).unwrap();
            let Rewrite::Input(updated) = rewritten else { panic!("{name} is not what was approved") };
            change = change.and_calls(tool, input);
            answers.insert(
                format!("toolu_2_{}", answers.len()),
                call.permission_output(&Permission::AllowWith(updated), None),
            );
        }
    }
    let script = vec![read, change, Turn::says("bye")];
    let Some((model, _)) = run(workspace.path(), script, &answers, Hooks::BeforeChanges) else { return };
    let told = model.requests().last().unwrap()["messages"].to_string();
    for (index, (before, after)) in pairs.iter().enumerate() {
        for tool in ["Edit", "Write"] {
            let made = std::fs::read(workspace.path().join(format!("{tool}{index}.txt"))).unwrap();
            assert!(
                made == *after,
                "{tool} {index} of {:?}: {told}",
                String::from_utf8_lossy(&before[..before.len().min(100)])
            );
        }
    }
}

/// Returns a text in which CRLF prevails by the 4096th character if `start` has three characters.
fn at_the_edge(start: &str) -> String {
    format!("{start}{}{}", "a\n".repeat(818), "b\r\n".repeat(900))
}

#[test]
fn claude_edit_matches_its_model() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path().to_str().unwrap().to_owned();
    let cases = [
        ("a\nb\nc\n", "b", "B"),
        ("a\nb\nc\n", "b", ""),
        ("a\nxb\nc\n", "b", ""),
        ("a\nb\nc\n", "b\n", ""),
        ("a\nb", "b", ""),
        ("a\r\nb\r\nc\r\n", "a\nb", "a\nX"),
        ("a\r\nb\nc\r\nd\r\n", "c", "X\nY"),
        ("a\nb\nc\r\nd\n", "b", "X\nY"),
        ("a\r\nb\nc", "b", "X"),
        ("a\r\r\nb\r\nc\r\n", "b", "X"),
        ("a\r\r\nb\nc\nd\n", "b", "X"),
        ("\u{feff}a\nb\n", "b", "X"),
        ("", "", "hello\n"),
        // The last character inside the sample that decides the line ending, and the first outside.
        (&at_the_edge("..x"), "x", "y"),
        (&at_the_edge("...x"), "x", "y"),
    ];
    let (mut read, mut change) = (Turn::default(), Turn::default());
    for (index, (before, old, new)) in cases.iter().enumerate() {
        let path = workspace.path().join(format!("{index}.txt"));
        std::fs::write(&path, before).unwrap();
        read = read.and_calls("Read", json!({"file_path": path}));
        change = change.and_calls("Edit", edit(&path, old, new));
    }
    let script = vec![read, change, Turn::says("bye")];
    let Some((model, _)) = run(workspace.path(), script, &BTreeMap::new(), Hooks::BeforeChanges) else { return };
    let told = model.requests().last().unwrap()["messages"].to_string();
    for (index, (before, old, new)) in cases.iter().enumerate() {
        let name = format!("{index}.txt");
        let made = std::fs::read(workspace.path().join(&name)).unwrap();
        assert!(made != before.as_bytes(), "{name}: {told}");
        let call = call(Agent::Claude, "Edit", edit(&workspace.path().join(&name), old, new));
        let rewritten = rewrite(&call, &[step(&name, Some(before.as_bytes()), Some(&made))], &root);
        assert_eq!(
            rewritten,
            Ok(Rewrite::AsIs),
            "{before:?} {old:?} {new:?} gave {:?}",
            String::from_utf8_lossy(&made)
        );
    }
}

#[test]
fn claude_delivers_denials_messages_and_events() {
    let workspace = tempfile::tempdir().unwrap();
    let file = workspace.path().join("a.txt");
    let script = vec![
        Turn::calls("Write", json!({"file_path": file, "content": "x\n"}))
            .and_calls("Bash", json!({"command": "touch b.txt"})),
        Turn::calls("Bash", json!({"command": "touch c.txt; exit 3", "description": "fails"})),
        Turn::calls("Agent", json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"})),
        Turn::calls("Write", json!({"file_path": file, "content": "from the subagent\n"})),
        Turn::says("the subagent is done"),
        Turn::says("bye"),
    ];
    let any = call(Agent::Claude, "Write", json!({}));
    let deny = |reason: &str| any.permission_output(&Permission::Deny { reason: reason.to_owned() }, None);
    let answers = BTreeMap::from([
        ("toolu_1_0".to_owned(), deny("line 3: use tabs\nand no trailing spaces")),
        ("toolu_1_1".to_owned(), deny("not now")),
        ("toolu_2_0".to_owned(), any.permission_output(&Permission::Allow, Some("run, as asked"))),
        ("toolu_4_0".to_owned(), any.permission_output(&Permission::Allow, None)),
    ]);
    let Some((model, recorder)) = run(workspace.path(), script, &answers, Hooks::All) else { return };
    let results = model.requests()[1]["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    assert_eq!(
        (&results[0]["content"], &results[1]["content"]),
        (&json!("line 3: use tabs\nand no trailing spaces"), &json!("not now"))
    );
    assert!(model.requests()[2]["messages"].to_string().contains("run, as asked"));
    assert!(!workspace.path().join("b.txt").exists() && workspace.path().join("c.txt").exists());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "from the subagent\n");

    let calls = recorder.calls(Agent::Claude);
    assert!(calls.iter().all(|call| call.session == calls[0].session && Path::new(&call.cwd) == workspace.path()));
    let count = |matches: fn(&HookCall) -> bool| calls.iter().filter(|call| matches(call)).count();
    assert_eq!(count(|call| matches!(&call.event, HookEvent::SessionStart { source } if source == "startup")), 1);
    assert_eq!(count(|call| matches!(&call.event, HookEvent::UserPromptSubmit { prompt } if prompt == "do it")), 1);
    assert_eq!(count(|call| matches!(call.event, HookEvent::PreToolUse { .. })), 5);
    assert_eq!(
        count(|call| matches!(&call.event, HookEvent::PostToolUseFailure { error, .. } if error.contains('3'))),
        1
    );
    assert_eq!(count(|call| matches!(call.event, HookEvent::PostToolUse { .. })), 2);
    assert_eq!(count(|call| matches!(call.event, HookEvent::SubagentStop(_))), 1);
    assert_eq!(count(|call| matches!(call.event, HookEvent::Stop(_))), 1);
    assert_eq!(count(|call| matches!(call.event, HookEvent::PreToolUse { .. }) && call.subagent.is_some()), 1);
}
