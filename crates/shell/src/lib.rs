//! What a shell script would run, found without running anything.
//!
//! The script is not turned into a tree. It is read once from left to right, and every simple command is listed wherever it
//! stands: what matters to a reviewer and to a policy is which programs are reached with which words, not how they are nested. A
//! word that opens or closes a compound command (`if`, `do`, `}`) only ends the command before it, so a script with wrong syntax
//! loses nothing either: at worst it lists a command that the shell would refuse to run.
//!
//! [`Program`] is the strict counterpart: a tree for the scripts that sayso runs by itself, and an error for all others.
//!
//! # Limits
//!
//! - The language is that of bash, and near enough that of other POSIX shells. Expansions are never carried out: a word that
//!   depends on a variable, a file name or another program's output says so by its [`Certainty`].
//! - Aliases, and functions that take the name of a program, can give a command another meaning; both are a [`Doubt`].
//! - Length, depth and the number of commands are bounded. What is beyond the bound is a [`Doubt`], never silence.

mod commands;
mod expansion;
mod level;
mod output;
pub mod program;
mod redirect;
mod reserved;
mod sentence;
mod through;
mod word;
mod wrapper;

use serde::{Deserialize, Serialize};

use output::Output;
pub use program::{Program, Unsupported};
pub use sentence::visible;

/// A shell script as far as it can be understood without running it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// Every program that it would run, in the order of the text; a wrapper comes before what it runs.
    pub commands: Vec<SimpleCommand>,
    /// Why more may happen than is listed here; each reason once.
    pub doubts: Vec<Doubt>,
    /// The shell within which each shell was started; the first one has none and names itself.
    pub shells: Vec<usize>,
}

/// One program that a script would run, wherever it stands: in a pipe, a subshell, a substitution, a loop, a function body,
/// `bash -c '…'`, `eval`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimpleCommand {
    /// `NAME=value` before the words.
    pub assignments: Vec<Word>,
    /// The program and its arguments; empty if there are only assignments or redirects.
    pub words: Vec<Word>,
    /// The files that it reads or writes by redirection.
    pub redirects: Vec<Redirect>,
    /// The programs through which it is run, outermost first: `sudo`, `env`, `xargs`, `bash -c`.
    pub through: Vec<String>,
    /// The shell in which it runs, as an index into [`Script::shells`]: a `cd` reaches no further than that.
    pub shell: usize,
    /// Whether it is sure to be reached.
    pub course: Course,
    /// The first of the commands, from there up to this one, whose output it gets by a pipe or a substitution.
    pub fed_by: Option<usize>,
}

/// Whether a command is reached whenever the script gets to its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// It stands by itself, or behind `&&`.
    #[default]
    Straight,
    /// It stands in a branch, a loop, a function body or behind `||`.
    Branch,
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Word {
    /// Its text with the quotes removed; expansions are left as they are written.
    pub text: String,
    /// Whether it is exactly that whatever the variables and files are.
    pub certainty: Certainty,
}

/// How much of a word is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// It is exactly the text.
    Literal,
    /// It stands for names of files, or for several words: `*`, `{a,b}`, `~`.
    Pattern,
    /// It depends on a variable or on what another program prints.
    Unknown,
}

/// A file that a command is connected with by the shell. Here-documents, here-strings and duplicated descriptors are none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// The file.
    pub target: Word,
    /// What is done with it.
    pub access: RedirectAccess,
}

/// What a redirect does with its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedirectAccess {
    /// `<`
    Read,
    /// `>`, `>|`, `&>`
    Write,
    /// `>>`, `&>>`
    Append,
    /// `<>`
    ReadWrite,
}

/// Why more may happen than a [`Script`] lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "doubt", rename_all = "snake_case")]
pub enum Doubt {
    /// The script is longer than what is read of it.
    TooLong,
    /// It is nested deeper than is followed.
    TooDeep,
    /// It has more commands than are listed.
    TooMany,
    /// A quote, a substitution or a here-document has no end.
    Unterminated {
        /// How it begins.
        opening: String,
    },
    /// Something stands where the grammar has no place for it.
    Unexpected {
        /// What.
        token: String,
    },
    /// Which program is run depends on a variable, a pattern or another program.
    UnknownProgram {
        /// The word in the program's place.
        word: String,
    },
    /// A script is run whose text is not in this one: `eval "$x"`, `. file`, `bash file`, `… | sh`.
    UnknownScript {
        /// What runs it.
        through: String,
    },
    /// Arguments come from somewhere else: `xargs`, `find -exec`.
    UnknownArguments {
        /// What adds them.
        through: String,
    },
    /// A function or an alias takes this name, so that a command of this name may be something else.
    Redefined {
        /// The name.
        name: String,
    },
    /// A variable is set that decides which program a name stands for, or what runs before it.
    ChangesLookup {
        /// The variable.
        name: String,
    },
    /// A part that sayso does not run by itself, so that no rule can allow the script.
    Unsupported {
        /// The part as it is written.
        part: String,
        /// One clause for a person.
        reason: String,
    },
    /// It holds carriage returns, which the shell takes for part of a word.
    CarriageReturn,
    /// It holds NUL characters, which the shell drops.
    Nul,
}

impl Script {
    /// Reads a script. Never fails: what is not understood is a [`Doubt`].
    pub fn parse(text: &str) -> Self {
        let mut output = Output::new();
        output.read_all(text);
        output.into_script()
    }
}

impl Word {
    /// A word that is exactly this text.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), certainty: Certainty::Literal }
    }

    /// The text, if the word is exactly that.
    pub fn as_literal(&self) -> Option<&str> {
        (self.certainty == Certainty::Literal).then_some(self.text.as_str())
    }
}
