//! Simple commands: assignments, words and redirections.

use super::builtins::{check_invocation, is_reserved_word};
use super::reader::{Outcome, Reader};
use super::word::Context;
use super::{Assignment, Invocation, UnexpandedWord, VariableClass, WordPart, is_name, variable_class};

impl Reader<'_> {
    /// Reads assignments, words and redirections up to the end of the command.
    pub(super) fn invocation(&mut self) -> Outcome<Invocation> {
        let line = self.line_of(self.at);
        let mut draft = Invocation { assignments: Vec::new(), words: Vec::new(), redirections: Vec::new(), line };
        loop {
            self.skip_blanks()?;
            if let Some(redirection) = self.redirection()? {
                draft.redirections.push(redirection);
                continue;
            }
            match self.byte(0) {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')' | b'#') => break,
                Some(b'(') => return self.reject_parenthesis(&draft),
                Some(_) => self.next_word(&mut draft)?,
            }
        }
        if draft.assignments.is_empty() && draft.words.is_empty() && draft.redirections.is_empty() {
            return self.unexpected();
        }
        check_invocation(&draft)?;
        Ok(draft)
    }

    /// Rejects an opening parenthesis. After one word it begins the definition of a function.
    fn reject_parenthesis<T>(&self, draft: &Invocation) -> Outcome<T> {
        match draft.words.as_slice() {
            [name] => {
                let span = name.span.start..self.at + 1;
                Self::unsupported_at(span, "a function gives a name another meaning")
            }
            _ => self.unexpected(),
        }
    }

    /// Reads an assignment or a word into the draft. After `export`, an assignment is a word.
    fn next_word(&mut self, draft: &mut Invocation) -> Outcome<()> {
        let start = self.at;
        let is_declaration = draft.words.first().is_some_and(|word| word.as_literal().as_deref() == Some("export"));
        if !draft.words.is_empty() && !is_declaration {
            draft.words.push(self.word(Context::Argument)?);
            return Ok(());
        }
        let Some(name) = self.assigned_name()? else {
            if !draft.redirections.is_empty() && draft.words.is_empty() && is_reserved_word(self.raw_word()) {
                // A reserved word after a redirection: bash prints the text of `$(< file in)` and reads it again, as `in < file`.
                return self.unexpected();
            }
            draft.words.push(self.word(Context::Argument)?);
            return Ok(());
        };
        let mut value = self.assigned_value()?;
        if draft.words.is_empty() {
            draft.assignments.push(Assignment { name, value });
        } else {
            let prefix = WordPart::Literal { text: format!("{name}="), is_quoted: false };
            value.parts.insert(0, prefix);
            draft.words.push(UnexpandedWord { parts: value.parts, is_assignment: true, span: start..self.at });
        }
        Ok(())
    }

    /// Reads `NAME=`, if that begins here. Rejects arrays, `+=` and variables that change the behaviour of programs.
    fn assigned_name(&mut self) -> Outcome<Option<String>> {
        let start = self.at;
        let raw = self.raw_word();
        // bash reads the index of an array up to the matching bracket, across blanks and operators.
        if raw.split_once('[').is_some_and(|(name, _)| is_name(name)) {
            self.at += raw.len();
            return self.unsupported(start, "arrays are not supported");
        }
        let Some((left, _)) = raw.split_once('=') else { return Ok(None) };
        let name = left.strip_suffix('+').unwrap_or(left);
        if !is_name(name) {
            return Ok(None);
        }
        self.at += left.len() + 1;
        if name.len() < left.len() {
            return self.unsupported(start, "`+=` is not supported");
        }
        if variable_class(name) == VariableClass::Dangerous {
            return self.unsupported(start, format!("setting `{name}` changes how programs run"));
        }
        if self.is_continuation() {
            self.continuation()?;
        }
        Ok(Some(name.to_owned()))
    }

    /// Reads the value behind `NAME=`, which may be empty.
    fn assigned_value(&mut self) -> Outcome<UnexpandedWord> {
        let at = self.at;
        match self.byte(0) {
            None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' | b'<' | b'>') => {
                Ok(UnexpandedWord { parts: Vec::new(), is_assignment: false, span: at..at })
            }
            Some(b'(') => Self::unsupported_at(at..at + 1, "arrays are not supported"),
            Some(_) => self.word(Context::Value),
        }
    }
}
