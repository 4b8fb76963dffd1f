//! From an intent to a question, or to what policy decided without one.

use sayso_review::{
    Act, Answer, Cause, CommandPreview, Decider, Effect, FromNowOn, Intent, Origin, Performer, Place, Preview,
    ProposalError, Rule, Ruled, Ruling, RulingRecord, Script, Subject, ToolPreview, Verdict, Who, WsPath,
};
use serde_json::Value;

use crate::check::{CheckLimits, check_syntax};
use crate::engine::{Decided, Engine, Proposed, Proposing};
use crate::error::GateError;
use crate::rules::Rules;

/// An intent as it reaches the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// What is to happen.
    pub intent: Intent,
    /// Where it comes from.
    pub origin: Origin,
    /// Who carries it out.
    pub performer: Performer,
    /// When it is denied if nobody has decided, in milliseconds since 1970.
    pub deadline: Option<i64>,
    /// What the called tool says of its arguments.
    pub schema: Option<Value>,
}

/// What became of an intent at once.
#[derive(Debug)]
pub enum Submitted {
    /// It waits for a verdict.
    Waiting(Box<Proposed>),
    /// Policy decided.
    Decided {
        /// What was decided about.
        proposed: Box<Proposed>,
        /// How that ended.
        decided: Decided,
    },
    /// It cannot be done as proposed, so that there is nothing to decide.
    Impossible {
        /// What it was.
        proposed: Box<Proposed>,
        /// What the agent is told.
        told: String,
    },
}

/// What an intent is, before policy has seen it.
struct Previewed {
    subject: Subject,
    preview: Preview,
    ruled: Ruled,
}

impl Engine {
    /// Takes an intent: previews it, asks policy, and does what policy decides or waits for a verdict.
    pub fn submit(&mut self, submission: Submission, rules: &mut Rules, now: i64) -> Result<Submitted, GateError> {
        let Previewed { subject, preview, ruled } = self.judge(&submission, rules)?;
        let Submission { intent, origin, performer, deadline, .. } = submission;
        let ruling = ruled.ruling;
        let record = RulingRecord { ruling, rule: ruled.by.to_string(), reason: ruled.reason };
        // What policy lets through may have to wait as well, for a change that comes before it.
        let may_wait = ruling == Ruling::Ask || preview.problems().next().is_some();
        let proposing = Proposing {
            subject,
            performer,
            ruled: Some(record.clone()),
            intent: Some(serde_json::to_vec(&intent).unwrap_or_default()),
            deadline: deadline.filter(|_| may_wait),
            ..Proposing::files(preview, origin, Cause::Proposal)
        };
        let proposed = self.record_proposal(proposing, now)?;
        let answer = match ruling {
            Ruling::Deny => Answer::Deny { reason: record.reason },
            _ => {
                if let Some(told) = self.fail_if_impossible(proposed.change, now)? {
                    return Ok(Submitted::Impossible { proposed: Box::new(proposed), told });
                }
                // What policy lets through and cannot happen yet, since it comes after a change that waits, waits too.
                if ruling == Ruling::Ask || proposed.preview.problems().next().is_some() {
                    return Ok(Submitted::Waiting(Box::new(proposed)));
                }
                Answer::Approve
            }
        };
        let verdict = Verdict { by: Decider::Policy { rule: record.rule }, ..proposed.verdict(answer) };
        let decided = self.decide(&proposed, &verdict, now)?;
        Ok(Submitted::Decided { proposed: Box::new(proposed), decided })
    }

    /// What policy says to an intent, and what it would do. Nothing is recorded.
    fn judge(&self, submission: &Submission, rules: &mut Rules) -> Result<Previewed, GateError> {
        let origin = &submission.origin;
        let who = Who { agent: origin.agent.as_deref(), session: origin.session.as_deref() };
        let session = who.session.map(|session| self.history().session(session)).transpose()?.flatten();
        let added = session.map(|session| session.rules).unwrap_or_default();
        let mut judge = |act: &Act<'_>| rules.judge(act, &who, &added);
        Ok(match &submission.intent {
            Intent::ChangeFiles(proposal) => {
                let preview = self.preview(proposal)?;
                let ruled = judge(&Act::Write { places: &places(&preview) })?;
                Previewed { subject: Subject::Files, preview, ruled }
            }
            Intent::RunCommand { command, directory, description } => {
                let directory = self.directory(directory.as_deref())?;
                let script = Script::parse(command);
                let mut shown = CommandPreview::of(command, &directory, &self.workspace.path().to_string_lossy())
                    .described(description.clone());
                shown.syntax = check_syntax(command, &CheckLimits::usual());
                let writes = written(&shown);
                let ruled = judge(&Act::Run { script: &script, reads: &[], writes: &writes })?;
                let (command, description) = (command.clone(), description.clone());
                let subject = Subject::Command { command, directory, description, preview: shown };
                Previewed { subject, preview: Preview::happened(Vec::new()), ruled }
            }
            Intent::CallTool { name, arguments } => {
                let shown = ToolPreview::of(name, arguments, submission.schema.as_ref());
                // What only looks like a change may not be one, so that one which cannot be previewed is still a call.
                let changes = shown.changes.as_ref().map(|changes| self.preview(changes));
                let (preview, writes) = match changes {
                    Some(Ok(preview)) => {
                        let writes = places(&preview);
                        (preview, writes)
                    }
                    Some(Err(GateError::Proposal(error @ ProposalError::BadPath { .. }))) => {
                        (Preview::happened(Vec::new()), vec![Place::Outside(error.to_string())])
                    }
                    Some(Err(_)) | None => (Preview::happened(Vec::new()), Vec::new()),
                };
                let ruled = match &shown.delegation {
                    Some(delegation) => {
                        let agent = delegation.agent.as_deref().unwrap_or(name);
                        judge(&Act::Delegate { agent, tools: &delegation.tools })?
                    }
                    None => judge(&Act::Tool { name, reads: &[], writes: &writes })?,
                };
                let (name, arguments) = (name.clone(), arguments.clone());
                Previewed { subject: Subject::Tool { name, arguments, preview: shown }, preview, ruled }
            }
            Intent::SendRequest { .. } => return Err(GateError::NotYet("requests to a model")),
        })
    }

    /// What a verdict on a change means for what comes.
    pub(crate) fn rule_from(&self, proposed: &Proposed, answer: FromNowOn) -> Result<Rule, GateError> {
        let who = Who { agent: proposed.origin.agent.as_deref(), session: proposed.origin.session.as_deref() };
        let writes = places(&proposed.preview);
        Ok(match &proposed.subject {
            Subject::Files => Rule::from_now_on(&Act::Write { places: &writes }, &who, answer)?,
            Subject::Command { command, .. } => {
                let script = Script::parse(command);
                Rule::from_now_on(&Act::Run { script: &script, reads: &[], writes: &[] }, &who, answer)?
            }
            Subject::Tool { name, .. } => {
                Rule::from_now_on(&Act::Tool { name, reads: &[], writes: &writes }, &who, answer)?
            }
        })
    }

    fn directory(&self, text: Option<&str>) -> Result<WsPath, GateError> {
        match text {
            None | Some("") => Ok(WsPath::root()),
            Some(text) => self.workspace.locate(text).map_err(|error| GateError::BadDirectory(error.to_string())),
        }
    }
}

/// Every place that a change of files touches: the names that were asked for, where they lead, and both ends of a rename.
fn places(preview: &Preview) -> Vec<Place> {
    let mut places = Vec::new();
    for file in preview.files() {
        places.push(Place::Inside(file.path.clone()));
        if file.location != file.path {
            places.push(Place::Inside(file.location.clone()));
        }
        if let sayso_review::Operation::Rename { from } = &file.operation {
            places.push(Place::Inside(from.clone()));
        }
    }
    places
}

/// The places that a command appears to write to, or to remove.
fn written(shown: &CommandPreview) -> Vec<Place> {
    let place = |effect: &Effect| match effect {
        Effect::Writes { path } | Effect::Deletes { path, .. } | Effect::ChangesPermissions { path } => {
            Some(path.clone())
        }
        _ => None,
    };
    shown.effects.iter().filter_map(place).filter_map(judged).collect()
}

/// A place as policy judges it: what is written to a device is written nowhere, and scratch space is asked about, not refused.
fn judged(place: Place) -> Option<Place> {
    match place {
        Place::Outside(path) if path.starts_with("/dev/") => {
            let harmless = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"].contains(&path.as_str());
            (!harmless).then_some(Place::Outside(path))
        }
        Place::Outside(path) if ["/tmp/", "/var/tmp/"].iter().any(|scratch| path.starts_with(scratch)) => {
            Some(Place::Unknown(path))
        }
        place => Some(place),
    }
}
