//! Reads expansions: what they will give is not known, but the commands in them are.

use crate::commands::Reader;
use crate::level::Standing;
use crate::output::MOST_DEPTH;
use crate::word::Quoting;
use crate::{Certainty, Doubt, Word};

impl Reader<'_, '_> {
    /// Reads the commands of a substitution into a shell of their own.
    pub(super) fn inner_substitution(&mut self, opening: &str, standing: &Standing) {
        let shell = self.output.shell_within(standing.shell);
        self.substitution(opening, &Standing { shell, ..standing.clone() });
    }

    /// Reads what begins with `$`.
    pub(super) fn dollar(&mut self, word: &mut Word, quoting: Quoting, standing: &Standing) {
        let from = self.at;
        self.at += 1;
        match self.byte(0) {
            Some(b'(') => {
                if !(self.starts_with("((") && self.arithmetic(standing)) {
                    self.at += 1;
                    self.inner_substitution("$(", standing);
                }
            }
            Some(b'{') => {
                self.at += 1;
                self.parameter(quoting, standing);
            }
            Some(b'[') => {
                self.at += 1;
                self.old_arithmetic(standing);
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                while self.byte(0).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                    self.at += 1;
                }
            }
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => self.at += 1,
            _ => {
                word.text.push('$');
                return;
            }
        }
        word.text.push_str(&self.text[from..self.at]);
        word.at_most(Certainty::Unknown);
    }

    /// Reads the rest of `${…}`.
    fn parameter(&mut self, quoting: Quoting, standing: &Standing) {
        if self.depth >= MOST_DEPTH {
            self.give_up(Doubt::TooDeep);
            return;
        }
        if matches!(self.byte(0), Some(b' ' | b'\t' | b'\n' | b'|')) {
            // Newer shells run what stands there.
            self.unexpected("${ ");
        }
        self.depth += 1;
        let mut ignored = Word::literal("");
        loop {
            match self.byte(0) {
                None => {
                    self.unterminated("${");
                    break;
                }
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                Some(b'\\') => self.skip_escape(),
                Some(b'\'') if quoting == Quoting::None => self.skip_single_quotes(),
                Some(b'\'') => {
                    // Whether it quotes depends on the operator.
                    self.unexpected("${…'");
                    self.at += 1;
                }
                Some(b'"') => {
                    self.at += 1;
                    self.double_quotes(&mut ignored, standing);
                }
                Some(b'$') if quoting == Quoting::None && self.byte(1) == Some(b'\'') => self.ansi_quotes(&mut ignored),
                Some(b'$') => self.dollar(&mut ignored, quoting, standing),
                Some(b'`') => self.backticks(&mut ignored, quoting, standing),
                Some(b'<' | b'>') if quoting == Quoting::None && self.byte(1) == Some(b'(') => {
                    self.at += 2;
                    self.inner_substitution("<(", standing);
                }
                Some(_) => self.at += 1,
            }
        }
        self.depth -= 1;
    }

    fn skip_escape(&mut self) {
        self.at += 1;
        self.at += self.text[self.at..].chars().next().map_or(0, char::len_utf8);
    }

    fn skip_single_quotes(&mut self) {
        self.at += 1;
        let rest = &self.text[self.at..];
        self.at += rest.find('\'').map_or(rest.len(), |length| length + 1);
        if !self.text[..self.at].ends_with('\'') {
            self.unterminated("'");
        }
    }

    /// Reads `((…))`, if that is what begins here: `((a); (b))` is two shells.
    pub(super) fn arithmetic(&mut self, standing: &Standing) -> bool {
        let Some(end) = self.end_of_arithmetic() else { return false };
        self.at += 2;
        self.expression(end, standing);
        self.at = self.at.max(end + 2);
        true
    }

    /// Looks ahead for the `))`.
    fn end_of_arithmetic(&mut self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let start = self.at + 2;
        let mut at = start;
        let mut open = 0_usize;
        let end = loop {
            match bytes.get(at)? {
                b'\\' => at += 1,
                quote @ (b'\'' | b'"') => {
                    let rest = bytes.get(at + 1..)?;
                    at += 1 + rest.iter().position(|byte| byte == quote).unwrap_or(rest.len());
                }
                b'(' => open += 1,
                b')' if open > 0 => open -= 1,
                b')' => break (bytes.get(at + 1) == Some(&b')')).then_some(at),
                _ => {}
            }
            at += 1;
            if at - start > LONGEST_EXPRESSION {
                break None;
            }
        };
        // Looking ahead again and again is what would make hostile nesting slow.
        self.output.pay(at - start).then_some(end).flatten()
    }

    /// Reads an expression up to `end` for the substitutions in it.
    fn expression(&mut self, end: usize, standing: &Standing) {
        let mut ignored = Word::literal("");
        while self.at < end {
            match self.byte(0) {
                Some(b'\\') => self.skip_escape(),
                Some(b'\'') => {
                    self.unexpected("((…'");
                    self.at += 1;
                }
                Some(b'$') => self.dollar(&mut ignored, Quoting::Double, standing),
                Some(b'`') => self.backticks(&mut ignored, Quoting::Double, standing),
                _ => self.at += 1,
            }
            ignored.text.clear();
        }
        if self.at > end {
            self.unexpected("((");
        }
    }

    fn old_arithmetic(&mut self, standing: &Standing) {
        let rest = &self.text[self.at..];
        match rest.find(']') {
            Some(length) => {
                self.expression(self.at + length, standing);
                self.take("]");
            }
            None => self.unterminated("$["),
        }
    }

    /// Reads `` `…` ``: the text between is a script once its backslashes are taken away.
    pub(super) fn backticks(&mut self, word: &mut Word, quoting: Quoting, standing: &Standing) {
        let from = self.at;
        self.at += 1;
        let mut script = String::new();
        loop {
            let Some(character) = self.text[self.at..].chars().next() else {
                self.unterminated("`");
                break;
            };
            self.at += character.len_utf8();
            match character {
                '`' => break,
                '\\' => match self.byte(0) {
                    Some(escaped @ (b'`' | b'\\' | b'$')) => {
                        script.push(char::from(escaped));
                        self.at += 1;
                    }
                    Some(b'"') if quoting == Quoting::Double => {
                        script.push('"');
                        self.at += 1;
                    }
                    _ => script.push('\\'),
                },
                _ => script.push(character),
            }
        }
        word.text.push_str(&self.text[from..self.at]);
        word.at_most(Certainty::Unknown);
        let shell = self.output.shell_within(standing.shell);
        self.output.read(&script, self.depth + 1, &Standing { shell, ..standing.clone() });
    }

    /// Reads `$'…'`, in which a backslash stands for any character.
    pub(super) fn ansi_quotes(&mut self, word: &mut Word) {
        let from = self.at;
        self.at += 2;
        let mut bytes = Vec::new();
        loop {
            match self.byte(0) {
                None => {
                    self.unterminated("$'");
                    break;
                }
                Some(b'\'') => {
                    self.at += 1;
                    break;
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.ansi_escape(&mut bytes);
                }
                Some(byte) => {
                    bytes.push(byte);
                    self.at += 1;
                }
            }
        }
        // A NUL ends the text in some shells and not in others.
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => word.text.push_str(&text),
            _ => {
                word.text.push_str(&self.text[from..self.at]);
                word.at_most(Certainty::Unknown);
            }
        }
    }

    fn ansi_escape(&mut self, bytes: &mut Vec<u8>) {
        let Some(byte) = self.byte(0) else {
            bytes.push(b'\\');
            return;
        };
        self.at += 1;
        let simple = match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'v' => 11,
            b'f' => 12,
            b'e' | b'E' => 27,
            b'\\' | b'\'' | b'"' | b'?' => byte,
            b'0'..=b'7' => {
                self.at -= 1;
                self.number(8, 3).unwrap_or_default() as u8
            }
            b'x' => {
                let Some(number) = self.number(16, 2) else {
                    bytes.extend(b"\\x");
                    return;
                };
                number as u8
            }
            b'u' | b'U' => {
                let number = self.number(16, if byte == b'u' { 4 } else { 8 });
                let character = number.and_then(char::from_u32);
                // What is no character makes the whole text unknown.
                let mut buffer = [0; 4];
                bytes.extend(character.map_or(&[0_u8][..], |character| character.encode_utf8(&mut buffer).as_bytes()));
                return;
            }
            b'c' => {
                let control = self.byte(0).unwrap_or(0);
                self.at += usize::from(self.byte(0).is_some_and(|byte| byte.is_ascii()));
                if control.is_ascii() { control.to_ascii_uppercase() ^ 0x40 } else { 0 }
            }
            _ => {
                bytes.extend([b'\\', byte]);
                return;
            }
        };
        bytes.push(simple);
    }

    /// Reads up to so many digits.
    fn number(&mut self, base: u32, most: usize) -> Option<u32> {
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest.iter().take(most).take_while(|byte| char::from(**byte).is_digit(base)).count();
        let number = u32::from_str_radix(&self.text[self.at..self.at + digits], base).ok();
        self.at += digits;
        number
    }
}

/// The longest arithmetic expression that is looked for.
const LONGEST_EXPRESSION: usize = 1 << 16;
