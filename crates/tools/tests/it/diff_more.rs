//! Behaviour of `Diff` beyond the acceptance criteria of its seed.

use serde_json::json;

use crate::Scene;

fn scene(files: &[(&str, &[u8])]) -> Scene {
    Scene::new(files).grant("Diff").read(&["**"])
}

#[test]
fn diff_without_grant_is_denied() {
    let scene = Scene::new(&[]).grant("Read");
    assert_eq!(scene.kind("Diff", &json!({ "nonsense": 1 })), "tool_denied");
    let error = scene.run("Diff", &json!({})).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("grant it with --grant Diff"));
}

#[test]
fn invalid_fields_are_named() {
    let scene = scene(&[]);
    for (arguments, named) in [
        (json!({ "text_a": "", "text_b": "", "contxt": 1 }), "contxt"),
        (json!({ "text_a": 1, "text_b": "" }), "`text_a`: invalid type: integer `1`"),
        (json!({ "text_a": "", "text_b": "", "context_lines": "3" }), "`context_lines`"),
        (json!({ "text_a": "", "text_b": "", "label_a": [] }), "`label_a`: invalid type: sequence"),
        (json!([]), "an array"),
        (json!("text"), "a string"),
    ] {
        let error = scene.run("Diff", &arguments).unwrap_err();
        assert_eq!(error.kind.name(), "invalid_args");
        assert!(error.message.contains(named), "{} names {named}", error.message);
    }
}

#[test]
fn missing_and_oversized_files_fail() {
    let scene = scene(&[("a", b""), ("exactly", &vec![b'x'; 4 << 20]), ("large", &vec![b'x'; (4 << 20) + 1])]);
    let paths = |a: &str, b: &str| json!({ "path_a": a, "path_b": b });
    assert_eq!(scene.kind("Diff", &paths("a", "absent")), "tool_failed");
    assert_eq!(scene.kind("Diff", &paths("a", "large")), "tool_failed");
    // The diff of a file of the maximum size exceeds the limit: only the header, the hunk header and the marker remain.
    let largest = scene.run("Diff", &paths("a", "exactly")).unwrap();
    assert_eq!((&largest["truncated"], &largest["diff_lines"]), (&json!(true), &json!(4)));
}

#[test]
fn outside_paths_are_denied_in_any_form() {
    let scene = scene(&[("in/a", b"a\n"), ("b", b"b\n")]);
    std::os::unix::fs::symlink("/etc", scene.directory.path().join("etc")).unwrap();
    std::os::unix::fs::symlink("../../../../../../etc/passwd", scene.directory.path().join("in/passwd")).unwrap();
    for outside in ["/etc/passwd", "../b", "in/../../b", "etc/passwd", "in/passwd"] {
        assert_eq!(scene.kind("Diff", &json!({ "path_a": "b", "path_b": outside })), "fs_denied", "{outside}");
    }
}

#[test]
fn symlink_does_not_widen_grant() {
    let scene = scene(&[("open/a", b"a\n"), ("secret/key", b"k\n")]).read(&["open/**"]);
    std::os::unix::fs::symlink("../secret/key", scene.directory.path().join("open/link")).unwrap();
    std::os::unix::fs::symlink("a", scene.directory.path().join("open/fine")).unwrap();
    assert_eq!(scene.kind("Diff", &json!({ "path_a": "open/a", "path_b": "open/link" })), "fs_denied");
    let same = scene.run("Diff", &json!({ "path_a": "open/a", "path_b": "open/fine" })).unwrap();
    assert_eq!(same["identical"], json!(true));
}

#[test]
fn binary_diff_is_one_sentence() {
    let scene = scene(&[("a.png", b"\x89PNG\0\0\x01"), ("b.png", b"\x89PNG\0\0\x02")]);
    let result = scene.run("Diff", &json!({ "path_a": "a.png", "path_b": "b.png" })).unwrap();
    assert_eq!(result["diff"], json!("Binary files a.png and b.png differ\n"));
    assert_eq!(
        (&result["binary"], &result["identical"], &result["diff_lines"]),
        (&json!(true), &json!(false), &json!(1))
    );
    let same = scene.run("Diff", &json!({ "path_a": "a.png", "path_b": "a.png" })).unwrap();
    assert_eq!((&same["diff"], &same["identical"]), (&json!(""), &json!(true)));
}

#[test]
fn encoding_change_is_decoded_and_noted() {
    let scene = scene(&[("latin", b"caf\xE9\n"), ("utf8", "café\n".as_bytes())]);
    let result = scene.run("Diff", &json!({ "path_a": "latin", "path_b": "utf8" })).unwrap();
    assert!(result["diff"].as_str().unwrap().ends_with("-café\n+café\n"));
    assert_eq!(result["notes"], json!(["encoding changes from Latin-1 to UTF-8"]));
}

#[test]
fn labels_replace_paths() {
    let scene = scene(&[("a", b"1\n"), ("b", b"2\n")]);
    let arguments = json!({ "path_a": "a", "path_b": "b", "label_a": "left", "label_b": "right" });
    let result = scene.run("Diff", &arguments).unwrap();
    assert!(result["diff"].as_str().unwrap().starts_with("--- left\n+++ right\n"));
}
