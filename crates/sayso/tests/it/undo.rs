//! `sayso undo` and `sayso redo`.

use sayso_testkit::programs;
use serde_json::json;

use crate::Scene;

fn scene() -> Scene {
    let scene = Scene::new(&[("a.txt", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")]);
    for (name, old, new) in [("first", "1\n", "one\n"), ("second", "9\n", "nine\n"), ("third", "5\n", "five\n")] {
        let change = json!([{"operation": "edit", "path": "a.txt", "old_string": old, "new_string": new}]);
        scene.write(&format!("{name}.json"), change.to_string().as_bytes());
    }
    scene
}

fn apply(scene: &Scene, name: &str, session: &[&str]) {
    let file = format!("{name}.json");
    let arguments = [&["propose", &file, "--approve", "all"], session].concat();
    let output = scene.run(&arguments, b"");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn undo_and_redo_of_last_change() {
    let scene = scene();
    apply(&scene, "first", &[]);
    apply(&scene, "second", &[]);
    insta::assert_snapshot!(
        [
            scene.transcript(&["undo", "--dry-run"]),
            scene.transcript(&["undo"]),
            scene.transcript(&["undo"]),
            scene.transcript(&["undo"]),
            scene.transcript(&["redo"]),
            scene.transcript(&["redo"]),
            scene.transcript(&["redo"]),
        ]
        .join("\n")
    );
    assert_eq!(scene.read("a.txt"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}

#[test]
fn undo_of_edited_file_needs_merge() {
    let scene = scene();
    apply(&scene, "first", &[]);
    scene.write("a.txt", b"one\n2\n3\n4\n5\n6\n7\n8\nmine\n");
    insta::assert_snapshot!(scene.transcript(&["undo"]));
    assert_eq!(scene.read("a.txt"), "one\n2\n3\n4\n5\n6\n7\n8\nmine\n");
    assert_eq!(scene.json(&["undo", "--json"]).1, 4);
    assert_eq!(scene.json(&["undo", "--merge", "--json"]).1, 0);
    assert_eq!(scene.read("a.txt"), "1\n2\n3\n4\n5\n6\n7\n8\nmine\n");
}

#[test]
fn undo_by_change_call_turn_and_session() {
    let scene = scene();
    apply(&scene, "first", &["--session", "s", "--turn", "1", "--call", "call_a"]);
    apply(&scene, "second", &["--session", "s", "--turn", "2", "--call", "call_b"]);
    apply(&scene, "third", &["--session", "s", "--turn", "2", "--call", "call_c"]);
    let undone = |arguments: &[&str]| {
        let (outcome, code) = scene.json(&[&["undo", "--json"], arguments].concat());
        assert_eq!(code, 0, "{outcome:#}");
        (outcome["changes"].clone(), scene.read("a.txt"))
    };
    assert_eq!(undone(&["--turn"]), (json!([3, 2]), "one\n2\n3\n4\n5\n6\n7\n8\n9\n".to_owned()));
    assert_eq!(scene.json(&["redo", "--json"]).1, 0);
    assert_eq!(undone(&["--session", "s"]), (json!([3, 2, 1]), "1\n2\n3\n4\n5\n6\n7\n8\n9\n".to_owned()));
    assert_eq!(scene.json(&["redo", "--json"]).1, 0);
    // The second change alone lies below the third, which touches other lines.
    assert_eq!(scene.json(&["undo", "call_b", "--json"]).1, 4);
    assert_eq!(undone(&["call_b", "--merge"]).1, "one\n2\n3\n4\nfive\n6\n7\n8\n9\n");
    assert_eq!(undone(&["1", "--turn", "--merge"]).1, "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
}

#[test]
fn undo_errors_have_causes() {
    let scene = scene();
    let early = scene.transcript(&["undo"]);
    apply(&scene, "first", &[]);
    scene.run(&["propose", "second.json", "--deny", "no"], b"");
    insta::assert_snapshot!(
        [
            early,
            scene.transcript(&["undo", "2"]),
            scene.transcript(&["undo", "7"]),
            scene.transcript(&["undo", "call_x"]),
            scene.transcript(&["undo", "--session", "none"]),
            scene.transcript(&["redo", "1"]),
            scene.transcript(&["undo", "x", "--turn"]),
        ]
        .join("\n")
    );
}

#[test]
fn undo_with_uncaptured_files_is_partial() {
    let scene = scene();
    std::fs::File::create(scene.path("big")).unwrap().set_len(70 << 20).unwrap();
    let output = scene.run(&["exec", "--approve", "echo bad >>big; echo bad >a.txt"], b"");
    assert!(output.status.success(), "{output:?}");
    let (planned, code) = scene.json(&["undo", "--dry-run", "--json"]);
    assert_eq!((code, &planned["uncaptured"][0]["path"]), (0, &json!("big")), "{planned}");
    let undone = scene.transcript(&["undo"]);
    assert!(undone.contains("note: cannot be put back: big: it changed, and was not captured\n"), "{undone}");
    assert!(undone.contains("Undone as far as it was captured; 1 path was not"), "{undone}");
    assert!(undone.ends_with("--- exit 4\n"), "{undone}");
    assert!(scene.read("a.txt").starts_with("1\n"));
    // Again, for programs.
    assert!(scene.run(&["redo"], b"").status.success());
    let (undone, code) = scene.json(&["undo", "--json"]);
    assert_eq!((code, &undone["outcome"], &undone["uncaptured"][0]["path"]), (4, &json!("applied"), &json!("big")));
}

#[test]
fn unreadable_directory_is_named_as_uncaptured() {
    let scene = scene();
    let root = scene.path(".");
    let program = scene.state_path().join("program");
    std::fs::copy(env!("CARGO_BIN_EXE_sayso"), &program).unwrap();
    // Root can read every file, so that the test drops its privileges.
    let am_root = programs::run(&root, "id", &["-u"], b"").stdout == b"0\n";
    if am_root {
        for folder in [&root, &scene.state_path()] {
            std::os::unix::fs::chown(folder, Some(65534), Some(65534)).unwrap();
        }
    }
    let script = "set -e; echo precious >p; chmod 000 p; mkdir d; echo deep >d/f; chmod 000 d
        $0 exec --approve 'chmod 600 p; chmod 700 d; echo bad >p; echo bad >d/f'
        $0 undo && exit 1 || exit $?";
    let environment = scene.environment();
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let words = ["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script, program.to_str().unwrap()];
    let (runs, words) = if am_root { ("setpriv", &words[..]) } else { ("sh", &words[4..]) };
    let output = programs::run_with(&root, runs, words, &environment, b"");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    for path in ["p", "d"] {
        assert_eq!(said.matches(&format!("note: cannot be put back: {path}: ")).count(), 2, "{said}");
    }
}
