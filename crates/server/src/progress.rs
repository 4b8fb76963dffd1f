//! How far a change has come, as clients are told.

use sayso_api::proto::{self, PreviewView};
use sayso_gate::{Decided, GateError, History, Judged};
use sayso_review::{
    Cause, ChangeId, ChangeRecord, ChangeStatus, FileState, Origin, Performer, PlanStep, Rule, RuleScope,
};

use crate::failure::Failure;
use crate::host::{Host, now};

/// Where the change that takes a stale one's place is looked for.
const NEWEST: usize = 100;

/// What of a change is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// What was proposed.
    Proposed,
    /// What happened.
    Applied,
}

/// How far a change has come, as its events tell.
pub(crate) fn of(
    history: History<'_>,
    change: ChangeId,
    view: PreviewView,
    shown: Shown,
) -> Result<proto::Progress, GateError> {
    let record = history.change(change)?;
    let preview = match view {
        PreviewView::Unspecified => None,
        view => match if shown == Shown::Applied { history.applied(&record) } else { history.preview(&record) } {
            Ok(preview) => Some(sayso_api::convert::preview(&preview, view)),
            Err(GateError::ContentGone(_)) => None,
            Err(error) => return Err(error),
        },
    };
    // Also once it is over: whoever carries it out may learn only then what was approved.
    let went_ahead = matches!(record.status, ChangeStatus::Permitted | ChangeStatus::Applied);
    // Of a tool whose effect is a guess, nothing is kept that a plan could be made of.
    let by_agent = record.performer == Performer::Agent && record.subject.is_files();
    let plan = if went_ahead && by_agent { plan(history, &record)? } else { Vec::new() };
    let next = if record.status == ChangeStatus::Stale { next(history, change)? } else { None };
    Ok(proto::Progress {
        change: proto::Change::from(&record).into(),
        preview: preview.into(),
        plan: plan.iter().map(proto::PlanStep::from).collect(),
        next,
        ..Default::default()
    })
}

/// What was approved of the files, for whoever carries it out.
fn plan(history: History<'_>, record: &ChangeRecord) -> Result<Vec<PlanStep>, GateError> {
    let gone = || GateError::ContentGone(record.change);
    let state = |print| -> Result<FileState, GateError> { history.state(print)?.ok_or_else(gone) };
    let steps = record.expected.iter();
    steps
        .map(|step| Ok(PlanStep { path: step.path.clone(), before: state(&step.before)?, after: state(&step.after)? }))
        .collect()
}

/// The change in which a stale one and what was changed meanwhile are asked about together.
fn next(history: History<'_>, change: ChangeId) -> Result<Option<ChangeId>, GateError> {
    for record in history.changes(None).take(NEWEST) {
        let record = record?;
        if record.change <= change {
            break;
        }
        if record.cause == (Cause::Rebase { of: change }) {
            return Ok(Some(record.change));
        }
    }
    Ok(None)
}

/// What a verdict led to, with what only whoever decided learns.
pub(crate) fn decided(
    host: &Host,
    change: ChangeId,
    decided: &Decided,
    view: PreviewView,
) -> Result<proto::Progress, Failure> {
    let mut progress = host.gate.read(|history| of(history, change, view, Shown::Proposed))?;
    match decided {
        Decided::Stale { next, .. } => progress.next = Some(next.change),
        Decided::Applied { lost, .. } => {
            let one = |(path, what): &(_, Vec<&str>)| proto::progress::Lost {
                path: ToString::to_string(path),
                what: what.iter().map(ToString::to_string).collect(),
                ..Default::default()
            };
            progress.lost = lost.iter().map(one).collect();
        }
        Decided::Permitted { .. } | Decided::Denied { .. } | Decided::Failed { .. } => {}
    }
    Ok(progress)
}

/// What is proposed and was not recorded.
pub(crate) fn unrecorded(judged: &Judged, origin: Origin, view: PreviewView) -> proto::Progress {
    let preview = (view != PreviewView::Unspecified).then(|| sayso_api::convert::preview(&judged.preview, view));
    let record = judged.record(origin, Performer::Gate, now());
    let change = record.as_ref().map(proto::Change::from);
    proto::Progress { change: change.into(), preview: preview.into(), ..Default::default() }
}

/// Writes a rule for what comes where it belongs, and says where, for a person. The verdict counts whether or not that works.
pub(crate) fn keep(host: &Host, scope: Option<RuleScope>, rule: Option<&Rule>) -> Option<String> {
    match (scope, rule) {
        (None, _) => None,
        (Some(RuleScope::Session), _) => Some("for the rest of the session".to_owned()),
        (Some(RuleScope::Always), None) => Some("nowhere: it is decided for this time only".to_owned()),
        (Some(RuleScope::Always), Some(rule)) => Some(match host.settings.keep(rule) {
            Ok(place) => format!("in {place}"),
            Err(failure) => format!("nowhere: {}", failure.message),
        }),
    }
}
