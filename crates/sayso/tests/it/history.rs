//! `sayso log`, `sayso show`, `sayso status`, `sayso gc`.

use serde_json::json;

use crate::Scene;

fn scene() -> Scene {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let change = json!([
        {"operation": "update", "path": "a.txt", "new_content": "two\n"},
        {"operation": "create", "path": "b/c.txt", "new_content": "new\n"},
    ]);
    scene.write("change.json", change.to_string().as_bytes());
    scene
}

/// Times differ from run to run.
fn steady(text: &str) -> String {
    let text = text.replace(" 1 s", " 0 s").replace(" 2 s", " 0 s").replace(" 3 s", " 0 s");
    let hash = text.find("workspaces/").map(|at| text[at..].lines().next().unwrap().to_owned());
    let text = hash.map_or(text.clone(), |hash| text.replace(&hash, "workspaces/[NAME]"));
    let kept = text.find(" contents in ").map(|at| text[at..].lines().next().unwrap().to_owned());
    kept.map_or(text.clone(), |kept| text.replace(&kept, " contents in [SIZE]"))
}

#[test]
fn history_of_new_workspace_is_empty() {
    let scene = scene();
    insta::assert_snapshot!(
        [&["log"][..], &["log", "--json"], &["show", "1"], &["status"], &["status", "--short"]]
            .map(|arguments| steady(&scene.transcript(arguments)))
            .join("\n")
    );
}

#[test]
fn history_shows_every_kind_of_change() {
    let scene = scene();
    let origin = ["--agent", "claude", "--session", "s1", "--turn", "4", "--call", "toolu_1"];
    scene.run(&[&["propose", "change.json", "--approve", "a.txt"], &origin[..]].concat(), b"");
    scene.run(&["propose", "change.json", "--deny", "not again"], b"");
    scene.run(&["undo", "1"], b"");
    insta::assert_snapshot!(
        [&["log"][..], &["log", "-n", "1"], &["log", "--session", "s1"], &["show", "1"], &["show", "3"], &["status"]]
            .map(|arguments| steady(&scene.transcript(arguments)))
            .join("\n")
    );
    let (record, _) = scene.json(&["show", "1", "--json"]);
    assert_eq!((&record["status"], &record["origin"]["call"]), (&json!("undone"), &json!("toolu_1")));
    assert_eq!(record["preview"]["changes"][0]["path"], "a.txt");
}

#[test]
fn subdirectory_uses_workspace_of_its_parent() {
    let scene = scene();
    assert!(scene.run(&["propose", "change.json", "--approve", "all"], b"").status.success());
    let below = scene.path("b");
    let state = scene.state_path();
    let environment = [("XDG_STATE_HOME", state.to_str().unwrap())];
    let program = env!("CARGO_BIN_EXE_sayso");
    let output = sayso_testkit::programs::run_with(&below, program, &["undo"], &environment, b"");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(scene.read("a.txt"), "one\n");
}

#[test]
fn gc_drops_contents_and_keeps_history() {
    let scene = scene();
    scene.run(&["propose", "change.json", "--approve", "all"], b"");
    let (freed, code) = scene.json(&["gc", "--older-than", "0", "--json"]);
    assert_eq!((code, &freed["dropped_contents"]), (0, &json!(4)), "{freed:#}");
    let shown = scene.transcript(&["show", "1"]);
    assert!(shown.contains("a.txt (+1 -1)") && shown.contains("no longer stored"), "{shown}");
    let undo = scene.transcript(&["undo"]);
    assert!(undo.contains("its content is no longer stored") && undo.contains("exit 4"), "{undo}");
    assert_eq!(scene.read("a.txt"), "two\n");
}

#[test]
fn damaged_journal_is_reported_and_repaired() {
    let scene = scene();
    scene.run(&["propose", "change.json", "--approve", "all"], b"");
    let folder =
        std::fs::read_dir(scene.state_path().join("sayso/workspaces")).unwrap().next().unwrap().unwrap().path();
    let journal = folder.join("journal.db");
    let mut bytes = std::fs::read(&journal).unwrap();
    let half = bytes.len() / 2;
    bytes[half..half + 8000].fill(0xA5);
    std::fs::write(&journal, bytes).unwrap();
    let repaired = scene.transcript(&["gc", "--repair"]);
    assert!(repaired.contains("Saved") && repaired.contains("exit 0"), "{repaired}");
    assert!(scene.run(&["log"], b"").status.success());
}

#[test]
fn file_that_is_no_journal_has_remedy() {
    let scene = scene();
    scene.run(&["propose", "change.json", "--approve", "all"], b"");
    let folder =
        std::fs::read_dir(scene.state_path().join("sayso/workspaces")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(
        folder.join("journal.db"),
        b"this is no database, but long enough to be looked at as one\n".repeat(40),
    )
    .unwrap();
    let text = scene.transcript(&["log"]);
    assert!(text.contains("Error:") && text.contains("sayso gc --repair"), "{text}");
}

#[test]
fn session_is_found_by_start_of_id() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    for (session, text) in [("7f3a-one", "two\n"), ("7f3b-two", "three\n")] {
        let change = json!([{"operation": "update", "path": "a.txt", "new_content": text}]);
        scene.write("change.json", change.to_string().as_bytes());
        let arguments = ["propose", "change.json", "--approve", "all", "--agent", "claude", "--session", session];
        assert!(scene.run(&arguments, b"").status.success());
    }
    let log = scene.transcript(&["log"]);
    assert!(log.contains("claude 7f3a-one  a.txt (+1 -1)") && log.contains("claude 7f3b-two  a.txt"), "{log}");
    let (records, _) = scene.json(&["log", "--session", "7f3a", "--json"]);
    assert_eq!((records.as_array().unwrap().len(), &records[0]["change"]), (1, &json!(1)));
    let several = scene.transcript(&["undo", "--session", "7f3"]);
    assert!(several.contains("several session ids start or end with `7f3`: `7f3a-one`, `7f3b-two`"), "{several}");
    assert!(several.ends_with("--- exit 2\n"), "{several}");
    let none = scene.transcript(&["log", "--session", "none"]);
    assert!(none.contains("There are no changes of session `none`") && none.ends_with("--- exit 0\n"), "{none}");
    assert_eq!(scene.transcript(&["log", "-n", "0"]), "$ sayso log -n 0\n--- exit 0\n");
    assert!(scene.run(&["undo", "--session", "7f3b"], b"").status.success());
    assert_eq!(scene.read("a.txt"), "two\n");
    assert!(scene.run(&["redo", "--session", "7f3b"], b"").status.success());
    assert_eq!(scene.read("a.txt"), "three\n");
}

#[test]
fn gc_report_is_true_for_young_contents() {
    let scene = scene();
    scene.run(&["propose", "change.json", "--approve", "all"], b"");
    let kept = scene.transcript(&["gc"]);
    assert!(!kept.contains("of changes older than") && kept.ends_with("--- exit 0\n"), "{kept}");
    let old = scene.transcript(&["gc", "--older-than", "0"]);
    assert!(old.contains("that no change needs any more, or none younger than 0 days; freed"), "{old}");
}
