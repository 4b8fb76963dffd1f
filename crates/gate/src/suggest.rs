//! The rule that a verdict would create, and the past decisions that it would have covered.

use sayso_review::{
    Answer, ChangeId, CommandPreview, Defaults, Layer, LayerTrust, Operation, PathTarget, Policy, PolicyDecision,
    PolicyQuery, Principal, RememberAs, Rule, RuleId, RuleScope, Ruling, Script, Subject,
};

use crate::error::GateError;
use crate::gate::{Gate, State};
use sayso_review::{ChangeRecord, ChangeStatus};

/// Largest number of inspected decisions.
const MAX_DECISIONS: usize = 200;
/// Largest number of changes among which decisions are searched.
const MAX_SEARCHED_CHANGES: usize = 1_000;

/// A rule that a verdict would create.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleSuggestion {
    pub rule: Rule,
    /// Session that the rule goes to; `None` for a rule in the configuration.
    pub session: Option<String>,
    /// Number of inspected decisions.
    pub inspected: usize,
    /// Decisions that the rule would have covered, newest first.
    pub covered: Vec<CoveredDecision>,
}

/// A past decision that a rule would have covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoveredDecision {
    pub change: ChangeId,
    /// `true` if the change was approved, at least in part.
    pub is_approved: bool,
    /// `true` if a person decided, `false` if a rule did.
    pub is_by_person: bool,
}

impl Gate {
    /// Derives the rule for a verdict on a pending change, and compares it with past decisions. Changes nothing.
    pub fn suggest_rule(&self, change: ChangeId, meant: RememberAs) -> Result<RuleSuggestion, GateError> {
        let (rule, session) = {
            let mut state = self.state();
            let State { engine, rules } = &mut *state;
            let proposed = engine.pending_change(change)?;
            let answer = if meant.ruling == Ruling::Deny { Answer::Deny { reason: None } } else { Answer::Approve };
            let rule = engine.derive_effective_rule(&proposed, &answer, meant, rules)?;
            (rule, proposed.origin.session.filter(|_| meant.scope == RuleScope::Session))
        };
        let layer = Layer {
            file: "the rule".to_owned(),
            trust: LayerTrust::Trusted,
            defaults: Defaults::default(),
            rules: vec![rule.clone()],
        };
        let policy = Policy::new(&[layer], &[])?;
        let (mut inspected, mut covered) = (0, Vec::new());
        self.read(|history| {
            for record in history.changes(None).take(MAX_SEARCHED_CHANGES) {
                let record = record?;
                let Some(verdict) = &record.verdict else { continue };
                inspected += 1;
                if covers(&policy, &rule, &record) {
                    let is_denied =
                        record.status == ChangeStatus::Denied || matches!(verdict.answer, Answer::Deny { .. });
                    covered.push(CoveredDecision {
                        change: record.change,
                        is_approved: !is_denied,
                        is_by_person: verdict.by.is_person(),
                    });
                }
                if inspected == MAX_DECISIONS {
                    break;
                }
            }
            Ok(())
        })?;
        Ok(RuleSuggestion { rule, session, inspected, covered })
    }
}

/// `true` if a policy of this rule alone decides a change as the rule says.
fn covers(policy: &Policy, rule: &Rule, record: &ChangeRecord) -> bool {
    let decision = evaluate(policy, record);
    let uses_rule = decision.parts.iter().any(|part| matches!(part.rule, RuleId::Rule { .. }));
    uses_rule && decision.ruling == rule.then
}

fn evaluate(policy: &Policy, record: &ChangeRecord) -> PolicyDecision {
    let who = Principal { agent: record.origin.agent.as_deref(), session: record.origin.session.as_deref() };
    match &record.subject {
        Subject::Files => policy.evaluate(&PolicyQuery::Write { targets: &targets(record) }, &who),
        Subject::Command { command, preview, .. } => {
            let script = Script { uncertainties: preview.uncertainties.clone(), ..CommandPreview::read(command) };
            let (reads, writes) = (preview.reads(), preview.writes());
            policy.evaluate(&PolicyQuery::Run { script: &script, reads: &reads, writes: &writes }, &who)
        }
        Subject::Tool { name, preview, .. } => match &preview.delegation {
            Some(delegation) => {
                let agent = delegation.agent.as_deref().unwrap_or(name);
                policy.evaluate(&PolicyQuery::Delegate { agent, tools: &delegation.tools }, &who)
            }
            None => policy.evaluate(&PolicyQuery::Tool { name, reads: &[], writes: &[] }, &who),
        },
    }
}

/// All paths that a recorded change writes.
fn targets(record: &ChangeRecord) -> Vec<PathTarget> {
    let mut targets = Vec::new();
    for file in &record.files {
        targets.push(PathTarget::Inside(file.path.clone()));
        if file.location != file.path {
            targets.push(PathTarget::Inside(file.location.clone()));
        }
        if let Operation::Rename { from } = &file.operation {
            targets.push(PathTarget::Inside(from.clone()));
        }
    }
    targets
}
