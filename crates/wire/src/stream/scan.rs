//! A single pass over the JSON of an event, without building a tree.
//!
//! A stream consists of many small objects with few relevant members. [`JsonCursor`] walks the members in order, and
//! the caller reads, enters or skips each value. Strings without escapes are borrowed. No function recurses, whatever
//! the nesting.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Maximum nesting of containers.
const MAX_DEPTH: u32 = 128;

/// A syntax error, or nesting beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanError {
    pub(crate) at: usize,
}

/// A position in a JSON text.
#[derive(Clone, Debug)]
pub(crate) struct JsonCursor<'a> {
    text: &'a str,
    at: usize,
}

/// Walks the members of a text that is an object; any other value has none.
pub(crate) fn members<'a>(
    text: &'a str,
    mut visit: impl FnMut(&'a str, &mut JsonCursor<'a>) -> Result<(), ScanError>,
) -> Result<(), ScanError> {
    let mut scan = JsonCursor { text, at: 0 };
    scan.members(&mut visit)?;
    scan.skip_space();
    if scan.at == text.len() { Ok(()) } else { Err(scan.error()) }
}

/// `true` if a text is an object with one of these members. Returns the offset of a syntax error.
pub(crate) fn has_any(text: &str, names: &[&str]) -> Result<bool, u64> {
    let mut found = false;
    let walked = members(text, |name, value| {
        found |= names.contains(&name);
        value.skip()
    });
    walked.map(|()| found).map_err(|error| error.at as u64)
}

/// Walks the elements of a text that is an array; any other value has none.
pub(crate) fn elements<'a>(
    text: &'a str,
    mut visit: impl FnMut(&mut JsonCursor<'a>) -> Result<(), ScanError>,
) -> Result<(), ScanError> {
    JsonCursor { text, at: 0 }.elements(&mut visit)
}

/// Returns the offset of the first quote or backslash.
///
/// Most strings are too short for `memchr` to pay off, so the first bytes are searched in words of eight.
#[inline]
fn quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // The lowest set high bit marks the first zero byte.
    let zeroes = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let mut at = 0;
    for word in bytes.as_chunks().0.iter().take(3) {
        let word = u64::from_le_bytes(*word);
        let found = zeroes(word ^ (ONES * u64::from(b'"'))) | zeroes(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    Some(at + memchr2(b'"', b'\\', &bytes[at..])?)
}

impl<'a> JsonCursor<'a> {
    fn error(&self) -> ScanError {
        ScanError { at: self.at }
    }

    #[inline]
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn skip_space(&mut self) {
        // A single comparison handles the frequent case without white space.
        while self.peek() <= b' ' && matches!(self.peek(), b' ' | b'\n' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.peek() != byte {
            self.skip_space();
            if self.peek() != byte {
                return Err(self.error());
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Walks the members of an object; skips any other value.
    pub(crate) fn members(
        &mut self,
        visit: &mut impl FnMut(&'a str, &mut Self) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        self.skip_space();
        if self.peek() != b'{' {
            return self.skip();
        }
        self.at += 1;
        self.skip_space();
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.key()?;
            self.expect(b':')?;
            visit(key, self)?;
            self.skip_space();
            match self.peek() {
                b',' => self.at += 1,
                b'}' => break,
                _ => return Err(self.error()),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Walks the elements of an array; skips any other value.
    pub(crate) fn elements(
        &mut self,
        visit: &mut impl FnMut(&mut Self) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        self.skip_space();
        if self.peek() != b'[' {
            return self.skip();
        }
        self.at += 1;
        self.skip_space();
        if self.peek() == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            visit(self)?;
            self.skip_space();
            match self.peek() {
                b',' => self.at += 1,
                b']' => break,
                _ => return Err(self.error()),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a string. Skips any other value and returns `None`.
    pub(crate) fn string(&mut self) -> Result<Option<Cow<'a, str>>, ScanError> {
        self.skip_space();
        if self.peek() != b'"' {
            self.skip()?;
            return Ok(None);
        }
        self.at += 1;
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        match quote_or_backslash(rest) {
            Some(found) if rest[found] == b'"' => {
                self.at = start + found + 1;
                Ok(Some(Cow::Borrowed(&self.text[start..start + found])))
            }
            Some(found) => {
                self.at = start + found;
                self.unescape(start).map(|text| Some(Cow::Owned(text)))
            }
            None => Err(self.error()),
        }
    }

    /// Reads a non-negative integer. Skips any other value and returns `None`.
    pub(crate) fn number(&mut self) -> Result<Option<u64>, ScanError> {
        self.skip_space();
        let rest = &self.text.as_bytes()[self.at..];
        // Fast path for small integers.
        let digits = rest.iter().take(18).take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && matches!(rest.get(digits), Some(b',' | b'}' | b']')) {
            self.at += digits;
            return Ok(Some(rest[..digits].iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))));
        }
        Ok(self.raw()?.parse().ok())
    }

    /// Returns the value in its original notation.
    pub(crate) fn raw(&mut self) -> Result<&'a str, ScanError> {
        self.skip_space();
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }

    /// Returns the elements of an array in their original notation; any other value has none.
    pub(crate) fn raw_elements(&mut self) -> Result<Vec<&'a str>, ScanError> {
        let mut raw_elements = Vec::new();
        self.elements(&mut |element| {
            raw_elements.push(element.raw()?);
            Ok(())
        })?;
        Ok(raw_elements)
    }

    /// Returns the byte range of the last read string between its quotes; `None` if it has escapes.
    pub(crate) fn range_of_last_string(&self, decoded: &str) -> Option<std::ops::Range<usize>> {
        let end = self.at.checked_sub(1)?;
        let start = end.checked_sub(decoded.len())?;
        let quoted = start.checked_sub(1).and_then(|at| self.text.as_bytes().get(at)) == Some(&b'"');
        (quoted && self.text.get(start..end) == Some(decoded)).then_some(start..end)
    }

    /// Returns the text between this position and a later one.
    pub(crate) fn text_until(&self, later: &Self) -> &'a str {
        &self.text[self.at..later.at]
    }

    /// Returns a key in its original notation. No relevant key has an escape.
    #[inline]
    fn key(&mut self) -> Result<&'a str, ScanError> {
        self.expect(b'"')?;
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let found = quote_or_backslash(rest).ok_or(self.error())?;
        if rest[found] == b'"' {
            self.at = start + found + 1;
        } else {
            self.at = start + found;
            self.skip_string()?;
        }
        Ok(&self.text[start..self.at - 1])
    }

    /// Skips a string after its opening quote.
    fn skip_string(&mut self) -> Result<(), ScanError> {
        let bytes = self.text.as_bytes();
        loop {
            let rest = bytes.get(self.at..).unwrap_or_default();
            let Some(found) = quote_or_backslash(rest) else { return Err(self.error()) };
            if rest[found] == b'"' {
                self.at += found + 1;
                return Ok(());
            }
            self.at += found + 2;
        }
    }

    /// Skips one value and checks its syntax.
    pub(crate) fn skip(&mut self) -> Result<(), ScanError> {
        self.skip_space();
        match self.peek() {
            b'"' => {
                self.at += 1;
                self.skip_string()
            }
            b'{' | b'[' => self.skip_container(),
            _ => self.skip_scalar(),
        }
    }

    fn skip_scalar(&mut self) -> Result<(), ScanError> {
        let rest = &self.text.as_bytes()[self.at..];
        let word: &[u8] = match rest.first() {
            Some(b'n') => b"null",
            Some(b't') => b"true",
            Some(b'f') => b"false",
            Some(b'-' | b'0'..=b'9') => {
                let number = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                self.at += rest.iter().take_while(number).count();
                return Ok(());
            }
            _ => return Err(self.error()),
        };
        if !rest.starts_with(word) {
            return Err(self.error());
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_container(&mut self) -> Result<(), ScanError> {
        // One bit for each open container: 1 for an object.
        let (mut kinds, mut depth) = (0_u128, 0_u32);
        loop {
            self.skip_space();
            // A value, or the end of an empty container.
            match self.peek() {
                open @ (b'{' | b'[') => {
                    if depth == MAX_DEPTH {
                        return Err(self.error());
                    }
                    self.at += 1;
                    (kinds, depth) = (kinds << 1 | u128::from(open == b'{'), depth + 1);
                    self.skip_space();
                    if self.peek() != if open == b'{' { b'}' } else { b']' } {
                        self.skip_key_if_object(kinds)?;
                        continue;
                    }
                }
                b'"' => {
                    self.at += 1;
                    self.skip_string()?;
                    self.skip_space();
                }
                _ => {
                    self.skip_scalar()?;
                    self.skip_space();
                }
            }
            // The text after a value.
            loop {
                match (self.peek(), kinds & 1) {
                    (b',', _) => {
                        self.at += 1;
                        self.skip_key_if_object(kinds)?;
                        break;
                    }
                    (b'}', 1) | (b']', 0) => {
                        self.at += 1;
                        (kinds, depth) = (kinds >> 1, depth - 1);
                        if depth == 0 {
                            return Ok(());
                        }
                        self.skip_space();
                    }
                    _ => return Err(self.error()),
                }
            }
        }
    }

    /// Skips a key and its colon if the innermost container is an object.
    fn skip_key_if_object(&mut self, kinds: u128) -> Result<(), ScanError> {
        if kinds & 1 == 1 {
            self.expect(b'"')?;
            self.skip_string()?;
            self.expect(b':')?;
        }
        Ok(())
    }

    /// Reads the rest of a string from its first escape on.
    fn unescape(&mut self, start: usize) -> Result<String, ScanError> {
        let bytes = self.text.as_bytes();
        let end = {
            let mut ahead = self.clone();
            ahead.skip_string()?;
            ahead.at - 1
        };
        let mut text = String::with_capacity(end - start);
        text.push_str(&self.text[start..self.at]);
        while self.at < end {
            // The current byte is a backslash, and the escaped character precedes the end.
            self.at += 2;
            let plain = match bytes[self.at - 1] {
                b'n' => '\n',
                b't' => '\t',
                b'r' => '\r',
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                escaped @ (b'"' | b'\\' | b'/') => char::from(escaped),
                b'u' => self.code_point(end)?,
                _ => return Err(self.error()),
            };
            text.push(plain);
            let run = memchr(b'\\', &bytes[self.at..end]).unwrap_or(end - self.at);
            text.push_str(&self.text[self.at..self.at + run]);
            self.at += run;
        }
        self.at = end + 1;
        Ok(text)
    }

    /// Reads the digits after `\u` and a following low surrogate. A lone surrogate becomes U+FFFD.
    fn code_point(&mut self, end: usize) -> Result<char, ScanError> {
        let first = self.digits(end)?;
        if (0xD800..0xDC00).contains(&first) && self.text[self.at..end].starts_with("\\u") {
            let mut ahead = Self { text: self.text, at: self.at + 2 };
            if let Ok(second @ 0xDC00..0xE000) = ahead.digits(end) {
                self.at = ahead.at;
                let point = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn digits(&mut self, end: usize) -> Result<u32, ScanError> {
        let digits = self.text.as_bytes().get(self.at..(self.at + 4).min(end)).unwrap_or_default();
        let mut value = 0;
        for &digit in digits {
            value = value << 4 | char::from(digit).to_digit(16).ok_or(self.error())?;
        }
        if digits.len() < 4 {
            return Err(self.error());
        }
        self.at += 4;
        Ok(value)
    }
}

#[cfg(test)]
mod tests;
