//! Output of a hook, in the format of each agent.

use serde_json::{Value, json};

use super::parse::{HookCall, HookEvent};
use crate::Agent;

/// Decision about a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Permission {
    /// Runs the call. The agent does not ask its user.
    Allow,
    /// Runs the call with this input instead of its own.
    AllowWith(Value),
    /// Blocks the call and shows the reason to the model.
    Deny { reason: String },
    /// Makes the agent ask its own user.
    Ask,
    /// Leaves the decision to the agent's own settings.
    Abstain,
}

/// Used if a denial has no reason of its own: Codex lets a call through that is denied without one.
const DEFAULT_REASON: &str = "The user denied it.";
/// Reason of a denial in place of [`Permission::Ask`], which Codex does not support.
const CANNOT_ASK: &str = "The user must be asked about this, and Codex does not let a hook do that.";

impl HookCall {
    /// Returns the output for a `PreToolUse` event, with an optional message to the model. Returns an empty object for other
    /// events.
    pub fn permission_output(&self, permission: &Permission, message: Option<&str>) -> Value {
        if !matches!(self.event, HookEvent::PreToolUse { .. }) {
            return json!({});
        }
        let mut output = json!({"hookEventName": "PreToolUse"});
        let mut decide = |decision: &str| output["permissionDecision"] = decision.into();
        match (permission, self.agent) {
            // Codex rejects `allow` without `updatedInput`.
            (Permission::Allow, Agent::Claude) | (Permission::AllowWith(_), _) => decide("allow"),
            (Permission::Ask, Agent::Claude) => decide("ask"),
            (Permission::Deny { .. } | Permission::Ask, _) => decide("deny"),
            (Permission::Allow | Permission::Abstain, _) => {}
        }
        let reason = match (permission, self.agent) {
            (Permission::Deny { reason }, _) if reason.trim().is_empty() => Some(DEFAULT_REASON),
            (Permission::Deny { reason }, _) => Some(reason.as_str()),
            (Permission::Ask, Agent::Claude) => None,
            (Permission::Ask, _) => Some(CANNOT_ASK),
            _ => None,
        };
        if let Some(reason) = reason {
            output["permissionDecisionReason"] = reason.into();
        }
        if let Permission::AllowWith(input) = permission {
            output["updatedInput"] = input.clone();
        }
        if let Some(message) = message.filter(|message| !message.trim().is_empty()) {
            output["additionalContext"] = message.into();
        }
        let is_empty = output.as_object().is_some_and(|output| output.len() == 1);
        if is_empty { json!({}) } else { json!({"hookSpecificOutput": output}) }
    }

    /// `true` if the output of this event can carry messages to the model: [`Self::message_output`] then returns `Some`.
    pub fn carries_messages(&self) -> bool {
        self.message_output(&["…".to_owned()]).is_some()
    }

    /// Returns the output that delivers messages to the model. Returns `None` without messages, and for an event whose output
    /// cannot carry any; keep them for a later event.
    ///
    /// For `Stop`, the output makes the agent continue. With `stop_hook_active` it would continue forever, so that event
    /// carries no messages.
    pub fn message_output(&self, messages: &[String]) -> Option<Value> {
        let text = messages.join("\n\n");
        if text.trim().is_empty() {
            return None;
        }
        let context =
            |event: &str| Some(json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}));
        match &self.event {
            HookEvent::SessionStart { .. } => context("SessionStart"),
            HookEvent::UserPromptSubmit { .. } => context("UserPromptSubmit"),
            HookEvent::PostToolUse { .. } => context("PostToolUse"),
            HookEvent::PostToolUseFailure { .. } => context("PostToolUseFailure"),
            HookEvent::Stop(stopped) | HookEvent::SubagentStop(stopped) if !stopped.stop_hook_active => {
                Some(json!({"decision": "block", "reason": text}))
            }
            // `permission_output` takes the message of a `PreToolUse` event.
            HookEvent::PreToolUse { .. }
            | HookEvent::Stop(_)
            | HookEvent::SubagentStop(_)
            | HookEvent::SessionEnd
            | HookEvent::Other { .. } => None,
        }
    }
}
