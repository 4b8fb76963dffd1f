//! What reading a script has found so far, and how much more may be found.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use crate::commands::Reader;
use crate::level::{Standing, Until};
use crate::{Course, Doubt, Script, SimpleCommand, Word};

/// The longest text that is read; a script of this size is not reviewed by reading it anyway.
const MOST_BYTES: usize = 1 << 20;
/// How many texts within texts, and how much looking ahead, are paid for: the work stays linear in the length.
const BUDGET: usize = 4 * MOST_BYTES;
const MOST_COMMANDS: usize = 10_000;
const MOST_DOUBTS: usize = 200;
/// How deep substitutions, quotes in them and texts in texts may nest.
pub(super) const MOST_DEPTH: usize = 48;

/// Collects commands and doubts over a script and all texts within it.
pub(super) struct Output {
    pub(super) commands: Vec<SimpleCommand>,
    pub(super) shells: Vec<usize>,
    doubts: BTreeSet<String>,
    ordered_doubts: Vec<Doubt>,
    budget: usize,
    /// For each command the one as which it stands in the text: itself, or the wrapper around it.
    written_as: Vec<usize>,
    /// What stands on the standard input of a command, by its place in the text.
    pub(super) inputs: BTreeMap<usize, Word>,
    /// Shells that read their script from standard input, with the depth at which they stand.
    waiting: Vec<(usize, usize)>,
}

impl Output {
    pub(super) fn new() -> Self {
        Self {
            commands: Vec::new(),
            shells: vec![0],
            doubts: BTreeSet::new(),
            ordered_doubts: Vec::new(),
            budget: BUDGET,
            written_as: Vec::new(),
            inputs: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    pub(super) fn read_all(&mut self, text: &str) {
        let without_nul = text.replace('\0', "");
        if without_nul.len() < text.len() {
            self.doubt(Doubt::Nul);
        }
        let mut text = without_nul.as_str();
        if text.len() > MOST_BYTES {
            self.doubt(Doubt::TooLong);
            let end = (0..=MOST_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text = &text[..end];
        }
        if text.contains('\r') {
            self.doubt(Doubt::CarriageReturn);
        }
        self.read(text, 0, &Standing::default());
        self.settle_inputs();
    }

    /// Reads the scripts that shells get on their standard input.
    pub(super) fn settle_inputs(&mut self) {
        // Reading one may add others.
        while !self.waiting.is_empty() {
            for (index, depth) in mem::take(&mut self.waiting) {
                self.read_input(index, depth);
            }
        }
    }

    /// Reads a text within the script as a script.
    pub(super) fn read(&mut self, text: &str, depth: usize, standing: &Standing) {
        if depth > MOST_DEPTH {
            self.doubt(Doubt::TooDeep);
        } else if self.pay(text.len()) {
            Reader::new(text, depth, standing.through.clone(), self).commands(Until::End, standing);
        } else {
            self.doubt(Doubt::TooLong);
        }
    }

    /// Takes from what may still be read; says whether there was enough.
    pub(super) fn pay(&mut self, bytes: usize) -> bool {
        let enough = self.budget >= bytes;
        self.budget = if enough { self.budget - bytes } else { 0 };
        enough
    }

    pub(super) fn doubt(&mut self, doubt: Doubt) {
        if self.doubts.len() >= MOST_DOUBTS {
            if self.doubts.insert(format!("{:?}", Doubt::TooMany)) {
                self.ordered_doubts.push(Doubt::TooMany);
            }
        } else if self.doubts.insert(format!("{doubt:?}")) {
            self.ordered_doubts.push(doubt);
        }
    }

    /// Makes a shell within another one.
    pub(super) fn shell_within(&mut self, parent: usize) -> usize {
        self.shells.push(parent);
        self.shells.len() - 1
    }

    pub(super) fn is_full(&self) -> bool {
        self.commands.len() >= MOST_COMMANDS
    }

    /// Lists a command. `written_as` is the wrapper that it stands behind.
    pub(super) fn push(&mut self, command: SimpleCommand, written_as: Option<usize>) -> Option<usize> {
        if self.is_full() {
            self.doubt(Doubt::TooMany);
            return None;
        }
        let index = self.commands.len();
        self.commands.push(command);
        self.written_as.push(written_as.map_or(index, |outer| self.written_as[outer]));
        Some(index)
    }

    /// Remembers a shell whose script comes from its standard input, which may stand further down as a here-document.
    pub(super) fn wait(&mut self, index: usize, depth: usize) {
        self.waiting.push((index, depth));
    }

    fn read_input(&mut self, index: usize, depth: usize) {
        let command = &self.commands[index];
        let name = command.words.first().map_or_else(String::new, |word| word.text.clone());
        let (shell, mut through) = (command.shell, command.through.clone());
        let input = self.inputs.get(&self.written_as[index]).cloned().or_else(|| self.printed_for(index));
        let Some(input) = input else {
            self.doubt(Doubt::UnknownScript { through: name });
            return;
        };
        if input.as_literal().is_none() {
            self.doubt(Doubt::UnknownScript { through: name.clone() });
        }
        through.push(name);
        let shell = self.shell_within(shell);
        self.read(&input.text, depth + 1, &Standing { shell, course: Course::Straight, through, fed_by: None });
    }

    /// What `echo` or `cat` before the pipe is sure to print.
    fn printed_for(&self, index: usize) -> Option<Word> {
        let written = self.written_as[index];
        let from = self.commands[written].fed_by?;
        let [printer] = self.commands.get(from..written)? else { return None };
        let words: Vec<&str> = printer.words.iter().map(Word::as_literal).collect::<Option<_>>()?;
        match words.as_slice() {
            ["cat"] => self.inputs.get(&from).cloned(),
            ["echo", texts @ ..] if !texts.first().is_some_and(|text| text.starts_with('-')) => {
                let text = texts.join(" ");
                (!text.contains('\\')).then(|| Word::literal(text))
            }
            ["printf", text] | ["printf", "%s" | "%s\\n", text] if !text.contains(['\\', '%']) => {
                Some(Word::literal(*text))
            }
            _ => None,
        }
    }

    pub(super) fn into_script(self) -> Script {
        Script { commands: self.commands, doubts: self.ordered_doubts, shells: self.shells }
    }
}
