//! A client that waits, without breaking it.
//!
//! For a while nothing is sent, so that whatever comes then is what the upstream says, status and all. After that the status is sent,
//! and the stream says in the client's own dialect that it is alive for as long as the person needs.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use sayso_review::{RequestEnd, TurnedAway};
use sayso_wire::Purpose;
use sayso_wire::stream::{Api, Begun, Refusal};
use tokio::sync::mpsc;
use tokio::time::Instant as Later;

use super::attribution::Attribution;
use super::body::{BodyError, Inner, Reply};
use super::calls::Answers;
use super::encoding::{self, Inflate};
use super::events::Position;
use super::own::{ended, unreachable, unreachable_message};
use super::sender::SendError;
use super::way::Way;
use super::{Asked, Outgoing, Proxy, Ticket, Verdict};
use super::{accept_plain, edited, onward, upstream};
use crate::desk::Tried;
use crate::log::now;
use crate::settings::Retry;

/// The most of an upstream's error that goes into a stream.
const MOST_ERROR: usize = 1 << 20;
/// Statuses of an upstream that has too much to do.
const OVERLOADED: [u16; 5] = [429, 502, 503, 504, 529];

/// A request that is to be sent, once that is decided.
pub(super) struct Sending {
    pub(super) proxy: Arc<Proxy>,
    pub(super) way: Arc<Way>,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) raw: Bytes,
}

type Sent = Result<Response<Incoming>, SendError>;

impl Sending {
    fn send(&self, outgoing: &Outgoing, headers: HeaderMap) -> impl Future<Output = Sent> + use<> {
        let (way, method) = (&*self.way, self.method.clone());
        let request = match &outgoing.body {
            None => onward(way, method, headers, upstream::whole(self.raw.clone())),
            Some(body) => edited(way, method, headers, body),
        };
        let sender = self.proxy.sender().clone();
        async move { sender.send(request).await }
    }

    /// Sends it, and passes the answer on as it is.
    pub(super) async fn now(self, outgoing: Outgoing) -> Response<Reply> {
        let started = Instant::now();
        match self.send(&outgoing, self.headers.clone()).await {
            Ok(answer) => self.proxy.looked_at(answer, asked(outgoing, started, 0)),
            Err(error) => {
                outgoing.unanswered.failed(unreachable_message(&self.way, &error));
                unreachable(outgoing.api, &self.way, &error)
            }
        }
    }

    /// Waits for a verdict.
    pub(super) async fn when_decided(self, mut ticket: Ticket, api: Api) -> Response<Reply> {
        let grace = self.way.settings.grace;
        let verdict = if ticket.purpose == Some(Purpose::Stream) {
            tokio::time::timeout(grace, ticket.verdict()).await.ok()
        } else {
            Some(ticket.verdict().await)
        };
        match verdict {
            Some(Verdict::Send(outgoing)) => self.now(outgoing).await,
            Some(Verdict::End(why)) => ended(api, &why),
            None => self.commit(ticket, api),
        }
    }

    /// Sends the status, and keeps the stream alive until there is a verdict.
    fn commit(self, ticket: Ticket, api: Api) -> Response<Reply> {
        let (frames, body) = mpsc::channel(8);
        let every = self.way.settings.keep_alive;
        let held = Held { api, every, frames, silent_since: Mutex::new(Later::now()) };
        tokio::spawn(held.run(self, ticket));
        let mut response = Response::new(Reply(Inner::Held(body)));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

fn asked(outgoing: Outgoing, started: Instant, retries: u32) -> Asked {
    let Outgoing { unanswered, api, whose, .. } = outgoing;
    let attribution = Attribution::Headers(Arc::new(whose));
    Asked { unanswered, api, attribution, started, retries, answers: Answers::Agent }
}

/// The client is gone.
struct Gone;

/// A stream that has begun.
struct Held {
    api: Api,
    every: Duration,
    frames: mpsc::Sender<Result<Bytes, BodyError>>,
    /// When the client last heard something.
    silent_since: Mutex<Later>,
}

impl Held {
    async fn run(self, sending: Sending, ticket: Ticket) {
        // Whatever is under way ends with it, and the ticket says that the client is gone.
        let _ = self.hold(sending, ticket).await;
    }

    /// Does something while the stream is kept alive.
    async fn alive<T>(&self, work: impl Future<Output = T>) -> Result<T, Gone> {
        self.alive_at(&Position::default(), work).await
    }

    /// The same in the midst of an answer.
    async fn alive_at<T>(&self, position: &Position, work: impl Future<Output = T>) -> Result<T, Gone> {
        let mut work = std::pin::pin!(work);
        loop {
            // Since it was last heard of, and not since this was begun: one may do many things of which each takes less.
            let next = *self.silent_since.lock().unwrap_or_else(PoisonError::into_inner) + self.every;
            tokio::select! {
                done = &mut work => return Ok(done),
                () = self.frames.closed() => return Err(Gone),
                () = tokio::time::sleep_until(next), if position.is_between_events() => {
                    self.write(Bytes::from_static(self.api.keep_alive())).await?;
                }
            }
        }
    }

    async fn write(&self, bytes: Bytes) -> Result<(), Gone> {
        *self.silent_since.lock().unwrap_or_else(PoisonError::into_inner) = Later::now();
        self.frames.send(Ok(bytes)).await.map_err(|_| Gone)
    }

    async fn break_off(&self, refusal: &Refusal<'_>) -> Result<(), Gone> {
        self.write(self.api.end_for_good(refusal, Begun::No).into()).await
    }

    async fn hold(&self, sending: Sending, mut ticket: Ticket) -> Result<(), Gone> {
        // At once, so that the client knows that there is a stream.
        self.write(Bytes::from_static(self.api.keep_alive())).await?;
        match self.alive(ticket.verdict()).await? {
            Verdict::Send(outgoing) => self.send(&sending, outgoing).await,
            Verdict::End(RequestEnd::Canceled | RequestEnd::CanceledBefore) => self.break_off(&Refusal::Canceled).await,
            // Not for good: the next engine goes on with it, should it come again.
            Verdict::End(why @ RequestEnd::EngineStopped) => {
                self.write(self.api.break_off(&Refusal::Unavailable { message: &why.message() }).into()).await
            }
            Verdict::End(why) => self.break_off(&Refusal::Refused { message: &why.told() }).await,
        }
    }

    async fn send(&self, sending: &Sending, outgoing: Outgoing) -> Result<(), Gone> {
        let settings = &sending.way.settings;
        let mut headers = sending.headers.clone();
        // What is in the stream by now is not compressed.
        accept_plain(&mut headers);
        let started = Instant::now();
        let mut retries = 0;
        // It takes as long as the upstream wants, which a person may not.
        let mut tries = sending.proxy.desk.tries(outgoing.unanswered.request);
        let mut pause = Duration::ZERO;
        let sent = loop {
            let once = async {
                tokio::time::sleep(pause).await;
                sending.send(&outgoing, headers.clone()).await
            };
            let once = async {
                tokio::select! {
                    sent = once => Some(sent),
                    () = tries.canceled() => None,
                }
            };
            let Some(sent) = self.alive(once).await? else { break None };
            let Some(next) = turned_away(&settings.retry, retries, &sent) else { break Some(sent) };
            (retries, pause) = (retries + 1, next);
            tries.turned_away(why_turned_away(&sending.way, &sent, retries, pause));
        };
        let (Tried::On, Some(sent)) = (tries.over(), sent) else {
            outgoing.unanswered.ended();
            return self.break_off(&Refusal::Canceled).await;
        };
        match sent {
            Ok(answer) => self.answer(sending, outgoing, answer, started, retries).await,
            Err(error) => {
                let message = unreachable_message(&sending.way, &error);
                outgoing.unanswered.failed(message.clone());
                self.break_off(&Refusal::Refused { message: &message }).await
            }
        }
    }

    /// Passes an answer on, or says in the stream what went wrong.
    async fn answer(
        &self,
        sending: &Sending,
        outgoing: Outgoing,
        answer: Response<Incoming>,
        started: Instant,
        tried: u32,
    ) -> Result<(), Gone> {
        let status = answer.status();
        let encoding = answer.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let response = sending.proxy.looked_at(answer, asked(outgoing, started, tried));
        let mut body = response.into_body();
        if status != StatusCode::OK {
            let said = self.alive(Limited::new(body, MOST_ERROR).collect()).await?;
            let said = said.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let said = encoding::plain(encoding.as_deref(), said, MOST_ERROR);
            return self.break_off(&Refusal::Upstream { status: status.as_u16(), body: &said }).await;
        }
        let mut position = Position::default();
        // Some compress what they were asked to send as it is, and the client can no longer be told that it is.
        let mut inflate = Inflate::new(encoding.as_deref());
        loop {
            let next = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx));
            let frame = self.alive_at(&position, next).await?;
            match frame {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    let data = if inflate.is_plain() { data } else { inflate.feed(&data).into() };
                    if inflate.is_broken() {
                        let message = "the model's answer is compressed in a way that sayso cannot read";
                        return self.break_off(&Refusal::Refused { message }).await;
                    }
                    position.pass(&data);
                    self.write(data).await?;
                }
                // As a client of the upstream itself would see it.
                Some(Err(error)) => return self.frames.send(Err(error)).await.map_err(|_| Gone),
                None => return Ok(()),
            }
        }
    }
}

/// How long to wait before an upstream is tried again, if it is to be.
fn turned_away(retry: &Retry, retries: u32, sent: &Sent) -> Option<Duration> {
    match sent {
        Ok(answer) if OVERLOADED.contains(&answer.status().as_u16()) => wait(retry, retries, answer.headers()),
        Err(SendError::Connect(_)) => wait(retry, retries, &HeaderMap::new()),
        Ok(_) | Err(SendError::Broken(_)) => None,
    }
}

/// The same for a person.
fn why_turned_away(way: &Way, sent: &Sent, tried: u32, pause: Duration) -> TurnedAway {
    let (status, message) = match sent {
        Ok(answer) => (Some(answer.status().as_u16()), format!("the upstream answered {}", answer.status().as_str())),
        Err(error) => (None, unreachable_message(way, error)),
    };
    let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
    TurnedAway { tried, status, message, again: now().saturating_add(pause) }
}

/// The longest that an upstream may ask to wait. Who asks for more has nothing to give for now, which is for the agent to know.
const PATIENCE: Duration = Duration::from_mins(5);

/// How long to wait before trying again; `None` if it has been tried often enough, or the upstream says that it is of no use.
fn wait(retry: &Retry, tried: u32, headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if tried >= retry.times || text("x-should-retry") == Some("false") {
        return None;
    }
    let number = |name| text(name)?.parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|millis| millis / 1e3).or_else(|| number(RETRY_AFTER.as_str()));
    match seconds.filter(|seconds| *seconds >= 0.0) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok().filter(|asked| *asked <= PATIENCE),
        None => Some(retry.first.saturating_mul(2_u32.saturating_pow(tried)).min(retry.longest)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use http::HeaderName;

    use super::*;

    #[test]
    fn an_upstream_is_tried_again_when_it_says_and_not_if_that_is_of_no_use() {
        let retry = Retry { times: 9, first: Duration::from_secs(1), longest: Duration::from_secs(30) };
        for (name, value, tried, millis) in [
            ("retry-after", "7", 0, Some(7_000)),
            ("retry-after", "7", 9, None),
            ("retry-after", "60", 0, Some(60_000)),
            ("retry-after", "3600", 0, None),
            ("retry-after", "1e20", 1, None),
            ("retry-after", "inf", 0, None),
            ("retry-after", "-1", 0, Some(1_000)),
            ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT", 2, Some(4_000)),
            ("retry-after-ms", "250", 0, Some(250)),
            ("x-should-retry", "false", 0, None),
            ("x-should-retry", "true", 0, Some(1_000)),
            ("x-other", "1", 8, Some(30_000)),
        ] {
            let headers =
                HeaderMap::from_iter([(name.parse::<HeaderName>().unwrap(), HeaderValue::from_static(value))]);
            assert_eq!(wait(&retry, tried, &headers), millis.map(Duration::from_millis), "{name}: {value}");
        }
    }
}
