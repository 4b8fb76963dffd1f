//! Patterns over the words of a command, and whether a command matches one.

use std::borrow::Cow;

use sayso_shell::{Certainty, SimpleCommand, Word};

use crate::coverage::{hindrance, is_harmless_assignment};
use crate::grammar::Reading;
use crate::rule::RuleOptions;
use crate::ruling::Why;

/// The first words of a command, as a rule names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    wanted: Vec<Wanted>,
    end: End,
    /// Those behind the first that are options, for which the order does not matter.
    options: Vec<String>,
    /// Those behind the first that are not.
    others: Vec<Wanted>,
}

/// A command made ready to be compared with many patterns.
pub(super) struct Spoken<'c> {
    pub(super) command: &'c SimpleCommand,
    /// The program as its grammar reads it.
    pub(super) reading: Option<&'c Reading>,
    /// The programs that run it, as they are written, and then its words.
    written: Vec<Cow<'c, Word>>,
    /// The same by the first word of each program.
    named: Vec<Cow<'c, Word>>,
}

impl<'c> Spoken<'c> {
    pub(super) fn new(command: &'c SimpleCommand, words: &'c [Word], reading: Option<&'c Reading>) -> Self {
        let through = |text: fn(&str) -> &str| {
            let outer = command.through.iter().map(|name| Cow::Owned(Word::literal(text(name))));
            outer.chain(words.iter().map(Cow::Borrowed)).collect()
        };
        let (written, named) = (through(|name| name), through(|name| name.split(' ').next().unwrap_or(name)));
        Self { command, reading, written, named }
    }

    fn outer(&self) -> usize {
        self.command.through.len()
    }

    /// The program and its arguments.
    pub(super) fn plain(&self) -> &[Cow<'c, Word>] {
        &self.written[self.outer()..]
    }
}

/// One word of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// This word.
    Word(String),
    /// Any one word.
    Any,
}

impl Wanted {
    fn is(&self, text: &str) -> bool {
        match self {
            Self::Word(wanted) => wanted == text,
            Self::Any => true,
        }
    }

    fn is_option(&self) -> bool {
        matches!(self, Self::Word(text) if is_option(text))
    }
}

fn is_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-')
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
        let (options, others) = words[1..].iter().cloned().partition::<Vec<_>, _>(Wanted::is_option);
        let options = options.into_iter().filter_map(|option| match option {
            Wanted::Word(text) => Some(text),
            Wanted::Any => None,
        });
        Ok(Self { options: options.collect(), others, wanted: words, end })
    }

    /// The first word, unless it is any.
    pub(super) fn program(&self) -> Option<&str> {
        match self.wanted.first() {
            Some(Wanted::Word(text)) => Some(text),
            _ => None,
        }
    }

    /// Whether the words begin as written, every one of them known.
    fn begins(&self, words: &[Cow<'_, Word>]) -> bool {
        let enough =
            if self.end == End::Here { words.len() == self.wanted.len() } else { words.len() >= self.wanted.len() };
        enough
            && self.wanted.iter().zip(words).all(|(wanted, word)| word.as_literal().is_some_and(|text| wanted.is(text)))
    }

    /// Whether a rule that makes things milder means this command: to the letter, or not at all.
    pub(super) fn covers(&self, spoken: &Spoken<'_>, wrappers: Wrappers, options: Option<RuleOptions>) -> Fit {
        let outer = spoken.outer();
        let plain = spoken.plain();
        let spelled = if self.begins(plain) {
            if wrappers == Wrappers::Hidden && outer > 0 {
                return Fit::But(Why::Wrapped);
            }
            Some((0..self.wanted.len()).collect())
        } else if outer > 0 && self.wanted.len() > outer && self.begins(&spoken.written) {
            // A rule that spells out the other program and what that runs.
            Some((0..self.wanted.len() - outer).collect())
        } else {
            self.past_options(spoken, wrappers)
        };
        let Some(spelled) = spelled else { return self.nearly_covers(plain) };
        if spoken.command.assignments.iter().any(|word| !is_harmless_assignment(word)) {
            return Fit::But(Why::Assignment);
        }
        // Whoever names no program means any command.
        let is_wide = options == Some(RuleOptions::Any) || self.program().is_none();
        if self.end == End::Here || is_wide {
            return Fit::Yes;
        }
        hindrance(spoken, &spelled).map_or(Fit::Yes, |hindrance| Fit::But(hindrance.why()))
    }

    /// The words that the pattern spells out, if it matches past options without effect before the subcommand.
    fn past_options(&self, spoken: &Spoken<'_>, wrappers: Wrappers) -> Option<Vec<usize>> {
        let skipped = &spoken.reading?.skipped;
        let is_hidden = wrappers == Wrappers::Hidden && spoken.outer() > 0;
        if skipped.is_empty() || self.end == End::Here || is_hidden {
            return None;
        }
        let plain = spoken.plain();
        let kept: Vec<usize> = (0..plain.len()).filter(|at| !skipped.contains(at)).collect();
        let words: Vec<Cow<'_, Word>> = kept.iter().map(|at| Cow::Borrowed(plain[*at].as_ref())).collect();
        self.begins(&words).then(|| kept[..self.wanted.len()].to_vec())
    }

    fn nearly_covers(&self, words: &[Cow<'_, Word>]) -> Fit {
        let (Some(first), Some(program)) = (words.first().and_then(|word| word.as_literal()), self.program()) else {
            return Fit::No;
        };
        if first != program && base_name(first) == program {
            return Fit::But(Why::OtherProgram);
        }
        let unknown = |word: &Cow<'_, Word>| word.certainty != Certainty::Literal;
        let could = |(wanted, word): (&Wanted, &Cow<'_, Word>)| unknown(word) || wanted.is(&word.text);
        let compared = words.iter().take(self.wanted.len());
        if words.len() >= self.wanted.len() && self.wanted.iter().zip(words).all(could) && compared.clone().any(unknown)
        {
            Fit::But(Why::UnknownWords)
        } else {
            Fit::No
        }
    }

    /// The number of words.
    pub(super) fn length(&self) -> usize {
        self.wanted.len()
    }

    /// `true` for a pattern with more words than the program.
    pub(super) fn names_arguments(&self) -> bool {
        self.wanted.len() > 1
    }

    /// Whether a rule that makes things stricter means this command: however it is written, and whoever runs it.
    pub(super) fn reaches(&self, spoken: &Spoken<'_>) -> Fit {
        let mut best = Fit::No;
        for from in 0..=spoken.outer() {
            match self.reaches_words(&spoken.named[from..]) {
                Fit::Yes => return Fit::Yes,
                Fit::Maybe => best = Fit::Maybe,
                Fit::But(_) | Fit::No => {}
            }
        }
        best
    }

    pub(super) fn reaches_words(&self, words: &[Cow<'_, Word>]) -> Fit {
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

    fn same_arguments(&self, words: &[Cow<'_, Word>]) -> Fit {
        if words.iter().any(|word| word.certainty != Certainty::Literal) {
            return Fit::Maybe;
        }
        let wanted = &self.wanted[1..];
        let same = wanted.len() == words.len() && wanted.iter().zip(words).all(|(wanted, word)| wanted.is(&word.text));
        if same { Fit::Yes } else { Fit::No }
    }

    /// Options may stand anywhere, in any order; what remains must begin as the pattern does.
    fn reaches_arguments(&self, words: &[Cow<'_, Word>]) -> Fit {
        if !self.options.iter().all(|option| has_option(words, option)) {
            let unknown = words.iter().any(|word| word.certainty != Certainty::Literal);
            return if unknown { Fit::Maybe } else { Fit::No };
        }
        // The value of an option looks like any other word, so that behind one only the order tells.
        let (mut behind_option, mut uncertain) = (false, false);
        let mut wanted = self.others.iter();
        let mut next = wanted.next();
        for word in words {
            let Some(expected) = next else { break };
            if word.certainty != Certainty::Literal {
                return Fit::Maybe;
            }
            if is_option(&word.text) {
                behind_option = true;
            } else if expected.is(&word.text) {
                next = wanted.next();
            } else if behind_option {
                uncertain = true;
            } else {
                return Fit::No;
            }
        }
        match next {
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
    fn plain(name: &str) -> &str {
        name.strip_prefix("./").unwrap_or(name)
    }
    if !base_name(wanted).eq_ignore_ascii_case(base_name(found)) {
        Fit::No
    } else if !wanted.contains('/') || plain(wanted) == plain(found) {
        Fit::Yes
    } else {
        Fit::Maybe
    }
}

/// Whether an option is among the words: by itself, with a value, or as letters of `-rf`.
fn has_option(words: &[Cow<'_, Word>], option: &str) -> bool {
    let given = |word: &Cow<'_, Word>| {
        word.text.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    let has_letter = |word: &Cow<'_, Word>, letter: char| {
        word.text.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
    };
    // What nearly every program means by these letters, written out or as a capital: a rule about `rm -rf` is about them, too.
    let synonym = |word: &Cow<'_, Word>, letter: char| match letter {
        'r' | 'R' => word.text == "--recursive" || has_letter(word, 'r') || has_letter(word, 'R'),
        'f' => word.text == "--force",
        _ => false,
    };
    let has = |letter: char| words.iter().any(|word| has_letter(word, letter) || synonym(word, letter));
    let by_letters = || option[1..].chars().all(has);
    words.iter().any(given) || (!option.starts_with("--") && by_letters())
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
