//! Holding a client without breaking it.
//!
//! During the grace period the client gets no byte, so the status and headers that it gets are the upstream's own. After that, a stream is
//! started: the client gets status 200 and keep-alive events in the format of its API, for as long as the person needs. From then on,
//! errors can only be reported inside the stream, and overloaded upstreams are retried here.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use sayso_review::{BUILT_IN_AGENT, RequestEnd};
use sayso_wire::RequestPurpose;
use sayso_wire::stream::{Api, ReplyError, StreamStarted};
use tokio::sync::mpsc;
use tokio::time::Instant as TokioInstant;

use super::body::{BodyError, Reply, ReplyBody};
use super::encoding::{self, Inflate};
use super::forward::{accept_identity, edited_request, upstream_request};
use super::local_response::{bad_gateway, terminated, upstream_error};
use super::retry::{SendResult, describe_retry, retry_delay};
use super::route::Route;
use super::sse::SseBoundary;
use super::tool_calls::Audience;
use super::{Proxy, ResponseContext, upstream};
use crate::interceptor::{AttemptsEnd, AttributionSource, ForwardRequest, HoldGuard, HoldOutcome};
use crate::lock;

/// Bytes of an upstream's error body that are copied into a stream.
const MAX_ERROR_BYTES: usize = 1 << 20;
/// Frames that are buffered for a client that reads slowly.
const FRAME_BUFFER: usize = 8;

/// A buffered request, before it is sent.
pub(super) struct PendingForward {
    pub(super) proxy: Arc<Proxy>,
    pub(super) route: Arc<Route>,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) raw: Bytes,
}

impl PendingForward {
    fn send(&self, outgoing: &ForwardRequest, headers: HeaderMap) -> impl Future<Output = SendResult> + use<> {
        let (route, method) = (&*self.route, self.method.clone());
        let request = match &outgoing.body {
            None => upstream_request(route, method, headers, upstream::buffered(self.raw.clone())),
            Some(body) => edited_request(route, method, headers, body),
        };
        let sender = self.proxy.sender().clone();
        async move { sender.send(request).await }
    }

    /// Sends the request, and forwards the response verbatim.
    pub(super) async fn forward(self, outgoing: ForwardRequest) -> Response<Reply> {
        let started = Instant::now();
        match self.send(&outgoing, self.headers.clone()).await {
            Ok(response) => self.proxy.tap_response(response, response_context(outgoing, started, 0)),
            Err(error) => {
                let (request, api) = (outgoing.in_flight.request, outgoing.api);
                outgoing.in_flight.failed(upstream_error(&self.route, &error));
                bad_gateway(Some(request), api, &self.route, &error)
            }
        }
    }

    /// Waits for the outcome of a hold. A client that expects a stream gets one after the grace period.
    pub(super) async fn forward_when_resumed(self, mut guard: HoldGuard, api: Api) -> Response<Reply> {
        let grace = self.route.settings.grace;
        // The built-in agent has no time limit. It gets the status once there is one, so that a cancelled request is no stream.
        let is_built_in = self.route.run.agent.as_deref() == Some(BUILT_IN_AGENT);
        let outcome = if guard.purpose == Some(RequestPurpose::Stream) && !is_built_in {
            tokio::time::timeout(grace, guard.outcome()).await.ok()
        } else {
            Some(guard.outcome().await)
        };
        match outcome {
            Some(HoldOutcome::Forward(outgoing)) => self.forward(outgoing).await,
            Some(HoldOutcome::Terminate(end)) => terminated(api, &end),
            None => self.start_stream(guard, api),
        }
    }

    /// Sends status 200, and continues the hold in a task.
    fn start_stream(self, guard: HoldGuard, api: Api) -> Response<Reply> {
        let (frames, body) = mpsc::channel(FRAME_BUFFER);
        let interval = self.route.settings.keep_alive;
        let stream = KeepAliveStream { api, interval, frames, last_write: Mutex::new(TokioInstant::now()) };
        tokio::spawn(stream.run(self, guard));
        let mut response = Response::new(Reply(ReplyBody::Held(body)));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

fn response_context(outgoing: ForwardRequest, started: Instant, retries: u32) -> ResponseContext {
    let ForwardRequest { in_flight, api, attribution, .. } = outgoing;
    let attribution = AttributionSource::Headers(Arc::new(attribution));
    ResponseContext { in_flight, api, attribution, started, retries, audience: Audience::Agent }
}

/// The client closed its connection.
struct ClientDisconnected;

/// A stream that was started before the upstream's response.
struct KeepAliveStream {
    api: Api,
    interval: Duration,
    frames: mpsc::Sender<Result<Bytes, BodyError>>,
    last_write: Mutex<TokioInstant>,
}

impl KeepAliveStream {
    async fn run(self, pending: PendingForward, guard: HoldGuard) {
        // After a disconnect, dropping the guard or the request in flight records the end.
        let _ = self.hold(pending, guard).await;
    }

    /// Awaits a future, and sends keep-alive events meanwhile.
    async fn with_keep_alive<T>(&self, work: impl Future<Output = T>) -> Result<T, ClientDisconnected> {
        self.with_keep_alive_at(&SseBoundary::default(), work).await
    }

    /// Awaits a future, and sends keep-alive events meanwhile if the stream is between two events.
    async fn with_keep_alive_at<T>(
        &self,
        boundary: &SseBoundary,
        work: impl Future<Output = T>,
    ) -> Result<T, ClientDisconnected> {
        let mut work = std::pin::pin!(work);
        loop {
            // Measured from the last write, not from the start of this future: a series of short futures must not delay the event.
            let next = *lock(&self.last_write) + self.interval;
            tokio::select! {
                done = &mut work => return Ok(done),
                () = self.frames.closed() => return Err(ClientDisconnected),
                () = tokio::time::sleep_until(next), if boundary.is_between_events() => {
                    self.write(Bytes::from_static(self.api.keep_alive())).await?;
                }
            }
        }
    }

    async fn write(&self, bytes: Bytes) -> Result<(), ClientDisconnected> {
        *lock(&self.last_write) = TokioInstant::now();
        self.frames.send(Ok(bytes)).await.map_err(|_| ClientDisconnected)
    }

    async fn write_error(&self, error: &ReplyError<'_>) -> Result<(), ClientDisconnected> {
        self.write(self.api.terminal_error(error, StreamStarted::No).into()).await
    }

    async fn hold(&self, pending: PendingForward, mut guard: HoldGuard) -> Result<(), ClientDisconnected> {
        // The first event at once: some clients time out on an empty stream.
        self.write(Bytes::from_static(self.api.keep_alive())).await?;
        match self.with_keep_alive(guard.outcome()).await? {
            HoldOutcome::Forward(outgoing) => self.send(&pending, outgoing).await,
            HoldOutcome::Terminate(RequestEnd::Canceled | RequestEnd::CanceledBefore) => {
                self.write_error(&ReplyError::Canceled).await
            }
            // Retryable: the next engine continues with the edits.
            HoldOutcome::Terminate(end @ RequestEnd::EngineStopped) => {
                let error = ReplyError::Unavailable { message: &end.message() };
                self.write(self.api.retryable_end(&error).into()).await
            }
            HoldOutcome::Terminate(end) => {
                self.write_error(&ReplyError::Rejected { message: &end.agent_message() }).await
            }
        }
    }

    async fn send(&self, pending: &PendingForward, outgoing: ForwardRequest) -> Result<(), ClientDisconnected> {
        let started = Instant::now();
        let Some((result, retries)) = self.send_with_retries(pending, &outgoing).await? else {
            outgoing.in_flight.ended();
            return self.write_error(&ReplyError::Canceled).await;
        };
        match result {
            Ok(response) => {
                let (status, encoding) = (response.status(), content_encoding(&response));
                let context = response_context(outgoing, started, retries);
                let body = pending.proxy.tap_response(response, context).into_body();
                if status == StatusCode::OK {
                    self.forward_body(body, encoding.as_deref()).await
                } else {
                    self.forward_error(status, body, encoding.as_deref()).await
                }
            }
            Err(error) => {
                let message = upstream_error(&pending.route, &error);
                outgoing.in_flight.failed(message.clone());
                self.write_error(&ReplyError::Rejected { message: &message }).await
            }
        }
    }

    /// Sends the request until the result is final. Returns the number of retries; `None` if a person canceled the request.
    async fn send_with_retries(
        &self,
        pending: &PendingForward,
        outgoing: &ForwardRequest,
    ) -> Result<Option<(SendResult, u32)>, ClientDisconnected> {
        let mut headers = pending.headers.clone();
        // The started stream is not compressed.
        accept_identity(&mut headers);
        let mut attempts = pending.proxy.interceptor.start_attempts(outgoing.in_flight.request);
        let (mut retries, mut delay) = (0, Duration::ZERO);
        let result = loop {
            let attempt = async {
                tokio::time::sleep(delay).await;
                pending.send(outgoing, headers.clone()).await
            };
            let attempt = async {
                tokio::select! {
                    result = attempt => Some(result),
                    () = attempts.canceled() => None,
                }
            };
            let Some(result) = self.with_keep_alive(attempt).await? else { break None };
            match retry_delay(&pending.route.settings.retry, retries, &result) {
                Some(next) => (retries, delay) = (retries + 1, next),
                None => break Some(result),
            }
            attempts.record_retry(describe_retry(&pending.route, &result, retries, delay));
        };
        // A cancellation may arrive together with the result.
        Ok(match attempts.finish() {
            AttemptsEnd::Settled => result.map(|result| (result, retries)),
            AttemptsEnd::Canceled => None,
        })
    }

    /// Reports an error status inside the stream.
    async fn forward_error(
        &self,
        status: StatusCode,
        body: Reply,
        encoding: Option<&str>,
    ) -> Result<(), ClientDisconnected> {
        let body = self.with_keep_alive(Limited::new(body, MAX_ERROR_BYTES).collect()).await?;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let body = encoding::decode_or_keep(encoding, body, MAX_ERROR_BYTES);
        self.write_error(&ReplyError::Upstream { status: status.as_u16(), body: &body }).await
    }

    /// Forwards a stream. Some upstreams compress it although they were asked not to, so it is decompressed here.
    async fn forward_body(&self, mut body: Reply, encoding: Option<&str>) -> Result<(), ClientDisconnected> {
        let mut boundary = SseBoundary::default();
        let mut inflate = Inflate::new(encoding);
        loop {
            let next = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx));
            match self.with_keep_alive_at(&boundary, next).await? {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    let data = if inflate.is_identity() { data } else { inflate.feed(&data).into() };
                    if inflate.is_broken() {
                        let message = "sayso cannot decompress the model's response";
                        return self.write_error(&ReplyError::Rejected { message }).await;
                    }
                    boundary.feed(&data);
                    self.write(data).await?;
                }
                // The client sees the same broken connection as without sayso.
                Some(Err(error)) => return self.frames.send(Err(error)).await.map_err(|_| ClientDisconnected),
                None => return Ok(()),
            }
        }
    }
}

fn content_encoding(response: &Response<Incoming>) -> Option<String> {
    response.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok()).map(str::to_owned)
}
