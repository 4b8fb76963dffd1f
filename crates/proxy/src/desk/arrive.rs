//! What becomes of a request that was taken in whole.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use sayso_gate::{CutBody, RequestEntry};
use sayso_review::{Event, Handover, PauseReason, RequestEnd, RequestId, RequestMode, RequestStep, Resumer, Ruling};
use sayso_wire::stream::Api;
use sayso_wire::{ModelRequest, Overrides, Purpose};
use tokio::sync::oneshot;

use super::passed::no_body;
use super::past::{Fate, Handed};
use super::pause::{self, Saved};
use super::turn::TurnChange;
use super::work::patch;
use super::{
    Arrived, Came, Captures, Complete, Desk, History, Inherited, Keeps, Once, Original, Outgoing, Signed, State, Taken,
    Ticket, Tools, Waiting, Whose, Work, edit, entry, lock,
};
use crate::log::Haste;
use crate::route::api_of;
use crate::settings::{Keep, Pause};

impl Desk {
    /// Takes in a request, and says what becomes of it.
    pub fn arrive(self: &Arc<Self>, mut came: Came, body: Arc<[u8]>, now: i64) -> Arrived {
        let request = self.number();
        let settings = self.settings();
        let parsed = ModelRequest::new(request.to_string(), came.head.clone(), Arc::clone(&body));
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
        let (overrides, unread) = match self.saved.all(&whose.session, settings.preview_limit) {
            Ok(overrides) => (overrides, None),
            Err(error) => {
                tracing::error!(%error, "saved edits are not applied");
                (Overrides::default(), Some(error.to_string()))
            }
        };
        // Those that cannot be read are there all the same, and nobody is asked to make them again.
        let saved = if overrides.edits.is_empty() && unread.is_none() { Saved::None } else { Saved::Some };
        let turn = pause::is_turn(&whose, &parsed);
        let takes_saved = turn && came.signed == Signed::No;
        let lay = || {
            let mut laid = edit::lay_over(&overrides, &parsed);
            laid.saved.drifted.extend(unread.clone());
            laid
        };
        let running = self.running_turn(&whose, &parsed, came.signed);
        let make = |mode: RequestMode| {
            let takes_saved = takes_saved && mode != RequestMode::Off;
            let mut work = if takes_saved { lay() } else { Work::default() };
            let change = running.clone().map_or(TurnChange::Untouched, |running| running.lay_over(&parsed, &mut work));
            (mode, work, change)
        };
        // Before the lock, too; what is decided meanwhile is seen to there.
        let mut made = make(self.effective(Some(&whose.session)).mode);
        let mut handed_over = self.handed_over(&whose, &identity, &parsed);
        let unseen = match purpose {
            None if rule.is_none_or(|rule| rule.pause == Pause::Yes) => {
                self.unseen(&came, &whose, Some(&whose.session), "its body is no request that is known there")
            }
            _ => None,
        };
        let mut state = lock(&self.state);
        if self.stops() {
            // Should it come again, the next engine does with it what is to be done.
            return self.too_late(request, whose, came, api, &bytes);
        }
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
        let (mut inherited, mut approved) = (None, None);
        match again {
            Some((_, Fate::Canceled)) => {
                see(Haste::Now);
                let why = RequestEnd::CanceledBefore;
                self.log.step(request, RequestStep::Ended { why: why.clone(), edited: None }, Haste::Now);
                return Arrived::Refuse { request, api, why };
            }
            Some((earlier, Fate::Approved { work })) => match work.go_on(&parsed) {
                Some(work) => approved = Some(work),
                // What was approved cannot be made of this one, so that somebody looks at it.
                None => inherited = Some(Inherited { earlier, work, captures: Captures::No }),
            },
            Some((earlier, Fate::Gone { work, captures })) => inherited = Some(Inherited { earlier, work, captures }),
            Some((earlier, Fate::HandedOver { captures, verdict, .. })) => {
                let work = handed_over.take().unwrap_or_default();
                if verdict == Handed::Approved && work.unmade.is_none() {
                    // No other engine is to go on with it.
                    let why = RequestEnd::Superseded { by: request };
                    self.log.step(earlier, RequestStep::Ended { why, edited: None }, Haste::Now);
                    approved = Some(work);
                } else {
                    inherited = Some(Inherited { earlier, work, captures });
                }
            }
            None => {}
        }
        if let Some(work) = approved {
            see(Haste::Now);
            self.log.step(request, RequestStep::Resumed { by: Resumer::Retry }, Haste::Now);
            let body = self.go(request, &work);
            state.past.remember(request, whose.conversation(), identity, Fate::Approved { work }, now);
            let unanswered = self.unanswered(request, Keeps::Yes);
            return Arrived::Send(Outgoing { api, whose, body, unanswered });
        }
        let tools = Tools::of(&parsed);
        if turn && tools == Tools::Some {
            self.discard_other_contexts(&mut state, &whose, &parsed);
        }
        // Whoever asks for a number of tokens goes on with nothing.
        if pause::is_answered(&parsed)
            && let Some(edits) = self.supersede(&mut state, request, &whose, &said, &identity, tools)
        {
            inherited = Some(edits);
        }
        let effective = state.modes.effective(Some(&whose.session));
        let captures = match &inherited {
            Some(Inherited { captures: Captures::Yes, .. }) => Captures::Yes,
            _ => pause::captures(&whose, &parsed, effective, saved),
        };
        let by_policy = ruled.filter(|(ruling, _)| *ruling == Ruling::Ask && pause::is_answered(&parsed));
        let why = by_policy
            .map(|(_, rule)| PauseReason::Rule { rule })
            .or_else(|| pause::reason(&whose, &parsed, effective, saved, rule))
            .or(inherited.is_some().then_some(PauseReason::Retry));
        let inherits = inherited.as_ref().map(|inherited| inherited.earlier);
        let mut work = if let Some(Inherited { work, .. }) = inherited {
            // What cannot be carried over is not there any more; the person looks at it anyway.
            work.go_on(&parsed).unwrap_or_default()
        } else {
            if made.0 != effective.mode {
                made = make(effective.mode);
            }
            let (_, work, change) = made;
            self.turn_changed(&mut state, &whose, change);
            work
        };
        let Some(why) = why else {
            if let Some(refused) = work.refused.take() {
                // Nobody looks at it, so that it is sent as it came.
                work = Work { saved: work.saved, ..Work::default() };
                work.saved.refuse(&refused);
            }
            let keep = settings.keep == Keep::All || work.is_edited() || !work.saved.is_empty();
            let body = if keep {
                see(Haste::Soon);
                self.go(request, &work)
            } else {
                None
            };
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
        self.paused(request, &why, came.deadline, inherits, (&identity, captures), &work);
        let (sender, verdict) = oneshot::channel();
        let original = Original::new(request, came.head.clone(), body);
        let waiting = Waiting {
            whose,
            came,
            original,
            api,
            why,
            since: now,
            work,
            said,
            identity,
            captures,
            tools,
            history: History::of(&parsed),
            revision: 0,
            verdict: sender,
        };
        state.waiting.insert(request, waiting);
        self.notice(&state);
        // Before anybody can know that it waits.
        self.bell.ring(&self.gate, request);
        drop(state);
        Arrived::Wait(Ticket { desk: Arc::clone(self), request, api, purpose, verdict })
    }

    /// Records that a request goes on, and says what is sent if that is not what came.
    fn go(&self, request: RequestId, work: &Work) -> Option<Arc<[u8]>> {
        let body = work.dirty().map(|edited| Arc::from(edited.to_bytes().as_ref()));
        match &body {
            Some(body) => self.sent_edited(request, work, body),
            None => self.sent(request, work.saved.clone()),
        }
        body
    }

    /// Records that a request waits, and what the next engine would need to go on with it.
    fn paused(
        &self,
        request: RequestId,
        why: &PauseReason,
        deadline: Option<i64>,
        inherits: Option<RequestId>,
        (identity, captures): (&str, Captures),
        work: &Work,
    ) {
        let (why, identity, captures) = (why.clone(), identity.to_owned(), captures == Captures::Yes);
        let (edited, laid, saved) = (work.edited.clone(), work.laid.clone(), work.saved.clone());
        self.log.later(Haste::Now, None, move || {
            let (edited, laid) = (patch(edited.as_ref()), patch(laid.as_ref()));
            let [recorded, laid_by] = [&edited, &laid].map(|patch| patch.as_ref().map(CutBody::record));
            let handover = Handover { identity, captures, patch: recorded, laid: laid_by, saved };
            let step = RequestStep::Paused { why, deadline, inherits, handover: Some(Box::new(handover)) };
            vec![RequestEntry { bodies: edited.into_iter().chain(laid).collect(), ..entry(request, step) }]
        });
    }

    /// Refuses a request that comes while the engine stops.
    fn too_late(
        self: &Arc<Self>,
        request: RequestId,
        whose: Whose,
        came: Came,
        api: Option<Api>,
        body: &Taken,
    ) -> Arrived {
        let body = body.clone();
        self.see(request, whose, came, api, |desk, of| (desk.cut(of, body), Complete::Yes), (Haste::Now, None), []);
        let why = RequestEnd::EngineStopped;
        self.log.step(request, RequestStep::Ended { why: why.clone(), edited: None }, Haste::Now);
        Arrived::Refuse { request, api, why }
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

    /// Ends paused turns of the session that this turn leaves behind: the session has another model by now, or its history
    /// was cleared.
    fn discard_other_contexts(&self, state: &mut State, whose: &Whose, request: &ModelRequest) {
        let history = History::of(request);
        let is_other = |waiting: &Waiting| {
            waiting.tools == Tools::Some
                && waiting.whose.strand() == whose.strand()
                && (waiting.whose.model != whose.model || (waiting.history, history) == (History::Some, History::None))
        };
        let old: Vec<RequestId> =
            state.waiting.iter().filter(|(_, waiting)| is_other(waiting)).map(|(id, _)| *id).collect();
        for id in old {
            if let Some(waiting) = state.waiting.remove(&id) {
                self.close(id, waiting, RequestEnd::SessionDisposed);
            }
        }
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
                inherited = Some(Inherited { earlier: id, work: waiting.work.clone(), captures: waiting.captures });
            }
            self.close(id, waiting, RequestEnd::Superseded { by: request });
        }
        inherited
    }
}
