//! Reads words: quotes, escapes, and which parts of a word are not certain.

use crate::commands::Reader;
use crate::level::Standing;
use crate::output::MOST_DEPTH;
use crate::{Certainty, Doubt, Word};

/// A word, and what it may be besides an argument.
pub(super) struct Scanned {
    pub(super) word: Word,
    /// Nothing in it is quoted or expanded, so it can be a reserved word.
    pub(super) is_plain: bool,
    /// It begins with `NAME=`.
    pub(super) is_assignment: bool,
    /// It names a file descriptor, if a redirect follows at once.
    pub(super) is_descriptor: bool,
}

/// The braces of a word, as far as they make several words of it.
#[derive(Default)]
struct Braces {
    open: usize,
    is_list: bool,
}

impl Reader<'_, '_> {
    /// Reads a word, if one begins here.
    pub(super) fn word(&mut self, standing: &Standing) -> Option<Scanned> {
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
                    self.inner_substitution(&self.text[from..from + 2], standing);
                    word.text.push_str(&self.text[from..self.at]);
                    word.at_most(Certainty::Unknown);
                }
                b'(' if is_assignment && self.text.as_bytes()[self.at - 1] == b'=' && !is_quoted => {
                    self.array(&mut word, standing);
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
                    self.double_quotes(&mut word, standing);
                }
                b'$' if self.byte(1) == Some(b'\'') => {
                    is_quoted = true;
                    self.ansi_quotes(&mut word);
                }
                b'$' if self.byte(1) == Some(b'"') => self.at += 1,
                b'$' => self.dollar(&mut word, Quoting::None, standing),
                b'`' => self.backticks(&mut word, Quoting::None, standing),
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
                    if braces.sees(byte, self.byte(1)) {
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
        // These two are programs and no patterns.
        if matches!(raw, "[" | "[[") {
            word.certainty = Certainty::Literal;
        }
        let is_plain = raw == word.text && word.certainty == Certainty::Literal;
        let in_braces = raw.strip_prefix('{').and_then(|raw| raw.strip_suffix('}'));
        let is_descriptor = raw.bytes().all(|byte| byte.is_ascii_digit()) || in_braces.is_some_and(is_name);
        Some(Scanned { word, is_plain, is_assignment, is_descriptor })
    }

    /// Takes characters up to the next one that may mean something.
    fn plain(&mut self, word: &mut Word) {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let length = rest.iter().position(|byte| SPECIAL.contains(byte)).unwrap_or(rest.len());
        let end = self.at + 1 + length;
        word.text.push_str(&self.text[self.at..end]);
        self.at = end;
    }

    /// Takes the character behind a backslash.
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

    /// Reads up to the closing `"`, the opening one being behind.
    pub(super) fn double_quotes(&mut self, word: &mut Word, standing: &Standing) {
        if self.depth >= MOST_DEPTH {
            self.give_up(Doubt::TooDeep);
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
                Some(_) => self.in_quotes(word, Quoting::Double, standing),
            }
        }
        self.depth -= 1;
    }

    /// Takes the next piece of what stands in double quotes or in a here-document.
    pub(super) fn in_quotes(&mut self, word: &mut Word, quoting: Quoting, standing: &Standing) {
        match self.byte(0) {
            Some(b'\\') => match self.byte(1) {
                Some(b'\n') => self.at += 2,
                Some(b'$' | b'`' | b'\\') => {
                    self.at += 1;
                    self.escaped(word);
                }
                Some(b'"') if quoting == Quoting::Double => {
                    self.at += 1;
                    self.escaped(word);
                }
                _ => {
                    word.text.push('\\');
                    self.at += 1;
                }
            },
            Some(b'$') => self.dollar(word, quoting, standing),
            Some(b'`') => self.backticks(word, quoting, standing),
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
    fn array(&mut self, word: &mut Word, standing: &Standing) {
        if self.depth >= MOST_DEPTH {
            self.give_up(Doubt::TooDeep);
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
                    if let Some(element) = self.word(standing) {
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

/// What stands around an expansion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    /// Nothing.
    None,
    /// Double quotes.
    Double,
    /// A here-document, in which double quotes mean nothing.
    HereDocument,
}

/// Characters that may mean something within a word.
const SPECIAL: &[u8] = b" \t\n|&;()<>\\'\"$`=*?[~{},.:";

impl Braces {
    /// Whether this character completes a `{a,b}` or `{1..3}`.
    fn sees(&mut self, byte: u8, next: Option<u8>) -> bool {
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

/// Whether a text is a variable's name, perhaps with a subscript or a `+`.
fn is_name(text: &str) -> bool {
    let text = text.strip_suffix('+').unwrap_or(text);
    let name = if text.ends_with(']') { text.split_once('[').map_or(text, |(name, _)| name) } else { text };
    !name.is_empty()
        && !name.starts_with(|character: char| character.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
