//! Event boundaries in a server-sent-event stream. Frames end anywhere, and a keep-alive inside an event would corrupt it.

use bytes::{Bytes, BytesMut};

/// Bytes of an incomplete event that are held back.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// Bytes of a non-streamed response that are held back, recorded and decoded.
pub(super) const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Tells whether a forwarded stream is between two events.
#[derive(Debug)]
pub(super) struct SseBoundary {
    last: [u8; 3],
}

impl Default for SseBoundary {
    /// The start of a stream counts as an empty line.
    fn default() -> Self {
        Self { last: [b'\n'; 3] }
    }
}

impl SseBoundary {
    /// Reads forwarded bytes.
    pub(super) fn feed(&mut self, data: &[u8]) {
        for byte in &data[data.len().saturating_sub(3)..] {
            self.last = [self.last[1], self.last[2], *byte];
        }
    }

    pub(super) fn is_between_events(&self) -> bool {
        ends_event(&self.last)
    }
}

fn ends_event(bytes: &[u8]) -> bool {
    [&b"\n\n"[..], b"\n\r\n", b"\r\r"].iter().any(|end| bytes.ends_with(end))
}

/// Releases complete events only.
#[derive(Debug, Default)]
pub(super) struct CompleteEvents {
    incomplete: BytesMut,
}

impl CompleteEvents {
    /// Returns the events that are complete now.
    pub(super) fn feed(&mut self, data: &[u8]) -> Bytes {
        // The two bytes before the new ones may belong to an end of event.
        let checked = self.incomplete.len().saturating_sub(2);
        self.incomplete.extend_from_slice(data);
        let end = (checked..=self.incomplete.len()).rev().find(|end| ends_event(&self.incomplete[..*end]));
        let end = if self.incomplete.len() > MAX_EVENT_BYTES { self.incomplete.len() } else { end.unwrap_or(0) };
        self.incomplete.split_to(end).freeze()
    }

    /// Returns the incomplete event at the end of the stream.
    pub(super) fn finish(&mut self) -> Bytes {
        self.incomplete.split().freeze()
    }
}

/// Bytes of a response that are held back until the tool calls in them were processed.
#[derive(Debug)]
pub(super) enum HoldbackBuffer {
    None,
    /// The incomplete event.
    Event(CompleteEvents),
    /// The last frame: an agent cannot use a non-streamed response without its end.
    Frame(Bytes),
    /// The whole response.
    All(BytesMut),
}

impl HoldbackBuffer {
    /// Takes received bytes, and returns the bytes that may be forwarded.
    pub(super) fn feed(&mut self, data: Bytes) -> Bytes {
        match self {
            Self::None => data,
            Self::Event(events) => events.feed(&data),
            Self::Frame(last) => std::mem::replace(last, data),
            Self::All(all) if all.len() + data.len() <= MAX_RESPONSE_BYTES => {
                all.extend_from_slice(&data);
                Bytes::new()
            }
            // A response of this size cannot be decoded, so the tap ends it with an error.
            Self::All(all) => {
                all.clear();
                Bytes::new()
            }
        }
    }

    /// Returns the bytes that are left at the end.
    pub(super) fn finish(&mut self) -> Bytes {
        match self {
            Self::None => Bytes::new(),
            Self::Event(events) => events.finish(),
            Self::Frame(last) => std::mem::take(last),
            Self::All(all) => all.split().freeze(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_any_size_release_complete_events() {
        let text: &[u8] = b": hi\n\nevent: a\r\ndata: 1\r\n\r\ndata: 2\r\rdata: 3\n\ndata: cut";
        for size in 1..=text.len() {
            let (mut events, mut out) = (CompleteEvents::default(), Vec::new());
            for chunk in text.chunks(size) {
                let whole = events.feed(chunk);
                assert!(whole.is_empty() || ends_event(&whole), "{whole:?}");
                out.extend_from_slice(&whole);
            }
            assert_eq!(out, text[..text.len() - 9], "frames of {size} bytes");
            out.extend_from_slice(&events.finish());
            assert_eq!(out, text);
        }
    }

    #[test]
    fn event_beyond_limit_is_released() {
        let mut events = CompleteEvents::default();
        assert_eq!(events.feed(&vec![b'x'; MAX_EVENT_BYTES]).len(), 0);
        assert_eq!(events.feed(b"y").len(), MAX_EVENT_BYTES + 1);
    }
}
