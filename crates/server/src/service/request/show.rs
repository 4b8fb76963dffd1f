//! A request in sections, and the runs of subagents.

use sayso_api::convert::conversation;
use sayso_api::proto;
use sayso_api::proto::show_request_response::Metadata;
use sayso_proxy::desk::{Looked, Signed, SubagentRun, no_turn_because};
use sayso_review::{PauseReason, RequestId};
use sayso_wire::tokens::{TokenCounter, Tokens};
use sayso_wire::{EditOp, ModelRequest, Overrides, Purpose, Section};

use super::section::{self, SavedHere, consequences, problems, tokens};
use super::veil::Veil;
use super::{mode, summary, window};
use crate::failure::Failure;
use crate::host::Host;

/// Bytes of a section that are sent where nobody says how many.
const SOME: u32 = 4_096;

/// The saved edits that count for a request, and those that were applied to it.
pub(super) fn saved(host: &Host, request: RequestId) -> Result<SavedHere, Failure> {
    let desk = &host.proxy.desk;
    let record = desk.record(request)?;
    let waits = desk.look(request, |looked| looked.waiting.map(|waits| waits.saved.applied.clone()))?;
    let applied = waits.unwrap_or_else(|| record.saved.applied.clone());
    if applied.is_empty() {
        return Ok(SavedHere::default());
    }
    // Those that cannot be read by now are not named.
    let edits = desk.saved(record.seen.origin.session.as_deref()).unwrap_or_default();
    let edits = edits.into_iter().map(|view| view.edit).collect();
    Ok(SavedHere { edits, applied })
}

pub(super) fn show(host: &Host, asked: &proto::ShowRequestRequest) -> Result<proto::ShowRequestResponse, Failure> {
    let desk = &host.proxy.desk;
    let record = desk.record(asked.request)?;
    let session = record.seen.origin.session.clone();
    let saved = saved(host, asked.request)?;
    let mode = mode::state(host, session.as_deref());
    let summary = summary(host, &record);
    let limit = asked.content_limit.unwrap_or(SOME) as usize;
    let mut response = desk.look(asked.request, |Looked { request, waiting, counter }| {
        let veil = Veil::of(request);
        let total = request.total_tokens(counter);
        let wanted = |section: &&Section| is_wanted(request, section, asked.path.as_deref());
        let sections = request.sections().filter(wanted);
        let sections =
            sections.map(|one| section::section(request, one, counter, total, limit, (&saved, &veil))).collect();
        let pinned: Tokens = request.pinned().map(|one| request.tokens(counter, one.id.target)).sum();
        let edit = |op: &EditOp| edit(request, op, asked.values, &veil);
        let model = request.marks().model.or_else(|| record.seen.model.clone());
        let signed = waiting.as_ref().is_some_and(|waits| waits.signed == Signed::Yes);
        let limit = waiting.filter(|waits| waits.captures).and(desk.settings().preview_limit);
        let captured = Overrides::captured_sections(request, limit);
        proto::ShowRequestResponse {
            sections,
            pinned: request.pinned().map(|section| section.id.to_string()).collect(),
            pinned_tokens: tokens(pinned).into(),
            tokens: tokens(total).into(),
            most_tokens: model.as_deref().and_then(|model| window::of_model(model, request.head())),
            most_answer_tokens: request.marks().most_output,
            problems: problems(request),
            consequences: request.consequences(counter).map(|found| consequences(request, &found)).into(),
            edits: request.history().undo.iter().map(edit).collect(),
            undone: request.history().redo.iter().map(edit).collect(),
            not_understood: request.not_understood(),
            not_paused_because: no_turn_because(record.seen.subagent.is_some(), request)
                .filter(|_| record.paused.is_none())
                .map(str::to_owned),
            streams: request.purpose() == Some(Purpose::Stream),
            captured_sections: captured.map(|count| count as u64),
            fixed_because: signed.then(|| "its body is signed, and would be refused with any other".to_owned()),
            redacted: veil.paths,
            ..Default::default()
        }
    })?;
    response.metadata = metadata(&summary);
    (response.summary, response.mode) = (summary.into(), mode.into());
    Ok(response)
}

/// Whether a section is at a path, around it or beneath it.
fn is_wanted(request: &ModelRequest, section: &Section, path: Option<&str>) -> bool {
    let Some(path) = path else { return true };
    let own = request.raw_path(section);
    let leads = |from: &str, to: &str| {
        to.strip_prefix(from).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '<']))
    };
    section.id.to_string() == path || leads(&own, path) || leads(path, &own)
}

fn edit(request: &ModelRequest, op: &EditOp, values: bool, veil: &Veil) -> proto::RequestEdit {
    let hide = |value: String| veil.hide_at(&op.target_path, &value).into_owned();
    let (old, new) = request.values(op).filter(|_| values).map(|(old, new)| (hide(old), hide(new))).unzip();
    let kind = serde_json::to_value(op.target_kind).ok();
    proto::RequestEdit {
        version: op.id.version,
        target_kind: kind.and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default(),
        target_path: op.target_path.clone(),
        old_json: old,
        new_json: new,
        ..Default::default()
    }
}

/// What is shown about a request as a whole, in the seed's order.
fn metadata(summary: &proto::RequestSummary) -> Vec<Metadata> {
    let seen = summary.seen.as_option();
    let origin = seen.and_then(|seen| seen.origin.as_option());
    let paused = summary.paused.as_option().cloned().and_then(|why| PauseReason::try_from(why).ok());
    let interception = match (&paused, summary.waiting) {
        (Some(why), true) => format!("paused: {}", reason(why)),
        (Some(why), false) => format!("was paused: {}", reason(why)),
        (None, _) => "not paused".to_owned(),
    };
    let rows = [
        ("sessionId", origin.and_then(|origin| origin.session.clone())),
        ("requestId", Some(summary.request.to_string())),
        ("model", seen.and_then(|seen| seen.model.clone())),
        ("location", origin.and_then(|origin| origin.agent.clone())),
        ("turn", origin.and_then(|origin| origin.turn.clone())),
        ("interception", Some(interception)),
        ("dirty", Some(summary.edited.to_string())),
        ("endpoint", seen.map(|seen| format!("{} {}", seen.upstream, seen.path))),
        ("timestamp", Some(summary.time_ms.to_string())),
    ];
    let row = |(name, value): (&str, Option<String>)| {
        Some(Metadata { name: name.to_owned(), value: value?, ..Default::default() })
    };
    rows.into_iter().filter_map(row).collect()
}

/// Why a request waits, for a person.
fn reason(why: &PauseReason) -> String {
    match why {
        PauseReason::EveryTurn => "every turn is".to_owned(),
        PauseReason::NextTurn => "the next turn was to be".to_owned(),
        PauseReason::Capture => "its edits are saved when it is resumed".to_owned(),
        PauseReason::Rule { rule } => format!("the rule `{rule}` says so"),
        PauseReason::Retry => "an earlier one waited, and its client sent it again".to_owned(),
    }
}

/// The last runs of subagents.
pub(super) fn subagents(host: &Host, asked: &proto::ListSubagentsRequest) -> proto::ListSubagentsResponse {
    let desk = &host.proxy.desk;
    let of = |run: &SubagentRun| {
        let parent = run.whose.subagent.as_ref().and_then(|mark| mark.parent.as_ref());
        asked.request.is_none_or(|request| run.request == request)
            && asked.session.as_ref().is_none_or(|session| run.whose.session == *session || parent == Some(session))
    };
    let limit = asked.content_limit.unwrap_or(SOME) as usize;
    let mut counter = TokenCounter::new(1 << 10);
    let runs = desk.subagents();
    let runs: Vec<_> = runs.iter().filter(|run| of(run)).collect();
    if limit > 0 {
        desk.viewed(&runs);
    }
    let runs = runs.into_iter().map(|run| subagent(run, &mut counter, limit)).collect();
    proto::ListSubagentsResponse { runs, most: desk.settings().monitor as u64, ..Default::default() }
}

fn subagent(run: &SubagentRun, counter: &mut TokenCounter, limit: usize) -> proto::list_subagents_response::Run {
    let (request, whose) = (run.request(), &run.whose);
    let total = request.total_tokens(counter);
    let (none, veil) = (SavedHere::default(), Veil::of(&request));
    let sections = request.sections().filter(|_| limit > 0);
    let sections = sections.map(|one| section::section(&request, one, counter, total, limit, (&none, &veil))).collect();
    let name = whose.subagent.as_ref().and_then(|mark| mark.id.as_deref()).unwrap_or("subagent");
    proto::list_subagents_response::Run {
        request: run.request,
        conversation: conversation(whose.agent.as_deref(), Some(name), &whose.session),
        session: whose.session.clone(),
        agent: whose.agent.clone(),
        subagent: whose.subagent.as_ref().map(proto::Subagent::from).into(),
        model: whose.model.clone(),
        started_ms: run.started,
        last_ms: run.last,
        requests: run.requests,
        tokens: tokens(total).into(),
        sections,
        ..Default::default()
    }
}
