//! From an intent to a question, or to what policy decided without one.

use sayso_review::{
    Act, Answer, Cause, ChangeRecord, CommandPreview, Decider, ErrorKind, Event, EventBody, Intent, Origin,
    OutsidePath, Performer, Place, Preview, Recorded, Ruled, Ruling, RulingRecord, Script, Subject, Syntax,
    ToolPreview, Touch, Verdict, Who, WsPath,
};
use sayso_workspace::OpenError;
use serde_json::Value;

use crate::check::{CheckLimits, check_syntax};
use crate::engine::Engine;
use crate::error::GateError;
use crate::outside::{handed_over, named_outside};
use crate::proposed::{Decided, Proposed, Proposing};
use crate::record::file_records;
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
    /// What bash says of the command's syntax, if it was asked already.
    pub syntax: Option<Syntax>,
    /// Whether to wait for a verdict where policy lets it through.
    pub asking: Asking,
    /// Folders outside the workspace that the user hands to the agent: reading there is as in the workspace.
    pub folders: Vec<OutsidePath>,
}

/// Whether somebody is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asking {
    /// Where policy says so.
    #[default]
    AsPolicySays,
    /// Always, unless policy denies it: somebody is there who has an opinion.
    Always,
}

impl Submission {
    /// An intent that we carry out, with no deadline.
    pub fn new(intent: Intent, origin: Origin) -> Self {
        let asking = Asking::AsPolicySays;
        let (deadline, schema, syntax, folders) = (None, None, None, Vec::new());
        Self { intent, origin, performer: Performer::Gate, deadline, schema, syntax, asking, folders }
    }
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

/// What an intent would do, and what policy says to it. Nothing is recorded yet.
#[derive(Clone, Debug)]
pub struct Judged {
    /// What it is about besides files.
    pub subject: Subject,
    /// What it would do to files.
    pub preview: Preview,
    /// What policy says.
    pub ruled: Ruled,
}

impl Judged {
    /// What would be recorded of it, as a change without a number.
    pub fn record(&self, origin: Origin, performer: Performer, time: i64) -> Option<ChangeRecord> {
        let event = Event::Proposed {
            change: 0,
            origin,
            cause: Cause::Proposal,
            files: file_records(&self.preview),
            preview: self.subject.bind(self.preview.hash()),
            subject: self.subject.clone(),
            ruled: Some(ruling_record(&self.ruled)),
            performer,
            intent: None,
            deadline: None,
            after: Vec::new(),
        };
        ChangeRecord::fold([Recorded { number: 0, time, body: EventBody::Known(event) }])
    }
}

impl Engine {
    /// Takes an intent: previews it, asks policy, and does what policy decides or waits for a verdict.
    pub fn submit(&mut self, submission: Submission, rules: &mut Rules, now: i64) -> Result<Submitted, GateError> {
        let mut judged = match self.judge(&submission, rules) {
            Ok(judged) => judged,
            // Another client than a hook is a program that made a mistake, unless it wanted to leave the workspace.
            Err(error @ (GateError::Proposal(_) | GateError::BadDirectory(_)))
                if submission.performer == Performer::Agent || error.kind() == ErrorKind::FsDenied =>
            {
                return self.refuse(submission, error, now);
            }
            Err(error) => return Err(error),
        };
        if submission.asking == Asking::Always && judged.ruled.ruling != Ruling::Deny {
            judged.ruled.ruling = Ruling::Ask;
        }
        let ruling = judged.ruled.ruling;
        let (rule, reason) = (judged.ruled.by.short(), judged.ruled.reason.clone());
        let proposed = self.record_judged(submission, judged, now)?;
        let answer = if ruling == Ruling::Deny {
            Answer::Deny { reason }
        } else {
            if let Some(told) = self.fail_if_impossible(proposed.change, now)? {
                return Ok(Submitted::Impossible { proposed: Box::new(proposed), told });
            }
            // What policy lets through and cannot happen yet, since it comes after a change that waits, waits too.
            if ruling == Ruling::Ask || proposed.preview.problems().next().is_some() {
                return Ok(Submitted::Waiting(Box::new(proposed)));
            }
            Answer::Approve
        };
        let verdict = Verdict { by: Decider::Policy { rule }, ..proposed.verdict(answer) };
        let decided = self.decide(&proposed, &verdict, now)?;
        Ok(Submitted::Decided { proposed: Box::new(proposed), decided })
    }

    /// Records an intent that was judged before, so that it can be decided: for a surface that has asked already.
    pub fn record_judged(&mut self, submission: Submission, judged: Judged, now: i64) -> Result<Proposed, GateError> {
        let Submission { intent, origin, performer, deadline, .. } = submission;
        let Judged { subject, preview, ruled } = judged;
        let is_files = subject.is_files();
        let proposing = Proposing {
            subject,
            performer,
            ruled: Some(ruling_record(&ruled)),
            // Made of strings, numbers and lists only, which always have a JSON form. A change of files that is shown as a call has
            // no preview that could be made anew.
            intent: (is_files || !matches!(intent, Intent::ChangeFiles(_)))
                .then(|| serde_json::to_vec(&intent).unwrap_or_default()),
            deadline,
            ..Proposing::files(preview, origin, Cause::Proposal)
        };
        self.record_proposal(proposing, now)
    }

    /// What policy says to an intent, and what it would do. Nothing is recorded.
    pub fn judge(&self, submission: &Submission, rules: &mut Rules) -> Result<Judged, GateError> {
        let origin = &submission.origin;
        let who = Who { agent: origin.agent.as_deref(), session: origin.session.as_deref() };
        let mut added = self.history().rules_of(who.session)?;
        added.splice(..0, handed_over(&submission.folders));
        let mut judge = |act: &Act<'_>| self.judge_act(act, &who, &added, rules);
        let mut judged = match &submission.intent {
            Intent::ChangeFiles(proposal) => {
                match self.preview(proposal) {
                    Ok(preview) => {
                        let ruled = judge(&Act::Write { places: &places(&preview) })?;
                        Judged { subject: Subject::Files, preview, ruled }
                    }
                    // Only the agent's own tool writes there.
                    Err(GateError::Proposal(error)) if submission.performer == Performer::Agent => {
                        self.judge_outside(proposal, &error, &mut judge)?
                    }
                    Err(error) => return Err(error),
                }
            }
            Intent::RunCommand { command, directory, description } => {
                let directory = self.directory(directory.as_deref())?;
                let mut shown = CommandPreview::of(command, &directory, &self.workspace.path().to_string_lossy())
                    .described(description.clone());
                let syntax = submission.syntax.clone().or_else(|| syntax_of(&submission.intent));
                shown.syntax = syntax.unwrap_or(shown.syntax);
                self.warn_of_uncaptured(&mut shown);
                // The preview knows more reasons to doubt than the words alone give.
                let script = Script { doubts: shown.doubts.clone(), ..CommandPreview::read(command) };
                let ruled = judge(&Act::Run { script: &script, reads: &shown.reads(), writes: &shown.writes() })?;
                let (command, description) = (command.clone(), description.clone());
                let subject = Subject::Command { command, directory, description, preview: Box::new(shown) };
                Judged { subject, preview: Preview::happened(Vec::new()), ruled }
            }
            Intent::CallTool { name, arguments } => {
                let shown = ToolPreview::of(name, arguments, submission.schema.as_ref());
                // What only looks like a change may not be one, so that one which cannot be previewed is still a call.
                let changes = shown.changes.as_ref().map(|changes| self.preview(changes));
                let (preview, mut writes) = match changes {
                    Some(Ok(preview)) => {
                        let writes = places(&preview);
                        (preview, writes)
                    }
                    Some(Err(error)) => (Preview::happened(Vec::new()), vec![Place::Unknown(error.to_string())]),
                    None => (Preview::happened(Vec::new()), Vec::new()),
                };
                let mut reads = Vec::new();
                let named = if shown.touch == Touch::Reads { &mut reads } else { &mut writes };
                for place in self.named(&shown.paths) {
                    if !named.contains(&place) {
                        named.push(place);
                    }
                }
                let mut ruled = judge(&Act::Tool { name, reads: &reads, writes: &writes })?;
                if let Some(command) = &shown.command {
                    // A rule about a command holds, whoever hands it to a shell.
                    let run = CommandPreview::of(command, &WsPath::root(), &self.workspace.path().to_string_lossy());
                    let script = Script { doubts: run.doubts.clone(), ..CommandPreview::read(command) };
                    let as_command = judge(&Act::Run { script: &script, reads: &run.reads(), writes: &run.writes() })?;
                    if as_command.ruling > ruled.ruling {
                        ruled = as_command;
                    }
                }
                if let Some(delegation) = &shown.delegation {
                    let agent = delegation.agent.as_deref().unwrap_or(name);
                    let delegated = judge(&Act::Delegate { agent, tools: &delegation.tools })?;
                    // A rule about the delegation is about this call; what it does to files counts beside it.
                    if delegated.ruling > ruled.ruling || writes.is_empty() {
                        ruled = delegated;
                    }
                }
                let (name, arguments) = (name.clone(), arguments.clone());
                Judged { subject: Subject::Tool { name, arguments, preview: Box::new(shown) }, preview, ruled }
            }
            Intent::SendRequest { .. } => return Err(GateError::NotYet("requests to a model")),
        };
        // Without a session there is no turn at whose end it could be reviewed.
        if judged.ruled.ruling == Ruling::Later && who.session.is_none() {
            judged.ruled.ruling = Ruling::Ask;
        }
        Ok(judged)
    }

    /// The places that paths lead to, by name and really.
    fn named(&self, paths: &[String]) -> Vec<Place> {
        let mut places = Vec::new();
        for text in paths {
            match self.workspace.locate(text) {
                Ok(path) => {
                    let location =
                        self.workspace.open_path(&path).map_or_else(|_| path.clone(), |opened| opened.resolved);
                    places.push(Place::Inside(path));
                    places.push(Place::Inside(location));
                }
                Err(_) => places.push(Place::Outside(text.clone())),
            }
        }
        places
    }

    /// Asks policy once more before somebody's approval counts: a person may edit a command, and files may have come to lie elsewhere,
    /// but what a rule denies does not come in by the way.
    pub fn check_rules(&self, proposed: &Proposed, answer: &Answer, rules: &mut Rules) -> Result<(), GateError> {
        let intent = match (answer, &proposed.subject) {
            (Answer::Deny { .. }, _) => return Ok(()),
            (Answer::Command { command }, Subject::Command { directory, description, .. }) => Intent::RunCommand {
                command: command.clone(),
                directory: Some(directory.as_str().to_owned()),
                description: description.clone(),
            },
            (Answer::Arguments { arguments }, Subject::Tool { name, .. }) => {
                Intent::CallTool { name: name.clone(), arguments: arguments.clone() }
            }
            (_, Subject::Files) if proposed.cause.is_the_agents() => {
                let who = Who { agent: proposed.origin.agent.as_deref(), session: proposed.origin.session.as_deref() };
                let ruled = rules.policy().judge(&Act::Write { places: &places(&proposed.preview) }, &who);
                return denied(&ruled);
            }
            _ => return Ok(()),
        };
        let submission = Submission::new(intent, proposed.origin.clone());
        denied(&self.judge(&submission, rules)?.ruled)
    }

    fn directory(&self, text: Option<&str>) -> Result<WsPath, GateError> {
        match text {
            None | Some("") => Ok(WsPath::root()),
            Some(text) => {
                let path = self.workspace.locate(text).map_err(|error| GateError::BadDirectory(error.to_string()))?;
                match self.workspace.open_path(&path) {
                    // A command that starts where a link leads out is not where it says it is.
                    Err(error @ OpenError::Outside { .. }) => Err(GateError::BadDirectory(error.to_string())),
                    _ => Ok(path),
                }
            }
        }
    }
}

/// Every place that a change of files touches: the names that were asked for, where they lead, and both ends of a rename.
pub(crate) fn places(preview: &Preview) -> Vec<Place> {
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

fn ruling_record(ruled: &Ruled) -> RulingRecord {
    RulingRecord {
        ruling: ruled.ruling,
        rule: ruled.by.to_string(),
        reason: ruled.reason.clone(),
        outside: named_outside(ruled),
    }
}

fn denied(ruled: &Ruled) -> Result<(), GateError> {
    if ruled.ruling == Ruling::Deny { Err(GateError::RuleDenies { rule: ruled.by.short() }) } else { Ok(()) }
}

/// What bash says of the syntax of a command, which may take a while; `None` for other intents.
pub(crate) fn syntax_of(intent: &Intent) -> Option<Syntax> {
    match intent {
        Intent::RunCommand { command, .. } => Some(check_syntax(command, &CheckLimits::usual())),
        _ => None,
    }
}
