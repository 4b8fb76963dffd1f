//! Checks of dependencies: licences, sources and bans of `deny.toml`, and unused dependencies.
//!
//! `cargo deny` checks the same but takes minutes to compile. `make audit` installs it to check advisories, which need its database.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sayso_testkit::programs::{cargo_metadata, root};
use serde_json::Value;
use spdx::{Expression, Licensee};

use super::test_files::rust_files;

/// Packages outside the product, which may have any dependency.
const DEVELOPMENT: [&str; 2] = ["sayso-bench", "sayso-fuzz"];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Dependencies that are used for their source files only, by `programs::real_pairs`.
const ONLY_FILES: [&str; 3] = ["bitflags_old", "hashbrown_old", "syn_old"];

fn list<'value>(value: &'value Value, name: &str) -> &'value Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("cargo metadata has a list {name}"))
}

fn text<'value>(value: &'value Value, name: &str) -> &'value str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} is a text in {value}"))
}

fn deny() -> toml::Table {
    std::fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap()
}

/// Returns the product's own packages and all packages that they and their tests depend on.
fn product(metadata: &Value) -> Vec<&Value> {
    let packages: BTreeMap<&str, &Value> =
        list(metadata, "packages").iter().map(|package| (text(package, "id"), package)).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"], "nodes").iter().map(|node| (text(node, "id"), node)).collect();
    let members = list(metadata, "workspace_members").iter().map(|id| id.as_str().unwrap());
    let mut waiting: Vec<&str> = members.filter(|id| !DEVELOPMENT.contains(&text(packages[id], "name"))).collect();
    assert!(waiting.len() > 10);
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if seen.insert(id) {
            waiting.extend(list(nodes[id], "deps").iter().map(|dependency| text(dependency, "pkg")));
        }
    }
    seen.into_iter().map(|id| packages[id]).collect()
}

fn allows(allowed: &[Licensee], package: &Value) -> Result<(), String> {
    let name = text(package, "name");
    let license = package["license"].as_str().ok_or_else(|| format!("{name} names no licence"))?;
    // Older crates separate alternatives by a slash.
    let expression = Expression::parse(&license.replace('/', " OR ")).map_err(|error| format!("{name}: {error}"))?;
    if expression.evaluate(|requirement| allowed.iter().any(|licensee| licensee.satisfies(requirement))) {
        Ok(())
    } else {
        Err(format!("{name} is under {license}, which deny.toml does not allow"))
    }
}

fn allowed_licences() -> Vec<Licensee> {
    let deny = deny();
    let allowed = deny["licenses"]["allow"].as_array().unwrap();
    allowed.iter().map(|name| Licensee::parse(name.as_str().unwrap()).unwrap()).collect()
}

#[test]
fn licences_are_allowed_by_deny_toml() {
    let metadata = cargo_metadata(&["--all-features"]);
    let allowed = allowed_licences();
    let external: Vec<&Value> =
        product(&metadata).into_iter().filter(|package| !text(package, "name").starts_with("sayso")).collect();
    assert!(external.len() > 100);
    let refused: Vec<String> = external.iter().filter_map(|package| allows(&allowed, package).err()).collect();
    assert_eq!(refused, Vec::<String>::new());
    for licensee in &allowed {
        let others: Vec<Licensee> = allowed.iter().filter(|other| *other != licensee).cloned().collect();
        assert!(external.iter().any(|package| allows(&others, package).is_err()), "no crate needs {licensee}");
    }
}

#[test]
fn disallowed_licence_is_rejected() {
    let allowed = allowed_licences();
    for license in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "Apache-2.0 WITH Classpath-exception-2.0", "nonsense"] {
        assert!(allows(&allowed, &serde_json::json!({ "name": "example", "license": license })).is_err(), "{license}");
    }
    assert!(allows(&allowed, &serde_json::json!({ "name": "example" })).is_err());
    assert!(allows(&allowed, &serde_json::json!({ "name": "example", "license": "GPL-3.0-only/MIT" })).is_ok());
}

#[test]
fn packages_come_from_crates_io_or_this_repository() {
    let metadata = cargo_metadata(&["--all-features"]);
    let deny = deny();
    for kind in ["unknown-registry", "unknown-git"] {
        assert_eq!(deny["sources"][kind].as_str(), Some("deny"));
    }
    for package in list(&metadata, "packages") {
        let own = package["source"].is_null() && Path::new(text(package, "manifest_path")).starts_with(root());
        assert!(own || package["source"] == CRATES_IO, "{} is from {}", package["name"], package["source"]);
    }
}

#[test]
fn banned_packages_and_wildcard_versions_are_absent() {
    let metadata = cargo_metadata(&["--all-features"]);
    let deny = deny();
    let banned = deny["bans"]["deny"].as_array().unwrap();
    assert!(!banned.is_empty());
    for package in product(&metadata) {
        for ban in banned {
            assert_ne!(package["name"].as_str(), ban["crate"].as_str(), "{}", ban["reason"]);
        }
    }
    let members = list(&metadata, "workspace_members");
    for package in list(&metadata, "packages").iter().filter(|package| members.contains(&package["id"])) {
        for dependency in list(package, "dependencies").iter().filter(|dependency| dependency["path"].is_null()) {
            assert_ne!(dependency["req"], "*", "{} takes any version of {}", package["name"], dependency["name"]);
        }
    }
}

/// Finds a crate's name before `::`, `;` or ` as `, as a path or an import has it.
fn names(source: &str, krate: &str) -> bool {
    source.match_indices(krate).any(|(at, _)| {
        let after = &source[at + krate.len()..];
        let starts_word = !source[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        starts_word && ["::", ";", " as "].iter().any(|follows| after.starts_with(follows))
    })
}

#[test]
fn dependencies_are_all_used() {
    let metadata = cargo_metadata(&["--no-deps", "--all-features"]);
    let mut unused = Vec::new();
    for package in list(&metadata, "packages") {
        let directory = Path::new(text(package, "manifest_path")).parent().unwrap();
        let read = |paths: Vec<std::path::PathBuf>| -> String {
            paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
        };
        let targets = ["src", "fuzz_targets"].map(|folder| read(rust_files(&directory.join(folder)))).concat();
        let tests = read(rust_files(&directory.join("tests")));
        let build = std::fs::read_to_string(directory.join("build.rs")).unwrap_or_default();
        for dependency in list(package, "dependencies") {
            let name = dependency["rename"].as_str().unwrap_or(text(dependency, "name"));
            let krate = name.replace('-', "_");
            let is_used = match dependency["kind"].as_str() {
                Some("build") => names(&build, &krate),
                Some("dev") => names(&tests, &krate) || names(&targets, &krate),
                _ => names(&targets, &krate),
            };
            if !is_used && !ONLY_FILES.contains(&name) {
                unused.push(format!("{} does not use {name}", text(package, "name")));
            }
        }
    }
    assert_eq!(unused, Vec::<String>::new());
}

#[test]
fn crate_name_is_found_as_a_path_only() {
    for used in ["use spdx::Expression;", "    spdx::parse()", "use spdx;", "use spdx as licences;"] {
        assert!(names(used, "spdx"), "{used}");
    }
    for unused in ["old_spdx::parse()", "spdx_old::parse()", "// spdx is a crate", ""] {
        assert!(!names(unused, "spdx"), "{unused}");
    }
}
