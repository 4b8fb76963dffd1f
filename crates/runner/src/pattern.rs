//! Patterns of `case`, `[[` and file names.

use crate::fields::Field;

/// A compiled pattern.
pub(crate) struct Pattern {
    tokens: Vec<Token>,
}

enum Token {
    /// One character, or one byte that belongs to none.
    Exactly(Vec<u8>),
    One,
    Any,
    Class(Class),
}

struct Class {
    is_negated: bool,
    items: Vec<Item>,
}

enum Item {
    Range(u32, u32),
    Named(fn(char) -> bool),
}

impl Pattern {
    /// Compiles the active signs of a field; quoted characters stand for themselves.
    pub(crate) fn new(field: &Field) -> Self {
        let mut tokens = Vec::new();
        let mut at = 0;
        while at < field.bytes.len() {
            let is_active = field.active[at];
            match field.bytes[at] {
                b'*' if is_active => {
                    at += 1;
                    if !matches!(tokens.last(), Some(Token::Any)) {
                        tokens.push(Token::Any);
                    }
                }
                b'?' if is_active => {
                    at += 1;
                    tokens.push(Token::One);
                }
                b'[' if is_active => match class(field, at) {
                    Some((class, end)) => {
                        at = end;
                        tokens.push(Token::Class(class));
                    }
                    None => tokens.push(exactly(&field.bytes, &mut at)),
                },
                b'\\' if is_active && at + 1 < field.bytes.len() => {
                    at += 1;
                    tokens.push(exactly(&field.bytes, &mut at));
                }
                _ => tokens.push(exactly(&field.bytes, &mut at)),
            }
        }
        Self { tokens }
    }

    /// `true` if the pattern matches the whole text.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        let (mut token, mut at) = (0, 0);
        // Where to go on when the rest does not match: behind the last `*`, one character further.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match self.tokens.get(token) {
                Some(Token::Any) => {
                    retry = Some((token + 1, at));
                    token += 1;
                    continue;
                }
                Some(single) if at < text.len() => {
                    if let Some(length) = single.matches_at(&text[at..]) {
                        token += 1;
                        at += length;
                        continue;
                    }
                }
                None if at == text.len() => return true,
                _ => {}
            }
            match retry {
                Some((behind, from)) if from < text.len() => {
                    let next = from + character(&text[from..]).1;
                    retry = Some((behind, next));
                    (token, at) = (behind, next);
                }
                _ => return false,
            }
        }
    }

    /// `true` if the pattern begins with this byte as literal text.
    pub(crate) fn begins_with(&self, byte: u8) -> bool {
        matches!(self.tokens.first(), Some(Token::Exactly(bytes)) if bytes.first() == Some(&byte))
    }
}

impl Token {
    /// Length of what it matches at the beginning of a text.
    fn matches_at(&self, text: &[u8]) -> Option<usize> {
        let (value, length) = character(text);
        match self {
            Self::Exactly(bytes) => text.starts_with(bytes).then_some(bytes.len()),
            Self::One => Some(length),
            Self::Any => None,
            Self::Class(class) => class.contains(value).then_some(length),
        }
    }
}

impl Class {
    fn contains(&self, value: u32) -> bool {
        let is_listed = self.items.iter().any(|item| match item {
            Item::Range(first, last) => (*first..=*last).contains(&value),
            Item::Named(is_member) => char::from_u32(value).is_some_and(is_member),
        });
        is_listed != self.is_negated
    }
}

/// The first character of a text and its length; a byte that belongs to no character has a value above all characters.
fn character(text: &[u8]) -> (u32, usize) {
    let window = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(window) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(&window[..error.valid_up_to()]).unwrap_or_default(),
    };
    match valid.chars().next() {
        Some(character) => (u32::from(character), character.len_utf8()),
        None => (0x11_0000 + text.first().map_or(0, |byte| u32::from(*byte)), 1),
    }
}

fn exactly(bytes: &[u8], at: &mut usize) -> Token {
    let length = character(&bytes[*at..]).1;
    let token = Token::Exactly(bytes[*at..*at + length].to_vec());
    *at += length;
    token
}

/// Reads a bracket expression; `None` if it has no end.
fn class(field: &Field, start: usize) -> Option<(Class, usize)> {
    let bytes = &field.bytes;
    let mut at = start + 1;
    let is_negated = matches!(bytes.get(at), Some(b'!' | b'^')) && field.active[at];
    at += usize::from(is_negated);
    let first = at;
    let mut items = Vec::new();
    loop {
        let byte = *bytes.get(at)?;
        if byte == b']' && field.active[at] && at > first {
            return Some((Class { is_negated, items }, at + 1));
        }
        if byte == b'/' {
            return None;
        }
        if bytes[at..].starts_with(b"[:")
            && let Some(length) = bytes[at + 2..].windows(2).position(|pair| pair == b":]")
        {
            items.push(Item::Named(named(&bytes[at + 2..at + 2 + length])?));
            at += length + 4;
            continue;
        }
        let (low, length) = member(field, &mut at)?;
        at += length;
        let is_range =
            bytes.get(at) == Some(&b'-') && field.active[at] && bytes.get(at + 1).is_some_and(|byte| *byte != b']');
        if is_range {
            at += 1;
            let (high, length) = member(field, &mut at)?;
            at += length;
            items.push(Item::Range(low, high));
        } else {
            items.push(Item::Range(low, low));
        }
    }
}

/// A character of a bracket expression, behind the backslash that may quote it.
fn member(field: &Field, at: &mut usize) -> Option<(u32, usize)> {
    if field.bytes.get(*at) == Some(&b'\\') && field.active[*at] {
        *at += 1;
    }
    let rest = field.bytes.get(*at..).filter(|rest| !rest.is_empty())?;
    Some(character(rest))
}

fn named(name: &[u8]) -> Option<fn(char) -> bool> {
    Some(match name {
        b"alpha" => |character| character.is_ascii_alphabetic(),
        b"digit" => |character| character.is_ascii_digit(),
        b"alnum" => |character| character.is_ascii_alphanumeric(),
        b"upper" => |character| character.is_ascii_uppercase(),
        b"lower" => |character| character.is_ascii_lowercase(),
        b"space" => |character| character.is_ascii_whitespace() || character == '\u{b}',
        b"blank" => |character| matches!(character, ' ' | '\t'),
        b"punct" => |character| character.is_ascii_punctuation(),
        b"xdigit" => |character| character.is_ascii_hexdigit(),
        b"cntrl" => |character| character.is_ascii_control(),
        b"graph" => |character| character.is_ascii_graphic(),
        b"print" => |character| character.is_ascii_graphic() || character == ' ',
        b"word" => |character| character.is_ascii_alphanumeric() || character == '_',
        _ => return None,
    })
}
