//! Tests of the `ProposeChanges` tool.

use serde_json::json;

use crate::Scene;

fn scene() -> Scene {
    Scene::new(&[("src/a.txt", b"one\r\n"), ("src/gone", b"x\n"), ("secret", b"s\n")])
        .grant("ProposeChanges")
        .read(&["src/**"])
        .write(&["src/**"])
}

#[test]
fn propose_changes_returns_seed_object_without_writing() {
    let scene = scene();
    let result = scene
        .run(
            "ProposeChanges",
            &json!({"changes": [
                {"path": "src/a.txt", "operation": "update", "new_content": "two\n"},
                {"path": "src/b/new", "operation": "create", "new_content": "n\n"},
                {"path": "src/gone", "operation": "delete"},
                {"path": "src/absent", "operation": "update", "new_content": ""},
            ]}),
        )
        .unwrap();
    assert_eq!(result["has_conflicts"], true);
    let change =
        |path: &str| result["changes"].as_array().unwrap().iter().find(|change| change["path"] == path).unwrap();
    let updated = change("src/a.txt");
    assert_eq!((&updated["operation"], &updated["conflict"]), (&json!("update"), &json!(false)));
    assert_eq!(updated["new_content"], "two\n");
    let text = updated["unified_diff"].as_str().unwrap();
    assert!(text.starts_with("--- src/a.txt (current)\n+++ src/a.txt (proposed)\n@@ -1 +1 @@\n"), "{text}");
    assert!(text.contains("+two\r\n"), "the file keeps its line ending: {text:?}");
    assert!(
        change("src/b/new")["unified_diff"].as_str().unwrap().starts_with("--- /dev/null\n+++ src/b/new (new file)\n")
    );
    assert!(change("src/gone")["new_content"].is_null());
    assert_eq!(
        (&change("src/absent")["conflict"], &change("src/absent")["warning"]),
        (&json!(true), &json!("it does not exist"))
    );
    assert_eq!(std::fs::read(scene.directory.path().join("src/a.txt")).unwrap(), b"one\r\n");
    assert!(!scene.directory.path().join("src/b").exists() && scene.directory.path().join("src/gone").exists());
}

#[test]
fn proposed_path_and_link_target_need_grants() {
    let scene = scene();
    std::os::unix::fs::symlink("../secret", scene.directory.path().join("src/link")).unwrap();
    let delete = |path: &str| json!({"changes": [{"path": path, "operation": "delete"}]});
    let update = |path: &str| json!({"changes": [{"path": path, "operation": "update", "new_content": ""}]});
    assert_eq!(scene.kind("ProposeChanges", &delete("secret")), "fs_denied");
    assert_eq!(scene.kind("ProposeChanges", &update("src/link")), "fs_denied");
    assert_eq!(scene.kind("ProposeChanges", &update("../x")), "fs_denied");
    assert_eq!(scene.write(&[]).kind("ProposeChanges", &delete("src/gone")), "fs_denied");
}

#[test]
fn malformed_changes_are_invalid_args() {
    let scene = scene();
    assert_eq!(scene.kind("ProposeChanges", &json!({"changes": []})), "invalid_args");
    assert_eq!(
        scene.kind("ProposeChanges", &json!({"changes": [{"path": "src/a", "operation": "create"}]})),
        "invalid_args"
    );
    assert_eq!(
        scene.kind("ProposeChanges", &json!({"changes": [{"path": "src/a", "operation": "chmod"}]})),
        "invalid_args"
    );
}
