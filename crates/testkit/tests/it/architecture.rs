//! Dependencies point one way, and what is pure stays pure.

use std::collections::{BTreeMap, BTreeSet};

use sayso_testkit::programs::{cargo_metadata, root};
use serde_json::Value;

/// The crates in DESIGN.md's order. One may depend on those before it.
const ORDER: [&str; 20] = [
    "base",
    "diff",
    "wire",
    "shell",
    "policy",
    "review",
    "workspace",
    "runner",
    "marks",
    "journal",
    "gate",
    "tools",
    "proxy",
    "agent",
    "api",
    "server",
    "tui",
    "adapters",
    "sayso",
    "testkit",
];
/// Packages outside `crates/`, which may use any crate of ours; none may use them.
const DEVELOPMENT: [&str; 2] = ["sayso-bench", "sayso-fuzz"];
const PURE: [&str; 6] = ["base", "diff", "wire", "shell", "policy", "review"];
/// Clients of the protocol: they reach the engine through `api` or not at all.
const CLIENTS: [&str; 2] = ["tui", "adapters"];
const CLIENTS_MAY_USE: [&str; 7] = ["base", "diff", "wire", "shell", "policy", "review", "api"];

/// Everything that a pure crate may pull in, itself without file system, network, clock, environment or process. A new name
/// here is a decision: read the crate first.
const PURE_DEPENDENCIES: &[&str] = &[
    "aho-corasick",
    "arrayvec",
    "blake3",
    "bstr",
    "cfg-if",
    "constant_time_eq",
    "core_detect",
    "cpufeatures",
    "encoding_rs",
    "equivalent",
    "foldhash",
    "gix-imara-diff",
    "globset",
    "hashbrown",
    "indexmap",
    "itoa",
    // `cpufeatures` asks it which instructions an ARM processor has.
    "libc",
    "log",
    "memchr",
    "multiversion_no_op",
    "proc-macro2",
    "quote",
    "regex-automata",
    "regex-syntax",
    "sayso-base",
    "sayso-diff",
    "sayso-policy",
    "sayso-review",
    "sayso-shell",
    "sayso-wire",
    "scopeguard",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "simdutf8",
    "syn",
    "thiserror",
    "thiserror-impl",
    "unicode-ident",
    "zmij",
];

/// A crate of ours by its short name.
fn short(package: &str) -> Option<&str> {
    if package == "sayso" { Some("sayso") } else { package.strip_prefix("sayso-") }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Normal,
    Tests,
}

/// Says what is wrong with one crate of ours using another, if anything is.
fn violation(from: &str, to: &str, usage: Use) -> Option<String> {
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let (Some(user), Some(used)) = (place(from), place(to)) else {
        return Some(format!("`{from}` → `{to}`: a crate that DESIGN.md does not list"));
    };
    if usage == Use::Tests {
        return (to != "testkit" && used >= user && from != to)
            .then(|| format!("tests of `{from}` use `{to}`, which comes later"));
    }
    if to == "testkit" {
        return Some(format!("`{from}` uses `testkit` outside its tests"));
    }
    if used >= user {
        return Some(format!("`{from}` depends on `{to}`, which comes later in DESIGN.md's list"));
    }
    if CLIENTS.contains(&from) && !CLIENTS_MAY_USE.contains(&to) {
        return Some(format!("`{from}` is a client and may not depend on `{to}`, only on {CLIENTS_MAY_USE:?}"));
    }
    (PURE.contains(&from) && !PURE.contains(&to)).then(|| format!("`{from}` is pure and `{to}` is not"))
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().unwrap().iter()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap()
}

#[test]
fn dependencies_point_upward_only() {
    let metadata = cargo_metadata(&["--no-deps"]);
    let mut violations = Vec::new();
    let mut edges = 0;
    for package in packages(&metadata).filter(|package| !DEVELOPMENT.contains(&name(package))) {
        let from = short(name(package)).unwrap_or_else(|| panic!("`{}` is not named sayso-…", name(package)));
        for dependency in package["dependencies"].as_array().unwrap() {
            let Some(to) = short(name(dependency)) else { continue };
            let usage = if dependency["kind"] == "dev" { Use::Tests } else { Use::Normal };
            edges += 1;
            violations.extend(violation(from, to, usage));
        }
    }
    assert!(edges > 5, "the manifests were read");
    assert_eq!(violations, Vec::<String>::new());
}

#[test]
fn the_rule_itself_refuses_what_it_should() {
    for (from, to) in [
        ("diff", "workspace"),
        ("review", "gate"),
        ("workspace", "gate"),
        ("gate", "tools"),
        ("tui", "gate"),
        ("adapters", "server"),
        ("api", "sayso"),
        ("tools", "testkit"),
        ("diff", "unheard-of"),
    ] {
        assert!(violation(from, to, Use::Normal).is_some(), "{from} → {to}");
    }
    for (from, to) in [("review", "diff"), ("gate", "workspace"), ("tools", "gate"), ("tui", "api"), ("sayso", "tools")]
    {
        assert_eq!(violation(from, to, Use::Normal), None);
    }
    assert_eq!(violation("diff", "testkit", Use::Tests), None);
    assert!(violation("diff", "sayso", Use::Tests).is_some());
}

#[test]
fn pure_crates_pull_in_nothing_impure() {
    let metadata = cargo_metadata(&["--all-features"]);
    let names: BTreeMap<&str, &str> =
        packages(&metadata).map(|package| (package["id"].as_str().unwrap(), name(package))).collect();
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["id"].as_str().unwrap(), node))
        .collect();
    let mut checked = 0;
    let mut used = BTreeSet::new();
    for pure in PURE {
        let package = format!("sayso-{pure}");
        // A crate that has no content yet is not there.
        let Some((&id, _)) = names.iter().find(|(_, name)| **name == package) else { continue };
        checked += 1;
        let mut waiting = vec![id];
        let mut seen = BTreeSet::new();
        while let Some(id) = waiting.pop() {
            if !seen.insert(id) {
                continue;
            }
            assert!(
                PURE_DEPENDENCIES.contains(&names[id]),
                "`{package}` is pure and pulls in `{}`: if that crate does no IO, add it to PURE_DEPENDENCIES",
                names[id]
            );
            used.insert(names[id]);
            for dependency in nodes[id]["deps"].as_array().unwrap() {
                let normal = dependency["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null());
                if normal {
                    waiting.push(dependency["pkg"].as_str().unwrap());
                }
            }
        }
    }
    assert!(checked >= 2);
    let unused: Vec<_> = PURE_DEPENDENCIES.iter().filter(|name| !used.contains(**name)).collect();
    assert!(unused.is_empty(), "no pure crate pulls in {unused:?}: remove them from PURE_DEPENDENCIES");
}

#[test]
fn pure_crates_name_nothing_impure() {
    for pure in PURE {
        let source = root().join("crates").join(pure).join("src");
        for file in super::test_files::rust_files(&source) {
            let text = std::fs::read_to_string(&file).unwrap();
            for word in [
                "std::fs",
                "std::net",
                "std::env",
                "std::process",
                "std::time",
                "std::thread",
                "tokio",
                "disallowed_methods",
            ] {
                assert!(!text.contains(word), "{} is in a pure crate and says `{word}`", file.display());
            }
        }
    }
}
