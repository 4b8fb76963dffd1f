//! Commands within the arguments of other commands: wrappers, `bash -c`, `find -exec`.

use crate::commands::ScriptReader;
use crate::parser_state::ScriptContext;
use crate::script_builder::ScriptBuilder;
use crate::wrapper::{NextWord, SHELLS, WITH_SCRIPT_OPTION, Wrapper, WrapperTrait};
use crate::{Certainty, Flow, SimpleCommand, Uncertainty, Word};

/// Wrappers around one command.
const MAX_WRAPPERS: usize = 12;

/// A command or script that another command runs.
enum Nested {
    /// A program with its assignments and words.
    Command { through: String, assignments: Vec<Word>, words: Vec<Word> },
    /// A script that the arguments hold.
    Text { through: String, text: Word, runs: RunsIn },
    /// A script that is read from standard input.
    Input,
}

/// The shell that runs a nested script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunsIn {
    /// A shell of its own.
    Subshell,
    /// The shell of the command itself.
    CurrentShell,
    /// The shell of the command itself, at an unknown time.
    Deferred,
}

impl ScriptReader<'_, '_> {
    pub(super) fn list(&mut self, command: SimpleCommand) {
        self.builder.list(command, self.depth);
    }
}

impl SimpleCommand {
    /// The name of the program without its folder, if it is certain.
    pub fn program(&self) -> Option<&str> {
        let name = self.words.first()?.as_literal()?;
        Some(name.rsplit_once('/').map_or(name, |(_, name)| name))
    }
}

impl ScriptBuilder {
    /// Lists a command and the commands that it runs.
    pub(super) fn list(&mut self, command: SimpleCommand, depth: usize) {
        let mut waiting = vec![(command, None)];
        while let Some((command, outer)) = waiting.pop() {
            for assignment in &command.assignments {
                self.note_assignment(&assignment.text);
            }
            let Some(index) = self.push(command, outer) else { return };
            let command = self.commands[index].clone();
            if command.wrappers.len() >= MAX_WRAPPERS {
                self.uncertain(Uncertainty::TooDeep);
                continue;
            }
            let mut inner = self.look_through(&command);
            inner.reverse();
            for inner in inner {
                match inner {
                    Nested::Command { through, assignments, words } => {
                        let inner = SimpleCommand {
                            assignments,
                            words,
                            redirects: Vec::new(),
                            wrappers: [command.wrappers.as_slice(), &[through]].concat(),
                            ..command.clone()
                        };
                        waiting.push((inner, Some(index)));
                    }
                    Nested::Text { through, text, runs } => self.inner_text(&command, through, &text, runs, depth),
                    Nested::Input => self.wait(index, depth),
                }
            }
        }
    }

    fn inner_text(&mut self, outer: &SimpleCommand, name: String, text: &Word, runs: RunsIn, depth: usize) {
        if text.as_literal().is_none() {
            self.uncertain(Uncertainty::UnknownScript { through: name.clone() });
        }
        let shell = if runs == RunsIn::Subshell { self.shell_within(outer.shell) } else { outer.shell };
        let flow = if runs == RunsIn::Deferred { Flow::Conditional } else { outer.flow };
        let wrappers = [outer.wrappers.as_slice(), &[name]].concat();
        self.read(&text.text, depth + 1, &ScriptContext { shell, flow, wrappers, fed_by: outer.fed_by });
    }

    fn look_through(&mut self, command: &SimpleCommand) -> Vec<Nested> {
        let Some(first) = command.words.first() else { return Vec::new() };
        let Some(program) = command.program() else {
            self.uncertain(Uncertainty::UnknownProgram { word: first.text.clone() });
            return Vec::new();
        };
        let arguments = &command.words[1..];
        if let Some(wrapper) = Wrapper::of(program) {
            return self.within_wrapper(wrapper, program, arguments);
        }
        match program {
            _ if SHELLS.contains(&program) => self.within_shell(program, arguments),
            _ if WITH_SCRIPT_OPTION.contains(&program) => self.behind_option(program, arguments),
            "eval" => vec![joined(program, arguments, RunsIn::CurrentShell)],
            "trap" => match arguments {
                [option, ..] if option.text.starts_with('-') && option.text != "--" => Vec::new(),
                [end, text, _, ..] if end.text == "--" => {
                    vec![joined(program, std::slice::from_ref(text), RunsIn::Deferred)]
                }
                [text, _, ..] => vec![joined(program, std::slice::from_ref(text), RunsIn::Deferred)],
                _ => Vec::new(),
            },
            "." | "source" => {
                self.uncertain(Uncertainty::UnknownScript { through: program.to_owned() });
                Vec::new()
            }
            "alias" | "hash" => {
                for word in arguments.iter().filter(|word| program == "hash" || word.text.contains('=')) {
                    let name = word.text.split('=').next().unwrap_or_default();
                    if !name.starts_with('-') {
                        self.uncertain(Uncertainty::Redefined { name: name.to_owned() });
                    }
                }
                Vec::new()
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                for word in arguments {
                    self.note_assignment(&word.text);
                }
                Vec::new()
            }
            "find" | "gfind" => self.within_find(program, arguments),
            "fd" | "fdfind" => self.within_fd(program, arguments),
            "git" => {
                self.within_git(arguments);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn within_wrapper(&mut self, wrapper: &Wrapper, program: &str, arguments: &[Word]) -> Vec<Nested> {
        let mut rest = arguments;
        let mut assignments = Vec::new();
        let mut operands = wrapper.operands;
        while let [word, behind @ ..] = rest {
            let text = word.text.as_str();
            let is_option = text.starts_with('-') && text.len() > 1;
            if text == "--" {
                rest = behind;
                break;
            }
            if program == "command" && matches!(text, "-v" | "-V") {
                return Vec::new();
            }
            if program == "env"
                && let Some(split) = split_string(rest)
            {
                return vec![Nested::Text { through: "env -S".to_owned(), text: split, runs: RunsIn::Subshell }];
            }
            if is_option {
                match wrapper.option(text) {
                    NextWord::Independent => rest = behind,
                    NextWord::Value => rest = behind.get(1..).unwrap_or_default(),
                    NextWord::Unknown => {
                        self.uncertain(Uncertainty::UnknownProgram { word: text.to_owned() });
                        rest = behind;
                    }
                }
            } else if program == "env" && text == "-" {
                rest = behind;
            } else {
                break;
            }
        }
        rest = rest.get(operands.min(rest.len())..).unwrap_or_default();
        operands = 0;
        while wrapper.has(WrapperTrait::Assignments)
            && rest.get(operands).is_some_and(|word| word.text.contains('=') && !word.text.starts_with('='))
        {
            assignments.push(rest[operands].clone());
            operands += 1;
        }
        rest = &rest[operands..];
        if wrapper.has(WrapperTrait::AddsArguments) {
            self.uncertain(Uncertainty::UnknownArguments { through: program.to_owned() });
        }
        match rest {
            [] => {
                if wrapper.has(WrapperTrait::IsShell) {
                    self.uncertain(Uncertainty::UnknownScript { through: program.to_owned() });
                }
                Vec::new()
            }
            [option, text, ..] if option.text == "-c" => {
                vec![joined(&format!("{program} -c"), std::slice::from_ref(text), RunsIn::Subshell)]
            }
            _ if wrapper.has(WrapperTrait::Joins) => vec![joined(program, rest, RunsIn::Subshell)],
            _ => vec![Nested::Command { through: program.to_owned(), assignments, words: rest.to_vec() }],
        }
    }

    fn within_shell(&mut self, program: &str, arguments: &[Word]) -> Vec<Nested> {
        let mut has_script = false;
        let mut rest = arguments;
        while let [word, behind @ ..] = rest {
            let text = word.text.as_str();
            if word.as_literal().is_none() || !(text.starts_with(['-', '+']) && text.len() > 1) {
                break;
            }
            rest = behind;
            if text == "--" {
                break;
            }
            if matches!(text, "--rcfile" | "--init-file") {
                self.uncertain(Uncertainty::UnknownScript { through: program.to_owned() });
                rest = behind.get(1..).unwrap_or_default();
            }
            if text.starts_with("--") {
                continue;
            }
            let letters = &text[1..];
            has_script |= text.starts_with('-') && letters.contains('c');
            if letters.contains('s') && !letters.contains('c') {
                return vec![Nested::Input];
            }
            // Login and interactive shells read files first; every option letter `o` or `O` takes a word.
            for _ in letters.matches(['o', 'O']) {
                rest = rest.get(1..).unwrap_or_default();
            }
        }
        match rest {
            [text, ..] if has_script => {
                vec![joined(&format!("{program} -c"), std::slice::from_ref(text), RunsIn::Subshell)]
            }
            [] if has_script => Vec::new(),
            [] => vec![Nested::Input],
            [word, ..] if word.text == "-" || word.text == "/dev/stdin" => vec![Nested::Input],
            _ => {
                self.uncertain(Uncertainty::UnknownScript { through: program.to_owned() });
                Vec::new()
            }
        }
    }

    /// Finds the script behind `-c`, as in `su -c TEXT`.
    fn behind_option(&mut self, program: &str, arguments: &[Word]) -> Vec<Nested> {
        let is_option = |word: &Word| {
            word.text == "--command"
                || (word.text.starts_with('-') && !word.text.starts_with("--") && word.text.ends_with('c'))
        };
        let attached = arguments.iter().find_map(|word| word.text.strip_prefix("--command=").map(|text| (word, text)));
        if let Some((word, text)) = attached {
            let text = Word { text: text.to_owned(), certainty: word.certainty };
            return vec![Nested::Text { through: format!("{program} -c"), text, runs: RunsIn::Subshell }];
        }
        let place = arguments.iter().position(is_option);
        if let Some(text) = place.and_then(|place| arguments.get(place + 1)) {
            return vec![joined(&format!("{program} -c"), std::slice::from_ref(text), RunsIn::Subshell)];
        }
        self.uncertain(Uncertainty::UnknownScript { through: program.to_owned() });
        Vec::new()
    }

    fn within_find(&mut self, program: &str, arguments: &[Word]) -> Vec<Nested> {
        let mut found = Vec::new();
        let mut rest = arguments;
        while let Some(place) =
            rest.iter().position(|word| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir"))
        {
            let option = &rest[place].text;
            let behind = &rest[place + 1..];
            let is_end = |word: &Word| matches!(word.text.as_str(), ";" | "+");
            let end = behind.iter().position(is_end).unwrap_or(behind.len());
            self.uncertain(Uncertainty::UnknownArguments { through: program.to_owned() });
            if end > 0 {
                let words = behind[..end].iter().map(placeholder).collect();
                found.push(Nested::Command { through: format!("{program} {option}"), assignments: Vec::new(), words });
            }
            rest = &behind[end..];
        }
        found
    }

    fn within_fd(&mut self, program: &str, arguments: &[Word]) -> Vec<Nested> {
        let is_option = |word: &Word| matches!(word.text.as_str(), "-x" | "--exec" | "-X" | "--exec-batch");
        let Some(place) = arguments.iter().position(is_option) else { return Vec::new() };
        self.uncertain(Uncertainty::UnknownArguments { through: program.to_owned() });
        let words: Vec<Word> = arguments[place + 1..].iter().map(placeholder).collect();
        if words.is_empty() {
            return Vec::new();
        }
        vec![Nested::Command { through: format!("{program} --exec"), assignments: Vec::new(), words }]
    }

    /// Reports settings of git that name programs, and subcommands that take a script.
    fn within_git(&mut self, arguments: &[Word]) {
        let mut words = arguments.iter().map(|word| word.text.as_str()).peekable();
        while let Some(word) = words.next() {
            match word {
                "-c" | "--config-env" => {
                    let name = words.peek().and_then(|setting| setting.split('=').next()).unwrap_or_default();
                    self.uncertain(Uncertainty::ChangesLookup { name: format!("git -c {name}") });
                }
                "foreach" | "--exec" | "--tree-filter" | "--index-filter" | "--msg-filter" | "--env-filter" => {
                    self.uncertain(Uncertainty::UnknownScript { through: "git".to_owned() });
                }
                _ if word.starts_with("--exec-path=") || word.starts_with("--exec=") => {
                    self.uncertain(Uncertainty::UnknownScript { through: "git".to_owned() });
                }
                _ => {}
            }
        }
    }
}

/// Joins words into one script, as `eval` does.
fn joined(through: &str, words: &[Word], runs: RunsIn) -> Nested {
    let certainty = words.iter().map(|word| word.certainty).max().unwrap_or(Certainty::Literal);
    let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    Nested::Text { through: through.to_owned(), text: Word { text: text.join(" "), certainty }, runs }
}

/// Marks a word with `{}` as unknown: `find` replaces it.
fn placeholder(word: &Word) -> Word {
    let certainty = if word.text.contains("{}") { Certainty::Unknown } else { word.certainty };
    Word { text: word.text.clone(), certainty }
}

/// Returns the text that `env -S` splits into words.
fn split_string(arguments: &[Word]) -> Option<Word> {
    let [word, behind @ ..] = arguments else { return None };
    let text = word.text.as_str();
    let attached = text.strip_prefix("--split-string=").or_else(|| {
        let (_, value) = text.strip_prefix('-').filter(|text| !text.starts_with('-'))?.split_once('S')?;
        (!value.is_empty()).then_some(value)
    });
    let is_option =
        text == "--split-string" || (text.starts_with('-') && !text.starts_with("--") && text.ends_with('S'));
    let mut words: Vec<Word> = Vec::new();
    match attached {
        Some(attached) => words.push(Word { text: attached.to_owned(), certainty: word.certainty }),
        None if is_option => {}
        None => return None,
    }
    words.extend_from_slice(behind);
    match joined("", &words, RunsIn::Subshell) {
        Nested::Text { text, .. } => Some(text),
        _ => None,
    }
}
