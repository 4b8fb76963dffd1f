//! Intents of the agent: submitted, awaited and, if the agent is interrupted, withdrawn.

use std::collections::BTreeSet;
use std::sync::Arc;

use sayso_agent::host::{ActionOutcome, ActionResult, CallOrigin};
use sayso_agent::{Entry, LogEntry};
use sayso_gate::{AskMode, Gate, Submission, SubmitResult};
use sayso_review::{
    BUILT_IN_AGENT, ChangeId, ChangeRecord, ChangeStatus, Delivery, ErrorKind, EventBody, FileState, Intent, Origin,
    Performer,
};
use sayso_tools::FileStep;
use serde_json::Value;

use super::SessionHost;
use crate::agent_sessions::WaitingFor;
use crate::change_details::merged_change;
use crate::failure::Failure;
use crate::host::{AwaitGuard, Host, now};
use crate::service::stream::catch_up;

/// The tool whose changes are decided after its call has ended.
const PROPOSING_TOOL: &str = "ProposeChanges";

/// A request for a decision.
pub(super) struct IntentOf<'c> {
    pub(super) call: &'c CallOrigin,
    pub(super) intent: Intent,
    /// JSON schema of a tool's arguments.
    pub(super) schema: Option<Value>,
    pub(super) ask_mode: AskMode,
}

/// An intent after policy, and after a person if policy asks.
pub(super) enum Decided {
    /// The record of the change, which is no longer pending.
    Recorded(Box<ChangeRecord>),
    /// It cannot be carried out, so nobody was asked.
    Impossible { change: ChangeId, message: String },
}

/// A pending change of the agent. Dropping it withdraws the change.
pub(super) struct PendingIntent {
    host: Arc<Host>,
    /// `None` once it is decided.
    change: Option<ChangeId>,
    /// Keeps the change from being cancelled as abandoned.
    _guard: AwaitGuard,
}

impl Drop for PendingIntent {
    fn drop(&mut self) {
        let Some(change) = self.change.take() else { return };
        let host = Arc::clone(&self.host);
        let withdraw = move || {
            // Fails if it was decided at this moment.
            if let Err(error) = host.gate.withdraw(change, now()) {
                tracing::debug!(change, %error, "cannot withdraw a change of the agent");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(withdraw)),
            Err(_) => withdraw(),
        }
    }
}

impl PendingIntent {
    /// Leaves the change to a person, also after the engine has stopped. Returns it.
    fn leave_pending(mut self) -> Option<ChangeId> {
        self.change.take()
    }
}

/// Runs work of an action on a blocking thread.
pub(super) async fn on_thread<T: Send + 'static>(
    host: &Arc<Host>,
    work: impl FnOnce(&Arc<Host>) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let host = Arc::clone(host);
    let done = tokio::task::spawn_blocking(move || work(&host)).await;
    // Cancelled: the runtime ended before the work began.
    done.unwrap_or_else(|error| Err(if error.is_cancelled() { super::stopping() } else { Failure::panicked(&error) }))
}

fn origin(call: &CallOrigin) -> Origin {
    Origin {
        agent: Some(BUILT_IN_AGENT.to_owned()),
        session: Some(call.session.clone()),
        turn: Some(call.invocation.clone()),
        call: Some(call.call.clone()),
    }
}

/// Submits an intent. If policy asks, returns the pending change.
pub(super) async fn submit(host: &SessionHost, asked: IntentOf<'_>) -> Result<Result<Decided, PendingIntent>, Failure> {
    let IntentOf { call, intent, schema, ask_mode } = asked;
    let origin = origin(call);
    let (change, impossible, is_pending) = on_thread(&host.host, move |host| {
        host.refresh()?;
        let always = ask_mode == AskMode::Always;
        let submission = Submission {
            performer: Performer::Gate,
            deadline: host.deadline(),
            schema,
            ask_mode: Host::ask_mode(always),
            ..Submission::new(intent, origin)
        };
        Ok(match host.gate.submit(submission, now())? {
            SubmitResult::Pending(proposed) => (proposed.change, None, true),
            SubmitResult::Decided { proposed, .. } => (proposed.change, None, false),
            SubmitResult::Impossible { proposed, agent_message } => (proposed.change, Some(agent_message), false),
        })
    })
    .await?;
    if let Some(message) = impossible {
        return Ok(Ok(Decided::Impossible { change, message }));
    }
    let guard = host.host.count_await(change);
    let pending = PendingIntent { host: Arc::clone(&host.host), change: Some(change), _guard: guard };
    if is_pending {
        return Ok(Err(pending));
    }
    // A change that policy decided may be in the hands of an editor.
    pending.decided().await.map(Ok)
}

/// Submits an intent and waits for its decision. Meanwhile the session is shown as waiting.
pub(super) async fn decide(host: &SessionHost, asked: IntentOf<'_>) -> Result<Decided, Failure> {
    let invocation = asked.call.invocation.clone();
    match submit(host, asked).await? {
        Ok(decided) => Ok(decided),
        Err(pending) => {
            let change = pending.change.unwrap_or_default();
            let waiting = host.live.wait_for(&invocation, WaitingFor::Change(change));
            let decided = pending.decided().await;
            drop(waiting);
            decided
        }
    }
}

impl PendingIntent {
    /// Waits until the change is no longer pending. A change that became stale is followed to the change that merges it.
    pub(super) async fn decided(mut self) -> Result<Decided, Failure> {
        let Some(change) = self.change else { return Err(super::stopping()) };
        let host = Arc::clone(&self.host);
        let decided = verdict_of(&host, change, |merged| self.change = Some(merged)).await?;
        self.change = None;
        Ok(decided)
    }
}

/// Waits until a change is no longer pending. A change that became stale is followed to the change that merges it, which is passed to
/// `on_merge`.
async fn verdict_of(
    host: &Arc<Host>,
    mut change: ChangeId,
    mut on_merge: impl FnMut(ChangeId),
) -> Result<Decided, Failure> {
    loop {
        // Keeps the change from being cancelled as abandoned.
        let _guard = host.count_await(change);
        let record = decided_change(host, change).await?;
        let merged = match record.status {
            ChangeStatus::Stale => {
                on_thread(host, move |host| Ok(host.gate.read(|history| merged_change(history, change))?)).await?
            }
            _ => None,
        };
        match merged {
            Some(next) => {
                on_merge(next);
                change = next;
            }
            None => return Ok(Decided::Recorded(Box::new(record))),
        }
    }
}

/// Waits until a change is no longer pending, and returns its record.
async fn decided_change(host: &Arc<Host>, change: ChangeId) -> Result<ChangeRecord, Failure> {
    // Subscribed before the first look at the change, so that no event in between is missed.
    let mut subscription = host.gate.subscribe(host.gate.last_event());
    loop {
        let record = on_thread(host, move |host| Ok(host.gate.read(|history| history.change(change))?)).await?;
        // INTERRUPTED is the status while a plan is being applied: its end follows.
        if !matches!(record.status, ChangeStatus::Pending | ChangeStatus::Interrupted) {
            return Ok(record);
        }
        loop {
            let behind = catch_up(&mut subscription).await;
            behind.map_err(|error| Failure::new(ErrorKind::Unavailable, error.to_string()))?;
            let Some(event) = subscription.next().await? else { return Err(super::stopping()) };
            if matches!(&event.body, EventBody::Known(known) if known.change() == Some(change)) {
                break;
            }
        }
    }
}

impl Decided {
    /// Returns the result for the model.
    pub(super) fn into_result(self) -> ActionResult {
        match self {
            Self::Impossible { change, message } => {
                ActionResult { change: Some(change), outcome: ActionOutcome::Failed, message }
            }
            Self::Recorded(record) => {
                let outcome = match &record.status {
                    ChangeStatus::Applied | ChangeStatus::Undone { .. } if record.partial => ActionOutcome::Partial,
                    ChangeStatus::Applied | ChangeStatus::Undone { .. } => ActionOutcome::Applied,
                    ChangeStatus::Permitted => ActionOutcome::Permitted,
                    ChangeStatus::Denied => ActionOutcome::Denied,
                    ChangeStatus::Stale => ActionOutcome::Stale,
                    ChangeStatus::Cancelled => ActionOutcome::Cancelled,
                    ChangeStatus::Failed { .. } | ChangeStatus::Pending | ChangeStatus::Interrupted => {
                        ActionOutcome::Failed
                    }
                };
                let message = record.agent_message.clone().unwrap_or_else(|| match &record.status {
                    ChangeStatus::Failed { reason } => reason.clone(),
                    status => format!("the change is {status}"),
                });
                ActionResult { change: Some(record.change), outcome, message }
            }
        }
    }
}

/// Submits a change of files. A call that only proposes ends when the change is pending.
pub(super) async fn change_files(host: &SessionHost, call: &CallOrigin, step: FileStep) -> ActionResult {
    let proposes_only = step.proposes_only();
    // A proposal is for a person to apply, whatever the rules allow.
    let ask_mode = if proposes_only { AskMode::Always } else { AskMode::ByPolicy };
    let asked = IntentOf { call, intent: Intent::ChangeFiles(step.proposal), schema: None, ask_mode };
    let done = if proposes_only { propose(host, asked).await } else { decide(host, asked).await.map(Ok) };
    let decided = match done {
        Ok(Ok(decided)) => decided,
        Ok(Err(proposed)) => return proposed,
        Err(failure) => return super::failed(&failure),
    };
    if let Decided::Recorded(record) = &decided {
        refresh_reads(host, record).await;
    }
    decided.into_result()
}

/// Submits a proposal, and has its verdict delivered as a message later.
async fn propose(host: &SessionHost, asked: IntentOf<'_>) -> Result<Result<Decided, ActionResult>, Failure> {
    let session = asked.call.session.clone();
    let pending = match submit(host, asked).await? {
        Ok(decided) => return Ok(Ok(decided)),
        Err(pending) => pending,
    };
    let change = pending.leave_pending();
    let proposed = ActionResult {
        change,
        outcome: ActionOutcome::Proposed,
        message: "the changes are proposed; a person decides about them".to_owned(),
    };
    if let Some(change) = change {
        tokio::spawn(deliver_verdict(Arc::clone(&host.host), session, change));
    }
    Ok(Err(proposed))
}

/// Queues the verdict on a proposal for the agent, once there is one. If the engine stops before, the next one does it
/// ([`follow_proposals`]).
async fn deliver_verdict(host: Arc<Host>, session: String, change: ChangeId) {
    let Ok(Decided::Recorded(record)) = verdict_of(&host, change, |_| {}).await else { return };
    // A withdrawn proposal has no verdict.
    if record.status == ChangeStatus::Cancelled || record.delivery != Delivery::NotTracked {
        return;
    }
    let (change, message) = (record.change, Decided::Recorded(record).into_result().message);
    let text = format!("About the proposed changes: {message}");
    let queued = on_thread(&host, move |host| Ok(host.gate.queue_message(&session, Some(change), &text, now())?)).await;
    if let Err(failure) = queued {
        tracing::warn!(change, reason = failure.message, "cannot queue the verdict on a proposal");
    }
}

/// Follows the proposals in the log of a resumed session whose verdicts the agent does not have. Call it on a blocking thread.
pub(crate) fn follow_proposals(host: &Arc<Host>, session: &str, log: &[LogEntry]) {
    let entries = || log.iter().filter_map(LogEntry::known);
    let calls = entries().filter_map(|entry| match entry {
        Entry::Assistant(message) => Some(message.calls()),
        _ => None,
    });
    let proposing: BTreeSet<&str> =
        calls.flatten().filter(|call| call.name == PROPOSING_TOOL).map(|call| call.id.as_str()).collect();
    let changes = entries().filter_map(|entry| match entry {
        Entry::Result(result) if proposing.contains(result.call.as_str()) => result.change,
        _ => None,
    });
    for change in changes {
        tokio::spawn(deliver_verdict(Arc::clone(host), session.to_owned(), change));
    }
}

/// Records the content of written files as read, so that the agent's next edit of them is not stale.
async fn refresh_reads(host: &SessionHost, record: &ChangeRecord) {
    let Some(applied) = record.applied.clone() else { return };
    let live = Arc::clone(&host.live);
    let refreshed = on_thread(&host.host, move |host| {
        for step in &applied.steps {
            match host.gate.read(|history| history.state(&step.after))? {
                Some(state) => match state.bytes() {
                    Some(bytes) => live.reads.record(&step.path, bytes),
                    None if state == FileState::Absent => live.reads.forget(&step.path),
                    None => {}
                },
                None => live.reads.forget(&step.path),
            }
        }
        Ok(())
    });
    if let Err(failure) = refreshed.await {
        // The next edit of these files asks the agent to read them again.
        tracing::debug!(reason = failure.message, "cannot refresh the log of reads");
    }
}

/// Records the end of a permitted change.
pub(super) async fn finish(host: &Arc<Host>, change: ChangeId, code: Option<i32>) -> Result<(), Failure> {
    on_thread(host, move |host| Ok(host.gate.finish(change, code, now()).map(drop)?)).await
}

/// Records that a permitted change could not be started.
pub(super) fn report_not_started(gate: &Gate, change: ChangeId, reason: &str) {
    if let Err(error) = gate.report_not_started(change, reason, now()) {
        tracing::warn!(change, %error, "cannot record that a permitted change was not started");
    }
}

/// Waits until a permitted change has its end in the journal.
pub(super) async fn ended_change(host: &Arc<Host>, change: ChangeId) -> Result<(), Failure> {
    let mut subscription = host.gate.subscribe(host.gate.last_event());
    loop {
        let record = on_thread(host, move |host| Ok(host.gate.read(|history| history.change(change))?)).await?;
        if record.status != ChangeStatus::Permitted {
            return Ok(());
        }
        let behind = catch_up(&mut subscription).await;
        behind.map_err(|error| Failure::new(ErrorKind::Unavailable, error.to_string()))?;
        if subscription.next().await?.is_none() {
            return Err(super::stopping());
        }
    }
}
