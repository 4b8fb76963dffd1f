//! From a hook's call to what it prints, with an engine in between.

use std::time::Duration;

use sayso_api::client::{Client, ClientError, Consent, NewSession, Progress, Submission, View};
use sayso_review::{Answer, Cause, ChangeId, ChangeStatus, Intent, Origin, Performer, Subject};
use serde_json::{Value, json};

use super::answer::Permission;
use super::parse::{HookCall, HookEvent};
use super::rewrite::{Rewrite, rewrite};

/// How long an engine may take to hear that nobody waits any more.
const BRIEFLY: Duration = Duration::from_secs(2);

/// What a hook needs to know besides its input.
#[derive(Clone, Debug)]
pub struct Context {
    /// The workspace's root.
    pub root: String,
    /// How long to wait for a person, all in all, which is less than the agent waits for the hook.
    pub patience: Duration,
    /// A name for a turn that begins now, for agents that have none.
    pub turn: String,
}

/// What became of a change that a hook asked about, for whoever has to know while it waits.
pub trait Pending {
    /// A change waits for a verdict.
    fn waits(&mut self, change: ChangeId);
}

impl HookCall {
    /// Does what the call is about, and says what to print.
    ///
    /// # Errors
    ///
    /// If the engine cannot be asked: the caller then denies what is about to happen.
    pub async fn respond(
        &self,
        client: &Client,
        context: &Context,
        pending: &mut dyn Pending,
    ) -> Result<Value, ClientError> {
        match &self.event {
            HookEvent::Before { .. } => self.before(client, context, pending).await,
            HookEvent::After { call, .. } | HookEvent::Failed { call, .. } => {
                let mut messages = Vec::new();
                if let Some(call) = call {
                    let finished = client.finish_call(&self.own_session(), call).await?;
                    let paths: Vec<String> = finished.differs.iter().map(|path| format!("`{path}`")).collect();
                    if !paths.is_empty() {
                        messages.push(format!(
                            "{} is not what was approved. It was recorded, and the user can take it back.",
                            paths.join(", ")
                        ));
                    }
                }
                self.told(client, messages).await
            }
            HookEvent::SessionStart { .. } => {
                self.start_session(client).await?;
                self.told(client, Vec::new()).await
            }
            HookEvent::Prompt { .. } => {
                client.end_turn(&self.session, None).await?;
                let turn = self.turn.as_ref().unwrap_or(&context.turn);
                client.start_turn(&self.session, turn).await?;
                self.told(client, Vec::new()).await
            }
            HookEvent::Stop(_) => {
                client.end_turn(&self.session, None).await?;
                self.told(client, Vec::new()).await
            }
            HookEvent::SessionEnd => {
                match client.end_session(&self.session).await {
                    // It never began here.
                    Ok(()) | Err(ClientError::Remote(_)) => {}
                    Err(error) => return Err(error),
                }
                Ok(json!({}))
            }
            HookEvent::SubagentStop(_) => self.subagent_stops(client).await,
            HookEvent::Other { .. } => Ok(json!({})),
        }
    }

    /// The session that a call is part of: a subagent has one of its own, within that of its agent.
    fn own_session(&self) -> String {
        match &self.subagent {
            Some(subagent) => format!("{}/{subagent}", self.session),
            None => self.session.clone(),
        }
    }

    async fn start_session(&self, client: &Client) -> Result<(), ClientError> {
        let (agent, location) = (Some(self.agent.name().to_owned()), Some(self.cwd.clone()));
        let parent = self.subagent.as_ref().map(|_| self.session.clone());
        client.start_session(NewSession { session: self.own_session(), agent, location, parent }).await
    }

    /// Puts up for review what a subagent did, and ends its session, unless it goes on with what it is told.
    async fn subagent_stops(&self, client: &Client) -> Result<Value, ClientError> {
        // An agent that does not say which one tells nothing to end.
        let Some(subagent) = &self.subagent else { return Ok(json!({})) };
        self.start_session(client).await?;
        let session = self.own_session();
        client.end_turn(&session, Some(subagent)).await?;
        let told = self.told(client, Vec::new()).await?;
        if told == json!({}) {
            client.end_session(&session).await?;
        }
        Ok(told)
    }

    /// Brings messages to the model, with those that wait for it, if this event can carry them.
    async fn told(&self, client: &Client, mut messages: Vec<String>) -> Result<Value, ClientError> {
        // Asked first with a word of no meaning: what is taken counts as told.
        if self.tell(&["…".to_owned()]).is_some() {
            messages.extend(client.take_messages(&self.own_session()).await?);
        }
        Ok(self.tell(&messages).unwrap_or_else(|| json!({})))
    }

    async fn before(
        &self,
        client: &Client,
        context: &Context,
        pending: &mut dyn Pending,
    ) -> Result<Value, ClientError> {
        let Some(intent) = self.intent() else { return Ok(json!({})) };
        let HookEvent::Before { call, .. } = &self.event else { return Ok(json!({})) };
        if self.subagent.is_some() {
            // Nobody says when one begins.
            self.start_session(client).await?;
        }
        let origin = Origin {
            agent: Some(self.agent.name().to_owned()),
            session: Some(self.own_session()),
            // A subagent has one prompt, and with that one turn.
            turn: self.subagent.as_ref().or(self.turn.as_ref()).cloned(),
            call: call.clone(),
        };
        let performer = if matches!(intent, Intent::ChangeFiles(_)) { Performer::Agent } else { Performer::Gate };
        let submission =
            Submission { intent, origin, performer, deadline: None, schema: None, consent: Consent::Policy };
        let until = tokio::time::Instant::now() + context.patience;
        let mut progress = client.submit(submission, View::Nothing).await?;
        loop {
            let change = progress.record.change;
            progress = match (&progress.record.status, progress.next) {
                (ChangeStatus::Pending, _) => {
                    pending.waits(change);
                    let waiting = client.await_outcome(change, View::Nothing);
                    match tokio::time::timeout_at(until, waiting).await {
                        Ok(progress) => progress?,
                        Err(_) => return self.nobody(client, change, context.patience).await,
                    }
                }
                // What was approved and what was changed meanwhile are asked about together.
                (ChangeStatus::Stale, Some(next)) => {
                    client.get_change(next, View::Nothing, sayso_api::client::Shown::Proposed).await?
                }
                _ => break,
            };
        }
        let permission = self.permission(client, &progress, context).await?;
        // What was decided counts, whether or not there is more to say: that stays for the next time.
        let messages = client.take_messages(&self.own_session()).await.unwrap_or_default();
        Ok(self.answer(&permission, Some(&messages.join("\n\n"))))
    }

    async fn nobody(&self, client: &Client, change: ChangeId, patience: Duration) -> Result<Value, ClientError> {
        let reason = format!("Nobody decided within {} seconds, so it was not done.", patience.as_secs());
        let withdrawn = tokio::time::timeout(BRIEFLY, client.withdraw(change)).await;
        match withdrawn {
            // Should somebody have decided in that moment, it is not what the agent hears; what was let go ahead ends with the turn.
            // Where the engine is gone, the hook's note has it withdrawn when there is one again.
            Ok(_) | Err(_) => Ok(self.answer(&Permission::Deny { reason }, None)),
        }
    }

    /// What was decided, as the agent understands it.
    async fn permission(
        &self,
        client: &Client,
        progress: &Progress,
        context: &Context,
    ) -> Result<Permission, ClientError> {
        let record = &progress.record;
        let told = || record.told.clone().filter(|told| !told.trim().is_empty());
        Ok(match &record.status {
            // Also if somebody said meanwhile that it is over: what was approved is still all that may happen.
            ChangeStatus::Permitted | ChangeStatus::Applied
                if record.subject == Subject::Files && !progress.plan.is_empty() =>
            {
                match rewrite(self, &progress.plan, &context.root) {
                    Ok(Rewrite::AsIs) => Permission::Allow,
                    Ok(Rewrite::Input(input)) => Permission::AllowWith(input),
                    Err(error) => {
                        // It was let go ahead, and goes nowhere. Should that not be heard, it ends with the turn.
                        let _ = client.finish(record.change, None).await;
                        Permission::Deny { reason: format!("{error}; {}", error.hint()) }
                    }
                }
            }
            // It is about a file that the agent may not read, so that it is not told what was approved. All of it is what it asked for.
            ChangeStatus::Permitted if record.subject == Subject::Files => {
                let whole = record.verdict.as_ref().is_none_or(|verdict| verdict.answer == Answer::Approve);
                if whole && !record.in_part && record.cause == Cause::Proposal {
                    Permission::Allow
                } else {
                    // It goes nowhere. Should that not be heard, it ends with the turn.
                    let _ = client.finish(record.change, None).await;
                    let reason =
                        "Something else was approved than this, in a file that you may not read, so nothing was done.";
                    Permission::Deny { reason: reason.to_owned() }
                }
            }
            ChangeStatus::Permitted if !record.subject.is_files() => match (record.approved(), &record.subject) {
                (Subject::Command { command, .. }, Subject::Command { command: asked, .. }) if command != *asked => {
                    match self.with_command(&command) {
                        Some(input) => Permission::AllowWith(input),
                        None => Permission::Deny { reason: "What was approved instead cannot be run.".to_owned() },
                    }
                }
                (Subject::Tool { arguments, .. }, Subject::Tool { arguments: asked, .. }) if arguments != *asked => {
                    Permission::AllowWith(arguments)
                }
                _ => Permission::Allow,
            },
            // It changes nothing, and was not worth a plan.
            ChangeStatus::Applied if record.files.iter().all(|file| file.before == file.after) => Permission::Allow,
            ChangeStatus::Denied => Permission::Deny { reason: told().unwrap_or_default() },
            ChangeStatus::Failed { reason } => Permission::Deny { reason: told().unwrap_or_else(|| reason.clone()) },
            status => Permission::Deny { reason: told().unwrap_or_else(|| format!("It is {status}.")) },
        })
    }
}
