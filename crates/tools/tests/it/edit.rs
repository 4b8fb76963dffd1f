//! Tests of `Edit`, `Write` and `ApplyPatch`.

use std::fmt::Write as _;

use sayso_review::{FileIntent, Note};
use serde_json::{Value, json};

use crate::Scene;

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "path": path, "old_string": old, "new_string": new })
}

#[test]
fn edit_keeps_format_of_file() {
    let utf16: Vec<u8> = "\u{FEFF}one\r\ntwo".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let expected: Vec<u8> = "\u{FEFF}1\r\nI\r\ntwo".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let files: &[(&str, &[u8])] =
        &[("w", &utf16), ("crlf", b"a\r\nb\r\nc"), ("latin", b"caf\xE9\nx\n"), ("bom", b"\xEF\xBB\xBFa\n")];
    let scene = Scene::agent(files);
    let result = |path: &str, old: &str, new: &str| scene.result(&scene.change("Edit", &edit(path, old, new)), path);
    assert_eq!(result("w", "one\n", "1\nI\n"), expected);
    assert_eq!(result("crlf", "a\nb", "1\n2\n3"), b"1\r\n2\r\n3\r\nc");
    assert_eq!(result("crlf", "b\r\nc", "c"), b"a\r\nc");
    assert_eq!(result("latin", "x", "é"), b"caf\xE9\n\xE9\n");
    assert_eq!(result("bom", "a", "b"), b"\xEF\xBB\xBFb\n");
}

#[test]
fn absent_text_error_shows_nearest_lines() {
    let mut code = String::new();
    for number in 1..200 {
        writeln!(code, "    let value_{number} = compute({number});").unwrap();
    }
    let scene = Scene::agent(&[("a.rs", code.as_bytes())]);
    let error = scene.error("Edit", &edit("a.rs", "let value_150 = compute(151);\n", "x\n"));
    assert_eq!(error.kind.name(), "conflict");
    assert!(error.message.contains("   150\t    let value_150 = compute(150);"), "{}", error.message);
    assert!(error.hint.unwrap().contains("Read"));
    let unlike = scene.error("Edit", &edit("a.rs", "zzz", "x"));
    assert!(unlike.message.contains("No line is similar"), "{}", unlike.message);
    // One wrong line within a block.
    let block = "    let value_7 = compute(7);\n    let wrong;\n    let value_9 = compute(9);\n";
    let error = scene.error("Edit", &edit("a.rs", block, ""));
    assert!(error.message.contains("     8\t    let value_8"), "{}", error.message);
}

#[test]
fn repeated_text_error_shows_occurrences() {
    let scene = Scene::agent(&[("a", b"x\nfoo\ny\nfoo\nz\n")]);
    let error = scene.error("Edit", &edit("a", "foo", "bar"));
    assert_eq!(error.kind.name(), "conflict");
    assert!(error.message.contains("2 times") && error.message.contains("     4\tfoo"), "{}", error.message);
    assert!(error.hint.unwrap().contains("replace_all"));
    let all = json!({ "path": "a", "old_string": "foo", "new_string": "bar", "replace_all": true });
    assert_eq!(scene.result(&scene.change("Edit", &all), "a"), b"x\nbar\ny\nbar\nz\n");
}

#[test]
fn tolerant_match_is_noted_and_told() {
    let scene = Scene::agent(&[("a.py", b"def f():\r\n    if x:\r\n        y()\r\n")]);
    let step = scene.change("Edit", &edit("a.py", "if x:\n    y()\n", "if x:\n    z()\n"));
    assert_eq!(scene.result(&step, "a.py"), b"def f():\r\n    if x:\r\n        z()\r\n");
    let [note] = &step.notes[..] else { panic!("{:?}", step.notes) };
    assert_eq!(note.note, Some(Note::Loosened { hunk: 1, ignored: "white space around lines".to_owned() }));
    assert!(step.notes_text().starts_with("Note: a.py: `old_string` matched at line 2"), "{}", step.notes_text());
    // Every occurrence cannot be found tolerantly.
    let all = json!({ "path": "a.py", "old_string": "if x: \n", "new_string": "", "replace_all": true });
    assert_eq!(scene.error("Edit", &all).kind.name(), "conflict");
}

#[test]
fn edit_of_unsuitable_file_fails() {
    let huge = vec![b'a'; 4 * 1024 * 1024 + 1];
    let scene = Scene::agent(&[("bin", b"a\0b"), ("huge", &huge), ("dir/x", b""), ("a", b"a\n")]);
    std::os::unix::fs::symlink("/etc/passwd", scene.directory.path().join("out")).unwrap();
    for (path, kind) in [
        ("bin", "tool_failed"),
        ("huge", "tool_failed"),
        ("dir", "tool_failed"),
        ("absent", "tool_failed"),
        ("out", "fs_denied"),
        ("../x", "fs_denied"),
        ("/etc/passwd", "fs_denied"),
        ("a\0b", "invalid_args"),
        ("", "invalid_args"),
    ] {
        assert_eq!(scene.error("Edit", &edit(path, "a", "b")).kind.name(), kind, "{path:?}");
    }
    assert_eq!(scene.error("Edit", &edit("a", "a", "a")).kind.name(), "invalid_args");
    assert_eq!(scene.error("Edit", &edit("a", "", "b")).kind.name(), "conflict", "the file is not empty");
    assert_eq!(scene.result(&scene.change("Edit", &edit("new", "", "b\n")), "new"), b"b\n");
}

#[test]
fn change_needs_both_grants() {
    let scene = Scene::agent(&[("a", b"a\n")]).write(&["src/**"]);
    for (tool, arguments) in [
        ("Edit", edit("a", "a", "b")),
        ("Write", json!({ "path": "a", "content": "b" })),
        ("ApplyPatch", json!({ "input": "*** Begin Patch\n*** Delete File: a\n*** End Patch\n" })),
    ] {
        assert_eq!(scene.error(tool, &arguments).kind.name(), "fs_denied", "{tool}");
    }
    let blind = Scene::agent(&[("a", b"secret\n")]).read(&[]);
    let error = blind.error("Edit", &edit("a", "x", "y"));
    assert!(error.kind.name() == "fs_denied" && !error.message.contains("secret"), "{}", error.message);
}

#[test]
fn write_keeps_format_and_names_base() {
    let scene = Scene::agent(&[("a", b"1\r\n2\r\n")]);
    let arguments = json!({ "path": "a", "content": "1\n3\n" });
    let step = scene.change("Write", &arguments);
    assert_eq!(scene.result(&step, "a"), b"1\r\n3\r\n");
    assert!(matches!(&step.proposal.changes[0], FileIntent::Write(content) if content.base_content.is_none()));
    scene.text("Read", &json!({ "path": "a" }));
    let step = scene.change("Write", &arguments);
    let FileIntent::Write(content) = &step.proposal.changes[0] else { panic!("{step:?}") };
    assert_eq!(content.base_content.as_deref(), Some("1\n2\n"));
    // An edit that someone makes before the verdict is merged.
    std::fs::write(scene.directory.path().join("a"), b"0\r\n1\r\n2\r\n").unwrap();
    assert_eq!(scene.result(&step, "a"), b"0\r\n1\r\n3\r\n");
    let same = scene.change("Write", &json!({ "path": "new/deep", "content": "" }));
    assert_eq!(scene.result(&same, "new/deep"), b"");
}

#[test]
fn patch_changes_several_files() {
    let scene = Scene::agent(&[("a", b"one  \ntwo\n"), ("b", b"x\n")]);
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-one\n+1\n two\n*** Delete File: b\n*** Add File: c\n+new\n*** End Patch\n";
    for arguments in [json!({ "input": patch }), json!({ "patch": patch }), json!(patch)] {
        let step = scene.change("ApplyPatch", &arguments);
        assert_eq!((scene.result(&step, "a"), scene.result(&step, "c")), (b"1\ntwo\n".to_vec(), b"new\n".to_vec()));
        assert!(step.notes_text().contains("white space at the end of lines"), "{}", step.notes_text());
        assert!(step.notes.iter().all(|note| note.note.is_none()), "the preview has them");
    }
}

#[test]
fn unfit_patch_error_shows_nearest_lines() {
    let scene = Scene::agent(&[("a", b"first line\nsecond line here\nthird line\n")]);
    let patch = |body: &str| json!({ "input": format!("*** Begin Patch\n{body}*** End Patch\n") });
    let error = scene.error("ApplyPatch", &patch("*** Update File: a\n@@\n-second line there\n+2\n"));
    assert_eq!(error.kind.name(), "conflict");
    assert!(error.message.contains("     2\tsecond line here"), "{}", error.message);
    assert_eq!(scene.error("ApplyPatch", &patch("*** Update File: gone\n@@\n-a\n+b\n")).kind.name(), "conflict");
    assert_eq!(scene.error("ApplyPatch", &patch("*** Update File: ../a\n@@\n-a\n+b\n")).kind.name(), "fs_denied");
    assert_eq!(scene.error("ApplyPatch", &json!({ "input": "no patch" })).kind.name(), "invalid_args");
}
