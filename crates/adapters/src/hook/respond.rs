//! Response to each hook event, using an engine.

use std::time::Duration;

use sayso_api::client::{AgentMessage, CallOver, Client, ClientError, NewSession};
use sayso_review::{ChangeId, WsPath};
use serde_json::{Value, json};

use super::call_text::call_id;
use super::own_rules::OwnRules;
use super::parse::{HookCall, HookEvent};

/// Input of a hook's decision besides the event.
#[derive(Clone, Debug)]
pub struct HookContext {
    /// Root of the workspace.
    pub root: String,
    /// Maximum time to wait for a verdict. Must be shorter than the agent's own timeout for the hook.
    pub timeout: Duration,
    /// Id for a turn that starts now, for agents that provide none.
    pub turn: String,
    /// Absolute path of sayso, to run commands through `sayso call`. `None` if it cannot be written in a shell command.
    pub program: Option<String>,
    /// Rules of the agent's own configuration about commands.
    pub own_rules: OwnRules,
    /// Returns `true` for an approved command that only the agent's shell can run: one with an alias or function of the user.
    pub runs_in_place: fn(&str) -> bool,
}

/// Observer of the changes that a hook waits for.
pub trait PendingObserver {
    /// Called before the hook waits for the verdict on a change.
    fn on_pending(&mut self, change: ChangeId);
}

/// Output of a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct HookResponse {
    /// The object to print.
    pub output: Value,
    /// Numbers of the agent messages in the output, for [`HookCall::acknowledge`].
    pub messages: Vec<u64>,
}

impl From<Value> for HookResponse {
    fn from(output: Value) -> Self {
        Self { output, messages: Vec::new() }
    }
}

impl HookCall {
    /// Marks the messages of a response as delivered. Call it after printing the output.
    ///
    /// # Errors
    ///
    /// If the engine cannot be reached. The next hook then delivers the messages again.
    pub async fn acknowledge(&self, client: &Client, response: &HookResponse) -> Result<(), ClientError> {
        if response.messages.is_empty() {
            return Ok(());
        }
        client.acknowledge_messages(&self.session_id(), response.messages.clone()).await
    }

    /// Handles the event and returns the output.
    ///
    /// # Errors
    ///
    /// If the engine cannot be reached. The caller then denies a pending tool call.
    pub async fn respond(
        &self,
        client: &Client,
        context: &HookContext,
        pending: &mut dyn PendingObserver,
    ) -> Result<HookResponse, ClientError> {
        match &self.event {
            HookEvent::PreToolUse { .. } => self.decide_tool_call(client, context, pending).await,
            HookEvent::PostToolUse { call, .. } | HookEvent::PostToolUseFailure { call, .. } => {
                let messages = match call {
                    Some(call) => self.finish_call(client, call).await?,
                    None => Vec::new(),
                };
                self.deliver_messages(client, messages).await
            }
            HookEvent::SessionStart { .. } => {
                self.start_session(client).await?;
                self.deliver_messages(client, Vec::new()).await
            }
            HookEvent::UserPromptSubmit { .. } => {
                client.end_turn(&self.session, None).await?;
                let turn = self.turn.as_ref().unwrap_or(&context.turn);
                client.start_turn(&self.session, turn).await?;
                self.deliver_messages(client, Vec::new()).await
            }
            HookEvent::Stop(_) => {
                client.end_turn(&self.session, None).await?;
                self.deliver_messages(client, Vec::new()).await
            }
            HookEvent::SessionEnd => {
                match client.end_session(&self.session).await {
                    // The engine has never seen this session.
                    Ok(()) | Err(ClientError::Remote(_)) => {}
                    Err(error) => return Err(error),
                }
                Ok(json!({}).into())
            }
            HookEvent::SubagentStop(_) => self.stop_subagent(client).await,
            HookEvent::Other { .. } => Ok(json!({}).into()),
        }
    }

    /// Reports the end of a call, so that the engine compares the files with the approved bytes. Returns messages for the agent
    /// about differences that its tool does not report.
    async fn finish_call(&self, client: &Client, call: &str) -> Result<Vec<String>, ClientError> {
        let tool_error =
            if let HookEvent::PostToolUseFailure { error, .. } = &self.event { Some(error.as_str()) } else { None };
        let order = self.command().and_then(call_id);
        let in_place = order.is_none() && self.command().is_some();
        let session = self.session_id();
        let finished = client.finish_call(CallOver { session: &session, call, tool_error, order, in_place }).await?;
        let quoted = |paths: &[WsPath]| paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
        let mut messages = Vec::new();
        if !finished.differing_files.is_empty() {
            messages.push(format!(
                "{} is not what was approved. The difference was recorded, and the user can undo it.",
                quoted(&finished.differing_files)
            ));
        }
        let changed: Vec<WsPath> = finished.record.steps.iter().map(|step| step.path.clone()).collect();
        match tool_error {
            None if !finished.unchanged.is_empty() => messages.push(format!(
                "{} was not changed: the file is as it was before the call.",
                quoted(&finished.unchanged)
            )),
            Some(_) if self.is_file_tool() && !changed.is_empty() => {
                messages.push(format!("Although the tool failed, {} was changed as approved.", quoted(&changed)));
            }
            _ => {}
        }
        Ok(messages)
    }

    /// `true` for a tool that only writes files.
    fn is_file_tool(&self) -> bool {
        const FILE_TOOLS: [&str; 5] = ["Write", "Edit", "MultiEdit", "NotebookEdit", "apply_patch"];
        match &self.event {
            HookEvent::PreToolUse { tool, .. }
            | HookEvent::PostToolUse { tool, .. }
            | HookEvent::PostToolUseFailure { tool, .. } => FILE_TOOLS.contains(&tool.as_str()),
            _ => false,
        }
    }

    /// Returns the engine's session id. A subagent has its own session, a child of its agent's session.
    pub(super) fn session_id(&self) -> String {
        match &self.subagent {
            Some(subagent) => format!("{}/{subagent}", self.session),
            None => self.session.clone(),
        }
    }

    pub(super) async fn start_session(&self, client: &Client) -> Result<(), ClientError> {
        let (agent, location) = (Some(self.agent.name().to_owned()), Some(self.cwd.clone()));
        let parent = self.subagent.as_ref().map(|_| self.session.clone());
        client.start_session(NewSession { session: self.session_id(), agent, location, parent }).await
    }

    /// Starts the review of a subagent's turn. Ends its session, unless messages make it continue.
    async fn stop_subagent(&self, client: &Client) -> Result<HookResponse, ClientError> {
        // Without an id there is no session to end.
        let Some(subagent) = &self.subagent else { return Ok(json!({}).into()) };
        self.start_session(client).await?;
        let session = self.session_id();
        client.end_turn(&session, Some(subagent)).await?;
        let response = self.deliver_messages(client, Vec::new()).await?;
        if response.output == json!({}) {
            client.end_session(&session).await?;
        }
        Ok(response)
    }

    /// Returns output with these and the queued messages, if this event can carry messages.
    async fn deliver_messages(&self, client: &Client, mut messages: Vec<String>) -> Result<HookResponse, ClientError> {
        let mut carried = Vec::new();
        if self.carries_messages() {
            for message in client.list_messages(&self.session_id()).await? {
                if self.is_for_this_event(&message) {
                    messages.push(self.message_text(&message));
                    carried.push(message.number);
                }
            }
        }
        let output = self.message_output(&messages).unwrap_or_else(|| json!({}));
        Ok(HookResponse { output, messages: carried })
    }

    /// `true` if this event delivers the message. A message about another tool call is left to that call's hook. A prompt or the
    /// end of the turn delivers it in any case, because that hook has not run and will not run any more.
    pub(super) fn is_for_this_event(&self, message: &AgentMessage) -> bool {
        match &self.event {
            HookEvent::PreToolUse { call, .. }
            | HookEvent::PostToolUse { call, .. }
            | HookEvent::PostToolUseFailure { call, .. } => message.call.is_none() || message.call == *call,
            _ => true,
        }
    }

    /// Returns the text of a message. Outside the tool call that it is about, the text names the change.
    pub(super) fn message_text(&self, message: &AgentMessage) -> String {
        let is_same_call = match &self.event {
            HookEvent::PreToolUse { call, .. }
            | HookEvent::PostToolUse { call, .. }
            | HookEvent::PostToolUseFailure { call, .. } => message.call == *call,
            _ => false,
        };
        match (message.change, &message.call) {
            (Some(change), Some(_)) if !is_same_call => format!("About change {change}: {}", message.text),
            _ => message.text.clone(),
        }
    }
}
