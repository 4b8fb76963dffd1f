//! Real programs, and pairs of real files. [`run`] keeps the user's environment and configuration away from a program;
//! [`cargo_metadata`] does not.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use std::io::Write as _;

/// Runs a program to completion. `input` is its standard input. Its environment has `PATH` only, and `directory` as `HOME`.
pub fn run(directory: &Path, program: &str, arguments: &[&str], input: &[u8]) -> Output {
    run_with(directory, program, arguments, &[], input)
}

/// Runs a program like [`run`], with additional environment variables.
pub fn run_with(
    directory: &Path,
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
    input: &[u8],
) -> Output {
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", directory)
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program} does not start: {error}"));
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.to_vec();
    // A separate thread avoids a deadlock if the program fills its output pipe before it has read all input.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("the writer ends");
    output
}

/// Applies a patch of the file `f` with `git apply`. `None` means that the file does not exist, and an error has the program's output.
/// `context` is the number of context lines of the patch: git needs an option if there are none.
pub fn git_apply(old: Option<&[u8]>, patch: &[u8], context: usize) -> Result<Option<Vec<u8>>, String> {
    let unidiff_zero: &[&str] = if context == 0 { &["--unidiff-zero"] } else { &[] };
    apply("git", &[&["apply", "--whitespace=nowarn"], unidiff_zero, &["-"]].concat(), old, patch)
}

/// Applies a patch of the file `f` with GNU `patch`. Arguments and result are as in [`git_apply`].
pub fn gnu_patch(old: Option<&[u8]>, patch: &[u8]) -> Result<Option<Vec<u8>>, String> {
    apply("patch", &["-p1", "--binary", "--batch", "--fuzz=0", "--no-backup-if-mismatch"], old, patch)
}

fn apply(program: &str, arguments: &[&str], old: Option<&[u8]>, patch: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("f");
    if let Some(old) = old {
        std::fs::write(&file, old).expect("the old file");
    }
    let output = run(directory.path(), program, arguments, patch);
    if output.status.success() {
        Ok(std::fs::read(&file).ok())
    } else {
        let all = [output.stdout, output.stderr].concat();
        Err(format!("{program}: {}", String::from_utf8_lossy(&all)))
    }
}

/// Two versions of a file.
#[derive(Clone, Debug)]
pub struct RealPair {
    /// Crate, and path within it.
    pub name: String,
    pub old: Vec<u8>,
    pub new: Vec<u8>,
}

/// Returns files that differ between two versions of a crate in the dependency graph. The manifest of this crate names old versions for
/// this purpose.
pub fn real_pairs() -> Vec<RealPair> {
    let metadata = cargo_metadata(&["--all-features"]);
    let mut versions: std::collections::BTreeMap<String, Vec<PathBuf>> = std::collections::BTreeMap::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        if package["source"].is_string() {
            let root = Path::new(text("manifest_path")).parent().expect("a package has a folder").to_owned();
            versions.entry(text("name").to_owned()).or_default().push(root);
        }
    }
    let mut pairs = Vec::new();
    for (name, mut roots) in versions {
        roots.sort();
        for two in roots.windows(2) {
            for path in files(&two[0]) {
                let Ok(new) = std::fs::read(two[1].join(&path)) else { continue };
                let old = std::fs::read(two[0].join(&path)).expect("it was listed");
                if old != new {
                    pairs.push(RealPair { name: format!("{name}/{}", path.display()), old, new });
                }
            }
        }
    }
    assert!(pairs.len() >= 20, "the two old crates in testkit's manifest give at least this many, not {}", pairs.len());
    pairs
}

/// Returns the output of `cargo metadata` for this workspace.
pub fn cargo_metadata(arguments: &[&str]) -> serde_json::Value {
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args(["metadata", "--format-version=1", "--locked"])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// Returns the files below a directory as relative paths.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory).expect("it is a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.push(path.strip_prefix(root).expect("it lies below").to_owned());
            }
        }
    }
    found.sort();
    found
}
