//! Delegation: a nested session with fewer tools and a history of its own.

use std::pin::pin;

use futures::future::{Either, select};
use sayso_tools::Delegation;

use super::calls::CallResult;
use super::invocation::{InvocationEnd, InvocationRun};
use super::{AgentSession, ClearQueue, Invoked, SessionIdentity, UserPrompt};
use crate::event::FinishedReason;
use crate::host::{CallOrigin, CommandEnd, DelegationPermit};
use crate::settings::SettingsPatch;

/// Tools that a subagent never has: it must not delegate further, and a proposal is the business of its caller.
const WITHHELD_TOOLS: [&str; 2] = ["Delegate", "ProposeChanges"];

impl InvocationRun<'_> {
    pub(super) async fn delegate(
        &mut self,
        origin: &CallOrigin,
        delegation: Delegation,
    ) -> Result<CallResult, InvocationEnd> {
        let host = self.session.host();
        let permit = host.permit_delegation(origin, delegation);
        let permit = self.interrupt.or_interrupted(permit).await.ok_or(InvocationEnd::Interrupted)?;
        let (change, delegation) = match permit {
            DelegationPermit::Refused(result) => return Ok(result.into()),
            DelegationPermit::Permitted { change, delegation } => (change, delegation),
        };
        let refused = |text: String| {
            host.report_end(origin, change, &CommandEnd::Failed { message: text.clone() });
            Ok(CallResult { change, ..CallResult::error(text) })
        };
        let catalog = self.session.inner.catalog.clone();
        let patch = SettingsPatch { scenario: delegation.scenario.clone(), ..SettingsPatch::default() };
        let settings = match patch.apply(&self.session.settings(), &catalog) {
            Ok(settings) => settings,
            Err(error) => return refused(format!("{error}. {}.", error.hint)),
        };
        let own: Vec<String> = self.tools.iter().map(|tool| tool.name.clone()).collect();
        if let Some(missing) = delegation.tools.iter().flatten().find(|name| !own.contains(name)) {
            return refused(format!("the tool `{missing}` cannot be delegated. Use some of {}.", own.join(", ")));
        }
        let mut tools = delegation.tools.clone().unwrap_or(own);
        tools.retain(|name| !WITHHELD_TOOLS.contains(&name.as_str()));
        let number = self.session.lock_history(|history| history.call_number(&origin.call).unwrap_or_default());
        let identity = SessionIdentity {
            session: format!("{}.{number}", self.session.id()),
            parent: Some(self.session.id().to_owned()),
            fork_of: None,
            tools: Some(tools),
        };
        let nested = AgentSession::start(identity, settings, catalog, self.session.inner.host.clone())?;
        let end = self.run_nested(&nested, delegation.prompt).await;
        let (is_interrupted, command_end, result) = delegated_result(end);
        if let Some(usage) = &result.1 {
            self.totals.add_delegated(usage);
        }
        host.report_end(origin, change, &command_end);
        if is_interrupted && self.interrupt.is_triggered() {
            return Err(InvocationEnd::Interrupted);
        }
        Ok(CallResult { change, ..result.0 })
    }

    /// Runs a nested session to its end. An interrupt of this invocation interrupts it, and it records its own end.
    async fn run_nested(&self, nested: &AgentSession, prompt: String) -> Invoked {
        let run = pin!(nested.invoke(UserPrompt::text(prompt)));
        match select(pin!(self.interrupt.triggered()), run).await {
            Either::Right((end, _)) => end,
            Either::Left(((), run)) => {
                nested.interrupt(ClearQueue::Yes);
                run.await
            }
        }
    }
}

type DelegatedResult = (bool, CommandEnd, (CallResult, Option<crate::event::InvocationUsage>));

fn delegated_result(end: Invoked) -> DelegatedResult {
    let failed = |message: String| CommandEnd::Failed { message };
    match end {
        Invoked::Finished { reason: FinishedReason::Completed, text, usage } => {
            let text = if text.trim().is_empty() { "(the subagent finished without a text)".to_owned() } else { text };
            (false, CommandEnd::Exited { code: 0 }, (CallResult::text(text), Some(usage)))
        }
        Invoked::Finished { reason, text, usage } => {
            let cause = match reason {
                FinishedReason::Limit => "reached its limit",
                FinishedReason::Cancelled => "was cancelled: a person cancelled its request",
                _ => "was interrupted",
            };
            let result = CallResult::error(format!("The subagent {cause}. Its last text:\n{text}"));
            (reason == FinishedReason::Interrupted, failed(cause.to_owned()), (result, Some(usage)))
        }
        Invoked::Failed { message, usage, .. } => {
            let result = CallResult::error(format!("The subagent failed: {message}"));
            (false, failed(message), (result, Some(usage)))
        }
        Invoked::Queued => {
            let result = CallResult::error("The subagent runs already.");
            (false, failed("it runs already".to_owned()), (result, None))
        }
    }
}
