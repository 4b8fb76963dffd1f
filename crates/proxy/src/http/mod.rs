//! Model traffic over HTTP: passed on verbatim, or held until a person has looked at it.

mod answer;
mod body;
mod calls;
mod encoding;
mod events;
pub(crate) mod headers;
mod hold;
mod replay;
mod said;
mod upstream;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use sayso_review::RequestEnd;
use sayso_wire::stream::{Api, Refusal};
use serde_json::json;

pub use body::{BodyError, Reply};
pub use replay::{ReplayError, Replayed, Which};

use crate::desk::{Arrived, Came, Complete, Keeps, Outgoing, Signed, Ticket, Unanswered, Verdict, Whose};
use crate::entrance::{self, Entrance};
use crate::log::now;
use crate::proxy::{Place, Proxy};
use crate::route::api_of;
use crate::settings::{Keep, Settings};
use answer::{AnswerTap, Exchange};
use body::{Inner, Outbound, RequestTap, TooLarge, Wanted};
use calls::{Answers, Calls};
use encoding::{Encoding, Inflate};
pub(crate) use upstream::Sender;

/// How long a request may take to arrive whole.
const ARRIVAL: Duration = Duration::from_mins(5);

/// Where a request goes, and what came with it.
struct Way {
    entrance: Entrance,
    upstream: String,
    base: Uri,
    address: Uri,
    /// The path beneath the upstream.
    path: String,
    settings: Arc<Settings>,
}

/// What an answer belongs to.
struct Asked {
    unanswered: Unanswered,
    api: Option<Api>,
    whose: Whose,
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

    /// Finds out where a request is to go.
    fn way(&self, request: &Request<Incoming>, settings: Arc<Settings>) -> Result<Way, Box<Response<Reply>>> {
        let Some((capability, name, path)) = entrance::parse(request.uri()) else {
            let message =
                "sayso passes on what comes beneath /p/<capability>/<upstream>; `sayso env` prints the address";
            return Err(plain(StatusCode::NOT_FOUND, message).into());
        };
        let Some(entrance) = self.entrances.find(capability) else {
            let message = "sayso does not know this address, or its run is over; start the agent with `sayso run`, or \
                           take the address that `sayso env` prints";
            return Err(plain(StatusCode::UNAUTHORIZED, message).into());
        };
        let own = entrance.upstreams.get(name).and_then(|base| base.parse().ok());
        let base = own.or_else(|| base_of(&settings, name, request.headers()));
        let found = base.and_then(|base: Uri| upstream::address(&base, &path).map(|address| (base, address)));
        let Some((base, address)) = found else {
            let known: Vec<&str> = settings.upstreams.keys().map(String::as_str).collect();
            let message = format!(
                "sayso knows no upstream `{name}`; there are {}. Add [upstream.{name}] with a `url` to your configuration",
                known.join(", ")
            );
            return Err(plain(StatusCode::NOT_FOUND, &message).into());
        };
        Ok(Way { upstream: name.to_owned(), entrance, base, address, path, settings })
    }

    async fn route(self: Arc<Self>, way: Way, request: Request<Incoming>, place: Place) -> Response<Reply> {
        let upgrades =
            request.headers().get("upgrade").is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
        if upgrades {
            // Clients that prefer a WebSocket fall back to HTTP, which can be looked at.
            return plain(StatusCode::UPGRADE_REQUIRED, "sayso passes on HTTP; a WebSocket cannot be looked at");
        }
        let route = way.path.split_once('?').map_or(way.path.as_str(), |(route, _)| route);
        let api = api_of(route.trim_end_matches('/')).filter(|_| request.method() == Method::POST);
        let length = request.body().size_hint().exact();
        let most = way.settings.largest_body;
        if length.is_some_and(|length| length > most as u64) {
            return too_large(api, most);
        }
        let Some(api) = api else { return self.untouched(way, request).await };
        self.remember(&way.upstream, &way.base, &way.path, request.headers());
        if self.desk.is_quiet() {
            // What is not recorded is looked at as little as can be.
            let recorded = way.settings.keep == Keep::All;
            let head = if recorded { headers::head } else { headers::marks }(&way.path, request.headers());
            if let Some(whose) = Whose::by_head(&way.entrance.run(), &head) {
                return self.pass(way, api, head, whose, request).await;
            }
        }
        let head = headers::head(&way.path, request.headers());
        self.hold(way, api, head, request, place).await
    }

    /// Passes on what is no request to a model.
    async fn untouched(&self, way: Way, request: Request<Incoming>) -> Response<Reply> {
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
        let seconds = headers.get("x-stainless-timeout").and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
        let deadline =
            seconds.filter(|seconds| *seconds > 0.0).map(|seconds| now().saturating_add((seconds * 1e3) as i64));
        Came {
            run: way.entrance.run(),
            upstream: way.upstream.clone(),
            method: method.to_string(),
            encoding,
            key: if head.session().is_none() { headers::key_hash(headers, query) } else { None },
            signed: if headers::is_signed(headers) { Signed::Yes } else { Signed::No },
            deadline,
            replay_of: None,
            head,
        }
    }

    /// Passes on a request that nobody needs to look at before, while it comes.
    async fn pass(
        self: Arc<Self>,
        way: Way,
        api: Api,
        head: sayso_wire::Head,
        whose: Whose,
        request: Request<Incoming>,
    ) -> Response<Reply> {
        let (parts, body) = request.into_parts();
        let came = Self::came(&way, &parts.method, &parts.headers, head);
        let id = self.desk.number();
        let most = way.settings.largest_body;
        let size = body.size_hint().exact().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
        let recorded = way.settings.keep == Keep::All;
        if recorded {
            self.desk.log.wait_for_room(size).await;
        }
        let wanted = if recorded || whose.subagent.is_some() { Wanted::Whole } else { Wanted::Beginning };
        let desk = Arc::clone(&self.desk);
        let told = move |bytes: Vec<u8>, complete| {
            let room = if recorded { desk.log.room(bytes.len()) } else { None };
            let (body, complete) = match wanted {
                Wanted::Beginning => (Inflate::new(came.encoding.as_deref()).feed(&bytes).into(), complete),
                // Of what cannot be read there is no record but that it was.
                Wanted::Whole => match decoded(&came, bytes.into(), most) {
                    Ok(body) => (body, complete),
                    Err(_) => (Bytes::new(), Complete::No),
                },
            };
            desk.passed(id, came, body, complete, room, now());
        };
        let tapped = RequestTap::new(body, most, wanted, Box::new(told));
        let started = Instant::now();
        let unanswered = self.desk.unanswered(id, keeps(&way.settings));
        let onward = onward(&way, parts.method, parts.headers, Outbound::Tapped(tapped));
        match self.sender().send(onward).await {
            Ok(answer) => {
                let answers = Answers::Agent;
                self.looked_at(answer, Asked { unanswered, api: Some(api), whose, started, retries: 0, answers })
            }
            Err(error) => {
                unanswered.failed(upstream::reason(&error));
                if TooLarge::is_why(&error) { too_large(Some(api), most) } else { unreachable(Some(api), &way, &error) }
            }
        }
    }

    /// Takes a request in whole, and does with it what the desk says.
    async fn hold(
        self: Arc<Self>,
        way: Way,
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
        let (arrived, raw) = match decoded(&came, raw.clone(), most) {
            Ok(body) => {
                // One copy for those who edit it and for sending it: a request may wait for hours.
                let body: Arc<[u8]> = Arc::from(&body[..]);
                let raw = if came.encoding.is_none() { Bytes::from_owner(Arc::clone(&body)) } else { raw };
                (desk.arrive(came, body, now()), raw)
            }
            Err(error) => (desk.unreadable(came, api, &error.to_string(), now()), raw),
        };
        let sending = hold::Sending {
            proxy: Arc::clone(&self),
            way: Arc::new(way),
            method: parts.method,
            headers: parts.headers,
            raw,
        };
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
            let Asked { unanswered, api, whose, started, retries, answers } = asked;
            let (request, keeps) = unanswered.answered();
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
                calls: Calls { desk: Arc::clone(&desk), whose, answers },
                desk,
            };
            Reply(Inner::Answer(Box::new(AnswerTap::new(body, exchange))))
        })
    }
}

/// The base of an upstream, as the user has configured it.
fn base_of(settings: &Settings, name: &str, headers: &HeaderMap) -> Option<Uri> {
    let base = |name: &str| settings.upstreams.get(name).map(|upstream| upstream.base.clone());
    // Codex speaks to another server when its user has logged in with an account.
    match name {
        "codex" if base("codex").is_some() => base("codex"),
        "codex" if headers.contains_key("chatgpt-account-id") => base("chatgpt"),
        "codex" => upstream::address(&base("openai")?, "/v1"),
        _ => base(name),
    }
}

/// A body as it was before it was compressed.
fn decoded(came: &Came, raw: Bytes, most: usize) -> std::io::Result<Bytes> {
    match Encoding::parse(came.encoding.as_deref()).map_err(std::io::Error::other)? {
        None => Ok(raw),
        Some(encoding) => encoding.decode(&raw, most).map(Bytes::from),
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

/// An answer of our own in an API's form.
fn replied(api: Api, refusal: &Refusal<'_>) -> Response<Reply> {
    let reply = api.refuse(refusal);
    let mut response = Response::new(Reply::whole(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_REQUEST);
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn refused(api: Api, message: &str) -> Response<Reply> {
    replied(api, &Refusal::Refused { message })
}

/// What a client is told when its request ends here, before it had a status.
fn ended(api: Api, why: &RequestEnd) -> Response<Reply> {
    match why {
        RequestEnd::Canceled | RequestEnd::CanceledBefore => replied(api, &Refusal::Canceled),
        RequestEnd::EngineStopped => {
            // Another engine may be there soon, and the person looks at it there.
            let mut response = refused(api, &why.message());
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response.headers_mut().remove("x-should-retry");
            response
        }
        other => refused(api, &other.message()),
    }
}

fn too_large(api: Option<Api>, most: usize) -> Response<Reply> {
    let message = format!(
        "this request is larger than the {} MB that sayso passes on; raise `largest_body` under [request]",
        most >> 20
    );
    let mut response = match api {
        Some(api) => refused(api, &message),
        None => plain(StatusCode::PAYLOAD_TOO_LARGE, &message),
    };
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    response
}

fn unreachable(api: Option<Api>, way: &Way, error: &(dyn std::error::Error + 'static)) -> Response<Reply> {
    let message = unreachable_message(way, error);
    tracing::warn!(upstream = way.upstream, reason = upstream::reason(error), "an upstream could not be reached");
    let mut response = match api {
        Some(api) => refused(api, &message),
        None => plain(StatusCode::BAD_GATEWAY, &message),
    };
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    // It may be there the next time.
    response.headers_mut().remove("x-should-retry");
    response
}

fn unreachable_message(way: &Way, error: &(dyn std::error::Error + 'static)) -> String {
    let host = way.address.authority().map(ToString::to_string).unwrap_or_default();
    format!("sayso could not reach {host} (upstream `{}`): {}", way.upstream, upstream::reason(error))
}

/// An answer of our own where the API is not known.
fn plain(status: StatusCode, message: &str) -> Response<Reply> {
    let body = json!({"error": {"type": "sayso", "message": message}}).to_string();
    let mut response = Response::new(Reply::whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Takes what a client accepts out of a request whose answer we write ourselves.
fn accept_plain(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}
