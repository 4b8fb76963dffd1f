//! Patterns over the words of a command, and their comparison with commands.

use std::borrow::Cow;

use sayso_shell::{Certainty, SimpleCommand, Word};

use crate::coverage::{find_blocker, is_harmless_assignment};
use crate::decision::OverrideReason;
use crate::grammar::ParsedArguments;
use crate::rule::RuleOptions;

/// The first words of a command, as the `run` key of a rule lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandPattern {
    words: Vec<WordPattern>,
    end: PatternEnd,
    /// Options after the first word. Their order does not matter.
    options: Vec<String>,
    /// Words after the first that are not options.
    operands: Vec<WordPattern>,
}

/// A command prepared for comparison with many patterns.
pub(super) struct CommandWords<'c> {
    pub(super) command: &'c SimpleCommand,
    /// Arguments parsed by the program's grammar; `None` without a grammar.
    pub(super) parsed: Option<&'c ParsedArguments>,
    /// Wrappers as written (`bash -c`), then the command's own words.
    with_wrappers: Vec<Cow<'c, Word>>,
    /// Wrappers by program name (`bash`), then the command's own words.
    with_wrapper_names: Vec<Cow<'c, Word>>,
}

impl<'c> CommandWords<'c> {
    pub(super) fn new(command: &'c SimpleCommand, words: &'c [Word], parsed: Option<&'c ParsedArguments>) -> Self {
        let all_words = |text: fn(&str) -> &str| {
            let outer = command.wrappers.iter().map(|name| Cow::Owned(Word::literal(text(name))));
            outer.chain(words.iter().map(Cow::Borrowed)).collect()
        };
        let with_wrappers = all_words(|name| name);
        let with_wrapper_names = all_words(|name| name.split(' ').next().unwrap_or(name));
        Self { command, parsed, with_wrappers, with_wrapper_names }
    }

    fn wrapper_count(&self) -> usize {
        self.command.wrappers.len()
    }

    /// Returns the program and its arguments, without wrappers.
    pub(super) fn own_words(&self) -> &[Cow<'c, Word>] {
        &self.with_wrappers[self.wrapper_count()..]
    }
}

/// One word of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordPattern {
    Word(String),
    /// Any one word.
    Any,
}

impl WordPattern {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Word(word) => word == text,
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
enum PatternEnd {
    /// Further words may follow.
    Open,
    /// A final `$`: no further words.
    Closed,
}

/// Result of comparing a command with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchCertainty {
    Certain,
    /// The command possibly matches, so policy asks.
    Possible,
    /// The command would match but for this reason.
    NearMiss(OverrideReason),
    NoMatch,
}

impl CommandPattern {
    /// Parses a pattern: words separated by spaces, quoted as in a shell.
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        let mut words = Vec::new();
        let mut end = PatternEnd::Open;
        for (text, quoted) in tokens(pattern)? {
            if end == PatternEnd::Closed {
                return Err("`$` excludes further words, so it must be last; quote it if it is a word".to_owned());
            }
            match text.as_str() {
                "*" if !quoted => words.push(WordPattern::Any),
                "$" if !quoted => end = PatternEnd::Closed,
                _ if !quoted && text.contains('*') => {
                    return Err(format!(
                        "`*` stands for one whole word, which `{text}` is not; quote it if it is literal"
                    ));
                }
                _ => words.push(WordPattern::Word(text)),
            }
        }
        if words.is_empty() {
            return Err("it is empty".to_owned());
        }
        let (options, operands) = words[1..].iter().cloned().partition::<Vec<_>, _>(WordPattern::is_option);
        let options = options.into_iter().filter_map(|option| match option {
            WordPattern::Word(text) => Some(text),
            WordPattern::Any => None,
        });
        Ok(Self { options: options.collect(), operands, words, end })
    }

    /// Returns the first word, unless it is `*`.
    pub(super) fn program(&self) -> Option<&str> {
        match self.words.first() {
            Some(WordPattern::Word(text)) => Some(text),
            _ => None,
        }
    }

    /// `true` if the words begin with the pattern and are all literal.
    fn is_prefix_of(&self, words: &[Cow<'_, Word>]) -> bool {
        let enough = if self.end == PatternEnd::Closed {
            words.len() == self.words.len()
        } else {
            words.len() >= self.words.len()
        };
        enough
            && self
                .words
                .iter()
                .zip(words)
                .all(|(wanted, word)| word.as_literal().is_some_and(|text| wanted.matches(text)))
    }

    /// Compares a command with the pattern of an allow rule, which matches to the letter only.
    pub(super) fn allows(
        &self,
        command_words: &CommandWords<'_>,
        wrappers: WrapperVisibility,
        options: Option<RuleOptions>,
    ) -> MatchCertainty {
        let wrapper_count = command_words.wrapper_count();
        let own_words = command_words.own_words();
        let spelled = if self.is_prefix_of(own_words) {
            if wrappers == WrapperVisibility::Hidden && wrapper_count > 0 {
                return MatchCertainty::NearMiss(OverrideReason::Wrapped);
            }
            Some((0..self.words.len()).collect())
        } else if wrapper_count > 0
            && self.words.len() > wrapper_count
            && self.is_prefix_of(&command_words.with_wrappers)
        {
            // The rule names the wrappers and the command that they run.
            Some((0..self.words.len() - wrapper_count).collect())
        } else {
            self.match_past_options(command_words, wrappers)
        };
        let Some(spelled) = spelled else { return self.near_miss(own_words) };
        if command_words.command.assignments.iter().any(|word| !is_harmless_assignment(word)) {
            return MatchCertainty::NearMiss(OverrideReason::Assignment);
        }
        // A pattern that begins with `*` covers any command.
        let is_wide = options == Some(RuleOptions::Any) || self.program().is_none();
        if self.end == PatternEnd::Closed || is_wide {
            return MatchCertainty::Certain;
        }
        find_blocker(command_words, &spelled)
            .map_or(MatchCertainty::Certain, |blocker| MatchCertainty::NearMiss(blocker.reason()))
    }

    /// Returns the indices of the pattern's words in the command, if the pattern matches after skipping harmless options before
    /// the subcommand.
    fn match_past_options(&self, command_words: &CommandWords<'_>, wrappers: WrapperVisibility) -> Option<Vec<usize>> {
        let skipped = &command_words.parsed?.skipped;
        let is_hidden = wrappers == WrapperVisibility::Hidden && command_words.wrapper_count() > 0;
        if skipped.is_empty() || self.end == PatternEnd::Closed || is_hidden {
            return None;
        }
        let plain = command_words.own_words();
        let kept: Vec<usize> = (0..plain.len()).filter(|at| !skipped.contains(at)).collect();
        let words: Vec<Cow<'_, Word>> = kept.iter().map(|at| Cow::Borrowed(plain[*at].as_ref())).collect();
        self.is_prefix_of(&words).then(|| kept[..self.words.len()].to_vec())
    }

    /// Names the reason if an allow pattern nearly matches.
    fn near_miss(&self, words: &[Cow<'_, Word>]) -> MatchCertainty {
        let (Some(first), Some(program)) = (words.first().and_then(|word| word.as_literal()), self.program()) else {
            return MatchCertainty::NoMatch;
        };
        if first != program && base_name(first) == program {
            return MatchCertainty::NearMiss(OverrideReason::OtherProgram);
        }
        let unknown = |word: &Cow<'_, Word>| word.certainty != Certainty::Literal;
        let could = |(wanted, word): (&WordPattern, &Cow<'_, Word>)| unknown(word) || wanted.matches(&word.text);
        let compared = words.iter().take(self.words.len());
        if words.len() >= self.words.len() && self.words.iter().zip(words).all(could) && compared.clone().any(unknown) {
            MatchCertainty::NearMiss(OverrideReason::UnknownWords)
        } else {
            MatchCertainty::NoMatch
        }
    }

    pub(super) fn word_count(&self) -> usize {
        self.words.len()
    }

    /// `true` for a pattern with words after the program.
    pub(super) fn names_arguments(&self) -> bool {
        self.words.len() > 1
    }

    /// Compares a command with the pattern of an ask or deny rule, which looks through wrappers and ignores paths and case.
    pub(super) fn restricts(&self, command_words: &CommandWords<'_>) -> MatchCertainty {
        let mut best = MatchCertainty::NoMatch;
        for from in 0..=command_words.wrapper_count() {
            match self.restricts_words(&command_words.with_wrapper_names[from..]) {
                MatchCertainty::Certain => return MatchCertainty::Certain,
                MatchCertainty::Possible => best = MatchCertainty::Possible,
                MatchCertainty::NearMiss(_) | MatchCertainty::NoMatch => {}
            }
        }
        best
    }

    /// Compares words that begin with a program.
    pub(super) fn restricts_words(&self, words: &[Cow<'_, Word>]) -> MatchCertainty {
        let Some((first, rest)) = words.split_first() else { return MatchCertainty::NoMatch };
        let program = match self.program() {
            None => MatchCertainty::Certain,
            Some(program) => match_program(program, &first.text),
        };
        if program == MatchCertainty::NoMatch {
            return MatchCertainty::NoMatch;
        }
        let arguments =
            if self.end == PatternEnd::Closed { self.match_exact_arguments(rest) } else { self.match_arguments(rest) };
        match (program, arguments) {
            (_, MatchCertainty::NoMatch) => MatchCertainty::NoMatch,
            (MatchCertainty::Certain, arguments) => arguments,
            _ => MatchCertainty::Possible,
        }
    }

    fn match_exact_arguments(&self, words: &[Cow<'_, Word>]) -> MatchCertainty {
        if words.iter().any(|word| word.certainty != Certainty::Literal) {
            return MatchCertainty::Possible;
        }
        let wanted = &self.words[1..];
        let same =
            wanted.len() == words.len() && wanted.iter().zip(words).all(|(wanted, word)| wanted.matches(&word.text));
        if same { MatchCertainty::Certain } else { MatchCertainty::NoMatch }
    }

    /// Matches options in any position and order. The other words must begin with the pattern's operands.
    fn match_arguments(&self, words: &[Cow<'_, Word>]) -> MatchCertainty {
        if !self.options.iter().all(|option| has_option(words, option)) {
            let unknown = words.iter().any(|word| word.certainty != Certainty::Literal);
            return if unknown { MatchCertainty::Possible } else { MatchCertainty::NoMatch };
        }
        // The value of an option looks like an operand. After an option, a word that does not match may be its value, so the
        // match becomes uncertain instead of failing.
        let (mut behind_option, mut uncertain) = (false, false);
        let mut wanted = self.operands.iter();
        let mut next = wanted.next();
        for word in words {
            let Some(expected) = next else { break };
            if word.certainty != Certainty::Literal {
                return MatchCertainty::Possible;
            }
            if is_option(&word.text) {
                behind_option = true;
            } else if expected.matches(&word.text) {
                next = wanted.next();
            } else if behind_option {
                uncertain = true;
            } else {
                return MatchCertainty::NoMatch;
            }
        }
        match next {
            Some(_) => MatchCertainty::NoMatch,
            None if uncertain => MatchCertainty::Possible,
            None => MatchCertainty::Certain,
        }
    }
}

/// Visibility of the wrappers of a command. Policy decides a listed wrapper as a command of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrapperVisibility {
    Listed,
    Hidden,
}

/// Returns the last component of a path.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Compares two program names by their last component, ignoring case.
fn match_program(wanted: &str, found: &str) -> MatchCertainty {
    fn plain(name: &str) -> &str {
        name.strip_prefix("./").unwrap_or(name)
    }
    if !base_name(wanted).eq_ignore_ascii_case(base_name(found)) {
        MatchCertainty::NoMatch
    } else if !wanted.contains('/') || plain(wanted) == plain(found) {
        MatchCertainty::Certain
    } else {
        MatchCertainty::Possible
    }
}

/// `true` if the words contain the option: alone, with `=value`, or as letters of a cluster such as `-rf`.
fn has_option(words: &[Cow<'_, Word>], option: &str) -> bool {
    let given = |word: &Cow<'_, Word>| {
        word.text.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    let has_letter = |word: &Cow<'_, Word>, letter: char| {
        word.text.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
    };
    // Nearly all programs use these spellings as synonyms, so a rule about `rm -rf` covers them too.
    let synonym = |word: &Cow<'_, Word>, letter: char| match letter {
        'r' | 'R' => word.text == "--recursive" || has_letter(word, 'r') || has_letter(word, 'R'),
        'f' => word.text == "--force",
        _ => false,
    };
    let has = |letter: char| words.iter().any(|word| has_letter(word, letter) || synonym(word, letter));
    let by_letters = || option[1..].chars().all(has);
    words.iter().any(given) || (!option.starts_with("--") && by_letters())
}

/// Splits a pattern into words. The flag is `true` for a word with a quoted part.
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
                        None => return Err(format!("the quote {character} is not closed")),
                        Some(next) if next == character => break,
                        Some('\\') if character == '"' => text.extend(characters.next()),
                        Some(next) => text.push(next),
                    }
                }
            }
            '\\' => {
                *quoted = true;
                text.push(characters.next().ok_or("it ends with a backslash")?);
            }
            _ => text.push(character),
        }
    }
    tokens.extend(current);
    Ok(tokens)
}

/// Quotes a word for use in a pattern.
pub(super) fn quote(word: &str) -> String {
    let plain = |character: char| !character.is_whitespace() && !matches!(character, '\'' | '"' | '\\' | '*');
    if !word.is_empty() && word != "$" && word.chars().all(plain) {
        word.to_owned()
    } else {
        // A single quote becomes `'\''`: close the quotes, add an escaped quote, open them again.
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
