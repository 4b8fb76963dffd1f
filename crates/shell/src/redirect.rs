//! Redirects, and here-documents with their bodies.

use std::mem;

use crate::commands::ScriptReader;
use crate::parser_state::{ParserState, ScriptContext};
use crate::word::QuoteContext;
use crate::{Certainty, Redirect, RedirectAccess, Word};

/// A here-document whose body begins on the next line.
pub(super) struct HereDocument {
    pub(super) delimiter: String,
    /// `true` for a quoted delimiter: the body is literal.
    is_quoted: bool,
    /// `true` for `<<-`: leading tabs are removed.
    is_indented: bool,
    /// Index of the command that reads it.
    pub(super) command: Option<usize>,
    context: ScriptContext,
}

impl ScriptReader<'_, '_> {
    /// Reads a redirect and adds it to the current command.
    pub(super) fn redirect(&mut self, state: &mut ParserState) {
        use RedirectAccess::{Append, Read, ReadWrite, Write};
        let context = self.context_within(state);
        let access = if self.take("<<<") {
            self.skip_blanks();
            if let Some(scanned) = self.word(&context) {
                state.draft.input = Some(scanned.word);
                state.draft.has_here_document = true;
            } else {
                self.unexpected("<<<");
            }
            return;
        } else if self.take("<<-") {
            self.here_document(state, "<<-", context);
            return;
        } else if self.take("<<") {
            self.here_document(state, "<<", context);
            return;
        } else if self.take("&>>") || self.take(">>") {
            Append
        } else if self.take("<>") {
            ReadWrite
        } else if self.take("<&") || self.take(">&") {
            self.duplicate(state, &context);
            return;
        } else if self.take("<") {
            Read
        } else {
            let _ = self.take("&>") || self.take(">|") || self.take(">");
            Write
        };
        self.skip_blanks();
        match self.word(&context) {
            Some(scanned) => state.draft.redirects.push(Redirect { target: scanned.word, access }),
            None => self.unexpected(">"),
        }
    }

    /// Reads the descriptor or file behind `>&` or `<&`.
    fn duplicate(&mut self, state: &mut ParserState, context: &ScriptContext) {
        let access = if self.text[..self.at].ends_with('<') { RedirectAccess::Read } else { RedirectAccess::Write };
        self.skip_blanks();
        let Some(scanned) = self.word(context) else {
            self.unexpected(">&");
            return;
        };
        let word = scanned.word;
        let number = word.text.strip_suffix('-').unwrap_or(&word.text);
        let is_descriptor = word.as_literal().is_some() && number.bytes().all(|byte| byte.is_ascii_digit());
        if !is_descriptor {
            state.draft.redirects.push(Redirect { target: word, access });
        }
    }

    fn here_document(&mut self, state: &mut ParserState, opening: &str, context: ScriptContext) {
        self.skip_blanks();
        let start = self.at;
        state.draft.has_here_document = true;
        if self.word(&context).is_none() {
            self.unexpected(opening);
            return;
        }
        let raw = &self.text[start..self.at];
        if raw.contains(['$', '`']) {
            // Shells disagree about the end of this document.
            self.unexpected(raw);
        }
        let is_quoted = raw.contains(['\'', '"', '\\']);
        state.here_documents.push(HereDocument {
            delimiter: unquoted(raw),
            is_quoted,
            is_indented: opening == "<<-",
            command: None,
            context,
        });
    }

    /// Reads the bodies of the here-documents that begin on this line.
    pub(super) fn read_here_documents(&mut self, state: &mut ParserState) {
        for document in mem::take(&mut state.here_documents) {
            let input = self.here_text(&document);
            if let Some(command) = document.command {
                self.builder.inputs.insert(command, input);
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
        } else if self.builder.pay(body.len()) {
            let mut reader = ScriptReader::new(&body, self.depth, document.context.wrappers.clone(), self.builder);
            while reader.at < body.len() {
                reader.in_quotes(&mut word, QuoteContext::HereDocument, &document.context);
            }
        } else {
            self.builder.uncertain(super::Uncertainty::TooLong);
            word.at_most(Certainty::Unknown);
        }
        word
    }
}

/// Removes the quotes of a delimiter.
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
