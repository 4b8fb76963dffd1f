//! Order of files and notes for the reviewer.

use sayso_review::{Operation, Preview};

use crate::{path, preview, write};

fn order(preview: &Preview) -> Vec<&str> {
    preview.files().iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn problems_precede_severe_notes() {
    let texts = [("plain", "b\n"), ("Cargo.lock", "b\n"), ("other", "b\n"), (".github/workflows/ci.yml", "b\n")];
    let files: Vec<(&str, &str)> = texts.iter().map(|(path, _)| (*path, "a\n")).chain([("there", "")]).collect();
    let mut changes: Vec<serde_json::Value> = serde_json::from_str(&write(&texts)).unwrap();
    changes.push(serde_json::json!({ "operation": "create", "path": "there", "content": "x" }));
    let shown = preview(&files, &serde_json::Value::Array(changes).to_string());
    assert_eq!(order(&shown), ["there", ".github/workflows/ci.yml", "Cargo.lock", "plain", "other"]);
}

#[test]
fn notes_are_sorted_by_severity() {
    let secret = format!("key = \"AKIA{}\"", "Q3EGRZ7TLW2XKJ5M");
    let shown = preview(&[("Cargo.toml", "a = 1\n")], &write(&[("Cargo.toml", &secret)]));
    let severities: Vec<_> = shown.files()[0].notes.iter().map(sayso_review::Note::severity).collect();
    assert!(severities.len() >= 3, "{:?}", shown.files()[0].notes);
    assert!(severities.is_sorted_by(|first, second| first >= second), "{severities:?}");
}

#[test]
fn rename_over_file_shows_both_changes() {
    let files = [("new", "new\n"), ("old", "old\n")];
    let shown =
        preview(&files, r#"[{"operation":"delete","path":"old"},{"operation":"rename","path":"new","to":"old"}]"#);
    let operations: Vec<_> = shown.files().iter().map(|file| (file.path.as_str(), &file.operation)).collect();
    assert_eq!(operations, [("old", &Operation::Update), ("new", &Operation::Delete)]);
    assert!(shown.files()[0].unified().contains("-old\n+new\n"));
}

#[test]
fn temporary_names_are_hidden() {
    let rename = |path: &str, to: &str| serde_json::json!({ "operation": "rename", "path": path, "to": to });
    let swap = serde_json::json!([rename("a", "c"), rename("b", "a"), rename("c", "b")]).to_string();
    assert_eq!(order(&preview(&[("a", "a\n"), ("b", "b\n")], &swap)), ["a", "b"]);
    let away = serde_json::json!([rename("a", "c"), { "operation": "delete", "path": "c" }]).to_string();
    let shown = preview(&[("a", "a\n")], &away);
    assert_eq!((order(&shown), &shown.files()[0].operation), (vec!["a"], &Operation::Delete));
    let twice = serde_json::json!([rename("a", "b"), rename("b", "c")]).to_string();
    let shown = preview(&[("a", "a\n")], &twice);
    assert_eq!((order(&shown), &shown.files()[0].operation), (vec!["c"], &Operation::Rename { from: path("a") }));
}
