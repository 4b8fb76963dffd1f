//! Pause decision: modes, flags and rules of the configuration.

use std::ops::DerefMut;

use sayso_review::{PauseReason, RequestMode};
use sayso_wire::tokens::TokenCounter;
use sayso_wire::{ModelRequest, RequestPurpose};

use super::held::SaveOnResume;
use super::{Attribution, EffectiveMode};
use crate::settings::{Pause, PauseRule};

/// `true` for a request that modes apply to: a turn of an agent that works for the person. Requests of subagents, requests without tools and
/// token counts are not turns.
pub(super) fn is_turn(attribution: &Attribution, request: &ModelRequest) -> bool {
    no_turn_because(attribution.subagent.is_some(), request).is_none()
}

/// Explains why modes do not apply to a request; `None` if they do.
pub fn no_turn_because(is_subagent: bool, request: &ModelRequest) -> Option<&'static str> {
    match request.purpose() {
        None => Some("its format is unknown, and such requests are forwarded unread"),
        Some(RequestPurpose::CountTokens) => Some("it only counts tokens, and such requests are forwarded unread"),
        Some(_) if is_subagent => Some("it is a subagent's; a rule with `subagent = true` pauses those"),
        Some(_) if !request.has_tools() => Some("it offers no tools; a rule can pause such requests"),
        Some(RequestPurpose::Response | RequestPurpose::Stream) => None,
    }
}

/// `true` if a model generates the response, as opposed to a token count.
pub(super) fn is_answered(request: &ModelRequest) -> bool {
    matches!(request.purpose(), Some(RequestPurpose::Response | RequestPurpose::Stream))
}

/// Returns the first rule that matches.
pub(super) fn matching_rule<'r, C: DerefMut<Target = TokenCounter>>(
    attribution: &Attribution,
    request: &ModelRequest,
    rules: &'r [PauseRule],
    counter: impl Fn() -> C,
) -> Option<&'r PauseRule> {
    rules.iter().find(|rule| matches(rule, attribution, request, &counter))
}

/// Inputs of the pause decision.
pub(super) struct PauseContext<'a> {
    pub(super) attribution: &'a Attribution,
    pub(super) request: &'a ModelRequest,
    pub(super) effective: EffectiveMode,
    /// `true` if the session has overrides, or if they cannot be read.
    pub(super) has_overrides: bool,
    /// The first matching rule of the configuration.
    pub(super) rule: Option<&'a PauseRule>,
}

impl PauseContext<'_> {
    /// Returns the reason to hold the request; `None` if it is forwarded. A matching rule precedes the mode.
    pub(super) fn reason(&self) -> Option<PauseReason> {
        if !is_answered(self.request) {
            return None;
        }
        if let Some(rule) = self.rule {
            return match rule.pause {
                Pause::Yes => Some(PauseReason::Rule { rule: rule.name.clone() }),
                Pause::No => None,
            };
        }
        if !is_turn(self.attribution, self.request) {
            return None;
        }
        if self.effective.pause_next {
            return Some(PauseReason::NextTurn);
        }
        match self.effective.mode {
            _ if self.save_on_resume() == SaveOnResume::Yes => Some(PauseReason::Capture),
            RequestMode::InterceptAlways => Some(PauseReason::EveryTurn),
            RequestMode::AutoOverride | RequestMode::Off => None,
        }
    }

    /// Returns [`SaveOnResume::Yes`] if resuming the request saves its edits, for any reason of the hold.
    pub(super) fn save_on_resume(&self) -> SaveOnResume {
        let needs_overrides = self.effective.mode == RequestMode::AutoOverride && !self.has_overrides;
        let captures = self.effective.capture_next || needs_overrides;
        if captures && is_turn(self.attribution, self.request) { SaveOnResume::Yes } else { SaveOnResume::No }
    }
}

fn matches<C: DerefMut<Target = TokenCounter>>(
    rule: &PauseRule,
    attribution: &Attribution,
    request: &ModelRequest,
    counter: &impl Fn() -> C,
) -> bool {
    let PauseRule { agent, subagent, larger_than, tool_result_tokens, text, .. } = rule;
    agent.as_ref().is_none_or(|agent| attribution.agent.as_ref() == Some(agent))
        && subagent.is_none_or(|subagent| attribution.subagent.is_some() == subagent)
        && larger_than.is_none_or(|limit| request.original().len() > limit)
        && text.as_ref().is_none_or(|text| contains_new_text(request, text))
        // Last, because counting tokens is the slowest condition.
        && tool_result_tokens.is_none_or(|limit| {
            let mut counter = counter();
            request.new_results().into_iter().any(|result| request.tokens(&mut counter, result).count > limit)
        })
}

/// Returns `true` if the new part of a request contains a text, ignoring case.
fn contains_new_text(request: &ModelRequest, text: &str) -> bool {
    let Some(body) = request.document() else { return false };
    let wanted = text.to_lowercase();
    request.new_items().into_iter().any(|item| {
        let mut next = vec![item.target];
        while let Some(target) = next.pop() {
            if body.text(target).is_some_and(|value| value.to_lowercase().contains(&wanted)) {
                return true;
            }
            next.extend(body.children(target));
        }
        false
    })
}
