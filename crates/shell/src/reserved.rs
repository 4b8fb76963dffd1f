//! Words of the grammar, which only tell where commands begin.

use crate::commands::Reader;
use crate::level::{Level, Opening};
use crate::{Doubt, Word};

impl Reader<'_, '_> {
    /// Acts on a reserved word; says whether it was one.
    pub(super) fn reserved(&mut self, level: &mut Level, word: &str) -> bool {
        match word {
            "if" => self.open(level, Opening::If),
            "while" | "until" => self.open(level, Opening::Loop),
            "for" | "select" => {
                self.loop_header(level);
                self.open(level, Opening::Loop);
            }
            "case" => self.case_header(level),
            "{" => self.open(level, Opening::Brace),
            "then" | "else" | "elif" => self.expect_within(level, Opening::If, word),
            "do" => self.expect_within(level, Opening::Loop, word),
            "fi" => self.expect_end(level, Opening::If, word),
            "done" => self.expect_end(level, Opening::Loop, word),
            "esac" => self.expect_end(level, Opening::Case, word),
            "}" => self.expect_end(level, Opening::Brace, word),
            "!" => {}
            "time" => return self.time_keyword(),
            "function" => {
                self.skip_blanks();
                let standing = self.standing_within(level);
                let name = self.word(&standing).map_or_else(String::new, |scanned| scanned.word.text);
                self.skip_blanks();
                if self.take("(") {
                    self.skip_blanks();
                    if !self.take(")") {
                        self.unexpected("(");
                    }
                }
                self.define_function(level, name);
            }
            "coproc" => self.coprocess(),
            "[[" => self.condition(level),
            _ => return false,
        }
        true
    }

    fn expect_within(&mut self, level: &Level, opening: Opening, word: &str) {
        if level.groups.last().is_none_or(|group| group.opening != opening) {
            self.unexpected(word);
        }
    }

    fn expect_end(&mut self, level: &mut Level, opening: Opening, word: &str) {
        if level.groups.last().is_some_and(|group| group.opening == opening) {
            self.close(level);
        } else {
            self.unexpected(word);
        }
    }

    /// `time` is a word of the grammar unless it has options of the program of that name.
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
    fn loop_header(&mut self, level: &mut Level) {
        self.skip_blanks();
        let standing = self.standing_within(level);
        if self.starts_with("((") && self.arithmetic(&standing) {
            return;
        }
        if self.word(&standing).is_none() {
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
            if self.word(&standing).is_none() {
                return;
            }
        }
    }

    /// Takes a word, if it stands alone.
    fn takes_word(&mut self, word: &str) -> bool {
        let ends = self.byte(word.len()).is_none_or(|byte| b" \t\n;&|()<>".contains(&byte));
        ends && self.take(word)
    }

    fn case_header(&mut self, level: &mut Level) {
        self.skip_blanks();
        let standing = self.standing_within(level);
        self.word(&standing);
        self.skip_lines();
        self.open(level, Opening::Case);
        if self.takes_word("in") {
            self.case_patterns(level);
        } else {
            self.unexpected("case");
        }
    }

    /// Reads patterns up to their `)`, or the end of the `case`.
    pub(super) fn case_patterns(&mut self, level: &mut Level) {
        self.skip_lines();
        if self.takes_word("esac") {
            self.close(level);
            return;
        }
        let standing = self.standing_within(level);
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
                    if self.word(&standing).is_none() {
                        self.unexpected("case");
                        return;
                    }
                }
            }
        }
    }

    /// Reads `[[ … ]]`, in which the signs of the grammar are operators.
    fn condition(&mut self, level: &mut Level) {
        let standing = self.standing_within(level);
        level.draft.words.push(Word::literal("[["));
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
                    level.draft.words.push(Word::literal(char::from(byte)));
                    self.at += 1;
                }
                Some(_) => {
                    let Some(scanned) = self.word(&standing) else { return };
                    let is_end = scanned.is_plain && scanned.word.text == "]]";
                    level.draft.words.push(scanned.word);
                    if is_end {
                        return;
                    }
                }
            }
        }
    }

    /// Reads `((…))` in the place of a command.
    pub(super) fn arithmetic_command(&mut self, level: &mut Level) -> bool {
        let standing = self.standing_within(level);
        let from = self.at;
        let is_arithmetic = self.arithmetic(&standing);
        let is_operand = |word: &str| word.starts_with(|first: char| first.is_ascii_alphabetic());
        let words: Vec<&str> = self.text[from..self.at].split_ascii_whitespace().collect();
        if words
            .windows(2)
            .any(|pair| is_operand(pair[1]) && pair[0].ends_with(|last: char| last.is_ascii_alphanumeric()))
        {
            // No expression, but commands to a shell that does not know `((`.
            self.unexpected("((");
        }
        is_arithmetic
    }
}

impl super::output::Output {
    /// Notes variables that decide what a name stands for.
    pub(super) fn note_assignment(&mut self, assignment: &str) {
        let Some((name, _)) = assignment.split_once('=') else { return };
        let name = name.strip_suffix('+').unwrap_or(name);
        if LOOKUP.contains(&name)
            || name.starts_with("LD_")
            || name.starts_with("DYLD_")
            || name.starts_with("BASH_FUNC")
        {
            self.doubt(Doubt::ChangesLookup { name: name.to_owned() });
        }
    }
}

/// Variables that decide which program a name stands for, or what runs before it.
const LOOKUP: &[&str] = &[
    "PATH",
    "BASH_ENV",
    "ENV",
    "IFS",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXEC_PATH",
    "NODE_OPTIONS",
    "PERL5OPT",
    "PERL5LIB",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "RUBYOPT",
    "RUSTC_WRAPPER",
    "JAVA_TOOL_OPTIONS",
];
