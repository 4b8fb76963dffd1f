//! Files that a person edits after an agent proposed to change them.

use serde_json::json;

use crate::Scene;
use crate::concurrent_clients::Terminal;

fn numbers() -> String {
    (1..=30).map(|number| format!("{number}\n")).collect()
}

/// A scene in which the whole new content of a file waits for a verdict.
fn waiting() -> (Scene, Terminal) {
    let scene = Scene::new(&[("a.txt", numbers().as_bytes())]);
    let new = numbers().replacen("\n2\n", "\ntwo\n", 1);
    let change = json!([{ "operation": "write", "path": "a.txt", "content": new }]);
    scene.write("change.json", change.to_string().as_bytes());
    let mut asks = Terminal::start(&scene, &["propose", "change.json"]);
    asks.until("hunk 1");
    (scene, asks)
}

#[test]
fn approval_keeps_edit_elsewhere_in_file() {
    let (scene, asks) = waiting();
    scene.write("a.txt", numbers().replace("\n25\n", "\nmine\n").as_bytes());
    let reviewed = scene.transcript(&["review", "1", "--approve", "all"]);
    assert!(reviewed.contains("changed meanwhile; the result holds both changes"), "{reviewed}");
    assert!(reviewed.contains("Applied as change 1") && reviewed.contains("exit 0"), "{reviewed}");
    assert_eq!(scene.read("a.txt"), numbers().replacen("\n2\n", "\ntwo\n", 1).replace("\n25\n", "\nmine\n"));
    drop(asks);
}

#[test]
fn approve_all_refuses_overwritten_edit() {
    let (scene, asks) = waiting();
    let mine = numbers().replacen("\n2\n", "\nmine\n", 1);
    scene.write("a.txt", mine.as_bytes());
    let note = "line 2 was edited after this was proposed, and would be lost";
    let refused = scene.transcript(&["review", "1", "--approve", "all"]);
    assert!(refused.contains(note) && refused.contains("exit 4"), "{refused}");
    assert_eq!(scene.read("a.txt"), mine);
    let approved = scene.transcript(&["review", "1", "--approve", "1"]);
    assert!(approved.contains(note) && approved.contains("Applied as change 1"), "{approved}");
    assert_eq!(scene.read("a.txt"), numbers().replacen("\n2\n", "\ntwo\n", 1));
    // What the person had written comes back with an undo.
    scene.transcript(&["undo", "1"]);
    assert_eq!(scene.read("a.txt"), mine);
    drop(asks);
}

#[test]
fn deletion_of_edited_file_has_a_note() {
    let scene = Scene::new(&[("a.txt", b"1\n2\n")]);
    scene.write("change.json", br#"[{ "operation": "delete", "path": "a.txt" }]"#);
    let mut asks = Terminal::start(&scene, &["propose", "change.json"]);
    asks.until("Delete a.txt");
    scene.write("a.txt", b"1\nmine\n2\n");
    let refused = scene.transcript(&["review", "1", "--approve", "all"]);
    assert!(refused.contains("line 2 was edited after this was proposed") && refused.contains("exit 4"), "{refused}");
    assert_eq!(scene.read("a.txt"), "1\nmine\n2\n");
}
