//! Goes through the commands of a script and says what they appear to do.

use std::collections::HashSet;

use sayso_base::WsPath;
use sayso_shell::{Certainty, Doubt, RedirectAccess, Script, SimpleCommand, Word};

use super::arguments::{is_listed, words_when_run};
use super::directory::Directories;
use super::effect::{Effect, Place};
use crate::always::SINKS;
use crate::grammar::vocabulary::Trait;
use crate::grammar::{Finding, Inner, Reading, What};

/// Effects beyond this number are a doubt.
const MAX_EFFECTS: usize = 500;
/// Commands within commands that are followed.
const MAX_DEPTH: usize = 4;

/// Programs whose output is another machine's.
const DOWNLOADERS: &[&str] = &["curl", "wget", "http", "https", "xh", "aria2c", "fetch", "lynx", "nc", "ncat"];

/// Programs that run what they read.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "python", "python2", "python3", "perl", "ruby", "node", "php",
    "eval", "source", ".", "deno", "lua",
];

/// What a script appears to do, in its order and each effect once.
pub fn effects(script: &mut Script, root: &str, start: &WsPath) -> Vec<Effect> {
    let mut judge = Judge {
        directories: Directories::new(script, root, start),
        effects: Vec::new(),
        known: HashSet::new(),
        fetched: HashSet::new(),
        is_cut: false,
    };
    for (index, command) in script.commands.iter().enumerate() {
        judge.command(&script.commands, index, command);
    }
    let (effects, is_cut) = (judge.effects, judge.is_cut);
    if is_cut && !script.doubts.contains(&Doubt::TooMany) {
        script.doubts.push(Doubt::TooMany);
    }
    effects
}

struct Judge<'s> {
    directories: Directories<'s>,
    effects: Vec<Effect>,
    known: HashSet<Effect>,
    /// Files that were just got from another machine.
    fetched: HashSet<Place>,
    is_cut: bool,
}

impl Judge<'_> {
    fn effect(&mut self, effect: Effect) {
        if self.effects.len() >= MAX_EFFECTS {
            self.is_cut = true;
        } else if self.known.insert(effect.clone()) {
            self.effects.push(effect);
        }
    }

    fn command(&mut self, all: &[SimpleCommand], index: usize, command: &SimpleCommand) {
        for redirect in &command.redirects {
            let place = self.directories.place(command, &redirect.target);
            if redirect.access == RedirectAccess::Read {
                self.leaves(&place);
            } else {
                self.writes(place);
            }
        }
        if let Some(place) = self.directories.follow(command) {
            self.leaves(&place);
            return;
        }
        let Some(name) = command.program() else { return };
        self.runs_fetched(all, index, command, name);
        let words = words_when_run(command);
        let Some(reading) = Reading::of(&words) else {
            self.names_outside(command, words.get(1..).unwrap_or_default());
            return;
        };
        for finding in &reading.findings {
            // The script lists what wrappers run, with a directory of its own.
            let listed = match &finding.what {
                What::Runs(Inner::Words { from, .. }) => is_listed(all, command, &words[*from]),
                _ => false,
            };
            if !listed {
                self.finding(command, &words, finding, 0);
            }
        }
    }

    /// Notes the effects of a command's words, which may be those of a command within it.
    fn words(&mut self, command: &SimpleCommand, words: &[Word], depth: usize) {
        let Some(reading) = Reading::of(words) else {
            self.names_outside(command, words.get(1..).unwrap_or_default());
            return;
        };
        for finding in &reading.findings {
            self.finding(command, words, finding, depth);
        }
    }

    fn finding(&mut self, command: &SimpleCommand, words: &[Word], finding: &Finding, depth: usize) {
        let name = words.first().map(|word| word.text.rsplit('/').next().unwrap_or(&word.text)).unwrap_or_default();
        match &finding.what {
            What::Reads(word) => {
                let place = self.directories.place(command, word);
                // A variable or a pattern of the workspace tells nothing.
                self.leaves(&place);
            }
            What::Writes(word) if word.text == "-" => {}
            What::Writes(word) => {
                let place = self.directories.place(command, word);
                if DOWNLOADERS.contains(&name) {
                    self.fetched.insert(place.clone());
                }
                self.writes(place);
            }
            What::Deletes { word, recursive } => {
                let path = self.directories.place(command, word);
                self.leaves(&path);
                self.effect(Effect::Deletes { path, recursive: *recursive });
            }
            What::Permissions(word) => {
                let path = self.directories.place(command, word);
                self.effect(Effect::ChangesPermissions { path });
            }
            What::Effect(one) => self.trait_effect(command, name, *one),
            What::Runs(inner) => self.inner(command, words, inner, depth),
            What::Unclear(_) => self.names_outside(command, words.get(finding.at..=finding.at).unwrap_or_default()),
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
                let path = self.directories.here(command);
                self.effect(Effect::Writes { path });
            }
            _ => {}
        }
    }

    /// Notes the effects of a command that an option or an operand names. The script lists those of wrappers itself.
    fn inner(&mut self, command: &SimpleCommand, words: &[Word], inner: &Inner, depth: usize) {
        if depth >= MAX_DEPTH {
            self.is_cut = true;
            return;
        }
        match inner {
            Inner::Words { from, .. } => self.words(command, &words[*from..], depth + 1),
            Inner::Script(word) | Inner::Program(word) => {
                for inner in Script::parse(&word.text).commands {
                    let inner = SimpleCommand { shell: command.shell, ..inner };
                    for redirect in inner.redirects.iter().filter(|one| one.access != RedirectAccess::Read) {
                        let place = self.directories.place(command, &redirect.target);
                        self.writes(place);
                    }
                    self.words(&inner, &inner.words, depth + 1);
                }
            }
        }
    }

    /// Notes that a command runs what another command of the script has fetched.
    fn runs_fetched(&mut self, all: &[SimpleCommand], index: usize, command: &SimpleCommand, name: &str) {
        let runs_file = command.words.iter().take(2).any(|word| {
            let place = self.directories.place(command, word);
            self.fetched.contains(&place)
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

    fn writes(&mut self, place: Place) {
        match &place {
            Place::Outside(path) if is_sink(path) => {}
            Place::Outside(path) if path.starts_with("/dev/") => self.effect(Effect::System { program: path.clone() }),
            Place::Outside(_) => {
                self.effect(Effect::Writes { path: place.clone() });
                self.leaves(&place);
            }
            _ => self.effect(Effect::Writes { path: place }),
        }
    }

    fn leaves(&mut self, place: &Place) {
        if let Place::Outside(path) = place
            && !is_sink(path)
        {
            self.effect(Effect::LeavesWorkspace { path: path.clone() });
        }
    }

    /// Notes words that are paths out of the workspace, whatever the program does with them.
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
                let place = self.directories.place(command, &value);
                self.leaves(&place);
            }
        }
    }
}

/// `true` for a device that keeps nothing.
fn is_sink(path: &str) -> bool {
    SINKS.contains(&path) || path.starts_with("/dev/fd/")
}
