//! Steps 3 and 4 of an admission: prior decisions about the same request, and held requests that it supersedes.

use sayso_review::{RequestEnd, RequestId, RequestStep};

use super::assess::IncomingRequest;
use super::edits::RequestEdits;
use super::held::SaveOnResume;
use super::pause;
use super::recent_decisions::{DecisionKey, HandoverState, PriorDecision};
use super::{HeldRequest, Interceptor, State};
use crate::recorder::Flush;

/// Result of step 3.
pub(super) enum PriorMatch {
    /// No decision about an equal request is remembered.
    New,
    /// A person canceled it. The retry is rejected without asking again.
    Canceled,
    /// A person resumed it, with these edits, and there was no response.
    Approved(RequestEdits),
    /// It was held when its client disconnected or its engine ended.
    Inherited(InheritedEdits),
}

/// The edits that a request continues with.
#[derive(Debug)]
pub(super) struct InheritedEdits {
    pub(super) earlier: RequestId,
    pub(super) edits: RequestEdits,
    pub(super) save_on_resume: SaveOnResume,
}

impl Interceptor {
    /// Looks up the decision about an equal request of the same conversation. Clients retry by themselves; a person decides once.
    pub(super) fn match_prior(
        &self,
        state: &mut State,
        incoming: &IncomingRequest,
        handed_over: Option<RequestEdits>,
        now: i64,
    ) -> PriorMatch {
        let key = DecisionKey::new(&incoming.envelope.attribution, incoming.retry_key.clone());
        state.decisions.remove_expired(now);
        match state.decisions.take(&key, now) {
            None => PriorMatch::New,
            Some((_, PriorDecision::Canceled)) => PriorMatch::Canceled,
            Some((earlier, PriorDecision::Approved { edits })) => match edits.reapply_to(&incoming.parsed) {
                Some(edits) => PriorMatch::Approved(edits),
                // The approved edits do not fit this retry, so a person decides again.
                None => PriorMatch::Inherited(InheritedEdits { earlier, edits, save_on_resume: SaveOnResume::No }),
            },
            Some((earlier, PriorDecision::ClientGone { edits, save_on_resume })) => {
                PriorMatch::Inherited(InheritedEdits { earlier, edits, save_on_resume })
            }
            Some((earlier, PriorDecision::HandedOver { save_on_resume, state: handover, .. })) => {
                let edits = handed_over.unwrap_or_default();
                if handover == HandoverState::Held || edits.reapply_error.is_some() {
                    return PriorMatch::Inherited(InheritedEdits { earlier, edits, save_on_resume });
                }
                // Ends the earlier request, so that no third engine takes it over again.
                let end = RequestEnd::Superseded { by: incoming.envelope.request };
                self.recorder.step(earlier, RequestStep::Ended { end, edited: None }, Flush::Immediate);
                PriorMatch::Approved(edits)
            }
        }
    }

    /// Ends held requests that this one replaces, and returns the edits of an equal one.
    pub(super) fn supersede(&self, state: &mut State, incoming: &IncomingRequest) -> Option<InheritedEdits> {
        if incoming.is_turn && incoming.parsed.has_tools() {
            self.discard_other_contexts(state, incoming);
        }
        // A token count replaces no turn.
        if pause::is_answered(&incoming.parsed) { self.end_superseded(state, incoming) } else { None }
    }

    /// Ends held turns of the same session with another model, or with a history that was cleared since.
    fn discard_other_contexts(&self, state: &mut State, incoming: &IncomingRequest) {
        let attribution = &incoming.envelope.attribution;
        let has_history = incoming.parsed.has_answers();
        let is_other = |held: &HeldRequest| {
            held.has_tools
                && held.attribution.thread_key() == attribution.thread_key()
                && (held.attribution.model != attribution.model || (held.has_history && !has_history))
        };
        for id in state.held_ids(is_other) {
            if let Some(held) = state.held.remove(&id) {
                self.close(id, held, RequestEnd::SessionDisposed);
            }
        }
    }

    /// Ends held requests of the same conversation whose messages this request repeats or extends.
    fn end_superseded(&self, state: &mut State, incoming: &IncomingRequest) -> Option<InheritedEdits> {
        let (request, key) = (incoming.envelope.request, incoming.envelope.attribution.conversation_key());
        let has_tools = incoming.parsed.has_tools();
        let extends = |held: &HeldRequest| {
            held.attribution.conversation_key() == key
                && !held.message_hashes.is_empty()
                && incoming.message_hashes.starts_with(&held.message_hashes)
                // A title or a probe belongs to a turn, and does not replace it.
                && (has_tools || !held.has_tools)
        };
        let mut inherited = None;
        for id in state.held_ids(extends) {
            let Some(held) = state.held.remove(&id) else { continue };
            if held.retry_key == incoming.retry_key {
                let (edits, save_on_resume) = (held.edits.clone(), held.save_on_resume);
                inherited = Some(InheritedEdits { earlier: id, edits, save_on_resume });
            }
            self.close(id, held, RequestEnd::Superseded { by: request });
        }
        inherited
    }
}

impl State {
    /// Numbers of the held requests that match, oldest first.
    pub(super) fn held_ids(&self, matches: impl Fn(&HeldRequest) -> bool) -> Vec<RequestId> {
        self.held.iter().filter(|(_, held)| matches(held)).map(|(id, _)| *id).collect()
    }
}
