//! The rule that a verdict would create, and the past decisions that it would have covered.

use sayso_api::convert::field::required;
use sayso_api::proto;
use sayso_api::proto::suggest_rule_response::CoveredDecision;
use sayso_gate::RuleSuggestion;
use sayso_review::RememberAs;

use crate::failure::Failure;
use crate::host::Host;

pub(super) fn suggest_rule(
    host: &Host,
    request: proto::SuggestRuleRequest,
) -> Result<proto::SuggestRuleResponse, Failure> {
    let remember: RememberAs = required(request.remember_as, "remember_as")?;
    host.refresh()?;
    let suggestion = host.gate.suggest_rule(request.change, remember)?;
    let text = host.settings.rule_text(&suggestion.rule)?;
    let covered = suggestion.covered.iter().map(|decision| CoveredDecision {
        change: decision.change,
        approved: decision.is_approved,
        by_person: decision.is_by_person,
        ..Default::default()
    });
    Ok(proto::SuggestRuleResponse {
        rule_toml: text.toml,
        file: suggestion.session.is_none().then_some(text.file),
        explanation: explanation(&suggestion),
        inspected: u32::try_from(suggestion.inspected).unwrap_or(u32::MAX),
        covered: covered.collect(),
        session: suggestion.session,
        ..Default::default()
    })
}

/// The rule in words, such as ``allow write `a.rs`, in this session``.
fn explanation(suggestion: &RuleSuggestion) -> String {
    let scope = if suggestion.session.is_some() { ", in this session" } else { "" };
    format!("{} {}{scope}", suggestion.rule.then, suggestion.rule.summary())
}
