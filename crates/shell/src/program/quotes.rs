//! `$'…'`, in which a backslash stands for any character.

use super::reader::{Outcome, Reader};

impl Reader<'_> {
    /// Reads `$'…'` and gives the text that it stands for.
    pub(super) fn ansi_quotes(&mut self) -> Outcome<String> {
        let start = self.at;
        self.at += 2;
        let mut bytes = Vec::new();
        loop {
            match self.character() {
                None => return Self::unsupported_at(start..start + 2, "`$'` has no end"),
                Some('\'') => break,
                Some('\\') => self.ansi_escape(start, &mut bytes)?,
                Some(character) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        match String::from_utf8(bytes) {
            Ok(text) if text.contains('\0') => self.unsupported(start, "`$'…'` holds a NUL byte"),
            Ok(text) => Ok(text),
            Err(_) => self.unsupported(start, "`$'…'` holds bytes that are not UTF-8"),
        }
    }

    fn ansi_escape(&mut self, start: usize, bytes: &mut Vec<u8>) -> Outcome<()> {
        let Some(character) = self.character() else {
            return Self::unsupported_at(start..start + 2, "`$'` has no end");
        };
        match character {
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            'r' => bytes.push(b'\r'),
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'v' => bytes.push(11),
            'f' => bytes.push(12),
            'e' | 'E' => bytes.push(27),
            '\\' | '\'' | '"' | '?' => bytes.push(character as u8),
            '0'..='7' => {
                self.at -= 1;
                let value = self.digits(8, 3);
                bytes.push((value.unwrap_or(0) & 0xff) as u8);
            }
            'x' => match self.digits(16, 2) {
                Some(value) => bytes.push(value as u8),
                None => return self.unsupported(start, "`\\x` needs a number"),
            },
            'u' | 'U' => {
                let digits = if character == 'u' { 4 } else { 8 };
                match self.digits(16, digits).and_then(char::from_u32) {
                    Some(decoded) => bytes.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes()),
                    None => return self.unsupported(start, format!("`\\{character}` does not name a character")),
                }
            }
            _ => {
                return self
                    .unsupported(start, format!("`\\{}` within `$'…'` is not supported", character.escape_debug()));
            }
        }
        Ok(())
    }

    /// Takes up to `count` digits.
    fn digits(&mut self, base: u32, count: usize) -> Option<u32> {
        let rest = self.rest();
        let length = rest.bytes().take(count).take_while(|byte| char::from(*byte).is_digit(base)).count();
        self.at += length;
        u32::from_str_radix(&rest[..length], base).ok()
    }
}
