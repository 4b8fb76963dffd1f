//! Words that grammar files use for values, operands and effects. The build script reads them with this module too.

/// Role of an option's value, or of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The option takes no value.
    Flag,
    /// Free text: a pattern, a number, a name.
    Text,
    /// A path that is read.
    Read,
    /// A path that is made or changed.
    Write,
    /// A path that is removed.
    Delete,
    /// A path whose permissions or owner change.
    Permissions,
    /// A program, perhaps with first arguments, that gets further arguments.
    Program,
    /// A script for a shell.
    Script,
    /// The first word of another command, to which all later words belong.
    Command,
    /// Like `Command`, but the words run where sayso cannot follow: in a container or on another machine.
    Remote,
    /// Code in the program's own language.
    Code,
    /// A script of sed.
    Sed,
    /// A script of awk.
    Awk,
    /// A Python module that gets all later words as its arguments.
    Module,
    /// A `NAME=value` for the environment of the command.
    Variable,
    /// The mark of xargs for its arguments; only `{}` is understood.
    Placeholder,
    /// A commit, or a path that git overwrites where no commit has that name.
    Commit,
    /// A branch to push, by force if it begins with `+`, or to delete if it begins with `:`.
    Refspec,
    /// `host:path` on another machine, or a path that is read.
    Source,
    /// `host:path` on another machine, or a path that is written.
    Target,
    /// A path of the workspace whose code runs. A path outside is asked about.
    Project,
    /// An argument for code of the project: a plain word or a path of the workspace, no option.
    Argument,
    /// An option of the same table, behind `--`.
    Passed,
    /// `NAME=value` of make.
    MakeOperand,
    /// An operand of dd: `if=`, `of=` and settings.
    DdOperand,
}

impl Kind {
    pub(crate) const ALL: &'static [(&'static str, Self)] = &[
        ("flag", Self::Flag),
        ("text", Self::Text),
        ("read", Self::Read),
        ("write", Self::Write),
        ("delete", Self::Delete),
        ("permissions", Self::Permissions),
        ("program", Self::Program),
        ("script", Self::Script),
        ("command", Self::Command),
        ("remote", Self::Remote),
        ("code", Self::Code),
        ("sed", Self::Sed),
        ("awk", Self::Awk),
        ("module", Self::Module),
        ("variable", Self::Variable),
        ("placeholder", Self::Placeholder),
        ("commit", Self::Commit),
        ("refspec", Self::Refspec),
        ("source", Self::Source),
        ("target", Self::Target),
        ("project", Self::Project),
        ("argument", Self::Argument),
        ("passed", Self::Passed),
        ("make", Self::MakeOperand),
        ("dd", Self::DdOperand),
    ];

    /// `true` where the kind alone does no more than read.
    pub(crate) fn is_harmless(self) -> bool {
        matches!(self, Self::Flag | Self::Text | Self::Read)
    }
}

/// Effect or property of a program, a subcommand, an option or an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Trait {
    /// Reaches other machines.
    Network,
    /// Runs code in the program's language that the words or the input hold.
    Code,
    /// Runs code of the project: build scripts, tests, hooks.
    Project,
    /// Changes the repository: commits, branches, settings.
    Repository,
    /// Throws away work that only git has.
    History,
    /// Waits for a person at a terminal.
    Terminal,
    /// Takes another user's rights.
    Elevates,
    /// Changes the machine.
    System,
    /// Ends processes.
    Kills,
    /// Writes into the current directory.
    Here,
    /// Deletes files that git does not track.
    Untracked,
    /// Is not described by the grammar, so a person is asked.
    Unknown,
    /// Cancels all effects on files: a dry run.
    Dry,
    /// Takes a dry run back.
    Wet,
    /// Makes the operands written instead of read.
    InPlace,
    /// Deletes directories with their contents.
    Recursive,
    /// Stands for the first operand, which is then of the next kind.
    Instead,
    /// Writes the operands' directory instead of the last operand: `cp -t`.
    Directory,
}

impl Trait {
    pub(crate) const ALL: &'static [(&'static str, Self)] = &[
        ("network", Self::Network),
        ("code", Self::Code),
        ("project", Self::Project),
        ("repository", Self::Repository),
        ("history", Self::History),
        ("terminal", Self::Terminal),
        ("elevates", Self::Elevates),
        ("system", Self::System),
        ("kills", Self::Kills),
        ("here", Self::Here),
        ("untracked", Self::Untracked),
        ("unknown", Self::Unknown),
        ("dry", Self::Dry),
        ("wet", Self::Wet),
        ("in-place", Self::InPlace),
        ("recursive", Self::Recursive),
        ("instead", Self::Instead),
        ("directory", Self::Directory),
    ];

    pub(crate) const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Traits that direct the reading and are no effects.
    pub(crate) const DIRECTIONS: u32 =
        Self::Dry.bit() | Self::Wet.bit() | Self::Recursive.bit() | Self::Instead.bit() | Self::Directory.bit();
}

/// Convention by which a program reads its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// GNU getopt: `-abc`, `-ovalue`, `--long=value`, abbreviated long options, options among the operands.
    Getopt,
    /// Like getopt, but the first operand ends the options.
    Leading,
    /// Like getopt without abbreviations.
    Exact,
    /// One dash for long options, as Go has it: `-run x`, `-run=x`, `--run x`.
    Dash,
    /// Paths, then an expression of primaries.
    Find,
    /// Like getopt, but the first word may be letters without a dash.
    Tar,
    /// Every word is an operand.
    CommandPattern,
}

impl Style {
    pub(crate) const ALL: &'static [(&'static str, Self)] = &[
        ("getopt", Self::Getopt),
        ("leading", Self::Leading),
        ("exact", Self::Exact),
        ("dash", Self::Dash),
        ("find", Self::Find),
        ("tar", Self::Tar),
        ("words", Self::CommandPattern),
    ];
}

/// A kind with its modifiers, as a grammar writes it: `write`, `text?`, `flag network`, `write+history*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    /// The value may be missing, and stands in the same word if it is there.
    pub(crate) optional: bool,
    /// Stands for any number of operands.
    pub(crate) repeated: bool,
    /// Bits of [`Trait`].
    pub(crate) traits: u32,
}

impl Spec {
    /// Reads the notation of an option (`separator` is a space) or of an operand (`separator` is `+`).
    pub(crate) fn parse(text: &str, separator: char) -> Result<Self, String> {
        let (text, repeated) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
        let mut parts = text.split(separator);
        let kind = parts.next().unwrap_or_default();
        let (kind, optional) = kind.strip_suffix('?').map_or((kind, false), |kind| (kind, true));
        let kind = named(Kind::ALL, kind)?;
        let mut traits = 0;
        for name in parts {
            traits |= named(Trait::ALL, name)?.bit();
        }
        Ok(Self { kind, optional, repeated, traits })
    }

    pub(crate) const fn has(self, one: Trait) -> bool {
        self.traits & one.bit() != 0
    }

    /// `true` if it only reads.
    pub(crate) fn is_harmless(self) -> bool {
        self.kind.is_harmless() && self.traits & !Trait::DIRECTIONS == 0
    }
}

pub(crate) fn named<T: Copy>(all: &[(&str, T)], name: &str) -> Result<T, String> {
    let found = all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| format!("`{name}` is no word of a grammar"))
}
