//! Shell builtins: the supported ones, and the reason against each of the others.

use super::{Invocation, UnexpandedWord, Unsupported, VariableClass, is_name, variable_class};

/// A command that the runner executes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// `true`, and `:` with any arguments.
    True,
    False,
    Cd,
    Pwd,
    Echo,
    Printf,
    Test,
    /// `[`, which is `test` with a closing bracket.
    Bracket,
    Exit,
    Export,
    Unset,
    Set,
    /// `command`, with `-v` only.
    Command,
    Type,
}

/// An option of the shell that `set` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellOption {
    /// `set -e`: a failing command ends the script.
    ExitOnError,
    /// `set -u`: an unset variable is an error.
    RejectUnset,
    /// `set -x`: each command is written to standard error.
    Trace,
    /// `set -o pipefail`: a failing stage fails the pipeline.
    PipeFail,
}

impl Builtin {
    /// The builtin of this name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            ":" | "true" => Self::True,
            "false" => Self::False,
            "cd" => Self::Cd,
            "pwd" => Self::Pwd,
            "echo" => Self::Echo,
            "printf" => Self::Printf,
            "test" => Self::Test,
            "[" => Self::Bracket,
            "exit" => Self::Exit,
            "export" => Self::Export,
            "unset" => Self::Unset,
            "set" => Self::Set,
            "command" => Self::Command,
            "type" => Self::Type,
            _ => return None,
        })
    }

    /// Reason why sayso does not run a builtin of bash that has this name.
    pub fn rejection(name: &str) -> Option<String> {
        let reason = match name {
            "eval" => "runs text that is only known when it runs",
            "." | "source" => "runs a file as part of the script",
            "exec" => "replaces the shell or its files",
            "trap" => "runs text at another time",
            "alias" | "unalias" => "gives a name another meaning",
            "builtin" | "enable" | "hash" => "changes which command a name stands for",
            "declare" | "typeset" | "local" | "readonly" => "declares variables in a way that is not supported",
            "read" => "is supported as `while read -r NAME` only",
            "mapfile" | "readarray" => "fills an array",
            "let" => "evaluates arithmetic, which can run commands",
            "shopt" | "bind" | "complete" | "compgen" | "compopt" => "changes how the shell reads commands",
            "bg" | "fg" | "jobs" | "disown" | "wait" | "suspend" => "controls jobs, which the script does not have",
            "break" | "continue" | "return" | "shift" | "getopts" | "caller" => "is not supported",
            "pushd" | "popd" | "dirs" => "uses a stack of folders, which is not supported",
            "ulimit" | "umask" | "times" | "logout" => "changes or shows the state of the shell process",
            "fc" | "history" | "help" => "belongs to an interactive shell",
            _ => return None,
        };
        Some(format!("`{name}` {reason}"))
    }

    /// Reads the arguments of `set`: `-e`, `+x`, `-euo pipefail`; `None` for anything else.
    pub fn shell_options(arguments: &[&str]) -> Option<Vec<(ShellOption, bool)>> {
        let mut options = Vec::new();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let is_on = argument.starts_with('-');
            let letters = argument.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty())?;
            for letter in letters.chars() {
                let option = match letter {
                    'e' => ShellOption::ExitOnError,
                    'u' => ShellOption::RejectUnset,
                    'x' => ShellOption::Trace,
                    'o' => long_option(arguments.next()?)?,
                    _ => return None,
                };
                options.push((option, is_on));
            }
        }
        (!options.is_empty()).then_some(options)
    }
}

fn long_option(name: &str) -> Option<ShellOption> {
    match name {
        "errexit" => Some(ShellOption::ExitOnError),
        "nounset" => Some(ShellOption::RejectUnset),
        "xtrace" => Some(ShellOption::Trace),
        "pipefail" => Some(ShellOption::PipeFail),
        _ => None,
    }
}

/// `true` for the reserved words of the grammar.
pub fn is_reserved_word(word: &str) -> bool {
    matches!(
        word,
        "if" | "then"
            | "else"
            | "elif"
            | "fi"
            | "for"
            | "in"
            | "do"
            | "done"
            | "while"
            | "until"
            | "case"
            | "esac"
            | "function"
            | "select"
            | "time"
            | "coproc"
            | "{"
            | "}"
            | "!"
            | "[["
            | "]]"
    )
}

/// Rejects builtins, and arguments of builtins, that are not supported.
pub(super) fn check_invocation(invocation: &Invocation) -> Result<(), Unsupported> {
    let Some(first) = invocation.words.first() else { return Ok(()) };
    let Some(name) = first.as_literal() else { return Ok(()) };
    if let Some(reason) = Builtin::rejection(&name) {
        return Err(Unsupported { span: first.span.clone(), reason });
    }
    let arguments = &invocation.words[1..];
    match Builtin::named(&name) {
        Some(Builtin::Printf) => {
            reject(arguments.first(), |text| text.starts_with("-v"), "`printf -v` sets a variable")
        }
        Some(Builtin::Test | Builtin::Bracket) => {
            let is_variable_test = |text: &str| matches!(text, "-v" | "-R" | "-a" | "-o");
            reject_any(arguments, is_variable_test, "this test is not supported")
        }
        Some(Builtin::Export | Builtin::Unset) => arguments.iter().try_for_each(check_declared),
        Some(Builtin::Set) => check_set(first, arguments),
        Some(Builtin::Command) if arguments.first().and_then(UnexpandedWord::as_literal).as_deref() != Some("-v") => {
            Err(Unsupported { span: first.span.clone(), reason: "`command` is supported with `-v` only".to_owned() })
        }
        Some(Builtin::Type) => {
            reject(arguments.first(), |text| text.starts_with('-'), "options of `type` are not supported")
        }
        _ => Ok(()),
    }
}

fn reject(word: Option<&UnexpandedWord>, is_rejected: impl Fn(&str) -> bool, reason: &str) -> Result<(), Unsupported> {
    match word {
        Some(word) if word.as_literal().is_some_and(|text| is_rejected(&text)) => {
            Err(Unsupported { span: word.span.clone(), reason: reason.to_owned() })
        }
        _ => Ok(()),
    }
}

fn reject_any(words: &[UnexpandedWord], is_rejected: impl Fn(&str) -> bool, reason: &str) -> Result<(), Unsupported> {
    words.iter().try_for_each(|word| reject(Some(word), &is_rejected, reason))
}

/// Checks an argument of `export` or `unset`, whose name has to be known.
fn check_declared(word: &UnexpandedWord) -> Result<(), Unsupported> {
    // The name of an assignment was checked when it was read.
    if word.is_assignment {
        return Ok(());
    }
    let reason = match word.as_literal() {
        Some(name) if !is_name(&name) => format!("`{name}` is not the name of a variable"),
        Some(name) if variable_class(&name) == VariableClass::Dangerous => {
            format!("setting `{name}` changes how programs run")
        }
        Some(_) => return Ok(()),
        None => "the name of the variable is only known when it runs".to_owned(),
    };
    Err(Unsupported { span: word.span.clone(), reason })
}

fn check_set(first: &UnexpandedWord, arguments: &[UnexpandedWord]) -> Result<(), Unsupported> {
    let texts: Option<Vec<String>> = arguments.iter().map(UnexpandedWord::as_literal).collect();
    let is_known = texts.is_some_and(|texts| {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Builtin::shell_options(&texts).is_some()
    });
    if is_known {
        return Ok(());
    }
    let reason = "`set` is supported with `-e`, `-u`, `-x` and `-o pipefail` only".to_owned();
    let end = arguments.last().map_or(first.span.end, |word| word.span.end);
    Err(Unsupported { span: first.span.start..end, reason })
}
