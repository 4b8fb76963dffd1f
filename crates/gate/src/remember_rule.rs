//! Rules from verdicts that are to be remembered.

use sayso_review::{
    Answer, CommandPreview, PolicyQuery, Principal, RememberAs, RememberError, Rule, Ruling, Script, Subject,
};

use crate::engine::Engine;
use crate::error::GateError;
use crate::pending_change::PendingChange;
use crate::rules::Rules;
use crate::submit::path_targets;

impl Engine {
    /// Derives the rule for a verdict. It covers only the decided action.
    pub fn derive_rule(&self, proposed: &PendingChange, answer: &Answer, meant: RememberAs) -> Result<Rule, GateError> {
        let denies = matches!(answer, Answer::Deny { .. });
        if denies != (meant.ruling == Ruling::Deny) || matches!(answer, Answer::Files { .. }) {
            return Err(GateError::OtherRule);
        }
        let who = Principal { agent: proposed.origin.agent.as_deref(), session: proposed.origin.session.as_deref() };
        let writes = path_targets(&proposed.preview);
        Ok(match (answer, &proposed.subject) {
            (_, Subject::Files) => Rule::remember(&PolicyQuery::Write { targets: &writes }, &who, meant)?,
            (_, Subject::Command { .. }) => {
                let (shown, script) = self.approved_command(proposed, answer);
                let (reads, writes) = (shown.reads(), shown.writes());
                Rule::remember(&PolicyQuery::Run { script: &script, reads: &reads, writes: &writes }, &who, meant)?
            }
            (_, Subject::Tool { name, preview, .. }) => match &preview.delegation {
                Some(delegation) => {
                    let agent = delegation.agent.as_deref().unwrap_or(name);
                    Rule::remember(&PolicyQuery::Delegate { agent, tools: &delegation.tools }, &who, meant)?
                }
                None => Rule::remember(&PolicyQuery::Tool { name, reads: &[], writes: &[] }, &who, meant)?,
            },
        })
    }

    /// Derives the rule for a verdict, and checks that the same command would not ask again with it.
    pub fn derive_effective_rule(
        &self,
        proposed: &PendingChange,
        answer: &Answer,
        meant: RememberAs,
        rules: &mut Rules,
    ) -> Result<Rule, GateError> {
        let rule = self.derive_rule(proposed, answer, meant)?;
        if !proposed.subject.is_command() || meant.ruling == Ruling::Deny {
            return Ok(rule);
        }
        let who = Principal { agent: proposed.origin.agent.as_deref(), session: proposed.origin.session.as_deref() };
        let (shown, script) = self.approved_command(proposed, answer);
        let (reads, writes) = (shown.reads(), shown.writes());
        let act = PolicyQuery::Run { script: &script, reads: &reads, writes: &writes };
        let mut added = self.history().session_rules(who.session)?;
        added.push(rule.clone());
        let ruled = rules.with_extra_rules(&added)?.evaluate(&act, &who);
        if ruled.ruling > meant.ruling {
            return Err(RememberError::AlwaysAsk { rule: ruled.rule.to_string() }.into());
        }
        Ok(rule)
    }

    /// Returns the approved command with its preview.
    fn approved_command(&self, proposed: &PendingChange, answer: &Answer) -> (CommandPreview, Script) {
        let subject = match answer {
            Answer::Command { command } => proposed.subject.with_command(command),
            _ => proposed.subject.clone(),
        };
        let (command, directory) = match subject {
            Subject::Command { command, directory, .. } => (command, directory),
            Subject::Files | Subject::Tool { .. } => (String::new(), sayso_review::WsPath::root()),
        };
        let shown = CommandPreview::of(&command, &directory, &self.workspace.path().to_string_lossy());
        let script = Script { uncertainties: shown.uncertainties.clone(), ..CommandPreview::read(&command) };
        (shown, script)
    }
}
