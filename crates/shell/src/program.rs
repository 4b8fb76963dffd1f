//! Strict reading of the part of the shell language that sayso runs by itself.
//!
//! [`Program::parse`] accepts one grammar and rejects all other text by name, with the bytes to highlight. The runner executes
//! the tree that is built here, so no shell reads the text a second time. [`Program::forecast`] lists the commands of the
//! tree as a [`Script`](crate::Script), with each word as certain as it is before anything ran.
//!
//! ```text
//! program  = list
//! list     = andor { (";" | NL) andor }
//! andor    = pipeline { ("&&" | "||") pipeline }
//! pipeline = ["!"] command { ("|" | "|&") command }
//! command  = simple | compound redir*
//! compound = "(" list ")" | "{" list "}" | for | if | case | while | "[[" condition "]]"
//! for      = "for" NAME "in" word* sep "do" list "done"
//! if       = "if" list "then" list { "elif" list "then" list } ["else" list] "fi"
//! case     = "case" word "in" { ["("] pattern { "|" pattern } ")" list ";;" } "esac"
//! while    = "while" ["IFS="] "read" "-r" NAME sep "do" list "done"
//! simple   = assign* word* redir*               at least one of them; redirections may stand between words
//! word     = literal | quotes | $NAME | ${NAME} | $? | $(list) | glob | {a,b} | {1..9} | ~
//! ```

mod braces;
mod builtins;
mod compound;
mod condition;
mod document;
mod forecast;
mod grammar;
mod quotes;
mod reader;
mod redirection;
mod simple;
mod variables;
mod word;

use std::fmt::{self, Display, Formatter};
use std::ops::Range;

pub use builtins::{Builtin, ShellOption, is_reserved_word};
pub use forecast::Variables;
pub use variables::{VariableClass, is_inherited, is_name, variable_class};

use reader::Reader;

/// A script that sayso can run without a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The commands in the order of the text.
    pub body: List,
    /// Bodies of the here-documents, by [`Operation::HereDocument`].
    pub documents: Vec<UnexpandedWord>,
    /// The original text, which the spans refer to.
    pub source: String,
}

/// Commands that run one after the other; empty for a text of blanks and comments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// The entries between `;` and newlines.
    pub items: Vec<AndOr>,
}

/// Pipelines connected by `&&` and `||`, which bind from the left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AndOr {
    /// The pipeline that runs in any case.
    pub first: Pipeline,
    /// The others, each with the connector before it.
    pub rest: Vec<(Connector, Pipeline)>,
}

/// Condition under which the pipeline behind it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connector {
    /// `&&`: the status so far is 0.
    And,
    /// `||`: the status so far is not 0.
    Or,
}

/// Commands whose outputs feed each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// `true` behind `!`, which turns the status around.
    pub is_negated: bool,
    /// At least one stage. A single one runs in the shell itself, several in a subshell each.
    pub stages: Vec<Stage>,
}

/// One command of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The command of this stage.
    pub command: Command,
    /// `true` before `|&`: standard error goes into the pipe as well.
    pub pipes_errors: bool,
}

/// A command by its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Assignments, words and redirections.
    Simple(Invocation),
    /// A construct with the redirections behind it.
    Compound(Compound),
}

/// A simple command. At least one of its fields is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// `NAME=word` before the first word.
    pub assignments: Vec<Assignment>,
    /// The command and its arguments.
    pub words: Vec<UnexpandedWord>,
    /// In the order in which they take effect.
    pub redirections: Vec<Redirection>,
    /// Line of the script on which it begins, from 1.
    pub line: usize,
}

/// An assignment `NAME=word` before a command or alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Name of the variable, never one of [`VariableClass::Dangerous`].
    pub name: String,
    /// The value, which is neither split nor matched against files.
    pub value: UnexpandedWord,
}

/// A construct around other commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compound {
    /// The construct by its kind.
    pub construct: Construct,
    /// Redirections that hold for everything inside.
    pub redirections: Vec<Redirection>,
    /// Line of the script on which it begins, from 1.
    pub line: usize,
}

/// The kinds of compound commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Construct {
    /// `( list )`: changes of variables and folder end with it.
    Subshell(List),
    /// `{ list; }`: runs in the current shell.
    Group(List),
    /// `for NAME in word…; do list; done`
    For {
        variable: String,
        /// Values of the loop variable before expansion.
        words: Vec<UnexpandedWord>,
        /// Runs once for each value.
        body: List,
    },
    /// `if list; then list; … fi`
    If {
        /// Conditions with the lists behind them, in order.
        branches: Vec<(List, List)>,
        /// The list behind `else`.
        otherwise: Option<List>,
    },
    /// `case word in pattern) list ;; esac`
    Case {
        /// The text that is compared.
        subject: UnexpandedWord,
        /// Patterns with the lists behind them; the first match counts.
        arms: Vec<(Vec<UnexpandedWord>, List)>,
    },
    /// `while read -r NAME; do list; done`
    WhileRead {
        /// Gets one line for each iteration.
        variable: String,
        /// `true` with `IFS=` before `read`: blanks around the line stay.
        keeps_blanks: bool,
        /// Runs once for each line.
        body: List,
    },
    /// `[[ condition ]]`: its status is the value.
    Condition(Condition),
}

/// The expression between `[[` and `]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Not(Box<Condition>),
    /// Both conditions, from the left.
    And(Box<Condition>, Box<Condition>),
    /// One of the conditions, from the left.
    Or(Box<Condition>, Box<Condition>),
    /// `-f word` and the like.
    Unary(UnaryTest, UnexpandedWord),
    /// `word == pattern`: the whole word matches.
    Matches(UnexpandedWord, UnexpandedWord),
    /// `word != pattern`: the word does not match.
    Differs(UnexpandedWord, UnexpandedWord),
}

/// Tests of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryTest {
    Exists,
    File,
    Directory,
    /// `-s`: a file with content.
    Filled,
    Readable,
    Writable,
    Executable,
    /// `-L` and its synonym `-h`.
    SymbolicLink,
    Empty,
    /// `-n`, or a word without an operator.
    NotEmpty,
}

/// A word before expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnexpandedWord {
    /// Parts that follow each other without a blank.
    pub parts: Vec<WordPart>,
    /// `true` for `NAME=word` behind `export`: the word is neither split nor matched against files.
    pub is_assignment: bool,
    /// Bytes of the script that it was read from.
    pub span: Range<usize>,
}

/// A part of a word. A quoted part is neither split nor matched against files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordPart {
    /// Exactly this text; quotes and backslashes are removed.
    Literal {
        /// May be empty when quoted.
        text: String,
        /// `true` within quotes or behind a backslash.
        is_quoted: bool,
    },
    /// `$NAME` or `${NAME}`; no other parameter expansion.
    Variable {
        /// Name of the variable.
        name: String,
        /// `true` within double quotes.
        is_quoted: bool,
    },
    /// `$?`: status of the last command.
    Status {
        /// `true` within double quotes.
        is_quoted: bool,
    },
    /// `$(list)`: output without trailing newlines.
    Substitution {
        /// The commands whose output is inserted.
        body: List,
        /// `true` within double quotes.
        is_quoted: bool,
    },
    /// `*`, `?` or `[…]` outside quotes.
    Wildcard(Wildcard),
    /// `{a,b}` or `{1..3}`, as the texts it stands for.
    Braces(Vec<String>),
    /// `~` at the start, alone or before `/`.
    Tilde,
}

/// A sign that matches characters of a file name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wildcard {
    /// `*`: any text, also none.
    Any,
    /// `?`: exactly one character.
    One,
    /// `[…]` with its brackets.
    Class(String),
}

/// A redirection of one file descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// The descriptor that changes, 0 to 9.
    pub descriptor: u8,
    pub operation: Operation,
}

/// The kinds of redirections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `< word`: opens a file for reading.
    Read(UnexpandedWord),
    /// `> word` and `>| word`
    Write(UnexpandedWord),
    /// `>> word`: appends to a file.
    Append(UnexpandedWord),
    /// `&> word`: standard output and standard error.
    WriteBoth(UnexpandedWord),
    /// `&>> word`: standard output and standard error.
    AppendBoth(UnexpandedWord),
    /// `>&N` and `<&N`: copies descriptor N.
    Duplicate(u8),
    /// `>&-` and `<&-`: closes the descriptor.
    Close,
    /// `<<< word`: the word and a newline.
    HereString(UnexpandedWord),
    /// `<<` and `<<-`: index into [`Program::documents`].
    HereDocument(usize),
}

/// Text outside the grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Bytes of the original text that are not supported.
    pub span: Range<usize>,
    /// One clause for a person.
    pub reason: String,
}

impl Display for Unsupported {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Unsupported {}

impl Program {
    /// Reads a script strictly. An error names the first text that the grammar has no place for.
    pub fn parse(text: &str) -> Result<Self, Unsupported> {
        reader::check_characters(text)?;
        let mut reader = Reader::new(text);
        let body = reader.program()?;
        Ok(Self { body, documents: reader.into_documents(), source: text.to_owned() })
    }
}

impl UnexpandedWord {
    /// The text of the word, if it consists of literal text only.
    pub fn as_literal(&self) -> Option<String> {
        let mut whole = String::new();
        for part in &self.parts {
            let WordPart::Literal { text, .. } = part else { return None };
            whole.push_str(text);
        }
        Some(whole)
    }
}
