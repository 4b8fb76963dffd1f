//! Coverage of an allow rule: finds words after the rule's own that it does not cover.

use sayso_shell::Word;

use crate::command_pattern::CommandWords;
use crate::decision::OverrideReason;
use crate::environment::{assigned_name, is_harmless};
use crate::grammar::vocabulary::Trait;
use crate::grammar::{Finding, FindingKind};
use crate::shell_builtins;

/// A word that prevents an allow rule from covering a command.
#[derive(Debug)]
pub(super) enum CoverageBlocker<'c> {
    /// The program has no grammar.
    NoGrammar(&'c str),
    /// A shell builtin with arguments that may change the shell.
    Builtin(&'c str),
    /// An effect, or a word that the grammar does not know.
    Finding(&'c Finding),
}

impl CoverageBlocker<'_> {
    pub(super) fn reason(&self) -> OverrideReason {
        match self {
            Self::NoGrammar(_) => OverrideReason::FurtherWords,
            Self::Finding(finding) if matches!(finding.what, FindingKind::Effect(_)) => OverrideReason::FurtherEffect,
            Self::Builtin(_) | Self::Finding(_) => OverrideReason::Unclear,
        }
    }

    /// Describes the blocker in one clause for a person.
    pub(super) fn clause(&self, command_words: &CommandWords<'_>) -> String {
        let command = command_words.parsed.map_or("", |parsed| parsed.command.as_str());
        match self {
            Self::NoGrammar(program) => {
                format!("sayso has no grammar for `{program}`, so a rule covers its own words only")
            }
            Self::Builtin(program) => format!("`{program}` may change the shell with these words"),
            Self::Finding(finding) => finding.clause(command),
        }
    }
}

/// Returns the first blocker outside `spelled`, the indices of the rule's own words. Paths and nested commands never block,
/// because policy decides them separately.
pub(super) fn find_blocker<'c>(command_words: &'c CommandWords<'_>, spelled: &[usize]) -> Option<CoverageBlocker<'c>> {
    let words = command_words.own_words();
    let program = words.first().map(|word| word.text.as_str()).unwrap_or_default();
    match shell_builtins::is_effect_free(words) {
        Some(true) => return None,
        Some(false) => return Some(CoverageBlocker::Builtin(program)),
        None => {}
    }
    let Some(parsed) = command_words.parsed else {
        return (words.len() > spelled.len()).then_some(CoverageBlocker::NoGrammar(program));
    };
    let has_further = words.len() > spelled.len() + parsed.skipped.len();
    let further = |finding: &&Finding| match finding.what {
        // The grammar does not describe the words after it.
        FindingKind::Effect(Trait::Unknown) => has_further || !spelled.contains(&finding.at),
        _ => !finding.is_decided_separately() && !spelled.contains(&finding.at),
    };
    parsed.findings.iter().find(further).map(CoverageBlocker::Finding)
}

/// `true` for an assignment of a variable that no program depends on.
pub(super) fn is_harmless_assignment(word: &Word) -> bool {
    assigned_name(&word.text).is_some_and(is_harmless)
}
