//! Admission: decides whether a completely received request is forwarded, held or rejected.
//!
//! The steps, in order:
//!
//! 1. *attribute*: parse the request and find its session ([`IncomingRequest`]);
//! 2. *assess*: evaluate policy, rules and overrides, without the state lock ([`Assessment`]);
//! 3. *match a prior decision*: a client's retry is not shown to a person again ([`PriorMatch`]);
//! 4. *supersede*: end held requests that this one replaces ([`InheritedEdits`]);
//! 5. *choose*: forward or hold ([`Choice`]);
//! 6. *commit*: record the choice and update the hold table.
//!
//! Steps 3 to 6 hold the state lock, so that two requests of one conversation cannot both be held.

use std::sync::{Arc, MutexGuard};

use sayso_gate::{ChunkedBody, RequestEntry};
use sayso_review::{Event, Handover, PauseReason, RequestEnd, RequestId, RequestStep, Resumer};
use sayso_wire::stream::Api;
use tokio::sync::oneshot;

use super::assess::{Assessment, IncomingRequest};
use super::edits::{OriginalRequest, RequestEdits, patch};
use super::held::SaveOnResume;
use super::pause::{self, PauseContext};
use super::prior::{InheritedEdits, PriorMatch};
use super::recent_decisions::{DecisionKey, PriorDecision};
use super::recording::QueuedBody;
use super::{
    Attribution, HeldRequest, HoldGuard, InFlight, Interceptor, OneShot, Recording, RequestMetadata, State, entry, lock,
};
use crate::recorder::Flush;
use crate::settings::Keep;

/// Decision about a received request.
#[derive(Debug)]
pub enum Admission {
    Forward(ForwardRequest),
    Hold(HoldGuard),
    Reject {
        request: RequestId,
        /// The API of the client; `None` if neither body nor path name a known one.
        api: Option<Api>,
        end: RequestEnd,
    },
}

/// A request that is to be sent to its upstream.
#[derive(Debug)]
pub struct ForwardRequest {
    pub api: Option<Api>,
    pub attribution: Attribution,
    /// The edited body; `None` if the received bytes are sent.
    pub body: Option<Arc<[u8]>>,
    pub in_flight: InFlight,
}

/// Result of step 5.
enum Choice {
    Forward(RequestEdits),
    Hold(HoldPlan),
}

struct HoldPlan {
    reason: PauseReason,
    edits: RequestEdits,
    save_on_resume: SaveOnResume,
    /// The earlier request whose edits this one continues.
    inherits: Option<RequestId>,
}

impl Interceptor {
    /// Admits a completely received request with its decoded body.
    pub fn admit(self: &Arc<Self>, metadata: RequestMetadata, body: Arc<[u8]>, now: i64) -> Admission {
        let incoming = self.attribute(metadata, body, now);
        let mut assessment = self.assess(&incoming);
        let mut state = lock(&self.state);
        if self.is_shutting_down() {
            // The next engine admits the client's retry.
            return self.reject(&incoming, RequestEnd::EngineStopped);
        }
        if let Some(message) = assessment.denial.take() {
            return self.reject(&incoming, RequestEnd::Denied { message });
        }
        let handed_over = assessment.handed_over.take();
        let inherited = match self.match_prior(&mut state, &incoming, handed_over, now) {
            PriorMatch::New => None,
            PriorMatch::Canceled => return self.reject(&incoming, RequestEnd::CanceledBefore),
            PriorMatch::Approved(edits) => return self.forward_retry(&mut state, incoming, edits, now),
            PriorMatch::Inherited(inherited) => Some(inherited),
        };
        let inherited = self.supersede(&mut state, &incoming).or(inherited);
        match self.choose(&mut state, &incoming, assessment, inherited) {
            Choice::Forward(edits) => self.commit_forward(&state, incoming, &edits),
            Choice::Hold(plan) => self.commit_hold(state, incoming, plan, now),
        }
    }

    /// Records a request that ends here.
    fn reject(self: &Arc<Self>, incoming: &IncomingRequest, end: RequestEnd) -> Admission {
        let (request, api) = (incoming.envelope.request, incoming.envelope.api);
        self.record_incoming(incoming, Flush::Immediate);
        self.recorder.step(request, RequestStep::Ended { end: end.clone(), edited: None }, Flush::Immediate);
        Admission::Reject { request, api, end }
    }

    /// Forwards a client's retry of a request that a person has resumed, with the same edits.
    fn forward_retry(
        self: &Arc<Self>,
        state: &mut State,
        incoming: IncomingRequest,
        edits: RequestEdits,
        now: i64,
    ) -> Admission {
        self.record_incoming(&incoming, Flush::Immediate);
        let request = incoming.envelope.request;
        self.recorder.step(request, RequestStep::Resumed { by: Resumer::Retry }, Flush::Immediate);
        let body = self.record_sent(request, &edits);
        let key = DecisionKey::new(&incoming.envelope.attribution, incoming.retry_key.clone());
        state.decisions.remember(request, key, PriorDecision::Approved { edits }, now);
        self.forward(incoming, body, Recording::Enabled)
    }

    fn forward(&self, incoming: IncomingRequest, body: Option<Arc<[u8]>>, recording: Recording) -> Admission {
        let in_flight = self.in_flight(incoming.envelope.request, recording);
        let (api, attribution) = (incoming.envelope.api, incoming.envelope.attribution);
        Admission::Forward(ForwardRequest { api, attribution, body, in_flight })
    }

    /// Decides whether the request is held, and with which edits it goes on.
    fn choose(
        &self,
        state: &mut State,
        incoming: &IncomingRequest,
        assessment: Assessment,
        inherited: Option<InheritedEdits>,
    ) -> Choice {
        let attribution = &incoming.envelope.attribution;
        let effective = state.registry.modes.effective(Some(&attribution.session));
        let context = PauseContext {
            attribution,
            request: &incoming.parsed,
            effective,
            has_overrides: assessment.has_overrides(),
            rule: assessment.rule.as_ref(),
        };
        let save_on_resume = match &inherited {
            Some(InheritedEdits { save_on_resume: SaveOnResume::Yes, .. }) => SaveOnResume::Yes,
            _ => context.save_on_resume(),
        };
        let by_policy = assessment.ask_rule.clone().filter(|_| pause::is_answered(&incoming.parsed));
        let reason = by_policy
            .map(|rule| PauseReason::Rule { rule })
            .or_else(|| context.reason())
            .or(inherited.is_some().then_some(PauseReason::Retry));
        let inherits = inherited.as_ref().map(|inherited| inherited.earlier);
        let mut edits = if let Some(InheritedEdits { edits, .. }) = inherited {
            // Edits that do not fit the retry are lost, but the retry is held, so a person sees it.
            edits.reapply_to(&incoming.parsed).unwrap_or_default()
        } else {
            // The mode may have changed between the assessment and the lock.
            let prepared = assessment.into_edits(incoming, effective.mode);
            self.turn_changed(state, attribution, prepared.turn_change);
            prepared.edits
        };
        if let Some(reason) = reason {
            return Choice::Hold(HoldPlan { reason, edits, save_on_resume, inherits });
        }
        if let Some(problem) = edits.override_rejection.take() {
            // No person can repair the request, so it is sent without overrides.
            edits = RequestEdits { overrides: edits.overrides, ..RequestEdits::default() };
            edits.overrides.reject(&problem);
        }
        Choice::Forward(edits)
    }

    fn commit_forward(self: &Arc<Self>, state: &State, incoming: IncomingRequest, edits: &RequestEdits) -> Admission {
        let records = self.settings().keep == Keep::All || edits.is_edited() || !edits.overrides.is_empty();
        let body = if records {
            self.record_incoming(&incoming, Flush::Batched);
            self.record_sent(incoming.envelope.request, edits)
        } else {
            None
        };
        self.update_passthrough(state);
        let recording = if records { Recording::Enabled } else { Recording::Disabled };
        self.forward(incoming, body, recording)
    }

    fn commit_hold(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        incoming: IncomingRequest,
        plan: HoldPlan,
        now: i64,
    ) -> Admission {
        let session = &incoming.envelope.attribution.session;
        if plan.reason == PauseReason::NextTurn {
            self.disarm(&mut state, session, OneShot::Pause);
        }
        if plan.save_on_resume == SaveOnResume::Yes {
            self.disarm(&mut state, session, OneShot::Capture);
        }
        self.record_incoming(&incoming, Flush::Immediate);
        self.record_paused(&incoming, &plan);
        let request = incoming.envelope.request;
        let (api, purpose) = (incoming.envelope.api, incoming.purpose);
        let (sender, outcome) = oneshot::channel();
        let head = incoming.envelope.metadata.head.clone();
        let held = HeldRequest {
            has_tools: incoming.parsed.has_tools(),
            has_history: incoming.parsed.has_answers(),
            attribution: incoming.envelope.attribution,
            metadata: incoming.envelope.metadata,
            original: OriginalRequest::new(request, head, incoming.body),
            api,
            reason: plan.reason,
            since: now,
            edits: plan.edits,
            message_hashes: incoming.message_hashes,
            retry_key: incoming.retry_key,
            save_on_resume: plan.save_on_resume,
            revision: 0,
            outcome: sender,
        };
        state.held.insert(request, held);
        self.update_passthrough(&state);
        // Under the lock: a surface cannot resume the request before the notification is queued.
        self.notifier.notify(&self.gate, request);
        drop(state);
        Admission::Hold(HoldGuard { interceptor: Arc::clone(self), request, api, purpose, outcome })
    }

    /// Records a received request. Its body is omitted if the recorder's queue is full and the entry may be delayed; the body of a held
    /// or rejected request is in memory anyway.
    fn record_incoming(self: &Arc<Self>, incoming: &IncomingRequest, flush: Flush) {
        let body = incoming.body_delta();
        let budget = self.recorder.budget(body.added_bytes());
        let body = if budget.is_none() && flush == Flush::Batched {
            QueuedBody::omitted()
        } else {
            QueuedBody::received(body, budget)
        };
        self.record_request(incoming.envelope.clone(), body, flush, None);
    }

    /// Records that a request is sent, and returns the edited body.
    fn record_sent(&self, request: RequestId, edits: &RequestEdits) -> Option<Arc<[u8]>> {
        let body = edits.dirty().map(|edited| Arc::from(edited.to_bytes().as_ref()));
        match &body {
            Some(body) => self.record_sent_edited(request, edits, body),
            None => self.record_sent_verbatim(request, edits.overrides.clone()),
        }
        body
    }

    /// Records that a request is held, with everything that the next engine needs to continue.
    fn record_paused(&self, incoming: &IncomingRequest, plan: &HoldPlan) {
        let request = incoming.envelope.request;
        let (deadline, inherits) = (incoming.envelope.metadata.deadline, plan.inherits);
        let (identity, save_on_resume) = (incoming.retry_key.clone(), plan.save_on_resume == SaveOnResume::Yes);
        let (reason, edits) = (plan.reason.clone(), plan.edits.clone());
        self.recorder.build_later(request, Flush::Immediate, None, move || {
            let (edited, with_overrides) = (patch(edits.edited.as_ref()), patch(edits.with_overrides.as_ref()));
            let handover = Handover {
                identity,
                save_on_resume,
                patch: edited.as_ref().map(ChunkedBody::record),
                with_overrides: with_overrides.as_ref().map(ChunkedBody::record),
                overrides: edits.overrides,
            };
            let step = RequestStep::Paused { pause: reason, deadline, inherits, handover: Some(Box::new(handover)) };
            vec![RequestEntry { bodies: edited.into_iter().chain(with_overrides).collect(), ..entry(request, step) }]
        });
    }

    fn disarm(&self, state: &mut State, session: &str, once: OneShot) {
        if let Some(set) = state.registry.modes.disarm(session, once) {
            self.recorder.event(Event::RequestMode(set), Flush::Immediate);
        }
        self.update_passthrough(state);
    }
}
