//! Paths outside the workspace: what rules say to them, what was there before, and refusals that have no preview.

use std::cell::RefCell;

use sayso_review::{
    Access, Act, Answer, ChangeRecord, ContentHash, Decider, Intent, OutsideFile, OutsidePath, Performer, Place,
    Preview, Proposal, ProposalError, Rule, RuleId, Ruled, Ruling, Subject, ToolPreview, Touch, Uncaptured, Verdict,
    Who, WsPath,
};
use sayso_workspace::{follow_outside, read_outside};
use serde_json::json;

use crate::FILE_LIMIT;
use crate::engine::Engine;
use crate::error::GateError;
use crate::rules::Rules;
use crate::submit::{Judged, Submission, Submitted};

/// The name of a write outside the workspace that an agent makes with its own tool.
const WRITE_OUTSIDE: &str = "write outside the workspace";
/// Why a file outside cannot be put back.
const NOT_OURS: &str =
    "it is outside the workspace, where sayso does not write; its content before is kept in the journal";
/// Why nothing is known of a file outside.
const NOT_READ: &str = "it is outside the workspace, and no rule lets sayso read it";

impl Engine {
    /// Judges an act. Where rules let a path outside through, the links on the way to it are followed, and where they lead is
    /// judged as well.
    pub(crate) fn judge_act(
        &self,
        act: &Act<'_>,
        who: &Who<'_>,
        added: &[Rule],
        rules: &mut Rules,
    ) -> Result<Ruled, GateError> {
        let ruled = rules.judge(act, who, added)?;
        if ruled.ruling >= Ruling::Ask {
            return Ok(ruled);
        }
        let (reads, writes): (&[Place], &[Place]) = match act {
            Act::Read { places } => (places, &[]),
            Act::Write { places } => (&[], places),
            Act::Run { reads, writes, .. } | Act::Tool { reads, writes, .. } => (reads, writes),
            Act::Delegate { .. } | Act::Send { .. } => (&[], &[]),
        };
        let (reads, writes) = (self.followed(reads), self.followed(writes));
        let mut strictest = ruled;
        for (act, is_empty) in
            [(Act::Read { places: &reads }, reads.is_empty()), (Act::Write { places: &writes }, writes.is_empty())]
        {
            if !is_empty {
                let real = rules.judge(&act, who, added)?;
                if real.ruling > strictest.ruling {
                    strictest = Ruled { parts: strictest.parts, ..real };
                }
            }
        }
        Ok(strictest)
    }

    /// Where paths outside lead that are not where they are named.
    fn followed(&self, places: &[Place]) -> Vec<Place> {
        let follow = |place: &Place| {
            let Place::Outside(text) = place else { return None };
            let named = OutsidePath::parse(text).ok()?;
            match follow_outside(&named) {
                Some(real) if real == named => None,
                Some(real) => Some(match self.workspace.locate(real.as_str()) {
                    Ok(inside) => Place::Inside(inside),
                    Err(_) => Place::Outside(real.into()),
                }),
                None => Some(Place::Unknown(text.clone())),
            }
        };
        places.iter().filter_map(follow).collect()
    }

    /// Judges a change of files that is not, or not only, about files of the workspace. The agent makes it with its own tool, so
    /// that it is shown as the call of one.
    pub(crate) fn judge_outside(
        &self,
        proposal: &Proposal,
        error: &ProposalError,
        judge: &mut dyn FnMut(&Act<'_>) -> Result<Ruled, GateError>,
    ) -> Result<Judged, GateError> {
        let paths = paths(proposal);
        let is_inside = |text: &String| self.workspace.locate(text).is_ok();
        if paths.is_empty() || paths.iter().any(is_inside) {
            return Ok(refused(&Intent::ChangeFiles(proposal.clone()), &error.to_string(), error.name()));
        }
        let places: Vec<Place> = paths.iter().cloned().map(Place::Outside).collect();
        let mut ruled = judge(&Act::Write { places: &places })?;
        if ruled.ruling == Ruling::Later {
            // Nothing outside can be taken back at the end of a turn.
            ruled.ruling = Ruling::Ask;
        }
        let arguments = serde_json::to_value(proposal).unwrap_or_default();
        let shown = ToolPreview {
            changes: None,
            guessed_from: None,
            paths,
            touch: Touch::Writes,
            ..ToolPreview::of(WRITE_OUTSIDE, &arguments, None)
        };
        let subject = Subject::Tool { name: WRITE_OUTSIDE.to_owned(), arguments, preview: Box::new(shown) };
        Ok(Judged { subject, preview: Preview::happened(Vec::new()), ruled })
    }

    /// Records an intent that cannot even be previewed, and why it is refused.
    pub(crate) fn refuse(
        &mut self,
        submission: Submission,
        error: GateError,
        now: i64,
    ) -> Result<Submitted, GateError> {
        let by = match &error {
            GateError::Proposal(error) => error.name(),
            _ => "a directory outside the workspace",
        };
        let (performer, reason) = (submission.performer, error.to_string());
        let judged = refused(&submission.intent, &reason, by);
        let proposed = self.record_judged(submission, judged, now)?;
        let verdict = Verdict {
            by: Decider::Policy { rule: by.to_owned() },
            ..proposed.verdict(Answer::Deny { reason: Some(reason) })
        };
        let decided = self.decide(&proposed, &verdict, now)?;
        // A hook answers its agent with the denial. Another client gets the error that says what to do.
        match performer {
            Performer::Agent => Ok(Submitted::Decided { proposed: Box::new(proposed), decided }),
            Performer::Gate => Err(error),
        }
    }

    /// Reads the files outside that a rule of the user names and that are about to be written.
    pub(crate) fn look_outside(record: &ChangeRecord) -> Vec<(OutsideFile, Option<Vec<u8>>)> {
        let named = record.ruled.iter().flat_map(|ruled| &ruled.outside);
        let look = |path: &OutsidePath| {
            let bytes = read_outside(path, FILE_LIMIT).ok()?;
            let before = bytes.as_deref().map(ContentHash::of);
            Some((OutsideFile { path: path.clone(), before }, bytes))
        };
        named.filter_map(look).collect()
    }

    /// The files outside that were looked at before, and are not as they were. None of them can be put back.
    pub(crate) fn changed_outside(record: &ChangeRecord) -> Vec<Uncaptured> {
        let is_changed = |file: &&OutsideFile| {
            let now = read_outside(&file.path, FILE_LIMIT).map(|bytes| bytes.as_deref().map(ContentHash::of));
            !now.is_ok_and(|now| now == file.before)
        };
        let changed = record.outside.iter().filter(is_changed);
        changed.map(|file| Uncaptured { path: file.path.to_string(), reason: NOT_OURS.to_owned() }).collect()
    }

    /// The files outside that a tool may have written, and that nobody looked at.
    pub(crate) fn unread_outside(&self, record: &ChangeRecord) -> Vec<Uncaptured> {
        let Subject::Tool { preview, .. } = record.approved() else { return Vec::new() };
        let known = |path: &String| record.outside.iter().any(|file| file.path.as_str() == path);
        let unread = |path: &&String| self.workspace.locate(path).is_err() && !known(path);
        let named = preview.paths.iter().filter(|_| preview.touch == Touch::Writes);
        named.filter(unread).map(|path| Uncaptured { path: path.clone(), reason: NOT_READ.to_owned() }).collect()
    }
}

/// The rule about folders that the user hands to an agent: it reads there as in the workspace.
pub(crate) fn handed_over(folders: &[OutsidePath]) -> Option<Rule> {
    let read: Vec<String> = folders.iter().map(OutsidePath::as_pattern).collect();
    let name = Some("folders that were added".to_owned());
    (!read.is_empty()).then(|| Rule { name, read, ..Rule::new(Ruling::Allow) })
}

/// The paths outside that rules of the user name, among those that are written.
pub(crate) fn named_outside(ruled: &Ruled) -> Vec<OutsidePath> {
    let by_rule =
        ruled.parts.iter().filter(|part| part.access == Access::Write && matches!(part.by, RuleId::Rule { .. }));
    by_rule.filter_map(|part| OutsidePath::parse(&part.what).ok()).collect()
}

/// An intent that is refused before it has a preview, as the call that it is.
fn refused(intent: &Intent, reason: &str, by: &str) -> Judged {
    let (name, arguments) = match intent {
        Intent::ChangeFiles(proposal) => ("change files", serde_json::to_value(proposal).unwrap_or_default()),
        Intent::RunCommand { command, directory, .. } => {
            ("run a command", json!({ "command": command, "directory": directory }))
        }
        Intent::CallTool { name, arguments } => (name.as_str(), arguments.clone()),
        Intent::SendRequest { .. } => ("send a request", json!({})),
    };
    let shown = ToolPreview { changes: None, guessed_from: None, ..ToolPreview::of(name, &arguments, None) };
    let by = RuleId::BuiltIn { name: by.to_owned() };
    let ruled = Ruled { ruling: Ruling::Deny, by, reason: Some(reason.to_owned()), parts: Vec::new() };
    let subject = Subject::Tool { name: name.to_owned(), arguments, preview: Box::new(shown) };
    Judged { subject, preview: Preview::happened(Vec::new()), ruled }
}

/// The paths of a proposal as it names them.
fn paths(proposal: &Proposal) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let note = |text: &str| {
        found.borrow_mut().push(text.to_owned());
        // Any file will do: only the names are of interest.
        WsPath::parse("noted")
    };
    // The rest of a patch that is not understood names nothing.
    let _ = proposal.draft(note);
    found.into_inner()
}
