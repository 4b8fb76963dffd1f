//! Proposals and verdicts.

use sayso_api::convert::BadMessage;
use sayso_api::convert::field::{optional, required};
use sayso_api::proto::oneof::propose_request::Changes;
use sayso_api::proto::propose_request::Mode;
use sayso_api::proto::{self, PreviewView};
use sayso_gate::{DecisionResult, Submission, SubmitResult, VerdictResult};
use sayso_review::{Decider, Intent, Proposal, RememberAs, Surface, Verdict};

use crate::caller::Peer;
use crate::change_details::{self, PreviewOf};
use crate::failure::Failure;
use crate::host::{Host, now};
use crate::service::{origin, view_of};

pub(super) fn decide(host: &Host, request: proto::DecideRequest) -> Result<proto::ChangeDetails, Failure> {
    let change = request.change;
    // The caller has been checked to be a person, so a decider in the message is ignored.
    let by = Decider::Person { surface: request.surface.into_option().map(Surface::from) };
    let verdict = Verdict { by, ..required(request.verdict, "verdict")? };
    let remember: Option<RememberAs> = optional(request.remember_as, "remember_as")?;
    host.refresh()?;
    // A change whose process has exited must not be carried out.
    host.finish_abandoned()?;
    let VerdictResult { result, permanent_rule } = host.gate.decide(change, &verdict, remember, now())?;
    let mut details = change_details::decided(host, change, &result, view_of(request.view))?;
    let took_effect = !matches!(result, DecisionResult::Stale { .. } | DecisionResult::Failed { .. });
    let scope = remember.filter(|_| took_effect).map(|remember| remember.scope);
    details.remembered_rule = change_details::remember(host, scope, permanent_rule.as_ref()).into();
    Ok(details)
}

pub(super) fn propose(
    host: &Host,
    peer: Option<Peer>,
    request: proto::ProposeRequest,
) -> Result<proto::ChangeDetails, Failure> {
    let proposal = match request.changes {
        Some(Changes::Proposal(proposal)) => Proposal::try_from(*proposal)?,
        Some(Changes::Text(text)) => Proposal::parse(&text)?,
        None => return Err(BadMessage::new("changes", "it needs `proposal` or `text`").into()),
    };
    let mut origin = origin(request.origin.into_option());
    host.authorize_origin(peer, &mut origin)?;
    let view = view_of(request.view);
    let mode = request.mode.as_known().unwrap_or_default();
    host.refresh()?;
    let submission = Submission {
        deadline: host.deadline(),
        ask_mode: Host::ask_mode(mode == Mode::MODE_ASK),
        ..Submission::new(Intent::ChangeFiles(proposal), origin)
    };
    if mode == Mode::MODE_PREVIEW {
        let origin = submission.origin.clone();
        let assessment = host.gate.assess(submission)?;
        return Ok(change_details::unrecorded(&assessment, origin, view));
    }
    submitted(host, host.gate.submit(submission, now())?, view)
}

/// Builds the details of a change that was just submitted.
pub(in crate::service) fn submitted(
    host: &Host,
    submitted: SubmitResult,
    view: PreviewView,
) -> Result<proto::ChangeDetails, Failure> {
    let (proposed, decided) = match submitted {
        SubmitResult::Decided { proposed, decided } => (proposed, Some(decided)),
        SubmitResult::Pending(proposed) | SubmitResult::Impossible { proposed, .. } => (proposed, None),
    };
    let change = proposed.change;
    match decided {
        Some(decided) => change_details::decided(host, change, &decided, view),
        None => Ok(host.gate.read(|history| change_details::of(history, change, view, PreviewOf::Proposed))?),
    }
}
