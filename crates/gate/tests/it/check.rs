//! Syntax checks and dry runs, which run no command.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use sayso_gate::{CheckLimits, DryRunEnd, check_syntax, run_dry};
use sayso_review::{CommandPreview, DryRun, Syntax, WsPath};
use tempfile::TempDir;

/// Long enough for a loaded machine. A check that ends in time does not wait for it.
const CHECK_TIMEOUT: Duration = Duration::from_mins(1);

fn limits(search_path: impl AsRef<Path>) -> CheckLimits {
    CheckLimits { search_path: search_path.as_ref().into(), time: CHECK_TIMEOUT, output: 10_000 }
}

fn usual() -> CheckLimits {
    limits("/usr/local/bin:/usr/bin:/bin")
}

/// Creates a directory with a program of this name.
fn stand_in(name: &str, script: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    directory
}

#[test]
fn syntax_error_has_message_and_line() {
    for script in ["", "ls -l", "if a; then b; fi", "echo 'größe'", "cat <<E\nx\nE\n"] {
        assert_eq!(check_syntax(script, &usual()), Syntax::Valid, "{script}");
    }
    for (script, expected, words) in [
        ("ls\nif a; then\nfi\n", Some(3), "unexpected token"),
        ("echo 'a", Some(1), "unexpected EOF"),
        ("echo $(a", None, ""),
        ("a )", Some(1), "`)'"),
    ] {
        let Syntax::Invalid { message, line } = check_syntax(script, &usual()) else { panic!("{script}") };
        assert!(message.contains(words) && !message.starts_with("bash"), "{message}");
        assert!(expected.is_none() || line == expected, "{script}: {line:?}");
    }
}

#[test]
fn syntax_check_runs_no_command() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("made");
    let made = file.display();
    for script in [
        format!("touch {made}"),
        format!("set +n; touch {made}"),
        format!("set +o noexec\n: > {made}"),
        format!("x=$(touch {made}); trap 'touch {made}' EXIT"),
        format!("echo `touch {made}` <(touch {made})\nif"),
    ] {
        check_syntax(&script, &usual());
        assert!(!file.exists(), "{script}");
    }
}

#[test]
fn bash_runs_with_empty_environment() {
    let bash = stand_in("bash", "d=${0%/*}; exec 3>\"$d/seen\"; /usr/bin/env >&3; echo \"args $*\" >&3; /bin/cat >&3");
    let seen = bash.path().join("seen");
    assert_eq!(check_syntax("echo secret-script", &limits(bash.path())), Syntax::Valid);
    let seen = std::fs::read_to_string(seen).unwrap();
    let (environment, rest) = seen.split_once("args ").unwrap();
    for line in environment.lines() {
        // Variables that the shell itself sets.
        assert!(["PWD=/", "OLDPWD=", "SHLVL=", "_="].iter().any(|own| line.starts_with(own)), "{line}");
    }
    assert!(environment.contains("PWD=/\n"));
    assert_eq!(rest, "--norc --noprofile -n\necho secret-script");
}

#[test]
fn missing_bash_leaves_syntax_unchecked() {
    let empty = tempfile::tempdir().unwrap();
    let Syntax::Unchecked { reason } = check_syntax("ls", &limits(empty.path())) else { panic!() };
    assert_eq!(reason, "bash was not found");
    assert!(matches!(check_syntax("ls", &limits("relative/bin")), Syntax::Unchecked { .. }));
    assert!(matches!(check_syntax(&"x".repeat(2 << 20), &usual()), Syntax::Unchecked { .. }));
}

#[test]
fn long_script_and_output_do_not_deadlock() {
    // More than the capacity of a pipe.
    let long = "echo 'some words'\n".repeat(10_000);
    assert_eq!(check_syntax(&long, &usual()), Syntax::Valid);
    let bash = stand_in("bash", "/usr/bin/head -c 3000000 /dev/zero; /usr/bin/head -c 3000000 /dev/zero >&2; exit 1");
    let Syntax::Invalid { message, .. } = check_syntax(&long, &limits(bash.path())) else { panic!() };
    assert!(message.len() <= 2_000);
}

#[test]
fn hanging_dry_run_is_killed_with_children() {
    let hanging = stand_in("git", "/bin/sleep 1000 & echo $!; echo ready; wait");
    let run = DryRun { argv: vec!["git".to_owned()] };
    let limits = CheckLimits { time: Duration::from_secs(3), ..limits(hanging.path()) };
    let output = run_dry(&run, Path::new("/"), &limits);
    assert_eq!(output.end, DryRunEnd::TimedOut);
    let child = output.output.lines().next().unwrap().to_owned();
    assert!(output.output.contains("ready"), "{output:?}");
    // A killed process stays listed until its parent reaps it.
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").map_or("gone".to_owned(), |(_, rest)| rest.to_owned())
    };
    let over = |state: &str| state == "gone" || state.starts_with(['Z', 'X']);
    for _ in 0..1_000 {
        if over(&state()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it goes on: {}", state());
}

#[test]
fn hanging_bash_is_unchecked() {
    let bash = stand_in("bash", "exec /bin/sleep 1000");
    let limits = CheckLimits { time: Duration::from_millis(50), ..limits(bash.path()) };
    let Syntax::Unchecked { reason } = check_syntax("ls", &limits) else { panic!() };
    assert_eq!(reason, "bash did not answer within 50 ms");
}

#[test]
fn dry_run_reports_without_deleting() {
    let repository = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| sayso_testkit::programs::run(repository.path(), "git", arguments, b"");
    assert!(git(&["init", "-q"]).status.success());
    std::fs::write(repository.path().join("untracked"), "x").unwrap();
    let preview = CommandPreview::of("git clean -fd", &WsPath::root(), "/somewhere");
    let output = run_dry(&preview.dry_run.unwrap(), repository.path(), &usual());
    assert_eq!(output.end, DryRunEnd::Exited { code: 0 }, "{output:?}");
    assert_eq!(output.output, "Would remove untracked\n");
    assert!(repository.path().join("untracked").exists());
}

#[test]
fn dry_run_output_is_bounded() {
    let loud = stand_in("git", "/usr/bin/head -c 100000 /dev/zero | /usr/bin/tr '\\0' x; echo no >&2; exit 3");
    let run =
        |name: &str, limits: &CheckLimits| run_dry(&DryRun { argv: vec![name.to_owned()] }, Path::new("/"), limits);
    let output = run("git", &limits(loud.path()));
    assert_eq!((output.output.len(), output.is_truncated, output.errors.as_str()), (10_000, true, "no\n"));
    assert_eq!(output.end, DryRunEnd::Exited { code: 3 });
    for name in ["/bin/sh", "missing-program", ""] {
        assert!(matches!(run(name, &usual()).end, DryRunEnd::NotStarted { .. }), "{name}");
    }
    let elsewhere = run_dry(&DryRun { argv: vec!["git".to_owned()] }, Path::new("/no/such/place"), &usual());
    assert!(matches!(elsewhere.end, DryRunEnd::NotStarted { .. }));
}
