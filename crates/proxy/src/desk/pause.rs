//! Whether a request waits for a person.

use std::ops::DerefMut;

use sayso_review::{PauseReason, RequestMode};
use sayso_wire::tokens::TokenCounter;
use sayso_wire::{ModelRequest, Purpose};

use super::Captures;
use super::mode::Effective;
use super::whose::Whose;
use crate::settings::{Pause, PauseRule};

/// Whether there are saved edits for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saved {
    /// There are some.
    Some,
    /// There are none.
    None,
}

/// Whether it is one that pauses where nobody says otherwise: a turn of an agent that works for the person. Subagents, requests
/// without tools and questions for a number of tokens are none.
pub(crate) fn is_turn(whose: &Whose, request: &ModelRequest) -> bool {
    no_turn_because(whose.subagent.is_some(), request).is_none()
}

/// Why a request is none that pauses where nobody says otherwise, for a person.
pub fn no_turn_because(subagent: bool, request: &ModelRequest) -> Option<&'static str> {
    match request.purpose() {
        None => Some("it is not understood, and such requests are sent as they come"),
        Some(Purpose::CountTokens) => {
            Some("it asks for a number of tokens only, and such requests are sent as they come")
        }
        Some(_) if subagent => Some("it is a subagent's; a rule with `subagent = true` has those wait"),
        Some(_) if !request.has_tools() => Some("it offers no tools; a rule has such requests wait"),
        Some(Purpose::Answer | Purpose::Stream) => None,
    }
}

/// Whether a model is to answer it.
pub(crate) fn is_answered(request: &ModelRequest) -> bool {
    matches!(request.purpose(), Some(Purpose::Answer | Purpose::Stream))
}

/// The first of the user's rules that fits.
pub(crate) fn rule<'r, C: DerefMut<Target = TokenCounter>>(
    whose: &Whose,
    request: &ModelRequest,
    rules: &'r [PauseRule],
    counter: impl Fn() -> C,
) -> Option<&'r PauseRule> {
    rules.iter().find(|rule| fits(rule, whose, request, &counter))
}

/// Why a request waits, if it does.
pub(crate) fn reason(
    whose: &Whose,
    request: &ModelRequest,
    effective: Effective,
    saved: Saved,
    rule: Option<&PauseRule>,
) -> Option<PauseReason> {
    if !is_answered(request) {
        return None;
    }
    if let Some(rule) = rule {
        return match rule.pause {
            Pause::Yes => Some(PauseReason::Rule { rule: rule.name.clone() }),
            Pause::No => None,
        };
    }
    if !is_turn(whose, request) {
        return None;
    }
    if effective.pause_next {
        return Some(PauseReason::NextTurn);
    }
    match effective.mode {
        _ if captures(whose, request, effective, saved) == Captures::Yes => Some(PauseReason::Capture),
        RequestMode::InterceptAlways => Some(PauseReason::EveryTurn),
        RequestMode::AutoOverride | RequestMode::Off => None,
    }
}

/// Whether the edits of a request are saved once it is resumed, whatever it waits for.
pub(crate) fn captures(whose: &Whose, request: &ModelRequest, effective: Effective, saved: Saved) -> Captures {
    let wanted = effective.capture_next || (effective.mode == RequestMode::AutoOverride && saved == Saved::None);
    if wanted && is_turn(whose, request) { Captures::Yes } else { Captures::No }
}

fn fits<C: DerefMut<Target = TokenCounter>>(
    rule: &PauseRule,
    whose: &Whose,
    request: &ModelRequest,
    counter: &impl Fn() -> C,
) -> bool {
    let PauseRule { agent, subagent, larger_than, tool_result_tokens, text, .. } = rule;
    agent.as_ref().is_none_or(|agent| whose.agent.as_ref() == Some(agent))
        && subagent.is_none_or(|subagent| whose.subagent.is_some() == subagent)
        && larger_than.is_none_or(|most| request.original().len() > most)
        && text.as_ref().is_none_or(|text| says(request, text))
        // Last, as it takes the longest.
        && tool_result_tokens.is_none_or(|most| {
            let mut counter = counter();
            request.new_results().into_iter().any(|result| request.tokens(&mut counter, result).count > most)
        })
}

/// Whether what is new in a request holds a text, in whatever case.
fn says(request: &ModelRequest, text: &str) -> bool {
    let Some(body) = request.document() else { return false };
    let wanted = text.to_lowercase();
    request.news().into_iter().any(|item| {
        let mut next = vec![item.target];
        while let Some(target) = next.pop() {
            if body.text(target).is_some_and(|said| said.to_lowercase().contains(&wanted)) {
                return true;
            }
            next.extend(body.children(target));
        }
        false
    })
}
