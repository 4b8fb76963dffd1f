//! Words: quotes, escapes, and the certainty of the result.

use crate::commands::ScriptReader;
use crate::parser_state::ScriptContext;
use crate::script_builder::MAX_DEPTH;
use crate::{Certainty, Uncertainty, Word};

/// A word with the roles that its spelling permits.
pub(super) struct ScannedWord {
    pub(super) word: Word,
    /// `true` without quotes and expansions: it can be a reserved word.
    pub(super) is_plain: bool,
    /// `true` if it begins with `NAME=`.
    pub(super) is_assignment: bool,
    /// `true` if it names a file descriptor when a redirect follows directly.
    pub(super) is_descriptor: bool,
}

/// Braces of a word that may turn it into several words.
#[derive(Default)]
struct Braces {
    open: usize,
    is_list: bool,
}

impl ScriptReader<'_, '_> {
    /// Reads the word at the current position.
    pub(super) fn word(&mut self, context: &ScriptContext) -> Option<ScannedWord> {
        let start = self.at;
        let mut word = Word::literal("");
        let mut is_quoted = false;
        let mut is_assignment = false;
        let mut braces = Braces::default();
        while let Some(byte) = self.byte(0) {
            match byte {
                b'<' | b'>' if self.byte(1) == Some(b'(') => {
                    let from = self.at;
                    self.at += 2;
                    self.inner_substitution(&self.text[from..from + 2], context);
                    word.text.push_str(&self.text[from..self.at]);
                    word.at_most(Certainty::Unknown);
                }
                b'(' if is_assignment && self.text.as_bytes()[self.at - 1] == b'=' && !is_quoted => {
                    self.array(&mut word, context);
                }
                b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>' => break,
                b'\\' => {
                    self.at += 1;
                    if self.byte(0) == Some(b'\n') {
                        self.at += 1;
                    } else {
                        is_quoted = true;
                        self.escaped(&mut word);
                    }
                }
                b'\'' => {
                    is_quoted = true;
                    self.single_quotes(&mut word);
                }
                b'"' => {
                    is_quoted = true;
                    self.at += 1;
                    self.double_quotes(&mut word, context);
                }
                b'$' if self.byte(1) == Some(b'\'') => {
                    is_quoted = true;
                    self.ansi_quotes(&mut word);
                }
                b'$' if self.byte(1) == Some(b'"') => self.at += 1,
                b'$' => self.dollar(&mut word, QuoteContext::None, context),
                b'`' => self.backticks(&mut word, QuoteContext::None, context),
                b'=' => {
                    is_assignment |= !is_quoted && is_name(&self.text[start..self.at]);
                    self.plain(&mut word);
                }
                b'*' | b'?' | b'[' => {
                    word.at_most(Certainty::Pattern);
                    self.plain(&mut word);
                }
                b'~' => {
                    if self.at == start || matches!(self.text.as_bytes()[self.at - 1], b'=' | b':') {
                        word.at_most(Certainty::Pattern);
                    }
                    self.plain(&mut word);
                }
                b'{' | b'}' | b',' | b'.' => {
                    if braces.completes_list(byte, self.byte(1)) {
                        word.at_most(Certainty::Pattern);
                    }
                    self.plain(&mut word);
                }
                _ => self.plain(&mut word),
            }
        }
        let raw = &self.text[start..self.at];
        if raw.is_empty() {
            return None;
        }
        // These two are commands rather than patterns.
        if matches!(raw, "[" | "[[") {
            word.certainty = Certainty::Literal;
        }
        let is_plain = raw == word.text && word.certainty == Certainty::Literal;
        let in_braces = raw.strip_prefix('{').and_then(|raw| raw.strip_suffix('}'));
        let is_descriptor = raw.bytes().all(|byte| byte.is_ascii_digit()) || in_braces.is_some_and(is_name);
        Some(ScannedWord { word, is_plain, is_assignment, is_descriptor })
    }

    /// Takes characters up to the next special one.
    fn plain(&mut self, word: &mut Word) {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let length = rest.iter().position(|byte| SPECIAL.contains(byte)).unwrap_or(rest.len());
        let end = self.at + 1 + length;
        word.text.push_str(&self.text[self.at..end]);
        self.at = end;
    }

    /// Takes the character behind a backslash literally.
    fn escaped(&mut self, word: &mut Word) {
        match self.text[self.at..].chars().next() {
            Some(character) => {
                word.text.push(character);
                self.at += character.len_utf8();
            }
            None => word.text.push('\\'),
        }
    }

    fn single_quotes(&mut self, word: &mut Word) {
        self.at += 1;
        let rest = &self.text[self.at..];
        let length = rest.find('\'').unwrap_or(rest.len());
        word.text.push_str(&rest[..length]);
        self.at += length;
        if !self.take("'") {
            self.unterminated("'");
        }
    }

    /// Reads up to the closing `"`; the opening one has been read.
    pub(super) fn double_quotes(&mut self, word: &mut Word, context: &ScriptContext) {
        if self.depth >= MAX_DEPTH {
            self.give_up(Uncertainty::TooDeep);
            return;
        }
        self.depth += 1;
        loop {
            match self.byte(0) {
                None => {
                    self.unterminated("\"");
                    break;
                }
                Some(b'"') => {
                    self.at += 1;
                    break;
                }
                Some(_) => self.in_quotes(word, QuoteContext::Double, context),
            }
        }
        self.depth -= 1;
    }

    /// Reads the next piece of text within double quotes or a here-document.
    pub(super) fn in_quotes(&mut self, word: &mut Word, quoting: QuoteContext, context: &ScriptContext) {
        match self.byte(0) {
            Some(b'\\') => match self.byte(1) {
                Some(b'\n') => self.at += 2,
                Some(b'$' | b'`' | b'\\') => {
                    self.at += 1;
                    self.escaped(word);
                }
                Some(b'"') if quoting == QuoteContext::Double => {
                    self.at += 1;
                    self.escaped(word);
                }
                _ => {
                    word.text.push('\\');
                    self.at += 1;
                }
            },
            Some(b'$') => self.dollar(word, quoting, context),
            Some(b'`') => self.backticks(word, quoting, context),
            _ => {
                let rest = &self.text.as_bytes()[self.at + 1..];
                let length =
                    rest.iter().position(|byte| matches!(byte, b'\\' | b'$' | b'`' | b'"')).unwrap_or(rest.len());
                let end = self.at + 1 + length;
                word.text.push_str(&self.text[self.at..end]);
                self.at = end;
            }
        }
    }

    /// Reads the elements of an array.
    fn array(&mut self, word: &mut Word, context: &ScriptContext) {
        if self.depth >= MAX_DEPTH {
            self.give_up(Uncertainty::TooDeep);
            return;
        }
        self.depth += 1;
        let from = self.at;
        self.at += 1;
        loop {
            self.skip_blanks();
            match self.byte(0) {
                None => {
                    self.unterminated("(");
                    break;
                }
                Some(b')') => {
                    self.at += 1;
                    break;
                }
                Some(b'\n') => self.at += 1,
                Some(b'#') => self.skip_comment(),
                Some(_) => {
                    if let Some(element) = self.word(context) {
                        word.at_most(element.word.certainty);
                    } else {
                        self.unexpected(&self.text[self.at..=self.at]);
                        self.at += 1;
                    }
                }
            }
        }
        self.depth -= 1;
        word.text.push_str(&self.text[from..self.at]);
        word.at_most(Certainty::Pattern);
    }
}

/// Quotes around an expansion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuoteContext {
    None,
    Double,
    /// A here-document, where double quotes are literal.
    HereDocument,
}

/// Characters with a meaning within a word.
const SPECIAL: &[u8] = b" \t\n|&;()<>\\'\"$`=*?[~{},.:";

impl Braces {
    /// Returns `true` if this character completes `{a,b}` or `{1..3}`.
    fn completes_list(&mut self, byte: u8, next: Option<u8>) -> bool {
        match byte {
            b'{' => self.open += 1,
            b'}' if self.open > 0 => return self.is_list,
            b',' => self.is_list |= self.open > 0,
            b'.' => self.is_list |= self.open > 0 && next == Some(b'.'),
            _ => {}
        }
        false
    }
}

/// `true` for the name of a variable, also with a subscript or a `+`.
fn is_name(text: &str) -> bool {
    let text = text.strip_suffix('+').unwrap_or(text);
    let name = if text.ends_with(']') { text.split_once('[').map_or(text, |(name, _)| name) } else { text };
    !name.is_empty()
        && !name.starts_with(|character: char| character.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
