//! A shortcut for events that are like the one before.
//!
//! Nearly all events of a stream are equal but for one string, a piece of text. An event whose bytes before and after that string are
//! those of the last one, and whose string has no escapes, has the same structure, so it says the same with another piece: two
//! comparisons in place of a walk through its JSON. That holds as long as the last event changed nothing in the decoder but
//! counters, which is so when it said its piece and nothing else.

use std::borrow::Cow;

use memchr::{memchr2, memmem};

use super::event::{StreamEvent, Usage};

/// The one number that differs from event to event, and that no dialect reads.
const COUNTER: &[u8] = b"\"sequence_number\":";

/// Longer surroundings than this are not remembered.
const LIMIT: usize = 1 << 10;

/// What the last event looked like.
#[derive(Debug, Default)]
pub(super) struct Shape {
    name: Vec<u8>,
    /// What came before the number that counts events, if there is one.
    counter: Option<Vec<u8>>,
    /// What came before the piece, or between the number and the piece.
    before: Vec<u8>,
    /// What came after the piece.
    after: Vec<u8>,
    said: Option<Said>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Arguments,
}

/// What an event said.
#[derive(Clone, Copy, Debug)]
struct Said {
    kind: Kind,
    block: u32,
    /// Gemini repeats it in every event.
    usage: Option<Usage>,
}

/// Looks on while an event is taken apart.
#[derive(Debug)]
pub(super) struct Watch {
    data: usize,
    said: Option<Said>,
    /// Where in the data the piece is, if it is there as it is.
    place: Option<(usize, usize)>,
    more: bool,
}

impl Watch {
    pub(super) fn new(data: &str) -> Self {
        Self { data: data.as_ptr() as usize, said: None, place: None, more: false }
    }

    /// Notes what was said.
    pub(super) fn see(&mut self, event: &StreamEvent<'_>) {
        let (kind, block, piece) = match event {
            StreamEvent::Text { block, text } => (Kind::Text, *block, text),
            StreamEvent::Thinking { block, text } => (Kind::Thinking, *block, text),
            StreamEvent::ToolArguments { block, piece } => (Kind::Arguments, *block, piece),
            StreamEvent::Usage(usage) => {
                let before = self.said.as_mut().filter(|said| said.usage.is_none());
                self.more |= before.is_none();
                if let Some(said) = before {
                    said.usage = Some(*usage);
                }
                return;
            }
            _ => {
                self.more = true;
                return;
            }
        };
        self.more |= self.said.is_some() || piece.is_empty();
        self.said = Some(Said { kind, block, usage: None });
        if let Cow::Borrowed(piece) = piece {
            self.place = (piece.as_ptr() as usize).checked_sub(self.data).map(|start| (start, start + piece.len()));
        }
    }
}

impl Shape {
    /// Says what an event says that is like the last one; otherwise says nothing.
    pub(super) fn repeat<'a>(&self, name: &[u8], data: &'a [u8]) -> Option<(StreamEvent<'a>, Option<Usage>)> {
        let Said { kind, block, usage } = self.said?;
        let mut rest = data;
        if let Some(counter) = &self.counter {
            rest = rest.strip_prefix(&**counter)?;
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            rest = rest.get(digits..).filter(|_| digits > 0)?;
        }
        let piece = rest.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        if piece.is_empty() || name != self.name || memchr2(b'"', b'\\', piece).is_some() {
            return None;
        }
        let piece = Cow::Borrowed(std::str::from_utf8(piece).ok()?);
        let event = match kind {
            Kind::Text => StreamEvent::Text { block, text: piece },
            Kind::Thinking => StreamEvent::Thinking { block, text: piece },
            Kind::Arguments => StreamEvent::ToolArguments { block, piece },
        };
        Some((event, usage))
    }

    /// Takes over the shape of an event that was taken apart.
    pub(super) fn learn(&mut self, name: &[u8], data: &str, watch: &Watch) {
        let Some(said) = watch.said.filter(|_| !watch.more) else { return self.forget() };
        let Some((start, end)) = watch.place else {
            // A piece with escapes: the next one may be without again, if it is of the same block.
            if self.said.is_some_and(|last| (last.kind, last.block) != (said.kind, said.block)) {
                self.forget();
            }
            return;
        };
        let (before, after) = (data.get(..start).unwrap_or_default(), data.get(end..).unwrap_or_default());
        if !before.ends_with('"') || !after.starts_with('"') || before.len() + after.len() > LIMIT {
            return self.forget();
        }
        let mut before = before.as_bytes();
        self.counter = None;
        if let Some(at) = memmem::find(before, COUNTER) {
            let (counter, rest) = before.split_at(at + COUNTER.len());
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits > 0 {
                (self.counter, before) = (Some(counter.to_vec()), &rest[digits..]);
            }
        }
        for (kept, bytes) in [(&mut self.name, name), (&mut self.before, before), (&mut self.after, after.as_bytes())] {
            kept.clear();
            kept.extend_from_slice(bytes);
        }
        self.said = Some(said);
    }

    /// Forgets it: what came changed more than counters, or nobody knows.
    pub(super) fn forget(&mut self) {
        self.said = None;
    }

    /// How many bytes it holds on to.
    pub(super) fn retained(&self) -> usize {
        let counter = self.counter.as_ref().map_or(0, Vec::capacity);
        self.name.capacity() + counter + self.before.capacity() + self.after.capacity()
    }
}
