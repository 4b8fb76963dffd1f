//! Changes as clients receive them: record, preview, plan and call results.

use sayso_api::proto::{self, PreviewView, remembered_rule};
use sayso_gate::{Assessment, DecisionResult, GateError, History};
use sayso_review::{
    Cause, ChangeId, ChangeRecord, ChangeStatus, FileState, Origin, Performer, PlanStep, Rule, RuleScope,
};

use crate::failure::Failure;
use crate::host::{Host, now};

/// Number of the newest changes among which the merged change of a stale one is searched.
const MERGED_SEARCH_CHANGES: usize = 100;

/// Subject of a preview.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreviewOf {
    /// The proposed effect.
    Proposed,
    /// The applied effect.
    Applied,
}

/// Builds the details of a recorded change.
pub(crate) fn of(
    history: History<'_>,
    change: ChangeId,
    view: PreviewView,
    preview_of: PreviewOf,
) -> Result<proto::ChangeDetails, GateError> {
    let record = history.change(change)?;
    let preview = match (view, preview_of) {
        (PreviewView::Unspecified, _) => None,
        (_, PreviewOf::Applied) => Some(history.applied_preview(&record)),
        (_, PreviewOf::Proposed) => Some(history.preview(&record)),
    };
    let preview = match preview {
        Some(Ok(preview)) => Some(sayso_api::convert::preview(&preview, view)),
        None | Some(Err(GateError::ContentGone(_))) => None,
        Some(Err(error)) => return Err(error),
    };
    // Also after the end: an agent may learn only then what was approved.
    let is_approved = matches!(record.status, ChangeStatus::Permitted | ChangeStatus::Applied);
    // The effect of other tools is inferred, so there are no stored contents for a plan.
    let agent_writes_files = record.performer == Performer::Agent && record.subject.is_files();
    let plan = if is_approved && agent_writes_files { plan(history, &record)? } else { Vec::new() };
    let merged_change = if record.status == ChangeStatus::Stale { merged_change(history, change)? } else { None };
    let is_pending = record.status == ChangeStatus::Pending;
    let seen = if is_pending { sayso_api::convert::seen(&history.seen_marks(&record)?) } else { Vec::new() };
    Ok(proto::ChangeDetails {
        change: proto::Change::from(&record).into(),
        preview: preview.into(),
        seen,
        plan: plan.iter().map(proto::PlanStep::from).collect(),
        merged_change,
        ..Default::default()
    })
}

/// Loads the approved contents of a change.
fn plan(history: History<'_>, record: &ChangeRecord) -> Result<Vec<PlanStep>, GateError> {
    let gone = || GateError::ContentGone(record.change);
    let state = |print| -> Result<FileState, GateError> { history.state(print)?.ok_or_else(gone) };
    let steps = record.expected.iter();
    steps
        .map(|step| Ok(PlanStep { path: step.path.clone(), before: state(&step.before)?, after: state(&step.after)? }))
        .collect()
}

/// Finds the pending change that merges a stale one with later edits.
pub(crate) fn merged_change(history: History<'_>, change: ChangeId) -> Result<Option<ChangeId>, GateError> {
    for record in history.changes(None).take(MERGED_SEARCH_CHANGES) {
        let record = record?;
        if record.change <= change {
            break;
        }
        if record.cause == (Cause::Rebase { original: change }) {
            return Ok(Some(record.change));
        }
    }
    Ok(None)
}

/// Builds the details of a change that was just decided, with results that are not recorded.
pub(crate) fn decided(
    host: &Host,
    change: ChangeId,
    decided: &DecisionResult,
    view: PreviewView,
) -> Result<proto::ChangeDetails, Failure> {
    let mut details = host.gate.read(|history| of(history, change, view, PreviewOf::Proposed))?;
    match decided {
        DecisionResult::Stale { next, .. } => details.merged_change = Some(next.change),
        DecisionResult::Applied { lost, .. } => {
            let message = |(path, attributes): &(_, Vec<&str>)| proto::change_details::LostAttributes {
                path: ToString::to_string(path),
                attributes: attributes.iter().map(ToString::to_string).collect(),
                ..Default::default()
            };
            details.lost_attributes = lost.iter().map(message).collect();
        }
        DecisionResult::Permitted { .. } | DecisionResult::Denied { .. } | DecisionResult::Failed { .. } => {}
    }
    Ok(details)
}

/// Builds the details of a proposal that was only previewed. Its change number is 0.
pub(crate) fn unrecorded(assessment: &Assessment, origin: Origin, view: PreviewView) -> proto::ChangeDetails {
    let preview = (view != PreviewView::Unspecified).then(|| sayso_api::convert::preview(&assessment.preview, view));
    let record = assessment.record(origin, Performer::Gate, now());
    let change = record.as_ref().map(proto::Change::from);
    proto::ChangeDetails { change: change.into(), preview: preview.into(), ..Default::default() }
}

/// Stores a rule from a verdict and reports its place. A failure does not invalidate the verdict.
pub(crate) fn remember(host: &Host, scope: Option<RuleScope>, rule: Option<&Rule>) -> Option<proto::RememberedRule> {
    use proto::oneof::remembered_rule::Result as Stored;
    let result = match (scope?, rule) {
        // The gate has added it to the session already.
        (RuleScope::Session, None) => remembered_rule::Session::default().into(),
        // The gate returns the rule if it has no session to add it to.
        (RuleScope::Session, Some(_)) => Some(Stored::Failure("the change belongs to no session".to_owned())),
        (RuleScope::Always, None) => Some(Stored::Failure("the verdict took no effect".to_owned())),
        (RuleScope::Always, Some(rule)) => Some(match host.settings.append_rule(rule) {
            Ok(file) => Stored::File(file),
            Err(failure) => Stored::Failure(failure.message),
        }),
    };
    Some(proto::RememberedRule { result, ..Default::default() })
}
