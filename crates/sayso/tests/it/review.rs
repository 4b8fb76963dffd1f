//! `sayso review` and `sayso snapshot`.

use crate::Scene;

const LATER: &str = "[[rule]]\nname = \"texts are reviewed at the end\"\nwrite = \"*.txt\"\nthen = \"later\"\n";

fn numbers() -> String {
    (1..=30).map(|number| format!("{number}\n")).collect()
}

fn edit(scene: &Scene, old: &str, new: &str) {
    edit_in_turn(scene, "1", old, new);
}

fn edit_in_turn(scene: &Scene, turn: &str, old: &str, new: &str) {
    let change = serde_json::json!({ "operation": "edit", "path": "a.txt", "old_string": format!("\n{old}\n"),
        "new_string": format!("\n{new}\n") });
    scene.write("change.json", change.to_string().as_bytes());
    let done = scene.transcript(&["propose", "change.json", "--agent", "claude", "--session", "s", "--turn", turn]);
    assert!(done.contains("It is reviewed at the end of the turn"), "{done}");
}

#[test]
fn turn_review_shows_net_change() {
    let scene = Scene::new(&[("a.txt", numbers().as_bytes())]);
    scene.configure(LATER);
    edit(&scene, "2", "two");
    edit(&scene, "two", "TWO");
    edit(&scene, "25", "twenty-five");
    insta::assert_snapshot!(scene.dialogue(&["review"], "y\nn\nwrite numbers\n"));
    assert_eq!(scene.read("a.txt"), numbers().replace("\n2\n", "\nTWO\n"));
    // With its next proposal, the agent hears of it.
    scene.write("change.json", br#"{"operation":"write","path":"b.txt","content":"x\n"}"#);
    let (next, code) =
        scene.json(&["propose", "change.json", "--session", "s", "--turn", "2", "--json", "--approve", "all"]);
    assert_eq!(code, 0, "{next:#}");
    assert!(next["messages"][0].as_str().unwrap().contains("write numbers"), "{next:#}");
    assert!(scene.transcript(&["review", "--session", "nobody"]).contains("Nothing waits."));
}

#[test]
fn approval_does_not_override_denying_rule() {
    let scene = Scene::new(&[("a.txt", b"1\n"), (".git/config", b"1\n")]);
    scene.configure("[[rule]]\nname = \"hands off\"\nwrite = \"a.txt\"\nthen = \"deny\"\n");
    for path in ["a.txt", ".git/config"] {
        let change = serde_json::json!({ "operation": "write", "path": path, "content": "2\n" }).to_string();
        scene.write("change.json", change.as_bytes());
        let refused = scene.transcript(&["propose", "change.json", "--approve", "all"]);
        assert!(refused.contains("exit 3") && refused.contains("denied by the rule"), "{refused}");
        assert_eq!(scene.read(path), "1\n");
    }
}

#[test]
fn snapshots_are_taken_listed_and_restored() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let arguments = r#"{"file_path":"a.txt","old_string":"one","new_string":"two"}"#;
    let taken = scene.transcript(&["snapshot", "take", "Edit", arguments, "--call", "c1"]);
    scene.write("a.txt", b"two\n");
    let listed = scene.transcript(&["snapshot"]);
    let restored = scene.transcript(&["snapshot", "restore", "c1"]);
    insta::assert_snapshot!(format!("{taken}\n{listed}\n{restored}"));
    assert_eq!(scene.read("a.txt"), "one\n");
    let missing = scene.transcript(&["snapshot", "restore", "nobody"]);
    assert!(missing.contains("there is no snapshot of `nobody`") && missing.contains("exit 2"), "{missing}");
}

#[test]
fn empty_review_says_so() {
    let scene = Scene::new(&[]);
    assert!(scene.transcript(&["review"]).contains("Nothing waits"));
    assert!(scene.transcript(&["snapshot"]).contains("No snapshots are kept"));
}

#[test]
fn denying_two_turns_of_one_file_reverts_both() {
    let scene = Scene::new(&[("a.txt", numbers().as_bytes())]);
    scene.configure(LATER);
    edit_in_turn(&scene, "1", "10", "ten");
    edit_in_turn(&scene, "2", "20", "twenty");
    assert!(scene.transcript(&["status", "--short"]).contains("2 to review"));
    let refused = scene.transcript(&["review", "--approve", "none"]);
    assert!(refused.contains("2 changes wait, and none is named") && refused.contains("exit 2"), "{refused}");
    let (reviews, _) = scene.json(&["review", "--json"]);
    let first = reviews[0]["change"].to_string();
    for arguments in [&["review", &first, "--approve", "none"][..], &["review", "--approve", "none"]] {
        let reviewed = scene.transcript(arguments);
        assert!(reviewed.contains("exit 1"), "{reviewed}");
    }
    assert_eq!(scene.read("a.txt"), numbers());
    assert!(scene.transcript(&["review"]).contains("Nothing waits."));
}

#[test]
fn abandoned_turn_review_is_opened_once() {
    let scene = Scene::new(&[("a.txt", numbers().as_bytes())]);
    scene.configure(LATER);
    edit(&scene, "10", "ten");
    let (first, _) = scene.json(&["review", "--json"]);
    scene.dialogue(&["review"], "q\n");
    let (second, _) = scene.json(&["review", "--json"]);
    assert_eq!(first, second);
    assert_eq!(first.as_array().unwrap().len(), 1, "{first:#}");
    assert_eq!(scene.read("a.txt"), numbers().replace("\n10\n", "\nten\n"), "leaving takes nothing back");
}
