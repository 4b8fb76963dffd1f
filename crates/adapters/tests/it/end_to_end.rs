//! The path from a hook's input to the bytes that the agent's tool writes: intent, preview, verdict, plan, rewritten input.

use std::collections::{BTreeMap, BTreeSet};

use sayso_adapters::Agent;
use sayso_adapters::hook::{HookCall, HookEvent, Rewrite, rewrite};
use sayso_review::{
    Answer, Decider, FileAnswer, FileMode, FileState, HunkId, Intent, Observation, ObservedFile, Plan, Verdict, WsPath,
};
use serde_json::{Value, json};

use super::rewriting::call;
use super::tool_models::{claude_edit, codex_apply};

const BEFORE: &str = "one\n2\n3\n4\n5\n6\n7\n8\n9\nten\n";
const BOTH: &str = "ONE\n2\n3\n4\n5\n6\n7\n8\n9\nTEN\n";
const SECOND: &str = "one\n2\n3\n4\n5\n6\n7\n8\n9\nTEN\n";

/// Returns the plan for a call if the file `a` has the content `before` and some hunks are approved.
fn approved_plan(call: &HookCall, before: &str, hunks: &[usize]) -> Plan {
    let Some(Intent::ChangeFiles(proposal)) = call.intent() else { panic!("{call:?}") };
    let draft = proposal.draft(|path| WsPath::parse(path.strip_prefix("/w/").unwrap_or(path))).unwrap();
    let seen = |path: &WsPath| ObservedFile {
        location: path.clone(),
        found: Ok(FileState::file(before, FileMode::PLAIN)),
        link: None,
        facts: Vec::new(),
    };
    let files = draft.paths().iter().map(|path| (path.clone(), seen(path))).collect();
    let preview = draft.preview(&Observation { files, umask: 0o022 });
    let hunks: BTreeSet<HunkId> = hunks.iter().map(|hunk| HunkId::whole(*hunk)).collect();
    let files = BTreeMap::from([(WsPath::parse("a").unwrap(), FileAnswer::Hunks { hunks })]);
    let answer = Answer::Files { files, reason: None };
    let verdict = Verdict { preview: preview.hash(), answer, comments: Vec::new(), message: None, by: Decider::PERSON };
    preview.decide(&verdict).unwrap().plan
}

/// Returns the rewrite and the input that the tool gets.
fn final_input(call: &HookCall, before: &str, hunks: &[usize]) -> (Rewrite, Value) {
    let rewritten = rewrite(call, approved_plan(call, before, hunks).steps(), "/w").unwrap();
    let HookEvent::PreToolUse { input, .. } = &call.event else { panic!("{call:?}") };
    let used = if let Rewrite::Input(input) = &rewritten { input.clone() } else { input.clone() };
    (rewritten, used)
}

#[test]
fn agent_makes_only_the_approved_hunk() {
    let edit = json!({"file_path": "/w/a", "old_string": BEFORE, "new_string": BOTH, "replace_all": false});
    let edit = call(Agent::Claude, "Edit", edit);
    assert_eq!(claude_edit(BEFORE.as_bytes(), &final_input(&edit, BEFORE, &[2]).1).unwrap(), SECOND.as_bytes());
    let write = call(Agent::Claude, "Write", json!({"file_path": "/w/a", "content": BOTH}));
    assert_eq!(final_input(&write, BEFORE, &[2]).1, json!({"file_path": "/w/a", "content": SECOND}));
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-one\n+ONE\n@@\n-ten\n+TEN\n*** End Patch\n";
    let patch = call(Agent::Codex, "apply_patch", json!({"command": patch}));
    let files = BTreeMap::from([("a".to_owned(), BEFORE.as_bytes().to_vec())]);
    let made = codex_apply(&files, final_input(&patch, BEFORE, &[2]).1["command"].as_str().unwrap()).unwrap();
    assert_eq!(made["a"], SECOND.as_bytes());
    for call in [&edit, &write, &patch] {
        assert_eq!(final_input(call, BEFORE, &[1, 2]).0, Rewrite::AsIs, "all of it needs no rewriting");
    }
}

#[test]
fn deletion_matches_preview_despite_tool_quirk() {
    // Claude Code's Edit would remove the line's ending as well.
    let edit = json!({"file_path": "/w/a", "old_string": "b", "new_string": "", "replace_all": false});
    let edit = call(Agent::Claude, "Edit", edit);
    let (rewritten, used) = final_input(&edit, "a\nxb\nc\n", &[1]);
    assert!(matches!(rewritten, Rewrite::Input(_)));
    assert_eq!(claude_edit(b"a\nxb\nc\n", &used).unwrap(), b"a\nx\nc\n");
}

#[test]
fn crlf_survives_write_with_lf() {
    let write = call(Agent::Claude, "Write", json!({"file_path": "/w/a", "content": "a\nB\n"}));
    assert_eq!(final_input(&write, "a\r\nb\r\n", &[1]).1["content"], "a\r\nB\r\n");
}
