//! Where a stream of events can be interrupted: frames end anywhere, but a sign of life within an event would break it.

use bytes::{Bytes, BytesMut};

/// The largest part of an event that is held back.
const MOST: usize = 16 << 20;

/// The largest answer in one piece that is held back, which is the largest that is read.
pub(super) const MOST_WHOLE: usize = 64 << 20;

/// Where a stream is that was passed on so far.
#[derive(Debug)]
pub(super) struct Position {
    last: [u8; 3],
}

impl Default for Position {
    /// At the beginning, which is as good as an empty line.
    fn default() -> Self {
        Self { last: [b'\n'; 3] }
    }
}

impl Position {
    /// Takes note of what is passed on.
    pub(super) fn pass(&mut self, data: &[u8]) {
        for byte in &data[data.len().saturating_sub(3)..] {
            self.last = [self.last[1], self.last[2], *byte];
        }
    }

    /// Whether no event has begun that is not over.
    pub(super) fn is_between_events(&self) -> bool {
        ends_an_event(&self.last)
    }
}

fn ends_an_event(bytes: &[u8]) -> bool {
    [&b"\n\n"[..], b"\n\r\n", b"\r\r"].iter().any(|end| bytes.ends_with(end))
}

/// Hands on whole events: the beginning of one waits for its end.
#[derive(Debug, Default)]
pub(super) struct WholeEvents {
    begun: BytesMut,
}

impl WholeEvents {
    /// Takes in what came, and gives what is whole by now.
    pub(super) fn pass(&mut self, data: &[u8]) -> Bytes {
        // An end may have begun in what is here already.
        let known = self.begun.len().saturating_sub(2);
        self.begun.extend_from_slice(data);
        let end = (known..=self.begun.len()).rev().find(|end| ends_an_event(&self.begun[..*end]));
        let end = if self.begun.len() > MOST { self.begun.len() } else { end.unwrap_or(0) };
        self.begun.split_to(end).freeze()
    }

    /// What began and is not going to end.
    pub(super) fn rest(&mut self) -> Bytes {
        self.begun.split().freeze()
    }
}

/// What of an answer is held back until it is known whether calls in it have to be dealt with first.
#[derive(Debug)]
pub(super) enum Back {
    /// Nothing.
    Nothing,
    /// The beginning of an event.
    Event(WholeEvents),
    /// The last frame so far: what comes in one piece can be used once all of it is there.
    Frame(Bytes),
    /// All of it.
    All(BytesMut),
}

impl Back {
    /// Takes in what came, and gives what can be passed on.
    pub(super) fn pass(&mut self, data: Bytes) -> Bytes {
        match self {
            Self::Nothing => data,
            Self::Event(events) => events.pass(&data),
            Self::Frame(last) => std::mem::replace(last, data),
            Self::All(all) if all.len() + data.len() <= MOST_WHOLE => {
                all.extend_from_slice(&data);
                Bytes::new()
            }
            // It is too large to be read, and ends for that.
            Self::All(all) => {
                all.clear();
                Bytes::new()
            }
        }
    }

    /// What is left at the end.
    pub(super) fn rest(&mut self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::Event(events) => events.rest(),
            Self::Frame(last) => std::mem::take(last),
            Self::All(all) => all.split().freeze(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_frames_events_are_passed_on_whole_and_all_of_them() {
        let text: &[u8] = b": hi\n\nevent: a\r\ndata: 1\r\n\r\ndata: 2\r\rdata: 3\n\ndata: cut";
        for size in 1..=text.len() {
            let (mut events, mut out) = (WholeEvents::default(), Vec::new());
            for chunk in text.chunks(size) {
                let whole = events.pass(chunk);
                assert!(whole.is_empty() || ends_an_event(&whole), "{whole:?}");
                out.extend_from_slice(&whole);
            }
            assert_eq!(out, text[..text.len() - 9], "all that is whole, in frames of {size}");
            out.extend_from_slice(&events.rest());
            assert_eq!(out, text);
        }
    }

    #[test]
    fn what_is_too_large_is_not_held_back() {
        let mut events = WholeEvents::default();
        assert_eq!(events.pass(&vec![b'x'; MOST]).len(), 0);
        assert_eq!(events.pass(b"y").len(), MOST + 1);
    }
}
