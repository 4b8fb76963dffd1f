//! From a hook's call to what it prints, with an engine in between.

use std::time::Duration;

use sayso_api::client::{AgentMessage, CallOver, Client, ClientError, Consent, NewSession, Progress, Submission, View};
use sayso_review::{Answer, Cause, ChangeId, ChangeStatus, Intent, Origin, Performer, Script, Subject, WsPath};
use serde_json::{Value, json};

use super::agent::Agent;
use super::answer::Permission;
use super::call_text::{Folder, call_id, call_text};
use super::own_rules::{OwnDecision, OwnRules};
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
    /// The absolute path of sayso, for commands that `sayso call` carries out; `None` if a shell cannot be given it.
    pub program: Option<String>,
    /// The agent's own rules about commands.
    pub own_rules: OwnRules,
    /// Returns `true` for an approved command that only the agent's shell can run: one with an alias or function of the user.
    pub runs_in_place: fn(&str) -> bool,
}

/// What became of a change that a hook asked about, for whoever has to know while it waits.
pub trait Pending {
    /// A change waits for a verdict.
    fn waits(&mut self, change: ChangeId);
}

/// The answer to a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct HookResponse {
    /// The object to print.
    pub output: Value,
    /// The numbers of the messages that it carries, for [`HookCall::acknowledge`].
    pub messages: Vec<u64>,
}

impl From<Value> for HookResponse {
    fn from(output: Value) -> Self {
        Self { output, messages: Vec::new() }
    }
}

impl HookCall {
    /// Records that the agent has received the messages of a response: call it after the output was printed.
    ///
    /// # Errors
    ///
    /// If the engine cannot be told: the agent then hears of them once more.
    pub async fn acknowledge(&self, client: &Client, response: &HookResponse) -> Result<(), ClientError> {
        if response.messages.is_empty() {
            return Ok(());
        }
        client.acknowledge_messages(&self.own_session(), response.messages.clone()).await
    }

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
    ) -> Result<HookResponse, ClientError> {
        match &self.event {
            HookEvent::Before { .. } => self.before(client, context, pending).await,
            HookEvent::After { call, .. } | HookEvent::Failed { call, .. } => {
                let messages = match call {
                    Some(call) => self.finish(client, call).await?,
                    None => Vec::new(),
                };
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
                Ok(json!({}).into())
            }
            HookEvent::SubagentStop(_) => self.subagent_stops(client).await,
            HookEvent::Other { .. } => Ok(json!({}).into()),
        }
    }

    /// Has the engine compare the files with what was approved, and says what the agent's tool does not say by itself.
    async fn finish(&self, client: &Client, call: &str) -> Result<Vec<String>, ClientError> {
        let failed = if let HookEvent::Failed { error, .. } = &self.event { Some(error.as_str()) } else { None };
        let order = self.command().and_then(call_id);
        let in_place = order.is_none() && self.command().is_some();
        let session = self.own_session();
        let finished = client.finish_call(CallOver { session: &session, call, failed, order, in_place }).await?;
        let named = |paths: &[WsPath]| paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
        let mut messages = Vec::new();
        if !finished.differs.is_empty() {
            messages.push(format!(
                "{} is not what was approved. It was recorded, and the user can take it back.",
                named(&finished.differs)
            ));
        }
        let made: Vec<WsPath> = finished.record.steps.iter().map(|step| step.path.clone()).collect();
        match failed {
            None if !finished.unchanged.is_empty() => messages.push(format!(
                "{} was not changed: the file is as it was before the call.",
                named(&finished.unchanged)
            )),
            Some(_) if self.changes_files() && !made.is_empty() => {
                messages.push(format!("Although the tool failed, {} was changed as approved.", named(&made)));
            }
            _ => {}
        }
        Ok(messages)
    }

    /// Whether the tool of the call writes files by itself, and does nothing else.
    fn changes_files(&self) -> bool {
        const TOOLS: [&str; 5] = ["Write", "Edit", "MultiEdit", "NotebookEdit", "apply_patch"];
        match &self.event {
            HookEvent::Before { tool, .. } | HookEvent::After { tool, .. } | HookEvent::Failed { tool, .. } => {
                TOOLS.contains(&tool.as_str())
            }
            _ => false,
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
    async fn subagent_stops(&self, client: &Client) -> Result<HookResponse, ClientError> {
        // An agent that does not say which one tells nothing to end.
        let Some(subagent) = &self.subagent else { return Ok(json!({}).into()) };
        self.start_session(client).await?;
        let session = self.own_session();
        client.end_turn(&session, Some(subagent)).await?;
        let response = self.told(client, Vec::new()).await?;
        if response.output == json!({}) {
            client.end_session(&session).await?;
        }
        Ok(response)
    }

    /// Brings messages to the model, with those that wait for it, if this event can carry them.
    async fn told(&self, client: &Client, mut messages: Vec<String>) -> Result<HookResponse, ClientError> {
        let mut carried = Vec::new();
        if self.carries_messages() {
            for message in client.list_messages(&self.own_session()).await? {
                if self.is_for_this_event(&message) {
                    messages.push(self.worded(&message));
                    carried.push(message.number);
                }
            }
        }
        let output = self.tell(&messages).unwrap_or_else(|| json!({}));
        Ok(HookResponse { output, messages: carried })
    }

    /// Whether a message is delivered with this event: the answer to another call is left to the hook of that call, until a prompt or
    /// the end of the turn shows that no such hook comes any more.
    fn is_for_this_event(&self, message: &AgentMessage) -> bool {
        match &self.event {
            HookEvent::Before { call, .. } | HookEvent::After { call, .. } | HookEvent::Failed { call, .. } => {
                message.call.is_none() || message.call == *call
            }
            _ => true,
        }
    }

    /// The text of a message. Away from the call that it answers, it names the change.
    fn worded(&self, message: &AgentMessage) -> String {
        let is_at_its_call = match &self.event {
            HookEvent::Before { call, .. } | HookEvent::After { call, .. } | HookEvent::Failed { call, .. } => {
                message.call == *call
            }
            _ => false,
        };
        match (message.change, &message.call) {
            (Some(change), Some(_)) if !is_at_its_call => format!("About change {change}: {}", message.text),
            _ => message.text.clone(),
        }
    }

    async fn before(
        &self,
        client: &Client,
        context: &Context,
        pending: &mut dyn Pending,
    ) -> Result<HookResponse, ClientError> {
        let Some(intent) = self.intent() else { return Ok(json!({}).into()) };
        let HookEvent::Before { call, .. } = &self.event else { return Ok(json!({}).into()) };
        let consent = match own_decision(&intent, context) {
            Some(OwnDecision::Deny(rule)) => {
                let reason = format!("The user's own rule `{rule}` of {} denies this command.", self.agent);
                return Ok(self.answer(&Permission::Deny { reason }, None).into());
            }
            Some(OwnDecision::Ask(_)) => Consent::Person,
            None => Consent::Policy,
        };
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
        let performer = Performer::Agent;
        let submission = Submission { intent, origin, performer, deadline: None, schema: None, consent };
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
        // The decision counts, also if the messages cannot be read: they stay for the next hook.
        let waiting = client.list_messages(&self.own_session()).await.unwrap_or_default();
        let own = |message: &&AgentMessage| message.change == Some(progress.record.change);
        let carried: Vec<&AgentMessage> = match (&permission, self.agent) {
            // The reason of a denial is the message about this change.
            (Permission::Deny { .. }, _) => waiting.iter().filter(own).collect(),
            // Claude Code forgets the context of this event when a session is resumed, and keeps that of the event after the tool.
            (_, Agent::Claude) => Vec::new(),
            // Codex keeps it, and has no event after a patch that failed.
            (_, Agent::Codex) => waiting.iter().filter(|message| self.is_for_this_event(message)).collect(),
        };
        let texts: Vec<String> = match &permission {
            Permission::Deny { .. } => Vec::new(),
            _ => carried.iter().map(|message| self.worded(message)).collect(),
        };
        let output = self.answer(&permission, Some(&texts.join("\n\n")));
        Ok(HookResponse { output, messages: carried.iter().map(|message| message.number).collect() })
    }

    async fn nobody(&self, client: &Client, change: ChangeId, patience: Duration) -> Result<HookResponse, ClientError> {
        let reason = format!("Nobody decided within {} seconds, so it was not done.", patience.as_secs());
        let withdrawn = tokio::time::timeout(BRIEFLY, client.withdraw(change)).await;
        match withdrawn {
            // Should somebody have decided in that moment, it is not what the agent hears; what was let go ahead ends with the turn.
            // Where the engine is gone, the hook's note has it withdrawn when there is one again.
            Ok(_) | Err(_) => Ok(self.answer(&Permission::Deny { reason }, None).into()),
        }
    }

    /// Has an approved command run: through `sayso call`, or in the agent's own shell where only that can run it.
    async fn run_command(
        &self,
        client: &Client,
        change: ChangeId,
        command: &str,
        asked: &str,
        context: &Context,
    ) -> Result<Permission, ClientError> {
        let in_place = || {
            if command == asked {
                Some(Permission::Allow)
            } else {
                self.with_command(command).map(Permission::AllowWith)
            }
        };
        let permission = match &context.program {
            Some(program) if self.with_command(command).is_some() => {
                let order = client.prepare_call(change).await?;
                if order.by_person && (context.runs_in_place)(command) {
                    in_place()
                } else {
                    let folder = Folder::of(self.agent, changes_directory(command));
                    self.with_command(&call_text(program, &order.id, command, folder)).map(Permission::AllowWith)
                }
            }
            _ => in_place(),
        };
        let impossible = || Permission::Deny { reason: "What was approved instead cannot be run.".to_owned() };
        Ok(permission.unwrap_or_else(impossible))
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
                        let _ = client.not_started(record.change, &error.to_string()).await;
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
                    let reason =
                        "Something else was approved than this, in a file that you may not read, so nothing was done.";
                    let _ = client.not_started(record.change, reason).await;
                    Permission::Deny { reason: reason.to_owned() }
                }
            }
            ChangeStatus::Permitted if !record.subject.is_files() => match (record.approved(), &record.subject) {
                (Subject::Command { command, .. }, Subject::Command { command: asked, .. }) => {
                    self.run_command(client, record.change, &command, asked, context).await?
                }
                // A write outside the workspace is shown in our own words, which are no input of the tool.
                (Subject::Tool { arguments, .. }, Subject::Tool { arguments: asked, .. })
                    if arguments != *asked && self.file_call().is_some() =>
                {
                    let reason = "What was approved instead cannot be written outside the workspace.";
                    let _ = client.not_started(record.change, reason).await;
                    Permission::Deny { reason: reason.to_owned() }
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

/// The agent's own word on a command. Its rules are about the original, and it would match them with the text of `sayso call`.
fn own_decision(intent: &Intent, context: &Context) -> Option<OwnDecision> {
    match intent {
        Intent::RunCommand { command, .. } => context.own_rules.decide(command),
        _ => None,
    }
}

/// Whether a script may end in another directory than it began.
fn changes_directory(command: &str) -> bool {
    Script::parse(command)
        .commands
        .iter()
        .any(|command| command.shell == 0 && matches!(command.program(), Some("cd" | "pushd" | "popd")))
}
