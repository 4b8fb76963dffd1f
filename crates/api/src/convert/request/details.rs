//! Requests in sections, runs of subagents, replays and endpoints.

use buffa::MessageField;
use sayso_review::RequestRecord;

use super::wire::section_id;
use crate::convert::field::{count, list, optional, required};
use crate::convert::{BadMessage, messages};
use crate::proto;
use crate::proto::list_subagents_response::Run;
use crate::proto::show_request_response::Metadata;
use crate::request::{EndpointAddress, ListedRun, ReplayResult, RequestDetails, RequestSummary, SubagentRuns};

impl From<&RequestSummary> for proto::RequestSummary {
    fn from(summary: &RequestSummary) -> Self {
        Self {
            held: summary.held,
            edited: summary.edited,
            conversation: summary.conversation.clone(),
            cost: summary.cost.as_ref().map(proto::RequestCost::from).into(),
            ..(&summary.record).into()
        }
    }
}

impl TryFrom<proto::RequestSummary> for RequestSummary {
    type Error = BadMessage;

    fn try_from(mut summary: proto::RequestSummary) -> Result<Self, BadMessage> {
        Ok(Self {
            held: summary.held,
            edited: summary.edited,
            conversation: std::mem::take(&mut summary.conversation),
            cost: optional(std::mem::take(&mut summary.cost), "cost")?,
            record: RequestRecord::try_from(summary)?,
        })
    }
}

impl From<&RequestDetails> for proto::ShowRequestResponse {
    fn from(details: &RequestDetails) -> Self {
        let metadata = details.metadata.iter().map(|(name, value)| Metadata {
            name: name.clone(),
            value: value.clone(),
            ..Default::default()
        });
        Self {
            summary: MessageField::some((&details.summary).into()),
            sections: messages(&details.sections),
            pinned: details.pinned.iter().map(ToString::to_string).collect(),
            pinned_tokens: MessageField::some(details.pinned_tokens.into()),
            tokens: MessageField::some(details.tokens.into()),
            context_window: details.context_window,
            max_output_tokens: details.max_output_tokens,
            problems: messages(&details.problems),
            impact: details.impact.as_ref().map(Into::into).into(),
            edits: messages(&details.edits),
            undone: messages(&details.undone),
            parse_error: details.parse_error.clone(),
            read_only_reason: details.read_only_reason.clone(),
            metadata: metadata.collect(),
            mode: MessageField::some((&details.mode).into()),
            exempt_reason: details.exempt_reason.clone(),
            captured_sections: details.captured_sections.map(|sections| sections as u64),
            streaming: details.streaming,
            redacted: details.redacted.clone(),
            cache_miss: details.cache_miss.as_ref().map(Into::into).into(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::ShowRequestResponse> for RequestDetails {
    type Error = BadMessage;

    fn try_from(details: proto::ShowRequestResponse) -> Result<Self, BadMessage> {
        let pinned = details.pinned.iter().map(|id| section_id(id, "pinned"));
        let captured = details.captured_sections.map(|sections| count(sections, "captured_sections"));
        Ok(Self {
            summary: required(details.summary, "summary")?,
            sections: list(details.sections, "sections")?,
            pinned: pinned.collect::<Result<_, _>>()?,
            pinned_tokens: required(details.pinned_tokens, "pinned_tokens")?,
            tokens: required(details.tokens, "tokens")?,
            context_window: details.context_window,
            max_output_tokens: details.max_output_tokens,
            problems: list(details.problems, "problems")?,
            impact: optional(details.impact, "impact")?,
            edits: list(details.edits, "edits")?,
            undone: list(details.undone, "undone")?,
            parse_error: details.parse_error,
            read_only_reason: details.read_only_reason,
            metadata: details.metadata.into_iter().map(|entry| (entry.name, entry.value)).collect(),
            mode: required(details.mode, "mode")?,
            exempt_reason: details.exempt_reason,
            captured_sections: captured.transpose()?,
            streaming: details.streaming,
            redacted: details.redacted,
            cache_miss: optional(details.cache_miss, "cache_miss")?,
        })
    }
}

impl From<&ListedRun> for Run {
    fn from(run: &ListedRun) -> Self {
        Self {
            request: run.request,
            conversation: run.conversation.clone(),
            session: run.session.clone(),
            agent: run.agent.clone(),
            subagent: run.subagent.as_ref().map(Into::into).into(),
            model: run.model.clone(),
            started_ms: run.started,
            last_ms: run.last,
            requests: run.requests,
            tokens: MessageField::some(run.tokens.into()),
            sections: messages(&run.sections),
            ..Default::default()
        }
    }
}

impl TryFrom<Run> for ListedRun {
    type Error = BadMessage;

    fn try_from(run: Run) -> Result<Self, BadMessage> {
        Ok(Self {
            request: run.request,
            conversation: run.conversation,
            session: run.session,
            agent: run.agent,
            subagent: optional(run.subagent, "subagent")?,
            model: run.model,
            started: run.started_ms,
            last: run.last_ms,
            requests: run.requests,
            tokens: required(run.tokens, "tokens")?,
            sections: list(run.sections, "sections")?,
        })
    }
}

impl From<&SubagentRuns> for proto::ListSubagentsResponse {
    fn from(listed: &SubagentRuns) -> Self {
        Self { runs: messages(&listed.runs), max_runs: listed.max_runs, ..Default::default() }
    }
}

impl TryFrom<proto::ListSubagentsResponse> for SubagentRuns {
    type Error = BadMessage;

    fn try_from(listed: proto::ListSubagentsResponse) -> Result<Self, BadMessage> {
        Ok(Self { runs: list(listed.runs, "runs")?, max_runs: listed.max_runs })
    }
}

impl From<&ReplayResult> for proto::ReplayRequestResponse {
    fn from(replayed: &ReplayResult) -> Self {
        Self {
            request: replayed.request,
            status: replayed.status.into(),
            answer: replayed.answer.clone(),
            earlier_answer: replayed.earlier_answer.clone(),
            diff: replayed.diff.clone(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::ReplayRequestResponse> for ReplayResult {
    type Error = BadMessage;

    fn try_from(replayed: proto::ReplayRequestResponse) -> Result<Self, BadMessage> {
        Ok(Self {
            request: replayed.request,
            status: super::response::http_status(replayed.status)?,
            answer: replayed.answer,
            earlier_answer: replayed.earlier_answer,
            diff: replayed.diff,
        })
    }
}

impl From<&EndpointAddress> for proto::AgentEndpoint {
    fn from(endpoint: &EndpointAddress) -> Self {
        let EndpointAddress { capability, agent, run, url } = endpoint.clone();
        Self { capability, agent, run, url, ..Default::default() }
    }
}

impl From<proto::AgentEndpoint> for EndpointAddress {
    fn from(endpoint: proto::AgentEndpoint) -> Self {
        Self { capability: endpoint.capability, agent: endpoint.agent, run: endpoint.run, url: endpoint.url }
    }
}
