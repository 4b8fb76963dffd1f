//! From what an agent hands to a hook to what its tool then makes: intent, preview, verdict, plan, rewritten input.

use std::collections::{BTreeMap, BTreeSet};

use sayso_adapters::hook::{Agent, HookCall, HookEvent, Rewrite, rewrite};
use sayso_review::{
    Answer, Decider, FileAnswer, FileMode, FileState, HunkId, Intent, Plan, Seen, Sight, Verdict, WsPath,
};
use serde_json::{Value, json};

use super::rewriting::call;
use super::tool_models::{claude_edit, codex_apply};

const BEFORE: &str = "one\n2\n3\n4\n5\n6\n7\n8\n9\nten\n";
const BOTH: &str = "ONE\n2\n3\n4\n5\n6\n7\n8\n9\nTEN\n";
const SECOND: &str = "one\n2\n3\n4\n5\n6\n7\n8\n9\nTEN\n";

/// What follows from a call if the file `a` holds this and some of its hunks are approved.
fn decided(call: &HookCall, before: &str, hunks: &[usize]) -> Plan {
    let Some(Intent::ChangeFiles(proposal)) = call.intent() else { panic!("{call:?}") };
    let draft = proposal.draft(|path| WsPath::parse(path.strip_prefix("/w/").unwrap_or(path))).unwrap();
    let seen = |path: &WsPath| Seen {
        location: path.clone(),
        found: Ok(FileState::file(before, FileMode::PLAIN)),
        link: None,
        facts: Vec::new(),
    };
    let files = draft.paths().iter().map(|path| (path.clone(), seen(path))).collect();
    let preview = draft.preview(&Sight { files, umask: 0o022 });
    let hunks: BTreeSet<HunkId> = hunks.iter().map(|hunk| HunkId::whole(*hunk)).collect();
    let files = BTreeMap::from([(WsPath::parse("a").unwrap(), FileAnswer::Hunks { hunks })]);
    let answer = Answer::Files { files, reason: None };
    let verdict = Verdict { preview: preview.hash(), answer, comments: Vec::new(), by: Decider::Person };
    preview.decide(&verdict).unwrap().plan
}

/// The input with which the tool is used in the end.
fn used(call: &HookCall, before: &str, hunks: &[usize]) -> (Rewrite, Value) {
    let rewritten = rewrite(call, decided(call, before, hunks).steps(), "/w").unwrap();
    let HookEvent::Before { input, .. } = &call.event else { panic!("{call:?}") };
    let used = if let Rewrite::Input(input) = &rewritten { input.clone() } else { input.clone() };
    (rewritten, used)
}

#[test]
fn one_hunk_of_two_is_all_that_an_agent_makes() {
    let edit = json!({"file_path": "/w/a", "old_string": BEFORE, "new_string": BOTH, "replace_all": false});
    let edit = call(Agent::Claude, "Edit", edit);
    assert_eq!(claude_edit(BEFORE.as_bytes(), &used(&edit, BEFORE, &[2]).1).unwrap(), SECOND.as_bytes());
    let write = call(Agent::Claude, "Write", json!({"file_path": "/w/a", "content": BOTH}));
    assert_eq!(used(&write, BEFORE, &[2]).1, json!({"file_path": "/w/a", "content": SECOND}));
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-one\n+ONE\n@@\n-ten\n+TEN\n*** End Patch\n";
    let patch = call(Agent::Codex, "apply_patch", json!({"command": patch}));
    let files = BTreeMap::from([("a".to_owned(), BEFORE.as_bytes().to_vec())]);
    let made = codex_apply(&files, used(&patch, BEFORE, &[2]).1["command"].as_str().unwrap()).unwrap();
    assert_eq!(made["a"], SECOND.as_bytes());
    for call in [&edit, &write, &patch] {
        assert_eq!(used(call, BEFORE, &[1, 2]).0, Rewrite::AsIs, "all of it needs no rewriting");
    }
}

#[test]
fn a_deletion_is_what_was_shown_and_not_what_the_tool_would_add_to_it() {
    // Claude Code's Edit would remove the line's ending as well.
    let edit = json!({"file_path": "/w/a", "old_string": "b", "new_string": "", "replace_all": false});
    let edit = call(Agent::Claude, "Edit", edit);
    let (rewritten, used) = used(&edit, "a\nxb\nc\n", &[1]);
    assert!(matches!(rewritten, Rewrite::Input(_)));
    assert_eq!(claude_edit(b"a\nxb\nc\n", &used).unwrap(), b"a\nx\nc\n");
}

#[test]
fn line_endings_survive_an_agent_that_knows_only_one() {
    let write = call(Agent::Claude, "Write", json!({"file_path": "/w/a", "content": "a\nB\n"}));
    assert_eq!(used(&write, "a\r\nb\r\n", &[1]).1["content"], "a\r\nB\r\n");
}
