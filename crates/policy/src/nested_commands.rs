//! All commands that a script runs, including commands that options and operands name.

use std::borrow::Cow;

use sayso_shell::{Certainty, RedirectAccess, Script, SimpleCommand, Uncertainty, Word, escape_unprintable};

use crate::builtin_rules::SINKS;
use crate::decision::Access;
use crate::effects::PathTarget;
use crate::effects::arguments::{adds_only_words, is_listed, words_when_run};
use crate::effects::directory::normalize;
use crate::grammar::vocabulary::Trait;
use crate::grammar::{FindingKind, NestedCommand, ParsedArguments};
use crate::shell_builtins;

/// Nesting depth of commands within commands.
const MAX_DEPTH: usize = 4;
/// Commands of one script that policy decides.
const MAX_COMMANDS: usize = 2_000;

/// A command with its effective words, parsed by the grammar of its program.
pub(super) struct EffectiveCommand<'s> {
    pub(super) command: Cow<'s, SimpleCommand>,
    pub(super) words: Vec<Word>,
    pub(super) parsed: Option<ParsedArguments>,
    /// Clause with the option or operand that names the command; `None` if the script lists it.
    pub(super) origin: Option<String>,
    /// Reason why the list of nested commands is incomplete.
    pub(super) problem: Option<String>,
}

impl<'s> EffectiveCommand<'s> {
    /// Lists all commands of a script. A nested command follows the command that names it.
    pub(super) fn all(script: &'s Script) -> Vec<Self> {
        let mut all = Vec::with_capacity(script.commands.len());
        for command in &script.commands {
            Self::add(Cow::Borrowed(command), None, &script.commands, 0, &mut all);
        }
        all
    }

    fn add(
        command: Cow<'s, SimpleCommand>,
        origin: Option<String>,
        listed: &[SimpleCommand],
        depth: usize,
        all: &mut Vec<Self>,
    ) {
        let words = words_when_run(&command).into_owned();
        // `command -v git` does not run `git`.
        let is_builtin = shell_builtins::is_effect_free(&words) == Some(true);
        let parsed = if is_builtin { None } else { ParsedArguments::parse(&words) };
        let mut run = Self { command, words, parsed, origin, problem: None };
        let mut inner = Vec::new();
        let findings = run.parsed.iter().flat_map(|parsed| &parsed.findings);
        for finding in findings {
            let FindingKind::Runs(what) = &finding.what else { continue };
            match commands_within(&run, what, listed) {
                Ok(commands) if depth < MAX_DEPTH && all.len() < MAX_COMMANDS => {
                    inner.extend(commands.into_iter().map(|command| (command, finding.clause(""))));
                }
                Ok(commands) if commands.is_empty() => {}
                Ok(_) => run.problem = Some(format!("`{}` nests more commands than sayso follows", finding.label)),
                Err(problem) => run.problem = Some(format!("`{}` runs a command that {problem}", finding.label)),
            }
        }
        all.push(run);
        for (command, origin) in inner {
            Self::add(Cow::Owned(command), Some(origin), &[], depth + 1, all);
        }
    }

    /// `true` for a shell builtin without effect, and for variables that no program depends on.
    pub(super) fn is_builtin(&self) -> bool {
        shell_builtins::is_effect_free(&self.words) == Some(true) || shell_builtins::sets_plain_variables(&self.command)
    }

    /// `true` for a `cd` to one of the outside targets. Later programs then run code from there, which is more than reading.
    pub(super) fn changes_directory_to<'p>(&self, mut targets: impl Iterator<Item = &'p PathTarget>) -> bool {
        let is_cd = self.command.program().is_some_and(|program| matches!(program, "cd" | "pushd" | "chdir"));
        let Some(target) = self.words.get(1).and_then(Word::as_literal).filter(|_| is_cd) else { return false };
        targets.any(|target_path| match target_path {
            PathTarget::Outside(path) if target.starts_with('/') => *path == normalize(target),
            PathTarget::Outside(_) => target.split('/').any(|name| name == ".."),
            PathTarget::Inside(_) | PathTarget::Unknown(_) => false,
        })
    }

    /// `true` if at least one command is not a builtin without effect.
    pub(super) fn has_others(all: &[Self]) -> bool {
        all.iter().any(|run| !run.command.words.is_empty() && !run.is_builtin())
    }

    /// Returns the unresolved paths that the words and redirects write.
    pub(super) fn written(&self) -> Vec<PathTarget> {
        let unresolved = |word: &Word| match word.as_literal() {
            Some(text) if SINKS.contains(&text) => PathTarget::Outside(text.to_owned()),
            _ => PathTarget::Unknown(word.text.clone()),
        };
        let redirects = self.command.redirects.iter().filter(|redirect| redirect.access != RedirectAccess::Read);
        let mut targets: Vec<PathTarget> = redirects.map(|redirect| unresolved(&redirect.target)).collect();
        for finding in self.parsed.iter().flat_map(|parsed| &parsed.findings) {
            match &finding.what {
                FindingKind::Writes(word) if word.text == "-" => {}
                FindingKind::Writes(word) | FindingKind::Permissions(word) | FindingKind::Deletes { word, .. } => {
                    targets.push(unresolved(word));
                }
                FindingKind::Effect(Trait::Here) => targets.push(PathTarget::Unknown(".".to_owned())),
                _ => {}
            }
        }
        targets
    }

    /// Returns a clause with the option, operand or redirect that names a path.
    pub(super) fn source_of(&self, access: Access, target: &str) -> Option<String> {
        let names_target = |word: &Word| {
            let text = word.text.trim_start_matches("./");
            target == text || target.strip_suffix(text).is_some_and(|before| before.ends_with('/'))
        };
        if let Some(redirect) = self.command.redirects.iter().find(|redirect| names_target(&redirect.target)) {
            let (sign, verb) = if redirect.access == RedirectAccess::Read { ('<', "reads") } else { ('>', "writes") };
            return Some(format!("`{sign}` {verb} a file: {}", escape_unprintable(&redirect.target.text)));
        }
        let parsed = self.parsed.as_ref()?;
        let finding = parsed.findings.iter().find(|finding| {
            let word = match &finding.what {
                FindingKind::Writes(word) | FindingKind::Permissions(word) | FindingKind::Deletes { word, .. }
                    if access == Access::Write =>
                {
                    word
                }
                FindingKind::Reads(word) if access == Access::Read => word,
                _ => return false,
            };
            names_target(word)
        })?;
        Some(finding.clause(&parsed.command))
    }
}

/// Returns the commands that an option or operand names; empty if the script already lists them.
fn commands_within(
    run: &EffectiveCommand<'_>,
    nested: &NestedCommand,
    listed: &[SimpleCommand],
) -> Result<Vec<SimpleCommand>, String> {
    let program = run.words.first().map(|word| word.text.as_str()).unwrap_or_default();
    let wrappers = [run.command.wrappers.as_slice(), &[program.to_owned()]].concat();
    match nested {
        NestedCommand::CommandPattern { from, assignments } => {
            if run.words.get(*from).is_some_and(|first| is_listed(listed, &run.command, first)) {
                return Ok(Vec::new());
            }
            let words = run.words[*from..].to_vec();
            let assignments = assignments.clone();
            let command =
                SimpleCommand { words, assignments, wrappers, redirects: Vec::new(), ..run.command.as_ref().clone() };
            Ok(vec![command])
        }
        NestedCommand::Script(word) | NestedCommand::Program(word) => {
            let Some(text) = word.as_literal() else { return Err("is not known before it runs".to_owned()) };
            let script = Script::parse(text);
            if let Some(uncertainty) = script.uncertainties.first() {
                return Err(format!("sayso does not understand: {uncertainty}"));
            }
            let adds_words = matches!(nested, NestedCommand::Program(_));
            let within = |mut command: SimpleCommand| {
                command.wrappers = [wrappers.as_slice(), &command.wrappers].concat();
                if adds_words {
                    command.words.push(Word { text: "…".to_owned(), certainty: Certainty::Unknown });
                }
                command
            };
            Ok(script.commands.into_iter().map(within).collect())
        }
    }
}

/// Returns the first reason why the script is not fully understood. Words that xargs and find add do not count: they become
/// unknown words of the nested command.
pub(super) fn not_understood(script: &Script) -> Option<String> {
    if script.commands.is_empty() {
        return Some("it contains no command".to_owned());
    }
    let counts = |uncertainty: &&Uncertainty| match uncertainty {
        Uncertainty::UnknownArguments { through } => !adds_only_words(through, &script.commands),
        _ => true,
    };
    script.uncertainties.iter().find(counts).map(ToString::to_string)
}
