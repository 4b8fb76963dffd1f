//! Here-documents: delimiter and body.

use std::mem;
use std::ops::Range;

use super::reader::{Outcome, Reader};
use super::word::WordDraft;
use super::{Operation, UnexpandedWord};

/// A here-document whose body has not been read yet.
pub(super) struct PendingDocument {
    /// Index into the documents of the program.
    index: usize,
    delimiter: String,
    /// `true` for `<<-`: tabs before a line do not count.
    strips_tabs: bool,
    /// `true` for a quoted delimiter: the body is literal.
    is_literal: bool,
    /// The operator and the delimiter.
    pub(super) span: Range<usize>,
}

impl Reader<'_> {
    /// Reads the delimiter, the operator being behind.
    pub(super) fn here_document(&mut self, start: usize, strips_tabs: bool) -> Outcome<Operation> {
        self.skip_blanks()?;
        let (delimiter, is_literal) = self.delimiter(start)?;
        let index = self.documents.len();
        self.documents.push(None);
        let span = start..self.at;
        self.pending.push(PendingDocument { index, delimiter, strips_tabs, is_literal, span });
        Ok(Operation::HereDocument(index))
    }

    fn delimiter(&mut self, start: usize) -> Outcome<(String, bool)> {
        let raw = self.raw_word();
        self.at += raw.len();
        let quoted = ['\'', '"'].into_iter().find_map(|quote| raw.strip_prefix(quote)?.strip_suffix(quote));
        let is_literal = quoted.is_some() || raw.starts_with('\\');
        let delimiter = quoted.or(raw.strip_prefix('\\')).unwrap_or(raw);
        let is_plain = |character: char| character.is_alphanumeric() || "_-.!+%:@,=".contains(character);
        if delimiter.is_empty() || !delimiter.chars().all(is_plain) {
            return self.unsupported(start, "the end of a here-document is supported as one plain word only");
        }
        Ok((delimiter.to_owned(), is_literal))
    }

    /// Moves behind a newline and the here-documents that begin there.
    pub(super) fn newline(&mut self) -> Outcome<()> {
        self.at += 1;
        for document in mem::take(&mut self.pending) {
            let body = self.document_body(&document)?;
            let word = if document.is_literal {
                self.literal_body(&document, body)
            } else {
                self.expanded_body(&document, body)?
            };
            self.documents[document.index] = Some(word);
        }
        Ok(())
    }

    /// Finds the end of a body and moves behind it.
    fn document_body(&mut self, document: &PendingDocument) -> Outcome<Range<usize>> {
        let start = self.at;
        while self.at < self.end {
            let line_start = self.at;
            let rest = self.rest();
            let length = rest.find('\n').unwrap_or(rest.len());
            let line = &rest[..length];
            self.at = (self.at + length + 1).min(self.end);
            let line = if document.strips_tabs { line.trim_start_matches('\t') } else { line };
            if line == document.delimiter {
                return Ok(start..line_start);
            }
        }
        Self::unsupported_at(document.span.clone(), format!("the here-document has no line `{}`", document.delimiter))
    }

    fn literal_body(&self, document: &PendingDocument, span: Range<usize>) -> UnexpandedWord {
        let body = &self.text[span.clone()];
        let mut word = WordDraft::default();
        word.quoted("");
        for line in body.split_inclusive('\n') {
            word.quoted(if document.strips_tabs { line.trim_start_matches('\t') } else { line });
        }
        UnexpandedWord { parts: word.parts, is_assignment: false, span }
    }

    /// Reads a body in which variables and substitutions are expanded.
    fn expanded_body(&mut self, document: &PendingDocument, span: Range<usize>) -> Outcome<UnexpandedWord> {
        let behind = (self.at, self.end);
        (self.at, self.end) = (span.start, span.end);
        let mut word = WordDraft::default();
        word.quoted("");
        let result = self.body_parts(document, &mut word);
        (self.at, self.end) = behind;
        result?;
        Ok(UnexpandedWord { parts: word.parts, is_assignment: false, span })
    }

    fn body_parts(&mut self, document: &PendingDocument, word: &mut WordDraft) -> Outcome<()> {
        let mut is_line_start = true;
        while let Some(byte) = self.byte(0) {
            if mem::take(&mut is_line_start) && document.strips_tabs && byte == b'\t' {
                self.at += self.rest().bytes().take_while(|byte| *byte == b'\t').count();
                continue;
            }
            let start = self.at;
            match byte {
                b'\\' if self.is_continuation() => {
                    self.at += 2;
                    return self.unsupported(start, "a line continuation within a here-document is not supported");
                }
                b'\\' if matches!(self.byte(1), Some(b'$' | b'`' | b'\\')) => {
                    self.at += 1;
                    self.quoted_character(word);
                }
                b'$' => {
                    self.quoted_dollar(word)?;
                    if document.strips_tabs && self.text[start..self.at].contains('\n') {
                        return self.unsupported(start, "`$(…)` over several lines of `<<-` is not supported");
                    }
                }
                b'`' => return self.backtick(),
                b'\n' => {
                    self.at += 1;
                    word.quoted("\n");
                    is_line_start = true;
                }
                _ => self.quoted_character(word),
            }
        }
        Ok(())
    }
}
