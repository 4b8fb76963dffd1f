//! `Diff` compared with Python's `difflib`, on which the seed's own version is built. Cases with one minimal diff give equal text.

use std::fmt::Write as _;

use sayso_testkit::programs;
use serde_json::{Value, json};

use crate::Scene;

const SCRIPT: &str = r#"
import difflib, json, sys
cases = json.load(sys.stdin)
out = []
for case in cases:
    a, b = case["a"].splitlines(keepends=True), case["b"].splitlines(keepends=True)
    text = ""
    for line in difflib.unified_diff(a, b, case["label_a"], case["label_b"], n=case["n"]):
        text += line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
    out.append({"diff": text, "lines_a": len(a), "lines_b": len(b)})
json.dump(out, sys.stdout)
"#;

fn python(cases: &[Value]) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    let input = serde_json::to_vec(cases).unwrap();
    let output = programs::run(directory.path(), "python3", &["-c", SCRIPT], &input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn cases() -> Vec<Value> {
    let numbered = |range: std::ops::Range<usize>| {
        range.fold(String::new(), |mut text, n| {
            writeln!(text, "line {n}").unwrap();
            text
        })
    };
    let mut cases = Vec::new();
    let texts = [
        (String::new(), "new\n".to_owned()),
        ("gone\n".to_owned(), String::new()),
        ("a\nb\nc\n".to_owned(), "a\nB\nc\n".to_owned()),
        ("a\nb".to_owned(), "a\nb\n".to_owned()),
        ("a\nb".to_owned(), "a\nc".to_owned()),
        (numbered(0..50), numbered(0..50).replace("line 20\n", "").replace("line 40\n", "line 40\nextra\n")),
        (numbered(0..50), numbered(3..47)),
        (numbered(0..9), numbered(0..9)),
    ];
    for (a, b) in texts {
        for n in [0, 1, 3, 20] {
            cases.push(json!({ "a": a, "b": b, "n": n, "label_a": "one", "label_b": "two" }));
        }
    }
    cases
}

#[test]
fn unambiguous_diff_equals_difflib() {
    let scene = Scene::new(&[]).grant("Diff");
    let cases = cases();
    for (case, theirs) in cases.iter().zip(python(&cases)) {
        let arguments = json!({
            "text_a": case["a"], "text_b": case["b"], "label_a": "one", "label_b": "two", "context_lines": case["n"]
        });
        let ours = scene.run("Diff", &arguments).unwrap();
        for key in ["diff", "lines_a", "lines_b"] {
            assert_eq!(ours[key], theirs[key], "{key} of {case}");
        }
    }
}
