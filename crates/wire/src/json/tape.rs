//! The index of a JSON text: where every value begins and ends, in the order in which they come.
//!
//! One flat list instead of a tree of allocations: a value is followed by what is in it, and says where its successor is. Nothing is
//! decoded, so that a megabyte costs little more than finding the quotes in it. Parsing uses no stack of the machine, so that
//! no nesting overflows it.

use memchr::memchr2;
use thiserror::Error;

/// Deeper than anything that is meant to be read.
pub(super) const DEEPEST: usize = 1_024;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number, however it is spelled.
    Number,
    /// A string.
    String,
    /// A list.
    Array,
    /// Members by name.
    Object,
}

impl Kind {
    /// What people call it, with its article.
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

impl Kind {
    /// Whether nothing is in it that could be edited by itself.
    pub fn is_leaf(self) -> bool {
        !matches!(self, Self::Array | Self::Object)
    }
}

/// Why a text is not JSON, or not to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{what} at byte {position}")]
pub struct ParseError {
    /// The byte.
    pub position: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

/// A value's place in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) start: u32,
    pub(super) end: u32,
    /// The node after this one and everything in it.
    pub(super) next: u32,
    /// The container that it is in; itself, if it is in none.
    pub(super) parent: u32,
    /// Its name with the quotes, if it is a member; otherwise empty.
    pub(super) key_start: u32,
    pub(super) key_end: u32,
    pub(super) kind: Kind,
}

/// Indexes a text.
pub(super) fn index(bytes: &[u8]) -> Result<Vec<Node>, ParseError> {
    if let Err(error) = std::str::from_utf8(bytes) {
        return Err(ParseError { position: error.valid_up_to(), what: "not UTF-8" });
    }
    if u32::try_from(bytes.len()).is_err() {
        return Err(ParseError { position: 0, what: "too long a text" });
    }
    Parser { bytes, position: 0, nodes: Vec::with_capacity(bytes.len() / 64 + 8), open: Vec::new() }.run()
}

/// How many containers are around the innermost value.
pub(super) fn depth(nodes: &[Node]) -> usize {
    let mut depths: Vec<u32> = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let outer = if node.parent as usize == index { 0 } else { depths[node.parent as usize] + 1 };
        depths.push(outer);
    }
    depths.into_iter().max().unwrap_or(0) as usize
}

struct Parser<'b> {
    bytes: &'b [u8],
    position: usize,
    nodes: Vec<Node>,
    /// The containers that are not closed yet.
    open: Vec<u32>,
}

impl Parser<'_> {
    fn run(mut self) -> Result<Vec<Node>, ParseError> {
        self.skip_space();
        let mut key = (0, 0);
        loop {
            if self.value(key)? {
                // A container with something in it: on to that.
                key = self.first()?;
                continue;
            }
            loop {
                self.skip_space();
                let Some(&container) = self.open.last() else {
                    return if self.position == self.bytes.len() {
                        Ok(self.nodes)
                    } else {
                        Err(self.wrong("something after the end"))
                    };
                };
                let object = self.nodes[container as usize].kind == Kind::Object;
                match self.peek() {
                    Some(b',') => {
                        self.position += 1;
                        self.skip_space();
                        key = if object { self.key()? } else { (0, 0) };
                        break;
                    }
                    Some(b'}') if object => self.close(),
                    Some(b']') if !object => self.close(),
                    _ => return Err(self.wrong(if object { "neither `,` nor `}`" } else { "neither `,` nor `]`" })),
                }
            }
        }
    }

    fn wrong(&self, what: &'static str) -> ParseError {
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

    /// Reads a value, or the beginning of a container that is not empty: `true` then.
    fn value(&mut self, (key_start, key_end): (u32, u32)) -> Result<bool, ParseError> {
        let start = self.position as u32;
        let own = self.nodes.len() as u32;
        let parent = self.open.last().copied().unwrap_or(own);
        let kind = match self.peek() {
            Some(b'"') => {
                self.string()?;
                Kind::String
            }
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                Kind::Number
            }
            Some(b't') => self.literal(b"true", Kind::Bool)?,
            Some(b'f') => self.literal(b"false", Kind::Bool)?,
            Some(b'n') => self.literal(b"null", Kind::Null)?,
            Some(_) => return Err(self.wrong("no value")),
            None => return Err(self.wrong("the end where a value should be")),
        };
        self.nodes.push(Node { start, end: self.position as u32, next: own + 1, parent, key_start, key_end, kind });
        if kind.is_leaf() {
            return Ok(false);
        }
        if self.open.len() == DEEPEST {
            return Err(self.wrong("too deep a nesting"));
        }
        self.open.push(own);
        self.position += 1;
        self.skip_space();
        if self.peek() == Some(if kind == Kind::Object { b'}' } else { b']' }) {
            self.close();
            return Ok(false);
        }
        Ok(true)
    }

    /// Goes to the first value of the container that was opened last.
    fn first(&mut self) -> Result<(u32, u32), ParseError> {
        let object = self.open.last().is_some_and(|open| self.nodes[*open as usize].kind == Kind::Object);
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

    /// Reads a name and the colon after it.
    fn key(&mut self) -> Result<(u32, u32), ParseError> {
        let start = self.position as u32;
        if self.peek() != Some(b'"') {
            return Err(self.wrong("no name in quotes"));
        }
        self.string()?;
        let end = self.position as u32;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.wrong("no `:` after a name"));
        }
        self.position += 1;
        self.skip_space();
        Ok((start, end))
    }

    fn string(&mut self) -> Result<(), ParseError> {
        self.position += 1;
        loop {
            let rest = &self.bytes[self.position..];
            let found = memchr2(b'"', b'\\', rest).ok_or_else(|| self.wrong("a string without an end"))?;
            // All of them at once, which the compiler makes fast; which one is looked for only if there is one.
            if rest[..found].iter().fold(u8::MAX, |least, byte| least.min(*byte)) < 0x20 {
                let at = rest.iter().position(|byte| *byte < 0x20).unwrap_or(0);
                self.position += at;
                return Err(self.wrong("a control character in a string"));
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
                        return Err(self.wrong("no four digits after `\\u`"));
                    }
                    self.position += 5;
                }
                _ => return Err(self.wrong("an escape that JSON does not have")),
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
        if self.position == start { Err(self.wrong("no digit in a number")) } else { Ok(()) }
    }

    fn literal(&mut self, word: &[u8], kind: Kind) -> Result<Kind, ParseError> {
        if !self.bytes[self.position..].starts_with(word) {
            return Err(self.wrong("no value"));
        }
        self.position += word.len();
        Ok(kind)
    }
}
