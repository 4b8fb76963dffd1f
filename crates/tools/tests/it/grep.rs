//! Tests of `Grep`.

use serde_json::{Value, json};

use crate::Scene;

fn scene() -> Scene {
    let utf16: Vec<u8> = "\u{FEFF}wide needle\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let files: &[(&str, &[u8])] = &[
        (".gitignore", b"target/\n"),
        ("a.rs", b"one\nneedle()\nthree\nfour\nneedle\n"),
        ("b.txt", b"Needle\r\n"),
        ("src/deep/c.rs", b"no\nneedle"),
        ("target/x.rs", b"needle\n"),
        ("wide", &utf16),
        ("bin", b"needle\0\n"),
        ("secret/key", b"needle\n"),
    ];
    Scene::agent(files).read(&["*", "src/**", "target/**"])
}

#[test]
fn grep_finds_lines_of_granted_files() {
    let scene = scene();
    let text = scene.text("Grep", &json!({ "pattern": "needle" }));
    assert_eq!(
        text, "a.rs:2:needle()\na.rs:5:needle\nsrc/deep/c.rs:2:needle\nwide:1:wide needle\n",
        "no ignored, binary or secret file"
    );
    let files = scene.text("Grep", &json!({ "pattern": "needle", "include": "*.rs", "output": "files" }));
    assert_eq!(files, "a.rs\nsrc/deep/c.rs\n");
    let count = scene.text("Grep", &json!({ "pattern": "^needle$", "output": "count", "ignore_case": true }));
    assert_eq!(count, "a.rs: 1\nb.txt: 1\nsrc/deep/c.rs: 1\n");
    assert_eq!(scene.text("Grep", &json!({ "pattern": "needle()", "literal": true })), "a.rs:2:needle()\n");
    assert_eq!(scene.text("Grep", &json!({ "pattern": "needle", "path": "target/x.rs" })), "target/x.rs:1:needle\n");
    assert_eq!(
        scene.text("Grep", &json!({ "pattern": "absent" })),
        "(no line matches)\n[1 binary files were not searched]\n"
    );
    assert_eq!(scene.error("Grep", &json!({ "pattern": "x", "path": "secret/key" })).kind.name(), "fs_denied");
    let data = scene.run("Grep", &json!({ "pattern": "needle", "include": "src/**" })).unwrap();
    assert_eq!(data["files"][0]["lines"][0], json!({ "line": 2, "text": "needle", "matched": true }));
}

#[test]
fn grep_context_groups_lines() {
    let text = scene().text("Grep", &json!({ "pattern": "needle", "path": "a.rs", "context": 1 }));
    assert_eq!(text, "a.rs-1-one\na.rs:2:needle()\na.rs-3-three\na.rs-4-four\na.rs:5:needle\n--\n");
    let apart = Scene::agent(&[("a", b"x\n1\n2\n3\nx\n")]).text("Grep", &json!({ "pattern": "x", "context": 1 }));
    assert_eq!(apart, "a:1:x\na-2-1\n--\na-4-3\na:5:x\n--\n");
}

#[test]
fn grep_result_is_bounded() {
    let many: String = (0..5_000).map(|_| "needle\n").collect();
    let long = format!("{}needle{}\n", "é".repeat(10_000), "x".repeat(10_000));
    let scene = Scene::agent(&[("many", many.as_bytes()), ("long", long.as_bytes()), ("huge", &vec![b'n'; 5 << 20])]);
    let text = scene.text("Grep", &json!({ "pattern": "needle" }));
    assert_eq!(text.lines().count(), 202, "200 lines, and what is missing");
    assert!(text.contains("there may be more") && text.contains("1 files were not searched: too large"), "{text}");
    assert!(text.lines().all(|line| line.len() < 600) && text.contains("…é"));
    let data = scene.run("Grep", &json!({ "pattern": "needle", "limit": 1 })).unwrap();
    assert_eq!((&data["matches"], &data["truncated"]), (&json!(1), &json!(true)));
}

#[test]
fn grep_rejects_bad_arguments() {
    let scene = scene();
    let error = |arguments: Value| {
        let error = scene.error("Grep", &arguments);
        assert_eq!(error.kind.name(), "invalid_args", "{}", error.message);
        error.message
    };
    assert!(error(json!({ "pattern": "(" })).contains("unclosed group"));
    assert!(error(json!({ "pattern": "((a{1000}){1000}){1000}" })).contains("too large"));
    assert!(error(json!({ "pattern": "" })).contains("empty"));
    assert!(error(json!({ "pattern": "a", "context": 11 })).contains("context"));
    assert!(error(json!({ "pattern": "a", "limit": 0 })).contains("limit"));
    assert!(error(json!({ "pattern": "a", "include": "[" })).contains("[`"));
    assert_eq!(scene.error("Grep", &json!({ "pattern": "a", "path": "absent" })).kind.name(), "tool_failed");
}

#[test]
fn hostile_names_stay_on_one_line() {
    let scene = Scene::agent(&[("evil\nb.rs:1:fake", b"needle\n")]);
    let text = scene.text("Grep", &json!({ "pattern": "needle" }));
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_eq!(scene.text("List", &json!({})).lines().count(), 1);
    assert_eq!(scene.text("Glob", &json!({ "pattern": "**" })).lines().count(), 1);
}
