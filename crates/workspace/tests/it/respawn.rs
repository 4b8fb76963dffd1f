//! Runs a test again in a child process, under other conditions.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Command that runs a program as an unprivileged user.
pub(crate) const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

const MARK: &str = "SAYSO_TEST_AGAIN";

/// `true` in the child process.
pub(crate) fn is_again() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Runs a test in a child process that `wrapper` starts; `None` if that is impossible. Panics if the test fails.
pub(crate) fn again(test: &str, wrapper: &[&str]) -> Option<()> {
    again_after(test, wrapper, |_| {})
}

/// Does the same after `prepare` set up the working directory.
pub(crate) fn again_after(test: &str, wrapper: &[&str], make: impl FnOnce(&Path)) -> Option<()> {
    let scratch = tempfile::tempdir().unwrap();
    make(scratch.path());
    // Accessible to the other user.
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
        // The wrapper failed before the test started.
        return None;
    }
    assert!(output.status.success(), "{text}");
    Some(())
}

/// Runs a test as an unprivileged user if this process is root, which ignores permissions. Returns `true` if it did.
pub(crate) fn again_as_nobody(test: &str) -> bool {
    if is_again() || !rustix::process::geteuid().is_root() {
        return false;
    }
    again(test, &NOBODY).unwrap();
    true
}
