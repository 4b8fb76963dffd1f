//! An answer on its way to the agent: passed on as it comes, and looked at.
//!
//! Calls of tools are handed to the engine when they are complete and before their end is passed on, so that what files were before
//! is kept before the agent can change them. By rule, a call waits there for a person.

mod told;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use sayso_review::RequestId;
use sayso_wire::stream::{Api, Begun, Decoder, Refusal, collect};
use tokio::time::{Instant as Later, Sleep};

use super::body::BodyError;
use super::calls::{Call, Calls, Passage};
use super::encoding::Inflate;
use super::events::{Back, MOST_WHOLE, Position, WholeEvents};
use super::said::Said;
use crate::desk::{Desk, Keeps, Sequel};
use told::Read;

/// The most of an answer that is kept.
const MOST: usize = MOST_WHOLE;

/// What is known of an exchange when its answer begins.
pub(super) struct Exchange {
    pub(super) desk: Arc<Desk>,
    pub(super) request: RequestId,
    pub(super) api: Option<Api>,
    pub(super) started: Instant,
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) encoding: Option<String>,
    pub(super) keeps: Keeps,
    pub(super) retries: u32,
    /// What the answer is recorded after.
    pub(super) sequel: Option<Arc<Sequel>>,
    pub(super) calls: Calls,
}

impl Exchange {
    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// An answer that is looked at on its way.
pub(super) struct AnswerTap {
    inner: Incoming,
    exchange: Exchange,
    first: Option<Duration>,
    inflate: Inflate,
    decoder: Option<Decoder>,
    said: Said,
    back: Back,
    form: Form,
    /// Whether anything of it was passed on.
    begun: bool,
    kept: Vec<u8>,
    size: usize,
    /// Whether what came in one piece was looked at, or need not be before it is recorded.
    read: Read,
    /// Why there is no more, once what began before is passed on.
    error: Option<BodyError>,
    /// What comes after the body.
    trailers: Option<Frame<Bytes>>,
    /// What was read and waits until calls in it are dealt with.
    held: Option<Held>,
    position: Position,
    over: bool,
    told: bool,
}

/// In what form an answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As events.
    Events,
    /// In one piece.
    Piece,
}

struct Held {
    frame: Option<Frame<Bytes>>,
    passage: Pin<Box<dyn Future<Output = Passage> + Send>>,
    /// When the agent is to be told that its answer is still on its way.
    alive: Pin<Box<Sleep>>,
    every: Duration,
}

impl AnswerTap {
    pub(super) fn new(inner: Incoming, exchange: Exchange) -> Self {
        let kind = exchange.content_type.as_deref().map(str::to_ascii_lowercase);
        let streams = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        let decoder = exchange.api.filter(|_| streams).map(Api::decoder);
        let inflate = Inflate::new(exchange.encoding.as_deref());
        let back = match (&decoder, exchange.api) {
            // A call may be anywhere in it, and a client may read it while it comes.
            (None, Some(_)) if exchange.is_success() && exchange.calls.may_hold() => Back::All(BytesMut::new()),
            (None, Some(_)) if exchange.is_success() => Back::Frame(Bytes::new()),
            (Some(_), _) if inflate.is_plain() && exchange.calls.may_hold() => Back::Event(WholeEvents::default()),
            _ => Back::Nothing,
        };
        Self {
            inner,
            exchange,
            first: None,
            inflate,
            decoder,
            said: Said::default(),
            back,
            form: if streams { Form::Events } else { Form::Piece },
            begun: false,
            kept: Vec::new(),
            size: 0,
            read: Read::NotYet,
            error: None,
            trailers: None,
            held: None,
            position: Position::default(),
            over: false,
            told: false,
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.over && self.held.is_none() && self.error.is_none() && self.trailers.is_none()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        // A rule may break it off.
        if self.exchange.calls.may_hold() { SizeHint::default() } else { self.inner.size_hint() }
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = self.poll_next(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.position.pass(data);
            let log = &self.exchange.desk.log;
            if !std::mem::replace(&mut self.begun, true) && self.exchange.sequel.is_some() && log.wants_time() {
                let log = Arc::clone(log);
                // Its turn comes after this is written.
                tokio::spawn(async move { log.has_time() });
            }
        }
        polled
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            if self.held.is_some() {
                return self.poll_held(cx);
            }
            if let Some(error) = self.error.take() {
                return Poll::Ready(Some(Err(error)));
            }
            if self.over {
                return Poll::Ready(self.trailers.take().map(Ok));
            }
            let came = ready!(Pin::new(&mut self.inner).poll_frame(cx));
            let (frame, calls) = match came {
                Some(Ok(frame)) => {
                    self.first.get_or_insert_with(|| self.exchange.started.elapsed());
                    let calls = frame.data_ref().map(|data| self.look(data)).unwrap_or_default();
                    // Often it is known that a frame is the last one, so that nobody need ask for another.
                    let last = self.inner.is_end_stream();
                    let calls = if last { self.finish(calls) } else { calls };
                    (self.pass_on(frame, last), calls)
                }
                Some(Err(error)) => {
                    self.said.problem.get_or_insert_with(|| format!("the answer was cut off: {error}"));
                    self.error = Some(error.into());
                    self.over = true;
                    self.tell();
                    (self.rest(), Vec::new())
                }
                None => {
                    let calls = self.finish(Vec::new());
                    (self.rest(), calls)
                }
            };
            if self.is_closed() {
                return Poll::Ready(Some(self.close_unread()));
            }
            match (frame, calls.is_empty()) {
                (Some(frame), true) => return Poll::Ready(Some(Ok(frame))),
                (frame, false) => self.hold(frame, calls),
                (None, true) => {}
            }
        }
    }

    /// Takes note that there is no more, and says which calls are complete.
    fn finish(&mut self, mut calls: Vec<Call>) -> Vec<Call> {
        self.over = true;
        calls.extend(self.end());
        // With calls it is over when these are dealt with.
        if calls.is_empty() && !self.is_closed() {
            self.tell();
        }
        calls
    }

    /// What of a frame can be passed on.
    fn pass_on(&mut self, frame: Frame<Bytes>, last: bool) -> Option<Frame<Bytes>> {
        let data = match frame.into_data() {
            Ok(data) => self.back.pass(data),
            Err(trailers) => {
                // Nothing of a body comes after them.
                self.trailers = Some(trailers);
                self.over = true;
                return self.rest();
            }
        };
        let data = match (last.then(|| self.back.rest()), data.is_empty()) {
            (None, _) => data,
            (Some(rest), true) => rest,
            (Some(rest), false) => [data, rest].concat().into(),
        };
        Some(data).filter(|data| !data.is_empty()).map(Frame::data)
    }

    /// What was held back, at the end.
    fn rest(&mut self) -> Option<Frame<Bytes>> {
        Some(self.back.rest()).filter(|data| !data.is_empty()).map(Frame::data)
    }

    /// Holds a frame until the calls in it are dealt with.
    fn hold(&mut self, frame: Option<Frame<Bytes>>, calls: Vec<Call>) {
        let every = self.exchange.desk.settings().keep_alive;
        let passage = Box::pin(self.exchange.calls.clone().pass(calls));
        let alive = Box::pin(tokio::time::sleep(every));
        self.held = Some(Held { frame, passage, alive, every });
    }

    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(held) = &mut self.held else { return Poll::Ready(None) };
        if let Poll::Ready(passage) = held.passage.as_mut().poll(cx) {
            let frame = held.frame.take();
            self.held = None;
            return match passage {
                Passage::Open => {
                    if self.over {
                        self.tell();
                    }
                    Poll::Ready(frame.map(Ok))
                }
                Passage::Closed(why) => Poll::Ready(Some(self.close("a call of a tool was denied", &why))),
            };
        }
        ready!(held.alive.as_mut().poll(cx));
        let next = Later::now() + held.every;
        held.alive.as_mut().reset(next);
        // It is polled again, and then waits for the next time.
        cx.waker().wake_by_ref();
        let room = self.decoder.is_some() && self.inflate.is_plain() && self.position.is_between_events();
        match (room, self.exchange.api) {
            (true, Some(api)) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(api.keep_alive()))))),
            // What is no stream, or a compressed one, or within an event, has no room for a sign of life.
            _ => Poll::Pending,
        }
    }

    /// Whether it ends here: calls in it are to wait, and what cannot be read may hold one.
    fn is_closed(&self) -> bool {
        self.said.unread.is_some() && self.exchange.calls.may_hold() && self.exchange.is_success()
    }

    fn close_unread(&mut self) -> Result<Frame<Bytes>, BodyError> {
        let why = self.said.unread.take().unwrap_or_default();
        let told = format!(
            "sayso cannot read this answer ({why}), and so not tell whether a tool is called in it that `hold_tools` under \
             [request] holds back"
        );
        self.close(&format!("it was not passed on: {why}"), &told)
    }

    /// Ends it before its end.
    fn close(&mut self, problem: &str, told: &str) -> Result<Frame<Bytes>, BodyError> {
        self.said.problem = Some(problem.to_owned());
        self.over = true;
        self.error = None;
        self.trailers = None;
        self.tell();
        self.instead(told)
    }

    /// What is said in place of what is not passed on.
    fn instead(&self, why: &str) -> Result<Frame<Bytes>, BodyError> {
        let refusal = Refusal::Refused { message: why };
        let said = match self.exchange.api {
            Some(api) if self.form == Form::Events => api.end_for_good(&refusal, Begun::Yes),
            Some(api) if !self.begun => api.refuse(&refusal).body,
            // In the middle of something there is nothing to say; it breaks off.
            _ => return Err(why.into()),
        };
        Ok(Frame::data(said.into()))
    }

    /// Looks at a chunk, and says which calls are complete with it.
    fn look(&mut self, chunk: &Bytes) -> Vec<Call> {
        let inflated;
        let chunk: &[u8] = if self.inflate.is_plain() {
            chunk
        } else {
            inflated = self.inflate.feed(chunk);
            if self.inflate.is_broken() {
                self.said.unread(&"it is compressed in a way that cannot be read");
            }
            &inflated
        };
        self.size += chunk.len();
        // What comes in one piece is read when all of it is there.
        let wanted = self.exchange.keeps == Keeps::Yes || self.decoder.is_none();
        if wanted && self.size <= MOST {
            self.kept.extend_from_slice(chunk);
        }
        let mut complete = Vec::new();
        let Self { decoder, said, .. } = self;
        if let Some(decoder) = decoder {
            decoder.feed(chunk, &mut |positioned| said.take(positioned.event, &mut complete));
        }
        complete
    }

    /// Looks at what there is at the end of an answer.
    fn end(&mut self) -> Vec<Call> {
        let mut complete = Vec::new();
        let Self { decoder, said, kept, size, read, exchange, .. } = self;
        if let Some(mut decoder) = decoder.take() {
            decoder.end(&mut |positioned| said.take(positioned.event, &mut complete));
        } else if let Some(api) = exchange.api.filter(|_| *read == Read::NotYet && exchange.is_success()) {
            let may_call = collect::may_call(api, kept);
            let calls = may_call || exchange.calls.may_hold();
            *read = if calls { Read::Done } else { Read::Later(api) };
            match calls.then(|| collect::from_body(api, kept)) {
                Some(Ok(answer)) => complete = said.whole(answer),
                Some(Err(_)) if *size > kept.len() => said.unread(&"it is too large"),
                Some(Err(error)) if may_call => said.unread(&error),
                // Whatever it is, there is no call in it.
                Some(Err(_)) | None => {}
            }
        }
        complete
    }
}

impl Drop for AnswerTap {
    fn drop(&mut self) {
        if !self.told {
            let who = if self.exchange.desk.stops() { "sayso stopped" } else { "the agent went away" };
            self.said.problem.get_or_insert_with(|| format!("{who} before the end of the answer"));
            self.tell();
        }
    }
}
