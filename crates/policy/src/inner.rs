//! The commands of a script as they are judged, with those that options and operands name.

use std::borrow::Cow;

use sayso_shell::{Certainty, Doubt, RedirectAccess, Script, SimpleCommand, Word, visible};

use crate::always::SINKS;
use crate::builtins;
use crate::effects::Place;
use crate::effects::arguments::{adds_only_words, is_listed, words_when_run};
use crate::effects::directory::normal;
use crate::grammar::vocabulary::Trait;
use crate::grammar::{Inner, Reading, What};
use crate::ruling::Access;

/// Commands within commands that are followed.
const MAX_DEPTH: usize = 4;
/// Commands of one script that are judged.
const MAX_COMMANDS: usize = 2_000;

/// A command with the words that it is run with, as its grammar reads them.
pub(super) struct RunCommand<'s> {
    pub(super) command: Cow<'s, SimpleCommand>,
    pub(super) words: Vec<Word>,
    pub(super) reading: Option<Reading>,
    /// The option or operand that names it, as a clause, if the script does not list it.
    pub(super) origin: Option<String>,
    /// Reason why the commands within it are not listed in whole.
    pub(super) problem: Option<String>,
}

impl<'s> RunCommand<'s> {
    /// All commands of a script; one that an option names follows the command with that option.
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
        // `command -v git` runs nothing.
        let is_builtin = builtins::is_effect_free(&words) == Some(true);
        let reading = if is_builtin { None } else { Reading::of(&words) };
        let mut run = Self { command, words, reading, origin, problem: None };
        let mut inner = Vec::new();
        let findings = run.reading.iter().flat_map(|reading| &reading.findings);
        for finding in findings {
            let What::Runs(what) = &finding.what else { continue };
            match commands_within(&run, what, listed) {
                Ok(commands) if depth < MAX_DEPTH && all.len() < MAX_COMMANDS => {
                    inner.extend(commands.into_iter().map(|command| (command, finding.clause(""))));
                }
                Ok(commands) if commands.is_empty() => {}
                Ok(_) => run.problem = Some(format!("`{}` runs more than is followed", finding.label)),
                Err(problem) => run.problem = Some(format!("`{}` runs a command that {problem}", finding.label)),
            }
        }
        all.push(run);
        for (command, origin) in inner {
            Self::add(Cow::Owned(command), Some(origin), &[], depth + 1, all);
        }
    }

    /// `true` for a builtin without effect, or for variables that no program depends on.
    pub(super) fn is_builtin(&self) -> bool {
        builtins::is_effect_free(&self.words) == Some(true) || builtins::sets_plain_variables(&self.command)
    }

    /// `true` for a `cd` that leads out of the workspace, as the outside places of the script tell: programs then run code from
    /// there, which is more than reading it.
    pub(super) fn changes_directory_to<'p>(&self, mut places: impl Iterator<Item = &'p Place>) -> bool {
        let is_cd = self.command.program().is_some_and(|program| matches!(program, "cd" | "pushd" | "chdir"));
        let Some(target) = self.words.get(1).and_then(Word::as_literal).filter(|_| is_cd) else { return false };
        places.any(|place| match place {
            Place::Outside(path) if target.starts_with('/') => *path == normal(target),
            Place::Outside(_) => target.split('/').any(|name| name == ".."),
            Place::Inside(_) | Place::Unknown(_) => false,
        })
    }

    /// `true` if there is anything but builtins without effect.
    pub(super) fn has_others(all: &[Self]) -> bool {
        all.iter().any(|run| !run.command.words.is_empty() && !run.is_builtin())
    }

    /// Places that its words and redirects write, where nobody has said what they lead to.
    pub(super) fn written(&self) -> Vec<Place> {
        let unplaced = |word: &Word| match word.as_literal() {
            Some(text) if SINKS.contains(&text) => Place::Outside(text.to_owned()),
            _ => Place::Unknown(word.text.clone()),
        };
        let redirects = self.command.redirects.iter().filter(|redirect| redirect.access != RedirectAccess::Read);
        let mut places: Vec<Place> = redirects.map(|redirect| unplaced(&redirect.target)).collect();
        for finding in self.reading.iter().flat_map(|reading| &reading.findings) {
            match &finding.what {
                What::Writes(word) if word.text == "-" => {}
                What::Writes(word) | What::Permissions(word) | What::Deletes { word, .. } => {
                    places.push(unplaced(word));
                }
                What::Effect(Trait::Here) => places.push(Place::Unknown(".".to_owned())),
                _ => {}
            }
        }
        places
    }

    /// The clause that names the option or operand through which a place is reached.
    pub(super) fn source_of(&self, access: Access, place: &str) -> Option<String> {
        let is_it = |word: &Word| {
            let text = word.text.trim_start_matches("./");
            place == text || place.strip_suffix(text).is_some_and(|before| before.ends_with('/'))
        };
        if let Some(redirect) = self.command.redirects.iter().find(|redirect| is_it(&redirect.target)) {
            let (sign, verb) = if redirect.access == RedirectAccess::Read { ('<', "reads") } else { ('>', "writes") };
            return Some(format!("`{sign}` {verb} a file: {}", visible(&redirect.target.text)));
        }
        let reading = self.reading.as_ref()?;
        let finding = reading.findings.iter().find(|finding| {
            let word = match &finding.what {
                What::Writes(word) | What::Permissions(word) | What::Deletes { word, .. }
                    if access == Access::Write =>
                {
                    word
                }
                What::Reads(word) if access == Access::Read => word,
                _ => return false,
            };
            is_it(word)
        })?;
        Some(finding.clause(&reading.command))
    }
}

/// The commands that an option or operand names, unless the script lists them already.
fn commands_within(
    run: &RunCommand<'_>,
    inner: &Inner,
    listed: &[SimpleCommand],
) -> Result<Vec<SimpleCommand>, String> {
    let program = run.words.first().map(|word| word.text.as_str()).unwrap_or_default();
    let through = [run.command.through.as_slice(), &[program.to_owned()]].concat();
    match inner {
        Inner::Words { from, assignments } => {
            if run.words.get(*from).is_some_and(|first| is_listed(listed, &run.command, first)) {
                return Ok(Vec::new());
            }
            let words = run.words[*from..].to_vec();
            let assignments = assignments.clone();
            let command =
                SimpleCommand { words, assignments, through, redirects: Vec::new(), ..run.command.as_ref().clone() };
            Ok(vec![command])
        }
        Inner::Script(word) | Inner::Program(word) => {
            let Some(text) = word.as_literal() else { return Err("is not known before".to_owned()) };
            let script = Script::parse(text);
            if let Some(doubt) = script.doubts.first() {
                return Err(format!("is not understood: {doubt}"));
            }
            let adds = matches!(inner, Inner::Program(_));
            let within = |mut command: SimpleCommand| {
                command.through = [through.as_slice(), &command.through].concat();
                if adds {
                    command.words.push(Word { text: "…".to_owned(), certainty: Certainty::Unknown });
                }
                command
            };
            Ok(script.commands.into_iter().map(within).collect())
        }
    }
}

/// The first reason why a script is not understood in whole. Words that xargs and find add count as unknown words instead.
pub(super) fn not_understood(script: &Script) -> Option<String> {
    if script.commands.is_empty() {
        return Some("it has no command".to_owned());
    }
    let counts = |doubt: &&Doubt| match doubt {
        Doubt::UnknownArguments { through } => !adds_only_words(through, &script.commands),
        _ => true,
    };
    script.doubts.iter().find(counts).map(ToString::to_string)
}
