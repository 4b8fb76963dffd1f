//! Finds the subcommand of git among its words.

use sayso_shell::Word;

/// Options before the subcommand that take a word.
const GLOBAL_VALUES: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"];

/// The subcommand and the words behind it.
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
