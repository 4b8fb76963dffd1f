//! Requests to models in the journal: recorded in batches, since one that passes must not wait for a disk, and read again.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use sayso_journal::AppendError;
use sayso_review::redact::Redaction;
use sayso_review::{
    BodyRecord, ContentHash, Event, EventBody, MAX_REDACTIONS, ModeSet, PIECE, RequestEvent, RequestId, RequestRecord,
    RequestStep, redact,
};

use crate::error::GateError;
use crate::history::{History, recorded};
use crate::live::Gate;
use crate::record::Entry;
use crate::rope::Rope;

/// The counter of requests, and the key of events that say that one came.
const REQUESTS: &str = "requests";
/// The key of events that say how requests are treated.
pub(crate) const MODES: &str = "request modes";
/// The key of events that say that a request waits.
const PAUSED: &str = "paused requests";
/// Events that are looked at in one go.
const SOME: usize = 1_000;

/// Something to be recorded about requests, with the bodies that it names.
#[derive(Clone, Debug)]
pub struct RequestEntry {
    /// What happened.
    pub event: Event,
    /// The bodies that it names.
    pub bodies: Vec<CutBody>,
}

/// A body in the pieces in which it is stored, with its credentials masked.
#[derive(Clone, Debug)]
pub struct CutBody {
    /// All of it, masked.
    pub bytes: Rope,
    /// The pieces, in order.
    pub pieces: Vec<Piece>,
    /// The masked spans, in order and without overlaps.
    pub redactions: Vec<Redaction>,
    /// The value of each, which is never stored.
    pub values: Vec<Bytes>,
}

/// A piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its name.
    pub hash: ContentHash,
    /// How many bytes it has, at most [`PIECE`].
    pub size: usize,
    /// Whether it is in the journal.
    pub stored: Stored,
}

/// Whether something is in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It should be: it was in a body before.
    Before,
    /// It may not be.
    Unknown,
}

impl CutBody {
    /// A body of which nothing is known.
    pub fn new(bytes: Bytes) -> Self {
        let found = redact::merged(&redact::find(&bytes));
        Self::masked(bytes, found)
    }

    /// The body of an answer, which may hold a credential in bits.
    pub fn of_answer(bytes: Bytes) -> Self {
        let found = redact::merged(&redact::find_in_answer(&bytes));
        Self::masked(bytes, found)
    }

    fn masked(bytes: Bytes, redactions: Vec<Redaction>) -> Self {
        let bytes = Rope::from(bytes);
        let (bytes, values) = (bytes.masked(&redactions), bytes.values(&redactions));
        let pieces = bytes.bytes(0..bytes.len()).chunks(PIECE).map(Piece::new).collect();
        Self { bytes, pieces, redactions, values }
    }

    /// As it is recorded.
    pub fn record(&self) -> BodyRecord {
        BodyRecord {
            size: self.bytes.len() as u64,
            pieces: self.pieces.iter().map(|piece| piece.hash).collect(),
            cut: false,
            redacted: self.redactions.len() as u64,
            redactions: self.redactions.iter().take(MAX_REDACTIONS).cloned().collect(),
        }
    }

    /// Each piece with where its bytes are.
    fn places(&self) -> impl Iterator<Item = (Piece, Range<usize>)> {
        self.pieces.iter().scan(0, |end, piece| {
            let start = std::mem::replace(end, *end + piece.size);
            Some((*piece, start..*end))
        })
    }
}

impl Piece {
    /// A piece of which nothing is known.
    pub fn new(bytes: &[u8]) -> Self {
        Self { hash: ContentHash::of(bytes), size: bytes.len(), stored: Stored::Unknown }
    }
}

/// Whether what should be stored is taken to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    Yes,
    No,
}

/// What of a body is to be stored, and what is.
#[derive(Default)]
struct Contents<'b> {
    blobs: Vec<(ContentHash, Cow<'b, [u8]>)>,
    stored: Vec<ContentHash>,
}

impl<'b> Contents<'b> {
    fn of(bodies: &'b [CutBody], trust: Trust) -> Self {
        let mut contents = Self::default();
        for body in bodies {
            for (piece, place) in body.places() {
                if trust == Trust::Yes && piece.stored == Stored::Before {
                    contents.stored.push(piece.hash);
                } else {
                    contents.blobs.push((piece.hash, body.bytes.bytes(place)));
                }
            }
        }
        contents
    }
}

/// What an event about a request can be found by.
pub(crate) fn keys(event: &RequestEvent) -> Vec<String> {
    let mut keys = vec![request_key(event.request)];
    match &event.step {
        RequestStep::Seen(seen) => {
            keys.push(REQUESTS.to_owned());
            keys.extend(seen.origin.session.as_deref().map(requests_key));
        }
        RequestStep::Paused { .. } => keys.push(PAUSED.to_owned()),
        _ => {}
    }
    keys
}

fn request_key(request: RequestId) -> String {
    format!("request:{request}")
}

/// The key of the requests of a session.
fn requests_key(session: &str) -> String {
    format!("requests:{session}")
}

impl Gate {
    /// Records what happened to requests, in order, all or nothing.
    pub fn record_requests(&self, entries: &[RequestEntry], now: i64) -> Result<(), GateError> {
        match self.record_trusting(entries, Trust::Yes, now) {
            // What was to store it failed, or it was given up since.
            Err(GateError::Append(AppendError::MissingBlob(_))) => self.record_trusting(entries, Trust::No, now),
            done => done,
        }
    }

    fn record_trusting(&self, entries: &[RequestEntry], trust: Trust, now: i64) -> Result<(), GateError> {
        let mut last = 0;
        let mut batch = Entry::default();
        let contents: Vec<Contents<'_>> = entries.iter().map(|entry| Contents::of(&entry.bodies, trust)).collect();
        for (RequestEntry { event, .. }, Contents { blobs, stored }) in entries.iter().zip(&contents) {
            last = last.max(event.request().unwrap_or_default());
            let blobs: Vec<(ContentHash, &[u8])> = blobs.iter().map(|(hash, bytes)| (*hash, &**bytes)).collect();
            batch.push_blobs(event.clone(), &blobs, stored);
        }
        let mut state = self.state();
        // A batch may hold earlier numbers only; a counter never goes back.
        let counted = state.engine.journal.reader().counter(REQUESTS)?;
        batch.count(REQUESTS, last.max(counted));
        state.engine.write(batch, now)?;
        Ok(())
    }

    /// The number of the last request.
    pub fn last_request(&self) -> Result<RequestId, GateError> {
        self.read(|history| Ok(history.reader().counter(REQUESTS)?))
    }
}

impl History<'_> {
    /// One request.
    pub fn request(&self, request: RequestId) -> Result<RequestRecord, GateError> {
        let (key, mut events, mut after) = (request_key(request), Vec::new(), 0);
        loop {
            let more = self.reader().events_with(&key, after, SOME)?;
            let is_all = more.len() < SOME;
            after = more.last().map_or(after, |event| event.number);
            events.extend(more);
            if is_all {
                break;
            }
        }
        RequestRecord::fold(events.iter().map(recorded)).ok_or(GateError::NoSuchRequest(request))
    }

    /// The requests before one, of a session or of all, newest first.
    pub fn requests(
        &self,
        session: Option<&str>,
        before: Option<RequestId>,
        limit: usize,
    ) -> Result<Vec<RequestRecord>, GateError> {
        let key = session.map_or_else(|| REQUESTS.to_owned(), requests_key);
        let (mut requests, mut page) = (Vec::new(), None);
        while requests.len() < limit {
            let events = self.reader().latest_with(&key, page, limit.min(SOME))?;
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

    /// The last requests that waited, newest first, so many at most.
    pub fn paused_requests(&self, most: usize) -> Result<Vec<RequestRecord>, GateError> {
        let events = self.reader().latest_with(PAUSED, None, most)?;
        let mut requests = Vec::new();
        for event in &events {
            let EventBody::Known(event) = EventBody::decode(&event.body) else { continue };
            match event.request().map(|request| self.request(request)) {
                Some(Ok(record)) => requests.push(record),
                // That it came could not be recorded.
                None | Some(Err(GateError::NoSuchRequest(_))) => {}
                Some(Err(error)) => return Err(error),
            }
        }
        Ok(requests)
    }

    /// The bytes of a body, as far as they were kept.
    pub fn body(&self, body: &BodyRecord) -> Result<Vec<u8>, GateError> {
        let mut bytes = Vec::with_capacity(usize::try_from(body.size).unwrap_or_default());
        for piece in &body.pieces {
            bytes.extend_from_slice(&self.content(*piece)?.ok_or(GateError::BodyGone)?);
        }
        Ok(bytes)
    }

    /// How requests are treated, as it was last said for each session and for all.
    pub fn request_modes(&self) -> Result<Vec<ModeSet>, GateError> {
        let mut modes: Vec<ModeSet> = Vec::new();
        let mut after = 0;
        loop {
            let events = self.reader().events_with(MODES, after, SOME)?;
            let Some(last) = events.last() else { return Ok(modes) };
            after = last.number;
            for event in &events {
                let EventBody::Known(Event::RequestMode(set)) = recorded(event).body else { continue };
                modes.retain(|other| other.session != set.session);
                modes.push(set);
            }
        }
    }
}
