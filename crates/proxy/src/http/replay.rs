//! A recorded request, sent again.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body_util::{BodyExt as _, Limited};
use sayso_diff::{Diff, Rendering, UnifiedOptions};
use sayso_review::redact::{find_in_answer, mask};
use sayso_review::{BodyRecord, ErrorKind, RequestId, RequestRecord};
use sayso_wire::stream::collect::{self, Content};
use sayso_wire::stream::{Answer, Api};
use thiserror::Error;

use super::calls::Answers;
use super::way::{Way, base_of};
use super::{edited, encoding, upstream};
use crate::desk::{Desk, Keeps, Run, redacted_paths};
use crate::proxy::{Found, Proxy};

/// Which form of a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// As it came.
    AsItCame,
    /// As it was sent, or would have been, with its edits.
    AsItWasSent,
}

/// What a request that was sent again led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The request that was recorded for it.
    pub request: RequestId,
    /// The status.
    pub status: u16,
    /// What the model answered now, for a person.
    pub answer: String,
    /// What it answered then, for a person.
    pub earlier: Option<String>,
    /// The difference between the two, as a unified diff.
    pub diff: String,
}

/// Why a request could not be sent again.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// There is nothing to send.
    #[error(transparent)]
    Gate(#[from] sayso_gate::GateError),
    /// There is no such upstream any more.
    #[error("there is no upstream `{0}`")]
    NoUpstream(String),
    /// There are no credentials.
    #[error("there are no credentials for `{0}`")]
    NoCredentials(String),
    /// There are several servers of that name, and it is not known to which of them it went.
    #[error(
        "requests to `{upstream}` went to several servers, and it is not known to which of them request {request} did"
    )]
    Several {
        /// The request.
        request: RequestId,
        /// The upstream.
        upstream: String,
    },
    /// Not all of it is on record.
    #[error("request {0} is not on record whole")]
    NotWhole(RequestId),
    /// Credentials in its body are masked on record, and no longer in memory.
    #[error("request {request} cannot be sent again: its body has credentials that are not on record: {}", paths.join(", "))]
    Redacted {
        /// The request.
        request: RequestId,
        /// Where they are in its body.
        paths: Vec<String>,
    },
    /// It could not be sent.
    #[error("it could not be sent: {0}")]
    Failed(String),
}

impl ReplayError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Gate(error) => error.kind(),
            Self::NoUpstream(_)
            | Self::NoCredentials(_)
            | Self::Several { .. }
            | Self::NotWhole(_)
            | Self::Redacted { .. } => ErrorKind::InvalidArgs,
            Self::Failed(_) => ErrorKind::Unavailable,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Gate(error) => error.hint(),
            Self::NoUpstream(name) => Some(format!("configure it: [upstream.{name}] with a `url`")),
            Self::NoCredentials(name) => Some(format!(
                "let the agent send a request first, whose credentials are then remembered until sayso stops, or \
                 name a variable that holds the key: [upstream.{name}] with `key_variable`"
            )),
            Self::Several { upstream, .. } => Some(format!(
                "let its agent send another request first, or name a variable that holds the key: [upstream.{upstream}] with \
                 `key_variable`"
            )),
            Self::NotWhole(_) => Some("it was cut off on its way, or could not be read; choose another".to_owned()),
            Self::Redacted { .. } => Some(
                "sayso keeps them in memory until it stops; let the agent send the request again, and replay that one"
                    .to_owned(),
            ),
            Self::Failed(_) => None,
        }
    }
}

/// The largest answer that is shown.
const MOST_ANSWER: usize = 64 << 20;

impl Proxy {
    /// Sends a recorded request again, with credentials from memory or from the configuration, and compares the answers.
    pub async fn replay(&self, request: RequestId, which: Which) -> Result<Replayed, ReplayError> {
        let desk = Arc::clone(&self.desk);
        let read = move || -> Result<_, ReplayError> {
            let record = desk.record(request)?;
            let body = match which {
                Which::AsItCame => record.seen.body.clone(),
                Which::AsItWasSent => record.latest().clone(),
            };
            // One that waits is what its edits have made of it by now.
            let edited = match which {
                Which::AsItCame => None,
                Which::AsItWasSent => desk.look_if_waiting(request, |request| Arc::from(request.to_bytes().as_ref())),
            };
            let body: Arc<[u8]> = match edited {
                Some(edited) => edited,
                None if body.cut => return Err(ReplayError::NotWhole(request)),
                None => exact_body(&desk, request, &body)?.into(),
            };
            let answer = record.answer.as_ref().map(|answer| answer.body.clone());
            let earlier = answer.map(|answer| desk.gate.read(|history| history.body(&answer))).transpose()?;
            Ok((record, body, earlier))
        };
        let (record, body, earlier) =
            tokio::task::spawn_blocking(read).await.map_err(|error| ReplayError::Failed(error.to_string()))??;
        let (way, headers) = self.way_again(&record)?;
        let id = self.desk.number();
        let came =
            crate::desk::Came { encoding: None, ..Self::came(&way, &Method::POST, &headers, way.head(&headers)) };
        let api = crate::route::api_of(came.head.route());
        let whose = Arc::new(self.desk.replayed(id, &record, came, Bytes::from_owner(Arc::clone(&body))));
        let started = Instant::now();
        let unanswered = self.desk.unanswered(id, Keeps::Yes);
        let sent = self.sender().send(edited(&way, Method::POST, headers, &body)).await;
        let answer = match sent {
            Ok(answer) => answer,
            Err(error) => {
                unanswered.failed(upstream::reason(&error));
                return Err(ReplayError::Failed(upstream::reason(&error)));
            }
        };
        let (status, kind) = (answer.status().as_u16(), text(answer.headers(), &CONTENT_TYPE));
        let encoding = text(answer.headers(), &CONTENT_ENCODING);
        let attribution = super::Attribution::Headers(whose);
        let asked = super::Asked { unanswered, api, attribution, started, retries: 0, answers: Answers::Person };
        let looked = self.looked_at(answer, asked);
        let body = Limited::new(looked.into_body(), MOST_ANSWER);
        let bytes = body.collect().await.map_err(|error| ReplayError::Failed(error.to_string()))?;
        // Some compress it although they were asked not to.
        let mut bytes = encoding::plain(encoding.as_deref(), bytes.to_bytes(), MOST_ANSWER).to_vec();
        let found = find_in_answer(&bytes);
        mask(&mut bytes, &found);
        let now = readable(api, kind.as_deref(), &bytes);
        let then_kind = record.answer.as_ref().and_then(|answer| answer.content_type.clone());
        let earlier = earlier.map(|bytes| readable(api, then_kind.as_deref(), &bytes));
        let diff = difference(earlier.as_deref().unwrap_or_default(), &now);
        Ok(Replayed { request: id, status, answer: now, earlier, diff })
    }

    /// Where a recorded request goes, with the headers that it had and credentials.
    fn way_again(&self, record: &RequestRecord) -> Result<(Way, HeaderMap), ReplayError> {
        let (settings, name) = (self.desk.settings(), &record.seen.upstream);
        let (mut headers, mut path) = (HeaderMap::new(), record.seen.path.clone());
        for (name, value) in &record.seen.headers {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
                headers.append(name, value);
            }
        }
        for name in [CONTENT_ENCODING, CONTENT_LENGTH] {
            headers.remove(name);
        }
        // The answer is shown to a person.
        super::accept_plain(&mut headers);
        let configured = settings.upstreams.get(name).and_then(|upstream| upstream.credential.clone());
        // A key goes where it belongs: a configured one to the configured address, one that was seen to where it went.
        let run = record.seen.origin.session.as_deref().and_then(|session| self.desk.run_of(session));
        let base = match (configured, self.remembered(name, run.as_deref())) {
            (Some((header, value)), _) => {
                headers.insert(header, value);
                base_of(&settings, name, &headers).ok_or_else(|| ReplayError::NoUpstream(name.clone()))?
            }
            (None, Found::Several) => {
                return Err(ReplayError::Several { request: record.request, upstream: name.clone() });
            }
            (None, Found::One(remembered)) => {
                headers.extend(remembered.credentials);
                path = remembered.query.with_keys(&path);
                remembered.base
            }
            (None, Found::Nothing) => {
                let known = base_of(&settings, name, &headers).is_some();
                let name = name.clone();
                return Err(if known { ReplayError::NoCredentials(name) } else { ReplayError::NoUpstream(name) });
            }
        };
        let address = upstream::address(&base, &path).ok_or_else(|| ReplayError::NoUpstream(name.clone()))?;
        let run = Run { name: "replay".to_owned(), agent: record.seen.origin.agent.clone() };
        Ok((Way::new(run, (name.clone(), base), (address, path), settings), headers))
    }
}

/// A recorded body as it was sent.
fn exact_body(desk: &Desk, request: RequestId, record: &BodyRecord) -> Result<Vec<u8>, ReplayError> {
    let mut bytes = desk.gate.read(|history| history.body(record))?;
    if desk.log.exact.restore(request, record, &mut bytes) {
        return Ok(bytes);
    }
    Err(ReplayError::Redacted { request, paths: redacted_paths(&bytes, &record.redactions) })
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The difference between two answers, as a unified diff.
fn difference(then: &str, now: &str) -> String {
    let options =
        UnifiedOptions { context: 3, old_label: "then", new_label: "now", rendering: Rendering::Readable, limit: None };
    let text = Diff::new(then.as_bytes(), now.as_bytes()).unified(&options).into_text();
    String::from_utf8_lossy(&text).into_owned()
}

/// An answer as a person reads it: what was said and called, without what differs every time.
fn readable(api: Option<Api>, kind: Option<&str>, bytes: &[u8]) -> String {
    let streams = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
    let answer = match api {
        Some(api) if streams => Some(collect::from_stream(api, bytes)),
        Some(api) => collect::from_body(api, bytes).ok(),
        None => None,
    };
    match answer {
        Some(answer) if !answer.blocks.is_empty() => said(&answer),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn said(answer: &Answer) -> String {
    let mut text = String::new();
    for block in &answer.blocks {
        match &block.content {
            Content::Text(said) => text.push_str(said),
            Content::Thinking(said) => text.push_str(&format!("[thinking]\n{said}")),
            Content::ToolCall { name, arguments, .. } => text.push_str(&format!("[{name}] {arguments}")),
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if let Some((kind, message)) = &answer.error {
        text.push_str(&format!("[error] {kind}: {message}\n"));
    }
    text
}
