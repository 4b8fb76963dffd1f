//! Patterns over the words of a command, and whether a command matches one.

use crate::policy::ruling::Why;
use crate::shell::{Certainty, SimpleCommand, Word};

/// The first words of a command, as a rule names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) words: Vec<Wanted>,
    end: End,
}

/// One word of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// This word.
    Word(String),
    /// Any one word.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Anything may follow.
    Open,
    /// Nothing follows.
    Here,
}

/// Whether a command is what a pattern means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It is.
    Yes,
    /// It may be, which is enough to ask.
    Maybe,
    /// It is not, and only for this reason.
    But(Why),
    /// It is not.
    No,
}

impl Words {
    /// Reads a pattern: words apart by spaces, quoted as in a shell.
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        let mut words = Vec::new();
        let mut end = End::Open;
        for (text, quoted) in tokens(pattern)? {
            if end == End::Here {
                return Err("`$` means that nothing follows, so it stands last; quote it if it is a word".to_owned());
            }
            match text.as_str() {
                "*" if !quoted => words.push(Wanted::Any),
                "$" if !quoted => end = End::Here,
                _ if !quoted && text.contains('*') => {
                    return Err(format!(
                        "`*` stands for one whole word, which `{text}` is not; quote it if it means itself"
                    ));
                }
                _ => words.push(Wanted::Word(text)),
            }
        }
        if words.is_empty() {
            return Err("it has no word".to_owned());
        }
        Ok(Self { words, end })
    }

    /// The first word, unless it is any.
    pub(super) fn program(&self) -> Option<&str> {
        match self.words.first() {
            Some(Wanted::Word(text)) => Some(text),
            _ => None,
        }
    }

    /// Whether the words begin as written, every one of them known.
    fn begins(&self, words: &[&Word]) -> bool {
        let fits = |(wanted, word): (&Wanted, &&Word)| match wanted {
            Wanted::Word(text) => word.as_literal() == Some(text),
            Wanted::Any => word.as_literal().is_some(),
        };
        let long_enough =
            if self.end == End::Here { words.len() == self.words.len() } else { words.len() >= self.words.len() };
        long_enough && self.words.iter().zip(words).all(fits)
    }

    /// Whether a rule that makes things milder means this command: to the letter, or not at all.
    pub(super) fn covers(&self, command: &SimpleCommand, wrappers: Wrappers) -> Fit {
        let plain: Vec<&Word> = command.words.iter().collect();
        let whole: Vec<Word>;
        let matched = if self.begins(&plain) {
            if wrappers == Wrappers::Hidden && !command.through.is_empty() {
                return Fit::But(Why::Wrapped);
            }
            true
        } else if !command.through.is_empty() && self.words.len() > command.through.len() {
            // A rule that spells out the other program and what that runs.
            whole = command.through.iter().map(Word::literal).collect();
            self.begins(&whole.iter().chain(&command.words).collect::<Vec<_>>())
        } else {
            false
        };
        match matched {
            true if !command.assignments.is_empty() => Fit::But(Why::Assignment),
            true => Fit::Yes,
            false => self.nearly_covers(&plain),
        }
    }

    fn nearly_covers(&self, words: &[&Word]) -> Fit {
        let (Some(first), Some(program)) = (words.first().and_then(|word| word.as_literal()), self.program()) else {
            return Fit::No;
        };
        if first != program && base_name(first) == program {
            return Fit::But(Why::OtherProgram);
        }
        let could = |(wanted, word): (&Wanted, &&Word)| {
            word.certainty != Certainty::Literal || matches!(wanted, Wanted::Word(text) if *text == word.text)
        };
        let unknown = words.iter().take(self.words.len()).any(|word| word.certainty != Certainty::Literal);
        if unknown && words.len() >= self.words.len() && self.words.iter().zip(words).all(could) {
            Fit::But(Why::UnknownWords)
        } else {
            Fit::No
        }
    }

    /// Whether a rule that makes things stricter means this command: however it is written, and whoever runs it.
    pub(super) fn reaches(&self, command: &SimpleCommand) -> Fit {
        let outer: Vec<Word> =
            command.through.iter().map(|name| Word::literal(name.split(' ').next().unwrap_or(name))).collect();
        let words: Vec<&Word> = outer.iter().chain(&command.words).collect();
        let mut best = Fit::No;
        for from in 0..=outer.len() {
            match self.reaches_words(&words[from.min(words.len())..]) {
                Fit::Yes => return Fit::Yes,
                Fit::Maybe => best = Fit::Maybe,
                Fit::But(_) | Fit::No => {}
            }
        }
        best
    }

    fn reaches_words(&self, words: &[&Word]) -> Fit {
        let Some((first, rest)) = words.split_first() else { return Fit::No };
        let program = match self.program() {
            None => Fit::Yes,
            Some(program) => same_program(program, &first.text),
        };
        if program == Fit::No {
            return Fit::No;
        }
        let arguments = if self.end == End::Here { self.same_arguments(rest) } else { self.reaches_arguments(rest) };
        match (program, arguments) {
            (_, Fit::No) => Fit::No,
            (Fit::Yes, arguments) => arguments,
            _ => Fit::Maybe,
        }
    }

    fn same_arguments(&self, words: &[&Word]) -> Fit {
        if words.iter().any(|word| word.certainty != Certainty::Literal) {
            return Fit::Maybe;
        }
        let same = |(wanted, word): (&Wanted, &&Word)| {
            matches!(wanted, Wanted::Any) || *wanted == Wanted::Word(word.text.clone())
        };
        let wanted = &self.words[1..];
        if wanted.len() == words.len() && wanted.iter().zip(words).all(same) { Fit::Yes } else { Fit::No }
    }

    /// Options may stand anywhere, in any order; what remains must begin as the pattern does.
    fn reaches_arguments(&self, words: &[&Word]) -> Fit {
        let is_option = |text: &str| text.len() > 1 && text.starts_with('-');
        let mut uncertain = words.iter().any(|word| word.certainty != Certainty::Literal);
        let (options, wanted): (Vec<&Wanted>, Vec<&Wanted>) =
            self.words[1..].iter().partition(|wanted| matches!(wanted, Wanted::Word(text) if is_option(text)));
        for option in options {
            let Wanted::Word(option) = option else { continue };
            if !has_option(words, option) {
                return if uncertain { Fit::Maybe } else { Fit::No };
            }
        }
        uncertain = false;
        // The value of an option looks like any other word, so that behind one only the order tells.
        let mut behind_option = false;
        let mut next = wanted.iter().peekable();
        for word in words {
            let Some(expected) = next.peek() else { break };
            if word.certainty != Certainty::Literal {
                return Fit::Maybe;
            }
            if is_option(&word.text) {
                behind_option = true;
            } else if matches!(expected, Wanted::Any) || **expected == &Wanted::Word(word.text.clone()) {
                next.next();
            } else if behind_option {
                uncertain = true;
            } else {
                return Fit::No;
            }
        }
        match next.peek() {
            Some(_) => Fit::No,
            None if uncertain => Fit::Maybe,
            None => Fit::Yes,
        }
    }
}

/// Whether the programs that run a command are commands of the script themselves, and so are judged themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrappers {
    Listed,
    Hidden,
}

/// The last name of a path.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether two names can be one program: by the last name, in whatever case.
fn same_program(wanted: &str, found: &str) -> Fit {
    let plain = |name: &str| name.strip_prefix("./").unwrap_or(name).to_owned();
    if !base_name(wanted).eq_ignore_ascii_case(base_name(found)) {
        Fit::No
    } else if !wanted.contains('/') || plain(wanted) == plain(found) {
        Fit::Yes
    } else {
        Fit::Maybe
    }
}

/// Whether an option is among the words: by itself, with a value, or as letters of `-rf`.
fn has_option(words: &[&Word], option: &str) -> bool {
    let given = |text: &str| {
        words
            .iter()
            .any(|word| word.text == text || word.text.strip_prefix(text).is_some_and(|rest| rest.starts_with('=')))
    };
    let letters = |word: &Word| word.text.strip_prefix('-').filter(|rest| !rest.starts_with('-')).map(str::to_owned);
    given(option)
        || (!option.starts_with("--")
            && option[1..]
                .chars()
                .all(|letter| words.iter().filter_map(|word| letters(word)).any(|found| found.contains(letter))))
}

/// Splits a pattern into words and whether any of a word was quoted.
fn tokens(pattern: &str) -> Result<Vec<(String, bool)>, String> {
    let mut tokens = Vec::new();
    let mut characters = pattern.chars();
    let mut current: Option<(String, bool)> = None;
    while let Some(character) = characters.next() {
        if character.is_whitespace() {
            tokens.extend(current.take());
            continue;
        }
        let (text, quoted) = current.get_or_insert_default();
        match character {
            '\'' | '"' => {
                *quoted = true;
                loop {
                    match characters.next() {
                        None => return Err(format!("the quote {character} has no end")),
                        Some(next) if next == character => break,
                        Some('\\') if character == '"' => text.extend(characters.next()),
                        Some(next) => text.push(next),
                    }
                }
            }
            '\\' => {
                *quoted = true;
                text.push(characters.next().ok_or("a backslash stands last")?);
            }
            _ => text.push(character),
        }
    }
    tokens.extend(current);
    Ok(tokens)
}

/// A word as it stands in a pattern.
pub(super) fn quote(word: &str) -> String {
    let plain = |character: char| !character.is_whitespace() && !matches!(character, '\'' | '"' | '\\' | '*');
    if !word.is_empty() && word != "$" && word.chars().all(plain) {
        word.to_owned()
    } else {
        // A single quote ends the quoting, stands escaped, and begins it again.
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
