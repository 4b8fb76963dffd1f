//! The index of a JSON text: the byte ranges of all values, in order.
//!
//! The index is one flat list instead of a tree of allocations. A value is followed by its contents and stores the
//! index of its successor. Nothing is decoded, so indexing costs little more than finding the quotes. The parser does
//! not recurse, so deep nesting cannot overflow the stack.

use memchr::memchr2;
use thiserror::Error;

/// Maximum nesting of containers.
pub(super) const MAX_DEPTH: usize = 1_024;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    Null,
    Bool,
    /// A number in any notation.
    Number,
    String,
    Array,
    Object,
}

impl JsonKind {
    /// Returns the name of the type with its article.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a text",
            Self::Array => "a list",
            Self::Object => "an object",
        }
    }
}

impl JsonKind {
    /// `true` if the value contains no other values.
    pub fn is_leaf(self) -> bool {
        !matches!(self, Self::Array | Self::Object)
    }
}

/// The reason why a text is not valid JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{what} at byte {position}")]
pub struct ParseError {
    /// Offset of the error in bytes.
    pub position: usize,
    /// Description of the error.
    pub what: &'static str,
}

/// The position of a value in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonNode {
    pub(super) start: u32,
    pub(super) end: u32,
    /// Index of the next value after this one and its contents.
    pub(super) next: u32,
    /// Index of the container; the value's own index for the root.
    pub(super) parent: u32,
    /// Byte range of the member name with quotes; empty if the value is not a member.
    pub(super) key_start: u32,
    pub(super) key_end: u32,
    pub(super) kind: JsonKind,
}

/// Builds the index of a text.
pub(super) fn index(bytes: &[u8]) -> Result<Vec<JsonNode>, ParseError> {
    if let Err(error) = std::str::from_utf8(bytes) {
        return Err(ParseError { position: error.valid_up_to(), what: "not UTF-8" });
    }
    if u32::try_from(bytes.len()).is_err() {
        return Err(ParseError { position: 0, what: "too long a text" });
    }
    TapeBuilder { bytes, position: 0, nodes: Vec::with_capacity(bytes.len() / 64 + 8), open: Vec::new() }.run()
}

/// Returns the number of containers around the innermost value.
pub(super) fn depth(nodes: &[JsonNode]) -> usize {
    let mut depths: Vec<u32> = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let outer = if node.parent as usize == index { 0 } else { depths[node.parent as usize] + 1 };
        depths.push(outer);
    }
    depths.into_iter().max().unwrap_or(0) as usize
}

struct TapeBuilder<'b> {
    bytes: &'b [u8],
    position: usize,
    nodes: Vec<JsonNode>,
    /// Containers that are not closed yet.
    open: Vec<u32>,
}

impl TapeBuilder<'_> {
    fn run(mut self) -> Result<Vec<JsonNode>, ParseError> {
        self.skip_space();
        let mut key = (0, 0);
        loop {
            if self.value(key)? {
                // Continue with the first value of the opened container.
                key = self.first_key()?;
                continue;
            }
            loop {
                self.skip_space();
                let Some(&container) = self.open.last() else {
                    return if self.position == self.bytes.len() {
                        Ok(self.nodes)
                    } else {
                        Err(self.error("something after the end"))
                    };
                };
                let object = self.nodes[container as usize].kind == JsonKind::Object;
                match self.peek() {
                    Some(b',') => {
                        self.position += 1;
                        self.skip_space();
                        key = if object { self.key()? } else { (0, 0) };
                        break;
                    }
                    Some(b'}') if object => self.close(),
                    Some(b']') if !object => self.close(),
                    _ => return Err(self.error(if object { "neither `,` nor `}`" } else { "neither `,` nor `]`" })),
                }
            }
        }
    }

    fn error(&self, what: &'static str) -> ParseError {
        ParseError { position: self.position, what }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.position += 1;
        }
    }

    /// Reads a value. Returns `true` if it is the start of a container that is not empty.
    fn value(&mut self, (key_start, key_end): (u32, u32)) -> Result<bool, ParseError> {
        let start = self.position as u32;
        let own = self.nodes.len() as u32;
        let parent = self.open.last().copied().unwrap_or(own);
        let kind = match self.peek() {
            Some(b'"') => {
                self.string()?;
                JsonKind::String
            }
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                JsonKind::Number
            }
            Some(b't') => self.literal(b"true", JsonKind::Bool)?,
            Some(b'f') => self.literal(b"false", JsonKind::Bool)?,
            Some(b'n') => self.literal(b"null", JsonKind::Null)?,
            Some(_) => return Err(self.error("no value")),
            None => return Err(self.error("the end where a value should be")),
        };
        self.nodes.push(JsonNode { start, end: self.position as u32, next: own + 1, parent, key_start, key_end, kind });
        if kind.is_leaf() {
            return Ok(false);
        }
        if self.open.len() == MAX_DEPTH {
            return Err(self.error("too deep a nesting"));
        }
        self.open.push(own);
        self.position += 1;
        self.skip_space();
        if self.peek() == Some(if kind == JsonKind::Object { b'}' } else { b']' }) {
            self.close();
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads up to the first value of the container opened last.
    fn first_key(&mut self) -> Result<(u32, u32), ParseError> {
        let object = self.open.last().is_some_and(|open| self.nodes[*open as usize].kind == JsonKind::Object);
        if object { self.key() } else { Ok((0, 0)) }
    }

    fn close(&mut self) {
        self.position += 1;
        if let Some(open) = self.open.pop() {
            let next = self.nodes.len() as u32;
            let node = &mut self.nodes[open as usize];
            (node.end, node.next) = (self.position as u32, next);
        }
    }

    /// Reads a member name and its colon.
    fn key(&mut self) -> Result<(u32, u32), ParseError> {
        let start = self.position as u32;
        if self.peek() != Some(b'"') {
            return Err(self.error("no name in quotes"));
        }
        self.string()?;
        let end = self.position as u32;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.error("no `:` after a name"));
        }
        self.position += 1;
        self.skip_space();
        Ok((start, end))
    }

    fn string(&mut self) -> Result<(), ParseError> {
        self.position += 1;
        loop {
            let rest = &self.bytes[self.position..];
            let found = memchr2(b'"', b'\\', rest).ok_or_else(|| self.error("a string without an end"))?;
            // Check all bytes at once, which the compiler vectorizes. Locate the control character only if there is
            // one.
            if rest[..found].iter().fold(u8::MAX, |least, byte| least.min(*byte)) < 0x20 {
                let at = rest.iter().position(|byte| *byte < 0x20).unwrap_or(0);
                self.position += at;
                return Err(self.error("a control character in a string"));
            }
            self.position += found + 1;
            if rest[found] == b'"' {
                return Ok(());
            }
            match self.peek() {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.position += 1,
                Some(b'u') => {
                    let digits = self.bytes.get(self.position + 1..self.position + 5);
                    if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                        return Err(self.error("no four digits after `\\u`"));
                    }
                    self.position += 5;
                }
                _ => return Err(self.error("an escape that JSON does not have")),
            }
        }
    }

    fn number(&mut self) -> Result<(), ParseError> {
        if self.peek() == Some(b'-') {
            self.position += 1;
        }
        if self.peek() == Some(b'0') {
            self.position += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.position += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.position += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.position += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), ParseError> {
        let start = self.position;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.position += 1;
        }
        if self.position == start { Err(self.error("no digit in a number")) } else { Ok(()) }
    }

    fn literal(&mut self, word: &[u8], kind: JsonKind) -> Result<JsonKind, ParseError> {
        if !self.bytes[self.position..].starts_with(word) {
            return Err(self.error("no value"));
        }
        self.position += word.len();
        Ok(kind)
    }
}
