//! Runs a test again in a process of its own, under other circumstances.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// How to become nobody.
pub(crate) const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

const MARK: &str = "SAYSO_TEST_AGAIN";

/// Whether this is the process of its own.
pub(crate) fn is_again() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Runs a test in a process of its own, started by `wrapper`; `None` if that could not be started. Panics if the test fails.
pub(crate) fn again(test: &str, wrapper: &[&str]) -> Option<()> {
    again_after(test, wrapper, |_| {})
}

/// The same, with something made in its working directory before.
pub(crate) fn again_after(test: &str, wrapper: &[&str], make: impl FnOnce(&Path)) -> Option<()> {
    let scratch = tempfile::tempdir().unwrap();
    make(scratch.path());
    // For whoever it runs as.
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let copy = scratch.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let output = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(&copy)
        .args(["--exact", test])
        .env(MARK, "1")
        .env("TMPDIR", scratch.path())
        .current_dir(scratch.path())
        .output()
        .ok()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !text.contains("running 1 test") {
        // The circumstances could not be made here.
        return None;
    }
    assert!(output.status.success(), "{text}");
    Some(())
}

/// Runs a test as nobody where we are root, who may do anything; says whether that was done.
pub(crate) fn again_as_nobody(test: &str) -> bool {
    if is_again() || !rustix::process::geteuid().is_root() {
        return false;
    }
    again(test, &NOBODY).unwrap();
    true
}
