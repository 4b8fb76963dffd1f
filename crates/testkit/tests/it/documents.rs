//! Checks of statements in the documents about the repository.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sayso_testkit::programs::root;

use super::test_files::rust_files;

fn document(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the paths of all documents, relative to the repository.
fn documents() -> Vec<PathBuf> {
    let pages = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| PathBuf::from("docs").join(entry.unwrap().file_name()));
    let pages = pages.filter(|page| page.extension().is_some_and(|extension| extension == "md"));
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(PathBuf::from);
    top.into_iter().chain(pages).collect()
}

/// Returns the code spans that start with `prefix`, without it.
fn code_spans<'t>(text: &'t str, prefix: &str) -> Vec<&'t str> {
    text.split('`').skip(1).step_by(2).filter_map(|word| word.strip_prefix(prefix)).collect()
}

#[test]
fn documents_name_existing_tests() {
    let mut names = BTreeSet::new();
    for file in rust_files(&root().join("crates")) {
        let source = std::fs::read_to_string(file).unwrap();
        names.extend(
            source.split("fn ").skip(1).filter_map(|rest| rest.split_once('(')).map(|(name, _)| name.to_owned()),
        );
    }
    let mut missing = Vec::new();
    let mut checked = 0;
    for path in documents() {
        for test in code_spans(&document(&path), "test:") {
            checked += 1;
            if !names.contains(test) {
                missing.push(format!("{}: {test}", path.display()));
            }
        }
    }
    assert!(checked > 100, "the invariants name their tests");
    assert!(missing.is_empty(), "documents name tests that do not exist: {missing:#?}");
}

#[test]
fn invariants_are_numbered_and_name_tests() {
    let text = document("docs/invariants.md");
    let sections: Vec<&str> =
        text.split("\n## ").skip(1).filter(|section| section.starts_with(char::is_numeric)).collect();
    assert_eq!(sections.len(), 13, "the design has thirteen invariants");
    for (index, section) in sections.iter().enumerate() {
        let heading = section.lines().next().unwrap();
        assert!(heading.starts_with(&format!("{}. ", index + 1)), "`{heading}` is out of order");
        assert!(!code_spans(section, "test:").is_empty(), "`{heading}` names no test");
    }
}

#[test]
fn architecture_describes_each_crate() {
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
fn documents_name_existing_files() {
    for path in documents() {
        let text = document(&path);
        // Code spans such as `crates/gate/src/feed.rs` or `crates/workspace/src/apply/`.
        for named in code_spans(&text, "crates/") {
            let is_path = !named.contains(['<', '*', '{', ' ', '…']);
            assert!(!is_path || root().join("crates").join(named).exists(), "{} names crates/{named}", path.display());
        }
    }
}

#[test]
fn links_between_documents_resolve() {
    for path in documents() {
        let text = document(&path);
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            if link.contains("://") || link.starts_with('#') {
                continue;
            }
            let target = path.parent().unwrap().join(link.split('#').next().unwrap());
            assert!(root().join(&target).exists(), "{} links to {}", path.display(), target.display());
        }
    }
}

#[test]
fn readme_names_existing_make_targets() {
    let (readme, makefile) = (document("README.md"), document("Makefile"));
    for target in ["demo", "test"] {
        assert!(readme.contains(&format!("make {target}")));
        assert!(makefile.lines().any(|line| line.starts_with(&format!("{target}:"))));
    }
}
