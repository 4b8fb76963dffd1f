//! Expansion of words into fields: variables, substitutions, globs.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use sayso_shell::program::{UnexpandedWord, Wildcard, WordPart};

use crate::fields::{Field, Fields};
use crate::glob;
use crate::pattern::Pattern;
use crate::shell::Shell;
use crate::walk::{Stop, Walker};

impl Walker<'_> {
    /// Expands words into arguments.
    pub(crate) fn arguments(&self, words: &[UnexpandedWord], shell: &mut Shell) -> Result<Vec<OsString>, Stop> {
        let mut arguments = Vec::new();
        for word in words {
            if word.is_assignment {
                arguments.push(OsString::from_vec(self.single(word, shell)?));
            } else {
                self.word(word, shell, &mut arguments)?;
            }
        }
        Ok(arguments)
    }

    fn word(&self, word: &UnexpandedWord, shell: &mut Shell, arguments: &mut Vec<OsString>) -> Result<(), Stop> {
        let mut choice = Choice::first(&word.parts);
        loop {
            let mut fields = Fields::default();
            let mut picked = choice.indices.iter();
            for part in &word.parts {
                match part {
                    WordPart::Braces(texts) => {
                        let text = picked.next().and_then(|index| texts.get(*index));
                        fields.plain(text.map(String::as_bytes).unwrap_or_default());
                    }
                    _ => self.part(part, shell, &mut fields)?,
                }
            }
            for field in fields.finish() {
                arguments.extend(paths(field, shell).into_iter().map(OsString::from_vec));
            }
            if !choice.advance(&word.parts) {
                return Ok(());
            }
        }
    }

    fn part(&self, part: &WordPart, shell: &mut Shell, fields: &mut Fields) -> Result<(), Stop> {
        if let WordPart::Literal { text, is_quoted } = part {
            if *is_quoted {
                fields.quoted(text.as_bytes());
            } else {
                fields.plain(text.as_bytes());
            }
            return Ok(());
        }
        if let WordPart::Wildcard(wildcard) = part {
            fields.plain(sign(wildcard));
            return Ok(());
        }
        let (value, is_quoted) = self.value(part, shell)?;
        if is_quoted {
            fields.quoted(&value);
        } else {
            fields.split(&value);
        }
        Ok(())
    }

    /// The value of an expansion, and whether it is quoted.
    fn value(&self, part: &WordPart, shell: &mut Shell) -> Result<(Vec<u8>, bool), Stop> {
        match part {
            WordPart::Literal { text, is_quoted } => Ok((text.clone().into_bytes(), *is_quoted)),
            WordPart::Variable { name, is_quoted } => Ok((variable(name, shell)?, *is_quoted)),
            WordPart::Status { is_quoted } => Ok((shell.status.to_string().into_bytes(), *is_quoted)),
            WordPart::Substitution { body, is_quoted } => Ok((self.substitute(body, shell)?, *is_quoted)),
            WordPart::Wildcard(wildcard) => Ok((sign(wildcard).to_vec(), false)),
            WordPart::Braces(texts) => Ok((texts.first().cloned().unwrap_or_default().into_bytes(), false)),
            WordPart::Tilde => Ok((shell.get("HOME").unwrap_or(b"~").to_vec(), true)),
        }
    }

    /// Expands a word that is neither split nor matched against files.
    pub(crate) fn single(&self, word: &UnexpandedWord, shell: &mut Shell) -> Result<Vec<u8>, Stop> {
        Ok(self.single_field(word, shell)?.bytes)
    }

    /// Expands a word into a pattern.
    pub(crate) fn pattern(&self, word: &UnexpandedWord, shell: &mut Shell) -> Result<Pattern, Stop> {
        Ok(Pattern::new(&self.single_field(word, shell)?))
    }

    fn single_field(&self, word: &UnexpandedWord, shell: &mut Shell) -> Result<Field, Stop> {
        let mut field = Field::default();
        for part in &word.parts {
            let (value, is_quoted) = self.value(part, shell)?;
            field.push(&value, !is_quoted);
        }
        Ok(field)
    }
}

fn sign(wildcard: &Wildcard) -> &[u8] {
    match wildcard {
        Wildcard::Any => b"*",
        Wildcard::One => b"?",
        Wildcard::Class(class) => class.as_bytes(),
    }
}

/// The value of a variable. An unset one ends the script under `set -u`.
fn variable(name: &str, shell: &Shell) -> Result<Vec<u8>, Stop> {
    match shell.get(name) {
        Some(value) => Ok(value.to_vec()),
        None if shell.options.rejects_unset => {
            shell.complain(&format!("{name}: unbound variable"));
            // The statuses of bash, which differ between these cases.
            Err(Stop::Exit(if shell.is_subshell || shell.options.exits_on_error { 1 } else { 127 }))
        }
        None => Ok(Vec::new()),
    }
}

/// The file names that a field stands for, or the field itself.
fn paths(field: Field, shell: &Shell) -> Vec<Vec<u8>> {
    if field.is_pattern() {
        let found = glob::matching(&field, &shell.directory);
        if !found.is_empty() {
            return found;
        }
    }
    vec![field.bytes]
}

/// One text for each pair of braces of a word.
struct Choice {
    indices: Vec<usize>,
}

impl Choice {
    fn first(parts: &[WordPart]) -> Self {
        let count = parts.iter().filter(|part| matches!(part, WordPart::Braces(_))).count();
        Self { indices: vec![0; count] }
    }

    /// Moves on to the next choice, the last pair of braces varying fastest.
    fn advance(&mut self, parts: &[WordPart]) -> bool {
        let lengths = parts.iter().filter_map(|part| match part {
            WordPart::Braces(texts) => Some(texts.len()),
            _ => None,
        });
        let lengths: Vec<usize> = lengths.collect();
        for (index, length) in self.indices.iter_mut().zip(lengths).rev() {
            *index += 1;
            if *index < length {
                return true;
            }
            *index = 0;
        }
        false
    }
}
