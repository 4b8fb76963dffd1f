//! Resolution of proposals to files.

use sayso_review::{Proposal, WsPath};

fn check(proposal: &str, expected: &[&str]) {
    let proposal = Proposal::parse(proposal.as_bytes()).unwrap();
    let draft = proposal.draft(WsPath::parse).unwrap();
    let paths = draft.paths();
    assert_eq!(paths.iter().map(WsPath::as_str).collect::<Vec<_>>(), expected);
}

fn refused(proposal: &str) -> String {
    let proposal = Proposal::parse(proposal.as_bytes()).unwrap();
    proposal.draft(WsPath::parse).unwrap_err().to_string()
}

fn hunk(old: &str, new: &str) -> String {
    format!("--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n")
}

#[test]
fn patch_names_resolve_to_files() {
    // Git's format.
    check(&hunk("a/x", "b/x"), &["x"]);
    check(&format!("diff --git a/x b/x\n{}", hunk("a/x", "b/x")), &["x"]);
    check("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n", &["x"]);
    check("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", &["x"]);
    // The format of other tools, and of models that omit the prefixes.
    check(&hunk("x", "x"), &["x"]);
    check(&hunk("a/x", "a/x"), &["a/x"]);
    check(&hunk("x.orig", "x"), &["x"]);
    check(&(hunk("a/x", "b/x") + &hunk("y", "y")), &["x", "y"]);
    // Our format: the name is whole, whatever its directory is called.
    check(&hunk("x (current)", "x (proposed)"), &["x"]);
    check(&hunk("b/x (current)", "b/x (proposed)"), &["b/x"]);
    check("--- /dev/null\n+++ b/x (new file)\n@@ -0,0 +1 @@\n+b\n", &["b/x"]);
    check("--- a/x (current)\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", &["a/x"]);
}

#[test]
fn renames_observe_both_paths() {
    check("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", &["x", "y"]);
    check("*** Begin Patch\n*** Update File: x\n*** Move to: y\n@@\n-a\n+b\n*** End Patch\n", &["x", "y"]);
    check(r#"{"operation":"rename","path":"x","to":"d/y"}"#, &["d/y", "x"]);
    // Git quotes unusual names.
    let quoted = "diff --git \"a/x\\ty\" \"b/gr\\303\\274n\"\nsimilarity index 100%\nrename from \"x\\ty\"\nrename to \"gr\\303\\274n\"\n";
    check(quoted, &["gr\u{fc}n", "x\ty"]);
}

#[test]
fn unparsable_patch_is_rejected_whole() {
    let copy = "diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n";
    assert!(refused(copy).contains("it copies a file"));
    assert!(refused(&hunk("a/../x", "b/../x")).contains("goes up"));
    assert!(refused(r#"{"operation":"delete","path":"."}"#).contains("the workspace itself"));
    assert!(refused("nothing that looks like a patch\n").contains("entry 1 of the proposal"));
}
