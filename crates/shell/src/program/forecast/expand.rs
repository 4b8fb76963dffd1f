//! Words as far as they can be expanded before a run.

use crate::program::{UnexpandedWord, Wildcard, WordPart};
use crate::{Certainty, Word as ScriptWord};

use super::values::{Value, Values};
use super::{CommandContext, Forecast};

/// Words that one word may become in a forecast.
const MAX_FIELDS: usize = 1000;

/// The number of words that one word may become.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Splitting {
    /// Any number: an argument.
    Fields,
    /// Exactly one: a value, a pattern, the file of a redirection.
    Single,
}

impl Forecast<'_> {
    /// Lists the commands in a word's substitutions, then gives the words that it becomes.
    pub(super) fn word(
        &mut self,
        word: &UnexpandedWord,
        splitting: Splitting,
        values: &Values<'_>,
        context: CommandContext,
    ) -> Vec<ScriptWord> {
        for part in &word.parts {
            if let WordPart::Substitution { body, .. } = part {
                let shell = self.builder.shell_within(context.shell);
                self.list(body, &mut values.clone(), CommandContext { shell, ..context });
            }
        }
        let splitting = if word.is_assignment { Splitting::Single } else { splitting };
        let mut fields = Vec::new();
        for choice in choices(&word.parts) {
            let mut draft = Fields::new(splitting);
            let mut choice = choice.into_iter();
            for part in &word.parts {
                match part {
                    WordPart::Braces(_) => draft.literal(choice.next().unwrap_or_default(), false),
                    _ => draft.part(part, values),
                }
            }
            fields.extend(draft.finish());
        }
        fields
    }
}

/// All ways to pick one text of each pair of braces; the last pair varies fastest.
fn choices(parts: &[WordPart]) -> Vec<Vec<&str>> {
    let mut choices: Vec<Vec<&str>> = vec![Vec::new()];
    for part in parts {
        let WordPart::Braces(texts) = part else { continue };
        choices = choices
            .iter()
            .flat_map(|choice| texts.iter().map(move |text| [choice.as_slice(), &[text.as_str()]].concat()))
            .take(MAX_FIELDS)
            .collect();
    }
    choices
}

/// The words that one word becomes, while its parts are added.
struct Fields {
    splitting: Splitting,
    done: Vec<ScriptWord>,
    text: String,
    certainty: Certainty,
    /// `true` if the current word exists even when it is empty.
    exists: bool,
}

impl Fields {
    fn new(splitting: Splitting) -> Self {
        Self { splitting, done: Vec::new(), text: String::new(), certainty: Certainty::Literal, exists: false }
    }

    fn part(&mut self, part: &WordPart, values: &Values<'_>) {
        match part {
            WordPart::Literal { text, is_quoted } => self.literal(text, *is_quoted),
            WordPart::Variable { name, is_quoted } => self.variable(name, *is_quoted, values),
            WordPart::Status { .. } => self.uncertain("$?", Certainty::Unknown),
            WordPart::Substitution { .. } => self.uncertain("$(…)", Certainty::Unknown),
            WordPart::Wildcard(wildcard) => {
                let sign = match wildcard {
                    Wildcard::Any => "*",
                    Wildcard::One => "?",
                    Wildcard::Class(class) => class,
                };
                self.uncertain(sign, Certainty::Pattern);
            }
            WordPart::Braces(_) => {}
            WordPart::Tilde => match values.get("HOME") {
                Value::Literal(home) if home.starts_with('/') => self.literal(&home, true),
                _ => self.uncertain("~", Certainty::Pattern),
            },
        }
    }

    fn literal(&mut self, text: &str, is_quoted: bool) {
        self.exists |= is_quoted || !text.is_empty();
        self.text.push_str(text);
    }

    fn uncertain(&mut self, text: &str, certainty: Certainty) {
        self.exists = true;
        self.text.push_str(text);
        self.certainty = self.certainty.max(certainty);
    }

    fn variable(&mut self, name: &str, is_quoted: bool, values: &Values<'_>) {
        let is_whole = is_quoted || self.splitting == Splitting::Single;
        match values.get(name) {
            Value::Literal(text) if is_quoted => self.literal(&text, true),
            Value::Literal(text) if is_whole => {
                self.pattern_signs(&text);
                self.literal(&text, false);
            }
            Value::Literal(text) => self.split(&text),
            // Without quotes a file name with blanks becomes several words.
            Value::Pattern(text) if is_whole => self.uncertain(&text, Certainty::Pattern),
            Value::Pattern(_) | Value::Unknown => self.uncertain(&format!("${name}"), Certainty::Unknown),
        }
    }

    /// Adds an unquoted value, which blanks divide.
    fn split(&mut self, text: &str) {
        let is_blank = |character: char| matches!(character, ' ' | '\t' | '\n');
        let mut pieces = text.split(is_blank).peekable();
        while let Some(piece) = pieces.next() {
            self.pattern_signs(piece);
            self.literal(piece, false);
            if pieces.peek().is_some() {
                self.end_field();
            }
        }
    }

    fn pattern_signs(&mut self, text: &str) {
        if text.contains(['*', '?', '[', '\\']) {
            self.certainty = self.certainty.max(Certainty::Pattern);
        }
    }

    fn end_field(&mut self) {
        let text = std::mem::take(&mut self.text);
        let certainty = std::mem::replace(&mut self.certainty, Certainty::Literal);
        if std::mem::take(&mut self.exists) {
            self.done.push(ScriptWord { text, certainty });
        }
    }

    fn finish(mut self) -> Vec<ScriptWord> {
        if self.splitting == Splitting::Single {
            self.exists = true;
        }
        self.end_field();
        self.done
    }
}
