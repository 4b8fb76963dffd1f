//! Tests of `sayso tool` and its errors.

use crate::Scene;

fn scene() -> Scene {
    Scene::new(&[("src/a.rs", b"one\n"), ("src/b.rs", b"two\n"), ("secret", b"s\n")])
}

const PATHS: &str = r#"{"path_a":"src/a.rs","path_b":"src/b.rs"}"#;

#[test]
fn tool_prints_one_json_value() {
    let scene = scene();
    let runs = [
        &["tool", "Diff", "--grant", "Diff", "--read", "src/**", "--args", PATHS][..],
        &["tool", "Diff", "--grant", "Diff", "--read", "src/a.rs", "--args", PATHS],
        &["tool", "Diff", "--read", "src/**", "--args", PATHS],
        &["tool", "Diff", "--grant", "Diff", "--args", "{"],
        &["tool", "Diff", "--grant", "Diff", "--args", r#"{"text_a":"","text_b":"","context_lines":21}"#],
        &["tool", "Diff", "--grant", "Diff", "--read", ".", "--args", r#"{"path_a":"src","path_b":"secret"}"#],
        &["tool", "Write", "--grant", "Write", "--args", r#"{"path":"x","content":""}"#],
        &["tool", "Nope"],
        &["tool", "Echo", "--args", r#"{"text":"hi"}"#],
        &["tool", "Echo", "--read", "../*"],
        &["tool", "Echo", "--workspace", "absent"],
    ];
    insta::assert_snapshot!(runs.map(|arguments| scene.transcript(arguments)).join("\n"));
}

#[test]
fn tool_list_has_schemas_and_needs() {
    insta::assert_snapshot!(scene().transcript(&["tool", "list"]));
}

#[test]
fn tool_arguments_come_from_stdin() {
    let output = scene().run(&["tool", "Echo", "--args", "-"], br#"{"text":"hi"}"#);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "{\n  \"text\": \"hi\"\n}\n");
}

#[test]
fn tool_accepts_full_paths() {
    let scene = scene();
    let root = scene.directory.path().canonicalize().unwrap();
    let arguments = format!(r#"{{"path_a":"{0}/src/a.rs","path_b":"{0}/src/b.rs"}}"#, root.display());
    let grant = format!("{}/src/*", root.display());
    let output = scene.run(&["tool", "Diff", "--grant", "Diff", "--read", &grant, "--args", &arguments], b"");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}
