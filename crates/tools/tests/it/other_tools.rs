//! Tests of the tools other than `Diff`.

use serde_json::json;

use crate::Scene;

#[test]
fn echo_needs_no_grant() {
    assert_eq!(Scene::new(&[]).run("Echo", &json!({ "text": "hi" })).unwrap(), json!({ "text": "hi" }));
}

#[test]
fn unknown_tool_error_lists_tools() {
    let error = Scene::new(&[]).run("Dif", &json!({})).unwrap_err();
    assert_eq!(error.kind.name(), "invalid_args");
    assert!(error.message.contains("`Dif`") && error.hint.unwrap().contains("Diff"));
}

#[test]
fn read_returns_decoded_lines() {
    let utf16: Vec<u8> = "\u{FEFF}a\r\nb\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let scene = Scene::new(&[("w", &utf16), ("n", b"1\n2\n3\n4\n"), ("bin", b"\0\x01")]).grant("Read").read(&["**"]);
    let wide = scene.run("Read", &json!({ "path": "w" })).unwrap();
    assert_eq!(
        (&wide["content"], &wide["encoding"], &wide["line_ending"], &wide["bom"]),
        (&json!("a\r\nb\r\n"), &json!("utf16-le"), &json!("crlf"), &json!(true))
    );
    let some = scene.run("Read", &json!({ "path": "n", "offset": 2, "limit": 2 })).unwrap();
    assert_eq!((&some["content"], &some["lines"], &some["truncated"]), (&json!("2\n3\n"), &json!(4), &json!(true)));
    let beyond = scene.run("Read", &json!({ "path": "n", "offset": 99 })).unwrap();
    assert_eq!(beyond["content"], json!(""));
    assert_eq!(scene.run("Read", &json!({ "path": "bin" })).unwrap()["binary"], json!(true));
    assert_eq!(scene.kind("Read", &json!({ "path": "n", "offset": 0 })), "invalid_args");
    assert_eq!(scene.kind("Read", &json!({ "path": "" })), "invalid_args");
}

#[test]
fn write_is_unavailable_and_writes_nothing() {
    let scene = Scene::new(&[("a", b"old")]).grant("Write");
    assert_eq!(scene.kind("Write", &json!({ "path": "a", "content": "new" })), "unavailable");
    assert_eq!(scene.kind("Write", &json!({ "path": "../a", "content": "new" })), "fs_denied");
    assert_eq!(std::fs::read(scene.directory.path().join("a")).unwrap(), b"old");
}

#[test]
fn list_shows_readable_entries() {
    let files: &[(&str, &[u8])] = &[("src/a.rs", b"12"), ("src/b.txt", b""), ("src/sub/c.rs", b"")];
    let scene = Scene::new(files).grant("List").read(&["src/*.rs"]);
    let listed = scene.run("List", &json!({ "path": "src" })).unwrap();
    assert_eq!(listed["entries"], json!([{ "name": "a.rs", "type": "file", "size": 2 }]));
    assert_eq!(scene.kind("List", &json!({ "path": "src/sub" })), "fs_denied");
    assert_eq!(scene.kind("List", &json!({ "path": "absent" })), "fs_denied", "existence is not revealed");
    let linked = Scene::new(&[("open/x", b""), ("secret/key", b"")]).grant("List").read(&["open"]);
    std::os::unix::fs::symlink("../secret", linked.directory.path().join("open/way")).unwrap();
    assert_eq!(linked.kind("List", &json!({ "path": "open/way" })), "fs_denied");
    let linked = linked.grant("Glob");
    assert_eq!(linked.kind("Glob", &json!({ "pattern": "**", "path": "open/way" })), "fs_denied");
    let all = Scene::new(files).grant("List").read(&["."]);
    let root = all.run("List", &json!({})).unwrap();
    assert_eq!(root["entries"], json!([{ "name": "src", "type": "directory", "size": 0 }]));
    assert_eq!(all.kind("List", &json!({ "path": "src/a.rs" })), "tool_failed");
}

#[test]
fn glob_respects_grants_and_gitignore() {
    let files: &[(&str, &[u8])] = &[
        (".gitignore", b"target/\n*.log\n!keep.log\n"),
        ("src/.gitignore", b"generated.rs\n"),
        ("src/a.rs", b""),
        ("src/generated.rs", b""),
        ("src/deep/b.rs", b""),
        ("target/debug/c.rs", b""),
        ("x.log", b""),
        ("keep.log", b""),
        (".git/config", b""),
    ];
    let scene = Scene::new(files).grant("Glob").read(&["."]);
    let paths = |scene: &Scene, arguments| scene.run("Glob", &arguments).unwrap()["paths"].clone();
    assert_eq!(paths(&scene, json!({ "pattern": "**/*.rs" })), json!(["src/a.rs", "src/deep/b.rs"]));
    assert_eq!(paths(&scene, json!({ "pattern": "*.rs", "path": "src" })), json!(["src/a.rs"]));
    assert_eq!(paths(&scene, json!({ "pattern": "*.log" })), json!(["keep.log"]));
    let narrow = Scene::new(files).grant("Glob").read(&["src/*"]);
    assert_eq!(paths(&narrow, json!({ "pattern": "**/*.rs" })), json!(["src/a.rs"]));
    assert_eq!(scene.kind("Glob", &json!({ "pattern": "a[" })), "invalid_args");
    for hidden in ["target", "target/absent", "x.log"] {
        let kind = narrow.kind("Glob", &json!({ "pattern": "**", "path": hidden }));
        assert_eq!(kind, "fs_denied", "{hidden}: existence is not revealed");
    }
}

/// Denies files by name.
#[derive(Debug)]
struct Denied(&'static str);

impl sayso_tools::ReadFilter for Denied {
    fn allows(&self, path: &sayso_review::WsPath) -> bool {
        path.as_str() != self.0
    }
}

#[test]
fn searches_show_no_file_that_filter_denies() {
    let scene = Scene::new(&[("a.txt", b"needle\n"), ("secret.txt", b"needle\n")]);
    let scene = scene.grant("Grep").grant("Glob").grant("List").grant("Read").read(&["**"]);
    scene.with(|_, context| {
        let (denied, registry) = (Denied("secret.txt"), sayso_tools::Registry::builtin());
        let context = context.with_filter(&denied);
        for (tool, arguments) in [
            ("Grep", serde_json::json!({ "pattern": "needle" })),
            ("Glob", serde_json::json!({ "pattern": "*.txt" })),
            ("List", serde_json::json!({ "path": "." })),
        ] {
            let step = registry.prepare(tool, &arguments, &context).unwrap();
            let sayso_tools::Step::Done(output) = step else { panic!("{tool}: {step:?}") };
            assert!(output.text.contains("a.txt") && !output.text.contains("secret"), "{tool}: {}", output.text);
        }
        let error = registry.prepare("Read", &serde_json::json!({ "path": "secret.txt" }), &context).unwrap_err();
        assert!(error.message.contains("a rule denies reading `secret.txt`"), "{}", error.message);
    });
}
