//! Dependencies point in one direction, pure crates do no IO, and clients reach the engine through the protocol.

use std::collections::{BTreeMap, BTreeSet};

use sayso_testkit::programs::{cargo_metadata, root};
use serde_json::Value;

/// The crates in ARCHITECTURE.md's order. A crate may depend on crates before it.
const ORDER: [&str; 24] = [
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
    "scripted-model",
    "gate",
    "tools",
    "mcp",
    "proxy",
    "agent",
    "api",
    "present",
    "web",
    "server",
    "tui",
    "adapters",
    "sayso",
    "testkit",
];
/// Packages outside `crates/`. They may use any crate; no crate may use them.
const DEVELOPMENT: [&str; 2] = ["sayso-bench", "sayso-fuzz"];
const PURE: [&str; 6] = ["base", "diff", "wire", "shell", "policy", "review"];
/// Crates without IO of their own, by the names in their source. `present` depends on `api`, whose client does IO.
const WITHOUT_IO: [&str; 7] = ["base", "diff", "wire", "shell", "policy", "review", "present"];
/// Clients of the protocol. They reach the engine through `api` only. `sayso` is a client in all files but [`WIRING`].
const CLIENTS: [&str; 4] = ["present", "tui", "adapters", "sayso"];
const CLIENTS_MAY_USE: [&str; 8] = ["base", "diff", "wire", "shell", "policy", "review", "api", "present"];

/// Crates that the surface modules of `crates/sayso` may use besides [`CLIENTS_MAY_USE`]: another client, and the data types of the
/// built-in tools.
const SURFACES_MAY_USE: [&str; 2] = ["adapters", "tools"];
/// Files of `crates/sayso/src` that may use every crate: they start an engine, mark processes or inspect the engine's files. Every
/// other file is a surface and talks through `api` and `present`.
const WIRING: &[&str] = &[
    "agents.rs",
    "call/judge.rs",
    "call/mod.rs",
    "child.rs",
    "config/accepted.rs",
    "config/agent.rs",
    "config/mod.rs",
    "config/request.rs",
    "config/show/request.rs",
    "demo/mod.rs",
    "demo/web.rs",
    "doctor/agents.rs",
    "doctor/engines.rs",
    "doctor/marks.rs",
    "endpoint.rs",
    "engine.rs",
    "gc.rs",
    "hook.rs",
    "login.rs",
    "open.rs",
    "records.rs",
    "run.rs",
    "serve.rs",
    "serve_model.rs",
    "settings.rs",
    "tool.rs",
    "under_gate.rs",
    "workspace_location.rs",
];

/// All packages that a pure crate may pull in. They use no file system, network, clock, environment or process. Read a crate
/// before adding its name here.
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
    // `cpufeatures` uses it to detect the instructions of an ARM processor.
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

/// Returns the short name of a crate of this workspace.
fn short(package: &str) -> Option<&str> {
    if package == "sayso" { Some("sayso") } else { package.strip_prefix("sayso-") }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Normal,
    Tests,
}

/// Describes the rule that a dependency between two crates of this workspace breaks.
fn violation(from: &str, to: &str, usage: Use) -> Option<String> {
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let (Some(user), Some(used)) = (place(from), place(to)) else {
        return Some(format!("`{from}` → `{to}`: a crate that ARCHITECTURE.md does not list"));
    };
    if usage == Use::Tests {
        return (to != "testkit" && used >= user && from != to)
            .then(|| format!("tests of `{from}` use `{to}`, which comes later"));
    }
    if to == "testkit" {
        return Some(format!("`{from}` uses `testkit` outside its tests"));
    }
    if used >= user {
        return Some(format!("`{from}` depends on `{to}`, which comes later in ARCHITECTURE.md's list"));
    }
    // The manifest of `sayso` covers its wiring as well; a test of its files covers the surfaces.
    if from != "sayso" && CLIENTS.contains(&from) && !CLIENTS_MAY_USE.contains(&to) {
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
fn violation_reports_forbidden_dependencies() {
    for (from, to) in [
        ("diff", "workspace"),
        ("review", "gate"),
        ("workspace", "gate"),
        ("gate", "tools"),
        ("tui", "gate"),
        ("present", "gate"),
        ("api", "present"),
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
        let Some((&id, _)) = names.iter().find(|(_, name)| **name == package) else { panic!("no package `{package}`") };
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
    assert_eq!(checked, PURE.len());
    let unused: Vec<_> = PURE_DEPENDENCIES.iter().filter(|name| !used.contains(**name)).collect();
    assert!(unused.is_empty(), "no pure crate pulls in {unused:?}: remove them from PURE_DEPENDENCIES");
}

#[test]
fn crates_without_io_name_no_io_module() {
    for pure in WITHOUT_IO {
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
                assert!(!text.contains(word), "{} is in a crate without IO and names `{word}`", file.display());
            }
        }
    }
}

/// Returns the crates of this workspace that a source text names.
fn named_crates(text: &str) -> BTreeSet<&str> {
    let name = |(at, prefix): (usize, &str)| {
        let (name, _) = text[at + prefix.len()..].split_once("::")?;
        name.chars().all(|character| character.is_ascii_lowercase() || character == '_').then_some(name)
    };
    text.match_indices("sayso_").filter_map(name).collect()
}

#[test]
fn command_line_reaches_the_engine_from_its_wiring_only() {
    assert!(CLIENTS.contains(&"sayso"));
    let source = root().join("crates/sayso/src");
    let mut wiring = BTreeSet::new();
    for file in super::test_files::rust_files(&source) {
        let text = std::fs::read_to_string(&file).unwrap();
        let other: Vec<&str> = named_crates(&text)
            .into_iter()
            .filter(|name| !CLIENTS_MAY_USE.contains(name) && !SURFACES_MAY_USE.contains(name))
            .collect();
        if other.is_empty() {
            continue;
        }
        let path = file.strip_prefix(&source).unwrap().to_str().unwrap().to_owned();
        assert!(WIRING.contains(&&*path), "{path} is a surface and uses {other:?}: use `api` or `present` instead");
        wiring.insert(path);
    }
    let unused: Vec<_> = WIRING.iter().filter(|path| !wiring.contains(**path)).collect();
    assert!(unused.is_empty(), "{unused:?} are surfaces by now: remove them from WIRING");
}
