//! Dry runs: commands that show the effects of another command without causing them.

use sayso_policy::git_subcommand;
use sayso_shell::{Script, Word};
use serde::{Deserialize, Serialize};

/// A dry run of a command. It is run on request only, without a shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRun {
    pub argv: Vec<String>,
}

/// An allow-list of options. Any other option could have an unknown side effect.
struct Allowed {
    /// Short options, which may be combined behind one dash.
    letters: &'static str,
    long: &'static [&'static str],
    /// Options followed by a value in the next word.
    values: &'static [&'static str],
}

const CLEAN: Allowed = Allowed { letters: "dfqxX", long: &["--force", "--quiet"], values: &["-e", "--exclude"] };
const ADD: Allowed = Allowed {
    letters: "AfuvN",
    long: &["--all", "--force", "--update", "--verbose", "--intent-to-add", "--no-all", "--ignore-errors"],
    values: &[],
};
const REMOVE: Allowed =
    Allowed { letters: "frq", long: &["--cached", "--force", "--ignore-unmatch", "--quiet"], values: &[] };
const APPLY: Allowed = Allowed {
    letters: "R",
    long: &["--reverse", "--check", "--stat", "--index", "-p0", "-p1", "-p2"],
    values: &["-p", "-C"],
};
const PATCH: Allowed = Allowed {
    letters: "RNufts",
    long: &["--reverse", "--forward", "--unified", "--force", "--batch", "--binary", "-p0", "-p1", "-p2"],
    values: &["-p", "-i", "--input", "-F"],
};
const RSYNC: Allowed = Allowed {
    letters: "avrlptgoDuhizcxHAXS",
    long: &[
        "--archive",
        "--verbose",
        "--recursive",
        "--delete",
        "--stats",
        "--itemize-changes",
        "--update",
        "--checksum",
    ],
    values: &["--exclude", "--include"],
};

impl Allowed {
    /// Returns the number of operands if all options are allowed.
    fn operands(&self, words: &[&str]) -> Option<usize> {
        let mut operands = 0;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if *word == "--" {
                return Some(operands + words.count());
            } else if self.values.contains(word) {
                words.next()?;
            } else if word.len() < 2 || !word.starts_with('-') {
                operands += 1;
            } else {
                let name = word.split('=').next().unwrap_or(word);
                let is_value = word.starts_with("--") && word.contains('=') && self.values.contains(&name);
                let is_cluster =
                    !word.starts_with("--") && word[1..].chars().all(|letter| self.letters.contains(letter));
                if !is_value && !is_cluster && !self.long.contains(word) {
                    return None;
                }
            }
        }
        Some(operands)
    }
}

/// Arguments that disable the programs which git's configuration could start.
const QUIET_GIT: &[&str] =
    &["git", "--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];

impl DryRun {
    /// Returns the dry run of a script that consists of one plain, supported command.
    pub(super) fn of(script: &Script) -> Option<Self> {
        let [command] = script.commands.as_slice() else { return None };
        let is_plain =
            command.redirects.is_empty() && command.assignments.is_empty() && script.uncertainties.is_empty();
        if !is_plain || command.fed_by.is_some() {
            return None;
        }
        let words: Vec<&str> = command.words.iter().map(Word::as_literal).collect::<Option<_>>()?;
        let (&program, arguments) = words.split_first()?;
        let argv: Vec<&str> = match program {
            "git" => {
                let (name, rest) = git_subcommand(&command.words)?;
                // Options before the subcommand are not on any allow-list.
                if words.get(1) != Some(&name) {
                    return None;
                }
                let rest: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
                let (allowed, added): (_, &[&str]) = match name {
                    "clean" => (CLEAN, &["-n"]),
                    "add" => (ADD, &["-n"]),
                    "rm" => (REMOVE, &["-n"]),
                    "apply" => (APPLY, &["--check", "--stat"]),
                    _ => return None,
                };
                let operands = allowed.operands(&rest)?;
                if name == "apply" && (operands == 0 || rest.contains(&"-")) {
                    return None;
                }
                [QUIET_GIT, &[name], added, &rest].concat()
            }
            "patch" => {
                let operands = PATCH.operands(arguments)?;
                let has_input = arguments.iter().any(|word| *word == "-i" || word.starts_with("--input"));
                // Without a file operand `patch` would read the patch from standard input.
                if (!has_input && operands < 2) || arguments.contains(&"-") {
                    return None;
                }
                // Force the unified format, because other formats may contain a script for `ed`.
                [&["patch", "--dry-run", "--unified", "--batch"], arguments].concat()
            }
            "rsync" => {
                RSYNC.operands(arguments)?;
                // A remote host would require a connection, which is an effect of its own.
                if arguments.iter().any(|word| word.contains(':')) {
                    return None;
                }
                [&["rsync", "-n", "-i"], arguments].concat()
            }
            _ => return None,
        };
        Some(Self { argv: argv.into_iter().map(str::to_owned).collect() })
    }
}

/// The output of a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DryRunOutput {
    pub output: String,
    pub errors: String,
    pub end: DryRunEnd,
    /// `true` if the output was longer than the kept part.
    pub is_truncated: bool,
}

/// The end of a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum DryRunEnd {
    Exited {
        code: i32,
    },
    Signalled {
        signal: i32,
    },
    /// It exceeded the time limit and was killed.
    TimedOut,
    /// It could not be started.
    NotStarted {
        reason: String,
    },
}
