//! Submission of intents: preview, policy decision, and the record of both.

use std::collections::BTreeSet;

use sayso_review::{
    Answer, Cause, ChangeRecord, CommandPreview, Decider, ErrorKind, Event, EventBody, FileAccess, Intent, Origin,
    OutsidePath, PathTarget, Performer, PolicyDecision, PolicyQuery, Preview, Principal, Proposal, Recorded, Ruling,
    RulingRecord, Script, Subject, Syntax, ToolPreview, Verdict, WsPath,
};
use sayso_workspace::OpenError;
use serde_json::Value;

use crate::check::{CheckLimits, check_syntax};
use crate::engine::Engine;
use crate::error::GateError;
use crate::outside::{added_folders_rule, outside_paths_of_rules};
use crate::pending_change::{DecisionResult, NewChange, PendingChange};
use crate::record::file_records;
use crate::rules::Rules;

/// Intent with its context.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    pub intent: Intent,
    pub origin: Origin,
    pub performer: Performer,
    /// Time at which the pending change is denied, in milliseconds since 1970.
    pub deadline: Option<i64>,
    /// JSON schema of the tool's arguments.
    pub schema: Option<Value>,
    /// Result of the syntax check, if it was made already.
    pub syntax: Option<Syntax>,
    pub ask_mode: AskMode,
    /// Outside folders that the user gave to the agent, which it may read.
    pub folders: Vec<OutsidePath>,
}

/// Condition for asking a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AskMode {
    /// Ask if policy says so.
    #[default]
    ByPolicy,
    /// Ask unless policy denies. For clients whose user wants to review.
    Always,
}

impl Submission {
    /// Creates a submission that the engine carries out, without a deadline.
    pub fn new(intent: Intent, origin: Origin) -> Self {
        let ask_mode = AskMode::ByPolicy;
        let (deadline, schema, syntax, folders) = (None, None, None, Vec::new());
        Self { intent, origin, performer: Performer::Gate, deadline, schema, syntax, ask_mode, folders }
    }
}

/// Immediate result of a submission.
#[derive(Debug)]
pub enum SubmitResult {
    /// The change is pending.
    Pending(Box<PendingChange>),
    /// Policy decided without asking.
    Decided { proposed: Box<PendingChange>, decided: DecisionResult },
    /// The preview has problems, so the change failed without a decision.
    Impossible { proposed: Box<PendingChange>, agent_message: String },
}

/// Preview of an intent with the decision of policy. Not recorded yet.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// Command or tool call, unless the intent is only about files.
    pub subject: Subject,
    /// Effect on files.
    pub preview: Preview,
    pub ruled: PolicyDecision,
}

impl Assessment {
    /// Returns the record that the change would have, with the number 0.
    pub fn record(&self, origin: Origin, performer: Performer, time: i64) -> Option<ChangeRecord> {
        let event = Event::Proposed {
            change: 0,
            origin,
            cause: Cause::Proposal,
            files: file_records(&self.preview),
            preview: self.subject.bind(self.preview.hash()),
            subject: self.subject.clone(),
            ruling: Some(ruling_record(&self.ruled)),
            performer,
            intent: None,
            deadline: None,
            predecessors: Vec::new(),
        };
        ChangeRecord::fold([Recorded { number: 0, time, body: EventBody::Known(event) }])
    }
}

impl Engine {
    /// Previews an intent, asks policy and records both. Carries out the decision of policy, or leaves the change
    /// pending.
    pub fn submit(&mut self, submission: Submission, rules: &mut Rules, now: i64) -> Result<SubmitResult, GateError> {
        let mut judged = match self.assess(&submission, rules) {
            Ok(judged) => judged,
            // For clients other than hooks this is an error of the caller, unless the path leaves the workspace.
            Err(error @ (GateError::Proposal(_) | GateError::BadDirectory(_)))
                if submission.performer == Performer::Agent || error.kind() == ErrorKind::FsDenied =>
            {
                return self.record_refusal(submission, error, now);
            }
            Err(error) => return Err(error),
        };
        if submission.ask_mode == AskMode::Always && judged.ruled.ruling != Ruling::Deny {
            judged.ruled.ruling = Ruling::Ask;
        }
        let ruling = judged.ruled.ruling;
        let (rule, reason) = (judged.ruled.rule.short_name(), judged.ruled.reason.clone());
        let proposed = self.record_assessed(submission, judged, now)?;
        let answer = if ruling == Ruling::Deny {
            Answer::Deny { reason }
        } else {
            if let Some(agent_message) = self.fail_if_impossible(proposed.change, now)? {
                return Ok(SubmitResult::Impossible { proposed: Box::new(proposed), agent_message });
            }
            // An allowed change that depends on a pending one is pending as well.
            if ruling == Ruling::Ask || proposed.preview.problems().next().is_some() {
                return Ok(SubmitResult::Pending(Box::new(proposed)));
            }
            Answer::Approve
        };
        let verdict = Verdict { by: Decider::Policy { rule }, ..proposed.verdict(answer) };
        let decided = self.decide(&proposed, &verdict, now)?;
        Ok(SubmitResult::Decided { proposed: Box::new(proposed), decided })
    }

    /// Records an assessed intent as a pending change.
    pub fn record_assessed(
        &mut self,
        submission: Submission,
        judged: Assessment,
        now: i64,
    ) -> Result<PendingChange, GateError> {
        let Submission { intent, origin, performer, deadline, .. } = submission;
        let Assessment { subject, preview, ruled } = judged;
        let is_files = subject.is_files();
        let proposing = NewChange {
            subject,
            performer,
            ruled: Some(ruling_record(&ruled)),
            // Serializing cannot fail: intents consist of strings, numbers and lists. A file change that is shown as a
            // tool call cannot be previewed again, so its intent is not recorded.
            intent: (is_files || !matches!(intent, Intent::ChangeFiles(_)))
                .then(|| serde_json::to_vec(&intent).unwrap_or_default()),
            deadline,
            ..NewChange::files(preview, origin, Cause::Proposal)
        };
        self.record_proposal(proposing, now)
    }

    /// Previews an intent and asks policy. Does not write to the journal.
    pub fn assess(&self, submission: &Submission, rules: &mut Rules) -> Result<Assessment, GateError> {
        let origin = &submission.origin;
        let who = Principal { agent: origin.agent.as_deref(), session: origin.session.as_deref() };
        let mut added = self.history().session_rules(who.session)?;
        added.splice(..0, added_folders_rule(&submission.folders));
        let mut judge = |act: &PolicyQuery<'_>| self.evaluate_query(act, &who, &added, rules);
        let mut judged = match &submission.intent {
            Intent::ChangeFiles(proposal) => {
                match self.preview(proposal, submission.performer) {
                    Ok(preview) => {
                        let ruled = judge(&PolicyQuery::Write { targets: &path_targets(&preview) })?;
                        Assessment { subject: Subject::Files, preview, ruled }
                    }
                    // Only the agent's own tool writes outside the workspace.
                    Err(GateError::Proposal(error)) if submission.performer == Performer::Agent => {
                        self.assess_outside(proposal, &error, &mut judge)?
                    }
                    Err(error) => return Err(error),
                }
            }
            Intent::RunCommand { command, directory, description } => {
                let directory = self.resolve_directory(directory.as_deref())?;
                let mut shown = CommandPreview::of(command, &directory, &self.workspace.path().to_string_lossy())
                    .described(description.clone());
                let syntax = submission.syntax.clone().or_else(|| syntax_of_intent(&submission.intent));
                shown.syntax = syntax.unwrap_or(shown.syntax);
                self.warn_of_uncaptured(&mut shown);
                // The preview finds more uncertainties than the parser.
                let script = Script { uncertainties: shown.uncertainties.clone(), ..CommandPreview::read(command) };
                let ruled =
                    judge(&PolicyQuery::Run { script: &script, reads: &shown.reads(), writes: &shown.writes() })?;
                let (command, description) = (command.clone(), description.clone());
                let subject = Subject::Command { command, directory, description, preview: Box::new(shown) };
                Assessment { subject, preview: Preview::happened(Vec::new()), ruled }
            }
            Intent::CallTool { name, arguments } => {
                let shown = ToolPreview::of(name, arguments, submission.schema.as_ref());
                // The arguments only look like a change, so a failed preview leaves it a tool call with an unknown
                // target.
                // The agent's own tool makes them.
                let changes = shown.changes.as_ref().map(|changes| self.preview(changes, Performer::Agent));
                let (preview, mut writes) = match changes {
                    Some(Ok(preview)) => {
                        let writes = path_targets(&preview);
                        (preview, writes)
                    }
                    Some(Err(error)) => (Preview::happened(Vec::new()), vec![PathTarget::Unknown(error.to_string())]),
                    None => (Preview::happened(Vec::new()), Vec::new()),
                };
                let mut reads = Vec::new();
                let named = if shown.access == FileAccess::Reads { &mut reads } else { &mut writes };
                for place in self.resolve_targets(&shown.paths) {
                    if !named.contains(&place) {
                        named.push(place);
                    }
                }
                let mut ruled = judge(&PolicyQuery::Tool { name, reads: &reads, writes: &writes })?;
                if let Some(command) = &shown.command {
                    // Rules about commands also apply to commands in tool arguments.
                    let run = CommandPreview::of(command, &WsPath::root(), &self.workspace.path().to_string_lossy());
                    let script = Script { uncertainties: run.uncertainties.clone(), ..CommandPreview::read(command) };
                    let as_command =
                        judge(&PolicyQuery::Run { script: &script, reads: &run.reads(), writes: &run.writes() })?;
                    if as_command.ruling > ruled.ruling {
                        ruled = as_command;
                    }
                }
                if let Some(delegation) = &shown.delegation {
                    let agent = delegation.agent.as_deref().unwrap_or(name);
                    let delegated = judge(&PolicyQuery::Delegate { agent, tools: &delegation.tools })?;
                    // The stricter of both decisions counts; without writes, the one about the delegation.
                    if delegated.ruling > ruled.ruling || writes.is_empty() {
                        ruled = delegated;
                    }
                }
                let (name, arguments) = (name.clone(), arguments.clone());
                Assessment { subject: Subject::Tool { name, arguments, preview: Box::new(shown) }, preview, ruled }
            }
            Intent::SendRequest { .. } => return Err(GateError::NotYet("requests to a model")),
        };
        // Without a session there is no turn, and so no review at its end.
        if judged.ruled.ruling == Ruling::Later && who.session.is_none() {
            judged.ruled.ruling = Ruling::Ask;
        }
        Ok(judged)
    }

    /// Returns the locations of the files that an intent names. Empty if it cannot be read, which its preview reports.
    pub(crate) fn files_of_intent(&self, intent: &Intent) -> BTreeSet<WsPath> {
        let of_proposal = |proposal: &Proposal| {
            let draft = proposal.draft(|text| self.workspace.locate(text));
            draft.map_or_else(|_| BTreeSet::new(), |draft| self.locations(draft.paths()))
        };
        match intent {
            Intent::ChangeFiles(proposal) => of_proposal(proposal),
            Intent::CallTool { name, arguments } => {
                ToolPreview::of(name, arguments, None).changes.as_ref().map(of_proposal).unwrap_or_default()
            }
            Intent::RunCommand { .. } | Intent::SendRequest { .. } => BTreeSet::new(),
        }
    }

    /// Returns the targets of paths, as named and with links resolved.
    fn resolve_targets(&self, paths: &[String]) -> Vec<PathTarget> {
        let mut places = Vec::new();
        for text in paths {
            match self.workspace.locate(text) {
                Ok(path) => {
                    let location =
                        self.workspace.open_path(&path).map_or_else(|_| path.clone(), |opened| opened.resolved);
                    places.push(PathTarget::Inside(path));
                    places.push(PathTarget::Inside(location));
                }
                Err(_) => places.push(PathTarget::Outside(text.clone())),
            }
        }
        places
    }

    /// Asks policy again before an approval takes effect. The person may have edited the command, or links may lead
    /// elsewhere by now; a denied action stays denied.
    pub fn check_rules(&self, proposed: &PendingChange, answer: &Answer, rules: &mut Rules) -> Result<(), GateError> {
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
            (_, Subject::Files) if proposed.cause.is_from_agent() => {
                let who =
                    Principal { agent: proposed.origin.agent.as_deref(), session: proposed.origin.session.as_deref() };
                let ruled =
                    rules.policy().evaluate(&PolicyQuery::Write { targets: &path_targets(&proposed.preview) }, &who);
                return reject_denied(&ruled);
            }
            _ => return Ok(()),
        };
        let submission = Submission::new(intent, proposed.origin.clone());
        reject_denied(&self.assess(&submission, rules)?.ruled)
    }

    fn resolve_directory(&self, text: Option<&str>) -> Result<WsPath, GateError> {
        match text {
            None | Some("") => Ok(WsPath::root()),
            Some(text) => {
                let path = self.workspace.locate(text).map_err(|error| GateError::BadDirectory(error.to_string()))?;
                match self.workspace.open_path(&path) {
                    // The directory must not be a link out of the workspace.
                    Err(error @ OpenError::Outside { .. }) => Err(GateError::BadDirectory(error.to_string())),
                    _ => Ok(path),
                }
            }
        }
    }
}

/// Returns all paths that a change of files affects: as named, with links resolved, and both ends of a rename.
pub(crate) fn path_targets(preview: &Preview) -> Vec<PathTarget> {
    let mut places = Vec::new();
    for file in preview.files() {
        places.push(PathTarget::Inside(file.path.clone()));
        if file.location != file.path {
            places.push(PathTarget::Inside(file.location.clone()));
        }
        if let sayso_review::Operation::Rename { from } = &file.operation {
            places.push(PathTarget::Inside(from.clone()));
        }
    }
    places
}

fn ruling_record(ruled: &PolicyDecision) -> RulingRecord {
    RulingRecord {
        ruling: ruled.ruling,
        rule: ruled.rule.to_string(),
        reason: ruled.reason.clone(),
        outside: outside_paths_of_rules(ruled),
    }
}

fn reject_denied(ruled: &PolicyDecision) -> Result<(), GateError> {
    if ruled.ruling == Ruling::Deny { Err(GateError::RuleDenies { rule: ruled.rule.short_name() }) } else { Ok(()) }
}

/// Checks the syntax of a command with bash; `None` for other intents.
pub(crate) fn syntax_of_intent(intent: &Intent) -> Option<Syntax> {
    match intent {
        Intent::RunCommand { command, .. } => Some(check_syntax(command, &CheckLimits::default_limits())),
        _ => None,
    }
}
