//! Redirections of file descriptors.

use super::reader::{Outcome, Reader};
use super::word::Context;
use super::{Operation, Redirection, UnexpandedWord};

impl Reader<'_> {
    /// Reads the redirections behind a construct.
    pub(super) fn redirections(&mut self) -> Outcome<Vec<Redirection>> {
        let mut redirections = Vec::new();
        loop {
            self.skip_blanks()?;
            match self.redirection()? {
                Some(redirection) => redirections.push(redirection),
                None => return Ok(redirections),
            }
        }
    }

    /// Reads a redirection, if one begins here.
    pub(super) fn redirection(&mut self) -> Outcome<Option<Redirection>> {
        let start = self.at;
        if self.take("&>>") {
            return Ok(Some(Redirection { descriptor: 1, operation: Operation::AppendBoth(self.file()?) }));
        }
        if self.take("&>") {
            if matches!(self.byte(0), Some(b'&' | b'|' | b'<' | b'>')) {
                return self.unexpected();
            }
            return Ok(Some(Redirection { descriptor: 1, operation: Operation::WriteBoth(self.file()?) }));
        }
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let operator = self.byte(digits);
        if !matches!(operator, Some(b'<' | b'>')) || (digits == 0 && self.byte(1) == Some(b'(')) {
            return if digits == 0 && matches!(operator, Some(b'<' | b'>')) {
                Self::unsupported_at(start..start + 2, "process substitution is not supported")
            } else {
                Ok(None)
            };
        }
        self.at += digits;
        let written = self.text[start..self.at].bytes().fold(None, |number: Option<usize>, digit| {
            Some(number.unwrap_or(0).saturating_mul(10).saturating_add(usize::from(digit - b'0')))
        });
        let descriptor = match written {
            Some(number) if digits > 1 => {
                return self.unsupported(start, format!("descriptor {number} is above 9"));
            }
            Some(number) => number as u8,
            None => u8::from(operator == Some(b'>')),
        };
        let operation = self.operation(start)?;
        Ok(Some(Redirection { descriptor, operation }))
    }

    fn operation(&mut self, start: usize) -> Outcome<Operation> {
        if self.take("<<<") {
            return Ok(Operation::HereString(self.target()?));
        }
        if self.take("<<-") {
            return self.here_document(start, true);
        }
        if self.take("<<") {
            return self.here_document(start, false);
        }
        if self.take("<>") {
            return self.unsupported(start, "`<>` is not supported");
        }
        if self.take("<&") || self.take(">&") {
            return self.duplicate(start);
        }
        if self.take(">>") {
            return Ok(Operation::Append(self.file()?));
        }
        if self.take("<") {
            return Ok(Operation::Read(self.file()?));
        }
        let _ = self.take(">|") || self.take(">");
        Ok(Operation::Write(self.file()?))
    }

    /// Reads the file of a redirection.
    fn file(&mut self) -> Outcome<UnexpandedWord> {
        let word = self.target()?;
        let start = word.span.start;
        let is_network = |text: String| text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/");
        if word.as_literal().is_some_and(is_network) {
            return self.unsupported(start, "a redirection to `/dev/tcp` or `/dev/udp` opens a connection");
        }
        Ok(word)
    }

    /// Reads the word behind an operator.
    fn target(&mut self) -> Outcome<UnexpandedWord> {
        self.skip_blanks()?;
        let start = self.at;
        let word = self.word(Context::Value)?;
        let is_descriptor = self.text[start..self.at].bytes().all(|byte| byte.is_ascii_digit());
        if is_descriptor && matches!(self.byte(0), Some(b'<' | b'>')) {
            return self.unsupported(start, "a descriptor stands where a file is expected");
        }
        Ok(word)
    }

    /// Reads the descriptor behind `>&`.
    fn duplicate(&mut self, start: usize) -> Outcome<Operation> {
        self.skip_blanks()?;
        let target = self.raw_word();
        self.at += target.len();
        match target.as_bytes() {
            [b'-'] => Ok(Operation::Close),
            [digit @ b'0'..=b'9'] => Ok(Operation::Duplicate(digit - b'0')),
            _ => self.unsupported(start, "`>&` is supported before one digit or `-` only"),
        }
    }
}
