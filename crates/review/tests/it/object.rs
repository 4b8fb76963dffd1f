//! Fields of the JSON object that the user's seed specifies.

use serde_json::{Value, json};

use crate::{preview, write};

fn object(files: &[(&str, &str)], proposal: &str) -> Value {
    serde_json::to_value(preview(files, proposal).object()).unwrap()
}

#[test]
fn object_has_seed_fields() {
    let object = object(
        &[("a.txt", "one\n"), ("gone.txt", "x\n"), ("there.txt", "x\n")],
        r#"{"changes":[
            {"path":"a.txt","operation":"update","new_content":"two\n"},
            {"path":"new.txt","operation":"create","new_content":"new\n"},
            {"path":"gone.txt","operation":"delete"},
            {"path":"there.txt","operation":"create","new_content":"y\n"}]}"#,
    );
    let change =
        |path: &str| object["changes"].as_array().unwrap().iter().find(|change| change["path"] == path).unwrap();
    assert_eq!(change("a.txt")["operation"], "update");
    let diff = "--- a.txt (current)\n+++ a.txt (proposed)\n@@ -1 +1 @@\n-one\n+two\n";
    assert_eq!(change("a.txt")["unified_diff"], diff);
    assert_eq!(change("a.txt")["new_content"], "two\n");
    assert_eq!(change("a.txt")["conflict"], false);
    assert_eq!(change("a.txt").get("warning"), None);

    assert_eq!(change("new.txt")["operation"], "create");
    let diff = "--- /dev/null\n+++ new.txt (new file)\n@@ -0,0 +1 @@\n+new\n";
    assert_eq!(change("new.txt")["unified_diff"], diff);
    assert_eq!(change("new.txt")["new_content"], "new\n");

    assert_eq!(change("gone.txt")["operation"], "delete");
    assert_eq!(change("gone.txt").get("new_content"), None);

    assert_eq!(change("there.txt")["operation"], "create");
    assert_eq!(change("there.txt")["conflict"], true);
    assert_eq!(change("there.txt")["warning"], "it exists already");
    assert_eq!(change("there.txt").get("new_content"), None);

    assert_eq!(object["has_conflicts"], true);
    assert_eq!(object["warnings"], json!(["there.txt: it exists already"]));
}

#[test]
fn object_types_match_seed() {
    let object = object(&[("Cargo.lock", "a\n"), ("a", "a\n")], &write(&[("Cargo.lock", "b\n"), ("a", "b\n")]));
    assert!(object["has_conflicts"].is_boolean());
    assert!(object["warnings"].as_array().unwrap().iter().all(Value::is_string));
    for change in object["changes"].as_array().unwrap() {
        for name in ["path", "operation", "unified_diff", "new_content"] {
            assert!(change[name].is_string(), "{name}");
        }
        assert!(change["conflict"].is_boolean());
        assert!(change.get("warning").is_none_or(Value::is_string));
    }
    assert!(
        object["changes"][0]["warning"].as_str().unwrap().starts_with("a lock file"),
        "a warning without a conflict"
    );
    assert_eq!(object["has_conflicts"], false);
}

#[test]
fn unchanged_file_says_no_changes() {
    let object = object(&[("a", "a\n")], &write(&[("a", "a\n")]));
    assert_eq!(object["changes"][0]["unified_diff"], "(no changes)");
    assert_eq!(object["changes"][0]["hunks"], json!([]));
}

#[test]
fn hunk_numbers_match_verdict_ids() {
    let object = object(&[("a", &crate::lines(&[]))], &write(&[("a", &crate::lines(&[2, 5, 20]))]));
    let hunks = object["changes"][0]["hunks"].as_array().unwrap();
    let ids: Vec<(&str, u64)> =
        hunks.iter().map(|hunk| (hunk["id"].as_str().unwrap(), hunk["parts"].as_u64().unwrap())).collect();
    assert_eq!(ids, [("1", 2), ("2", 1)]);
}
