//! Paths outside the workspace: rules about them, their content before a change, and rejected intents without a
//! preview.

use std::cell::RefCell;

use sayso_review::{
    Access, Answer, ChangeRecord, ContentHash, Decider, FileAccess, Intent, OutsideFile, OutsidePath, PathTarget,
    Performer, PolicyDecision, PolicyQuery, Preview, Principal, Proposal, ProposalError, Rule, RuleId, Ruling, Subject,
    ToolPreview, Uncaptured, Verdict, WsPath,
};
use sayso_workspace::{follow_outside, read_outside};
use serde_json::json;

use crate::FILE_LIMIT;
use crate::engine::Engine;
use crate::error::GateError;
use crate::rules::Rules;
use crate::submit::{Assessment, Submission, SubmitResult};

/// Tool name in the record of an agent's write outside the workspace.
const WRITE_OUTSIDE_TOOL: &str = "write outside the workspace";
const OUTSIDE_NOT_RESTORABLE: &str =
    "it is outside the workspace, where sayso does not write; its content before is kept in the journal";
const OUTSIDE_NOT_READ: &str = "it is outside the workspace, and no rule lets sayso read it";

impl Engine {
    /// Evaluates a query. If rules allow a path outside, its links are followed and their targets are evaluated as
    /// well.
    pub(crate) fn evaluate_query(
        &self,
        act: &PolicyQuery<'_>,
        who: &Principal<'_>,
        added: &[Rule],
        rules: &mut Rules,
    ) -> Result<PolicyDecision, GateError> {
        let ruled = rules.evaluate(act, who, added)?;
        if ruled.ruling >= Ruling::Ask {
            return Ok(ruled);
        }
        let (reads, writes): (&[PathTarget], &[PathTarget]) = match act {
            PolicyQuery::Read { targets } => (targets, &[]),
            PolicyQuery::Write { targets } => (&[], targets),
            PolicyQuery::Run { reads, writes, .. } | PolicyQuery::Tool { reads, writes, .. } => (reads, writes),
            PolicyQuery::Delegate { .. } | PolicyQuery::Send { .. } => (&[], &[]),
        };
        let (reads, writes) = (self.resolve_outside_links(reads), self.resolve_outside_links(writes));
        let mut strictest = ruled;
        for (act, is_empty) in [
            (PolicyQuery::Read { targets: &reads }, reads.is_empty()),
            (PolicyQuery::Write { targets: &writes }, writes.is_empty()),
        ] {
            if !is_empty {
                let real = rules.evaluate(&act, who, added)?;
                if real.ruling > strictest.ruling {
                    strictest = PolicyDecision { parts: strictest.parts, ..real };
                }
            }
        }
        Ok(strictest)
    }

    /// Returns the targets of links among paths outside.
    fn resolve_outside_links(&self, places: &[PathTarget]) -> Vec<PathTarget> {
        let follow = |place: &PathTarget| {
            let PathTarget::Outside(text) = place else { return None };
            let named = OutsidePath::parse(text).ok()?;
            match follow_outside(&named) {
                Some(real) if real == named => None,
                Some(real) => Some(match self.workspace.locate(real.as_str()) {
                    Ok(inside) => PathTarget::Inside(inside),
                    Err(_) => PathTarget::Outside(real.into()),
                }),
                None => Some(PathTarget::Unknown(text.clone())),
            }
        };
        places.iter().filter_map(follow).collect()
    }

    /// Assesses a change of files that are not all in the workspace. The agent makes it with its own tool, so it is
    /// shown as a tool call.
    pub(crate) fn assess_outside(
        &self,
        proposal: &Proposal,
        error: &ProposalError,
        judge: &mut dyn FnMut(&PolicyQuery<'_>) -> Result<PolicyDecision, GateError>,
    ) -> Result<Assessment, GateError> {
        let paths = proposal_paths(proposal);
        let is_inside = |text: &String| self.workspace.locate(text).is_ok();
        if paths.is_empty() || paths.iter().any(is_inside) {
            return Ok(denied_assessment(&Intent::ChangeFiles(proposal.clone()), &error.to_string(), error.name()));
        }
        let places: Vec<PathTarget> = paths.iter().cloned().map(PathTarget::Outside).collect();
        let mut ruled = judge(&PolicyQuery::Write { targets: &places })?;
        if ruled.ruling == Ruling::Later {
            // A change outside cannot be reverted at the end of a turn.
            ruled.ruling = Ruling::Ask;
        }
        let arguments = serde_json::to_value(proposal).unwrap_or_default();
        let shown = ToolPreview {
            changes: None,
            guessed_from: None,
            paths,
            access: FileAccess::Writes,
            ..ToolPreview::of(WRITE_OUTSIDE_TOOL, &arguments, None)
        };
        let subject = Subject::Tool { name: WRITE_OUTSIDE_TOOL.to_owned(), arguments, preview: Box::new(shown) };
        Ok(Assessment { subject, preview: Preview::happened(Vec::new()), ruled })
    }

    /// Records an intent without a preview, and its denial.
    pub(crate) fn record_refusal(
        &mut self,
        submission: Submission,
        error: GateError,
        now: i64,
    ) -> Result<SubmitResult, GateError> {
        let by = match &error {
            GateError::Proposal(error) => error.name(),
            _ => "a directory outside the workspace",
        };
        let (performer, reason) = (submission.performer, error.to_string());
        let judged = denied_assessment(&submission.intent, &reason, by);
        let proposed = self.record_assessed(submission, judged, now)?;
        let verdict = Verdict {
            by: Decider::Policy { rule: by.to_owned() },
            ..proposed.verdict(Answer::Deny { reason: Some(reason) })
        };
        let decided = self.decide(&proposed, &verdict, now)?;
        // A hook returns the denial to its agent. Other clients get the error with its hint.
        match performer {
            Performer::Agent => Ok(SubmitResult::Decided { proposed: Box::new(proposed), decided }),
            Performer::Gate => Err(error),
        }
    }

    /// Reads the files outside that a user's rule names and that the action is about to write.
    pub(crate) fn read_outside_files(record: &ChangeRecord) -> Vec<(OutsideFile, Option<Vec<u8>>)> {
        let named = record.ruling.iter().flat_map(|ruled| &ruled.outside);
        let look = |path: &OutsidePath| {
            let bytes = read_outside(path, FILE_LIMIT).ok()?;
            let before = bytes.as_deref().map(ContentHash::of);
            Some((OutsideFile { path: path.clone(), before }, bytes))
        };
        named.filter_map(look).collect()
    }

    /// Returns the files outside that changed since they were read. sayso does not restore them.
    pub(crate) fn changed_outside(record: &ChangeRecord) -> Vec<Uncaptured> {
        let is_changed = |file: &&OutsideFile| {
            let now = read_outside(&file.path, FILE_LIMIT).map(|bytes| bytes.as_deref().map(ContentHash::of));
            !now.is_ok_and(|now| now == file.before)
        };
        let changed = record.outside.iter().filter(is_changed);
        changed
            .map(|file| Uncaptured { path: file.path.to_string(), reason: OUTSIDE_NOT_RESTORABLE.to_owned() })
            .collect()
    }

    /// Returns the files outside that a tool may have written and that were not read before.
    pub(crate) fn unread_outside(&self, record: &ChangeRecord) -> Vec<Uncaptured> {
        let Subject::Tool { preview, .. } = record.approved() else { return Vec::new() };
        let known = |path: &String| record.outside.iter().any(|file| file.path.as_str() == path);
        let unread = |path: &&String| self.workspace.locate(path).is_err() && !known(path);
        let named = preview.paths.iter().filter(|_| preview.access == FileAccess::Writes);
        named
            .filter(unread)
            .map(|path| Uncaptured { path: path.clone(), reason: OUTSIDE_NOT_READ.to_owned() })
            .collect()
    }
}

/// Returns the rule that allows reading in folders that the user gave to an agent.
pub(crate) fn added_folders_rule(folders: &[OutsidePath]) -> Option<Rule> {
    let read: Vec<String> = folders.iter().map(OutsidePath::as_pattern).collect();
    let name = Some("added folders".to_owned());
    (!read.is_empty()).then(|| Rule { name, read, ..Rule::new(Ruling::Allow) })
}

/// Returns the written paths outside that user's rules name.
pub(crate) fn outside_paths_of_rules(ruled: &PolicyDecision) -> Vec<OutsidePath> {
    let by_rule =
        ruled.parts.iter().filter(|part| part.access == Access::Write && matches!(part.rule, RuleId::Rule { .. }));
    by_rule.filter_map(|part| OutsidePath::parse(&part.target).ok()).collect()
}

/// Creates the assessment of a denied intent without a preview, in the form of a tool call.
fn denied_assessment(intent: &Intent, reason: &str, by: &str) -> Assessment {
    let (name, arguments) = match intent {
        Intent::ChangeFiles(proposal) => ("change files", serde_json::to_value(proposal).unwrap_or_default()),
        Intent::RunCommand { command, directory, .. } => {
            ("run a command", json!({ "command": command, "directory": directory }))
        }
        Intent::CallTool { name, arguments } => (name.as_str(), arguments.clone()),
        Intent::SendRequest { .. } => ("send a request", json!({})),
    };
    let shown = ToolPreview { changes: None, guessed_from: None, ..ToolPreview::of(name, &arguments, None) };
    let rule = RuleId::BuiltIn { name: by.to_owned() };
    let ruled = PolicyDecision { ruling: Ruling::Deny, rule, reason: Some(reason.to_owned()), parts: Vec::new() };
    let subject = Subject::Tool { name: name.to_owned(), arguments, preview: Box::new(shown) };
    Assessment { subject, preview: Preview::happened(Vec::new()), ruled }
}

/// Returns the paths of a proposal as written.
fn proposal_paths(proposal: &Proposal) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let note = |text: &str| {
        found.borrow_mut().push(text.to_owned());
        // The result is unused; the closure only collects names.
        WsPath::parse("noted")
    };
    // A patch that cannot be parsed names no further path.
    let _ = proposal.draft(note);
    found.into_inner()
}
