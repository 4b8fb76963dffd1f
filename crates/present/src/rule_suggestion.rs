//! The rule that "always" would write, and the decisions that it would have covered.

use sayso_api::client::{CoveredDecision, RuleSuggestion};

use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};
use crate::words::{count, join_numbers};

/// Changes that a line names.
const MAX_NAMED_CHANGES: usize = 10;

/// Describes the rule in one line, before the question.
pub fn rule_offer(suggestion: &RuleSuggestion) -> String {
    format!("rule of a and s: {}", escape_unprintable(&suggestion.explanation))
}

/// Tells in one line that there is no rule.
pub fn no_rule_offer(reason: &str) -> String {
    format!("rule of a and s: none, {}", escape_unprintable(reason))
}

/// Renders the rule as it is written, its place, and the decisions that it would have covered.
pub fn render_rule_suggestion(suggestion: &RuleSuggestion) -> StyledText {
    let mut text = StyledText::new();
    let place = match (&suggestion.file, &suggestion.session) {
        (Some(file), _) => format!("Rule for {}:", escape_unprintable(file)),
        (None, Some(session)) => format!("Rule for session {}:", escape_unprintable(session)),
        (None, None) => "Rule:".to_owned(),
    };
    text.line(Style::Title, place);
    for line in suggestion.toml.lines() {
        text.plain(format!("  {}\n", escape_unprintable(line)));
    }
    text.append(render_coverage(suggestion));
    text
}

fn render_coverage(suggestion: &RuleSuggestion) -> StyledText {
    let mut text = StyledText::new();
    let inspected = count(suggestion.inspected, "decision");
    let covered = &suggestion.covered;
    match (suggestion.inspected, covered.len()) {
        (0, _) => text.line(Style::Dim, "There is no earlier decision to compare it with."),
        (_, 0) => text.line(Style::Dim, format!("It would have covered none of the last {inspected}.")),
        (_, number) => text.line(Style::Plain, format!("It would have covered {number} of the last {inspected}:")),
    }
    let changes = |approved: bool, by_person: bool| -> Vec<u64> {
        let is_meant = |decision: &&CoveredDecision| (decision.approved, decision.by_person) == (approved, by_person);
        covered.iter().filter(is_meant).map(|decision| decision.change).collect()
    };
    for (approved, by_person, title, style) in [
        (false, true, "denied by a person", Style::Critical),
        (false, false, "denied by a rule", Style::Removed),
        (true, true, "approved by a person", Style::Plain),
        (true, false, "approved by a rule", Style::Plain),
    ] {
        let changes = changes(approved, by_person);
        if !changes.is_empty() {
            text.line(style, format!("  {} {title}: {}", changes.len(), named_changes(&changes)));
        }
    }
    text
}

fn named_changes(changes: &[u64]) -> String {
    let named = &changes[..changes.len().min(MAX_NAMED_CHANGES)];
    let more = match changes.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let noun = if changes.len() == 1 { "change" } else { "changes" };
    format!("{noun} {}{more}", join_numbers(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggestion(inspected: u32, covered: Vec<CoveredDecision>) -> RuleSuggestion {
        RuleSuggestion {
            toml: "[[rule]]\nrun = [\"make \u{202e}$\"]\n".to_owned(),
            file: Some("~/.config/sayso/config.toml".to_owned()),
            session: None,
            explanation: "allow run `make $`".to_owned(),
            inspected,
            covered,
        }
    }

    #[test]
    fn suggestion_shows_rule_file_and_coverage() {
        let decision = |change, approved, by_person| CoveredDecision { change, approved, by_person };
        let covered = vec![decision(9, true, true), decision(7, false, true), decision(4, true, true)];
        assert_eq!(
            render_rule_suggestion(&suggestion(12, covered)).to_plain(),
            "Rule for ~/.config/sayso/config.toml:\n  [[rule]]\n  run = [\"make ⟨U+202E⟩$\"]\n\
             It would have covered 3 of the last 12 decisions:\n  1 denied by a person: change 7\n  \
             2 approved by a person: changes 9, 4\n"
        );
    }

    #[test]
    fn suggestion_without_coverage_says_so() {
        let last_line = |suggestion: &RuleSuggestion| {
            render_rule_suggestion(suggestion).to_plain().lines().last().map(str::to_owned)
        };
        let expect = |text: &str| Some(text.to_owned());
        let none = "There is no earlier decision to compare it with.";
        assert_eq!(last_line(&suggestion(0, Vec::new())), expect(none));
        let one = "It would have covered none of the last 1 decision.";
        assert_eq!(last_line(&suggestion(1, Vec::new())), expect(one));
    }
}
