//! Decodes and records a response while it is forwarded.
//!
//! A tool call reaches the engine when it is complete, and before its last bytes reach the agent. So snapshots of the files that it names
//! are taken before the agent can run it, and a call of a held tool waits for a person.

mod record;
pub(super) mod summary;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use sayso_review::RequestId;
use sayso_wire::stream::{Api, Decoder, ReplyError, StreamStarted, collect};
use tokio::time::{Instant as TokioInstant, Sleep};

use super::body::BodyError;
use super::encoding::Inflate;
use super::sse::{CompleteEvents, HoldbackBuffer, MAX_RESPONSE_BYTES, SseBoundary};
use super::tool_calls::{CallDecision, ToolCall, ToolCallHold};
use crate::interceptor::{Interceptor, Recording};
use crate::recorder::RecordBarrier;
use record::BodyDecoding;
use summary::ResponseSummary;

/// A request and the head of its response.
pub(super) struct Exchange {
    pub(super) interceptor: Arc<Interceptor>,
    pub(super) request: RequestId,
    pub(super) api: Option<Api>,
    pub(super) started: Instant,
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) encoding: Option<String>,
    pub(super) recording: Recording,
    pub(super) retries: u32,
    /// Orders the response's entry after the request's.
    pub(super) barrier: Option<Arc<RecordBarrier>>,
    pub(super) tool_calls: ToolCallHold,
}

impl Exchange {
    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// A forwarded response body.
pub(super) struct ResponseTap {
    inner: Incoming,
    exchange: Exchange,
    /// Time from the start of the request to the first byte.
    first_byte: Option<Duration>,
    inflate: Inflate,
    /// Decodes a stream; `None` for a non-streamed response.
    decoder: Option<Decoder>,
    summary: ResponseSummary,
    holdback: HoldbackBuffer,
    format: ResponseFormat,
    /// `true` after the first forwarded byte.
    started: bool,
    /// Decompressed bytes for the journal, at most [`MAX_RESPONSE_BYTES`].
    captured: Vec<u8>,
    /// Decompressed bytes in all.
    size: usize,
    decoding: BodyDecoding,
    /// Upstream failure, returned after the bytes before it.
    error: Option<BodyError>,
    trailers: Option<Frame<Bytes>>,
    pending_calls: Option<PendingCalls>,
    boundary: SseBoundary,
    ended: bool,
    recorded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseFormat {
    EventStream,
    Body,
}

/// A frame that is held until the tool calls in it are decided.
struct PendingCalls {
    frame: Option<Frame<Bytes>>,
    decision: Pin<Box<dyn Future<Output = CallDecision> + Send>>,
    /// Fires when the next keep-alive event is due.
    keep_alive: Pin<Box<Sleep>>,
    interval: Duration,
}

impl ResponseTap {
    pub(super) fn new(inner: Incoming, exchange: Exchange) -> Self {
        let content_type = exchange.content_type.as_deref().map(str::to_ascii_lowercase);
        let is_stream = content_type.is_some_and(|content_type| content_type.starts_with("text/event-stream"));
        let decoder = exchange.api.filter(|_| is_stream).map(Api::decoder);
        let inflate = Inflate::new(exchange.encoding.as_deref());
        let holds_calls = exchange.tool_calls.is_enabled();
        let holdback = match (&decoder, exchange.api) {
            // A held call may be anywhere in the body, and the agent may parse the body while it receives it.
            (None, Some(_)) if exchange.is_success() && holds_calls => HoldbackBuffer::All(BytesMut::new()),
            (None, Some(_)) if exchange.is_success() => HoldbackBuffer::Frame(Bytes::new()),
            (Some(_), _) if inflate.is_identity() && holds_calls => HoldbackBuffer::Event(CompleteEvents::default()),
            _ => HoldbackBuffer::None,
        };
        Self {
            inner,
            exchange,
            first_byte: None,
            inflate,
            decoder,
            summary: ResponseSummary::default(),
            holdback,
            format: if is_stream { ResponseFormat::EventStream } else { ResponseFormat::Body },
            started: false,
            captured: Vec::new(),
            size: 0,
            decoding: BodyDecoding::Pending,
            error: None,
            trailers: None,
            pending_calls: None,
            boundary: SseBoundary::default(),
            ended: false,
            recorded: false,
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.ended && self.pending_calls.is_none() && self.error.is_none() && self.trailers.is_none()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        // A denied call replaces the rest of the body.
        if self.exchange.tool_calls.is_enabled() { SizeHint::default() } else { self.inner.size_hint() }
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = self.poll_next(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.boundary.feed(data);
            let recorder = &self.exchange.interceptor.recorder;
            if !std::mem::replace(&mut self.started, true) && self.exchange.barrier.is_some() && recorder.has_backlog()
            {
                // In a task, so that the wake-up comes after this frame was written.
                let recorder = Arc::clone(recorder);
                tokio::spawn(async move { recorder.drain_now() });
            }
        }
        polled
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            if self.pending_calls.is_some() {
                return self.poll_calls(cx);
            }
            if let Some(error) = self.error.take() {
                return Poll::Ready(Some(Err(error)));
            }
            if self.ended {
                return Poll::Ready(self.trailers.take().map(Ok));
            }
            let received = ready!(Pin::new(&mut self.inner).poll_frame(cx));
            let (frame, calls) = match received {
                Some(Ok(frame)) => {
                    self.first_byte.get_or_insert_with(|| self.exchange.started.elapsed());
                    let calls = frame.data_ref().map(|data| self.decode(data)).unwrap_or_default();
                    // With a `content-length`, the last frame is known, and hyper does not poll again.
                    let is_last = self.inner.is_end_stream();
                    let calls = if is_last { self.finish(calls) } else { calls };
                    (self.release(frame, is_last), calls)
                }
                Some(Err(error)) => {
                    self.summary.problem.get_or_insert_with(|| format!("the answer was cut off: {error}"));
                    self.error = Some(error.into());
                    self.ended = true;
                    self.record();
                    (self.release_rest(), Vec::new())
                }
                None => {
                    let calls = self.finish(Vec::new());
                    (self.release_rest(), calls)
                }
            };
            if self.must_block() {
                return Poll::Ready(Some(self.block_undecodable()));
            }
            match (frame, calls.is_empty()) {
                (Some(frame), true) => return Poll::Ready(Some(Ok(frame))),
                (frame, false) => self.hold(frame, calls),
                (None, true) => {}
            }
        }
    }

    /// Marks the end of the response, and returns the calls that are complete now.
    fn finish(&mut self, mut calls: Vec<ToolCall>) -> Vec<ToolCall> {
        self.ended = true;
        calls.extend(self.decode_end());
        // With calls, the response is recorded after their decision.
        if calls.is_empty() && !self.must_block() {
            self.record();
        }
        calls
    }

    /// Returns the bytes that may be forwarded after a received frame.
    fn release(&mut self, frame: Frame<Bytes>, is_last: bool) -> Option<Frame<Bytes>> {
        let data = match frame.into_data() {
            Ok(data) => self.holdback.feed(data),
            Err(trailers) => {
                // Trailers end a body.
                self.trailers = Some(trailers);
                self.ended = true;
                return self.release_rest();
            }
        };
        let data = match (is_last.then(|| self.holdback.finish()), data.is_empty()) {
            (None, _) => data,
            (Some(rest), true) => rest,
            (Some(rest), false) => [data, rest].concat().into(),
        };
        Some(data).filter(|data| !data.is_empty()).map(Frame::data)
    }

    fn release_rest(&mut self) -> Option<Frame<Bytes>> {
        Some(self.holdback.finish()).filter(|data| !data.is_empty()).map(Frame::data)
    }

    /// Holds a frame until the calls in it are decided.
    fn hold(&mut self, frame: Option<Frame<Bytes>>, calls: Vec<ToolCall>) {
        let interval = self.exchange.interceptor.settings().keep_alive;
        let decision = Box::pin(self.exchange.tool_calls.clone().decide(calls));
        let keep_alive = Box::pin(tokio::time::sleep(interval));
        self.pending_calls = Some(PendingCalls { frame, decision, keep_alive, interval });
    }

    fn poll_calls(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(pending) = &mut self.pending_calls else { return Poll::Ready(None) };
        if let Poll::Ready(decision) = pending.decision.as_mut().poll(cx) {
            let frame = pending.frame.take();
            self.pending_calls = None;
            return match decision {
                CallDecision::Forward => {
                    if self.ended {
                        self.record();
                    }
                    Poll::Ready(frame.map(Ok))
                }
                CallDecision::Deny(message) => Poll::Ready(Some(self.terminate("a tool call was denied", &message))),
            };
        }
        ready!(pending.keep_alive.as_mut().poll(cx));
        let next = TokioInstant::now() + pending.interval;
        pending.keep_alive.as_mut().reset(next);
        // The timer fired, so it must be polled again to register the new deadline.
        cx.waker().wake_by_ref();
        let accepts_event = self.decoder.is_some() && self.inflate.is_identity() && self.boundary.is_between_events();
        match (accepts_event, self.exchange.api) {
            (true, Some(api)) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(api.keep_alive()))))),
            // A keep-alive event would corrupt a body, a compressed stream, or an incomplete event.
            _ => Poll::Pending,
        }
    }

    /// `true` if the response must end here: tool calls are held, and a call in an undecodable part would be missed.
    fn must_block(&self) -> bool {
        self.summary.undecodable.is_some() && self.exchange.tool_calls.is_enabled() && self.exchange.is_success()
    }

    fn block_undecodable(&mut self) -> Result<Frame<Bytes>, BodyError> {
        let problem = self.summary.undecodable.take().unwrap_or_default();
        let message = format!(
            "sayso cannot read this answer ({problem}), so it cannot tell if the answer calls a tool that `hold_tools` under \
             [request] holds"
        );
        self.terminate(&format!("it was not forwarded: {problem}"), &message)
    }

    /// Ends the response early, with an error to the agent.
    fn terminate(&mut self, problem: &str, message: &str) -> Result<Frame<Bytes>, BodyError> {
        self.summary.problem = Some(problem.to_owned());
        self.ended = true;
        self.error = None;
        self.trailers = None;
        self.record();
        self.replacement(message)
    }

    /// The error that replaces the rest of the response.
    fn replacement(&self, message: &str) -> Result<Frame<Bytes>, BodyError> {
        let error = ReplyError::Rejected { message };
        let bytes = match self.exchange.api {
            Some(api) if self.format == ResponseFormat::EventStream => api.terminal_error(&error, StreamStarted::Yes),
            Some(api) if !self.started => api.error_reply(&error).body,
            // A started body cannot be replaced; the connection breaks instead.
            _ => return Err(message.into()),
        };
        Ok(Frame::data(bytes.into()))
    }

    /// Decodes received bytes, and returns the calls that are complete now.
    fn decode(&mut self, chunk: &Bytes) -> Vec<ToolCall> {
        let inflated;
        let chunk: &[u8] = if self.inflate.is_identity() {
            chunk
        } else {
            inflated = self.inflate.feed(chunk);
            if self.inflate.is_broken() {
                self.summary.mark_undecodable(&"its compression is unknown or broken");
            }
            &inflated
        };
        self.size += chunk.len();
        // A non-streamed response is decoded at its end, so it is captured even if it is not recorded.
        let captures = self.exchange.recording == Recording::Enabled || self.decoder.is_none();
        if captures && self.size <= MAX_RESPONSE_BYTES {
            self.captured.extend_from_slice(chunk);
        }
        let mut calls = Vec::new();
        let Self { decoder, summary, .. } = self;
        if let Some(decoder) = decoder {
            decoder.feed(chunk, &mut |positioned| summary.add(positioned.event, &mut calls));
        }
        calls
    }

    /// Decodes the end of a stream, or a complete non-streamed response.
    fn decode_end(&mut self) -> Vec<ToolCall> {
        let mut calls = Vec::new();
        let Self { decoder, summary, captured, size, decoding, exchange, .. } = self;
        if let Some(mut decoder) = decoder.take() {
            decoder.end(&mut |positioned| summary.add(positioned.event, &mut calls));
        } else if let Some(api) = exchange.api.filter(|_| *decoding == BodyDecoding::Pending && exchange.is_success()) {
            let may_contain_call = collect::may_contain_tool_call(api, captured);
            let decodes_now = may_contain_call || exchange.tool_calls.is_enabled();
            *decoding = if decodes_now { BodyDecoding::Done } else { BodyDecoding::Deferred(api) };
            match decodes_now.then(|| collect::from_body(api, captured)) {
                Some(Ok(response)) => calls = summary.add_response(response),
                Some(Err(_)) if *size > captured.len() => summary.mark_undecodable(&"it is too large"),
                Some(Err(error)) if may_contain_call => summary.mark_undecodable(&error),
                // Without the marker of a tool call, the format does not matter.
                Some(Err(_)) | None => {}
            }
        }
        calls
    }
}

impl Drop for ResponseTap {
    fn drop(&mut self) {
        if !self.recorded {
            let is_stopping = self.exchange.interceptor.is_shutting_down();
            let cause = if is_stopping { "sayso stopped" } else { "the agent went away" };
            self.summary.problem.get_or_insert_with(|| format!("{cause} before the end of the answer"));
            self.record();
        }
    }
}
