//! Replays of recorded requests.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use sayso_diff::{Diff, Rendering, UnifiedOptions};
use sayso_review::redact::{find_in_answer, mask};
use sayso_review::{BodyRecord, ErrorKind, RequestId, RequestRecord};
use sayso_wire::stream::Api;
use sayso_wire::stream::collect::{self, BlockContent, ModelResponse};
use thiserror::Error;

use super::forward::{accept_identity, edited_request};
use super::route::{Route, configured_base};
use super::tool_calls::Audience;
use super::{ResponseContext, encoding, upstream};
use crate::interceptor::{AgentRun, AttributionSource, Interceptor, Recording, RequestMetadata, redacted_paths};
use crate::proxy::{CredentialLookup, Proxy};

/// The form of a request that is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayForm {
    AsReceived,
    /// With its edits. A held request has its current edits.
    AsSent,
}

/// Result of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayReport {
    /// The number of the replay itself.
    pub request: RequestId,
    pub status: u16,
    /// The new response as readable text.
    pub answer: String,
    /// The recorded response as readable text; `None` if the request has none.
    pub earlier: Option<String>,
    /// Unified diff from the recorded response to the new one.
    pub diff: String,
}

/// Failure of a replay.
#[derive(Debug, Error)]
pub enum ReplayError {
    #[error(transparent)]
    Gate(#[from] sayso_gate::GateError),
    #[error("there is no upstream `{0}`")]
    NoUpstream(String),
    #[error("there are no credentials for `{0}`")]
    NoCredentials(String),
    /// Cached credentials of several servers share the upstream's name, and the run of the request is unknown.
    #[error("cannot tell which server request {request} was sent to: `{upstream}` names several")]
    AmbiguousServer { request: RequestId, upstream: String },
    #[error("the body of request {0} is not recorded completely")]
    Truncated(RequestId),
    /// Masked credentials of the body are no longer in memory.
    #[error("cannot replay request {request}: its body has credentials that are not recorded: {}", paths.join(", "))]
    Redacted { request: RequestId, paths: Vec<String> },
    #[error("cannot send the request: {0}")]
    Failed(String),
}

impl ReplayError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Gate(error) => error.kind(),
            Self::NoUpstream(_)
            | Self::NoCredentials(_)
            | Self::AmbiguousServer { .. }
            | Self::Truncated(_)
            | Self::Redacted { .. } => ErrorKind::InvalidArgs,
            Self::Failed(_) => ErrorKind::Unavailable,
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Gate(error) => error.hint(),
            Self::NoUpstream(name) => Some(format!("configure it: [upstream.{name}] with a `url`")),
            Self::NoCredentials(name) => Some(format!(
                "let the agent send a request first, whose credentials sayso then keeps in memory, or name a variable \
                 that holds the key: [upstream.{name}] with `key_variable`"
            )),
            Self::AmbiguousServer { upstream, .. } => Some(format!(
                "let its agent send another request first, or name a variable that holds the key: [upstream.{upstream}] \
                 with `key_variable`"
            )),
            Self::Truncated(_) => {
                Some("its connection broke, or its body could not be read; choose another request".to_owned())
            }
            Self::Redacted { .. } => Some(
                "sayso keeps them in memory until it stops; let the agent send the request again, and replay that one"
                    .to_owned(),
            ),
            Self::Failed(_) => None,
        }
    }
}

/// Bytes of a response that a replay reads.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// A recorded request, read for its replay.
struct RecordedRequest {
    record: RequestRecord,
    body: Arc<[u8]>,
    /// The body of the recorded response.
    response: Option<Vec<u8>>,
}

impl RecordedRequest {
    fn read(interceptor: &Interceptor, request: RequestId, form: ReplayForm) -> Result<Self, ReplayError> {
        let record = interceptor.record(request)?;
        let (body, held) = match form {
            ReplayForm::AsReceived => (record.received.body.clone(), None),
            ReplayForm::AsSent => {
                let held = interceptor.view_if_held(request, |request| Arc::from(request.to_bytes().as_ref()));
                (record.latest().clone(), held)
            }
        };
        let body: Arc<[u8]> = match held {
            Some(held) => held,
            None if body.truncated => return Err(ReplayError::Truncated(request)),
            None => exact_body(interceptor, request, &body)?.into(),
        };
        let response = record.answer.as_ref().map(|answer| answer.body.clone());
        let response = response.map(|body| interceptor.gate.read(|history| history.body(&body))).transpose()?;
        Ok(Self { record, body, response })
    }
}

impl Proxy {
    /// Sends a recorded request again, with cached or configured credentials, and compares the responses.
    pub async fn replay(&self, request: RequestId, form: ReplayForm) -> Result<ReplayReport, ReplayError> {
        let interceptor = Arc::clone(&self.interceptor);
        let reading = tokio::task::spawn_blocking(move || RecordedRequest::read(&interceptor, request, form));
        let recorded = reading.await.map_err(|error| ReplayError::Failed(error.to_string()))??;
        let (id, api, response) = self.send_replay(&recorded).await?;
        let (status, content_type) = (response.status().as_u16(), header_text(response.headers(), &CONTENT_TYPE));
        let encoding = header_text(response.headers(), &CONTENT_ENCODING);
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES);
        let bytes = body.collect().await.map_err(|error| ReplayError::Failed(error.to_string()))?;
        // Some upstreams compress although they were asked not to.
        let bytes = encoding::decode_or_keep(encoding.as_deref(), bytes.to_bytes(), MAX_RESPONSE_BYTES);
        let mut bytes = bytes.to_vec();
        let credentials = find_in_answer(&bytes);
        mask(&mut bytes, &credentials);
        let answer = readable(api, content_type.as_deref(), &bytes);
        let earlier_type = recorded.record.answer.as_ref().and_then(|answer| answer.content_type.clone());
        let earlier = recorded.response.map(|bytes| readable(api, earlier_type.as_deref(), &bytes));
        let diff = unified_diff(earlier.as_deref().unwrap_or_default(), &answer);
        Ok(ReplayReport { request: id, status, answer, earlier, diff })
    }

    /// Records and sends a replay.
    async fn send_replay(
        &self,
        recorded: &RecordedRequest,
    ) -> Result<(RequestId, Option<Api>, Response<super::Reply>), ReplayError> {
        let RecordedRequest { record, body, .. } = recorded;
        let (route, headers) = self.replay_route(record)?;
        let id = self.interceptor.next_id();
        let metadata = Self::metadata(&route, &Method::POST, &headers, route.head(&headers));
        let metadata = RequestMetadata { encoding: None, ..metadata };
        let api = Api::from_path(metadata.head.route());
        let bytes = Bytes::from_owner(Arc::clone(body));
        let attribution = Arc::new(self.interceptor.record_replay(id, record, metadata, bytes));
        let started = Instant::now();
        let in_flight = self.interceptor.in_flight(id, Recording::Enabled);
        let sent: Result<Response<Incoming>, _> =
            self.sender().send(edited_request(&route, Method::POST, headers, body)).await;
        let response = match sent {
            Ok(response) => response,
            Err(error) => {
                in_flight.failed(upstream::reason(&error));
                return Err(ReplayError::Failed(upstream::reason(&error)));
            }
        };
        let attribution = AttributionSource::Headers(attribution);
        let context = ResponseContext { in_flight, api, attribution, started, retries: 0, audience: Audience::Person };
        Ok((id, api, self.tap_response(response, context)))
    }

    /// The route of a recorded request, and its headers with credentials.
    fn replay_route(&self, record: &RequestRecord) -> Result<(Route, HeaderMap), ReplayError> {
        let (settings, name) = (self.interceptor.settings(), &record.received.upstream);
        let (mut headers, mut path) = (HeaderMap::new(), record.received.path.clone());
        for (name, value) in &record.received.headers {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
                headers.append(name, value);
            }
        }
        for name in [CONTENT_ENCODING, CONTENT_LENGTH] {
            headers.remove(name);
        }
        // The response is displayed, not forwarded.
        accept_identity(&mut headers);
        let configured = settings.upstreams.get(name).and_then(|upstream| upstream.credential.clone());
        let run = record.received.origin.session.as_deref().and_then(|session| self.interceptor.run_of(session));
        // A configured credential is sent to the configured server, a cached one to the server that it was cached for.
        let base = match (configured, self.cached_credentials(name, run.as_deref())) {
            (Some((header, value)), _) => {
                headers.insert(header, value);
                configured_base(&settings, name, &headers).ok_or_else(|| ReplayError::NoUpstream(name.clone()))?
            }
            (None, CredentialLookup::Ambiguous) => {
                return Err(ReplayError::AmbiguousServer { request: record.request, upstream: name.clone() });
            }
            (None, CredentialLookup::Found(cached)) => {
                headers.extend(cached.credentials);
                path = cached.query.restore(&path);
                cached.base
            }
            (None, CredentialLookup::Missing) => {
                let is_configured = configured_base(&settings, name, &headers).is_some();
                let name = name.clone();
                return Err(if is_configured {
                    ReplayError::NoCredentials(name)
                } else {
                    ReplayError::NoUpstream(name)
                });
            }
        };
        let address = upstream::address(&base, &path).ok_or_else(|| ReplayError::NoUpstream(name.clone()))?;
        let run = AgentRun { name: "replay".to_owned(), agent: record.received.origin.agent.clone() };
        Ok((Route::new(run, (name.clone(), base), (address, path), settings), headers))
    }
}

/// Reads a recorded body, with its masked credentials restored.
fn exact_body(interceptor: &Interceptor, request: RequestId, record: &BodyRecord) -> Result<Vec<u8>, ReplayError> {
    let mut bytes = interceptor.gate.read(|history| history.body(record))?;
    if interceptor.recorder.exact.restore(request, record, &mut bytes) {
        return Ok(bytes);
    }
    Err(ReplayError::Redacted { request, paths: redacted_paths(&bytes, &record.redactions) })
}

fn header_text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn unified_diff(then: &str, now: &str) -> String {
    let options =
        UnifiedOptions { context: 3, old_label: "then", new_label: "now", rendering: Rendering::Readable, limit: None };
    let text = Diff::new(then.as_bytes(), now.as_bytes()).unified(&options).into_text();
    String::from_utf8_lossy(&text).into_owned()
}

/// Formats a response as text, without ids and other values that differ in every response.
fn readable(api: Option<Api>, content_type: Option<&str>, bytes: &[u8]) -> String {
    let is_stream = content_type.is_some_and(|content_type| content_type.starts_with("text/event-stream"));
    let response = match api {
        Some(api) if is_stream => Some(collect::from_stream(api, bytes)),
        Some(api) => collect::from_body(api, bytes).ok(),
        None => None,
    };
    match response {
        Some(response) if !response.blocks.is_empty() => format_blocks(&response),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn format_blocks(response: &ModelResponse) -> String {
    let mut text = String::new();
    for block in &response.blocks {
        match &block.content {
            BlockContent::Text(content) => text.push_str(content),
            BlockContent::Thinking(content) => text.push_str(&format!("[thinking]\n{content}")),
            BlockContent::ToolCall { name, arguments, .. } => text.push_str(&format!("[{name}] {arguments}")),
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if let Some((kind, message)) = &response.error {
        text.push_str(&format!("[error] {kind}: {message}\n"));
    }
    text
}
