//! Where a request goes.

use std::sync::{Arc, Mutex, PoisonError};

use http::header::CONTENT_ENCODING;
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use sayso_wire::Head;
use sayso_wire::stream::Api;

use super::attribution::{Attribution, BodyAttribution};
use super::body::Reply;
use super::own::plain;
use super::{headers, upstream};
use crate::desk::{Run, Whose};
use crate::entrance::{self, Entrances};
use crate::proxy::Proxy;
use crate::route::api_of;
use crate::settings::Settings;

/// Where a request goes, and for whose run.
pub(crate) struct Way {
    pub(crate) run: Run,
    pub(crate) upstream: String,
    pub(crate) base: Uri,
    /// The base as it is recorded.
    pub(crate) server: String,
    pub(crate) address: Uri,
    /// The path beneath the upstream, and the same without keys, as it is recorded.
    pub(crate) path: String,
    pub(crate) recorded: String,
    /// The API that the path belongs to.
    pub(crate) api: Option<Api>,
    pub(crate) settings: Arc<Settings>,
    last: Mutex<Option<Last>>,
}

/// Whose the last request was, and what told: an agent's next one is of the same session.
struct Last {
    marks: Head,
    whose: Arc<Whose>,
}

impl Way {
    pub(super) fn new(
        run: Run,
        (upstream, base): (String, Uri),
        (address, path): (Uri, String),
        settings: Arc<Settings>,
    ) -> Self {
        let recorded = headers::without_keys(&path);
        let route = path.split_once('?').map_or(path.as_str(), |(route, _)| route);
        let api = api_of(route.trim_end_matches('/'));
        let server = upstream::without_user(&base);
        Self { run, upstream, base, server, address, path, recorded, api, settings, last: Mutex::default() }
    }

    /// Whose a request is, if its headers alone tell.
    pub(super) fn whose(&self, headers: &HeaderMap) -> Option<Arc<Whose>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Last { marks, whose }) = &*last
            && headers::has_marks(headers, marks)
        {
            return Some(Arc::clone(whose));
        }
        let marks = self.marks(headers);
        let whose = Arc::new(Whose::by_head(&self.run, &marks)?);
        *last = Some(Last { marks, whose: Arc::clone(&whose) });
        Some(whose)
    }

    /// The session of a request that is to be forwarded while it comes. `None` if only its whole body could tell.
    pub(super) fn attribution(&self, headers: &HeaderMap) -> Option<Attribution> {
        if let Some(whose) = self.whose(headers) {
            return Some(Attribution::Headers(whose));
        }
        // No known agent compresses a body and names no session.
        if headers.contains_key(CONTENT_ENCODING) {
            return None;
        }
        let query = self.path.split_once('?').map(|(_, query)| query);
        let key = headers::key_hash(headers, query);
        let body = BodyAttribution::new(self.run.clone(), self.marks(headers), key);
        Some(Attribution::Body(Arc::new(body)))
    }

    /// What tells whose a request is.
    pub(super) fn marks(&self, headers: &HeaderMap) -> Head {
        headers::marks(&self.recorded, headers)
    }

    /// What is recorded of a request's head.
    pub(super) fn head(&self, headers: &HeaderMap) -> Head {
        headers::head(&self.recorded, headers)
    }
}

/// How many ways are known.
const MOST: usize = 16;

/// The ways of the last requests: an agent sends all of its requests along one or two.
#[derive(Default)]
pub(crate) struct Ways(Mutex<Vec<Known>>);

struct Known {
    /// The path of the request, with its capability.
    asked: String,
    /// The state of the entrances by which it was found.
    entrances: u64,
    way: Arc<Way>,
}

impl std::fmt::Debug for Ways {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // There are capabilities and keys in them.
        f.debug_struct("Ways").finish_non_exhaustive()
    }
}

impl Ways {
    fn find(&self, asked: &str, entrances: u64, settings: &Arc<Settings>) -> Option<Arc<Way>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|known| {
            known.entrances == entrances
                && Arc::ptr_eq(&known.way.settings, settings)
                && entrance::same(known.asked.as_bytes(), asked.as_bytes())
        });
        found.map(|known| Arc::clone(&known.way))
    }

    fn remember(&self, asked: &str, entrances: u64, way: &Arc<Way>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.asked != asked && known.entrances == entrances);
        if known.len() == MOST {
            known.remove(0);
        }
        known.push(Known { asked: asked.to_owned(), entrances, way: Arc::clone(way) });
    }
}

impl Proxy {
    /// Finds out where a request is to go.
    pub(super) fn way<B>(
        &self,
        request: &Request<B>,
        settings: Arc<Settings>,
    ) -> Result<Arc<Way>, Box<Response<Reply>>> {
        let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str());
        // Asked before they are looked at: what changes meanwhile is not missed.
        let entrances = self.entrances.changes();
        if let Some(way) = self.ways.find(asked, entrances, &settings) {
            return Ok(way);
        }
        let way = Arc::new(find(&self.entrances, request, settings)?);
        // Where Codex goes its headers say.
        if way.upstream != "codex" {
            self.ways.remember(asked, entrances, &way);
        }
        Ok(way)
    }
}

fn find<B>(entrances: &Entrances, request: &Request<B>, settings: Arc<Settings>) -> Result<Way, Box<Response<Reply>>> {
    let Some((capability, name, path)) = entrance::parse(request.uri()) else {
        let message = "sayso passes on what comes beneath /p/<capability>/<upstream>; `sayso env` prints the address";
        return Err(plain(StatusCode::NOT_FOUND, message).into());
    };
    let Some(entrance) = entrances.find(capability) else {
        let message = "sayso does not know this address, or its run is over; start the agent with `sayso run`, or \
                       take the address that `sayso env` prints";
        return Err(plain(StatusCode::UNAUTHORIZED, message).into());
    };
    if has_dot_segments(&path) {
        let message = "the path has `.` or `..` segments, and may lead elsewhere than beneath the upstream; send the path that is meant";
        return Err(plain(StatusCode::BAD_REQUEST, message).into());
    }
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
    Ok(Way::new(entrance.run(), (name.to_owned(), base), (address, path), settings))
}

/// Encodings of encodings that are looked through.
const MAX_DECODINGS: usize = 3;

/// Whether a path has a segment `.` or `..`, also percent-encoded.
fn has_dot_segments(path: &str) -> bool {
    let route = path.split_once('?').map_or(path, |(route, _)| route);
    let mut decoded = route.as_bytes().to_vec();
    for _ in 0..=MAX_DECODINGS {
        if decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(|segment| matches!(segment, b"." | b"..")) {
            return true;
        }
        decoded = percent_decoded(&decoded);
    }
    false
}

fn percent_decoded(bytes: &[u8]) -> Vec<u8> {
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let encoded = digit(at + 1).zip(digit(at + 2)).filter(|_| *byte == b'%');
        if let Some((high, low)) = encoded {
            decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
            at += 3;
        } else {
            decoded.push(*byte);
            at += 1;
        }
    }
    decoded
}

/// The base of an upstream, as the user has configured it.
pub(super) fn base_of(settings: &Settings, name: &str, headers: &HeaderMap) -> Option<Uri> {
    let base = |name: &str| settings.upstreams.get(name).map(|upstream| upstream.base.clone());
    // Codex speaks to another server when its user has logged in with an account.
    match name {
        "codex" if base("codex").is_some() => base("codex"),
        "codex" if headers.contains_key("chatgpt-account-id") => base("chatgpt"),
        "codex" => upstream::address(&base("openai")?, "/v1"),
        _ => base(name),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use http::HeaderValue;

    use super::*;

    fn way(path: &str) -> Way {
        let run = Run { name: "run".to_owned(), agent: None };
        let base = Uri::from_static("http://127.0.0.1:8");
        let address = upstream::address(&base, path).unwrap();
        Way::new(run, ("anthropic".to_owned(), base), (address, path.to_owned()), Arc::new(Settings::usual()))
    }

    fn of_session(session: &'static str) -> HeaderMap {
        let value = HeaderValue::from_static(session);
        HeaderMap::from_iter([(http::HeaderName::from_static("x-claude-code-session-id"), value)])
    }

    #[test]
    fn whose_a_request_is_its_own_headers_say_whoever_sent_the_last_one() {
        let way = way("/v1/messages");
        let session = |headers: &HeaderMap| way.whose(headers).map(|whose| whose.session.clone());
        let mut subagent = of_session("one");
        subagent.insert("x-claude-code-agent-id", HeaderValue::from_static("sub"));
        for _ in 0..2 {
            assert_eq!(session(&of_session("one")).as_deref(), Some("one"));
            assert_eq!(way.whose(&of_session("one")).unwrap().subagent, None);
            assert!(way.whose(&subagent).unwrap().subagent.is_some());
            assert_eq!(session(&of_session("other")).as_deref(), Some("other"));
            assert_eq!(session(&HeaderMap::new()), None);
        }
    }

    #[test]
    fn dot_segments_are_found_in_every_encoding() {
        for path in ["/../x", "/v1/..", "/v1/./x", "/%2e%2E/x", "/.%2e/x", "/v1%2f..%2fx", "/%252e%252e/x", "/..\\x?q"]
        {
            assert!(has_dot_segments(path), "{path}");
        }
        for path in ["", "/v1/messages", "/v1/a..b", "/v1/...", "/v1/.x", "/v1?path=../x", "/v1/100%"] {
            assert!(!has_dot_segments(path), "{path}");
        }
    }

    #[test]
    fn of_a_path_there_is_one_for_sending_and_one_without_keys_for_the_record() {
        let way = way("/v1beta/models/m:generateContent?key=sk-1&alt=sse");
        assert_eq!(way.api, Some(Api::Gemini));
        assert!(way.address.query().unwrap().contains("sk-1"));
        for head in [way.head(&HeaderMap::new()), way.marks(&HeaderMap::new())] {
            assert_eq!(head.path, "/v1beta/models/m:generateContent?key=…&alt=sse");
        }
    }
}
