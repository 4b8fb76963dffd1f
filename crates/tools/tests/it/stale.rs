//! Tests of the log of reads, and of unsaved texts of editors.

use sayso_review::WsPath;
use sayso_tools::{ReadLog, ReadState};
use serde_json::json;

use crate::Scene;

fn write(scene: &Scene, path: &str, bytes: &[u8]) {
    std::fs::write(scene.directory.path().join(path), bytes).unwrap();
}

#[test]
fn change_after_read_is_stale() {
    let scene = Scene::agent(&[("a", b"one\n"), ("b", b"x\n")]);
    scene.text("Read", &json!({ "path": "a" }));
    write(&scene, "a", b"two\none\n");
    let calls = [
        ("Edit", json!({ "path": "a", "old_string": "one", "new_string": "1" })),
        ("Write", json!({ "path": "a", "content": "1" })),
        ("ApplyPatch", json!({ "input": "*** Begin Patch\n*** Update File: a\n@@\n-one\n+1\n*** End Patch\n" })),
    ];
    for (tool, arguments) in &calls {
        let error = scene.error(tool, arguments);
        assert_eq!(error.kind.name(), "stale", "{tool}: {}", error.message);
        assert!(error.hint.unwrap().contains("Read"));
    }
    let proposed = json!({ "changes": [{ "path": "a", "operation": "update", "new_content": "1" }] });
    let step = scene.change("ProposeChanges", &proposed);
    assert!(step.proposes_only());
    let object = step.proposed.unwrap();
    assert!(object.has_conflicts && object.changes[0].conflict);
    assert_eq!(object.changes[0].warning.as_deref(), Some("it changed since it was read"));
    // Another file, and the same after a new read.
    scene.change("Write", &json!({ "path": "b", "content": "1" }));
    scene.text("Read", &json!({ "path": "a", "offset": 1, "limit": 1 }));
    for (tool, arguments) in &calls {
        scene.change(tool, arguments);
    }
}

#[test]
fn own_change_is_not_stale() {
    let scene = Scene::agent(&[("a", b"one\n"), ("gone", b"x\n")]);
    scene.text("Read", &json!({ "path": "a" }));
    scene.text("Read", &json!({ "path": "gone" }));
    write(&scene, "a", b"two\n");
    std::fs::remove_file(scene.directory.path().join("gone")).unwrap();
    let paths = [WsPath::parse("a").unwrap(), WsPath::parse("gone").unwrap()];
    scene.with(|_, context| context.refresh_reads(&paths));
    scene.change("Edit", &json!({ "path": "a", "old_string": "two", "new_string": "2" }));
    assert_eq!(scene.reads.state_of(&paths[1], b"x\n"), ReadState::Unread);
}

#[test]
fn read_log_survives_storage() {
    let scene = Scene::agent(&[("a", b"one\r\n")]);
    scene.text("Read", &json!({ "path": "a" }));
    let stored = serde_json::to_string(&scene.reads.entries()).unwrap();
    let restored = ReadLog::restore(serde_json::from_str(&stored).unwrap());
    let path = WsPath::parse("a").unwrap();
    assert_eq!(restored.state_of(&path, b"one\n"), ReadState::Current, "only the line ending differs");
    assert_eq!(restored.state_of(&path, b"two\n"), ReadState::Stale);
}

#[test]
fn read_through_link_logs_target() {
    let scene = Scene::agent(&[("real", b"one\n")]);
    std::os::unix::fs::symlink("real", scene.directory.path().join("link")).unwrap();
    scene.text("Read", &json!({ "path": "link" }));
    write(&scene, "real", b"two\n");
    let error = scene.error("Edit", &json!({ "path": "real", "old_string": "two", "new_string": "2" }));
    assert_eq!(error.kind.name(), "stale");
}

#[test]
fn unsaved_text_replaces_file() {
    let mut scene = Scene::agent(&[("a", b"saved\r\n")]);
    scene.buffers.0.insert("a".to_owned(), "unsaved\n".to_owned());
    let text = scene.text("Read", &json!({ "path": "a" }));
    assert!(text.contains("unsaved text of the user's editor") && text.contains("     1\tunsaved\n"), "{text}");
    assert!(scene.text("Grep", &json!({ "pattern": "unsaved" })).contains("a:1:unsaved"));
    let edit = |old: &str| json!({ "path": "a", "old_string": old, "new_string": "x" });
    scene.change("Edit", &edit("unsaved"));
    assert_eq!(scene.error("Edit", &edit("saved\nmore")).kind.name(), "conflict");
    // Saving the buffer does not make the read stale.
    write(&scene, "a", b"unsaved\r\n");
    scene.buffers.0.clear();
    scene.change("Edit", &edit("unsaved"));
    // Typing does.
    scene.buffers.0.insert("a".to_owned(), "unsaved, more\n".to_owned());
    assert_eq!(scene.error("Edit", &edit("unsaved")).kind.name(), "stale");
}
