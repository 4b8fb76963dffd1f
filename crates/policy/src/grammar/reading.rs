//! Reads the words of a command by the grammar of its program.

use sayso_shell::{Certainty, Word};

use super::finding::{Finding, FindingKind, NestedCommand, Unclear};
use super::vocabulary::{Kind, Spec, Style, Trait};
use super::{Grammar, Verb, expression};

/// A command as its program would read it.
#[derive(Clone, Debug)]
pub(crate) struct ParsedArguments {
    pub(crate) findings: Vec<Finding>,
    /// Indices of options without effect that stand before the subcommand, or before the first operand.
    pub(crate) skipped: Vec<usize>,
    /// The program with its subcommand, for a person.
    pub(crate) command: String,
    /// Set while the words before the subcommand decide which one it is.
    pub(crate) has_unknown_verb: bool,
}

/// Effects that a dry run does not have.
const ON_FILES: u32 = Trait::Repository.bit() | Trait::History.bit() | Trait::Here.bit() | Trait::Untracked.bit();

/// Reads one command.
pub(super) struct Reader<'c> {
    pub(super) words: &'c [Word],
    pub(super) grammar: &'static Grammar,
    pub(super) verb: &'static Verb,
    /// Operands with their indices.
    pub(super) operands: Vec<(usize, &'c Word)>,
    /// Number of operands before `--`.
    behind_separator: Option<usize>,
    /// Traits of the options that were given.
    pub(super) given: u32,
    /// Another command got the rest of the words.
    is_handed_over: bool,
    pub(super) found: ParsedArguments,
}

impl ParsedArguments {
    /// Reads a command, if its program has a grammar. The first word is the program.
    pub(crate) fn parse(words: &[Word]) -> Option<Self> {
        let name = words.first()?.as_literal()?;
        let name = name.rsplit('/').next().unwrap_or(name);
        Some(Self::parse_with(Grammar::for_program(name)?, name, words, 0))
    }

    /// Reads the words behind the one at `program`.
    fn parse_with(grammar: &'static Grammar, name: &str, words: &[Word], program: usize) -> Self {
        let found =
            Self { findings: Vec::new(), skipped: Vec::new(), command: name.to_owned(), has_unknown_verb: false };
        let mut reader = Reader {
            words,
            grammar,
            verb: &grammar.program,
            operands: Vec::new(),
            behind_separator: None,
            given: 0,
            is_handed_over: false,
            found,
        };
        reader.effects(program, name, grammar.program.traits);
        match grammar.style {
            Style::Find => expression::read(&mut reader, program + 1),
            _ => reader.arguments(program + 1),
        }
        let is_bare = reader.operands.is_empty() && !reader.is_handed_over && reader.given & Trait::Instead.bit() == 0;
        if is_bare {
            reader.effects(words.len() - 1, name, reader.verb.bare);
        }
        reader.assign_operands();
        reader.settle();
        // A word that is not understood may take a dry run back.
        let is_clear = !reader.found.findings.iter().any(|finding| matches!(finding.what, FindingKind::Unclear(_)));
        if is_clear && reader.given & Trait::Dry.bit() != 0 && reader.given & Trait::Wet.bit() == 0 {
            reader.found.findings.retain(|finding| match &finding.what {
                FindingKind::Writes(_) | FindingKind::Deletes { .. } | FindingKind::Permissions(_) => false,
                FindingKind::Effect(one) => one.bit() & ON_FILES == 0,
                FindingKind::Reads(_) | FindingKind::Runs(_) | FindingKind::Unclear(_) => true,
            });
        }
        reader.found
    }
}

impl Reader<'_> {
    pub(super) fn find(&mut self, at: usize, label: &str, what: FindingKind) {
        self.found.findings.push(Finding { at, label: label.to_owned(), what });
    }

    pub(super) fn unclear(&mut self, at: usize, label: &str, why: Unclear) {
        self.find(at, label, FindingKind::Unclear(why));
    }

    /// Records traits. Those that are effects become findings.
    pub(super) fn effects(&mut self, at: usize, label: &str, traits: u32) {
        self.given |= traits;
        for (_, one) in Trait::ALL {
            let is_direction = (Trait::DIRECTIONS | Trait::InPlace.bit()) & one.bit() != 0;
            if traits & one.bit() != 0 && !is_direction {
                self.find(at, label, FindingKind::Effect(*one));
            }
        }
    }

    /// Reads options, the subcommand and operands.
    fn arguments(&mut self, first: usize) {
        let mut at = first;
        let has_no_verbs = self.grammar.verbs.is_empty();
        let mut expects_verb = !has_no_verbs;
        if self.grammar.style == Style::Tar {
            at = self.letters(at);
        }
        while let Some(word) = self.words.get(at) {
            let text = word.text.as_str();
            if self.is_uncertain(word, expects_verb) {
                self.unclear(at, text, if expects_verb { Unclear::Verb } else { Unclear::MayBeOption });
                self.found.has_unknown_verb |= expects_verb;
            }
            if self.grammar.style == Style::CommandPattern {
                self.operands.push((at, word));
                at += 1;
            } else if text == "--" && word.as_literal().is_some() {
                self.behind_separator = Some(self.operands.len());
                self.operands.extend((at + 1..).zip(&self.words[at + 1..]));
                break;
            } else if is_option(text) || (text.starts_with('+') && self.verb.exact("+").is_some()) {
                let before = self.found.findings.len();
                let next = self.option(at);
                // Options before the first operand may stand between the words of a rule.
                if self.operands.is_empty() && (expects_verb || has_no_verbs) && self.found.findings.len() == before {
                    self.found.skipped.extend(at..next);
                }
                at = next;
            } else if expects_verb {
                expects_verb = false;
                at = self.subcommand(at);
            } else if self.takes_over(at) {
                break;
            } else {
                self.operands.push((at, word));
                at += 1;
                if self.grammar.style == Style::Leading && !self.verb.has_kind(Kind::Command) {
                    self.operands.extend((at..).zip(&self.words[at..]));
                    break;
                }
            }
        }
    }

    /// `true` for a word that may turn into an option with an effect, or into another subcommand.
    fn is_uncertain(&self, word: &Word, expects_verb: bool) -> bool {
        let open = match word.certainty {
            Certainty::Literal => false,
            // A pattern that begins with a letter or a slash stays an operand.
            // What find puts for `{}` begins with a starting point.
            Certainty::Pattern if word.text.starts_with("{}") => false,
            Certainty::Pattern => word.text.starts_with(['*', '?', '[', '{', '-']),
            Certainty::Unknown => true,
        };
        open && self.grammar.style != Style::CommandPattern && (expects_verb || !self.verb.harmless)
    }

    /// Reads the subcommand; gives the index behind it.
    fn subcommand(&mut self, at: usize) -> usize {
        let text = self.words[at].text.as_str();
        let second = self.words.get(at + 1).and_then(Word::as_literal);
        let pair = second.and_then(|second| self.grammar.verb(&format!("{text} {second}")));
        let (verb, next) = match pair {
            Some(verb) => (Some(verb), at + 2),
            None => (self.grammar.verb(text), at + 1),
        };
        match verb {
            Some(verb) => {
                self.verb = verb;
                self.found.command = format!("{} {}", self.found.command, verb.name);
                self.effects(next - 1, verb.name, verb.traits);
                next
            }
            // A program that may have no subcommand: the word is its first operand.
            None if !self.verb.operands.is_empty() => {
                if !self.takes_over(at) {
                    self.operands.push((at, &self.words[at]));
                    return at + 1;
                }
                self.words.len()
            }
            None => {
                self.found.has_unknown_verb = true;
                self.unclear(at, text, Unclear::Verb);
                self.words.len()
            }
        }
    }

    /// Hands all words from here on to another command, if this operand is one.
    fn takes_over(&mut self, at: usize) -> bool {
        let slots = self.verb.operands;
        let place = self.operands.len() + usize::from(self.given & Trait::Instead.bit() != 0);
        let Some(spec) = slots.get(place.min(slots.len().saturating_sub(1))).copied() else { return false };
        let word = &self.words[at];
        match spec.kind {
            // Variables come before the command.
            Kind::Variable if word.text.contains('=') => return false,
            Kind::Variable | Kind::Command | Kind::Remote | Kind::Module => {}
            _ => return false,
        }
        let kind = if spec.kind == Kind::Variable { Kind::Command } else { spec.kind };
        self.effects(at, &word.text, spec.traits);
        self.hand_over(kind, at, word);
        true
    }

    pub(super) fn hand_over(&mut self, kind: Kind, at: usize, word: &Word) {
        self.is_handed_over = true;
        let assignments = self.operands.iter().filter(|(_, word)| word.text.contains('='));
        let assignments: Vec<Word> = assignments.map(|(_, word)| (*word).clone()).collect();
        match kind {
            Kind::Module => self.module(at, word),
            Kind::Remote => self.unclear(at, &word.text, Unclear::Module),
            _ => self.find(at, &word.text, FindingKind::Runs(NestedCommand::CommandPattern { from: at, assignments })),
        }
    }

    /// Reads the rest by the grammar of a Python module.
    fn module(&mut self, at: usize, word: &Word) {
        match word.as_literal().and_then(|name| Some((name, Grammar::for_program(name)?))) {
            Some((name, grammar)) => {
                let inner = ParsedArguments::parse_with(grammar, name, self.words, at);
                self.found.findings.extend(inner.findings);
                self.found.command = format!("{} -m {}", self.found.command, inner.command);
            }
            None => self.unclear(at, &word.text, Unclear::Module),
        }
    }

    /// Applies what one option says about the effects of another.
    fn settle(&mut self) {
        let names_directory = self.given & Trait::Directory.bit() != 0;
        let writes_archive = self.grammar.style == Style::Tar && self.given & Trait::InPlace.bit() != 0;
        let recursive = self.given & Trait::Recursive.bit() != 0;
        self.found.findings.retain(|finding| !(names_directory && finding.what == FindingKind::Effect(Trait::Here)));
        for finding in &mut self.found.findings {
            match &finding.what {
                FindingKind::Reads(word) if writes_archive && matches!(finding.label.as_str(), "-f" | "--file") => {
                    finding.what = FindingKind::Writes(word.clone());
                }
                FindingKind::Effect(Trait::Untracked) => {
                    let word = Word { text: "untracked files".to_owned(), certainty: Certainty::Unknown };
                    finding.what = FindingKind::Deletes { word, recursive };
                }
                FindingKind::Deletes { word, .. } if recursive => {
                    finding.what = FindingKind::Deletes { word: word.clone(), recursive };
                }
                _ => {}
            }
        }
    }

    /// Gives every operand its kind.
    fn assign_operands(&mut self) {
        let operands = std::mem::take(&mut self.operands);
        let split = self.behind_separator.unwrap_or(operands.len());
        let has_own = !self.verb.after.is_empty();
        let (before, behind) = operands.split_at(if has_own { split } else { operands.len() });
        self.assign(before, self.verb.operands);
        self.assign(behind, self.verb.after);
    }

    fn assign(&mut self, operands: &[(usize, &Word)], slots: &'static [Spec]) {
        let skip = usize::from(self.given & Trait::Instead.bit() != 0).min(slots.len());
        let mut slots = &slots[skip..];
        // The last one is taken: by the directory of an option, or by the command within.
        if self.given & Trait::Directory.bit() != 0 || self.is_handed_over {
            slots = &slots[..slots.len().saturating_sub(1)];
        }
        let repeated = slots.iter().position(|spec| spec.repeated);
        let behind = repeated.map_or(0, |at| slots.len() - at - 1);
        for (number, (at, word)) in operands.iter().enumerate() {
            let from_end = operands.len() - number;
            let place = match repeated {
                // The last words go to the slots behind the repeated slot.
                Some(_) if from_end <= behind => slots.len() - from_end,
                Some(repeated) => number.min(repeated),
                None => number,
            };
            match slots.get(place) {
                Some(spec) => self.value(*at, &word.text, *spec, word),
                None => self.unclear(*at, &word.text, Unclear::Operand),
            }
        }
    }
}

pub(super) fn is_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-')
}
