//! An answer on its way to the agent: passed on as it comes, and looked at.
//!
//! Calls of tools are handed to the engine when they are complete and before their end is passed on, so that what files were before
//! is kept before the agent can change them. By rule, a call waits there for a person.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use sayso_review::{BodyRecord, RequestAnswer, RequestId, RequestStep, TokenUsage};
use sayso_wire::stream::{Api, Decoder, StreamEvent, Usage, collect};
use serde_json::Value;
use tokio::time::{Instant as Later, Sleep};

use super::body::{BodyError, Position};
use super::calls::{Call, Calls, Passage};
use super::encoding::Inflate;
use crate::desk::{Desk, Keeps};
use crate::log::Haste;

/// The most of an answer that is kept.
const MOST: usize = 64 << 20;

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
    pub(super) calls: Calls,
}

/// An answer that is looked at on its way.
pub(super) struct AnswerTap {
    inner: Incoming,
    exchange: Exchange,
    first: Option<Duration>,
    inflate: Inflate,
    decoder: Option<Decoder>,
    open: BTreeMap<u32, Call>,
    kept: Vec<Bytes>,
    size: usize,
    usage: Usage,
    finish: Option<String>,
    problem: Option<String>,
    /// What was read and waits until calls in it are dealt with.
    held: Option<Held>,
    position: Position,
    over: bool,
    told: bool,
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
        let streams = exchange.content_type.as_deref().is_some_and(|kind| kind.starts_with("text/event-stream"));
        let decoder = exchange.api.filter(|_| streams).map(Api::decoder);
        let inflate = Inflate::new(exchange.encoding.as_deref());
        Self {
            inner,
            exchange,
            first: None,
            inflate,
            decoder,
            open: BTreeMap::new(),
            kept: Vec::new(),
            size: 0,
            usage: Usage::default(),
            finish: None,
            problem: None,
            held: None,
            position: Position::default(),
            over: false,
            told: false,
        }
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
        }
        polled
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            if self.held.is_some() {
                return self.poll_held(cx);
            }
            if self.over {
                return Poll::Ready(None);
            }
            let frame = match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => {
                    self.problem.get_or_insert_with(|| format!("the answer was cut off: {error}"));
                    self.over = true;
                    self.tell();
                    return Poll::Ready(Some(Err(error.into())));
                }
                None => {
                    self.over = true;
                    let calls = self.end();
                    self.tell();
                    if calls.is_empty() {
                        return Poll::Ready(None);
                    }
                    self.hold(None, calls);
                    continue;
                }
            };
            self.first.get_or_insert_with(|| self.exchange.started.elapsed());
            let calls = match frame.data_ref() {
                Some(data) => self.look(&data.clone()),
                None => Vec::new(),
            };
            // What comes in one piece is complete with its last frame, before which nothing can be done with it.
            let last = self.decoder.is_none() && self.inner.is_end_stream();
            let calls = if last { self.end() } else { calls };
            if calls.is_empty() {
                return Poll::Ready(Some(Ok(frame)));
            }
            self.hold(Some(frame), calls);
        }
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
                Passage::Open => match frame {
                    Some(frame) => Poll::Ready(Some(Ok(frame))),
                    None => Poll::Ready(None),
                },
                Passage::Closed(instead) => {
                    self.problem = Some("a call of a tool was denied".to_owned());
                    self.over = true;
                    self.tell();
                    Poll::Ready(Some(Ok(Frame::data(instead.into()))))
                }
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

    /// Looks at a chunk, and says which calls are complete with it.
    fn look(&mut self, chunk: &Bytes) -> Vec<Call> {
        let chunk = if self.inflate.is_plain() { chunk.clone() } else { self.inflate.feed(chunk).into() };
        self.size += chunk.len();
        if self.size <= MOST {
            self.kept.push(chunk.clone());
        }
        let mut complete = Vec::new();
        let Self { decoder, open, usage, finish, problem, .. } = self;
        if let Some(decoder) = decoder {
            decoder.feed(&chunk, &mut |positioned| {
                take(positioned.event, open, &mut complete, usage, finish, problem);
            });
        }
        complete
    }

    /// Looks at what there is at the end of an answer.
    fn end(&mut self) -> Vec<Call> {
        let mut complete = Vec::new();
        if let Some(mut decoder) = self.decoder.take() {
            let Self { open, usage, finish, problem, .. } = self;
            decoder.end(&mut |positioned| take(positioned.event, open, &mut complete, usage, finish, problem));
        } else if let Some(api) = self.exchange.api.filter(|_| self.finish.is_none() && self.exchange.status == 200) {
            let whole = self.kept.concat();
            if let Ok(answer) = collect::from_body(api, &whole) {
                self.usage = answer.usage;
                self.finish = Some(answer.finish.map(|(said, _)| said).unwrap_or_default());
                complete = answer.blocks.into_iter().filter_map(|block| Call::of(block.content)).collect();
            }
        }
        complete
    }

    /// Records the answer, once.
    fn tell(&mut self) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        let Exchange { desk, request, started, status, content_type, keeps, retries, .. } = &self.exchange;
        // What a client sends again after an overload is still what it was.
        let again = *status == 408 || *status == 409 || *status == 429 || *status >= 500 || self.problem.is_some();
        if !again {
            desk.answered(*request);
        }
        if *keeps == Keeps::No {
            return;
        }
        let kept: Arc<[u8]> = self.kept.concat().into();
        let cut = self.size > kept.len() || self.problem.is_some();
        let body = BodyRecord { cut, ..BodyRecord::of(&kept) };
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let answer = RequestAnswer {
            status: *status,
            body: body.clone(),
            content_type: content_type.clone(),
            usage: counted(self.usage),
            finish: self.finish.take().filter(|finish| !finish.is_empty()),
            problem: self.problem.clone(),
            first_byte_ms: millis(self.first.unwrap_or_else(|| started.elapsed())),
            total_ms: millis(started.elapsed()),
            retries: *retries,
        };
        desk.log.step_with(*request, RequestStep::Answered(Box::new(answer)), (body, kept), Haste::Soon, None);
    }
}

impl Drop for AnswerTap {
    fn drop(&mut self) {
        if !self.told {
            self.problem.get_or_insert_with(|| "the agent went away before the end of the answer".to_owned());
            self.tell();
        }
    }
}

pub(super) fn counted(usage: Usage) -> TokenUsage {
    let Usage { input, output, cache_read, cache_written, reasoning } = usage;
    TokenUsage { input, output, cache_read, cache_written, reasoning }
}

fn take(
    event: StreamEvent<'_>,
    open: &mut BTreeMap<u32, Call>,
    complete: &mut Vec<Call>,
    usage: &mut Usage,
    finish: &mut Option<String>,
    problem: &mut Option<String>,
) {
    match event {
        StreamEvent::ToolCallStarted { block, id, name, .. } => {
            open.insert(block, Call { id: id.into(), name: name.into(), arguments: String::new() });
        }
        StreamEvent::ToolArguments { block, piece } => {
            if let Some(call) = open.get_mut(&block) {
                call.arguments.push_str(&piece);
            }
        }
        StreamEvent::ToolCallComplete { block, id, name, whole } => {
            let call = open.remove(&block);
            let arguments = whole.map(Into::into).or(call.map(|call| call.arguments)).unwrap_or_default();
            complete.push(Call { id: id.into(), name: name.into(), arguments });
        }
        StreamEvent::Usage(later) => usage.update(later),
        StreamEvent::Finished { reason, .. } => *finish = Some(reason.into()),
        StreamEvent::Error { kind, message, .. } => *problem = Some(format!("{kind}: {message}")),
        StreamEvent::Problem(found) => *problem = Some(found.to_string()),
        _ => {}
    }
}

/// Arguments as a tool gets them: JSON where they are, else text.
pub(super) fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
