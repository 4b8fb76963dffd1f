//! The rule that a verdict makes for what comes.

use sayso_review::{Act, Answer, CommandPreview, FromNowOn, FromNowOnError, Rule, Ruling, Script, Subject, Who};

use crate::engine::Engine;
use crate::error::GateError;
use crate::proposed::Proposed;
use crate::rules::Rules;
use crate::submit::places;

impl Engine {
    /// The rule that an approval or a denial makes for what comes: about what was decided, and nothing else.
    pub fn rule_from(&self, proposed: &Proposed, answer: &Answer, meant: FromNowOn) -> Result<Rule, GateError> {
        let denies = matches!(answer, Answer::Deny { .. });
        if denies != (meant.ruling == Ruling::Deny) || matches!(answer, Answer::Files { .. }) {
            return Err(GateError::OtherRule);
        }
        let who = Who { agent: proposed.origin.agent.as_deref(), session: proposed.origin.session.as_deref() };
        let writes = places(&proposed.preview);
        Ok(match (answer, &proposed.subject) {
            (_, Subject::Files) => Rule::from_now_on(&Act::Write { places: &writes }, &who, meant)?,
            (_, Subject::Command { .. }) => {
                let (shown, script) = self.shown(proposed, answer);
                let (reads, writes) = (shown.reads(), shown.writes());
                Rule::from_now_on(&Act::Run { script: &script, reads: &reads, writes: &writes }, &who, meant)?
            }
            (_, Subject::Tool { name, preview, .. }) => match &preview.delegation {
                Some(delegation) => {
                    let agent = delegation.agent.as_deref().unwrap_or(name);
                    Rule::from_now_on(&Act::Delegate { agent, tools: &delegation.tools }, &who, meant)?
                }
                None => Rule::from_now_on(&Act::Tool { name, reads: &[], writes: &[] }, &who, meant)?,
            },
        })
    }

    /// The rule that an approval of a command makes, if the same command is not asked about again with it.
    pub fn offered_rule(
        &self,
        proposed: &Proposed,
        answer: &Answer,
        meant: FromNowOn,
        rules: &mut Rules,
    ) -> Result<Rule, GateError> {
        let rule = self.rule_from(proposed, answer, meant)?;
        if !proposed.subject.is_command() || meant.ruling == Ruling::Deny {
            return Ok(rule);
        }
        let who = Who { agent: proposed.origin.agent.as_deref(), session: proposed.origin.session.as_deref() };
        let (shown, script) = self.shown(proposed, answer);
        let (reads, writes) = (shown.reads(), shown.writes());
        let act = Act::Run { script: &script, reads: &reads, writes: &writes };
        let mut added = self.history().rules_of(who.session)?;
        added.push(rule.clone());
        let ruled = rules.tried(&added)?.judge(&act, &who);
        if ruled.ruling > meant.ruling {
            return Err(FromNowOnError::AlwaysAsks { by: ruled.by.to_string() }.into());
        }
        Ok(rule)
    }

    /// A command as it is approved, with what it appears to do.
    fn shown(&self, proposed: &Proposed, answer: &Answer) -> (CommandPreview, Script) {
        let subject = match answer {
            Answer::Command { command } => proposed.subject.with_command(command),
            _ => proposed.subject.clone(),
        };
        let (command, directory) = match subject {
            Subject::Command { command, directory, .. } => (command, directory),
            Subject::Files | Subject::Tool { .. } => (String::new(), sayso_review::WsPath::root()),
        };
        let shown = CommandPreview::of(&command, &directory, &self.workspace.path().to_string_lossy());
        let script = Script { doubts: shown.doubts.clone(), ..CommandPreview::read(&command) };
        (shown, script)
    }
}
