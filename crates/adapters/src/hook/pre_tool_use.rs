//! Decision about a tool call that has not started: submits its intent and waits for the verdict.

use std::time::Duration;

use sayso_api::client::{
    AgentMessage, AskMode, ChangeDetails, Client, ClientError, PreviewDetail, PreviewOf, Submission,
};
use sayso_review::{Answer, Cause, ChangeId, ChangeStatus, Intent, Origin, Performer, Script, Subject};
use serde_json::json;

use super::call_text::{WorkingDirectory, call_text};
use super::output::Permission;
use super::own_rules::OwnDecision;
use super::parse::{HookCall, HookEvent};
use super::respond::{HookContext, HookResponse, PendingObserver};
use super::rewrite::{Rewrite, rewrite};
use crate::Agent;

/// Time to wait for the engine to confirm a withdrawal.
const WITHDRAW_TIMEOUT: Duration = Duration::from_secs(2);

impl HookCall {
    pub(super) async fn decide_tool_call(
        &self,
        client: &Client,
        context: &HookContext,
        pending: &mut dyn PendingObserver,
    ) -> Result<HookResponse, ClientError> {
        let Some(intent) = self.intent() else { return Ok(json!({}).into()) };
        let HookEvent::PreToolUse { call, .. } = &self.event else { return Ok(json!({}).into()) };
        let ask_mode = match own_decision(&intent, context) {
            Some(OwnDecision::Deny(rule)) => {
                let reason = format!("The user's own rule `{rule}` of {} denies this command.", self.agent);
                return Ok(self.permission_output(&Permission::Deny { reason }, None).into());
            }
            Some(OwnDecision::Ask(_)) => AskMode::Always,
            None => AskMode::ByPolicy,
        };
        if self.subagent.is_some() {
            // No hook reports the start of a subagent.
            self.start_session(client).await?;
        }
        let origin = Origin {
            agent: Some(self.agent.name().to_owned()),
            session: Some(self.session_id()),
            // A subagent gets one prompt, so its id identifies its only turn.
            turn: self.subagent.as_ref().or(self.turn.as_ref()).cloned(),
            call: call.clone(),
        };
        let performer = Performer::Agent;
        let submission = Submission { intent, origin, performer, deadline: None, schema: None, ask_mode };
        let until = tokio::time::Instant::now() + context.timeout;
        let mut details = client.submit(submission, PreviewDetail::Omitted).await?;
        loop {
            let change = details.record.change;
            details = match (&details.record.status, details.merged_change) {
                (ChangeStatus::Pending, _) => {
                    pending.on_pending(change);
                    let outcome = client.await_outcome(change, PreviewDetail::Omitted);
                    match tokio::time::timeout_at(until, outcome).await {
                        Ok(details) => details?,
                        Err(_) => return self.deny_on_timeout(client, change, context.timeout).await,
                    }
                }
                // The approved change merged with later edits of its files is a new pending change.
                (ChangeStatus::Stale, Some(merged)) => {
                    client.get_change(merged, PreviewDetail::Omitted, PreviewOf::Proposed).await?
                }
                _ => break,
            };
        }
        let permission = self.permission(client, &details, context).await?;
        self.permission_with_messages(client, &permission, details.record.change).await
    }

    /// Returns the output for a permission together with messages for the agent.
    async fn permission_with_messages(
        &self,
        client: &Client,
        permission: &Permission,
        change: ChangeId,
    ) -> Result<HookResponse, ClientError> {
        // If the messages cannot be read, the permission still counts. They remain queued for the next hook.
        let queued = client.list_messages(&self.session_id()).await.unwrap_or_default();
        let carried: Vec<&AgentMessage> = match (permission, self.agent) {
            // The reason of a denial is the message about this change.
            (Permission::Deny { .. }, _) => queued.iter().filter(|message| message.change == Some(change)).collect(),
            // Claude Code drops the context of `PreToolUse` when it resumes a session, and keeps that of `PostToolUse`.
            (_, Agent::Claude) => Vec::new(),
            // Codex keeps the context, and fires no event after a patch that failed.
            (_, _) => queued.iter().filter(|message| self.is_for_this_event(message)).collect(),
        };
        let texts: Vec<String> = match permission {
            Permission::Deny { .. } => Vec::new(),
            _ => carried.iter().map(|message| self.message_text(message)).collect(),
        };
        let output = self.permission_output(permission, Some(&texts.join("\n\n")));
        Ok(HookResponse { output, messages: carried.iter().map(|message| message.number).collect() })
    }

    /// Withdraws a change that is still pending at the timeout, and denies the call.
    async fn deny_on_timeout(
        &self,
        client: &Client,
        change: ChangeId,
        timeout: Duration,
    ) -> Result<HookResponse, ClientError> {
        let reason = format!("There was no decision within {} seconds, so it was not done.", timeout.as_secs());
        // If the change was decided in this moment, the agent still gets a denial, and a permitted call ends with the turn. If
        // the engine is unreachable, the next engine withdraws the change that this hook has registered.
        let _ = tokio::time::timeout(WITHDRAW_TIMEOUT, client.withdraw(change)).await;
        Ok(self.permission_output(&Permission::Deny { reason }, None).into())
    }

    /// Translates the outcome of a change.
    async fn permission(
        &self,
        client: &Client,
        details: &ChangeDetails,
        context: &HookContext,
    ) -> Result<Permission, ClientError> {
        let record = &details.record;
        let message = || record.agent_message.clone().filter(|message| !message.trim().is_empty());
        Ok(match &record.status {
            // `Applied` if another client has reported the end of the call meanwhile. The plan is still all that is permitted.
            ChangeStatus::Permitted | ChangeStatus::Applied
                if record.subject == Subject::Files && !details.plan.is_empty() =>
            {
                self.file_permission(client, details, context).await
            }
            // The plan is omitted if the agent may not read the file. Only an approval of the whole change can be carried out
            // without it.
            ChangeStatus::Permitted if record.subject == Subject::Files => {
                let whole = record.verdict.as_ref().is_none_or(|verdict| verdict.answer == Answer::Approve);
                if whole && !record.partial && record.cause == Cause::Proposal {
                    Permission::Allow
                } else {
                    let reason =
                        "A different change was approved, to a file that you may not read, so nothing was done.";
                    deny_unstarted(client, record.change, reason).await
                }
            }
            ChangeStatus::Permitted if !record.subject.is_files() => match (record.approved(), &record.subject) {
                (Subject::Command { command, .. }, Subject::Command { command: requested, .. }) => {
                    self.command_permission(client, record.change, &command, requested, context).await?
                }
                // The arguments of a file change outside the workspace are sayso's own and no input of the tool.
                (Subject::Tool { arguments, .. }, Subject::Tool { arguments: requested, .. })
                    if arguments != *requested && self.file_call().is_some() =>
                {
                    let reason = "The approved replacement cannot be written outside the workspace.";
                    deny_unstarted(client, record.change, reason).await
                }
                (Subject::Tool { arguments, .. }, Subject::Tool { arguments: requested, .. })
                    if arguments != *requested =>
                {
                    Permission::AllowWith(arguments)
                }
                _ => Permission::Allow,
            },
            // A change without effect has no plan.
            ChangeStatus::Applied if record.files.iter().all(|file| file.before == file.after) => Permission::Allow,
            ChangeStatus::Denied => Permission::Deny { reason: message().unwrap_or_default() },
            ChangeStatus::Failed { reason } => Permission::Deny { reason: message().unwrap_or_else(|| reason.clone()) },
            status => Permission::Deny { reason: message().unwrap_or_else(|| format!("The change is {status}.")) },
        })
    }

    /// Rewrites the input of a tool that changes files to make exactly the approved content.
    async fn file_permission(&self, client: &Client, details: &ChangeDetails, context: &HookContext) -> Permission {
        match rewrite(self, &details.plan, &context.root) {
            Ok(Rewrite::AsIs) => Permission::Allow,
            Ok(Rewrite::Input(input)) => Permission::AllowWith(input),
            Err(error) => {
                // The change fails with the error alone; the agent also gets the hint.
                let _ = client.not_started(details.record.change, &error.to_string()).await;
                Permission::Deny { reason: format!("{error}; {}", error.hint()) }
            }
        }
    }

    /// Permits an approved command: through `sayso call`, or unchanged if only the agent's own shell can run it.
    async fn command_permission(
        &self,
        client: &Client,
        change: ChangeId,
        command: &str,
        requested: &str,
        context: &HookContext,
    ) -> Result<Permission, ClientError> {
        let in_place = || {
            if command == requested {
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
                    let directory = WorkingDirectory::after(self.agent, changes_directory(command));
                    self.with_command(&call_text(program, &order.id, command, directory)).map(Permission::AllowWith)
                }
            }
            _ => in_place(),
        };
        let impossible = || Permission::Deny { reason: "The approved replacement command cannot be run.".to_owned() };
        Ok(permission.unwrap_or_else(impossible))
    }
}

/// Denies an approved call that cannot be carried out. If the engine does not get the report, the change ends with the turn.
async fn deny_unstarted(client: &Client, change: ChangeId, reason: &str) -> Permission {
    let _ = client.not_started(change, reason).await;
    Permission::Deny { reason: reason.to_owned() }
}

/// Applies the agent's own rules to the original command: the agent would match them with the text of `sayso call`.
fn own_decision(intent: &Intent, context: &HookContext) -> Option<OwnDecision> {
    match intent {
        Intent::RunCommand { command, .. } => context.own_rules.decide(command),
        _ => None,
    }
}

/// `true` if a script may end in another directory than it started in.
fn changes_directory(command: &str) -> bool {
    Script::parse(command)
        .commands
        .iter()
        .any(|command| command.shell == 0 && matches!(command.program(), Some("cd" | "pushd" | "popd")))
}
