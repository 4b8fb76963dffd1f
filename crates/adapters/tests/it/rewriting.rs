//! Rewritten inputs make exactly the approved content.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sayso_adapters::Agent;
use sayso_adapters::hook::{CannotRewrite, HookCall, HookEvent, Rewrite, rewrite};
use sayso_review::{FileMode, FileState, PlanStep, WsPath};
use serde_json::{Value, json};

use super::tool_models::{claude_edit, codex_apply};

const ROOT: &str = "/w";

pub(crate) fn call(agent: Agent, tool: &str, input: Value) -> HookCall {
    HookCall {
        agent,
        session: "s".to_owned(),
        cwd: ROOT.to_owned(),
        turn: None,
        subagent: None,
        event: HookEvent::PreToolUse { call: None, tool: tool.to_owned(), input },
    }
}

pub(crate) fn step(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> PlanStep {
    let state = |bytes: Option<&[u8]>| bytes.map_or(FileState::Absent, |bytes| FileState::file(bytes, FileMode::PLAIN));
    PlanStep { path: WsPath::parse(path).unwrap(), before: state(before), after: state(after) }
}

fn edit(old: &str, new: &str) -> HookCall {
    call(
        Agent::Claude,
        "Edit",
        json!({"file_path": "/w/a", "old_string": old, "new_string": new, "replace_all": false}),
    )
}

fn patch(text: &str) -> HookCall {
    call(Agent::Codex, "apply_patch", json!({"command": text}))
}

fn input(rewrite: Rewrite, call: &HookCall) -> Value {
    match (rewrite, &call.event) {
        (Rewrite::Input(input), _) => input,
        (Rewrite::AsIs, HookEvent::PreToolUse { input, .. }) => input.clone(),
        (Rewrite::AsIs, _) => panic!("only a call before a tool is rewritten"),
    }
}

/// Generates texts with repeated lines and the given line endings.
fn text(endings: &'static [&'static str], last: &'static [&'static str]) -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "",
        "a",
        "b",
        "c",
        "a b",
        " a",
        "a ",
        "“a”",
        "\"a\"",
        "$&",
        "+a",
        "-a",
        "@@",
        "*** End Patch",
    ]);
    let line = (words, prop::sample::select(endings)).prop_map(|(word, ending)| format!("{word}{ending}"));
    let end = prop::sample::select(last);
    (prop::collection::vec(line, 0..30), end).prop_map(|(lines, end)| lines.concat() + end)
}

/// Generates two texts that differ in some or all lines.
fn two_texts(
    endings: &'static [&'static str],
    last: &'static [&'static str],
) -> impl Strategy<Value = (String, String)> {
    let some_lines =
        (text(endings, last), prop::collection::vec((0..30_usize, 0..3_usize, text(endings, &[""])), 0..4));
    let edited = some_lines.prop_map(|(before, edits)| {
        let mut lines: Vec<String> = before.split_inclusive('\n').map(str::to_owned).collect();
        for (at, gone, new) in edits {
            let start = at.min(lines.len());
            let end = (start + gone).min(lines.len());
            lines.splice(start..end, new.split_inclusive('\n').take(3).map(str::to_owned));
        }
        (before, lines.concat())
    });
    prop_oneof![3 => edited, 1 => (text(endings, last), text(endings, last))]
}

fn claude_makes(before: &str, after: &str, original: (&str, &str)) -> Result<Option<Vec<u8>>, CannotRewrite> {
    let call = edit(original.0, original.1);
    let rewritten = rewrite(&call, &[step("a", Some(before.as_bytes()), Some(after.as_bytes()))], ROOT)?;
    Ok(claude_edit(before.as_bytes(), &input(rewritten, &call)))
}

fn codex_makes(before: Option<&str>, after: Option<&str>) -> Result<Option<Vec<u8>>, CannotRewrite> {
    let call = patch("*** Begin Patch\n*** End Patch\n");
    let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
    let steps = [step("a", bytes(before).as_deref(), bytes(after).as_deref())];
    let rewritten = input(rewrite(&call, &steps, ROOT)?, &call);
    let files = before.map(|before| BTreeMap::from([("a".to_owned(), before.as_bytes().to_vec())])).unwrap_or_default();
    Ok(codex_apply(&files, rewritten["command"].as_str().unwrap()).unwrap().remove("a"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn claude_edit_makes_any_unix_text((before, after) in two_texts(&["\n"], &["", "a", "b"])) {
        prop_assume!(before != after);
        prop_assert_eq!(claude_makes(&before, &after, ("a", "b")), Ok(Some(after.into_bytes())));
    }

    #[test]
    fn claude_edit_makes_approved_bytes_or_fails(
        (before, after) in two_texts(&["\n", "\r\n", "\r\n", "\r"], &["", "a", "a\r"]),
        original in (text(&["\n"], &["", "a"]), text(&["\n"], &["", "a"])),
    ) {
        prop_assume!(before != after);
        let made = claude_makes(&before, &after, (&original.0, &original.1));
        match made {
            Ok(made) => prop_assert_eq!(made, Some(after.into_bytes())),
            Err(error) => prop_assert!(matches!(error, CannotRewrite::LineEndings { .. }), "{}", error),
        }
    }

    #[test]
    fn claude_edit_makes_any_windows_text((before, after) in two_texts(&["\r\n"], &["", "a"])) {
        prop_assume!(before != after && before.contains("\r\n"));
        prop_assert_eq!(claude_makes(&before, &after, ("a", "b")), Ok(Some(after.into_bytes())));
    }

    #[test]
    fn edit_is_unchanged_only_if_exact(
        before in text(&["\n", "\r\n"], &["", "a"]),
        (start, end) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        new in text(&["\n"], &["", "b"]),
    ) {
        // `old` is any slice of the text, not aligned to lines.
        let seen: Vec<char> = before.replace("\r\n", "\n").chars().collect();
        let (start, end) = (start.index(seen.len() + 1), end.index(seen.len() + 1));
        let old: String = seen[start.min(end)..start.max(end)].iter().collect();
        let call = edit(&old, &new);
        let Some(made) = claude_edit(before.as_bytes(), &json!({"old_string": old, "new_string": new})) else { return Ok(()) };
        if made != before.as_bytes() {
            let steps = [step("a", Some(before.as_bytes()), Some(&made))];
            prop_assert_eq!(rewrite(&call, &steps, ROOT), Ok(Rewrite::AsIs));
        }
        let other = [made, b"more\n".to_vec()].concat();
        let steps = [step("a", Some(before.as_bytes()), Some(&other))];
        prop_assert_ne!(rewrite(&call, &steps, ROOT), Ok(Rewrite::AsIs));
    }

    #[test]
    fn codex_makes_newline_terminated_unix_text((before, after) in two_texts(&["\n"], &["", "a", "b"])) {
        let after = if after.is_empty() || after.ends_with('\n') { after } else { after + "\n" };
        prop_assume!(before != after);
        prop_assert_eq!(codex_makes(Some(&before), Some(&after)), Ok(Some(after.clone().into_bytes())));
        prop_assert_eq!(codex_makes(None, Some(&after)), Ok(Some(after.into_bytes())));
        prop_assert_eq!(codex_makes(Some(&before), None), Ok(None));
    }

    #[test]
    fn codex_makes_newline_terminated_windows_text((before, after) in two_texts(&["\r\n"], &[""])) {
        prop_assume!(before != after && !before.is_empty());
        prop_assert_eq!(codex_makes(Some(&before), Some(&after)), Ok(Some(after.into_bytes())));
    }

    #[test]
    fn codex_makes_approved_bytes_or_fails((before, after) in two_texts(&["\n", "\r\n", "\r\n", "\r"], &["", "a", "a\r"])) {
        prop_assume!(before != after);
        match codex_makes(Some(&before), Some(&after)) {
            Ok(made) => prop_assert_eq!(made, Some(after.into_bytes())),
            Err(error) => prop_assert!(
                matches!(error, CannotRewrite::LineEndings { .. } | CannotRewrite::FinalNewline { .. }), "{}", error
            ),
        }
    }
}

#[test]
fn exact_patch_is_left_unchanged() {
    let text = "*** Begin Patch\n*** Update File: a\n@@\n b\n-c\n+C\n*** Add File: new\n+n\n*** Delete File: old\n\
                *** Update File: /w/from\n*** Move to: to\n@@ x\n-y\n+Y\n*** End Patch\n";
    let steps = [
        step("a", Some(b"b\nc\n"), Some(b"b\nC\n")),
        step("from", Some(b"y\nx\ny\n"), None),
        step("new", None, Some(b"n\n")),
        step("old", Some(b"o\n"), None),
        step("to", None, Some(b"y\nx\nY\n")),
    ];
    assert_eq!(rewrite(&patch(text), &steps, ROOT), Ok(Rewrite::AsIs));
    // The plan has fewer steps than the patch, other steps, or more.
    for steps in [&steps[..4], &steps[1..], &[&steps[..], &[step("z", None, Some(b"z\n"))]].concat()] {
        assert!(matches!(rewrite(&patch(text), steps, ROOT), Ok(Rewrite::Input(_))));
    }
}

#[test]
fn patch_from_subdirectory_gets_absolute_paths() {
    let mut call = patch("*** Begin Patch\n*** Update File: a\n@@\n-b\n+c\n*** End Patch\n");
    call.cwd = "/w/sub".to_owned();
    let steps = [step("sub/a", Some(b"b\n"), Some(b"c\n"))];
    assert_eq!(rewrite(&call, &steps, ROOT), Ok(Rewrite::AsIs));
    let steps = [step("sub/a", Some(b"b\n"), Some(b"d\n"))];
    let rewritten = input(rewrite(&call, &steps, ROOT).unwrap(), &call);
    assert_eq!(rewritten["command"], "*** Begin Patch\n*** Update File: /w/sub/a\n@@\n-b\n+d\n*** End Patch\n");
}

#[test]
fn script_patch_is_rewritten_as_script() {
    let script =
        |patch: &str| call(Agent::Codex, "Bash", json!({"command": format!("apply_patch <<'EOF'\n{patch}EOF\n")}));
    let call = script("*** Begin Patch\n*** Update File: a\n@@\n-b\n+c\n-d\n+e\n*** End Patch\n");
    assert_eq!(rewrite(&call, &[step("a", Some(b"b\nd\n"), Some(b"c\ne\n"))], ROOT), Ok(Rewrite::AsIs));
    let rewritten = input(rewrite(&call, &[step("a", Some(b"b\nd\n"), Some(b"c\nd\n"))], ROOT).unwrap(), &call);
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-b\n+c\n d\n*** End Patch\n";
    assert_eq!(rewritten["command"], format!("apply_patch <<'PATCH'\n{patch}PATCH\n"));
}

#[test]
fn impossible_content_is_rejected_with_reason() {
    let write = call(Agent::Claude, "Write", json!({"file_path": "/w/a", "content": "x"}));
    let codex = patch("*** Begin Patch\n*** End Patch\n");
    let executable = PlanStep {
        path: WsPath::parse("a").unwrap(),
        before: FileState::Absent,
        after: FileState::file("x", FileMode::EXECUTABLE),
    };
    let link = PlanStep { after: FileState::Link { target: "b".to_owned() }, ..executable.clone() };
    for (call, steps, words) in [
        (&write, vec![], "nothing of this change was approved"),
        (&write, vec![step("a", None, Some(b"1")), step("b", None, Some(b"2"))], "about 2 files"),
        (&write, vec![step("a", Some(b"1"), None)], "removal"),
        (&write, vec![step("a", Some(b"1"), Some(b"caf\xe9"))], "encoding"),
        (&edit("a", "b"), vec![step("a", Some(b"caf\xe9 a"), Some(b"caf\xe9 b"))], "encoding"),
        (&edit("b", "X"), vec![step("a", Some(b"a\r\nb\nc\r\n"), Some(b"a\r\nX\nc\r\n"))], "line endings"),
        (&write, vec![executable], "permissions"),
        (&write, vec![link], "symbolic link"),
        (&codex, vec![step("a", Some(b"a\nb"), Some(b"a\nc"))], "without a newline at its end"),
        (&codex, vec![step("a", None, Some(b"a\r\n"))], "line endings"),
        (&codex, vec![step("a ", None, Some(b"a\n"))], "cannot be written in a patch"),
        (
            &call(Agent::Claude, "Read", json!({})),
            vec![step("a", None, Some(b"a\n"))],
            "does not change the content of files",
        ),
    ] {
        let error = rewrite(call, &steps, ROOT).unwrap_err();
        assert!(error.to_string().contains(words) && !error.hint().is_empty(), "{error}");
    }
}

#[test]
fn write_keeps_line_endings_and_encoding() {
    let write = |content: &str| call(Agent::Claude, "Write", json!({"file_path": "/w/a", "content": content}));
    let rewritten = rewrite(&write("a\nb\n"), &[step("a", Some(b"a\r\n"), Some(b"a\r\nb\r\n"))], ROOT);
    assert_eq!(rewritten, Ok(Rewrite::Input(json!({"file_path": "/w/a", "content": "a\r\nb\r\n"}))));
    assert_eq!(rewrite(&write("a\n"), &[step("a", None, Some(b"a\n"))], ROOT), Ok(Rewrite::AsIs));
    let wide =
        |text: &str| [&[0xFF, 0xFE][..], &text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()].concat();
    let rewritten = rewrite(&write("é"), &[step("a", Some(&wide("e")), Some(&wide("é")))], ROOT);
    assert_eq!(rewritten, Ok(Rewrite::Input(json!({"file_path": "/w/a", "content": "\u{feff}é"}))));
}

#[test]
fn multi_edit_is_compiled_to_single_edit() {
    let edits = json!([{"old_string": "a", "new_string": "A"}, {"old_string": "c", "new_string": "C"}]);
    let call = call(Agent::Claude, "MultiEdit", json!({"file_path": "/w/a", "edits": edits}));
    let rewritten = rewrite(&call, &[step("a", Some(b"a\nb\nc\n"), Some(b"A\nb\nc\n"))], ROOT);
    let edits = json!([{"old_string": "a\n", "new_string": "A\n", "replace_all": false}]);
    assert_eq!(rewritten, Ok(Rewrite::Input(json!({"file_path": "/w/a", "edits": edits}))));
}

#[test]
fn repetitive_file_is_rewritten_quickly() {
    let before = "x\n".repeat(60_000);
    let after = format!("{}y\n{}", "x\n".repeat(30_000), "x\n".repeat(30_000));
    assert_eq!(codex_makes(Some(&before), Some(&after)).unwrap().unwrap(), after.as_bytes());
    assert_eq!(claude_makes(&before, &after, ("a", "b")).unwrap().unwrap(), after.as_bytes());
}
