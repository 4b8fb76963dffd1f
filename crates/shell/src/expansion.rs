//! Expansions. Their result is unknown; the commands within them are listed.

use crate::commands::ScriptReader;
use crate::parser_state::ScriptContext;
use crate::script_builder::MAX_DEPTH;
use crate::word::QuoteContext;
use crate::{Certainty, Uncertainty, Word};

impl ScriptReader<'_, '_> {
    /// Reads the commands of a substitution, which run in a subshell.
    pub(super) fn inner_substitution(&mut self, opening: &str, context: &ScriptContext) {
        let shell = self.builder.shell_within(context.shell);
        self.substitution(opening, &ScriptContext { shell, ..context.clone() });
    }

    /// Reads an expansion that begins with `$`.
    pub(super) fn dollar(&mut self, word: &mut Word, quoting: QuoteContext, context: &ScriptContext) {
        let from = self.at;
        self.at += 1;
        match self.byte(0) {
            Some(b'(') => {
                if !(self.starts_with("((") && self.arithmetic(context)) {
                    self.at += 1;
                    self.inner_substitution("$(", context);
                }
            }
            Some(b'{') => {
                self.at += 1;
                self.parameter(quoting, context);
            }
            Some(b'[') => {
                self.at += 1;
                self.old_arithmetic(context);
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
    fn parameter(&mut self, quoting: QuoteContext, context: &ScriptContext) {
        if self.depth >= MAX_DEPTH {
            self.give_up(Uncertainty::TooDeep);
            return;
        }
        if matches!(self.byte(0), Some(b' ' | b'\t' | b'\n' | b'|')) {
            // Newer shells run the text within.
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
                Some(b'\'') if quoting == QuoteContext::None => self.skip_single_quotes(),
                Some(b'\'') => {
                    // The operator decides whether it quotes.
                    self.unexpected("${…'");
                    self.at += 1;
                }
                Some(b'"') => {
                    self.at += 1;
                    self.double_quotes(&mut ignored, context);
                }
                Some(b'$') if quoting == QuoteContext::None && self.byte(1) == Some(b'\'') => {
                    self.ansi_quotes(&mut ignored);
                }
                Some(b'$') => self.dollar(&mut ignored, quoting, context),
                Some(b'`') => self.backticks(&mut ignored, quoting, context),
                Some(b'<' | b'>') if quoting == QuoteContext::None && self.byte(1) == Some(b'(') => {
                    self.at += 2;
                    self.inner_substitution("<(", context);
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

    /// Reads `((…))`. Returns `false` for nested subshells such as `((a); (b))`.
    pub(super) fn arithmetic(&mut self, context: &ScriptContext) -> bool {
        let Some(end) = self.end_of_arithmetic() else { return false };
        self.at += 2;
        self.expression(end, context);
        self.at = self.at.max(end + 2);
        true
    }

    /// Returns the position of the closing `))`.
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
            if at - start > MAX_EXPRESSION_BYTES {
                break None;
            }
        };
        // Repeated lookahead would make hostile nesting slow.
        self.builder.pay(at - start).then_some(end).flatten()
    }

    /// Reads the substitutions of an arithmetic expression that ends at `end`.
    fn expression(&mut self, end: usize, context: &ScriptContext) {
        let mut ignored = Word::literal("");
        while self.at < end {
            match self.byte(0) {
                Some(b'\\') => self.skip_escape(),
                Some(b'\'') => {
                    self.unexpected("((…'");
                    self.at += 1;
                }
                Some(b'$') => self.dollar(&mut ignored, QuoteContext::Double, context),
                Some(b'`') => self.backticks(&mut ignored, QuoteContext::Double, context),
                _ => self.at += 1,
            }
            ignored.text.clear();
        }
        if self.at > end {
            self.unexpected("((");
        }
    }

    fn old_arithmetic(&mut self, context: &ScriptContext) {
        let rest = &self.text[self.at..];
        match rest.find(']') {
            Some(length) => {
                self.expression(self.at + length, context);
                self.take("]");
            }
            None => self.unterminated("$["),
        }
    }

    /// Reads `` `…` ``. Its text is a script after the removal of backslashes.
    pub(super) fn backticks(&mut self, word: &mut Word, quoting: QuoteContext, context: &ScriptContext) {
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
                    Some(b'"') if quoting == QuoteContext::Double => {
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
        let shell = self.builder.shell_within(context.shell);
        self.builder.read(&script, self.depth + 1, &ScriptContext { shell, ..context.clone() });
    }

    /// Reads `$'…'`, where backslash escapes stand for any character.
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
                // An invalid character makes the whole text unknown.
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

    /// Reads up to `max_digits` digits.
    fn number(&mut self, base: u32, max_digits: usize) -> Option<u32> {
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest.iter().take(max_digits).take_while(|byte| char::from(**byte).is_digit(base)).count();
        let number = u32::from_str_radix(&self.text[self.at..self.at + digits], base).ok();
        self.at += digits;
        number
    }
}

/// Longest arithmetic expression that lookahead covers.
const MAX_EXPRESSION_BYTES: usize = 1 << 16;
