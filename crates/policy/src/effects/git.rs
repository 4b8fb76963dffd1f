//! The subcommand of a git command.

use sayso_shell::Word;

/// Options before the subcommand that take a value.
const GLOBAL_VALUES: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"];

/// Returns the subcommand and the words after it.
pub fn subcommand(words: &[Word]) -> Option<(&str, &[Word])> {
    let mut rest = words.get(1..)?;
    loop {
        let word = rest.first()?.as_literal()?;
        if !word.starts_with('-') {
            return Some((word, &rest[1..]));
        }
        rest = rest.get(if GLOBAL_VALUES.contains(&word) { 2 } else { 1 }..)?;
    }
}
