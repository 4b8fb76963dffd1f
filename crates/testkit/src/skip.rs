//! Tests that cannot run on this machine.
//!
//! A test that lacks a program or a right calls [`skip`] and returns. `make test` lists the reasons at its end. With
//! `SAYSO_REQUIRE_ALL=1`, which CI sets, a skipped test fails.

use std::fmt::Display;
use std::io::Write as _;

/// Turns skipped tests into failures if it is set to anything but `0`.
const REQUIRE_ALL: &str = "SAYSO_REQUIRE_ALL";

/// Names the file to which skipped tests are appended, one line each.
const SKIP_LOG: &str = "SAYSO_SKIP_LOG";

/// Records that the calling test is skipped.
///
/// # Panics
///
/// If `SAYSO_REQUIRE_ALL` is set.
#[track_caller]
#[allow(clippy::print_stderr, reason = "the test's own output should show the reason as well")]
pub fn skip(reason: impl Display) {
    let reason = reason.to_string().replace('\n', " ");
    let required = std::env::var_os(REQUIRE_ALL).is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!required, "skipped although {REQUIRE_ALL} is set: {reason}");
    eprintln!("skipped: {reason}");
    if let Some(log) = std::env::var_os(SKIP_LOG) {
        // One write per line, so that the lines of tests that run at the same time do not mix.
        let line = format!("{}: {reason}\n", test_name());
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("the skip log opens");
        file.write_all(line.as_bytes()).expect("the skip log takes a line");
    }
}

fn test_name() -> String {
    let variable = |name| std::env::var(name).ok();
    match (variable("NEXTEST_BINARY_ID"), variable("NEXTEST_TEST_NAME")) {
        (Some(binary), Some(test)) => format!("{binary} {test}"),
        _ => std::thread::current().name().unwrap_or("a test").to_owned(),
    }
}
