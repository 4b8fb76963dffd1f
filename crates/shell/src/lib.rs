//! Reads shell scripts without running them, and lists the programs that a script would run.
//!
//! [`Script::parse`] is lenient. It reads the text once from left to right and lists every simple command, wherever it is
//! nested: reviewers and policy need the programs with their words, not the tree. A reserved word (`if`, `do`, `}`) only ends
//! the command before it. A script with wrong syntax therefore lists at worst a command that the shell would reject.
//!
//! [`Program`] is the strict counterpart: a tree for the scripts that sayso runs by itself, and an error for all others.
//!
//! # Limits
//!
//! - The language is that of bash, and near enough that of other POSIX shells. Expansions are never carried out: a word that
//!   depends on a variable, a file name or another program's output has a lower [`Certainty`].
//! - Aliases, and functions with the name of a program, can give a command another meaning. Both are an [`Uncertainty`].
//! - Length, depth and the number of commands are bounded. Text beyond a bound is an [`Uncertainty`], never silence.

mod commands;
mod display;
mod expansion;
mod keywords;
mod nested;
mod parser_state;
pub mod program;
mod redirect;
mod script_builder;
mod word;
mod wrapper;

use serde::{Deserialize, Serialize};

pub use display::escape_unprintable;
pub use program::{Program, Unsupported};
use script_builder::ScriptBuilder;

/// The commands of a shell script, as far as they are known without running it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// All programs in the order of the text. A wrapper comes before the command that it runs.
    pub commands: Vec<SimpleCommand>,
    /// Reasons why more may happen than `commands` lists; each one once.
    pub uncertainties: Vec<Uncertainty>,
    /// Parts of the text that cause an uncertainty, in the order of `uncertainties`. Not every uncertainty has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncertain_spans: Vec<UncertainSpan>,
    /// For each shell the index of its parent. The first shell is its own parent.
    pub shells: Vec<usize>,
}

/// The part of a script that causes an uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UncertainSpan {
    /// Index into [`Script::uncertainties`].
    pub uncertainty: usize,
    /// First byte of the part.
    pub start: usize,
    /// Byte behind the part.
    pub end: usize,
}

/// One program that a script would run, at any nesting: in a pipe, a subshell, a substitution, a loop, a function body,
/// `bash -c '…'`, `eval`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimpleCommand {
    /// `NAME=value` before the words.
    pub assignments: Vec<Word>,
    /// The program and its arguments; empty if there are only assignments or redirects.
    pub words: Vec<Word>,
    /// Files that it reads or writes by redirection.
    pub redirects: Vec<Redirect>,
    /// Programs that run it, outermost first: `sudo`, `env`, `xargs`, `bash -c`.
    pub wrappers: Vec<String>,
    /// Index into [`Script::shells`]. A `cd` affects its own shell only.
    pub shell: usize,
    pub flow: Flow,
    /// Index of the first command that feeds it by a pipe or a substitution. All commands up to this one do.
    pub fed_by: Option<usize>,
}

/// Reachability of a command, given that the script reaches its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// By itself, or behind `&&`.
    #[default]
    Unconditional,
    /// In a branch, a loop, a function body or behind `||`.
    Conditional,
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Word {
    /// Text without quotes. Expansions stay as written.
    pub text: String,
    pub certainty: Certainty,
}

/// Relation between the text of a word and its value when the script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// The value is exactly the text.
    Literal,
    /// The value is one or several words that match the text: `*`, `{a,b}`, `~`.
    Pattern,
    /// The value depends on a variable or on the output of another program.
    Unknown,
}

/// A file that the shell opens for a command. Here-documents, here-strings and duplicated descriptors open none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    pub target: Word,
    pub access: RedirectAccess,
}

/// Access of a redirect to its file, with its operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedirectAccess {
    /// `<`: for reading.
    Read,
    /// `>`, `>|`, `&>`: truncates the file.
    Write,
    /// `>>`, `&>>`: writes at the end of the file.
    Append,
    /// `<>`: for reading and writing.
    ReadWrite,
}

/// Reason why more may happen than a [`Script`] lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "uncertainty", rename_all = "snake_case")]
pub enum Uncertainty {
    /// The script is longer than the limit of the reader.
    TooLong,
    /// The script is nested deeper than the limit of the reader.
    TooDeep,
    /// The script has more commands than the limit of the list.
    TooMany,
    /// A quote, a substitution or a here-document has no end.
    Unterminated {
        /// First characters of the construct.
        opening: String,
    },
    /// The grammar does not allow this token at its place.
    Unexpected { token: String },
    /// A variable, a pattern or another program decides which program runs.
    UnknownProgram {
        /// The word in the program's place.
        word: String,
    },
    /// A script runs whose text is elsewhere: `eval "$x"`, `. file`, `bash file`, `… | sh`.
    UnknownScript {
        /// Command that runs the script.
        through: String,
    },
    /// Arguments come from outside the script: `xargs`, `find -exec`.
    UnknownArguments {
        /// Command that adds the arguments.
        through: String,
    },
    /// A function or an alias gives this name another meaning.
    Redefined { name: String },
    /// The script sets a variable that changes how programs run: `PATH`, `BASH_ENV`, `GIT_SSH`.
    ChangesLookup { name: String },
    /// sayso does not run this part by itself, so no rule can allow the script.
    Unsupported {
        /// The part as it is written.
        part: String,
        /// One clause for a person.
        reason: String,
    },
    /// Carriage returns, which the shell takes for part of a word.
    CarriageReturn,
    /// NUL characters, which the shell drops.
    Nul,
}

impl Script {
    /// Reads a script strictly. Text outside the grammar of [`Program`] is read leniently, and the first uncertainty names the
    /// unsupported part.
    pub fn read(text: &str) -> Self {
        match Program::parse(text) {
            Ok(program) => program.forecast(&program::Variables::default()),
            Err(Unsupported { span, reason }) => {
                let mut script = Self::parse(text);
                let part = text.get(span.clone()).unwrap_or_default().to_owned();
                script.uncertainties.insert(0, Uncertainty::Unsupported { part, reason });
                if !span.is_empty() {
                    script.uncertain_spans.push(UncertainSpan { uncertainty: 0, start: span.start, end: span.end });
                }
                script
            }
        }
    }

    /// Reads a script. Never fails: text that is not understood is an [`Uncertainty`].
    pub fn parse(text: &str) -> Self {
        let mut output = ScriptBuilder::new();
        output.read_all(text);
        output.into_script()
    }
}

impl Word {
    /// Creates a word whose value is exactly this text.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), certainty: Certainty::Literal }
    }

    /// Returns the text if it is the exact value of the word.
    pub fn as_literal(&self) -> Option<&str> {
        (self.certainty == Certainty::Literal).then_some(self.text.as_str())
    }
}
