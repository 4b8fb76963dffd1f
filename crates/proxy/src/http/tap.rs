//! A request on its way to a model: passed on as it comes, and somebody is told what it was.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

use super::attribution::{Attribution, BodyAttribution};
use super::body::{BodyError, TooLarge, UNWANTED};
use super::taker::{OnTheirWay, Taker, Told, Wanted};
use crate::desk::Sequel;

/// A body that somebody is told of, once it was passed on.
pub(super) struct RequestTap {
    inner: Incoming,
    left: usize,
    /// Bytes that came and were too many.
    surplus: usize,
    /// Bytes that were passed on.
    passed: usize,
    /// `None` once all of it was passed on.
    taker: Option<Arc<Taker>>,
    /// Whether a beginning is enough.
    beginning: bool,
    /// Set while the session is read from the body.
    attribution: Option<Arc<BodyAttribution>>,
}

impl RequestTap {
    /// Passes on no more than so many bytes.
    pub(super) fn new(inner: Incoming, most: usize, wanted: Wanted, attribution: &Attribution, told: Told) -> Self {
        let size = usize::try_from(inner.size_hint().lower()).unwrap_or(most).min(most);
        let beginning = matches!(wanted, Wanted::Beginning);
        let taker = Taker::new(wanted, size, told);
        let attribution = match attribution {
            Attribution::Headers(_) => None,
            Attribution::Body(body) => Some(Arc::clone(body)),
        };
        Self { inner, left: most, surplus: 0, passed: 0, taker: Some(Arc::new(taker)), beginning, attribution }
    }

    /// What is to come after this request on record, if that is to wait.
    pub(super) fn sequel(&self) -> Option<Arc<Sequel>> {
        self.taker.as_ref().and_then(|taker| taker.sequel())
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
                // Read on, and passed on to nobody: a client that still sends would never get to its answer.
                _ if frame.is_some() && self.surplus < UNWANTED => self.surplus += size.max(1),
                _ => return Poll::Ready(Some(Err(TooLarge.into()))),
            }
        };
        let frame = frame.map(|frame| frame.map(|frame| frame.map_data(|data| self.taken(data))).map_err(Into::into));
        if (frame.is_none() || self.inner.is_end_stream())
            && let Some(taker) = self.taker.take()
        {
            if let Some(attribution) = self.attribution.take() {
                attribution.finish();
            }
            taker.is_whole(self.passed);
        }
        Poll::Ready(frame)
    }

    /// Bytes that are taken in once they have been written.
    fn taken(&mut self, data: Bytes) -> Bytes {
        let Some(taker) = &self.taker else { return data };
        if let Some(attribution) = &self.attribution {
            attribution.feed(&data, self.inner.size_hint().exact());
        }
        let at = self.passed;
        self.passed += data.len();
        if self.beginning {
            taker.take(at, &data);
            return data;
        }
        Bytes::from_owner(OnTheirWay { data, at, taker: Arc::clone(taker) })
    }
}
