//! Words that another program adds to a command or replaces in it.

use std::borrow::Cow;

use sayso_shell::{Certainty, SimpleCommand, Word};

/// Programs that append words to the command that they run.
const APPEND: &[&str] = &["xargs", "gxargs"];
/// Programs that put a path for `{}`, which begins with a starting point and so is no option.
const REPLACE: &[&str] = &["find", "gfind", "fd", "fdfind"];

/// The words that a command is run with: those of xargs are unknown, those of `find -exec` are paths.
pub(crate) fn words_when_run(command: &SimpleCommand) -> Cow<'_, [Word]> {
    let outer = command.through.last().map(|name| name.split(' ').next().unwrap_or(name));
    match outer {
        Some(outer) if APPEND.contains(&outer) => {
            let mut words = command.words.clone();
            let mut replaced = false;
            for word in words.iter_mut().filter(|word| word.text.contains("{}")) {
                word.certainty = Certainty::Unknown;
                replaced = true;
            }
            if !replaced {
                words.push(Word { text: "…".to_owned(), certainty: Certainty::Unknown });
            }
            Cow::Owned(words)
        }
        Some(outer) if REPLACE.contains(&outer) => {
            let mut words = command.words.clone();
            for word in words.iter_mut().skip(1).filter(|word| word.text.starts_with("{}")) {
                word.certainty = Certainty::Pattern;
            }
            Cow::Owned(words)
        }
        _ => Cow::Borrowed(&command.words),
    }
}

/// `true` if the words that a program adds reach no further than the command that it runs, where they count as unknown.
pub(crate) fn adds_only_words(program: &str, commands: &[SimpleCommand]) -> bool {
    let is_it = |name: &String| name.split(' ').next() == Some(program);
    let known = APPEND.contains(&program) || REPLACE.contains(&program);
    known
        && commands.iter().all(|command| match command.through.split_last() {
            Some((_, outer)) => !outer.iter().any(is_it),
            None => true,
        })
}

/// `true` if the script lists the command that begins with this word as one that `command` runs.
pub(crate) fn is_listed(commands: &[SimpleCommand], command: &SimpleCommand, first: &Word) -> bool {
    let depth = command.through.len();
    commands.iter().any(|other| {
        let program = other.through.get(depth).map(|name| name.split(' ').next().unwrap_or(name));
        program.is_some()
            && program == command.program()
            && other.through[..depth] == command.through
            && other.words.first().is_some_and(|word| word.text == first.text)
    })
}
