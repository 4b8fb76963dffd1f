//! Captures a request body while it is forwarded.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use sayso_review::RequestId;

use super::body::{BodyError, MAX_DISCARDED_BYTES, TooLarge};
use crate::bodies::{BodyRecorder, CaptureMode, OnRecorded, RecordedChunk};
use crate::interceptor::{AttributionSource, BodyAttribution};
use crate::recorder::RecordBarrier;

/// A forwarded body. Its frames are recorded when hyper drops them, which is after they were written.
pub(super) struct RequestTap {
    inner: Incoming,
    /// Bytes that may still be forwarded.
    left: usize,
    /// Bytes beyond the limit, which were discarded.
    surplus: usize,
    /// Bytes that were forwarded.
    forwarded: usize,
    /// `None` after the end of the body.
    recorder: Option<Arc<BodyRecorder>>,
    captures_prefix: bool,
    /// Set while the session is read from the body.
    attribution: Option<Arc<BodyAttribution>>,
}

impl RequestTap {
    /// Forwards at most `max` bytes.
    pub(super) fn new(
        request: RequestId,
        inner: Incoming,
        max: usize,
        (mode, attribution): (CaptureMode, &AttributionSource),
        on_recorded: OnRecorded,
    ) -> Self {
        let size = usize::try_from(inner.size_hint().lower()).unwrap_or(max).min(max);
        let captures_prefix = matches!(mode, CaptureMode::Prefix);
        let recorder = Arc::new(BodyRecorder::new(request, mode, size, on_recorded));
        let attribution = match attribution {
            AttributionSource::Headers(_) => None,
            AttributionSource::Body(body) => Some(Arc::clone(body)),
        };
        Self { inner, left: max, surplus: 0, forwarded: 0, recorder: Some(recorder), captures_prefix, attribution }
    }

    /// The barrier for journal entries that follow this request.
    pub(super) fn barrier(&self) -> Option<Arc<RecordBarrier>> {
        self.recorder.as_ref().and_then(|recorder| recorder.barrier())
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = loop {
            let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
            let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()).and_then(Frame::data_ref);
            let size = data.map_or(0, Bytes::len);
            match self.left.checked_sub(size) {
                Some(left) if self.surplus == 0 => {
                    self.left = left;
                    break frame;
                }
                // Many clients read the response only after they have sent the whole body.
                _ if frame.is_some() && self.surplus < MAX_DISCARDED_BYTES => self.surplus += size.max(1),
                _ => return Poll::Ready(Some(Err(TooLarge.into()))),
            }
        };
        let frame = frame.map(|frame| frame.map(|frame| frame.map_data(|data| self.capture(data))).map_err(Into::into));
        if (frame.is_none() || self.inner.is_end_stream())
            && let Some(recorder) = self.recorder.take()
        {
            if let Some(attribution) = self.attribution.take() {
                attribution.finish();
            }
            recorder.complete(self.forwarded);
        }
        Poll::Ready(frame)
    }

    /// Wraps a frame so that its drop records it. A prefix is copied at once: keeping frames until they are written is not worth it.
    fn capture(&mut self, data: Bytes) -> Bytes {
        let Some(recorder) = &self.recorder else { return data };
        if let Some(attribution) = &self.attribution {
            attribution.feed(&data, self.inner.size_hint().exact());
        }
        let offset = self.forwarded;
        self.forwarded += data.len();
        if self.captures_prefix {
            recorder.capture(offset, &data);
            return data;
        }
        Bytes::from_owner(RecordedChunk { data, offset, recorder: Arc::clone(recorder) })
    }
}
