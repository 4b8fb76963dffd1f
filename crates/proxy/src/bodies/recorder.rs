//! Captures a request body as its chunks leave for the upstream.
//!
//! Comparing a body with its base takes longer than forwarding it. The recorder therefore only queues the bytes when they are written;
//! the recorder thread compares them later (see the [module documentation](super) for the batch triggers).

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use sayso_review::RequestId;

use super::{BodyCache, BodyDelta, BodyExtent, DeltaEncoder};
use crate::interceptor::AttributionSource;
use crate::lock;
use crate::recorder::{Deferred, RecordBarrier, Recorder};

/// Called once with the captured body.
pub(crate) type OnRecorded = Box<dyn FnOnce(BodyDelta, BodyExtent) + Send>;

/// The part of a body that a recorder captures.
pub(crate) enum CaptureMode {
    Full,
    /// The difference to a base, computed on the recorder thread.
    Delta {
        bodies: Arc<BodyCache>,
        recorder: Arc<Recorder>,
        attribution: AttributionSource,
    },
    /// The first [`PREFIX_BYTES`].
    Prefix,
}

const PREFIX_BYTES: usize = 4 << 10;
/// Bytes of one body that may be queued. Beyond that, the forwarding thread compares inline.
const MAX_QUEUED_BYTES: usize = 2 << 20;
/// Size of the buffer that a small body keeps alive.
const READ_BUFFER_BYTES: usize = 8 << 10;

/// The captured bytes of a body.
enum CaptureBuffer {
    /// The session is unknown, and with it the base. The bytes wait.
    Unattributed {
        bodies: Arc<BodyCache>,
        attribution: AttributionSource,
        pending: Vec<Bytes>,
    },
    Delta(DeltaEncoder),
    /// A copy of at most `max` bytes.
    Copy {
        bytes: Vec<u8>,
        max: usize,
    },
}

impl CaptureBuffer {
    fn new(mode: CaptureMode) -> Self {
        match mode {
            CaptureMode::Delta { bodies, attribution, .. } => {
                Self::Unattributed { bodies, attribution, pending: Vec::new() }
            }
            CaptureMode::Full => Self::Copy { bytes: Vec::new(), max: usize::MAX },
            CaptureMode::Prefix => Self::Copy { bytes: Vec::new(), max: PREFIX_BYTES },
        }
    }

    /// Captures the next bytes of a body of about `size` bytes. `data` is a slice of a read buffer that hyper reuses once it is
    /// dropped, so the buffer keeps it only while the session is unknown.
    fn feed(&mut self, data: &Bytes, size: usize) {
        if data.is_empty() {
            return;
        }
        if let Self::Unattributed { attribution, pending, .. } = self {
            pending.push(data.clone());
            if attribution.resolved().is_some() {
                self.choose_base(size);
            }
            return;
        }
        self.append(data, size);
    }

    /// Finds the base of the session, and feeds the bytes that waited for it.
    fn choose_base(&mut self, size: usize) {
        let Self::Unattributed { bodies, attribution, pending } = self else { return };
        let pending = std::mem::take(pending);
        let Some(first) = pending.first() else { return };
        let encoder = bodies.encoder(&attribution.resolve(), first, size);
        *self = encoder.map_or_else(|| Self::Copy { bytes: Vec::new(), max: usize::MAX }, Self::Delta);
        for data in pending {
            self.append(&data, size);
        }
    }

    fn append(&mut self, data: &[u8], size: usize) {
        match self {
            Self::Unattributed { .. } => {}
            Self::Delta(encoder) => encoder.feed(data),
            Self::Copy { bytes, max } => {
                if bytes.is_empty() {
                    bytes.reserve_exact(size.min(*max));
                }
                let capacity = *max - bytes.len();
                bytes.extend_from_slice(&data[..data.len().min(capacity)]);
            }
        }
    }

    fn finish(mut self) -> BodyDelta {
        // A body that broke off belongs to the session that its first bytes name.
        self.choose_base(0);
        match self {
            Self::Unattributed { .. } => BodyDelta::default(),
            Self::Delta(encoder) => encoder.finish(),
            Self::Copy { bytes, .. } => Bytes::from(bytes).into(),
        }
    }
}

/// Feeds chunks to the buffer in the order of the body. Over HTTP/2, chunks are dropped in any order.
struct InOrder {
    buffer: CaptureBuffer,
    /// Offset of the next chunk.
    next: usize,
    /// Chunks that were dropped before their predecessor, by offset.
    early: BTreeMap<usize, Bytes>,
}

impl InOrder {
    fn feed(&mut self, offset: usize, data: &Bytes, size: usize) {
        if offset != self.next {
            self.early.insert(offset, data.clone());
            return;
        }
        self.buffer.feed(data, size);
        self.next += data.len();
        while let Some(data) = self.early.remove(&self.next) {
            self.buffer.feed(&data, size);
            self.next += data.len();
        }
    }
}

struct CaptureState {
    /// `None` while a thread compares queued chunks without holding the lock.
    reader: Option<InOrder>,
    /// Chunks that are not compared yet, with their offsets.
    queued: Vec<(usize, Bytes)>,
    /// `true` while the recorder thread is scheduled to compare them.
    deferred: bool,
    /// `None` once it was called.
    on_recorded: Option<OnRecorded>,
}

impl CaptureState {
    fn feed_queued(&mut self, size: usize) {
        if let Some(reader) = &mut self.reader {
            for (offset, data) in std::mem::take(&mut self.queued) {
                reader.feed(offset, &data, size);
            }
        }
    }
}

/// Captures the body of one request. When the body is complete, or the last reference to the recorder is dropped, the callback
/// receives the result. No path can forget to record a request, because every path drops it.
pub(crate) struct BodyRecorder {
    request: RequestId,
    state: Mutex<CaptureState>,
    /// Expected length of the body; 0 if it is unknown.
    size: usize,
    /// Length of the complete body, or [`INCOMPLETE`].
    total: AtomicUsize,
    /// Set for deltas: the barrier that holds back later entries, and the recorder that runs the comparison.
    deferral: Option<(Arc<RecordBarrier>, Arc<Recorder>)>,
}

/// The end of the body has not been received.
const INCOMPLETE: usize = usize::MAX;

impl BodyRecorder {
    pub(crate) fn new(request: RequestId, mode: CaptureMode, size: usize, on_recorded: OnRecorded) -> Self {
        let deferral = match &mode {
            CaptureMode::Delta { recorder, .. } => Some((Arc::default(), Arc::clone(recorder))),
            CaptureMode::Full | CaptureMode::Prefix => None,
        };
        let reader = Some(InOrder { buffer: CaptureBuffer::new(mode), next: 0, early: BTreeMap::new() });
        let state = CaptureState { reader, queued: Vec::new(), deferred: false, on_recorded: Some(on_recorded) };
        Self { request, state: Mutex::new(state), size, total: AtomicUsize::new(INCOMPLETE), deferral }
    }

    /// Holds back journal entries until this body is recorded. `None` if the body is recorded before the response can start.
    pub(crate) fn barrier(&self) -> Option<Arc<RecordBarrier>> {
        self.deferral.as_ref().map(|(barrier, _)| Arc::clone(barrier))
    }

    /// Marks the body as complete with this length.
    pub(crate) fn complete(&self, total: usize) {
        self.total.store(total, Ordering::Release);
    }

    /// Captures a chunk at once.
    pub(crate) fn capture(&self, offset: usize, data: &Bytes) {
        if !data.is_empty() {
            let mut state = lock(&self.state);
            state.queued.push((offset, data.clone()));
            state.feed_queued(self.size);
        }
    }

    /// Queues a chunk that was written, or captures it if the queue is full.
    fn capture_written(self: &Arc<Self>, offset: usize, data: Bytes) {
        let Some((_, recorder)) = &self.deferral else { return self.capture(offset, &data) };
        if data.is_empty() {
            return;
        }
        let mut state = lock(&self.state);
        let end = offset + data.len();
        state.queued.push((offset, data));
        if !state.deferred {
            let this: Arc<Self> = Arc::clone(self);
            state.deferred = recorder.defer(this);
        }
        if !state.deferred || end.saturating_sub(state.queued[0].0) > MAX_QUEUED_BYTES {
            state.feed_queued(self.size);
        }
    }

    /// Hands the body to the callback, once.
    fn finish(&self, mut state: MutexGuard<'_, CaptureState>) {
        let Some(on_recorded) = state.on_recorded.take() else { return };
        // The reader is missing if an earlier comparison panicked.
        let (body, len) = state
            .reader
            .take()
            .map_or_else(|| (BodyDelta::default(), 0), |reader| (reader.buffer.finish(), reader.next));
        let is_complete = len == self.total.load(Ordering::Acquire);
        let extent = if is_complete { BodyExtent::Complete } else { BodyExtent::Truncated };
        // A panic must not unwind through hyper, which drops the chunks.
        if catch_unwind(AssertUnwindSafe(|| on_recorded(body, extent))).is_err() {
            tracing::error!(request = self.request, "recording a request body panicked");
        }
        if let Some((barrier, _)) = &self.deferral {
            barrier.release();
        }
    }
}

impl Deferred for BodyRecorder {
    fn request(&self) -> RequestId {
        self.request
    }

    fn size(&self) -> usize {
        // A body of unknown length may be large, and the smallest chunk keeps its read buffer alive.
        if self.size == 0 { MAX_QUEUED_BYTES } else { self.size.max(READ_BUFFER_BYTES) }
    }

    fn run(&self) {
        let mut state = lock(&self.state);
        while let Some(mut reader) = state.reader.take() {
            let queued = std::mem::take(&mut state.queued);
            if queued.is_empty() {
                let is_complete = reader.next == self.total.load(Ordering::Acquire);
                (state.reader, state.deferred) = (Some(reader), false);
                if is_complete {
                    self.finish(state);
                }
                return;
            }
            // Compares without the lock: the forwarding thread keeps queueing.
            drop(state);
            for (offset, data) in queued {
                reader.feed(offset, &data, self.size);
            }
            state = lock(&self.state);
            state.reader = Some(reader);
        }
    }
}

impl Drop for BodyRecorder {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.feed_queued(self.size);
        self.finish(state);
    }
}

/// A chunk on its way to the upstream. hyper drops it once it is written, and the drop captures it.
pub(crate) struct RecordedChunk {
    pub(crate) data: Bytes,
    /// Offset in the body.
    pub(crate) offset: usize,
    pub(crate) recorder: Arc<BodyRecorder>,
}

impl AsRef<[u8]> for RecordedChunk {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for RecordedChunk {
    fn drop(&mut self) {
        self.recorder.capture_written(self.offset, std::mem::take(&mut self.data));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use std::sync::mpsc::channel;

    use super::*;

    /// Drops four chunks in this order, and returns the recorded body.
    fn record(order: &[usize], total: usize) -> (Vec<u8>, BodyExtent) {
        let (sender, recorded) = channel();
        let on_recorded: OnRecorded =
            Box::new(move |body, extent| sender.send((body.to_bytes().to_vec(), extent)).unwrap());
        let recorder = Arc::new(BodyRecorder::new(1, CaptureMode::Full, 9, on_recorded));
        recorder.complete(total);
        let chunks = [(0, "one"), (3, "two"), (6, ""), (6, "three")];
        let chunk = |(offset, text)| {
            let data = Bytes::from_static(str::as_bytes(text));
            RecordedChunk { data, offset, recorder: Arc::clone(&recorder) }
        };
        let mut chunks = chunks.map(|text| Some(chunk(text)));
        drop(recorder);
        for chunk in order {
            assert!(recorded.try_recv().is_err(), "recorded before all chunks were written");
            drop(chunks[*chunk].take());
        }
        // A chunk that is never dropped is never written.
        chunks.into_iter().for_each(std::mem::forget);
        recorded.try_recv().unwrap_or((Vec::new(), BodyExtent::Truncated))
    }

    #[test]
    fn chunks_dropped_in_any_order_are_recorded_in_order() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 3, 0, 1], [1, 0, 3, 2]] {
            assert_eq!(record(&order, 11), (b"onetwothree".to_vec(), BodyExtent::Complete), "{order:?}");
            assert_eq!(record(&order, INCOMPLETE), (b"onetwothree".to_vec(), BodyExtent::Truncated), "{order:?}");
        }
    }
}
