//! Looks through commands that run other commands.

use crate::commands::Reader;
use crate::level::Standing;
use crate::output::Output;
use crate::wrapper::{Next, SHELLS, Trait, WITH_SCRIPT_OPTION, Wrapper};
use crate::{Certainty, Course, Doubt, SimpleCommand, Word};

/// Wrappers around wrappers.
const MOST_WRAPPERS: usize = 12;

/// What a command runs.
enum Inner {
    /// A program: assignments and words.
    Command { through: String, assignments: Vec<Word>, words: Vec<Word> },
    /// A script.
    Text { through: String, text: Word, runs: Runs },
    /// A script from standard input.
    Input,
}

/// Where a script is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// In another shell.
    Apart,
    /// In the same shell.
    Here,
    /// In the same shell, some time.
    Later,
}

impl Reader<'_, '_> {
    pub(super) fn list(&mut self, command: SimpleCommand) {
        self.output.list(command, self.depth);
    }
}

impl SimpleCommand {
    /// The name of the program without its folder, if that is certain.
    pub fn program(&self) -> Option<&str> {
        let name = self.words.first()?.as_literal()?;
        Some(name.rsplit_once('/').map_or(name, |(_, name)| name))
    }
}

impl Output {
    /// Lists a command and all that it runs.
    pub(super) fn list(&mut self, command: SimpleCommand, depth: usize) {
        let mut waiting = vec![(command, None)];
        while let Some((command, outer)) = waiting.pop() {
            for assignment in &command.assignments {
                self.note_assignment(&assignment.text);
            }
            let Some(index) = self.push(command, outer) else { return };
            let command = self.commands[index].clone();
            if command.through.len() >= MOST_WRAPPERS {
                self.doubt(Doubt::TooDeep);
                continue;
            }
            let mut inner = self.look_through(&command);
            inner.reverse();
            for inner in inner {
                match inner {
                    Inner::Command { through, assignments, words } => {
                        let inner = SimpleCommand {
                            assignments,
                            words,
                            redirects: Vec::new(),
                            through: [command.through.as_slice(), &[through]].concat(),
                            ..command.clone()
                        };
                        waiting.push((inner, Some(index)));
                    }
                    Inner::Text { through, text, runs } => self.inner_text(&command, through, &text, runs, depth),
                    Inner::Input => self.wait(index, depth),
                }
            }
        }
    }

    fn inner_text(&mut self, outer: &SimpleCommand, name: String, text: &Word, runs: Runs, depth: usize) {
        if text.as_literal().is_none() {
            self.doubt(Doubt::UnknownScript { through: name.clone() });
        }
        let shell = if runs == Runs::Apart { self.shell_within(outer.shell) } else { outer.shell };
        let course = if runs == Runs::Later { Course::Branch } else { outer.course };
        let through = [outer.through.as_slice(), &[name]].concat();
        self.read(&text.text, depth + 1, &Standing { shell, course, through, fed_by: outer.fed_by });
    }

    fn look_through(&mut self, command: &SimpleCommand) -> Vec<Inner> {
        let Some(first) = command.words.first() else { return Vec::new() };
        let Some(program) = command.program() else {
            self.doubt(Doubt::UnknownProgram { word: first.text.clone() });
            return Vec::new();
        };
        let arguments = &command.words[1..];
        if let Some(wrapper) = Wrapper::of(program) {
            return self.within_wrapper(wrapper, program, arguments);
        }
        match program {
            _ if SHELLS.contains(&program) => self.within_shell(program, arguments),
            _ if WITH_SCRIPT_OPTION.contains(&program) => self.behind_option(program, arguments),
            "eval" => vec![joined(program, arguments, Runs::Here)],
            "trap" => match arguments {
                [option, ..] if option.text.starts_with('-') && option.text != "--" => Vec::new(),
                [end, text, _, ..] if end.text == "--" => {
                    vec![joined(program, std::slice::from_ref(text), Runs::Later)]
                }
                [text, _, ..] => vec![joined(program, std::slice::from_ref(text), Runs::Later)],
                _ => Vec::new(),
            },
            "." | "source" => {
                self.doubt(Doubt::UnknownScript { through: program.to_owned() });
                Vec::new()
            }
            "alias" | "hash" => {
                for word in arguments.iter().filter(|word| program == "hash" || word.text.contains('=')) {
                    let name = word.text.split('=').next().unwrap_or_default();
                    if !name.starts_with('-') {
                        self.doubt(Doubt::Redefined { name: name.to_owned() });
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

    fn within_wrapper(&mut self, wrapper: &Wrapper, program: &str, arguments: &[Word]) -> Vec<Inner> {
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
                return vec![Inner::Text { through: "env -S".to_owned(), text: split, runs: Runs::Apart }];
            }
            if is_option {
                match wrapper.option(text) {
                    Next::Free => rest = behind,
                    Next::Value => rest = behind.get(1..).unwrap_or_default(),
                    Next::Unknown => {
                        self.doubt(Doubt::UnknownProgram { word: text.to_owned() });
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
        while wrapper.has(Trait::Assignments)
            && rest.get(operands).is_some_and(|word| word.text.contains('=') && !word.text.starts_with('='))
        {
            assignments.push(rest[operands].clone());
            operands += 1;
        }
        rest = &rest[operands..];
        if wrapper.has(Trait::AddsArguments) {
            self.doubt(Doubt::UnknownArguments { through: program.to_owned() });
        }
        match rest {
            [] => {
                if wrapper.has(Trait::IsShell) {
                    self.doubt(Doubt::UnknownScript { through: program.to_owned() });
                }
                Vec::new()
            }
            [option, text, ..] if option.text == "-c" => {
                vec![joined(&format!("{program} -c"), std::slice::from_ref(text), Runs::Apart)]
            }
            _ if wrapper.has(Trait::Joins) => vec![joined(program, rest, Runs::Apart)],
            _ => vec![Inner::Command { through: program.to_owned(), assignments, words: rest.to_vec() }],
        }
    }

    fn within_shell(&mut self, program: &str, arguments: &[Word]) -> Vec<Inner> {
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
                self.doubt(Doubt::UnknownScript { through: program.to_owned() });
                rest = behind.get(1..).unwrap_or_default();
            }
            if text.starts_with("--") {
                continue;
            }
            let letters = &text[1..];
            has_script |= text.starts_with('-') && letters.contains('c');
            if letters.contains('s') && !letters.contains('c') {
                return vec![Inner::Input];
            }
            // Login and interactive shells read files first; every option letter `o` or `O` takes a word.
            for _ in letters.matches(['o', 'O']) {
                rest = rest.get(1..).unwrap_or_default();
            }
        }
        match rest {
            [text, ..] if has_script => {
                vec![joined(&format!("{program} -c"), std::slice::from_ref(text), Runs::Apart)]
            }
            [] if has_script => Vec::new(),
            [] => vec![Inner::Input],
            [word, ..] if word.text == "-" || word.text == "/dev/stdin" => vec![Inner::Input],
            _ => {
                self.doubt(Doubt::UnknownScript { through: program.to_owned() });
                Vec::new()
            }
        }
    }

    /// `su -c TEXT` and the like.
    fn behind_option(&mut self, program: &str, arguments: &[Word]) -> Vec<Inner> {
        let is_option = |word: &Word| {
            word.text == "--command"
                || (word.text.starts_with('-') && !word.text.starts_with("--") && word.text.ends_with('c'))
        };
        let attached = arguments.iter().find_map(|word| word.text.strip_prefix("--command=").map(|text| (word, text)));
        if let Some((word, text)) = attached {
            let text = Word { text: text.to_owned(), certainty: word.certainty };
            return vec![Inner::Text { through: format!("{program} -c"), text, runs: Runs::Apart }];
        }
        let place = arguments.iter().position(is_option);
        if let Some(text) = place.and_then(|place| arguments.get(place + 1)) {
            return vec![joined(&format!("{program} -c"), std::slice::from_ref(text), Runs::Apart)];
        }
        self.doubt(Doubt::UnknownScript { through: program.to_owned() });
        Vec::new()
    }

    fn within_find(&mut self, program: &str, arguments: &[Word]) -> Vec<Inner> {
        let mut found = Vec::new();
        let mut rest = arguments;
        while let Some(place) =
            rest.iter().position(|word| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir"))
        {
            let option = &rest[place].text;
            let behind = &rest[place + 1..];
            let is_end = |word: &Word| matches!(word.text.as_str(), ";" | "+");
            let end = behind.iter().position(is_end).unwrap_or(behind.len());
            self.doubt(Doubt::UnknownArguments { through: program.to_owned() });
            if end > 0 {
                let words = behind[..end].iter().map(placeholder).collect();
                found.push(Inner::Command { through: format!("{program} {option}"), assignments: Vec::new(), words });
            }
            rest = &behind[end..];
        }
        found
    }

    fn within_fd(&mut self, program: &str, arguments: &[Word]) -> Vec<Inner> {
        let is_option = |word: &Word| matches!(word.text.as_str(), "-x" | "--exec" | "-X" | "--exec-batch");
        let Some(place) = arguments.iter().position(is_option) else { return Vec::new() };
        self.doubt(Doubt::UnknownArguments { through: program.to_owned() });
        let words: Vec<Word> = arguments[place + 1..].iter().map(placeholder).collect();
        if words.is_empty() {
            return Vec::new();
        }
        vec![Inner::Command { through: format!("{program} --exec"), assignments: Vec::new(), words }]
    }

    /// Git runs programs that its settings name, and some subcommands take a script.
    fn within_git(&mut self, arguments: &[Word]) {
        let mut words = arguments.iter().map(|word| word.text.as_str()).peekable();
        while let Some(word) = words.next() {
            match word {
                "-c" | "--config-env" => {
                    let name = words.peek().and_then(|setting| setting.split('=').next()).unwrap_or_default();
                    self.doubt(Doubt::ChangesLookup { name: format!("git -c {name}") });
                }
                "foreach" | "--exec" | "--tree-filter" | "--index-filter" | "--msg-filter" | "--env-filter" => {
                    self.doubt(Doubt::UnknownScript { through: "git".to_owned() });
                }
                _ if word.starts_with("--exec-path=") || word.starts_with("--exec=") => {
                    self.doubt(Doubt::UnknownScript { through: "git".to_owned() });
                }
                _ => {}
            }
        }
    }
}

/// A script made of words, as `eval` makes it.
fn joined(through: &str, words: &[Word], runs: Runs) -> Inner {
    let certainty = words.iter().map(|word| word.certainty).max().unwrap_or(Certainty::Literal);
    let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    Inner::Text { through: through.to_owned(), text: Word { text: text.join(" "), certainty }, runs }
}

/// A word in which `{}` stands for what is found.
fn placeholder(word: &Word) -> Word {
    let certainty = if word.text.contains("{}") { Certainty::Unknown } else { word.certainty };
    Word { text: word.text.clone(), certainty }
}

/// What `env -S` splits into words.
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
    match joined("", &words, Runs::Apart) {
        Inner::Text { text, .. } => Some(text),
        _ => None,
    }
}
