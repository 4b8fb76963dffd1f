//! Journal entries of requests.

use std::sync::Arc;

use bytes::Bytes;
use sayso_gate::{ChunkedBody, RequestEntry};
use sayso_review::{
    BodyRecord, Event, OverrideReport, RequestEvent, RequestId, RequestReceived, RequestRecord, RequestStep, ViewEvent,
};
use sayso_wire::stream::Api;
use tokio::sync::OwnedSemaphorePermit;

use super::edits::{RequestEdits, patch};
use super::{Attribution, Interceptor, RequestMetadata, lock};
use crate::bodies::{BodyDelta, BodyExtent, UnchunkedBody};
use crate::recorder::Flush;
use crate::settings::Keep;

/// An entry without bodies.
pub(crate) fn entry(request: RequestId, step: RequestStep) -> RequestEntry {
    RequestEntry { event: Event::Request(RequestEvent { request, step }), bodies: Vec::new() }
}

/// A request that was sent as received.
fn sent_verbatim(overrides: OverrideReport) -> RequestStep {
    RequestStep::Sent { body: None, patch: None, overrides }
}

/// All of a recorded request except its body.
#[derive(Clone, Debug)]
pub(crate) struct RequestEnvelope {
    pub(crate) request: RequestId,
    pub(crate) attribution: Attribution,
    pub(crate) metadata: RequestMetadata,
    pub(crate) api: Option<Api>,
}

impl RequestEnvelope {
    /// The envelope of a request whose body is not parsed; its path names the API.
    pub(crate) fn new(request: RequestId, attribution: Attribution, metadata: RequestMetadata) -> Self {
        let api = Api::from_path(metadata.head.route());
        Self { request, attribution, metadata, api }
    }

    fn received(self, body: BodyRecord) -> RequestReceived {
        let Self { attribution, metadata, api, .. } = self;
        let api = api.and_then(|api| serde_json::to_value(api).ok()?.as_str().map(str::to_owned));
        RequestReceived {
            origin: attribution.origin(),
            upstream: metadata.upstream,
            method: metadata.method,
            path: metadata.head.path,
            api,
            model: attribution.model,
            subagent: attribution.subagent,
            body,
            encoding: metadata.encoding,
            headers: metadata.head.headers,
            replay_of: metadata.replay_of,
            server: Some(metadata.server),
        }
    }
}

type Decompress = Box<dyn FnOnce() -> (Bytes, BodyExtent) + Send>;

/// The body of a request that was forwarded while it was received.
pub(crate) enum ForwardedBody {
    Plain(BodyDelta, BodyExtent),
    /// A compressed body is decompressed on the recorder thread. `size` is its compressed size.
    Compressed {
        size: usize,
        decompress: Decompress,
    },
}

/// The body of an entry, with the budget that it occupies in the recorder's queue.
pub(super) struct QueuedBody {
    source: BodySource,
    budget: Option<OwnedSemaphorePermit>,
}

enum BodySource {
    Omitted,
    /// Encoded against the last body of its conversation on the recorder thread.
    Received(BodyDelta, BodyExtent),
    /// Inserted into the cache already.
    Cached(UnchunkedBody, BodyExtent),
    Compressed(Decompress),
}

impl QueuedBody {
    pub(super) fn omitted() -> Self {
        Self { source: BodySource::Omitted, budget: None }
    }

    pub(super) fn received(body: BodyDelta, budget: Option<OwnedSemaphorePermit>) -> Self {
        Self { source: BodySource::Received(body, BodyExtent::Complete), budget }
    }

    /// Omits the body if there is no budget: memory is bounded while the disk is stalled.
    fn within(source: BodySource, budget: Option<OwnedSemaphorePermit>) -> Self {
        if budget.is_some() { Self { source, budget } } else { Self::omitted() }
    }
}

impl Interceptor {
    /// Records a request that was forwarded verbatim. For a request that is neither recorded nor a subagent's, the prefix of the body
    /// suffices.
    pub(crate) fn record_forwarded(self: &Arc<Self>, mut envelope: RequestEnvelope, body: ForwardedBody, now: i64) {
        let (source, budget) = match body {
            ForwardedBody::Plain(mut body, extent) => {
                envelope.attribution = envelope.attribution.with_model(&envelope.metadata.head, &mut body);
                self.touch_session(&envelope, &body, now);
                if self.settings().keep != Keep::All {
                    return;
                }
                if envelope.attribution.subagent.is_some() {
                    let budget = self.recorder.budget(body.added_bytes());
                    (BodySource::Received(body, extent), budget)
                } else {
                    // Inserted here and not on the recorder thread: the next request of the conversation may be received before.
                    let body = self.bodies.insert(envelope.attribution.conversation_key(), body);
                    let budget = self.recorder.budget(body.copied_bytes());
                    (BodySource::Cached(body, extent), budget)
                }
            }
            ForwardedBody::Compressed { size, decompress } => {
                self.touch_session(&envelope, &BodyDelta::default(), now);
                (BodySource::Compressed(decompress), self.recorder.budget(size))
            }
        };
        let sent = entry(envelope.request, sent_verbatim(OverrideReport::default()));
        self.record_request(envelope, QueuedBody::within(source, budget), Flush::Batched, Some(sent));
    }

    /// Records a replay. It belongs to the session of the replayed request.
    pub(crate) fn record_replay(
        self: &Arc<Self>,
        request: RequestId,
        replayed: &RequestRecord,
        metadata: RequestMetadata,
        body: Bytes,
    ) -> Attribution {
        let attribution = Attribution::from_record(&replayed.received);
        let metadata = RequestMetadata { replay_of: Some(replayed.request), ..metadata };
        let envelope = RequestEnvelope::new(request, attribution.clone(), metadata);
        let sent = entry(request, sent_verbatim(OverrideReport::default()));
        self.record_request(envelope, QueuedBody::received(body.into(), None), Flush::Immediate, Some(sent));
        attribution
    }

    /// Records a received request, followed by another entry. The recorder thread splits and hashes the body, because that takes longer
    /// than forwarding it.
    pub(super) fn record_request(
        self: &Arc<Self>,
        envelope: RequestEnvelope,
        body: QueuedBody,
        flush: Flush,
        then: Option<RequestEntry>,
    ) {
        let bodies = Arc::clone(&self.bodies);
        let (request, QueuedBody { source, budget }) = (envelope.request, body);
        self.recorder.build_later(request, flush, budget, move || {
            let key = envelope.attribution.conversation_key();
            let (body, extent) = match source {
                BodySource::Omitted => (ChunkedBody::new(Bytes::new()), BodyExtent::Truncated),
                BodySource::Received(body, extent) => (bodies.chunk(key, body), extent),
                BodySource::Cached(body, extent) => (body.chunk(), extent),
                BodySource::Compressed(decompress) => {
                    let (body, extent) = decompress();
                    (bodies.chunk(key, body.into()), extent)
                }
            };
            let record = BodyRecord { truncated: extent == BodyExtent::Truncated, ..body.record() };
            let step = RequestStep::Received(Box::new(envelope.received(record)));
            let received = RequestEntry { bodies: vec![body], ..entry(request, step) };
            std::iter::once(received).chain(then).collect()
        });
    }

    /// Counts a request in its session, and in the monitor if it is a subagent's.
    pub(super) fn touch_session(&self, envelope: &RequestEnvelope, body: &BodyDelta, now: i64) {
        let max_runs = self.settings().monitor;
        // Assembled before the lock is taken.
        let subagent_body = envelope.attribution.subagent.is_some().then(|| body.to_bytes());
        let mut state = lock(&self.state);
        state.registry.touch(&envelope.attribution, &envelope.metadata.run, now);
        let trimmed = subagent_body.map_or(0, |body| state.registry.monitor.observe(envelope, body, max_runs, now));
        drop(state);
        if trimmed > 0 {
            let event = ViewEvent::Trimmed { runs: trimmed as u64 };
            self.recorder.event(Event::RequestViewed(event), Flush::Batched);
        }
    }

    pub(super) fn record_sent_verbatim(&self, request: RequestId, overrides: OverrideReport) {
        self.recorder.step(request, sent_verbatim(overrides), Flush::Batched);
    }

    pub(super) fn record_sent_edited(&self, request: RequestId, edits: &RequestEdits, body: &Arc<[u8]>) {
        let body = Bytes::from_owner(Arc::clone(body));
        let (edited, overrides) = (edits.edited.clone(), edits.overrides.clone());
        self.recorder.build_later(request, Flush::Batched, None, move || {
            let (body, patch) = (ChunkedBody::new(body), patch(edited.as_ref()));
            let recorded = patch.as_ref().map(ChunkedBody::record);
            let step = RequestStep::Sent { body: Some(body.record()), patch: recorded, overrides };
            vec![RequestEntry { bodies: std::iter::once(body).chain(patch).collect(), ..entry(request, step) }]
        });
    }
}
