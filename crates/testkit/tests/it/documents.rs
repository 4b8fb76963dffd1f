//! What the documents say about the code is so.

use std::collections::BTreeSet;

use sayso_testkit::programs::root;

use super::test_files::rust_files;

fn document(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What stands between backticks and starts with `prefix`, without it.
fn quoted<'t>(text: &'t str, prefix: &str) -> Vec<&'t str> {
    text.split('`').skip(1).step_by(2).filter_map(|word| word.strip_prefix(prefix)).collect()
}

#[test]
fn every_test_that_architecture_names_exists() {
    let text = document("ARCHITECTURE.md");
    let sources: Vec<String> =
        rust_files(&root().join("crates")).iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let named = quoted(&text, "test:");
    assert!(named.len() >= 10, "the invariants name their tests");
    for test in named {
        assert!(sources.iter().any(|source| source.contains(&format!("fn {test}("))), "ARCHITECTURE.md names `{test}`");
    }
}

#[test]
fn architecture_describes_every_crate_and_no_other() {
    let text = document("ARCHITECTURE.md");
    let described: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("### `crates/"))
        .map(|rest| rest.split('`').next().unwrap().to_owned())
        .collect();
    let present: BTreeSet<String> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(described, present);
}

#[test]
fn links_between_documents_lead_somewhere() {
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        let text = document(name);
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            if link.contains("://") || link.starts_with('#') {
                continue;
            }
            let path = link.split('#').next().unwrap();
            assert!(root().join(path).exists(), "{name} links to {path}");
        }
    }
}

#[test]
fn readme_names_the_two_commands_and_they_exist() {
    let (readme, makefile) = (document("README.md"), document("Makefile"));
    for target in ["demo", "test"] {
        assert!(readme.contains(&format!("make {target}")));
        assert!(makefile.lines().any(|line| line.starts_with(&format!("{target}:"))));
    }
}
