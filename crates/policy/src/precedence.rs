//! Precedence: selects the rule that decides one part.

use crate::builtin_rules::BuiltinRule;
use crate::command_pattern::MatchCertainty;
use crate::compile::{CompiledRule, Policy};
use crate::decision::{Access, OverriddenRule, OverrideReason, PartDecision, RuleId, Ruling};
use crate::index::RuleNumber;
use crate::query::Principal;
use crate::rule::LayerTrust;

/// Amount of detail in a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// The deciding rule only.
    Decision,
    /// All matching rules, with the reason why each did not decide.
    Explanation,
}

/// A rule that matches a part, and the certainty of the match.
pub(super) type MatchedRule = (RuleNumber, MatchCertainty);

impl CompiledRule {
    fn applies_to(&self, principal: &Principal<'_>) -> bool {
        let matches =
            |limit: &Option<String>, actual: Option<&str>| limit.as_deref().is_none_or(|limit| actual == Some(limit));
        matches(&self.agent, principal.agent) && matches(&self.session, principal.session)
    }

    /// Rank of the limits: a rule for one session beats a rule for one agent, which beats a general rule.
    fn specificity(&self) -> u8 {
        if self.session.is_some() { 2 } else { u8::from(self.agent.is_some()) }
    }
}

/// Outcome for one part.
struct WinningRule {
    ruling: Ruling,
    id: RuleId,
    reason: Option<String>,
    /// Number of the rule; `None` for a built-in rule or a default.
    rule: Option<RuleNumber>,
    /// Reason that holds for all overridden rules, if there is one.
    overrides: Option<OverrideReason>,
}

impl Policy {
    /// Decides one part, given the rules that match it and the built-in rule for it.
    pub(super) fn decide_part(
        &self,
        (access, target): (Access, String),
        mut found: Vec<MatchedRule>,
        built_in: Option<BuiltinRule>,
        principal: &Principal<'_>,
        detail: Detail,
    ) -> PartDecision {
        found.retain(|(number, certainty)| {
            *certainty != MatchCertainty::NoMatch && self.rule(*number).applies_to(principal)
        });
        let winner = self.winner(access, &found, built_in);
        let overridden = match detail {
            Detail::Decision => Vec::new(),
            Detail::Explanation => self.overridden(&found, &winner),
        };
        PartDecision { access, target, ruling: winner.ruling, rule: winner.id, reason: winner.reason, overridden }
    }

    fn rule(&self, number: RuleNumber) -> &CompiledRule {
        &self.rules[number as usize]
    }

    fn winner(&self, access: Access, found: &[MatchedRule], built_in: Option<BuiltinRule>) -> WinningRule {
        let name = |name: &str| RuleId::BuiltIn { name: name.to_owned() };
        match built_in {
            Some(BuiltinRule::Deny(by, reason)) => {
                let reason = Some(reason.to_owned());
                return WinningRule {
                    ruling: Ruling::Deny,
                    id: name(by),
                    reason,
                    rule: None,
                    overrides: Some(OverrideReason::BuiltIn),
                };
            }
            Some(BuiltinRule::Harmless(by)) => {
                return WinningRule {
                    ruling: Ruling::Allow,
                    id: name(by),
                    reason: None,
                    rule: None,
                    overrides: Some(OverrideReason::BuiltIn),
                };
            }
            Some(BuiltinRule::AlwaysAsk(_) | BuiltinRule::AskByDefault(_) | BuiltinRule::AllowByDefault(_)) | None => {}
        }
        let by_rule = |number: RuleNumber, ruling: Ruling, overrides: Option<OverrideReason>| {
            let rule = self.rule(number);
            WinningRule { ruling, id: rule.id.clone(), reason: rule.reason.clone(), rule: Some(number), overrides }
        };
        let last_most_specific = |accepts: &dyn Fn(&CompiledRule, MatchCertainty) -> bool| {
            let accepted = found.iter().filter(|(number, certainty)| accepts(self.rule(*number), *certainty));
            accepted.map(|(number, _)| *number).max_by_key(|number| (self.rule(*number).specificity(), *number))
        };
        if let Some(number) =
            last_most_specific(&|rule, certainty| rule.then == Ruling::Deny && certainty == MatchCertainty::Certain)
        {
            return by_rule(number, Ruling::Deny, Some(OverrideReason::DenyWins));
        }
        let winner = last_most_specific(&|rule, certainty| {
            rule.then != Ruling::Deny && rule.trust == LayerTrust::Trusted && certainty == MatchCertainty::Certain
        });
        let decided = if let Some(number) = winner {
            by_rule(number, self.rule(number).then, None)
        } else {
            let (ruling, id) = self.default_for(access);
            match built_in {
                // Defaults are meant for the workspace. Outside it, only a stricter default counts.
                Some(BuiltinRule::AskByDefault(by)) if ruling <= Ruling::Ask => {
                    WinningRule { ruling: Ruling::Ask, id: name(by), reason: None, rule: None, overrides: None }
                }
                Some(BuiltinRule::AllowByDefault(by)) => {
                    WinningRule { ruling: Ruling::Allow, id: name(by), reason: None, rule: None, overrides: None }
                }
                _ => WinningRule { ruling, id: id.clone(), reason: None, rule: None, overrides: None },
            }
        };
        if let Some(BuiltinRule::AlwaysAsk(by)) = built_in
            && decided.ruling <= Ruling::Ask
        {
            return WinningRule {
                ruling: Ruling::Ask,
                id: name(by),
                reason: None,
                rule: None,
                overrides: Some(OverrideReason::AlwaysAsk),
            };
        }
        // Two kinds of rule raise the ruling to at least ask: a rule that possibly matches, and an ask rule of an untrusted file.
        let floor = last_most_specific(&|rule, certainty| {
            certainty == MatchCertainty::Possible
                || (rule.then == Ruling::Ask
                    && rule.trust == LayerTrust::TightenOnly
                    && certainty == MatchCertainty::Certain)
        });
        match floor {
            Some(number) if decided.ruling < Ruling::Ask => {
                WinningRule { reason: None, ..by_rule(number, Ruling::Ask, Some(OverrideReason::Stricter)) }
            }
            _ => decided,
        }
    }

    fn overridden(&self, found: &[MatchedRule], winner: &WinningRule) -> Vec<OverriddenRule> {
        let winner_specificity = winner.rule.map(|number| self.rule(number).specificity());
        let overridden = |(number, certainty): &MatchedRule| {
            let rule = self.rule(*number);
            let untrusted = rule.trust == LayerTrust::TightenOnly && rule.then < Ruling::Ask;
            let reason = match (certainty, winner.overrides) {
                (MatchCertainty::NearMiss(reason), _) => *reason,
                _ if untrusted => OverrideReason::Untrusted,
                (_, Some(reason)) => reason,
                _ if winner_specificity > Some(rule.specificity()) => OverrideReason::Narrower,
                _ => OverrideReason::Later,
            };
            OverriddenRule { rule: rule.id.clone(), then: rule.then, reason }
        };
        let mut all: Vec<OverriddenRule> =
            found.iter().filter(|(number, _)| winner.rule != Some(*number)).map(overridden).collect();
        all.dedup();
        all
    }
}
