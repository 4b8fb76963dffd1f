//! Reads one word of options as its program does.

use sayso_shell::Word;

use super::finding::Unclear;
use super::reading::Reader;
use super::vocabulary::{Kind, Spec, Style, Trait};

impl Reader<'_> {
    /// Reads the option at an index; gives the index of the next word that is none of its values.
    pub(super) fn option(&mut self, at: usize) -> usize {
        let text = self.words[at].text.as_str();
        if text.starts_with('+') {
            let spec = self.verb.exact("+");
            return spec.map_or(at + 1, |spec| self.attached(at, "+", spec, &text[1..]));
        }
        if self.grammar.style == Style::Dash {
            return self.dash_option(at, text);
        }
        if text.starts_with("--") {
            return self.long_option(at, text);
        }
        if let Some(spec) = self.verb.exact(text) {
            return self.with_next(at, text, spec);
        }
        self.short_options(at, text)
    }

    /// `--name`, `--name value`, `--name=value`, `--na`.
    fn long_option(&mut self, at: usize, text: &str) -> usize {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let abbreviates = !matches!(self.grammar.style, Style::Exact | Style::Dash);
        let spec = self.verb.exact(name).or_else(|| abbreviates.then(|| self.verb.abbreviated(name)).flatten());
        match (spec, value) {
            (Some(spec), Some(value)) if spec.kind != Kind::Flag => self.attached(at, name, spec, value),
            (Some(spec), Some(_)) if self.grammar.style == Style::Exact && spec.is_harmless() => at + 1,
            (Some(spec), None) => self.with_next(at, name, spec),
            (None, None) if self.is_negated(name) => at + 1,
            _ => self.unknown(at, text),
        }
    }

    /// `--no-color` turns a flag off, unless the flag cancels an effect.
    fn is_negated(&self, name: &str) -> bool {
        let flag = name.strip_prefix("--no-").and_then(|rest| self.verb.exact(&format!("--{rest}")));
        flag.is_some_and(|spec| spec.traits == 0 && spec.kind.is_harmless())
    }

    /// `-name`, `-name value`, `-name=value`, and the same with two dashes.
    fn dash_option(&mut self, at: usize, text: &str) -> usize {
        let name = text.trim_start_matches('-');
        let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
        let name = format!("-{name}");
        match (self.verb.exact(&name), value) {
            // `-race=false` turns a flag off.
            (Some(spec), Some(_)) if spec.kind == Kind::Flag && spec.traits == 0 => at + 1,
            (Some(spec), Some(_)) if spec.kind == Kind::Flag => self.unknown(at, text),
            (Some(spec), Some(value)) => self.attached(at, &name, spec, value),
            (Some(spec), None) => self.with_next(at, &name, spec),
            (None, _) => self.unknown(at, text),
        }
    }

    /// `-abc`, `-ovalue`, `-o value`, `-5`.
    fn short_options(&mut self, at: usize, text: &str) -> usize {
        if self.verb.numbers && text[1..].bytes().all(|byte| byte.is_ascii_digit()) {
            return at + 1;
        }
        let letters = &text[1..];
        for (place, letter) in letters.char_indices() {
            let rest = &letters[place + letter.len_utf8()..];
            let name = format!("-{letter}");
            let Some(spec) = self.verb.exact(&name) else { return self.unknown(at, text) };
            if spec.kind == Kind::Flag {
                self.effects(at, &name, spec.traits);
            } else if rest.is_empty() {
                return self.with_next(at, &name, spec);
            } else {
                return self.attached(at, &name, spec, rest);
            }
        }
        at + 1
    }

    /// The first word of tar may be letters alone, whose values follow in order.
    pub(super) fn letters(&mut self, at: usize) -> usize {
        let Some(text) = self.words.get(at).and_then(Word::as_literal) else { return at };
        if text.starts_with('-') {
            return at;
        }
        let mut next = at + 1;
        for letter in text.chars() {
            let name = format!("-{letter}");
            match (self.verb.exact(&name), self.words.get(next)) {
                (None, _) => _ = self.unknown(at, text),
                (Some(spec), _) if spec.kind == Kind::Flag || spec.optional => self.effects(at, &name, spec.traits),
                (Some(_), None) => self.unclear(at, &name, Unclear::MissingValue),
                (Some(spec), Some(value)) => {
                    self.value(next, &name, spec, value);
                    next += 1;
                }
            }
        }
        next
    }

    fn unknown(&mut self, at: usize, text: &str) -> usize {
        let name = text.split('=').next().unwrap_or(text);
        self.unclear(at, name, Unclear::Option);
        at + 1
    }

    fn flag(&mut self, at: usize, name: &str, spec: Spec) -> usize {
        self.effects(at, name, spec.traits);
        at + 1
    }

    /// An option with its value in the same word.
    fn attached(&mut self, at: usize, name: &str, spec: Spec, value: &str) -> usize {
        let value = Word { text: value.to_owned(), certainty: self.words[at].certainty };
        // The other words of the command follow, and are judged as what the program gets.
        let kind = if spec.kind == Kind::Command { Kind::Program } else { spec.kind };
        self.value(at, name, Spec { kind, ..spec }, &value);
        at + 1
    }

    /// An option whose value, if it takes one, is the next word.
    fn with_next(&mut self, at: usize, name: &str, spec: Spec) -> usize {
        if spec.kind == Kind::Flag || spec.optional {
            return self.flag(at, name, spec);
        }
        let Some(value) = self.words.get(at + 1) else {
            self.unclear(at, name, Unclear::MissingValue);
            return at + 1;
        };
        if matches!(spec.kind, Kind::Command | Kind::Remote | Kind::Module) {
            self.effects(at, name, spec.traits);
            self.hand_over(spec.kind, at + 1, value);
            return self.words.len();
        }
        let splits = value.certainty == sayso_shell::Certainty::Unknown && !self.verb.harmless;
        if splits {
            self.unclear(at + 1, &value.text, Unclear::MayBeOption);
        }
        self.value(at + 1, name, spec, value);
        // A flag among the traits of the value counts from here on.
        self.given |= spec.traits & (Trait::DIRECTIONS | Trait::InPlace.bit());
        at + 2
    }
}
