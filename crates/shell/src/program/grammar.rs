//! Lists, conditional lists and pipelines.

use super::reader::{Outcome, Reader};
use super::{AndOr, Command, Connector, List, Pipeline, Stage};

/// Commands of one pipeline, each of which runs in a thread.
const MAX_STAGES: usize = 64;

impl Reader<'_> {
    /// Reads the whole text.
    pub(super) fn program(&mut self) -> Outcome<List> {
        let body = self.list(&[])?;
        if self.at < self.end {
            return self.unexpected();
        }
        if let Some(document) = self.pending.first() {
            return Self::unsupported_at(document.span.clone(), "the here-document has no body");
        }
        Ok(body)
    }

    /// Reads commands up to `)`, one of the reserved words, `;;` or the end of the text.
    pub(super) fn list(&mut self, closers: &[&str]) -> Outcome<List> {
        let mut items = Vec::new();
        loop {
            self.skip_lines()?;
            if self.ends_list(closers) {
                return Ok(List { items });
            }
            items.push(self.and_or()?);
            self.skip_blanks()?;
            match self.byte(0) {
                Some(b';') if self.starts_with(";;") => return Ok(List { items }),
                // bash reads `;&` as one operator of `case`.
                Some(b';') if self.byte(1) == Some(b'&') => return self.unexpected(),
                Some(b';') => self.at += 1,
                Some(b'\n' | b'#' | b')') | None => {}
                Some(b'&') => {
                    return self.unsupported(self.at, "`&` leaves a command running in the background");
                }
                Some(_) => return self.unexpected(),
            }
        }
    }

    /// Reads a list that may not be empty.
    pub(super) fn filled_list(&mut self, closers: &[&str]) -> Outcome<List> {
        let list = self.list(closers)?;
        if list.items.is_empty() { self.unexpected() } else { Ok(list) }
    }

    fn ends_list(&self, closers: &[&str]) -> bool {
        matches!(self.byte(0), None | Some(b')')) || self.starts_with(";;") || closers.contains(&self.raw_word())
    }

    /// Text of the operator or word that stands here.
    pub(super) fn token(&self) -> &str {
        match self.raw_word() {
            "" => self.rest().get(..1).unwrap_or_default(),
            word => word,
        }
    }

    pub(super) fn unexpected<T>(&self) -> Outcome<T> {
        let token = self.token();
        if token.is_empty() {
            let last = self.text[..self.end].char_indices().next_back().map_or(0, |(at, _)| at);
            return Self::unsupported_at(last..self.end, "the script ends in the middle of a command");
        }
        let shown = if token == "\n" { "the end of the line" } else { &format!("`{token}`") };
        Self::unsupported_at(self.at..self.at + token.len(), format!("{shown} stands where a command cannot have it"))
    }

    /// Reads the reserved word that has to stand here.
    pub(super) fn expect(&mut self, word: &str) -> Outcome<()> {
        if self.take_reserved(word) { Ok(()) } else { self.unexpected() }
    }

    fn and_or(&mut self) -> Outcome<AndOr> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks()?;
            let connector = if self.take("&&") {
                Connector::And
            } else if self.take("||") {
                Connector::Or
            } else {
                return Ok(AndOr { first, rest });
            };
            self.skip_lines()?;
            rest.push((connector, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Outcome<Pipeline> {
        let is_negated = self.take_reserved("!");
        if is_negated {
            self.skip_blanks()?;
        }
        let mut stages = Vec::new();
        loop {
            let start = self.at;
            stages.push(Stage { command: self.command()?, pipes_errors: false });
            let end = self.at;
            self.skip_blanks()?;
            let is_last = self.starts_with("||") || !self.take("|");
            if (!is_last || stages.len() > 1) && stages.last().is_some_and(|stage| redirects_only(&stage.command)) {
                return Self::unsupported_at(start..end, "a part of a pipeline has redirections and no command");
            }
            if is_last {
                return Ok(Pipeline { is_negated, stages });
            }
            if let Some(last) = stages.last_mut() {
                last.pipes_errors = self.take("&");
            }
            if stages.len() >= MAX_STAGES {
                return self.unsupported(self.at, format!("a pipeline has more than {MAX_STAGES} commands"));
            }
            self.skip_lines()?;
        }
    }

    fn command(&mut self) -> Outcome<Command> {
        self.nested(|reader| match reader.compound()? {
            Some(compound) => Ok(Command::Compound(compound)),
            None => Ok(Command::Simple(reader.invocation()?)),
        })
    }
}

/// `true` for redirections without words. In a pipeline bash gives such a command status 0 although its file is missing.
fn redirects_only(command: &Command) -> bool {
    matches!(command, Command::Simple(simple) if simple.words.is_empty() && !simple.redirections.is_empty())
}
