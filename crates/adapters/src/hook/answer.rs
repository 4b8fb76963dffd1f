//! What a hook prints.

use serde_json::{Value, json};

use super::agent::Agent;
use super::parse::{HookCall, HookEvent};

/// What to say to a tool that is about to be used.
#[derive(Clone, Debug, PartialEq)]
pub enum Permission {
    /// It may go ahead, and the agent does not ask its user again.
    Allow,
    /// It may go ahead with this input in place of its own.
    AllowWith(Value),
    /// It may not.
    Deny {
        /// Why, for the model.
        reason: String,
    },
    /// The agent is to ask its own user.
    Ask,
    /// No opinion: the agent does what it would do without us.
    Abstain,
}

/// What a model hears where a denial gives no reason. Codex lets through what is denied without one.
const NO_REASON: &str = "The user denied it.";
/// What a model hears where Codex is to ask its user, which a hook cannot make it do.
const CANNOT_ASK: &str = "The user has to be asked about this, and Codex does not let a hook do that.";

impl HookCall {
    /// What to print about a tool that is about to be used, with something for the model to hear beside it.
    ///
    /// For any other event it is an object that says nothing.
    pub fn answer(&self, permission: &Permission, told: Option<&str>) -> Value {
        if !matches!(self.event, HookEvent::Before { .. }) {
            return json!({});
        }
        let mut output = json!({"hookEventName": "PreToolUse"});
        let mut decide = |decision: &str| output["permissionDecision"] = decision.into();
        match (permission, self.agent) {
            // A bare `allow` is an error to Codex.
            (Permission::Allow, Agent::Claude) | (Permission::AllowWith(_), _) => decide("allow"),
            (Permission::Deny { .. }, _) | (Permission::Ask, Agent::Codex) => decide("deny"),
            (Permission::Ask, Agent::Claude) => decide("ask"),
            (Permission::Allow, Agent::Codex) | (Permission::Abstain, _) => {}
        }
        let reason = match (permission, self.agent) {
            (Permission::Deny { reason }, _) if reason.trim().is_empty() => Some(NO_REASON),
            (Permission::Deny { reason }, _) => Some(reason.as_str()),
            (Permission::Ask, Agent::Codex) => Some(CANNOT_ASK),
            _ => None,
        };
        if let Some(reason) = reason {
            output["permissionDecisionReason"] = reason.into();
        }
        if let Permission::AllowWith(input) = permission {
            output["updatedInput"] = input.clone();
        }
        if let Some(told) = told.filter(|told| !told.trim().is_empty()) {
            output["additionalContext"] = told.into();
        }
        let says_nothing = output.as_object().is_some_and(|output| output.len() == 1);
        if says_nothing { json!({}) } else { json!({"hookSpecificOutput": output}) }
    }

    /// Whether this event can bring messages to the model by [`HookCall::tell`].
    pub fn carries_messages(&self) -> bool {
        // Asked with a word of no meaning, so that both agree.
        self.tell(&["…".to_owned()]).is_some()
    }

    /// What to print so that the model hears some messages, or nothing where this event cannot bring them to it: keep them then
    /// for one that can.
    ///
    /// An agent that is done goes on with them, but not a second time in a row.
    pub fn tell(&self, messages: &[String]) -> Option<Value> {
        let text = messages.join("\n\n");
        if text.trim().is_empty() {
            return None;
        }
        let context =
            |event: &str| Some(json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}));
        match &self.event {
            HookEvent::SessionStart { .. } => context("SessionStart"),
            HookEvent::Prompt { .. } => context("UserPromptSubmit"),
            HookEvent::After { .. } => context("PostToolUse"),
            HookEvent::Failed { .. } => context("PostToolUseFailure"),
            HookEvent::Stop(stopped) | HookEvent::SubagentStop(stopped) if !stopped.held_back => {
                Some(json!({"decision": "block", "reason": text}))
            }
            // Before a tool, what is said goes with the permission.
            HookEvent::Before { .. }
            | HookEvent::Stop(_)
            | HookEvent::SubagentStop(_)
            | HookEvent::SessionEnd
            | HookEvent::Other { .. } => None,
        }
    }
}
