//! Decisions about the last held requests, so that a client's retry is not shown to a person again.

use std::collections::VecDeque;

use sayso_review::{BodyRecord, OverrideReport, RequestId};

use super::edits::RequestEdits;
use super::held::SaveOnResume;
use super::{Attribution, ConversationKey};

/// Remembered decisions. The oldest are evicted.
pub(super) const MAX_DECISIONS: usize = 128;
/// Milliseconds for which a retry of a canceled request is rejected. Each retry extends it: clients retry within seconds, people later.
const CANCEL_TTL_MS: i64 = 30_000;
/// Limit of all extensions, in milliseconds. Some clients retry for a minute; an equal request must be possible again after that.
const CANCEL_MAX_TTL_MS: i64 = 2 * 60_000;
/// Milliseconds for which other decisions are remembered.
const DECISION_TTL_MS: i64 = 5 * 60_000;

/// A decision that applies to retries.
#[derive(Debug)]
pub(super) enum PriorDecision {
    /// A person canceled the request. Retries are rejected.
    Canceled,
    /// A person resumed the request, and it has no response yet. A retry is forwarded with the same edits.
    Approved { edits: RequestEdits },
    /// The client disconnected during the hold. A retry is held with the same edits.
    ClientGone { edits: RequestEdits, save_on_resume: SaveOnResume },
    /// Another engine admitted the request and ended before a response. Its edits are in the journal.
    HandedOver { edits: Box<RecordedEdits>, save_on_resume: SaveOnResume, state: HandoverState },
}

/// State of a request when its engine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandoverState {
    Held,
    /// A person had resumed it.
    Approved,
}

/// The edits of a request in the journal.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedEdits {
    pub(super) request: RequestId,
    /// All edits, as a JSON Patch; `None` without edits.
    pub(super) edited: Option<BodyRecord>,
    /// The overrides alone, as a JSON Patch.
    pub(super) with_overrides: Option<BodyRecord>,
    pub(super) overrides: OverrideReport,
}

impl PriorDecision {
    /// `true` if a retry is held.
    fn is_held(&self) -> bool {
        matches!(self, Self::ClientGone { .. } | Self::HandedOver { state: HandoverState::Held, .. })
    }

    fn ttl(&self) -> i64 {
        if matches!(self, Self::Canceled) { CANCEL_TTL_MS } else { DECISION_TTL_MS }
    }
}

/// Identifies retries: the conversation, and a hash of the request without its response format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecisionKey {
    conversation: ConversationKey,
    retry_key: String,
}

impl DecisionKey {
    pub(super) fn new(attribution: &Attribution, retry_key: String) -> Self {
        Self { conversation: attribution.conversation_key(), retry_key }
    }
}

#[derive(Debug)]
struct RecentDecision {
    request: RequestId,
    key: DecisionKey,
    decision: PriorDecision,
    /// Start of the current time to live, and of the first one.
    time: i64,
    first: i64,
}

/// The last decisions, oldest first.
#[derive(Debug, Default)]
pub(super) struct RecentDecisions {
    decisions: VecDeque<RecentDecision>,
}

impl RecentDecisions {
    pub(super) fn remember(&mut self, request: RequestId, key: DecisionKey, decision: PriorDecision, now: i64) {
        self.remove_expired(now);
        self.decisions.retain(|other| other.key != key);
        if self.decisions.len() == MAX_DECISIONS {
            self.decisions.pop_front();
        }
        self.decisions.push_back(RecentDecision { request, key, decision, time: now, first: now });
    }

    /// Returns the decision about a retry. A cancellation stays and is extended; any other decision is removed.
    pub(super) fn take(&mut self, key: &DecisionKey, now: i64) -> Option<(RequestId, PriorDecision)> {
        let position = self.decisions.iter().position(|other| other.key == *key)?;
        let found = &mut self.decisions[position];
        if matches!(found.decision, PriorDecision::Canceled) {
            found.time = now.min(found.first + CANCEL_MAX_TTL_MS - CANCEL_TTL_MS);
            return Some((found.request, PriorDecision::Canceled));
        }
        self.decisions.remove(position).map(|found| (found.request, found.decision))
    }

    /// The recorded edits of a request that another engine admitted.
    pub(super) fn handed_over(&self, key: &DecisionKey) -> Option<RecordedEdits> {
        match &self.decisions.iter().find(|other| other.key == *key)?.decision {
            PriorDecision::HandedOver { edits, .. } => Some(RecordedEdits::clone(edits)),
            PriorDecision::Canceled | PriorDecision::Approved { .. } | PriorDecision::ClientGone { .. } => None,
        }
    }

    /// Turns an approval into a cancellation.
    pub(super) fn cancel(&mut self, request: RequestId, now: i64) {
        for same in self.decisions.iter_mut().filter(|other| other.request == request) {
            (same.decision, same.time, same.first) = (PriorDecision::Canceled, now, now);
        }
    }

    /// Restarts the time to live of a request that still has no response.
    pub(super) fn renew(&mut self, request: RequestId, now: i64) {
        for same in self.decisions.iter_mut().filter(|other| other.request == request) {
            same.time = now;
        }
    }

    pub(super) fn remove(&mut self, request: RequestId) {
        self.decisions.retain(|other| other.request != request);
    }

    /// Removes the decisions of ended sessions. Returns the requests whose retry would have been held.
    pub(super) fn remove_sessions(&mut self, has_ended: impl Fn(&str) -> bool) -> Vec<RequestId> {
        let held = self.remove_held(&has_ended);
        self.decisions.retain(|other| !has_ended(other.key.conversation.session()));
        held
    }

    /// Approves the requests whose retry would have been held, in sessions that are sent normally.
    pub(super) fn approve_held(&mut self, is_off: impl Fn(&str) -> bool) {
        for other in self.decisions.iter_mut().filter(|other| is_off(other.key.conversation.session())) {
            match &mut other.decision {
                PriorDecision::ClientGone { edits, .. } => {
                    other.decision = PriorDecision::Approved { edits: std::mem::take(edits) };
                }
                PriorDecision::HandedOver { state, .. } => *state = HandoverState::Approved,
                PriorDecision::Canceled | PriorDecision::Approved { .. } => {}
            }
        }
    }

    /// Removes the requests whose retry would have been held, in sessions that are sent normally, and returns them.
    pub(super) fn remove_held(&mut self, is_off: impl Fn(&str) -> bool) -> Vec<RequestId> {
        let ends = |other: &RecentDecision| other.decision.is_held() && is_off(other.key.conversation.session());
        let ended = self.decisions.iter().filter(|other| ends(other)).map(|other| other.request).collect();
        self.decisions.retain(|other| !ends(other));
        ended
    }

    pub(super) fn is_empty(&self) -> bool {
        self.decisions.is_empty()
    }

    pub(super) fn remove_expired(&mut self, now: i64) {
        self.decisions.retain(|other| now - other.time < other.decision.ttl());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(retry_key: &str) -> DecisionKey {
        DecisionKey::new(&Attribution::default(), retry_key.to_owned())
    }

    fn with_decision(decision: PriorDecision) -> RecentDecisions {
        let mut decisions = RecentDecisions::default();
        decisions.remember(1, key("same"), decision, 0);
        decisions
    }

    fn take(decisions: &mut RecentDecisions, now: i64) -> Option<(RequestId, PriorDecision)> {
        decisions.remove_expired(now);
        decisions.take(&key("same"), now)
    }

    #[test]
    fn canceled_retry_extends_rejection_until_client_stops() {
        let mut decisions = with_decision(PriorDecision::Canceled);
        assert!(take(&mut decisions, CANCEL_TTL_MS - 1).is_some());
        let retry = 2 * (CANCEL_TTL_MS - 1);
        assert!(take(&mut decisions, retry).is_some(), "the client still retries");
        assert!(take(&mut decisions, retry + CANCEL_TTL_MS).is_none(), "the client has stopped");
        assert!(decisions.is_empty());
    }

    #[test]
    fn canceled_retry_rejected_until_max_ttl() {
        let mut decisions = with_decision(PriorDecision::Canceled);
        let rejected = (0..).step_by(1_000).take_while(|now| take(&mut decisions, *now).is_some()).last();
        assert_eq!(rejected, Some(CANCEL_MAX_TTL_MS - 1_000));
    }

    #[test]
    fn client_gone_decision_taken_once_before_ttl() {
        let gone = || PriorDecision::ClientGone { edits: RequestEdits::default(), save_on_resume: SaveOnResume::No };
        let mut decisions = with_decision(gone());
        assert!(matches!(take(&mut decisions, DECISION_TTL_MS - 1), Some((1, PriorDecision::ClientGone { .. }))));
        assert!(take(&mut decisions, DECISION_TTL_MS - 1).is_none());
        assert!(take(&mut with_decision(gone()), DECISION_TTL_MS).is_none());
    }

    #[test]
    fn decisions_beyond_limit_evict_oldest() {
        let mut decisions = RecentDecisions::default();
        for request in 0..=MAX_DECISIONS as u64 {
            decisions.remember(request, key(&request.to_string()), PriorDecision::Canceled, 0);
        }
        let mut has = |request: usize| decisions.take(&key(&request.to_string()), 1).is_some();
        assert!(!has(0));
        assert!(has(1) && has(MAX_DECISIONS));
    }

    #[test]
    fn remove_held_keeps_other_decisions() {
        let handed_over = |state| PriorDecision::HandedOver {
            edits: Box::new(RecordedEdits::default()),
            save_on_resume: SaveOnResume::No,
            state,
        };
        for (decision, stays) in [
            (PriorDecision::Canceled, true),
            (PriorDecision::Approved { edits: RequestEdits::default() }, true),
            (handed_over(HandoverState::Approved), true),
            (handed_over(HandoverState::Held), false),
        ] {
            let mut decisions = with_decision(decision);
            decisions.remove_held(|_| false);
            assert!(!decisions.is_empty());
            decisions.remove_held(|_| true);
            assert_eq!(!decisions.is_empty(), stays);
        }
    }
}
