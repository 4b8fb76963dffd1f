//! Words that a wrapper such as xargs or find adds to a command.

use std::borrow::Cow;

use sayso_shell::{Certainty, SimpleCommand, Word};

/// Programs that append words to the command that they run.
const APPEND: &[&str] = &["xargs", "gxargs"];
/// Programs that replace `{}` with a path. The path begins with a starting point, so it cannot become an option.
const REPLACE: &[&str] = &["find", "gfind", "fd", "fdfind"];

/// Returns the effective words of a command: xargs adds unknown words, `find -exec` adds paths.
pub(crate) fn words_when_run(command: &SimpleCommand) -> Cow<'_, [Word]> {
    let outer = command.wrappers.last().map(|name| name.split(' ').next().unwrap_or(name));
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

/// `true` if the words that a wrapper adds go only to the command that it runs directly, where they count as unknown.
pub(crate) fn adds_only_words(program: &str, commands: &[SimpleCommand]) -> bool {
    let is_program = |name: &String| name.split(' ').next() == Some(program);
    let known = APPEND.contains(&program) || REPLACE.contains(&program);
    known
        && commands.iter().all(|command| match command.wrappers.split_last() {
            Some((_, outer)) => !outer.iter().any(is_program),
            None => true,
        })
}

/// `true` if the script lists a command that `command` runs and that begins with the word `first`.
pub(crate) fn is_listed(commands: &[SimpleCommand], command: &SimpleCommand, first: &Word) -> bool {
    let depth = command.wrappers.len();
    commands.iter().any(|other| {
        let program = other.wrappers.get(depth).map(|name| name.split(' ').next().unwrap_or(name));
        program.is_some()
            && program == command.program()
            && other.wrappers[..depth] == command.wrappers
            && other.words.first().is_some_and(|word| word.text == first.text)
    })
}
