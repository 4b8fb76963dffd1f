//! Position in the text, lookahead and errors.

use super::document::PendingDocument;
use super::{UnexpandedWord, Unsupported};

/// Longest script that is read.
const MAX_BYTES: usize = 1 << 20;
/// Constructs and substitutions open at one time. The runner recurses as deep as the reader does.
const MAX_DEPTH: usize = 24;

pub(super) type Outcome<T> = Result<T, Unsupported>;

/// A position in a script, with the here-documents around it.
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    /// End of the text, or of the here-document that is being read.
    pub(super) end: usize,
    depth: usize,
    /// Here-documents whose bodies begin on the next line.
    pub(super) pending: Vec<PendingDocument>,
    pub(super) documents: Vec<Option<UnexpandedWord>>,
    /// A position with its line number, to count lines only once.
    counted: (usize, usize),
}

/// Rejects characters that a terminal does not show or that a shell reads in its own way.
pub(super) fn check_characters(text: &str) -> Outcome<()> {
    if text.len() > MAX_BYTES {
        return Err(Unsupported { span: 0..0, reason: "the script is longer than 1 MiB".to_owned() });
    }
    let is_suspect = |(_, character): &(usize, char)| character.is_control() && !matches!(character, '\t' | '\n');
    let Some((at, character)) = text.char_indices().find(is_suspect) else { return Ok(()) };
    let reason = match character {
        '\0' => "a NUL byte has no meaning in a script".to_owned(),
        '\r' => "a carriage return becomes part of a word".to_owned(),
        _ => format!("the control character U+{:04X} cannot be seen", u32::from(character)),
    };
    Err(Unsupported { span: at..at + character.len_utf8(), reason })
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, end: text.len(), depth: 0, pending: Vec::new(), documents: Vec::new(), counted: (0, 1) }
    }

    /// The bodies of all here-documents; `newline` has filled each of them.
    pub(super) fn into_documents(self) -> Vec<UnexpandedWord> {
        self.documents.into_iter().flatten().collect()
    }

    pub(super) fn byte(&self, ahead: usize) -> Option<u8> {
        let at = self.at + ahead;
        if at < self.end { self.text.as_bytes().get(at).copied() } else { None }
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..self.end]
    }

    pub(super) fn starts_with(&self, text: &str) -> bool {
        self.rest().as_bytes().starts_with(text.as_bytes())
    }

    /// Moves behind `text`. Returns `false` if the rest begins otherwise.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = self.starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Takes the next character.
    pub(super) fn character(&mut self) -> Option<char> {
        let character = self.rest().chars().next()?;
        self.at += character.len_utf8();
        Some(character)
    }

    /// Line number of a position, from 1. Cheap as long as positions grow.
    pub(super) fn line_of(&mut self, at: usize) -> usize {
        let (known, line) = self.counted;
        let (from, line) = if at >= known { (known, line) } else { (0, 1) };
        let newlines = self.text[from..at].matches('\n').count();
        self.counted = (at, line + newlines);
        line + newlines
    }

    /// An error about the text from `start` up to the current position, or the next character if that is empty.
    pub(super) fn unsupported<T>(&self, start: usize, reason: impl Into<String>) -> Outcome<T> {
        let next = self.rest().chars().next().map_or(0, char::len_utf8);
        let end = if self.at > start { self.at } else { start.max(self.at) + next };
        Err(Unsupported { span: start..end, reason: reason.into() })
    }

    /// An error about a span of the text.
    pub(super) fn unsupported_at<T>(span: std::ops::Range<usize>, reason: impl Into<String>) -> Outcome<T> {
        Err(Unsupported { span, reason: reason.into() })
    }

    /// Calls `read` one nesting level deeper.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.depth >= MAX_DEPTH {
            return self.unsupported(self.at, format!("commands are nested deeper than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub(super) fn is_continuation(&self) -> bool {
        self.starts_with("\\\n")
    }

    /// Moves behind a line continuation, if both sides are read the same without it.
    pub(super) fn continuation(&mut self) -> Outcome<()> {
        let start = self.at;
        let before = self.text[..start].bytes().next_back();
        while self.take("\\\n") {}
        match (Neighbor::of(before), Neighbor::of(self.byte(0))) {
            (Neighbor::Blank, _) | (_, Neighbor::Blank) => Ok(()),
            _ if self.joins(before) => {
                self.unsupported(start, "a line continuation joins two parts of a word or operator")
            }
            _ => Ok(()),
        }
    }

    /// `true` if the next byte would become part of the token that ends with `before`.
    fn joins(&self, before: Option<u8>) -> bool {
        let next = self.byte(0);
        match (Neighbor::of(before), Neighbor::of(next)) {
            (Neighbor::Word, Neighbor::Word) | (Neighbor::Operator, Neighbor::Operator) => true,
            (Neighbor::Operator, Neighbor::Word) => next == Some(b'-'),
            (Neighbor::Word, Neighbor::Operator) => {
                before == Some(b'$')
                    || matches!(next, Some(b'('))
                    || (before.is_some_and(|byte| byte.is_ascii_digit()) && matches!(next, Some(b'<' | b'>')))
            }
            _ => false,
        }
    }

    /// Moves behind spaces, tabs and line continuations.
    pub(super) fn skip_blanks(&mut self) -> Outcome<()> {
        loop {
            match self.byte(0) {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.is_continuation() => self.continuation()?,
                _ => return Ok(()),
            }
        }
    }

    /// Moves behind blanks, comments and newlines, reading the here-documents that begin there.
    pub(super) fn skip_lines(&mut self) -> Outcome<()> {
        loop {
            self.skip_blanks()?;
            match self.byte(0) {
                Some(b'#') => self.skip_comment(),
                Some(b'\n') => self.newline()?,
                _ => return Ok(()),
            }
        }
    }

    pub(super) fn skip_comment(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    /// The text up to the next blank, operator or line continuation, with its quotes: a reserved word only without them.
    pub(super) fn raw_word(&self) -> &'t str {
        let rest = self.rest();
        let is_end = |byte: u8| Neighbor::of(Some(byte)) != Neighbor::Word;
        let word = &rest[..rest.bytes().position(is_end).unwrap_or(rest.len())];
        // Reading on behind the word finds the continuation, and rejects it if it joins two words.
        if rest[word.len()..].starts_with('\n') { word.strip_suffix('\\').unwrap_or(word) } else { word }
    }

    /// Moves behind a reserved word. Returns `false` for any other word.
    pub(super) fn take_reserved(&mut self, word: &str) -> bool {
        let found = self.raw_word() == word;
        if found {
            self.at += word.len();
        }
        found
    }

    /// Takes the name of a variable; empty if there is none.
    pub(super) fn name(&mut self) -> &'t str {
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        if rest.starts_with(|first: char| first.is_ascii_digit()) {
            return "";
        }
        self.at += length;
        &rest[..length]
    }
}

/// Kinds of bytes, as far as they end a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Neighbor {
    Blank,
    Operator,
    Word,
}

impl Neighbor {
    /// The beginning and the end of the text count as blanks.
    fn of(byte: Option<u8>) -> Self {
        match byte {
            None | Some(b' ' | b'\t' | b'\n') => Self::Blank,
            Some(b'|' | b'&' | b';' | b'<' | b'>' | b'(' | b')') => Self::Operator,
            Some(_) => Self::Word,
        }
    }
}
