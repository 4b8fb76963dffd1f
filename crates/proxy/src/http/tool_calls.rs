//! Tool calls in a response, processed before the agent receives them.

use std::sync::Arc;
use std::time::Duration;

use sayso_gate::{DecisionResult, Gate, Submission, SubmitResult, ToolCall as GateToolCall};
use sayso_review::{ChangeId, Event, EventBody, Intent, Origin, Outcome, Performer, RequestId, Tier};
use sayso_wire::stream::collect::BlockContent;

use super::response::summary::parse_arguments;
use crate::interceptor::{AttributionSource, Interceptor};
use crate::recorder::now;

/// Longest delay of a response for snapshots. A hook takes the missing ones later.
const CAPTURE_TIMEOUT: Duration = Duration::from_secs(2);

/// A complete tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) name: String,
    /// JSON, or any text of a model that did not produce JSON.
    pub(super) arguments: String,
}

impl ToolCall {
    pub(super) fn from_block(content: BlockContent) -> Option<Self> {
        match content {
            BlockContent::ToolCall { id, name, arguments, .. } => Some(Self { id, name, arguments }),
            _ => None,
        }
    }

    fn id(&self) -> Option<String> {
        Some(self.id.clone()).filter(|id| !id.is_empty())
    }
}

/// Decision about the part of a response that contains tool calls.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallDecision {
    Forward,
    /// A call was denied, with this message to the agent.
    Deny(String),
}

/// Takes snapshots for the tool calls of a response, and holds the calls that `hold_tools` names.
#[derive(Clone)]
pub(super) struct ToolCallHold {
    pub(super) interceptor: Arc<Interceptor>,
    pub(super) request: RequestId,
    pub(super) attribution: AttributionSource,
    pub(super) audience: Audience,
}

/// The reader of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// Runs the tool calls in it.
    Agent,
    /// Compares the response of a replay.
    Person,
}

impl ToolCallHold {
    /// `true` if a tool call may be held.
    pub(super) fn is_enabled(&self) -> bool {
        self.audience == Audience::Agent && !self.interceptor.settings().hold_tools.is_empty()
    }

    /// Processes calls in order, until one is denied.
    pub(super) async fn decide(self, calls: Vec<ToolCall>) -> CallDecision {
        if self.audience == Audience::Person {
            return CallDecision::Forward;
        }
        for call in calls {
            self.take_snapshots(&call).await;
            let is_held = self.interceptor.settings().hold_tools.iter().any(|tool| tool == "*" || *tool == call.name);
            if is_held && let Err(message) = self.review(&call).await {
                return CallDecision::Deny(message);
            }
        }
        CallDecision::Forward
    }

    /// Takes snapshots of the files that a call names, before the agent can change them.
    async fn take_snapshots(&self, call: &ToolCall) {
        let session = Some(self.attribution.resolve().session.clone());
        let target = GateToolCall { session, call: call.id(), tool: call.name.clone() };
        let arguments = parse_arguments(&call.arguments);
        let gate = self.interceptor.gate.clone();
        let taking = tokio::task::spawn_blocking(move || gate.capture(Tier::Answer, &target, &arguments, now()));
        let (request, tool) = (self.request, &call.name);
        match tokio::time::timeout(CAPTURE_TIMEOUT, taking).await {
            Ok(Ok(Ok(_))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(request, tool, %error, "cannot take snapshots for a tool call"),
            Ok(Err(error)) => tracing::error!(request, tool, %error, "taking snapshots for a tool call panicked"),
            Err(_) => tracing::warn!(request, tool, "snapshots for a tool call take too long; forwarding the call"),
        }
    }

    /// Submits a call as an intent, and waits for the verdict. An error is the message to the agent.
    async fn review(&self, call: &ToolCall) -> Result<(), String> {
        let gate = self.interceptor.gate.clone();
        let after = gate.last_event();
        let attribution = self.attribution.resolve();
        let origin = Origin {
            agent: attribution.agent.clone(),
            session: Some(attribution.session.clone()),
            turn: attribution.turn.clone(),
            call: call.id(),
        };
        let intent = Intent::CallTool { name: call.name.clone(), arguments: parse_arguments(&call.arguments) };
        let submission = Submission { performer: Performer::Agent, ..Submission::new(intent, origin) };
        let submitting = gate.clone();
        let submitted = tokio::task::spawn_blocking(move || {
            let result = submitting.submit(submission, now())?;
            let change = match &result {
                SubmitResult::Pending(pending) => Some(pending.change),
                SubmitResult::Decided { .. } | SubmitResult::Impossible { .. } => None,
            };
            // Created on the blocking thread: if the agent disconnects now, dropping the task's result withdraws the change.
            Ok::<_, sayso_gate::GateError>((result, WithdrawOnDrop { gate: submitting, change }))
        })
        .await;
        let (result, withdraw) = match submitted {
            Ok(Ok(submitted)) => submitted,
            Ok(Err(error)) => return Err(error.to_string()),
            Err(error) => return Err(error.to_string()),
        };
        let change = match result {
            SubmitResult::Pending(pending) => pending.change,
            SubmitResult::Impossible { agent_message, .. } => return Err(agent_message),
            SubmitResult::Decided { decided, .. } => return decided_by_policy(decided),
        };
        let verdict = verdict_on(&gate, after, change).await;
        withdraw.disarm();
        verdict
    }
}

fn decided_by_policy(decided: DecisionResult) -> Result<(), String> {
    match decided {
        DecisionResult::Applied { .. } | DecisionResult::Permitted { .. } => Ok(()),
        DecisionResult::Denied { agent_message }
        | DecisionResult::Stale { agent_message, .. }
        | DecisionResult::Failed { agent_message, .. } => Err(agent_message),
    }
}

/// Follows the event stream until a change is decided.
async fn verdict_on(gate: &Gate, after: u64, change: ChangeId) -> Result<(), String> {
    let mut stream = gate.subscribe(after);
    let mut message = None;
    loop {
        let recorded = match stream.next().await {
            Ok(Some(recorded)) => recorded,
            Ok(None) => return Err("sayso stopped before the call was decided".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        let EventBody::Known(event) = &recorded.body else { continue };
        if event.change() != Some(change) {
            continue;
        }
        match event {
            Event::Decided { agent_message, .. } => message = Some(agent_message.clone()),
            Event::Permitted { .. }
            | Event::Ended { outcome: Outcome::Applied | Outcome::Ran { .. } | Outcome::Sent, .. } => return Ok(()),
            Event::Ended { agent_message, .. } => {
                return Err(agent_message.clone().or(message).unwrap_or_else(|| "the call was denied".to_owned()));
            }
            _ => {}
        }
    }
}

/// Withdraws a pending change if the agent disconnects before the verdict.
struct WithdrawOnDrop {
    gate: Gate,
    change: Option<ChangeId>,
}

impl WithdrawOnDrop {
    fn disarm(mut self) {
        self.change = None;
    }
}

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        if let Some(change) = self.change {
            let gate = self.gate.clone();
            // The drop may happen on an async thread, and a withdrawal writes to the journal.
            drop(std::thread::spawn(move || gate.withdraw(change, now())));
        }
    }
}
