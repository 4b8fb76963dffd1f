//! Collects the commands and uncertainties of a script, within fixed limits.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::Range;

use crate::commands::ScriptReader;
use crate::parser_state::{ScriptContext, Terminator};
use crate::{Flow, Script, SimpleCommand, UncertainSpan, Uncertainty, Word};

/// Longest text that is read. Nobody reviews a larger script by reading it.
const MAX_BYTES: usize = 1 << 20;
/// Bytes of nested texts and of lookahead that one script may cost. The limit keeps the work linear in its length.
const BUDGET_BYTES: usize = 4 * MAX_BYTES;
const MAX_COMMANDS: usize = 10_000;
const MAX_UNCERTAINTIES: usize = 200;
/// Nesting depth of substitutions, of quotes within them, and of texts within texts.
pub(super) const MAX_DEPTH: usize = 48;

/// Commands and uncertainties of a script and of all texts within it.
pub(super) struct ScriptBuilder {
    pub(super) commands: Vec<SimpleCommand>,
    pub(super) shells: Vec<usize>,
    known_uncertainties: BTreeSet<String>,
    uncertainties: Vec<Uncertainty>,
    uncertain_spans: Vec<UncertainSpan>,
    /// Part of the text that new uncertainties are about.
    pub(super) current_span: Option<Range<usize>>,
    budget: usize,
    /// For each command the index of its outermost wrapper, or its own index.
    written_as: Vec<usize>,
    /// Standard input of commands by their index, where a here-document or here-string gives it.
    pub(super) inputs: BTreeMap<usize, Word>,
    /// Shells that read their script from standard input, with their nesting depth.
    unread_inputs: Vec<(usize, usize)>,
}

impl ScriptBuilder {
    pub(super) fn new() -> Self {
        Self {
            commands: Vec::new(),
            shells: vec![0],
            known_uncertainties: BTreeSet::new(),
            uncertainties: Vec::new(),
            uncertain_spans: Vec::new(),
            current_span: None,
            budget: BUDGET_BYTES,
            written_as: Vec::new(),
            inputs: BTreeMap::new(),
            unread_inputs: Vec::new(),
        }
    }

    pub(super) fn read_all(&mut self, text: &str) {
        let without_nul = text.replace('\0', "");
        if without_nul.len() < text.len() {
            self.uncertain(Uncertainty::Nul);
        }
        let mut text = without_nul.as_str();
        if text.len() > MAX_BYTES {
            self.uncertain(Uncertainty::TooLong);
            let end = (0..=MAX_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text = &text[..end];
        }
        if text.contains('\r') {
            self.uncertain(Uncertainty::CarriageReturn);
        }
        self.read(text, 0, &ScriptContext::default());
        self.settle_inputs();
    }

    /// Reads the scripts that shells get on their standard input.
    pub(super) fn settle_inputs(&mut self) {
        // A script may start further shells of this kind.
        while !self.unread_inputs.is_empty() {
            for (index, depth) in mem::take(&mut self.unread_inputs) {
                self.read_input(index, depth);
            }
        }
    }

    /// Reads a text within the script as a script.
    pub(super) fn read(&mut self, text: &str, depth: usize, context: &ScriptContext) {
        if depth > MAX_DEPTH {
            self.uncertain(Uncertainty::TooDeep);
        } else if self.pay(text.len()) {
            ScriptReader::new(text, depth, context.wrappers.clone(), self).commands(Terminator::EndOfText, context);
        } else {
            self.uncertain(Uncertainty::TooLong);
        }
    }

    /// Spends bytes of the budget. Returns `false` if too few are left.
    pub(super) fn pay(&mut self, bytes: usize) -> bool {
        let enough = self.budget >= bytes;
        self.budget = if enough { self.budget - bytes } else { 0 };
        enough
    }

    pub(super) fn uncertain(&mut self, uncertainty: Uncertainty) {
        if self.known_uncertainties.len() >= MAX_UNCERTAINTIES {
            if self.known_uncertainties.insert(format!("{:?}", Uncertainty::TooMany)) {
                self.uncertainties.push(Uncertainty::TooMany);
            }
        } else if self.known_uncertainties.insert(format!("{uncertainty:?}")) {
            if let Some(Range { start, end }) = self.current_span {
                self.uncertain_spans.push(UncertainSpan { uncertainty: self.uncertainties.len(), start, end });
            }
            self.uncertainties.push(uncertainty);
        }
    }

    /// Adds a shell within another one and returns its index.
    pub(super) fn shell_within(&mut self, parent: usize) -> usize {
        self.shells.push(parent);
        self.shells.len() - 1
    }

    pub(super) fn is_full(&self) -> bool {
        self.commands.len() >= MAX_COMMANDS
    }

    /// Adds a command. `written_as` is the index of the wrapper around it.
    pub(super) fn push(&mut self, command: SimpleCommand, written_as: Option<usize>) -> Option<usize> {
        if self.is_full() {
            self.uncertain(Uncertainty::TooMany);
            return None;
        }
        let index = self.commands.len();
        self.commands.push(command);
        self.written_as.push(written_as.map_or(index, |outer| self.written_as[outer]));
        Some(index)
    }

    /// Defers a shell whose script comes from its standard input. A here-document with it may follow further down.
    pub(super) fn wait(&mut self, index: usize, depth: usize) {
        self.unread_inputs.push((index, depth));
    }

    fn read_input(&mut self, index: usize, depth: usize) {
        let command = &self.commands[index];
        let name = command.words.first().map_or_else(String::new, |word| word.text.clone());
        let (shell, mut wrappers) = (command.shell, command.wrappers.clone());
        let input = self.inputs.get(&self.written_as[index]).cloned().or_else(|| self.printed_for(index));
        let Some(input) = input else {
            self.uncertain(Uncertainty::UnknownScript { through: name });
            return;
        };
        if input.as_literal().is_none() {
            self.uncertain(Uncertainty::UnknownScript { through: name.clone() });
        }
        wrappers.push(name);
        let shell = self.shell_within(shell);
        self.read(&input.text, depth + 1, &ScriptContext { shell, flow: Flow::Unconditional, wrappers, fed_by: None });
    }

    /// Returns the text that `echo`, `printf` or `cat` before the pipe certainly prints.
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
        Script {
            commands: self.commands,
            uncertainties: self.uncertainties,
            uncertain_spans: self.uncertain_spans,
            shells: self.shells,
        }
    }
}
