//! Goes through the commands of a script and says what they appear to do.

use std::collections::HashSet;

use sayso_base::WsPath;
use sayso_shell::{Certainty, Doubt, RedirectAccess, Script, SimpleCommand, Word};

use super::directory::Directories;
use super::effect::{Effect, Place};
use super::git;
use super::programs::{Act, DOWNLOADERS, HARMLESS, INTERPRETERS, Program};

/// Who sees that many needs no more.
const MOST_EFFECTS: usize = 500;

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

pub(super) struct Judge<'s> {
    directories: Directories<'s>,
    effects: Vec<Effect>,
    known: HashSet<Effect>,
    /// Files that were just got from another machine.
    fetched: HashSet<Place>,
    is_cut: bool,
}

/// The words of a command, apart.
pub(super) struct Arguments<'c> {
    pub(super) options: Vec<&'c Word>,
    pub(super) operands: Vec<&'c Word>,
    /// Options with the word behind them.
    valued: Vec<(String, Word)>,
}

impl<'c> Arguments<'c> {
    /// Tells options from operands, knowing which options take a word.
    pub(super) fn of(words: &'c [Word], values: &[&str]) -> Self {
        let mut arguments = Self { options: Vec::new(), operands: Vec::new(), valued: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if text == "--" {
                arguments.operands.extend(words.by_ref());
            } else if text.starts_with('-') && text.len() > 1 {
                arguments.options.push(word);
                if values.contains(&text) {
                    if let Some(value) = words.next() {
                        arguments.valued.push((text.to_owned(), value.clone()));
                    }
                } else if let Some((name, value)) = text.split_once('=').filter(|_| text.starts_with("--")) {
                    let value = Word { text: value.to_owned(), certainty: word.certainty };
                    arguments.valued.push((name.to_owned(), value));
                } else if let Some(name) = text.get(..2).filter(|name| values.contains(name)) {
                    let value = Word { text: text[2..].to_owned(), certainty: word.certainty };
                    arguments.valued.push((name.to_owned(), value));
                }
            } else {
                arguments.operands.push(word);
            }
        }
        arguments
    }

    /// The words that the options of these names have.
    fn values_of(&self, names: &[&str]) -> Vec<Word> {
        self.valued.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value.clone()).collect()
    }

    /// Whether an option is there, by itself or among other letters.
    pub(super) fn has(&self, letters: &str, long: &[&str]) -> bool {
        self.options.iter().any(|option| match option.text.strip_prefix("--") {
            Some(name) => long.contains(&name.split('=').next().unwrap_or(name)),
            None => option.text[1..].contains(|letter| letters.contains(letter)),
        })
    }
}

impl Judge<'_> {
    pub(super) fn effect(&mut self, effect: Effect) {
        if self.effects.len() >= MOST_EFFECTS {
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
        match name {
            "git" => {
                git::judge(self, command);
                self.names_outside(command, &command.words[1..]);
                return;
            }
            "find" | "gfind" => self.find(command),
            "awk" | "gawk" | "mawk" | "nawk" => {
                let runs = |word: &Word| word.text.contains("system(") || word.text.contains(['|', '>']);
                if command.words[1..].iter().any(runs) {
                    self.effect(Effect::RunsCode { interpreter: name.to_owned() });
                }
            }
            _ => {}
        }
        let Some(program) = Program::of(name) else {
            self.names_outside(command, &command.words[1..]);
            return;
        };
        let arguments = Arguments::of(&command.words[1..], program.values);
        for act in program.acts {
            self.act(*act, command, name, &arguments);
        }
        if program.acts.contains(&Act::Text) {
            return;
        }
        let first = usize::from(program.acts.contains(&Act::PatternFirst));
        let has_script = first == 1 && arguments.has("ef", &["expression", "file"]);
        let operands = arguments.operands.iter().skip(if has_script { 0 } else { first });
        let paths: Vec<Word> = operands.map(|word| (*word).clone()).collect();
        self.names_outside(command, &paths);
    }

    /// Whether it runs what another command of the script has fetched.
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
            Place::Outside(path) if HARMLESS.contains(&path.as_str()) || path.starts_with("/dev/fd/") => {}
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
            && !HARMLESS.contains(&path.as_str())
            && !path.starts_with("/dev/fd/")
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

    fn write_all(&mut self, command: &SimpleCommand, words: &[&Word]) {
        for word in words {
            let place = self.directories.place(command, word);
            self.writes(place);
        }
    }

    pub(super) fn delete(&mut self, command: &SimpleCommand, word: &Word, recursive: bool) {
        let path = self.directories.place(command, word);
        self.leaves(&path);
        self.effect(Effect::Deletes { path, recursive });
    }

    pub(super) fn write(&mut self, command: &SimpleCommand, word: &Word) {
        let path = self.directories.place(command, word);
        self.writes(path);
    }

    pub(super) fn writes_here(&mut self, command: &SimpleCommand) {
        let path = self.directories.here(command);
        self.effect(Effect::Writes { path });
    }

    fn act(&mut self, act: Act, command: &SimpleCommand, name: &str, arguments: &Arguments<'_>) {
        let operands = arguments.operands.as_slice();
        match act {
            Act::WritesFrom(first) => self.write_all(command, operands.get(first..).unwrap_or_default()),
            Act::WritesLast => {
                let targets = arguments.values_of(&["-t", "--target-directory"]);
                match (targets.first(), operands) {
                    (Some(target), _) => self.write_all(command, &[target]),
                    (None, [.., last]) if !is_remote(last) => self.write_all(command, &[last]),
                    _ => {}
                }
            }
            Act::Deletes => {
                for word in operands {
                    self.delete(command, word, name == "rm" && arguments.has("rR", &["recursive"]));
                }
                if operands.is_empty() && !command.through.is_empty() {
                    self.delete(command, &unknown("…"), arguments.has("rR", &["recursive"]));
                }
            }
            Act::DeletesAllButLast => {
                let has_target = !arguments.values_of(&["-t", "--target-directory"]).is_empty();
                let count = if has_target { operands.len() } else { operands.len().saturating_sub(1) };
                for word in &operands[..count] {
                    self.delete(command, word, false);
                }
            }
            Act::EditsInPlace => {
                let is_in_place = arguments.options.iter().any(|option| {
                    let text = option.text.as_str();
                    text.starts_with("--in-place")
                        || (!text.starts_with("--") && text.contains('i') && !text.contains("-I"))
                });
                if is_in_place {
                    let first = usize::from(!arguments.has("eEf", &["expression", "file"]));
                    self.write_all(command, operands.get(first..).unwrap_or_default());
                }
            }
            Act::WritesOption(names) => {
                for value in arguments.values_of(names) {
                    let place = self.directories.place(command, &value);
                    if DOWNLOADERS.contains(&name) {
                        self.fetched.insert(place.clone());
                    }
                    if value.text != "-" {
                        self.writes(place);
                    }
                }
                if (name == "curl" && arguments.has("OJ", &["remote-name"]))
                    || (name == "wget" && !arguments.has("O", &["output-document"]))
                {
                    self.writes_here(command);
                }
            }
            Act::WritesPrefixed(prefix) => {
                for word in operands {
                    if let Some(path) = word.text.strip_prefix(prefix) {
                        let path = Word { text: path.to_owned(), certainty: word.certainty };
                        self.write_all(command, &[&path]);
                    }
                }
            }
            Act::WritesHere => self.writes_here(command),
            Act::Unpacks { directory } => self.unpacks(command, name, arguments, directory),
            Act::ChangesPermissions => {
                let has_value = !arguments.values_of(&["--reference", "-m", "-x"]).is_empty();
                for word in operands.iter().skip(usize::from(!has_value)) {
                    let path = self.directories.place(command, word);
                    self.effect(Effect::ChangesPermissions { path });
                }
            }
            Act::Fetches(subcommands) => {
                let is_one = |word: &Word| subcommands.contains(&word.text.as_str());
                if subcommands.is_empty() || command.words[1..].iter().any(is_one) {
                    self.effect(Effect::Fetches { what: command.to_string() });
                }
            }
            Act::FetchesRemote => {
                if operands.iter().any(|word| is_remote(word)) {
                    self.effect(Effect::Fetches { what: command.to_string() });
                }
            }
            Act::Elevates => self.effect(Effect::Elevates { program: name.to_owned() }),
            Act::RunsCode(options) => {
                let has_code = command.words[1..].iter().any(|word| {
                    options.iter().any(|option| {
                        word.text == *option
                            || (option.len() == 2
                                && word.text.starts_with('-')
                                && !word.text.starts_with("--")
                                && word.text.ends_with(&option[1..]))
                    })
                });
                let reads_input = operands.is_empty() && !arguments.has("mvVh", &["version", "help"]);
                if has_code || reads_input || operands.first().is_some_and(|word| word.text == "-") {
                    self.effect(Effect::RunsCode { interpreter: name.to_owned() });
                }
            }
            Act::Kills => self.effect(Effect::Kills),
            Act::System => self.effect(Effect::System { program: name.to_owned() }),
            Act::PatternFirst | Act::Text => {}
        }
    }

    fn unpacks(&mut self, command: &SimpleCommand, name: &str, arguments: &Arguments<'_>, directory: &[&str]) {
        let mode = command.words.get(1).map_or("", |word| word.text.as_str());
        let is_tar = name.ends_with("tar");
        let lists = mode.trim_start_matches('-').starts_with('t') || arguments.has("tl", &["list"]);
        if is_tar && (mode.contains('c') || arguments.has("", &["create"])) {
            let file = command.words.iter().skip_while(|word| !word.text.trim_start_matches('-').ends_with('f')).nth(1);
            if let Some(file) = file {
                self.write_all(command, &[file]);
            }
        } else if !lists {
            match arguments.values_of(directory).first() {
                Some(directory) => self.write_all(command, &[directory]),
                None => self.writes_here(command),
            }
        }
    }

    fn find(&mut self, command: &SimpleCommand) {
        let words = &command.words[1..];
        if words.iter().any(|word| word.text == "-delete") {
            for start in words.iter().take_while(|word| !word.text.starts_with('-')) {
                self.delete(command, start, true);
            }
        }
        for pair in words.windows(2) {
            if matches!(pair[0].text.as_str(), "-fprint" | "-fprint0" | "-fprintf" | "-fls") {
                self.write_all(command, &[&pair[1]]);
            }
        }
    }
}

pub(super) fn unknown(text: &str) -> Word {
    Word { text: text.to_owned(), certainty: Certainty::Unknown }
}

/// Whether a word is `host:path`.
fn is_remote(word: &Word) -> bool {
    word.text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}
