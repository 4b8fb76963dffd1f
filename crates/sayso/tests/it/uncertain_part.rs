//! The question about a command marks the part that is not understood.

use crate::Scene;
use crate::pty::Pty;

const COMMAND: &str = "cd src && eval \"$x\"\nprintf done";

/// The screen up to the question, and the exit code after a denial.
fn shown(arguments: &[&str], environment: &[(&str, &str)]) -> (String, Option<i32>) {
    let scene = Scene::new(&[("src/a", b"")]);
    let mut asks = Pty::start(&scene, arguments, environment);
    let shown = asks.until("Run it");
    asks.types("n\n");
    asks.until("for no reason");
    asks.types("no\n");
    asks.until("denied");
    (shown.replace('\r', ""), asks.ended())
}

#[test]
fn marker_line_names_the_part_without_colors() {
    let (shown, code) = shown(&["exec", COMMAND], &[]);
    insta::assert_snapshot!(shown);
    assert_eq!(code, Some(1));
}

#[test]
fn part_is_underlined_with_colors() {
    let (shown, _) = shown(&["exec", "--color", "always", COMMAND], &[("TERM", "xterm-256color")]);
    let line = shown.lines().find(|line| line.contains("cd src")).unwrap_or_else(|| panic!("{shown}"));
    let (_, uncertain) = line.split_once("&& ").unwrap();
    assert!(uncertain.starts_with("\u{1b}[4m") && uncertain.contains("eval"), "underlined: {line:?}");
    assert!(!shown.contains("^^^^"), "{shown}");
}
