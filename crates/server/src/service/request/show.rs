//! Requests in sections, and runs of subagents.

use sayso_api::convert::conversation;
use sayso_api::proto;
use sayso_api::proto::show_request_response::Metadata;
use sayso_proxy::interceptor::{BodySignature, RequestView, SubagentRun, no_turn_because};
use sayso_review::{PauseReason, RequestId};
use sayso_wire::tokens::{TokenCounter, Tokens};
use sayso_wire::{EditOp, ModelRequest, Overrides, RequestPurpose, Section};

use super::mask::CredentialMask;
use super::section::{self, RequestOverrides, edit_impact, problems};
use super::{context_window, cost, mode, summary};
use crate::failure::Failure;
use crate::host::Host;

/// Default limit on the content of a section.
const DEFAULT_CONTENT_BYTES: u32 = 4_096;

/// Loads the overrides of a request.
pub(super) fn overrides(host: &Host, request: RequestId) -> Result<RequestOverrides, Failure> {
    let interceptor = &host.proxy.interceptor;
    let record = interceptor.record(request)?;
    let held = interceptor.view(request, |view| view.hold.map(|hold| hold.overrides.applied.clone()))?;
    let applied = held.unwrap_or_else(|| record.overrides.applied.clone());
    if applied.is_empty() {
        return Ok(RequestOverrides::default());
    }
    // If they have become unreadable, the display omits them.
    let edits = interceptor.overrides(record.received.origin.session.as_deref()).unwrap_or_default();
    let edits = edits.into_iter().map(|view| view.edit).collect();
    Ok(RequestOverrides { edits, applied })
}

pub(super) fn show(host: &Host, asked: &proto::ShowRequestRequest) -> Result<proto::ShowRequestResponse, Failure> {
    let interceptor = &host.proxy.interceptor;
    let record = interceptor.record(asked.request)?;
    let session = record.received.origin.session.clone();
    let overrides = overrides(host, asked.request)?;
    let mode = mode::state(host, session.as_deref());
    let summary = summary(host, &record);
    let limit = asked.content_limit.unwrap_or(DEFAULT_CONTENT_BYTES) as usize;
    let mut response = interceptor.view(asked.request, |RequestView { request, hold, counter }| {
        let mask = CredentialMask::of(request);
        let total = request.total_tokens(counter);
        let sections = request.sections().filter(|section| is_requested(request, section, asked.path.as_deref()));
        let message = |section| section::section(request, section, counter, total, limit, (&overrides, &mask));
        let sections = sections.map(message).collect();
        let pinned: Tokens = request.pinned().map(|section| request.tokens(counter, section.id.target)).sum();
        let edit = |op: &EditOp| edit(request, op, asked.values, &mask);
        let model = request.identity().model.or_else(|| record.received.model.clone());
        let signed = hold.as_ref().is_some_and(|hold| hold.signed == BodySignature::Signed);
        let limit = hold.filter(|hold| hold.save_on_resume).and(interceptor.settings().preview_limit);
        let captured = Overrides::captured_sections(request, limit);
        proto::ShowRequestResponse {
            sections,
            pinned: request.pinned().map(|section| section.id.to_string()).collect(),
            pinned_tokens: Some(pinned.into()).into(),
            tokens: Some(total.into()).into(),
            context_window: model.as_deref().and_then(|model| context_window::of_model(model, request.head())),
            max_output_tokens: request.identity().max_output_tokens,
            problems: problems(request),
            impact: request.edit_impact(counter).map(|impact| edit_impact(request, &impact)).into(),
            edits: request.history().undo.iter().map(edit).collect(),
            undone: request.history().redo.iter().map(edit).collect(),
            parse_error: request.unknown_format_reason(),
            exempt_reason: no_turn_because(record.received.subagent.is_some(), request)
                .filter(|_| record.paused.is_none())
                .map(str::to_owned),
            streaming: request.purpose() == Some(RequestPurpose::Stream),
            captured_sections: captured.map(|count| count as u64),
            read_only_reason: signed.then(|| "its body is signed; the upstream rejects an edited one".to_owned()),
            redacted: mask.paths,
            ..Default::default()
        }
    })?;
    response.metadata = metadata(&summary);
    response.cache_miss = cost::cache_miss(host, &record)?.into();
    (response.summary, response.mode) = (summary.into(), mode.into());
    Ok(response)
}

/// `true` if a section is at a path, above or below it.
fn is_requested(request: &ModelRequest, section: &Section, path: Option<&str>) -> bool {
    let Some(path) = path else { return true };
    let own = request.raw_path(section);
    let contains = |from: &str, to: &str| {
        to.strip_prefix(from).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '<']))
    };
    section.id.to_string() == path || contains(&own, path) || contains(path, &own)
}

fn edit(request: &ModelRequest, op: &EditOp, values: bool, mask: &CredentialMask) -> proto::RequestEdit {
    let masked = |value: String| mask.mask_at(&op.target_path, &value).into_owned();
    let (old, new) = request.values(op).filter(|_| values).map(|(old, new)| (masked(old), masked(new))).unzip();
    let kind = serde_json::to_value(op.target_kind).ok();
    proto::RequestEdit {
        revision: op.id.version,
        target_kind: kind.and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default(),
        target_path: op.target_path.clone(),
        old_json: old,
        new_json: new,
        ..Default::default()
    }
}

/// Entries of the metadata strip, in the order of seed 002.
fn metadata(summary: &proto::RequestSummary) -> Vec<Metadata> {
    let received = summary.received.as_option();
    let origin = received.and_then(|received| received.origin.as_option());
    let paused = summary.pause_reason.as_option().cloned().and_then(|reason| PauseReason::try_from(reason).ok());
    let interception = match (&paused, summary.held) {
        (Some(reason), true) => format!("paused: {}", reason_text(reason)),
        (Some(reason), false) => format!("was paused: {}", reason_text(reason)),
        (None, _) => "not paused".to_owned(),
    };
    let rows = [
        ("sessionId", origin.and_then(|origin| origin.session.clone())),
        ("requestId", Some(summary.request.to_string())),
        ("model", received.and_then(|received| received.model.clone())),
        ("location", origin.and_then(|origin| origin.agent.clone())),
        ("turn", origin.and_then(|origin| origin.turn.clone())),
        ("interception", Some(interception)),
        ("dirty", Some(summary.edited.to_string())),
        ("endpoint", received.map(|received| format!("{} {}", received.upstream, received.path))),
        ("timestamp", Some(summary.time_ms.to_string())),
    ];
    let row = |(name, value): (&str, Option<String>)| {
        Some(Metadata { name: name.to_owned(), value: value?, ..Default::default() })
    };
    rows.into_iter().filter_map(row).collect()
}

/// The reason of a pause, for a person.
fn reason_text(reason: &PauseReason) -> String {
    match reason {
        PauseReason::EveryTurn => "the mode pauses every turn".to_owned(),
        PauseReason::NextTurn => "`pause-next` was set".to_owned(),
        PauseReason::Capture => "its edits are saved when it is resumed".to_owned(),
        PauseReason::Rule { rule } => format!("rule `{rule}`"),
        PauseReason::Retry => "the client retried a paused request".to_owned(),
    }
}

/// Lists the latest runs of subagents.
pub(super) fn subagents(host: &Host, asked: &proto::ListSubagentsRequest) -> proto::ListSubagentsResponse {
    let interceptor = &host.proxy.interceptor;
    let is_requested = |run: &SubagentRun| {
        let parent = run.attribution.subagent.as_ref().and_then(|mark| mark.parent.as_ref());
        asked.request.is_none_or(|request| run.request == request)
            && asked
                .session
                .as_ref()
                .is_none_or(|session| run.attribution.session == *session || parent == Some(session))
    };
    let limit = asked.content_limit.unwrap_or(DEFAULT_CONTENT_BYTES) as usize;
    let mut counter = TokenCounter::new(1 << 10);
    let runs = interceptor.subagents();
    let runs: Vec<_> = runs.iter().filter(|run| is_requested(run)).collect();
    if limit > 0 {
        interceptor.record_runs_viewed(&runs);
    }
    let runs = runs.into_iter().map(|run| subagent(run, &mut counter, limit)).collect();
    proto::ListSubagentsResponse { runs, max_runs: interceptor.settings().monitor as u64, ..Default::default() }
}

fn subagent(run: &SubagentRun, counter: &mut TokenCounter, limit: usize) -> proto::list_subagents_response::Run {
    let (request, attribution) = (run.request(), &run.attribution);
    let total = request.total_tokens(counter);
    let (overrides, mask) = (RequestOverrides::default(), CredentialMask::of(&request));
    let sections = request.sections().filter(|_| limit > 0);
    let message = |section| section::section(&request, section, counter, total, limit, (&overrides, &mask));
    let sections = sections.map(message).collect();
    let name = attribution.subagent.as_ref().and_then(|mark| mark.id.as_deref()).unwrap_or("subagent");
    proto::list_subagents_response::Run {
        request: run.request,
        conversation: conversation(attribution.agent.as_deref(), Some(name), &attribution.session),
        session: attribution.session.clone(),
        agent: attribution.agent.clone(),
        subagent: attribution.subagent.as_ref().map(proto::Subagent::from).into(),
        model: attribution.model.clone(),
        started_ms: run.started,
        last_ms: run.last,
        requests: run.requests,
        tokens: Some(total.into()).into(),
        sections,
        ..Default::default()
    }
}
