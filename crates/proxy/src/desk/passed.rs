//! What is taken note of: sessions, subagents, and the bodies that go into the journal.

use std::sync::Arc;

use bytes::Bytes;
use sayso_gate::{CutBody, RequestEntry};
use sayso_review::{
    BodyRecord, Event, RequestEvent, RequestId, RequestLook, RequestRecord, RequestSeen, RequestStep,
    SavedEdits as SavedOutcome,
};
use sayso_wire::stream::Api;
use tokio::sync::OwnedSemaphorePermit;

use super::whose::Conversation;
use super::work::patch;
use super::{Came, Complete, Desk, Following, MOST_SESSIONS, Session, Taken, Whose, Work, lock};
use crate::log::Haste;
use crate::settings::{Keep, Settings};

/// Something to be recorded that names no body.
pub(crate) fn entry(request: RequestId, step: RequestStep) -> RequestEntry {
    RequestEntry { event: Event::Request(RequestEvent { request, step }), bodies: Vec::new() }
}

/// A body of which nothing is recorded.
pub(super) fn no_body(_: &Desk, _: Conversation) -> (CutBody, Complete) {
    (CutBody::new(Bytes::new()), Complete::No)
}

impl Desk {
    /// Takes note of a request that was sent as it came. Of one that is neither recorded nor a subagent's, the beginning is enough.
    pub(crate) fn passed(
        self: &Arc<Self>,
        request: RequestId,
        whose: &Whose,
        came: Came,
        (mut body, complete): (Taken, Complete),
        now: i64,
    ) {
        let whose = whose.clone().with_model(&came.head, &mut body);
        let settings = self.settings();
        self.met(request, &whose, &came, &body, &settings, now);
        if settings.keep != Keep::All {
            return;
        }
        if whose.subagent.is_some() {
            let room = self.log.room(body.own());
            return self.see_passed(request, whose, came, room, move |desk, of| (desk.cut(of, body), complete));
        }
        // Here, and not once it is recorded: the next one may be here before that.
        let uncut = lock(&self.bodies).take_in(whose.conversation(), body);
        let room = self.log.room(uncut.own());
        self.see_passed(request, whose, came, room, move |_, _| (uncut.cut(), complete));
    }

    /// The same of one that came compressed, of which so much is there in clear. The rest is made of it by those who have time.
    pub(crate) fn passed_packed(
        self: &Arc<Self>,
        request: RequestId,
        came: Came,
        beginning: Bytes,
        size: usize,
        unpack: impl FnOnce() -> (Bytes, Complete) + Send + 'static,
        now: i64,
    ) {
        let whose = Whose::by_glance(&came.run, &came.head, came.key.as_deref(), &mut beginning.into());
        self.met(request, &whose, &came, &Taken::default(), &self.settings(), now);
        let body = move |desk: &Self, of| {
            let (body, complete) = unpack();
            (desk.cut(of, body.into()), complete)
        };
        self.see_passed(request, whose, came, self.log.room(size), body);
    }

    fn see_passed(
        self: &Arc<Self>,
        request: RequestId,
        whose: Whose,
        came: Came,
        room: Option<OwnedSemaphorePermit>,
        body: impl FnOnce(&Self, Conversation) -> (CutBody, Complete) + Send + 'static,
    ) {
        let api = crate::route::api_of(came.head.route());
        let sent = entry(request, RequestStep::Sent { body: None, patch: None, saved: SavedOutcome::default() });
        // Memory has an end: of one that comes while the disk stands still, it is recorded that it was.
        match room {
            Some(room) => self.see(request, whose, came, api, body, (Haste::Soon, Some(room)), [sent]),
            None => self.see(request, whose, came, api, no_body, (Haste::Soon, None), [sent]),
        }
    }

    /// The earlier body that one of somebody may go on from, which has about so many bytes.
    pub(crate) fn following(&self, whose: &Whose, beginning: &[u8], size: usize) -> Option<Following> {
        let earlier = lock(&self.bodies).before(whose, beginning)?;
        Some(Following::new(earlier, size))
    }

    /// Takes note of a request that a person sends again. It belongs to whom the first one belonged to.
    pub(crate) fn replayed(
        self: &Arc<Self>,
        request: RequestId,
        first: &RequestRecord,
        came: Came,
        body: Bytes,
    ) -> Whose {
        let api = crate::route::api_of(came.head.route());
        let whose = Whose::recorded(&first.seen);
        let came = Came { replay_of: Some(first.request), ..came };
        let sent = entry(request, RequestStep::Sent { body: None, patch: None, saved: SavedOutcome::default() });
        let body = |desk: &Self, of| (desk.cut(of, body.into()), Complete::Yes);
        self.see(request, whose.clone(), came, api, body, (Haste::Now, None), [sent]);
        whose
    }

    /// Records that a request came, and what happened to it at once.
    #[expect(clippy::too_many_arguments, reason = "each of them is recorded")]
    pub(super) fn see<const N: usize>(
        self: &Arc<Self>,
        request: RequestId,
        whose: Whose,
        came: Came,
        api: Option<Api>,
        body: impl FnOnce(&Self, Conversation) -> (CutBody, Complete) + Send + 'static,
        (haste, room): (Haste, Option<OwnedSemaphorePermit>),
        then: [RequestEntry; N],
    ) {
        let desk = Arc::clone(self);
        // Cutting and hashing a megabyte takes longer than passing it on does.
        self.log.later(haste, room, move || {
            let (body, complete) = body(&desk, whose.conversation());
            let record = BodyRecord { cut: complete == Complete::No, ..body.record() };
            let RequestEntry { event, .. } =
                entry(request, RequestStep::Seen(Box::new(seen(whose, came, api, record))));
            std::iter::once(RequestEntry { event, bodies: vec![body] }).chain(then).collect()
        });
    }

    /// Cuts a body that nobody has compared with an earlier one.
    pub(super) fn cut(&self, conversation: Conversation, body: Taken) -> CutBody {
        let last = lock(&self.bodies).last(&conversation);
        let body = match last {
            Some(last) => Taken::after(last, &body.whole()),
            None => body,
        };
        let uncut = lock(&self.bodies).take_in(conversation, body);
        uncut.cut()
    }

    /// Takes note of a request's session, and of its subagent.
    pub(super) fn met(
        &self,
        request: RequestId,
        whose: &Whose,
        came: &Came,
        body: &Taken,
        settings: &Settings,
        now: i64,
    ) {
        // Nobody waits while it is put together.
        let of_subagent = whose.subagent.is_some().then(|| body.whole());
        let mut state = lock(&self.state);
        if let Some(session) = state.sessions.get_mut(&whose.session) {
            session.saw(whose, now);
        } else {
            if state.sessions.len() >= MOST_SESSIONS {
                let oldest = state.sessions.iter().min_by_key(|(_, session)| session.last);
                let oldest = oldest.map(|(name, _)| name.clone());
                oldest.map(|oldest| state.sessions.remove(&oldest));
            }
            let (agent, run) = (whose.agent.clone(), came.run.name.clone());
            let mut session = Session { agent, model: None, run, last: now, requests: 0 };
            session.saw(whose, now);
            state.sessions.insert(whose.session.clone(), session);
        }
        let trimmed = of_subagent
            .map_or(0, |body| state.monitor.saw(request, whose, came.head.clone(), body, settings.monitor, now));
        drop(state);
        if trimmed > 0 {
            self.log.event(Event::RequestLook(RequestLook::Trimmed { runs: trimmed as u64 }), Haste::Soon);
        }
    }

    /// The run whose session it is, as far as it has sent something since this engine started.
    pub(crate) fn run_of(&self, session: &str) -> Option<String> {
        lock(&self.state).sessions.get(session).map(|session| session.run.clone())
    }

    /// Records that a request goes on as it came.
    pub(super) fn sent(&self, request: RequestId, saved: SavedOutcome) {
        self.log.step(request, RequestStep::Sent { body: None, patch: None, saved }, Haste::Soon);
    }

    /// Records that a request goes on with these edits, and what is sent.
    pub(super) fn sent_edited(&self, request: RequestId, work: &Work, body: &Arc<[u8]>) {
        let (body, edited, saved) = (Bytes::from_owner(Arc::clone(body)), work.edited.clone(), work.saved.clone());
        self.log.later(Haste::Soon, None, move || {
            let (body, patch) = (CutBody::new(body), patch(edited.as_ref()));
            let recorded = patch.as_ref().map(CutBody::record);
            let step = RequestStep::Sent { body: Some(body.record()), patch: recorded, saved };
            vec![RequestEntry { bodies: std::iter::once(body).chain(patch).collect(), ..entry(request, step) }]
        });
    }
}

impl Session {
    fn saw(&mut self, whose: &Whose, now: i64) {
        self.last = now;
        self.requests += 1;
        if whose.subagent.is_none() && whose.model.is_some() && self.model != whose.model {
            self.model.clone_from(&whose.model);
        }
    }
}

fn seen(whose: Whose, came: Came, api: Option<Api>, body: BodyRecord) -> RequestSeen {
    let api = api.and_then(|api| serde_json::to_value(api).ok()?.as_str().map(str::to_owned));
    RequestSeen {
        origin: whose.origin(),
        upstream: came.upstream,
        method: came.method,
        path: came.head.path,
        api,
        model: whose.model,
        subagent: whose.subagent,
        body,
        encoding: came.encoding,
        headers: came.head.headers,
        replay_of: came.replay_of,
        server: Some(came.server),
    }
}
