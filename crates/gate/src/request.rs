//! Records of model requests. They are written in batches, since a forwarded request must not wait for the disk.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use sayso_journal::AppendError;
use sayso_review::redact::Redaction;
use sayso_review::{
    BodyRecord, CHUNK_SIZE, ContentHash, Event, EventBody, MAX_REDACTIONS, ModeSet, RequestEvent, RequestId,
    RequestRecord, RequestStep, redact,
};

use crate::error::GateError;
use crate::gate::Gate;
use crate::history::{History, decode_event};
use crate::record::JournalBatch;
use crate::rope::Rope;

/// Counter of requests, and key of their first events.
const REQUESTS: &str = "requests";
/// Key of mode changes.
pub(crate) const MODES: &str = "request modes";
/// Key of events that pause a request.
const PAUSED: &str = "paused requests";
const PAGE_SIZE: usize = 1_000;

/// Event about a request, with the bodies that it refers to.
#[derive(Clone, Debug)]
pub struct RequestEntry {
    pub event: Event,
    pub bodies: Vec<ChunkedBody>,
}

/// Body in the chunks that are stored, with its credentials masked.
#[derive(Clone, Debug)]
pub struct ChunkedBody {
    /// The whole body, masked.
    pub bytes: Rope,
    pub chunks: Vec<Chunk>,
    /// Masked spans, sorted and without overlaps.
    pub redactions: Vec<Redaction>,
    /// Values of the masked spans. They are never stored.
    pub values: Vec<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub hash: ContentHash,
    /// In bytes, at most [`CHUNK_SIZE`].
    pub size: usize,
    pub presence: ChunkPresence,
}

/// Presence of a chunk in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkPresence {
    /// An earlier body has the chunk, so the journal should.
    Known,
    Unknown,
}

impl ChunkedBody {
    /// Masks and chunks a request body.
    pub fn new(bytes: Bytes) -> Self {
        let found = redact::merged(&redact::find(&bytes));
        Self::masked(bytes, found)
    }

    /// Masks and chunks a response body, which may have credentials split over events.
    pub fn of_response(bytes: Bytes) -> Self {
        let found = redact::merged(&redact::find_in_answer(&bytes));
        Self::masked(bytes, found)
    }

    fn masked(bytes: Bytes, redactions: Vec<Redaction>) -> Self {
        let bytes = Rope::from(bytes);
        let (bytes, values) = (bytes.masked(&redactions), bytes.copy_spans(&redactions));
        let chunks = bytes.bytes(0..bytes.len()).chunks(CHUNK_SIZE).map(Chunk::new).collect();
        Self { bytes, chunks, redactions, values }
    }

    /// Returns the record of the body.
    pub fn record(&self) -> BodyRecord {
        BodyRecord {
            size: self.bytes.len() as u64,
            chunks: self.chunks.iter().map(|chunk| chunk.hash).collect(),
            truncated: false,
            redacted: self.redactions.len() as u64,
            redactions: self.redactions.iter().take(MAX_REDACTIONS).cloned().collect(),
        }
    }

    /// Returns each chunk with its range in the body.
    fn chunk_ranges(&self) -> impl Iterator<Item = (Chunk, Range<usize>)> {
        self.chunks.iter().scan(0, |end, chunk| {
            let start = std::mem::replace(end, *end + chunk.size);
            Some((*chunk, start..*end))
        })
    }
}

impl Chunk {
    pub fn new(bytes: &[u8]) -> Self {
        Self { hash: ContentHash::of(bytes), size: bytes.len(), presence: ChunkPresence::Unknown }
    }
}

/// Treatment of chunks that should be stored already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StoreMode {
    MissingOnly,
    All,
}

/// Chunks of a body to store, and chunks that are stored already.
#[derive(Default)]
struct BodyBlobs<'b> {
    blobs: Vec<(ContentHash, Cow<'b, [u8]>)>,
    stored: Vec<ContentHash>,
}

impl<'b> BodyBlobs<'b> {
    fn collect(bodies: &'b [ChunkedBody], trust: StoreMode) -> Self {
        let mut contents = Self::default();
        for body in bodies {
            for (chunk, range) in body.chunk_ranges() {
                if trust == StoreMode::MissingOnly && chunk.presence == ChunkPresence::Known {
                    contents.stored.push(chunk.hash);
                } else {
                    contents.blobs.push((chunk.hash, body.bytes.bytes(range)));
                }
            }
        }
        contents
    }
}

/// Returns the keys of an event about a request.
pub(crate) fn keys(event: &RequestEvent) -> Vec<String> {
    let mut keys = vec![request_key(event.request)];
    match &event.step {
        RequestStep::Received(seen) => {
            keys.push(REQUESTS.to_owned());
            keys.extend(seen.origin.session.as_deref().map(session_requests_key));
        }
        RequestStep::Paused { .. } => keys.push(PAUSED.to_owned()),
        _ => {}
    }
    keys
}

fn request_key(request: RequestId) -> String {
    format!("request:{request}")
}

fn session_requests_key(session: &str) -> String {
    format!("requests:{session}")
}

impl Gate {
    /// Records events about requests in one transaction.
    pub fn record_requests(&self, entries: &[RequestEntry], now: i64) -> Result<(), GateError> {
        match self.record_trusting(entries, StoreMode::MissingOnly, now) {
            // An earlier batch failed, or a collection deleted the chunk. Store all chunks.
            Err(GateError::Append(AppendError::MissingBlob(_))) => self.record_trusting(entries, StoreMode::All, now),
            done => done,
        }
    }

    fn record_trusting(&self, entries: &[RequestEntry], trust: StoreMode, now: i64) -> Result<(), GateError> {
        let mut last = 0;
        let mut batch = JournalBatch::default();
        let contents: Vec<BodyBlobs<'_>> =
            entries.iter().map(|entry| BodyBlobs::collect(&entry.bodies, trust)).collect();
        for (RequestEntry { event, .. }, BodyBlobs { blobs, stored }) in entries.iter().zip(&contents) {
            last = last.max(event.request().unwrap_or_default());
            let blobs: Vec<(ContentHash, &[u8])> = blobs.iter().map(|(hash, bytes)| (*hash, &**bytes)).collect();
            batch.push_event_with_blobs(event.clone(), &blobs, stored);
        }
        let mut state = self.state();
        // The batch may have only earlier numbers, and a counter cannot decrease.
        let counted = state.engine.journal.reader().counter(REQUESTS)?;
        batch.set_counter(REQUESTS, last.max(counted));
        state.engine.write(batch, now)?;
        Ok(())
    }

    /// Returns the number of the last request.
    pub fn last_request(&self) -> Result<RequestId, GateError> {
        self.read(|history| Ok(history.reader().counter(REQUESTS)?))
    }
}

impl History<'_> {
    /// Returns a request.
    pub fn request(&self, request: RequestId) -> Result<RequestRecord, GateError> {
        let (key, mut events, mut after) = (request_key(request), Vec::new(), 0);
        loop {
            let more = self.reader().events_with(&key, after, PAGE_SIZE)?;
            let is_all = more.len() < PAGE_SIZE;
            after = more.last().map_or(after, |event| event.number);
            events.extend(more);
            if is_all {
                break;
            }
        }
        RequestRecord::fold(events.iter().map(decode_event)).ok_or(GateError::NoSuchRequest(request))
    }

    /// Returns the requests of a session or of all sessions before a request, newest first.
    pub fn requests(
        &self,
        session: Option<&str>,
        before: Option<RequestId>,
        limit: usize,
    ) -> Result<Vec<RequestRecord>, GateError> {
        let key = session.map_or_else(|| REQUESTS.to_owned(), session_requests_key);
        let (mut requests, mut page) = (Vec::new(), None);
        while requests.len() < limit {
            let events = self.reader().latest_with(&key, page, limit.min(PAGE_SIZE))?;
            let Some(first) = events.last() else { break };
            page = Some(first.number);
            for event in &events {
                let EventBody::Known(event) = EventBody::decode(&event.body) else { continue };
                let Some(request) = event.request().filter(|own| before.is_none_or(|before| *own < before)) else {
                    continue;
                };
                if requests.len() < limit {
                    requests.push(self.request(request)?);
                }
            }
        }
        Ok(requests)
    }

    /// Returns the last requests that were paused, newest first.
    pub fn paused_requests(&self, limit: usize) -> Result<Vec<RequestRecord>, GateError> {
        let events = self.reader().latest_with(PAUSED, None, limit)?;
        let mut requests = Vec::new();
        for event in &events {
            let EventBody::Known(event) = EventBody::decode(&event.body) else { continue };
            match event.request().map(|request| self.request(request)) {
                Some(Ok(record)) => requests.push(record),
                // The first event of the request was not recorded.
                None | Some(Err(GateError::NoSuchRequest(_))) => {}
                Some(Err(error)) => return Err(error),
            }
        }
        Ok(requests)
    }

    /// Returns the bytes of a body.
    pub fn body(&self, body: &BodyRecord) -> Result<Vec<u8>, GateError> {
        let mut bytes = Vec::with_capacity(usize::try_from(body.size).unwrap_or_default());
        for chunk in &body.chunks {
            bytes.extend_from_slice(&self.content(*chunk)?.ok_or(GateError::BodyGone)?);
        }
        Ok(bytes)
    }

    /// Returns the last mode for each session and for all sessions.
    pub fn request_modes(&self) -> Result<Vec<ModeSet>, GateError> {
        let mut modes: Vec<ModeSet> = Vec::new();
        let mut after = 0;
        loop {
            let events = self.reader().events_with(MODES, after, PAGE_SIZE)?;
            let Some(last) = events.last() else { return Ok(modes) };
            after = last.number;
            for event in &events {
                let EventBody::Known(Event::RequestMode(set)) = decode_event(event).body else { continue };
                modes.retain(|other| other.session != set.session);
                modes.push(set);
            }
        }
    }
}
