//! The nine acceptance criteria of the seed `001…`, one test each. The tenth is about folders of the seed's own repository.

use sayso_tools::Registry;
use serde_json::json;

use crate::Scene;

fn scene() -> Scene {
    Scene::new(&[("x", b"hello\nworld\n"), ("same", b"hello\nworld\n"), ("y", b"hello\nthere\n"), ("folder/z", b"")])
        .grant("Diff")
        .read(&["**"])
}

#[test]
fn criterion_1_identical_files() {
    let result = scene().run("Diff", &json!({ "path_a": "x", "path_b": "same" })).unwrap();
    let expected = json!({
        "diff": "", "label_a": "x", "label_b": "same", "lines_a": 2, "lines_b": 2, "identical": true, "diff_lines": 0
    });
    assert_eq!(result, expected);
}

#[test]
fn criterion_2_different_files() {
    let scene = scene();
    // Absolute paths, as in the seed.
    let path = |name: &str| scene.directory.path().join(name).to_str().unwrap().to_owned();
    let (a, b) = (path("x"), path("y"));
    let result = scene.run("Diff", &json!({ "path_a": a, "path_b": b })).unwrap();
    let diff = format!("--- {a}\n+++ {b}\n@@ -1,2 +1,2 @@\n hello\n-world\n+there\n");
    let expected = json!({
        "diff": diff, "label_a": a, "label_b": b, "lines_a": 2, "lines_b": 2, "identical": false, "diff_lines": 6
    });
    assert_eq!(result, expected);
}

#[test]
fn criterion_3_text_mode_touches_no_file() {
    // No file is granted.
    let scene = Scene::new(&[]).grant("Diff");
    let texts =
        json!({ "text_a": "hello\nworld\n", "text_b": "hello\nthere\n", "label_a": "before", "label_b": "after" });
    let result = scene.run("Diff", &texts).unwrap();
    let expected = json!({
        "diff": "--- before\n+++ after\n@@ -1,2 +1,2 @@\n hello\n-world\n+there\n",
        "label_a": "before", "label_b": "after", "lines_a": 2, "lines_b": 2, "identical": false, "diff_lines": 6
    });
    assert_eq!(result, expected);
    let unnamed = scene.run("Diff", &json!({ "text_a": "", "text_b": "" })).unwrap();
    assert_eq!(
        (&unnamed["label_a"], &unnamed["label_b"], &unnamed["identical"]),
        (&json!("a"), &json!("b"), &json!(true))
    );
}

#[test]
fn criterion_4_mixed_modes_are_invalid() {
    let scene = scene();
    for arguments in [
        json!({ "path_a": "x", "text_a": "y" }),
        json!({ "path_a": "x", "path_b": "y", "text_a": "z" }),
        json!({ "path_a": "x", "path_b": "y", "text_a": "z", "text_b": "" }),
        json!({ "path_a": "x", "text_b": "y" }),
        json!({ "path_a": "x" }),
        json!({ "text_b": "x" }),
        json!({}),
    ] {
        assert_eq!(scene.kind("Diff", &arguments), "invalid_args", "{arguments}");
    }
}

#[test]
fn criterion_5_context_lines_from_0_to_20() {
    let scene = scene();
    let texts = |context| json!({ "text_a": "a", "text_b": "b", "context_lines": context });
    for wrong in [json!(-1), json!(21), json!(1e9), json!(1.5), json!("3"), json!(true)] {
        assert_eq!(scene.kind("Diff", &texts(wrong.clone())), "invalid_args", "{wrong}");
    }
    for right in [0, 20] {
        scene.run("Diff", &texts(json!(right))).unwrap();
    }
}

#[test]
fn criterion_6_both_files_need_grants() {
    let paths = json!({ "path_a": "x", "path_b": "y" });
    assert_eq!(scene().read(&[]).kind("Diff", &paths), "fs_denied");
    assert_eq!(scene().read(&["x"]).kind("Diff", &paths), "fs_denied");
    assert_eq!(scene().read(&["y"]).kind("Diff", &paths), "fs_denied");
    scene().read(&["x", "y"]).run("Diff", &paths).unwrap();
    let absent = json!({ "path_a": "absent", "path_b": "y" });
    assert_eq!(scene().read(&["absent"]).kind("Diff", &absent), "fs_denied", "before either is looked at");
}

#[test]
fn criterion_7_directory_fails() {
    assert_eq!(scene().kind("Diff", &json!({ "path_a": "x", "path_b": "folder" })), "tool_failed");
    assert_eq!(scene().kind("Diff", &json!({ "path_a": "folder", "path_b": "x" })), "tool_failed");
}

#[test]
fn criterion_8_large_diff_is_truncated_between_lines() {
    let large: String = (0..400_000).map(|n| format!("line {n}\n")).collect();
    let result = scene().run("Diff", &json!({ "text_a": "", "text_b": large })).unwrap();
    assert_eq!(result["truncated"], json!(true));
    let diff = result["diff"].as_str().unwrap();
    let (body, marker) = diff.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(marker, "[diff truncated at 2097152 bytes]");
    assert!(body.len() < 2 * 1024 * 1024 && body.len() > 2 * 1024 * 1024 - 100);
    let last = body.lines().last().unwrap();
    assert!(large.contains(&format!("{}\n", &last[1..])), "the last line is whole: {last}");
    assert_eq!(result["diff_lines"], json!(diff.lines().count()), "the marker is counted");
}

#[test]
fn criterion_9_diff_is_built_in() {
    let names: Vec<_> = Registry::builtin().names().collect();
    assert!(names.contains(&"Diff"), "{names:?}");
}
