//! Findings: what one word of a command does.

use std::fmt::{self, Display, Formatter};

use sayso_shell::{Word, escape_unprintable};

use super::vocabulary::Trait;

/// One effect, with the word that causes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The index of that word in the command.
    pub(crate) at: usize,
    /// The option or operand as a person is shown it.
    pub(crate) label: String,
    pub(crate) what: FindingKind,
}

/// Effect of one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FindingKind {
    /// Names a path that is read.
    Reads(Word),
    /// Names a path that is written.
    Writes(Word),
    /// Names a path that is deleted.
    Deletes { word: Word, recursive: bool },
    /// Names a path whose permissions change.
    Permissions(Word),
    /// Names another command.
    Runs(NestedCommand),
    /// Has an effect without a path.
    Effect(Trait),
    /// Cannot be told.
    Unclear(Unclear),
}

/// A command within a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NestedCommand {
    /// A script for a shell.
    Script(Word),
    /// A program that gets further arguments.
    Program(Word),
    /// The words of the command from this one on.
    CommandPattern { from: usize, assignments: Vec<Word> },
}

/// Reason why the effect of a word is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unclear {
    /// An option that the grammar does not have.
    Option,
    /// An option without its value.
    MissingValue,
    /// A subcommand that the grammar does not have: an alias, a plug-in, a newer one.
    Verb,
    /// An operand for which the grammar has no place.
    Operand,
    /// An expansion or a pattern that may become an option.
    MayBeOption,
    /// A script of sed or awk that may write or run.
    Script,
    /// A program or module that sayso cannot look into.
    Module,
    /// A variable that changes how programs run.
    Variable,
}

impl Finding {
    /// `true` where a place decides, or another command that is judged by itself.
    pub(crate) fn is_decided_separately(&self) -> bool {
        !matches!(self.what, FindingKind::Effect(_) | FindingKind::Unclear(_))
    }

    /// The finding as one clause for a person; `command` is the program with its subcommand.
    pub(crate) fn clause(&self, command: &str) -> String {
        let label = escape_unprintable(&self.label);
        match &self.what {
            FindingKind::Reads(word) => format!("`{label}` reads a file: {}", escape_unprintable(&word.text)),
            FindingKind::Writes(word) => format!("`{label}` writes a file: {}", escape_unprintable(&word.text)),
            FindingKind::Deletes { word, .. } => {
                format!("`{label}` deletes a file: {}", escape_unprintable(&word.text))
            }
            FindingKind::Permissions(word) => {
                format!("`{label}` changes permissions: {}", escape_unprintable(&word.text))
            }
            FindingKind::Runs(_) => format!("`{label}` runs another program"),
            FindingKind::Effect(one) => format!("`{label}` {one}"),
            FindingKind::Unclear(Unclear::Option) => {
                format!("`{label}` is not an option that sayso knows for {command}")
            }
            FindingKind::Unclear(Unclear::MissingValue) => format!("`{label}` of {command} lacks its value"),
            FindingKind::Unclear(Unclear::Verb) => {
                format!("`{label}` is not a subcommand that sayso knows for {command}")
            }
            FindingKind::Unclear(Unclear::Operand) => {
                format!("`{label}` is not an operand that sayso knows for {command}")
            }
            FindingKind::Unclear(Unclear::MayBeOption) => format!("`{label}` may become an option of {command}"),
            FindingKind::Unclear(Unclear::Script) => format!("`{label}` may write files or run programs"),
            FindingKind::Unclear(Unclear::Module) => format!("`{label}` runs what sayso cannot look into"),
            FindingKind::Unclear(Unclear::Variable) => format!("`{label}` may change how programs run"),
        }
    }
}

impl Display for Trait {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Network => "reaches other machines",
            Self::Code => "runs code that the command or its input holds",
            Self::Project => "runs code of the project",
            Self::Repository => "changes the repository",
            Self::History => "throws away work that only git has",
            Self::Terminal => "needs a terminal",
            Self::Elevates => "takes another user's rights",
            Self::System => "changes the machine",
            Self::Kills => "ends processes",
            Self::Here => "writes into the current directory",
            Self::Untracked => "deletes untracked files",
            Self::Unknown => "does what sayso cannot foresee",
            Self::Dry | Self::Wet | Self::InPlace | Self::Recursive | Self::Instead | Self::Directory => {
                "changes the other options"
            }
        })
    }
}
