//! Calls of tools in an answer, before the agent has them.

use std::sync::Arc;
use std::time::Duration;

use sayso_gate::{Client, Decided, Gate, GateError, Reply, Submitted};
use sayso_review::{ChangeId, Command, Event, EventBody, Intent, Origin, Outcome, Performer, Tier};
use sayso_wire::stream::collect::Content;

use super::attribution::Attribution;
use super::said::arguments;
use crate::desk::Desk;
use crate::log::now;

/// How long the agent may wait for what files were to be kept: what is slower is kept by a later tier.
const CAPTURE: Duration = Duration::from_secs(2);

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Call {
    /// The call in a block of an answer, if it is one.
    pub(super) fn of(content: Content) -> Option<Self> {
        match content {
            Content::ToolCall { id, name, arguments, .. } => Some(Self { id, name, arguments }),
            _ => None,
        }
    }
}

/// Whether what holds calls is passed on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Passage {
    Open,
    /// It is not, for this reason.
    Closed(String),
}

/// Who deals with calls.
#[derive(Clone)]
pub(super) struct Calls {
    pub(super) desk: Arc<Desk>,
    pub(super) attribution: Attribution,
    pub(super) answers: Answers,
}

/// Whom an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// An agent, who carries out what is called in it.
    Agent,
    /// A person, who looks at it.
    Person,
}

impl Calls {
    /// Whether some may be held.
    pub(super) fn may_hold(&self) -> bool {
        self.answers == Answers::Agent && !self.desk.settings().hold_tools.is_empty()
    }

    /// Deals with calls one after the other.
    pub(super) async fn pass(self, calls: Vec<Call>) -> Passage {
        if self.answers == Answers::Person {
            return Passage::Open;
        }
        for call in calls {
            self.capture(&call).await;
            let held = self.desk.settings().hold_tools.iter().any(|tool| tool == "*" || *tool == call.name);
            if held && let Err(reason) = self.review(&call).await {
                return Passage::Closed(reason);
            }
        }
        Passage::Open
    }

    /// Has what files are kept, before the call changes them.
    async fn capture(&self, call: &Call) {
        let command = Command::Capture {
            tier: Tier::Answer,
            session: Some(self.attribution.resolve().session.clone()),
            call: Some(call.id.clone()).filter(|id| !id.is_empty()),
            tool: call.name.clone(),
            arguments: arguments(&call.arguments),
        };
        let gate = self.desk.gate.clone();
        let work = tokio::task::spawn_blocking(move || gate.command(Client::Person, command, now()));
        match tokio::time::timeout(CAPTURE, work).await {
            Ok(Ok(Ok(_))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(%error, tool = call.name, "what files were could not be kept"),
            Ok(Err(error)) => tracing::error!(%error, "keeping what files were failed"),
            Err(_) => tracing::warn!(tool = call.name, "keeping what files were takes long, and is not waited for"),
        }
    }

    /// Waits until a person has decided about a call. `Err` says why it is not passed on.
    async fn review(&self, call: &Call) -> Result<(), String> {
        let gate = self.desk.gate.clone();
        let after = gate.last_event();
        let whose = self.attribution.resolve();
        let origin = Origin {
            agent: whose.agent.clone(),
            session: Some(whose.session.clone()),
            turn: whose.turn.clone(),
            call: Some(call.id.clone()).filter(|id| !id.is_empty()),
        };
        let intent = Intent::CallTool { name: call.name.clone(), arguments: arguments(&call.arguments) };
        let command = Command::Submit { intent, origin, performer: Performer::Agent, deadline: None, schema: None };
        let submitting = gate.clone();
        let submitted = tokio::task::spawn_blocking(move || {
            let reply = submitting.command(Client::Person, command, now())?;
            let change = match &reply {
                Reply::Submitted(Submitted::Waiting(proposed)) => Some(proposed.change),
                _ => None,
            };
            // Made here, so that the agent may go away before anybody hears of the change.
            Ok::<_, GateError>((reply, Withdraw { gate: submitting, change }))
        })
        .await;
        let (submitted, withdrawing) = match submitted {
            Ok(Ok((Reply::Submitted(submitted), withdrawing))) => (submitted, withdrawing),
            Ok(Ok(_)) => return Err("the call could not be asked about".to_owned()),
            Ok(Err(error)) => return Err(error.to_string()),
            Err(error) => return Err(error.to_string()),
        };
        let change = match submitted {
            Submitted::Waiting(proposed) => proposed.change,
            Submitted::Impossible { told, .. } => return Err(told),
            Submitted::Decided { decided, .. } => return by_policy(decided),
        };
        let verdict = decided(&gate, after, change).await;
        withdrawing.over();
        verdict
    }
}

/// What policy has said.
fn by_policy(decided: Decided) -> Result<(), String> {
    match decided {
        Decided::Applied { .. } | Decided::Permitted { .. } => Ok(()),
        Decided::Denied { told } | Decided::Stale { told, .. } | Decided::Failed { told, .. } => Err(told),
    }
}

/// Follows the stream until a change is decided.
async fn decided(gate: &Gate, after: u64, change: ChangeId) -> Result<(), String> {
    let mut stream = gate.subscribe(after);
    let mut said = None;
    loop {
        let recorded = match stream.next().await {
            Ok(Some(recorded)) => recorded,
            Ok(None) => return Err("sayso stopped before anybody decided".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        let EventBody::Known(event) = &recorded.body else { continue };
        if event.change() != Some(change) {
            continue;
        }
        match event {
            Event::Decided { told, .. } => said = Some(told.clone()),
            Event::Permitted { .. }
            | Event::Ended { outcome: Outcome::Applied | Outcome::Ran { .. } | Outcome::Sent, .. } => return Ok(()),
            Event::Ended { told, .. } => {
                return Err(told.clone().or(said).unwrap_or_else(|| "the call was denied".to_owned()));
            }
            _ => {}
        }
    }
}

/// Withdraws what nobody waits for any more: the agent went away.
struct Withdraw {
    gate: Gate,
    change: Option<ChangeId>,
}

impl Withdraw {
    fn over(mut self) {
        self.change = None;
    }
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        if let Some(change) = self.change {
            let gate = self.gate.clone();
            drop(std::thread::spawn(move || gate.command(Client::Person, Command::Withdraw { change }, now())));
        }
    }
}
