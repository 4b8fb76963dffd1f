//! Reserved words. They only mark the places where commands begin.

use crate::commands::ScriptReader;
use crate::parser_state::{GroupKind, ParserState};
use crate::program::{VariableClass, variable_class};
use crate::{Uncertainty, Word};

impl ScriptReader<'_, '_> {
    /// Handles a reserved word. Returns `false` for any other word.
    pub(super) fn reserved(&mut self, state: &mut ParserState, word: &str) -> bool {
        match word {
            "if" => self.open(state, GroupKind::If),
            "while" | "until" => self.open(state, GroupKind::Loop),
            "for" | "select" => {
                self.loop_header(state);
                self.open(state, GroupKind::Loop);
            }
            "case" => self.case_header(state),
            "{" => self.open(state, GroupKind::Brace),
            "then" | "else" | "elif" => self.expect_within(state, GroupKind::If, word),
            "do" => self.expect_within(state, GroupKind::Loop, word),
            "fi" => self.expect_end(state, GroupKind::If, word),
            "done" => self.expect_end(state, GroupKind::Loop, word),
            "esac" => self.expect_end(state, GroupKind::Case, word),
            "}" => self.expect_end(state, GroupKind::Brace, word),
            "!" => {}
            "time" => return self.time_keyword(),
            "function" => {
                self.skip_blanks();
                let context = self.context_within(state);
                let name = self.word(&context).map_or_else(String::new, |scanned| scanned.word.text);
                self.skip_blanks();
                if self.take("(") {
                    self.skip_blanks();
                    if !self.take(")") {
                        self.unexpected("(");
                    }
                }
                self.define_function(state, name);
            }
            "coproc" => self.coprocess(),
            "[[" => self.condition(state),
            _ => return false,
        }
        true
    }

    fn expect_within(&mut self, state: &ParserState, opening: GroupKind, word: &str) {
        if state.groups.last().is_none_or(|group| group.opening != opening) {
            self.unexpected(word);
        }
    }

    fn expect_end(&mut self, state: &mut ParserState, opening: GroupKind, word: &str) {
        if state.groups.last().is_some_and(|group| group.opening == opening) {
            self.close(state);
        } else {
            self.unexpected(word);
        }
    }

    /// Reads the options of `time`. Returns `false` for options that only the program of that name has.
    fn time_keyword(&mut self) -> bool {
        let before = self.at;
        self.skip_blanks();
        if self.starts_with("-p ") {
            self.at += 3;
        } else if self.byte(0) == Some(b'-') {
            self.at = before;
            return false;
        }
        true
    }

    /// `coproc NAME {` names the process; otherwise a command follows.
    fn coprocess(&mut self) {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let end = rest.find([' ', '\t', '\n']).unwrap_or(rest.len());
        let behind = rest[end..].trim_start_matches([' ', '\t']);
        if end > 0 && !rest.starts_with(['{', '(']) && behind.starts_with(['{', '(']) {
            self.at += end;
        }
    }

    fn skip_lines(&mut self) {
        loop {
            self.skip_blanks();
            match self.byte(0) {
                Some(b'\n') => self.at += 1,
                Some(b'#') => self.skip_comment(),
                _ => return,
            }
        }
    }

    /// Reads `NAME in WORDS` or `((…))`.
    fn loop_header(&mut self, state: &mut ParserState) {
        self.skip_blanks();
        let context = self.context_within(state);
        if self.starts_with("((") && self.arithmetic(&context) {
            return;
        }
        if self.word(&context).is_none() {
            self.unexpected("for");
        }
        let before = self.at;
        self.skip_lines();
        if !self.takes_word("in") {
            self.at = before;
            return;
        }
        loop {
            self.skip_blanks();
            if self.word(&context).is_none() {
                return;
            }
        }
    }

    /// Takes a word if a blank or an operator follows it.
    fn takes_word(&mut self, word: &str) -> bool {
        let ends = self.byte(word.len()).is_none_or(|byte| b" \t\n;&|()<>".contains(&byte));
        ends && self.take(word)
    }

    fn case_header(&mut self, state: &mut ParserState) {
        self.skip_blanks();
        let context = self.context_within(state);
        self.word(&context);
        self.skip_lines();
        self.open(state, GroupKind::Case);
        if self.takes_word("in") {
            self.case_patterns(state);
        } else {
            self.unexpected("case");
        }
    }

    /// Reads patterns up to their `)`, or the end of the `case`.
    pub(super) fn case_patterns(&mut self, state: &mut ParserState) {
        self.skip_lines();
        if self.takes_word("esac") {
            self.close(state);
            return;
        }
        let context = self.context_within(state);
        let mut open = 0_usize;
        self.take("(");
        loop {
            self.skip_blanks();
            match self.byte(0) {
                Some(b')') if open == 0 => {
                    self.at += 1;
                    return;
                }
                Some(b')') => {
                    self.at += 1;
                    open -= 1;
                }
                Some(b'(') => {
                    self.at += 1;
                    open += 1;
                }
                Some(b'|') => self.at += 1,
                Some(b'\n') if open > 0 => self.at += 1,
                _ => {
                    if self.word(&context).is_none() {
                        self.unexpected("case");
                        return;
                    }
                }
            }
        }
    }

    /// Reads `[[ … ]]`. The signs of the grammar are operators there.
    fn condition(&mut self, state: &mut ParserState) {
        let context = self.context_within(state);
        state.draft.words.push(Word::literal("[["));
        loop {
            self.skip_blanks();
            match self.byte(0) {
                None => {
                    self.unterminated("[[");
                    return;
                }
                Some(b'\n') => self.at += 1,
                Some(byte) if b"|&;()<>".contains(&byte) && !(b"<>".contains(&byte) && self.byte(1) == Some(b'(')) => {
                    if byte == b';' {
                        // A shell that does not know `[[` would end a command here.
                        self.unexpected("[[ … ;");
                    }
                    state.draft.words.push(Word::literal(char::from(byte)));
                    self.at += 1;
                }
                Some(_) => {
                    let Some(scanned) = self.word(&context) else { return };
                    let is_end = scanned.is_plain && scanned.word.text == "]]";
                    state.draft.words.push(scanned.word);
                    if is_end {
                        return;
                    }
                }
            }
        }
    }

    /// Reads `((…))` as a command. Returns `false` if it is two nested subshells.
    pub(super) fn arithmetic_command(&mut self, state: &mut ParserState) -> bool {
        let context = self.context_within(state);
        let from = self.at;
        let is_arithmetic = self.arithmetic(&context);
        let is_operand = |word: &str| word.starts_with(|first: char| first.is_ascii_alphabetic());
        let words: Vec<&str> = self.text[from..self.at].split_ascii_whitespace().collect();
        if words
            .windows(2)
            .any(|pair| is_operand(pair[1]) && pair[0].ends_with(|last: char| last.is_ascii_alphanumeric()))
        {
            // Commands rather than an expression, for a shell without `((`.
            self.unexpected("((");
        }
        is_arithmetic
    }
}

impl super::script_builder::ScriptBuilder {
    /// Reports an assignment to a variable that changes how programs run.
    pub(super) fn note_assignment(&mut self, assignment: &str) {
        let Some((name, _)) = assignment.split_once('=') else { return };
        let name = name.strip_suffix('+').unwrap_or(name);
        if variable_class(name) == VariableClass::Dangerous {
            self.uncertain(Uncertainty::ChangesLookup { name: name.to_owned() });
        }
    }
}
