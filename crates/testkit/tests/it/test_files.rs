//! Layout of test files: one test binary per crate, and each file is part of it.

use std::path::{Path, PathBuf};

use sayso_testkit::programs::root;

/// Returns the Rust files below a directory, and none if it does not exist.
pub(crate) fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

#[test]
fn test_files_are_all_compiled() {
    let mut checked = 0;
    for entry in std::fs::read_dir(root().join("crates")).unwrap().flatten() {
        let tests = entry.path().join("tests");
        for file in rust_files(&tests) {
            let inside = file.strip_prefix(&tests).unwrap();
            assert!(inside.starts_with("it"), "{} is a test binary of its own; put it into tests/it/", file.display());
            if inside == Path::new("it/main.rs") {
                continue;
            }
            let module = file.file_stem().unwrap().to_str().unwrap();
            let main = std::fs::read_to_string(tests.join("it/main.rs")).unwrap();
            assert!(main.contains(&format!("mod {module};")), "tests/it/main.rs does not name {}", file.display());
            checked += 1;
        }
    }
    assert!(checked > 10);
}

#[test]
fn files_have_at_most_600_lines() {
    for file in rust_files(&root().join("crates")) {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 600, "{} has {lines} lines: split it by idea", file.display());
    }
}
