//! How far a rule that allows a command covers the words behind those that it spells out.

use sayso_shell::Word;

use crate::builtins;
use crate::environment::{assigned_name, is_harmless};
use crate::grammar::vocabulary::Trait;
use crate::grammar::{Finding, What};
use crate::ruling::Why;
use crate::words::Spoken;

/// The word of a command that keeps a rule from covering it.
#[derive(Debug)]
pub(super) enum Hindrance<'c> {
    /// sayso does not know the options of the program.
    NoGrammar(&'c str),
    /// A builtin with arguments that may change the shell.
    Builtin(&'c str),
    /// An effect, or a word that is not understood.
    Finding(&'c Finding),
}

impl Hindrance<'_> {
    pub(super) fn why(&self) -> Why {
        match self {
            Self::NoGrammar(_) => Why::FurtherWords,
            Self::Finding(finding) if matches!(finding.what, What::Effect(_)) => Why::FurtherEffect,
            Self::Builtin(_) | Self::Finding(_) => Why::Unclear,
        }
    }

    /// The hindrance as one clause for a person.
    pub(super) fn clause(&self, spoken: &Spoken<'_>) -> String {
        let command = spoken.reading.map_or("", |reading| reading.command.as_str());
        match self {
            Self::NoGrammar(program) => {
                format!("sayso does not know the options of `{program}`, so a rule covers its very words only")
            }
            Self::Builtin(program) => format!("`{program}` may change the shell with these words"),
            Self::Finding(finding) => finding.clause(command),
        }
    }
}

/// The first word that does more than the words spell out, by their indices. Places and other commands are judged by themselves.
pub(super) fn hindrance<'c>(spoken: &'c Spoken<'_>, spelled: &[usize]) -> Option<Hindrance<'c>> {
    let words = spoken.plain();
    let program = words.first().map(|word| word.text.as_str()).unwrap_or_default();
    match builtins::is_effect_free(words) {
        Some(true) => return None,
        Some(false) => return Some(Hindrance::Builtin(program)),
        None => {}
    }
    let Some(reading) = spoken.reading else {
        return (words.len() > spelled.len()).then_some(Hindrance::NoGrammar(program));
    };
    let has_further = words.len() > spelled.len() + reading.skipped.len();
    let further = |finding: &&Finding| match finding.what {
        // Nobody can say what the words behind it do.
        What::Effect(Trait::Unknown) => has_further || !spelled.contains(&finding.at),
        _ => !finding.is_judged_apart() && !spelled.contains(&finding.at),
    };
    reading.findings.iter().find(further).map(Hindrance::Finding)
}

/// `true` for a variable in front of a command that does not hinder.
pub(super) fn is_harmless_assignment(word: &Word) -> bool {
    assigned_name(&word.text).is_some_and(is_harmless)
}
