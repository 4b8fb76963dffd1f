//! Shell builtins without effect: they print, test or set variables.

use std::borrow::Borrow;

use sayso_shell::{Certainty, SimpleCommand, Word};

use crate::environment::{assigned_name, is_dangerous, is_harmless};

/// Operators of `test` in whose operand a shell evaluates code.
const EVALUATING: &[&str] = &["-v", "-R"];
/// Operators of `[[` that evaluate both sides as arithmetic.
const ARITHMETIC: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// `Some(true)` if a builtin has no effect with these words; `None` for other programs.
pub(super) fn is_effect_free<W: Borrow<Word>>(words: &[W]) -> Option<bool> {
    let words: Vec<&Word> = words.iter().map(Borrow::borrow).collect();
    let (program, arguments) = words.split_first()?;
    Some(match program.as_literal()? {
        ":" | "true" | "false" | "echo" | "pwd" | "exit" | "return" | "break" | "continue" | "shift" | "type"
        | "wait" => true,
        "printf" => arguments.first().is_none_or(|first| !may_be_option(first)),
        "test" | "[" => !arguments.iter().any(|word| EVALUATING.contains(&word.text.as_str())),
        "[[" => is_plain_condition(arguments),
        "cd" => {
            matches!(arguments, [target] if target.certainty == Certainty::Literal && !target.text.starts_with('-'))
        }
        "export" => !arguments.is_empty() && arguments.iter().all(|word| exports_harmless(word)),
        "unset" | "read" => are_plain_names(arguments),
        "set" => is_plain_set(arguments),
        "command" => matches!(arguments, [option, ..] if matches!(option.text.as_str(), "-v" | "-V")),
        _ => return None,
    })
}

/// `true` for assignments without a command that set no variable on which programs depend.
pub(super) fn sets_plain_variables(command: &SimpleCommand) -> bool {
    let is_plain = |word: &Word| assigned_name(&word.text).is_some_and(|name| !is_dangerous(name));
    command.words.is_empty() && command.assignments.iter().all(is_plain)
}

fn may_be_option(word: &Word) -> bool {
    match word.certainty {
        Certainty::Literal => word.text.starts_with('-') && word.text.len() > 1,
        Certainty::Pattern | Certainty::Unknown => word.text.starts_with(['-', '$', '`', '*', '?', '[', '{']),
    }
}

fn is_plain_condition(arguments: &[&Word]) -> bool {
    let is_number = |word: &Word| word.as_literal().is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let evaluates = |word: &&Word| EVALUATING.contains(&word.text.as_str());
    let compares =
        |three: &[&Word]| ARITHMETIC.contains(&three[1].text.as_str()) && !(is_number(three[0]) && is_number(three[2]));
    !arguments.iter().any(evaluates) && !arguments.windows(3).any(compares)
}

fn exports_harmless(word: &Word) -> bool {
    match word.text.split_once('=') {
        Some((name, _)) => is_harmless(name),
        None => word.certainty == Certainty::Literal && is_harmless(&word.text),
    }
}

/// `true` for flags and plain names. A subscript in a name would be evaluated.
fn are_plain_names(arguments: &[&Word]) -> bool {
    arguments.iter().all(|word| {
        let is_flag = matches!(word.text.as_str(), "-r" | "-f" | "-v" | "-s");
        word.certainty == Certainty::Literal
            && (is_flag || (sayso_shell::program::is_name(&word.text) && !is_dangerous(&word.text)))
    })
}

fn is_plain_set(arguments: &[&Word]) -> bool {
    !arguments.is_empty()
        && arguments.iter().all(|word| {
            let Some(text) = word.as_literal() else { return false };
            let letters = text.strip_prefix(['-', '+']);
            text == "pipefail" || letters.is_some_and(|letters| letters.chars().all(|letter| "euxo".contains(letter)))
        })
}

#[cfg(test)]
mod tests {
    use sayso_shell::Script;

    use super::*;

    #[test]
    fn builtin_effect_depends_on_words() {
        let is_free = |text: &str| is_effect_free(&Script::parse(text).commands[0].words);
        for text in [
            ":",
            "true",
            "echo $x",
            "printf '%s' a",
            "[ -f x ]",
            "[[ -n $x ]]",
            "test -d a",
            "cd src",
            "export CI=1",
            "unset X",
            "set -euo pipefail",
            "set -x",
            "command -v git",
            "read -r line",
            "[[ 1 -lt 2 ]]",
            "printf \"x: $y\"",
            "type ls",
            "exit 1",
        ] {
            assert_eq!(is_free(text), Some(true), "{text}");
        }
        for text in [
            "printf -v 'a[$(x)]' b",
            "printf $x",
            "[ -v 'a[$(x)]' ]",
            "[[ $x -eq 1 ]]",
            "cd $x",
            "cd -",
            "export PATH=.",
            "export X=1",
            "unset 'a[$(x)]'",
            "unset PATH",
            "set -- a",
            "set -o vi",
            "read 'a[0]'",
            "export",
        ] {
            assert_eq!(is_free(text), Some(false), "{text}");
        }
        assert_eq!((is_free("ls"), is_free("eval x"), is_free("./echo")), (None, None, None));
    }
}
