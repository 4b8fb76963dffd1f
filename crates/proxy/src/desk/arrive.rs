//! What becomes of a request that was taken in whole.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use sayso_review::{
    Event, PauseReason, RequestEnd, RequestId, RequestStep, Resumer, Ruling, SavedEdits as SavedOutcome,
};
use sayso_wire::{ModelRequest, Purpose};
use tokio::sync::oneshot;

use super::passed::no_body;
use super::past::Fate;
use super::pause::{self, Saved};
use super::{
    Arrived, Came, Captures, Complete, Desk, Inherited, Keeps, Once, Outgoing, Signed, State, Taken, Ticket, Tools,
    Waiting, Whose, edit, lock,
};
use crate::log::Haste;
use crate::route::api_of;
use crate::settings::{Keep, Pause};

impl Desk {
    /// Takes in a request, and says what becomes of it.
    pub fn arrive(self: &Arc<Self>, mut came: Came, body: Arc<[u8]>, now: i64) -> Arrived {
        let request = self.number();
        let settings = self.settings();
        let mut parsed = ModelRequest::new(request.to_string(), came.head.clone(), Arc::clone(&body));
        let whose = Whose::by_marks(&came.run, &came.head, came.key.as_deref(), &body, parsed.marks());
        // What is not understood is answered all the same, in the form that belongs to where it goes.
        let api = parsed.dialect().map(sayso_wire::dialect::Dialect::api).or_else(|| api_of(came.head.route()));
        let purpose = parsed.purpose();
        if purpose == Some(Purpose::Stream) {
            // It is kept alive for as long as need be.
            came.deadline = None;
        }
        let bytes = Taken::from(Bytes::from_owner(Arc::clone(&body)));
        self.met(request, &whose, &came, &bytes, &settings, now);
        let ruled = self.ruled(&whose, &came.upstream);
        // Before the lock: others do not wait for the hashes and the tokens of this one.
        let rule = pause::rule(&whose, &parsed, &settings.rules, || lock(&self.rules_counter));
        let (identity, said) = (parsed.identity(), parsed.conversation());
        let overrides = self.saved.all(&whose.session, settings.preview_limit).unwrap_or_else(|error| {
            tracing::error!(%error, "saved edits are not applied");
            sayso_wire::Overrides::default()
        });
        let saved = if overrides.edits.is_empty() { Saved::None } else { Saved::Some };
        let unseen = match purpose {
            None if rule.is_none_or(|rule| rule.pause == Pause::Yes) => {
                self.unseen(&came, &whose, Some(&whose.session), "its body is no request that is known there")
            }
            _ => None,
        };
        let mut state = lock(&self.state);
        let see = |haste| {
            let (whose, came, bytes, size) = (whose.clone(), came.clone(), bytes.clone(), bytes.own());
            let body = |desk: &Self, of| (desk.cut(of, bytes), Complete::Yes);
            match self.log.room(size) {
                // What waits is in memory anyway.
                None if haste == Haste::Soon => self.see(request, whose, came, api, no_body, (haste, None), []),
                room => self.see(request, whose, came, api, body, (haste, room), []),
            }
        };
        let denied = match &ruled {
            Some((Ruling::Deny, message)) => Some(message.clone()),
            _ => unseen,
        };
        if let Some(message) = denied {
            see(Haste::Now);
            let why = RequestEnd::Denied { message };
            self.log.step(request, RequestStep::Ended { why: why.clone(), edited: None }, Haste::Now);
            return Arrived::Refuse { request, api, why };
        }
        // What a client sends again is not asked about again, and goes the way that it went.
        state.past.forget_old(now);
        let again = state.past.take(&whose.conversation(), &identity, now);
        let mut inherited = None;
        match again {
            Some((_, Fate::Canceled)) => {
                see(Haste::Now);
                let why = RequestEnd::CanceledBefore;
                self.log.step(request, RequestStep::Ended { why: why.clone(), edited: None }, Haste::Now);
                return Arrived::Refuse { request, api, why };
            }
            Some((_, Fate::Approved { edited })) if edit::go_on(edited.as_deref(), &mut parsed) => {
                see(Haste::Now);
                self.log.step(request, RequestStep::Resumed { by: Resumer::Retry }, Haste::Now);
                let sent = parsed.is_dirty().then(|| Arc::from(parsed.to_bytes().as_ref()));
                self.sent(request, sent.as_ref(), SavedOutcome::default());
                state.past.remember(request, whose.conversation(), identity, Fate::Approved { edited }, now);
                let unanswered = self.unanswered(request, Keeps::Yes);
                return Arrived::Send(Outgoing { api, whose, body: sent, unanswered });
            }
            Some((earlier, Fate::Gone { edited, captures })) => {
                inherited = Some(Inherited { earlier, edited, captures });
            }
            Some((earlier, Fate::Approved { edited })) => {
                inherited = Some(Inherited { earlier, edited, captures: Captures::No });
            }
            None => {}
        }
        let tools = Tools::of(&parsed);
        // Whoever asks for a number of tokens goes on with nothing.
        if pause::is_answered(&parsed)
            && let Some(edits) = self.supersede(&mut state, request, &whose, &said, &identity, tools)
        {
            inherited = Some(edits);
        }
        let effective = state.modes.effective(Some(&whose.session));
        let turn = pause::is_turn(&whose, &parsed);
        let captures = match &inherited {
            Some(Inherited { captures: Captures::Yes, .. }) => Captures::Yes,
            _ => pause::captures(&whose, &parsed, effective, saved),
        };
        let by_policy = ruled.filter(|(ruling, _)| *ruling == Ruling::Ask && pause::is_answered(&parsed));
        let why = by_policy
            .map(|(_, rule)| PauseReason::Rule { rule })
            .or_else(|| pause::reason(&whose, &parsed, effective, saved, rule))
            .or(inherited.is_some().then_some(PauseReason::Retry));
        let mut outcome = SavedOutcome::default();
        let applies = turn && effective.mode != sayso_review::RequestMode::Off && came.signed == Signed::No;
        let edits = inherited.as_mut().and_then(|inherited| inherited.edited.take());
        if let Some(edited) = edits {
            // What cannot be carried over is not there any more; the person looks at it anyway.
            let _ = edit::go_on(Some(&edited), &mut parsed);
        } else if applies {
            outcome = edit::apply_saved(&overrides, &mut parsed);
            if why.is_none()
                && let Some(refused) = edit::would_be_refused(&parsed)
            {
                // Nobody looks at it, so that it is sent as it came.
                parsed = ModelRequest::new(request.to_string(), came.head.clone(), Arc::clone(&body));
                outcome.refuse(&refused);
            }
        }
        let Some(why) = why else {
            let body = parsed.is_dirty().then(|| Arc::from(parsed.to_bytes().as_ref()));
            let keep = settings.keep == Keep::All || body.is_some() || !outcome.is_empty();
            if keep {
                see(Haste::Soon);
                self.sent(request, body.as_ref(), outcome);
            }
            self.notice(&state);
            let keeps = if keep { Keeps::Yes } else { Keeps::No };
            return Arrived::Send(Outgoing { api, whose, body, unanswered: self.unanswered(request, keeps) });
        };
        if why == PauseReason::NextTurn {
            self.disarm(&mut state, &whose.session, Once::Pause);
        }
        if captures == Captures::Yes {
            self.disarm(&mut state, &whose.session, Once::Capture);
        }
        see(Haste::Now);
        let inherits = inherited.map(|inherited| inherited.earlier);
        let paused = RequestStep::Paused { why: why.clone(), deadline: came.deadline, inherits };
        self.log.step(request, paused, Haste::Now);
        let (sender, verdict) = oneshot::channel();
        let edited = parsed.is_dirty().then(|| Arc::new(parsed));
        let waiting = Waiting {
            whose,
            came,
            body,
            api,
            why,
            since: now,
            request: edited,
            said,
            identity,
            saved: outcome,
            captures,
            tools,
            revision: 0,
            verdict: sender,
        };
        state.waiting.insert(request, waiting);
        self.notice(&state);
        drop(state);
        Arrived::Wait(Ticket { desk: Arc::clone(self), request, api, purpose, verdict })
    }

    /// What policy says to a request, and the rule.
    pub(super) fn ruled(&self, whose: &Whose, upstream: &str) -> Option<(Ruling, String)> {
        if !self.judged.load(Ordering::Acquire) {
            return None;
        }
        let ruled = match self.gate.judge_request(upstream, whose.agent.as_deref(), &whose.session) {
            Ok(ruled) => ruled?,
            Err(error) => return Some((Ruling::Deny, error.to_string())),
        };
        let rule = ruled.by.short();
        let message = match (&ruled.ruling, &ruled.reason) {
            (Ruling::Deny, Some(reason)) => format!("Request denied by {rule}: {reason}"),
            (Ruling::Deny, None) => format!("Request denied by {rule}"),
            _ => rule,
        };
        Some((ruled.ruling, message))
    }

    fn disarm(&self, state: &mut State, session: &str, once: Once) {
        if let Some(set) = state.modes.disarm(session, once) {
            self.log.event(Event::RequestMode(set), Haste::Now);
        }
        self.notice(state);
    }

    /// Ends requests that this one takes the place of, and hands over the edits of one that is the same.
    fn supersede(
        &self,
        state: &mut State,
        request: RequestId,
        whose: &Whose,
        said: &[String],
        identity: &str,
        tools: Tools,
    ) -> Option<Inherited> {
        let conversation = whose.conversation();
        let goes_on = |waiting: &Waiting| {
            waiting.whose.conversation() == conversation
                && !waiting.said.is_empty()
                && said.starts_with(&waiting.said)
                // A title or a probe is about a turn, and does not take its place.
                && (tools == Tools::Some || waiting.tools == Tools::None)
        };
        let old: Vec<RequestId> =
            state.waiting.iter().filter(|(_, waiting)| goes_on(waiting)).map(|(id, _)| *id).collect();
        let mut inherited = None;
        for id in old {
            let Some(waiting) = state.waiting.remove(&id) else { continue };
            if waiting.identity == identity {
                inherited =
                    Some(Inherited { earlier: id, edited: waiting.request.clone(), captures: waiting.captures });
            }
            self.close(id, waiting, RequestEnd::Superseded { by: request });
        }
        inherited
    }
}
