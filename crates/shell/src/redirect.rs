//! Reads redirects, and the here-documents that follow them.

use std::mem;

use crate::commands::Reader;
use crate::level::{Level, Standing};
use crate::word::Quoting;
use crate::{Certainty, Redirect, RedirectAccess, Word};

/// A here-document whose text begins with the next line.
pub(super) struct HereDocument {
    pub(super) delimiter: String,
    /// Whether its text is left as it is.
    is_quoted: bool,
    /// Whether tabs before a line do not count.
    is_indented: bool,
    /// The command that reads it.
    pub(super) command: Option<usize>,
    standing: Standing,
}

impl Reader<'_, '_> {
    /// Reads a redirect.
    pub(super) fn redirect(&mut self, level: &mut Level) {
        use RedirectAccess::{Append, Read, ReadWrite, Write};
        let standing = self.standing_within(level);
        let access = if self.take("<<<") {
            self.skip_blanks();
            if let Some(scanned) = self.word(&standing) {
                level.draft.input = Some(scanned.word);
                level.draft.has_here_document = true;
            } else {
                self.unexpected("<<<");
            }
            return;
        } else if self.take("<<-") {
            self.here_document(level, "<<-", standing);
            return;
        } else if self.take("<<") {
            self.here_document(level, "<<", standing);
            return;
        } else if self.take("&>>") || self.take(">>") {
            Append
        } else if self.take("<>") {
            ReadWrite
        } else if self.take("<&") || self.take(">&") {
            self.duplicate(level, &standing);
            return;
        } else if self.take("<") {
            Read
        } else {
            let _ = self.take("&>") || self.take(">|") || self.take(">");
            Write
        };
        self.skip_blanks();
        match self.word(&standing) {
            Some(scanned) => level.draft.redirects.push(Redirect { target: scanned.word, access }),
            None => self.unexpected(">"),
        }
    }

    /// Reads what follows `>&`: a descriptor, or a file.
    fn duplicate(&mut self, level: &mut Level, standing: &Standing) {
        let access = if self.text[..self.at].ends_with('<') { RedirectAccess::Read } else { RedirectAccess::Write };
        self.skip_blanks();
        let Some(scanned) = self.word(standing) else {
            self.unexpected(">&");
            return;
        };
        let word = scanned.word;
        let number = word.text.strip_suffix('-').unwrap_or(&word.text);
        let is_descriptor = word.as_literal().is_some() && number.bytes().all(|byte| byte.is_ascii_digit());
        if !is_descriptor {
            level.draft.redirects.push(Redirect { target: word, access });
        }
    }

    fn here_document(&mut self, level: &mut Level, opening: &str, standing: Standing) {
        self.skip_blanks();
        let start = self.at;
        level.draft.has_here_document = true;
        if self.word(&standing).is_none() {
            self.unexpected(opening);
            return;
        }
        let raw = &self.text[start..self.at];
        if raw.contains(['$', '`']) {
            // What ends it is written in a way that shells do not agree on.
            self.unexpected(raw);
        }
        let is_quoted = raw.contains(['\'', '"', '\\']);
        level.here_documents.push(HereDocument {
            delimiter: unquoted(raw),
            is_quoted,
            is_indented: opening == "<<-",
            command: None,
            standing,
        });
    }

    /// Reads the here-documents that begin on this line.
    pub(super) fn read_here_documents(&mut self, level: &mut Level) {
        for document in mem::take(&mut level.here_documents) {
            let input = self.here_text(&document);
            if let Some(command) = document.command {
                self.output.inputs.insert(command, input);
            }
        }
    }

    fn here_text(&mut self, document: &HereDocument) -> Word {
        let mut body = String::new();
        let mut is_continued = false;
        loop {
            if self.at >= self.text.len() {
                self.unterminated(&format!("<<{}", document.delimiter));
                break;
            }
            let rest = &self.text[self.at..];
            let length = rest.find('\n').unwrap_or(rest.len());
            self.at = (self.at + length + 1).min(self.text.len());
            let mut line = &rest[..length];
            if document.is_indented && !is_continued {
                line = line.trim_start_matches('\t');
            }
            if line == document.delimiter && !is_continued {
                break;
            }
            body.push_str(line);
            body.push('\n');
            let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
            is_continued = !document.is_quoted && backslashes % 2 == 1;
        }
        let mut word = Word::literal("");
        if document.is_quoted {
            word.text = body;
        } else if self.output.pay(body.len()) {
            let mut reader = Reader::new(&body, self.depth, document.standing.through.clone(), self.output);
            while reader.at < body.len() {
                reader.in_quotes(&mut word, Quoting::HereDocument, &document.standing);
            }
        } else {
            self.output.doubt(super::Doubt::TooLong);
            word.at_most(Certainty::Unknown);
        }
        word
    }
}

/// The delimiter without its quotes.
fn unquoted(raw: &str) -> String {
    let mut text = String::new();
    let mut characters = raw.chars();
    let mut quote = None;
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', None) => text.extend(characters.next().filter(|next| *next != '\n')),
            ('\'' | '"', None) => quote = Some(character),
            (_, Some(open)) if open == character => quote = None,
            _ => text.push(character),
        }
    }
    text
}
