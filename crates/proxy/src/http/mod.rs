//! Model traffic over HTTP: passed on verbatim, or held until a person has looked at it.

mod answer;
mod attribution;
mod body;
mod calls;
mod encoding;
mod events;
pub(crate) mod headers;
mod hold;
mod own;
mod pool;
mod replay;
mod said;
mod sender;
mod taker;
mod tap;
mod upstream;
mod way;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use sayso_wire::stream::Api;

pub use body::{BodyError, Reply};
pub use replay::{ReplayError, Replayed, Which};

use crate::desk::{Arrived, Came, Complete, Desk, Keeps, Outgoing, Signed, Taken, Ticket, Unanswered, Verdict};
use crate::log::now;
use crate::proxy::{Place, Proxy};
use crate::settings::{Keep, Settings};
use answer::{AnswerTap, Exchange};
use attribution::Attribution;
use body::{Inner, Outbound, TooLarge};
use calls::{Answers, Calls};
use encoding::{Encoding, Inflate};
use own::{ended, plain, refused, too_large, unreachable, unreachable_message};
pub(crate) use sender::Sender;
use taker::Wanted;
use tap::RequestTap;
pub(crate) use way::{Way, Ways};

/// How much of a compressed body is enough to tell whose it is.
const BEGINNING: usize = 4 << 10;
/// How long a request may take to arrive whole.
const ARRIVAL: Duration = Duration::from_mins(5);

/// What an answer belongs to.
struct Asked {
    unanswered: Unanswered,
    api: Option<Api>,
    attribution: Attribution,
    started: Instant,
    /// How often it was sent before.
    retries: u32,
    answers: Answers,
}

/// Whether what passes is recorded.
fn keeps(settings: &Settings) -> Keeps {
    if settings.keep == Keep::All { Keeps::Yes } else { Keeps::No }
}

impl Proxy {
    /// Serves a request beneath `/p/`.
    pub async fn serve(self: Arc<Self>, request: Request<Incoming>) -> Response<Reply> {
        let settings = self.desk.settings();
        let most = settings.most_at_once;
        let way = match self.way(&request, settings) {
            Ok(way) => way,
            Err(refused) => return *refused,
        };
        // Held until the head of the answer is there, or the request waits for a person.
        let Some(place) = self.place(most) else {
            let message = "too many requests are under way; raise `most_at_once` under [request]";
            let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, message);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return response;
        };
        self.route(way, request, place).await
    }

    async fn route(self: Arc<Self>, way: Arc<Way>, request: Request<Incoming>, place: Place) -> Response<Reply> {
        let upgrades =
            request.headers().get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
        if upgrades {
            // Clients that prefer a WebSocket fall back to HTTP, which can be looked at.
            let mut response =
                plain(StatusCode::UPGRADE_REQUIRED, "sayso passes on HTTP; a WebSocket cannot be looked at");
            response.headers_mut().insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
            return response;
        }
        let api = way.api.filter(|_| request.method() == Method::POST);
        let length = request.body().size_hint().exact();
        let most = way.settings.largest_body;
        // What nobody looks at may be of any size.
        let Some(api) = api else { return Box::pin(self.untouched(way, request)).await };
        if length.is_some_and(|length| length > most as u64) {
            return too_large(Some(api), most);
        }
        if self.desk.is_quiet()
            && let Some(attribution) = way.attribution(request.headers())
        {
            return self.pass(way, api, attribution, request).await;
        }
        self.remember(&way, request.headers());
        let head = way.head(request.headers());
        // In a box, so that what only passes is no larger than it need be.
        Box::pin(self.hold(way, api, head, request, place)).await
    }

    /// Passes on what is no request to a model.
    async fn untouched(&self, way: Arc<Way>, request: Request<Incoming>) -> Response<Reply> {
        let (parts, body) = request.into_parts();
        let onward = onward(&way, parts.method, parts.headers, Outbound::Passed(body));
        match self.sender().send(onward).await {
            Ok(answer) => passed(answer),
            Err(error) => unreachable(None, &way, &error),
        }
    }

    fn came(way: &Way, method: &Method, headers: &HeaderMap, head: sayso_wire::Head) -> Came {
        let encoding = headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let query = way.path.split_once('?').map(|(_, query)| query);
        let deadline = headers::patience(headers).map(|seconds| now().saturating_add((seconds * 1e3) as i64));
        Came {
            run: way.run.clone(),
            upstream: way.upstream.clone(),
            server: way.server.clone(),
            method: method.to_string(),
            encoding,
            key: if head.session().is_none() { headers::key_hash(headers, query) } else { None },
            signed: if headers::is_signed(headers, query) { Signed::Yes } else { Signed::No },
            deadline,
            replay_of: None,
            head,
        }
    }

    /// Passes on a request that nobody needs to look at before, while it comes.
    async fn pass(
        self: Arc<Self>,
        way: Arc<Way>,
        api: Api,
        attribution: Attribution,
        request: Request<Incoming>,
    ) -> Response<Reply> {
        let (parts, body) = request.into_parts();
        let id = self.desk.number();
        let most = way.settings.largest_body;
        let keeps = keeps(&way.settings);
        let started = Instant::now();
        let mut unanswered = self.desk.unanswered(id, keeps);
        let (wanted, note) = if keeps == Keeps::Yes {
            let size = body.size_hint().exact().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
            self.desk.log.wait_for_room(size).await;
            // Only those of a subagent and what is compressed are needed in one piece.
            let (subagent, packed) = (attribution.is_subagent(), parts.headers.contains_key(CONTENT_ENCODING));
            let alone = subagent || packed;
            let wanted = if alone { Wanted::Whole } else { Wanted::After(Arc::clone(&self.desk), attribution.clone()) };
            let (proxy, way, method, headers) =
                (Arc::clone(&self), Arc::clone(&way), parts.method.clone(), parts.headers.clone());
            let attribution = attribution.clone();
            let note = move |body: Taken, complete| {
                proxy.remember(&way, &headers);
                let desk = &proxy.desk;
                let came = Self::came(&way, &method, &headers, way.head(&headers));
                if !packed || subagent {
                    let body = uncompressed(came.encoding.as_deref(), body, complete, most);
                    return desk.passed(id, &attribution.resolve(), came, body, now());
                }
                let (raw, encoding) = (body.whole(), came.encoding.clone());
                let beginning = Inflate::new(encoding.as_deref()).feed(&raw[..raw.len().min(BEGINNING)]).into();
                // Others pass here meanwhile.
                let unpack = move || {
                    let (body, complete) = uncompressed(encoding.as_deref(), raw.into(), complete, most);
                    (body.whole(), complete)
                };
                desk.passed_packed(id, came, beginning, body.own(), unpack, now());
            };
            (wanted, Box::new(note) as taker::Told)
        } else {
            // What is not recorded is looked at as little as can be.
            self.remember(&way, &parts.headers);
            let all = attribution.is_subagent();
            let wanted = if all { Wanted::Whole } else { Wanted::Beginning };
            let came = Self::came(&way, &parts.method, &parts.headers, way.marks(&parts.headers));
            let (desk, attribution) = (Arc::clone(&self.desk), attribution.clone());
            let note = move |body: Taken, complete| {
                let body = if all {
                    uncompressed(came.encoding.as_deref(), body, complete, most)
                } else {
                    (body.map(|bytes| Inflate::new(came.encoding.as_deref()).feed(&bytes).into()), complete)
                };
                desk.passed(id, &attribution.resolve(), came, body, now());
            };
            (wanted, Box::new(note) as taker::Told)
        };
        let tapped = RequestTap::new(body, most, wanted, &attribution, note);
        unanswered.sequel = tapped.sequel();
        let onward = onward(&way, parts.method, parts.headers, Outbound::Tapped(Box::new(tapped)));
        match self.sender().send(onward).await {
            Ok(answer) => {
                let answers = Answers::Agent;
                self.looked_at(answer, Asked { unanswered, api: Some(api), attribution, started, retries: 0, answers })
            }
            Err(error) => {
                if TooLarge::is_why(&error) {
                    unanswered.failed(upstream::reason(&error));
                    return too_large(Some(api), most);
                }
                unanswered.failed(unreachable_message(&way, &error));
                unreachable(Some(api), &way, &error)
            }
        }
    }

    /// Takes a request in whole, and does with it what the desk says.
    async fn hold(
        self: Arc<Self>,
        way: Arc<Way>,
        api: Api,
        head: sayso_wire::Head,
        request: Request<Incoming>,
        place: Place,
    ) -> Response<Reply> {
        let (parts, body) = request.into_parts();
        let most = way.settings.largest_body;
        let raw = match tokio::time::timeout(ARRIVAL, body::whole(body, most)).await {
            Ok(Ok(raw)) => raw,
            Ok(Err(error)) if error.is::<TooLarge>() => return too_large(Some(api), most),
            Ok(Err(error)) => return refused(api, &format!("the request could not be read: {error}")),
            Err(_) => return refused(api, "the request took too long to arrive"),
        };
        let came = Self::came(&way, &parts.method, &parts.headers, head);
        let desk = Arc::clone(&self.desk);
        // Reading a megabyte takes a while, and others pass here meanwhile. Of a thousand at once not all get a thread.
        let looking = Arc::clone(&self.looking).acquire_owned().await;
        let looking = tokio::task::spawn_blocking(move || {
            let _looking = looking;
            look(&desk, came, api, raw, most)
        });
        let Ok((arrived, raw)) = looking.await else {
            return refused(api, "sayso failed to look at this request; its log says why");
        };
        let sending =
            hold::Sending { proxy: Arc::clone(&self), way, method: parts.method, headers: parts.headers, raw };
        match arrived {
            Arrived::Send(outgoing) => sending.now(outgoing).await,
            Arrived::Refuse { api: known, why, .. } => ended(known.unwrap_or(api), &why),
            Arrived::Wait(ticket) => {
                // One that waits takes nobody's place.
                drop(place);
                sending.when_decided(ticket, api).await
            }
        }
    }

    /// An answer that is looked at on its way.
    fn looked_at(&self, mut answer: Response<Incoming>, asked: Asked) -> Response<Reply> {
        if !self.desk.settings().hold_tools.is_empty() {
            // What is said in place of a call, or while one waits, has another length.
            answer.headers_mut().remove(CONTENT_LENGTH);
        }
        answer_with(answer, |head, body| {
            let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
            let Asked { unanswered, api, attribution, started, retries, answers } = asked;
            let (request, keeps, sequel) = unanswered.answered();
            let desk = Arc::clone(&self.desk);
            let exchange = Exchange {
                request,
                api,
                started,
                status: head.status.as_u16(),
                content_type: text(CONTENT_TYPE),
                encoding: text(CONTENT_ENCODING),
                keeps,
                retries,
                sequel,
                calls: Calls { desk: Arc::clone(&desk), attribution, answers },
                desk,
            };
            Reply(Inner::Answer(Box::new(AnswerTap::new(body, exchange))))
        })
    }
}

/// Asks the desk what becomes of a request; with what is sent if that is what came.
fn look(desk: &Arc<Desk>, came: Came, api: Api, raw: Bytes, most: usize) -> (Arrived, Bytes) {
    match decoded(came.encoding.as_deref(), raw.clone(), most) {
        Ok(body) => {
            // One copy for those who edit it and for sending it: a request may wait for hours.
            let body: Arc<[u8]> = Arc::from(&body[..]);
            let raw = if came.encoding.is_none() { Bytes::from_owner(Arc::clone(&body)) } else { raw };
            (desk.arrive(came, body, now()), raw)
        }
        Err(error) => (desk.unreadable(came, api, &error.to_string(), now()), raw),
    }
}

/// A body as it was before it was compressed.
fn decoded(encoding: Option<&str>, raw: Bytes, most: usize) -> std::io::Result<Bytes> {
    match Encoding::parse(encoding).map_err(std::io::Error::other)? {
        None => Ok(raw),
        Some(encoding) => encoding.decode(&raw, most).map(Bytes::from),
    }
}

/// The same of one that has been passed on. Of what cannot be read there is no record but that it was.
fn uncompressed(encoding: Option<&str>, body: Taken, complete: Complete, most: usize) -> (Taken, Complete) {
    if encoding.is_none() {
        return (body, complete);
    }
    match decoded(encoding, body.whole(), most) {
        Ok(body) => (body.into(), complete),
        Err(_) => (Taken::default(), Complete::No),
    }
}

/// A request as it goes to an upstream.
fn onward(way: &Way, method: Method, mut headers: HeaderMap, body: Outbound) -> Request<Outbound> {
    headers::onward(&mut headers);
    if !way.settings.hold_tools.is_empty() {
        // Calls are to be found in the answer.
        accept_plain(&mut headers);
    }
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = way.address.clone();
    *request.version_mut() = Version::HTTP_11;
    *request.headers_mut() = headers;
    request
}

/// The same with another body than came: not compressed, and of another length.
fn edited(way: &Way, method: Method, mut headers: HeaderMap, body: &Arc<[u8]>) -> Request<Outbound> {
    headers.remove(CONTENT_ENCODING);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    headers.remove("content-md5");
    headers.remove("digest");
    onward(way, method, headers, upstream::whole(Bytes::from_owner(Arc::clone(body))))
}

fn passed(answer: Response<Incoming>) -> Response<Reply> {
    answer_with(answer, |_, body| Reply(Inner::Passed(body)))
}

fn answer_with(
    answer: Response<Incoming>,
    body: impl FnOnce(&http::response::Parts, Incoming) -> Reply,
) -> Response<Reply> {
    let (mut parts, incoming) = answer.into_parts();
    headers::end_to_end(&mut parts.headers);
    parts.version = Version::HTTP_11;
    let body = body(&parts, incoming);
    Response::from_parts(parts, body)
}

/// Takes what a client accepts out of a request whose answer we write ourselves.
fn accept_plain(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}
