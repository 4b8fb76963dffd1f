//! Tests of the texts that `Read`, `List` and `Glob` give a model.

use std::fmt::Write as _;

use serde_json::json;

use crate::Scene;

#[test]
fn read_numbers_lines_and_names_format() {
    let utf16: Vec<u8> = "\u{FEFF}a\r\nb".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let scene = Scene::agent(&[("a", b"x\n\ny\n"), ("w", &utf16), ("bin", b"\0\x01\x02"), ("empty", b""), ("n", b"z")]);
    assert_eq!(scene.text("Read", &json!({ "path": "a" })), "     1\tx\n     2\t\n     3\ty\n");
    assert_eq!(
        scene.text("Read", &json!({ "path": "w" })),
        "[UTF-16 BE with byte order mark; line endings: CRLF]\n     1\ta\n     2\tb\n[no newline at the end of the file]\n"
    );
    assert_eq!(
        scene.text("Read", &json!({ "path": "a", "offset": 2, "limit": 1 })),
        "     2\t\n[lines 3 to 3 are not shown; go on with offset 3]\n"
    );
    assert_eq!(scene.text("Read", &json!({ "path": "a", "offset": 9 })), "`a` has only 3 lines.\n");
    assert_eq!(scene.text("Read", &json!({ "path": "bin" })), "`bin` is binary, 3 bytes. Its content is not shown.\n");
    assert_eq!(scene.text("Read", &json!({ "path": "empty" })), "`empty` is empty.\n");
}

#[test]
fn long_read_is_bounded_and_continues() {
    let mut long = String::new();
    for number in 1..=3_000 {
        writeln!(long, "{number}").unwrap();
    }
    long.push_str(&"é".repeat(5_000));
    let huge = vec![b'a'; 4 * 1024 * 1024 + 1];
    let limit = vec![b'b'; 4 * 1024 * 1024];
    let scene = Scene::agent(&[("long", long.as_bytes()), ("huge", &huge), ("limit", &limit)]);
    let first = scene.text("Read", &json!({ "path": "long" }));
    assert!(first.ends_with("  2000\t2000\n[lines 2001 to 3001 are not shown; go on with offset 2001]\n"), "{first}");
    let rest = scene.text("Read", &json!({ "path": "long", "offset": 2001 }));
    assert!(rest.contains("  3000\t3000\n  3001\té") && rest.contains("… [6000 more bytes]"), "{rest}");
    let error = scene.error("Read", &json!({ "path": "huge" }));
    assert!(error.kind.name() == "tool_failed" && error.message.contains("4194304"), "{}", error.message);
    assert!(scene.text("Read", &json!({ "path": "limit" })).contains("… [4192304 more bytes]"));
}

#[test]
fn read_outside_is_denied() {
    let scene = Scene::agent(&[("a", b"")]);
    std::os::unix::fs::symlink("/etc/passwd", scene.directory.path().join("link")).unwrap();
    std::os::unix::fs::symlink("/etc", scene.directory.path().join("etc")).unwrap();
    for path in ["link", "etc/passwd", "../x", "/etc/passwd"] {
        assert_eq!(scene.error("Read", &json!({ "path": path })).kind.name(), "fs_denied", "{path}");
    }
    for (tool, arguments) in [
        ("List", json!({ "path": "etc" })),
        ("Glob", json!({ "path": "etc", "pattern": "**" })),
        ("Grep", json!({ "path": "etc", "pattern": "root" })),
        ("Grep", json!({ "path": "link", "pattern": "root" })),
        ("Exec", json!({ "command": "ls", "directory": "etc" })),
    ] {
        assert_eq!(scene.error(tool, &arguments).kind.name(), "fs_denied", "{tool}");
    }
    assert!(!scene.text("Grep", &json!({ "pattern": "." })).contains("root"));
}

#[test]
fn list_omits_ignored_entries() {
    let scene =
        Scene::agent(&[("src/a.rs", b"12"), ("src/b.log", b""), ("src/node_modules/x", b""), ("src/gen/y", b"")]);
    let arguments = json!({ "path": "src", "ignore": ["*.log", "node_modules/", "src/gen"] });
    assert_eq!(scene.text("List", &arguments), "a.rs (2 bytes)\n");
    assert_eq!(scene.text("List", &json!({ "path": "src" })).lines().count(), 4);
    assert_eq!(scene.text("List", &json!({ "path": "src", "ignore": ["*"] })), "`src` has no entries to show.\n");
    assert_eq!(scene.error("List", &json!({ "ignore": ["["] })).kind.name(), "invalid_args");
    assert_eq!(scene.text("Glob", &json!({ "pattern": "*.md" })), "(no file matches)\n");
}
