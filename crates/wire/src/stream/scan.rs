//! One pass over the JSON of an event, without a tree.
//!
//! A stream is very many small objects of which a few members matter. [`Scan`] walks them in the order they come: the caller looks at a
//! key and reads, enters or skips its value. Strings without escapes are borrowed. Nothing recurses, whatever the nesting.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// The deepest nesting that is walked.
const DEPTH: u32 = 128;

/// The JSON is broken at a byte, or nested too deeply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Where.
    pub(crate) at: usize,
}

/// A place in a JSON text.
#[derive(Clone, Debug)]
pub(crate) struct Scan<'a> {
    text: &'a str,
    at: usize,
}

/// Walks the members of an object that is the whole text; another value has none.
pub(crate) fn members<'a>(
    text: &'a str,
    mut visit: impl FnMut(&'a str, &mut Scan<'a>) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let mut scan = Scan { text, at: 0 };
    scan.members(&mut visit)?;
    scan.space();
    if scan.at == text.len() { Ok(()) } else { Err(scan.broken()) }
}

/// Whether an object that is the whole text has one of these members; where the text is broken, if it is.
pub(crate) fn has_any(text: &str, names: &[&str]) -> Result<bool, u64> {
    let mut found = false;
    let walked = members(text, |name, value| {
        found |= names.contains(&name);
        value.skip()
    });
    walked.map(|()| found).map_err(|broken| broken.at as u64)
}

/// Walks the elements of an array that is the whole text; another value has none.
pub(crate) fn elements<'a>(
    text: &'a str,
    mut visit: impl FnMut(&mut Scan<'a>) -> Result<(), Broken>,
) -> Result<(), Broken> {
    Scan { text, at: 0 }.elements(&mut visit)
}

/// Where the first quote or backslash is.
///
/// Keys and most strings are shorter than what a call of memchr pays off for, so eight bytes are looked at in one word, a few times.
#[inline]
fn quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // The lowest high bit that is set marks the first byte that is zero.
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

impl<'a> Scan<'a> {
    fn broken(&self) -> Broken {
        Broken { at: self.at }
    }

    #[inline]
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn space(&mut self) {
        // One comparison where there is none, as nearly everywhere.
        while self.peek() <= b' ' && matches!(self.peek(), b' ' | b'\n' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Broken> {
        if self.peek() != byte {
            self.space();
            if self.peek() != byte {
                return Err(self.broken());
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Walks an object's members; skips any other value.
    pub(crate) fn members(
        &mut self,
        visit: &mut impl FnMut(&'a str, &mut Self) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        self.space();
        if self.peek() != b'{' {
            return self.skip();
        }
        self.at += 1;
        self.space();
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.key()?;
            self.expect(b':')?;
            visit(key, self)?;
            self.space();
            match self.peek() {
                b',' => self.at += 1,
                b'}' => break,
                _ => return Err(self.broken()),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Walks an array's elements; skips any other value.
    pub(crate) fn elements(&mut self, visit: &mut impl FnMut(&mut Self) -> Result<(), Broken>) -> Result<(), Broken> {
        self.space();
        if self.peek() != b'[' {
            return self.skip();
        }
        self.at += 1;
        self.space();
        if self.peek() == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            visit(self)?;
            self.space();
            match self.peek() {
                b',' => self.at += 1,
                b']' => break,
                _ => return Err(self.broken()),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a string; `None`, and past it, if the value is something else.
    pub(crate) fn string(&mut self) -> Result<Option<Cow<'a, str>>, Broken> {
        self.space();
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
            None => Err(self.broken()),
        }
    }

    /// Reads a whole number that is not negative; `None`, and past it, if the value is something else.
    pub(crate) fn number(&mut self) -> Result<Option<u64>, Broken> {
        self.space();
        let rest = &self.text.as_bytes()[self.at..];
        // Nearly all numbers are small and plain.
        let digits = rest.iter().take(18).take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && matches!(rest.get(digits), Some(b',' | b'}' | b']')) {
            self.at += digits;
            return Ok(Some(rest[..digits].iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))));
        }
        Ok(self.raw()?.parse().ok())
    }

    /// The value as it is written.
    pub(crate) fn raw(&mut self) -> Result<&'a str, Broken> {
        self.space();
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }

    /// The elements of an array, each as it is written; another value has none.
    pub(crate) fn raws(&mut self) -> Result<Vec<&'a str>, Broken> {
        let mut raws = Vec::new();
        self.elements(&mut |element| {
            raws.push(element.raw()?);
            Ok(())
        })?;
        Ok(raws)
    }

    /// The bytes of the string that was read last, between its quotes. `None` if it was written with escapes.
    pub(crate) fn range_of_last_string(&self, decoded: &str) -> Option<std::ops::Range<usize>> {
        let end = self.at.checked_sub(1)?;
        let start = end.checked_sub(decoded.len())?;
        let quoted = start.checked_sub(1).and_then(|at| self.text.as_bytes().get(at)) == Some(&b'"');
        (quoted && self.text.get(start..end) == Some(decoded)).then_some(start..end)
    }

    /// What lies between this place and a later one.
    pub(crate) fn until(&self, later: &Self) -> &'a str {
        &self.text[self.at..later.at]
    }

    /// A key as it is written between its quotes: none that is looked for has an escape.
    #[inline]
    fn key(&mut self) -> Result<&'a str, Broken> {
        self.expect(b'"')?;
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let found = quote_or_backslash(rest).ok_or(self.broken())?;
        if rest[found] == b'"' {
            self.at = start + found + 1;
        } else {
            self.at = start + found;
            self.skip_string()?;
        }
        Ok(&self.text[start..self.at - 1])
    }

    /// Goes past a string whose opening quote is behind.
    fn skip_string(&mut self) -> Result<(), Broken> {
        let bytes = self.text.as_bytes();
        loop {
            let rest = bytes.get(self.at..).unwrap_or_default();
            let Some(found) = quote_or_backslash(rest) else { return Err(self.broken()) };
            if rest[found] == b'"' {
                self.at += found + 1;
                return Ok(());
            }
            self.at += found + 2;
        }
    }

    /// Goes past one value, checking its structure.
    pub(crate) fn skip(&mut self) -> Result<(), Broken> {
        self.space();
        match self.peek() {
            b'"' => {
                self.at += 1;
                self.skip_string()
            }
            b'{' | b'[' => self.skip_container(),
            _ => self.skip_word(),
        }
    }

    fn skip_word(&mut self) -> Result<(), Broken> {
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
            _ => return Err(self.broken()),
        };
        if !rest.starts_with(word) {
            return Err(self.broken());
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_container(&mut self) -> Result<(), Broken> {
        // One bit for each open container: whether it is an object.
        let (mut kinds, mut depth) = (0_u128, 0_u32);
        loop {
            self.space();
            // A value, or the end of an empty container.
            match self.peek() {
                open @ (b'{' | b'[') => {
                    if depth == DEPTH {
                        return Err(self.broken());
                    }
                    self.at += 1;
                    (kinds, depth) = (kinds << 1 | u128::from(open == b'{'), depth + 1);
                    self.space();
                    if self.peek() != if open == b'{' { b'}' } else { b']' } {
                        self.key_if(kinds)?;
                        continue;
                    }
                }
                b'"' => {
                    self.at += 1;
                    self.skip_string()?;
                    self.space();
                }
                _ => {
                    self.skip_word()?;
                    self.space();
                }
            }
            // What comes after a value.
            loop {
                match (self.peek(), kinds & 1) {
                    (b',', _) => {
                        self.at += 1;
                        self.key_if(kinds)?;
                        break;
                    }
                    (b'}', 1) | (b']', 0) => {
                        self.at += 1;
                        (kinds, depth) = (kinds >> 1, depth - 1);
                        if depth == 0 {
                            return Ok(());
                        }
                        self.space();
                    }
                    _ => return Err(self.broken()),
                }
            }
        }
    }

    /// Goes past a key and its colon, if the innermost container is an object.
    fn key_if(&mut self, kinds: u128) -> Result<(), Broken> {
        if kinds & 1 == 1 {
            self.expect(b'"')?;
            self.skip_string()?;
            self.expect(b':')?;
        }
        Ok(())
    }

    /// Reads the rest of a string that has escapes; the place is its first backslash.
    fn unescape(&mut self, start: usize) -> Result<String, Broken> {
        let bytes = self.text.as_bytes();
        let end = {
            let mut ahead = self.clone();
            ahead.skip_string()?;
            ahead.at - 1
        };
        let mut text = String::with_capacity(end - start);
        text.push_str(&self.text[start..self.at]);
        while self.at < end {
            // Here is a backslash, and what it escapes lies before the end.
            self.at += 2;
            let plain = match bytes[self.at - 1] {
                b'n' => '\n',
                b't' => '\t',
                b'r' => '\r',
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                escaped @ (b'"' | b'\\' | b'/') => char::from(escaped),
                b'u' => self.code_point(end)?,
                _ => return Err(self.broken()),
            };
            text.push(plain);
            let run = memchr(b'\\', &bytes[self.at..end]).unwrap_or(end - self.at);
            text.push_str(&self.text[self.at..self.at + run]);
            self.at += run;
        }
        self.at = end + 1;
        Ok(text)
    }

    /// Reads the digits after `\u`, and the other half of a surrogate pair. A lone half becomes U+FFFD.
    fn code_point(&mut self, end: usize) -> Result<char, Broken> {
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

    fn digits(&mut self, end: usize) -> Result<u32, Broken> {
        let digits = self.text.as_bytes().get(self.at..(self.at + 4).min(end)).unwrap_or_default();
        let mut value = 0;
        for &digit in digits {
            value = value << 4 | char::from(digit).to_digit(16).ok_or(self.broken())?;
        }
        if digits.len() < 4 {
            return Err(self.broken());
        }
        self.at += 4;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Option<Cow<'_, str>> {
        Scan { text, at: 0 }.string().ok().flatten()
    }

    fn valid(text: &str) -> bool {
        let mut scan = Scan { text, at: 0 };
        scan.skip().is_ok() && {
            scan.space();
            scan.at == text.len()
        }
    }

    #[test]
    fn structure_is_checked_while_skipping() {
        for text in ["{}", "[]", r#"{"a":[1,{"b":null},"]"],"c":-1.5e3}"#, " [ true , false ] ", r#""\"""#, "[[],{}]"] {
            assert!(valid(text), "{text}");
        }
        for text in
            ["", "{", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "[1}", "{\"a\":1,}", "\"", "\"\\", "nul", "[1 2]", "]"]
        {
            assert!(!valid(text), "{text}");
        }
        assert!(valid(&("[".repeat(128) + &"]".repeat(128))));
        assert!(!valid(&("[".repeat(129) + &"]".repeat(129))));
    }

    #[test]
    fn a_quote_is_found_wherever_it_is() {
        for length in 0..70 {
            for at in 0..=length {
                let mut bytes = vec![0xA2; length];
                assert_eq!(quote_or_backslash(&bytes), None);
                bytes.extend_from_slice(b"\"\\\"");
                assert_eq!(quote_or_backslash(&bytes), Some(length));
                bytes[at] = b'\\';
                assert_eq!(quote_or_backslash(&bytes), Some(at));
            }
        }
    }

    #[test]
    fn strings_are_what_serde_says_they_are() {
        for text in [r#""""#, r#""plain""#, r#""a\nb\t\"\\\/\b\f\r""#, r#""\u00e9\ud83d\ude00x""#, "\"é\\u00e9é\""] {
            assert_eq!(string(text).map(Cow::into_owned), serde_json::from_str(text).ok(), "{text}");
        }
        assert!(matches!(string("\"plain\""), Some(Cow::Borrowed("plain"))));
        assert_eq!(string(r#""\ud83dx""#).as_deref(), Some("\u{FFFD}x"));
        assert_eq!(string(r#""\ud83d\u0041""#).as_deref(), Some("\u{FFFD}A"));
        for text in [r#""\u12"#, r#""\u12""#, r#""\x""#, r#""\"#, "1"] {
            assert_eq!(string(text), None, "{text}");
        }
    }
}
