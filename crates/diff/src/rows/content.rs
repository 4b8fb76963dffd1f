//! The text of a line as it can be shown, and the way back to its bytes.

use std::ops::Range;

use crate::lines::LineBreak;
use crate::text_format::Encoding;

/// A longer line gets no word spans. It is data that a person does not read by the word.
const MAX_SPAN_LINE_BYTES: usize = 4096;

/// End of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineTerminator {
    /// The line is the last one and has no break.
    None,
    Lf,
    /// `\r\n`. The `\r` is not part of the text.
    CrLf,
}

/// A line's text. All ranges count bytes of `text` and lie between characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowContent {
    /// Decoded, without the line break, with unprintable characters escaped. Tabs stay.
    pub text: String,
    pub terminator: LineTerminator,
    /// Parts of a changed line that its counterpart lacks, in order. Empty if the whole line is new or gone.
    pub words: Vec<Range<usize>>,
    /// Escaped parts of `text`, in order.
    pub escapes: Vec<Escape>,
}

/// A part of a text that stands for characters that cannot be seen, or for bytes that are no characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escape {
    pub span: Range<usize>,
    pub original: EscapedOriginal,
}

/// Source of an escaped part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EscapedOriginal {
    Text(String),
    /// Bytes of the file that its encoding gives no meaning.
    Bytes(Vec<u8>),
}

impl RowContent {
    /// A text that is not a line of a file.
    pub(super) fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), terminator: LineTerminator::None, words: Vec::new(), escapes: Vec::new() }
    }

    /// Escapes a text of one line.
    pub fn of_text(line: &str) -> Self {
        Self::of_line(line.as_bytes(), LineBreak::Byte, Encoding::Utf8, &[])
    }

    /// Decodes a line and escapes it. `words` are byte ranges of the line.
    pub(super) fn of_line(line: &[u8], line_break: LineBreak, encoding: Encoding, words: &[Range<usize>]) -> Self {
        let (body, terminator) = split_terminator(line, line_break);
        let words = if body.len() > MAX_SPAN_LINE_BYTES { &[] } else { words };
        let narrow = line_break == LineBreak::Byte;
        if narrow && body.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
            let clip = |word: &Range<usize>| word.start..word.end.min(body.len());
            let words = words.iter().map(clip).filter(|word| word.start < word.end).collect();
            let text = String::from_utf8_lossy(body).into_owned();
            return Self { text, terminator, words, escapes: Vec::new() };
        }
        let mut writer = ContentWriter::new(Self { terminator, ..Self::plain("") }, body.len(), words);
        decode(body, encoding, |bytes, character| writer.write(bytes, character));
        writer.content
    }

    /// Returns the line's bytes as they are in a file of this encoding, line break included.
    pub fn source(&self, encoding: Encoding) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.text.len() + 2);
        // Text that was decoded from this encoding can be encoded again.
        let encode = |text: &str, bytes: &mut Vec<u8>| match encoding.encode(text) {
            Some(encoded) => bytes.extend_from_slice(&encoded),
            None => bytes.extend_from_slice(text.as_bytes()),
        };
        let mut at = 0;
        for escape in &self.escapes {
            encode(&self.text[at..escape.span.start], &mut bytes);
            match &escape.original {
                EscapedOriginal::Text(text) => encode(text, &mut bytes),
                EscapedOriginal::Bytes(original) => bytes.extend_from_slice(original),
            }
            at = escape.span.end;
        }
        encode(&self.text[at..], &mut bytes);
        let terminator = match self.terminator {
            LineTerminator::None => "",
            LineTerminator::Lf => "\n",
            LineTerminator::CrLf => "\r\n",
        };
        encode(terminator, &mut bytes);
        bytes
    }
}

/// Splits a line into its bytes without the break, and the break.
fn split_terminator(line: &[u8], line_break: LineBreak) -> (&[u8], LineTerminator) {
    let without_feed = line_break.without_break(line);
    if without_feed.len() == line.len() {
        return (line, LineTerminator::None);
    }
    let carriage_return: &[u8] = match line_break {
        LineBreak::Byte => b"\r",
        LineBreak::Utf16Le => b"\r\0",
        LineBreak::Utf16Be => b"\0\r",
    };
    // In UTF-16 both lengths are even, so that the suffix is one code unit.
    match without_feed.strip_suffix(carriage_return) {
        Some(body) => (body, LineTerminator::CrLf),
        None => (without_feed, LineTerminator::Lf),
    }
}

/// Passes every character with its bytes to `write`; bytes that are no character come without one.
fn decode(body: &[u8], encoding: Encoding, mut write: impl FnMut(&[u8], Option<char>)) {
    match encoding {
        Encoding::Utf8 => {
            for chunk in body.utf8_chunks() {
                for character in chunk.valid().chars() {
                    write(character.encode_utf8(&mut [0; 4]).as_bytes(), Some(character));
                }
                if !chunk.invalid().is_empty() {
                    write(chunk.invalid(), None);
                }
            }
        }
        // One character a byte.
        Encoding::Latin1 => {
            let text = encoding.decode(body);
            body.iter().zip(text.chars()).for_each(|(byte, character)| write(&[*byte], Some(character)));
        }
        Encoding::Utf16Le | Encoding::Utf16Be => {
            let unit = if encoding == Encoding::Utf16Le { u16::from_le_bytes } else { u16::from_be_bytes };
            let (units, torn) = body.as_chunks::<2>();
            let mut at = 0;
            for character in char::decode_utf16(units.iter().map(|bytes| unit(*bytes))) {
                let character = character.ok();
                let end = at + character.map_or(2, |character| character.len_utf16() * 2);
                write(&body[at..end], character);
                at = end;
            }
            if !torn.is_empty() {
                write(torn, None);
            }
        }
    }
}

/// Builds a text character by character, and moves word spans from the bytes of the line to it.
struct ContentWriter<'w> {
    content: RowContent,
    /// Bytes of the line that were written.
    at: usize,
    /// Word spans that do not end before `at`.
    words: &'w [Range<usize>],
    /// `true` if the last span of the content belongs to the first of `words`.
    in_word: bool,
}

impl<'w> ContentWriter<'w> {
    fn new(mut content: RowContent, bytes: usize, words: &'w [Range<usize>]) -> Self {
        content.text.reserve(bytes);
        Self { content, at: 0, words, in_word: false }
    }

    fn write(&mut self, bytes: &[u8], character: Option<char>) {
        let start = self.content.text.len();
        match character {
            Some(plain) if !is_unprintable(plain) => self.content.text.push(plain),
            _ => self.escape(bytes, character),
        }
        let end = self.content.text.len();
        while self.words.first().is_some_and(|word| word.end <= self.at) {
            self.words = &self.words[1..];
            self.in_word = false;
        }
        self.at += bytes.len();
        // A span that begins or ends within a character covers all of it.
        if self.words.first().is_some_and(|word| word.start < self.at) {
            match self.content.words.last_mut() {
                Some(last) if self.in_word => last.end = end,
                _ => self.content.words.push(start..end),
            }
            self.in_word = true;
        }
    }

    fn escape(&mut self, bytes: &[u8], character: Option<char>) {
        let text = &mut self.content.text;
        let start = text.len();
        match character {
            // The Unicode block of control pictures follows the order of the characters.
            Some(control @ '\0'..='\x1F') => text.push(char::from_u32(0x2400 + control as u32).unwrap_or('?')),
            Some('\x7F') => text.push('\u{2421}'),
            Some(hidden) => text.push_str(&format!("⟨U+{:04X}⟩", hidden as u32)),
            None => {
                text.push_str("⟨0x");
                for byte in bytes {
                    text.push_str(&format!("{byte:02X}"));
                }
                text.push('⟩');
            }
        }
        let span = start..text.len();
        // Neighbours share one escape, so that a line of control characters stays small.
        if let Some(Escape { span: last, original }) =
            self.content.escapes.last_mut().filter(|last| last.span.end == start)
        {
            match (original, character) {
                (EscapedOriginal::Text(text), Some(character)) => {
                    text.push(character);
                    last.end = span.end;
                    return;
                }
                (EscapedOriginal::Bytes(original), None) => {
                    original.extend_from_slice(bytes);
                    last.end = span.end;
                    return;
                }
                _ => {}
            }
        }
        let original = match character {
            Some(character) => EscapedOriginal::Text(character.to_string()),
            None => EscapedOriginal::Bytes(bytes.to_vec()),
        };
        self.content.escapes.push(Escape { span, original });
    }
}

/// `true` for characters that a reader cannot see, or that reorder what a reader sees. A tab can be seen.
fn is_unprintable(character: char) -> bool {
    matches!(character,
        '\0'..='\x08' | '\x0A'..='\x1F' | '\x7F'..='\u{9F}'
        // Soft hyphen, grapheme joiner, fillers, inherent vowels.
        | '\u{AD}' | '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{3164}' | '\u{FFA0}'
        // Marks, embeddings, overrides and isolates of direction; zero-width blanks and joiners; line separators.
        | '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'
        // Mongolian selectors, annotations, musical formats, tags. Selectors of emoji are left to the review's notes.
        | '\u{180B}'..='\u{180F}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}')
}
