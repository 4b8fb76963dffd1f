//! Infers the effects of a script from its commands.

use std::collections::HashSet;

use sayso_base::WsPath;
use sayso_shell::{Certainty, RedirectAccess, Script, SimpleCommand, Uncertainty, Word};

use super::arguments::{is_listed, words_when_run};
use super::directory::Directories;
use super::effect::{Effect, PathTarget};
use crate::builtin_rules::SINKS;
use crate::grammar::vocabulary::Trait;
use crate::grammar::{Finding, FindingKind, NestedCommand, ParsedArguments};

/// Effects that are listed. More become [`Uncertainty::TooMany`].
const MAX_EFFECTS: usize = 500;
/// Nesting depth of commands within commands.
const MAX_DEPTH: usize = 4;

/// Programs that download.
const DOWNLOADERS: &[&str] = &["curl", "wget", "http", "https", "xh", "aria2c", "fetch", "lynx", "nc", "ncat"];

/// Programs that run their input.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "python", "python2", "python3", "perl", "ruby", "node", "php",
    "eval", "source", ".", "deno", "lua",
];

/// Lists the apparent effects of a script in its order, each once. `start` is the working directory below `root`.
pub fn analyze_effects(script: &mut Script, root: &str, start: &WsPath) -> Vec<Effect> {
    let mut analyzer = EffectAnalyzer {
        directories: Directories::new(script, root, start),
        effects: Vec::new(),
        known: HashSet::new(),
        fetched: HashSet::new(),
        is_truncated: false,
    };
    for (index, command) in script.commands.iter().enumerate() {
        analyzer.command(&script.commands, index, command);
    }
    let (effects, is_truncated) = (analyzer.effects, analyzer.is_truncated);
    if is_truncated && !script.uncertainties.contains(&Uncertainty::TooMany) {
        script.uncertainties.push(Uncertainty::TooMany);
    }
    effects
}

struct EffectAnalyzer<'s> {
    directories: Directories<'s>,
    effects: Vec<Effect>,
    known: HashSet<Effect>,
    /// Files that the script downloads.
    fetched: HashSet<PathTarget>,
    is_truncated: bool,
}

impl EffectAnalyzer<'_> {
    fn effect(&mut self, effect: Effect) {
        if self.effects.len() >= MAX_EFFECTS {
            self.is_truncated = true;
        } else if self.known.insert(effect.clone()) {
            self.effects.push(effect);
        }
    }

    fn command(&mut self, all: &[SimpleCommand], index: usize, command: &SimpleCommand) {
        for redirect in &command.redirects {
            let target = self.directories.target(command, &redirect.target);
            if redirect.access == RedirectAccess::Read {
                self.leaves(&target);
            } else {
                self.writes(target);
            }
        }
        if let Some(target) = self.directories.follow(command) {
            self.leaves(&target);
            return;
        }
        let Some(name) = command.program() else { return };
        self.runs_fetched(all, index, command, name);
        let words = words_when_run(command);
        let Some(parsed) = ParsedArguments::parse(&words) else {
            self.names_outside(command, words.get(1..).unwrap_or_default());
            return;
        };
        for finding in &parsed.findings {
            // The script already lists the commands of wrappers, each with its own working directory.
            let listed = match &finding.what {
                FindingKind::Runs(NestedCommand::CommandPattern { from, .. }) => is_listed(all, command, &words[*from]),
                _ => false,
            };
            if !listed {
                self.finding(command, &words, finding, 0);
            }
        }
    }

    /// Records the effects of a command's own words, or of a nested command's.
    fn words(&mut self, command: &SimpleCommand, words: &[Word], depth: usize) {
        let Some(parsed) = ParsedArguments::parse(words) else {
            self.names_outside(command, words.get(1..).unwrap_or_default());
            return;
        };
        for finding in &parsed.findings {
            self.finding(command, words, finding, depth);
        }
    }

    fn finding(&mut self, command: &SimpleCommand, words: &[Word], finding: &Finding, depth: usize) {
        let name = words.first().map(|word| word.text.rsplit('/').next().unwrap_or(&word.text)).unwrap_or_default();
        match &finding.what {
            FindingKind::Reads(word) => {
                let target = self.directories.target(command, word);
                self.leaves(&target);
            }
            FindingKind::Writes(word) if word.text == "-" => {}
            FindingKind::Writes(word) => {
                let target = self.directories.target(command, word);
                if DOWNLOADERS.contains(&name) {
                    self.fetched.insert(target.clone());
                }
                self.writes(target);
            }
            FindingKind::Deletes { word, recursive } => {
                let path = self.directories.target(command, word);
                self.leaves(&path);
                self.effect(Effect::Deletes { path, recursive: *recursive });
            }
            FindingKind::Permissions(word) => {
                let path = self.directories.target(command, word);
                self.effect(Effect::ChangesPermissions { path });
            }
            FindingKind::Effect(one) => self.trait_effect(command, name, *one),
            FindingKind::Runs(nested) => self.nested(command, words, nested, depth),
            FindingKind::Unclear(_) => {
                self.names_outside(command, words.get(finding.at..=finding.at).unwrap_or_default());
            }
        }
    }

    fn trait_effect(&mut self, command: &SimpleCommand, name: &str, one: Trait) {
        let program = || name.to_owned();
        match one {
            Trait::Network => self.effect(Effect::Fetches { what: command.to_string() }),
            Trait::Code => self.effect(Effect::RunsCode { interpreter: program() }),
            Trait::History => self.effect(Effect::RewritesHistory { command: command.to_string() }),
            Trait::Elevates => self.effect(Effect::Elevates { program: program() }),
            Trait::System => self.effect(Effect::System { program: program() }),
            Trait::Kills => self.effect(Effect::Kills),
            Trait::Here => {
                let path = self.directories.current_directory(command);
                self.effect(Effect::Writes { path });
            }
            _ => {}
        }
    }

    /// Records the effects of a command that an option or an operand names.
    fn nested(&mut self, command: &SimpleCommand, words: &[Word], nested: &NestedCommand, depth: usize) {
        if depth >= MAX_DEPTH {
            self.is_truncated = true;
            return;
        }
        match nested {
            NestedCommand::CommandPattern { from, .. } => self.words(command, &words[*from..], depth + 1),
            NestedCommand::Script(word) | NestedCommand::Program(word) => {
                for inner in Script::parse(&word.text).commands {
                    let inner = SimpleCommand { shell: command.shell, ..inner };
                    for redirect in inner.redirects.iter().filter(|redirect| redirect.access != RedirectAccess::Read) {
                        let target = self.directories.target(command, &redirect.target);
                        self.writes(target);
                    }
                    self.words(&inner, &inner.words, depth + 1);
                }
            }
        }
    }

    /// Records that a command runs a file or a pipe that another command of the script downloads.
    fn runs_fetched(&mut self, all: &[SimpleCommand], index: usize, command: &SimpleCommand, name: &str) {
        let runs_file = command.words.iter().take(2).any(|word| {
            let target = self.directories.target(command, word);
            self.fetched.contains(&target)
        });
        if runs_file {
            self.effect(Effect::RunsFetched);
        }
        if !INTERPRETERS.contains(&name) {
            return;
        }
        let mut first = index;
        while let Some(before) = all[first].fed_by.filter(|before| *before < first) {
            first = before;
        }
        let is_download =
            |command: &SimpleCommand| command.program().is_some_and(|program| DOWNLOADERS.contains(&program));
        if all[first..index].iter().any(is_download) {
            self.effect(Effect::RunsFetched);
        }
    }

    fn writes(&mut self, target: PathTarget) {
        match &target {
            PathTarget::Outside(path) if is_sink(path) => {}
            PathTarget::Outside(path) if path.starts_with("/dev/") => {
                self.effect(Effect::System { program: path.clone() });
            }
            PathTarget::Outside(_) => {
                self.effect(Effect::Writes { path: target.clone() });
                self.leaves(&target);
            }
            _ => self.effect(Effect::Writes { path: target }),
        }
    }

    fn leaves(&mut self, target: &PathTarget) {
        if let PathTarget::Outside(path) = target
            && !is_sink(path)
        {
            self.effect(Effect::LeavesWorkspace { path: path.clone() });
        }
    }

    /// Records words that are paths outside the workspace, for any use by the program.
    fn names_outside(&mut self, command: &SimpleCommand, words: &[Word]) {
        for word in words {
            let text = word.text.as_str();
            let value = match text.strip_prefix('-') {
                Some(option) => option.split_once('=').map_or("", |(_, value)| value),
                None => text,
            };
            let is_path =
                value.starts_with(['/', '~']) || value == ".." || value.contains("../") || value.ends_with("/..");
            if is_path && word.certainty != Certainty::Unknown && !value.contains("://") {
                let value = Word { text: value.to_owned(), certainty: word.certainty };
                let target = self.directories.target(command, &value);
                self.leaves(&target);
            }
        }
    }
}

/// `true` for a device without stored data.
fn is_sink(path: &str) -> bool {
    SINKS.contains(&path) || path.starts_with("/dev/fd/")
}
