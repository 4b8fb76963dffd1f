//! A fast path for events that resemble the previous one.
//!
//! Most events of a stream differ only in one string, a piece of text. If the bytes around this string equal the
//! previous event's and the string has no escapes, the event has the same structure. Two comparisons then replace a
//! walk through the JSON. This is valid as long as the previous event changed only counters in the decoder, that is, if
//! it contained a piece and nothing else.

use std::borrow::Cow;

use memchr::{memchr2, memmem};

use super::event::{StreamEvent, Usage};

/// A number that differs in every event and that no dialect reads.
const SEQUENCE_NUMBER: &[u8] = b"\"sequence_number\":";

/// Maximum size of the remembered bytes around the piece.
const MAX_TEMPLATE_BYTES: usize = 1 << 10;

/// The shape of the previous event.
#[derive(Debug, Default)]
pub(super) struct EventTemplate {
    name: Vec<u8>,
    /// Bytes before the sequence number, if there is one.
    before_number: Option<Vec<u8>>,
    /// Bytes before the piece, or between the number and the piece.
    before: Vec<u8>,
    /// Bytes after the piece.
    after: Vec<u8>,
    content: Option<PieceEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Text,
    Thinking,
    Arguments,
}

/// The content of an event that has only a piece.
#[derive(Clone, Copy, Debug)]
struct PieceEvent {
    kind: PieceKind,
    block: u32,
    /// Gemini repeats the usage in every event.
    usage: Option<Usage>,
}

/// Observes the decoding of an event.
#[derive(Debug)]
pub(super) struct EventObserver {
    data: usize,
    content: Option<PieceEvent>,
    /// Offsets of the piece within the data, if it occurs there without escapes.
    place: Option<(usize, usize)>,
    more: bool,
}

impl EventObserver {
    pub(super) fn new(data: &str) -> Self {
        Self { data: data.as_ptr() as usize, content: None, place: None, more: false }
    }

    /// Records a decoded event.
    pub(super) fn observe(&mut self, event: &StreamEvent<'_>) {
        let (kind, block, piece) = match event {
            StreamEvent::Text { block, text } => (PieceKind::Text, *block, text),
            StreamEvent::Thinking { block, text } => (PieceKind::Thinking, *block, text),
            StreamEvent::ToolArguments { block, piece } => (PieceKind::Arguments, *block, piece),
            StreamEvent::Usage(usage) => {
                let before = self.content.as_mut().filter(|content| content.usage.is_none());
                self.more |= before.is_none();
                if let Some(content) = before {
                    content.usage = Some(*usage);
                }
                return;
            }
            _ => {
                self.more = true;
                return;
            }
        };
        self.more |= self.content.is_some() || piece.is_empty();
        self.content = Some(PieceEvent { kind, block, usage: None });
        if let Cow::Borrowed(piece) = piece {
            self.place = (piece.as_ptr() as usize).checked_sub(self.data).map(|start| (start, start + piece.len()));
        }
    }
}

impl EventTemplate {
    /// Returns the content of an event that matches the template; `None` if it does not match.
    pub(super) fn match_event<'a>(&self, name: &[u8], data: &'a [u8]) -> Option<(StreamEvent<'a>, Option<Usage>)> {
        let PieceEvent { kind, block, usage } = self.content?;
        let mut rest = data;
        if let Some(before_number) = &self.before_number {
            rest = rest.strip_prefix(&**before_number)?;
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            rest = rest.get(digits..).filter(|_| digits > 0)?;
        }
        let piece = rest.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        if piece.is_empty() || name != self.name || memchr2(b'"', b'\\', piece).is_some() {
            return None;
        }
        let piece = Cow::Borrowed(std::str::from_utf8(piece).ok()?);
        let event = match kind {
            PieceKind::Text => StreamEvent::Text { block, text: piece },
            PieceKind::Thinking => StreamEvent::Thinking { block, text: piece },
            PieceKind::Arguments => StreamEvent::ToolArguments { block, piece },
        };
        Some((event, usage))
    }

    /// Learns the shape of a decoded event.
    pub(super) fn learn(&mut self, name: &[u8], data: &str, observer: &EventObserver) {
        let Some(content) = observer.content.filter(|_| !observer.more) else { return self.forget() };
        let Some((start, end)) = observer.place else {
            // The piece has escapes. Keep the template, because the next piece of the same block may have none.
            if self.content.is_some_and(|last| (last.kind, last.block) != (content.kind, content.block)) {
                self.forget();
            }
            return;
        };
        let (before, after) = (data.get(..start).unwrap_or_default(), data.get(end..).unwrap_or_default());
        if !before.ends_with('"') || !after.starts_with('"') || before.len() + after.len() > MAX_TEMPLATE_BYTES {
            return self.forget();
        }
        let mut before = before.as_bytes();
        self.before_number = None;
        if let Some(at) = memmem::find(before, SEQUENCE_NUMBER) {
            let (before_number, rest) = before.split_at(at + SEQUENCE_NUMBER.len());
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits > 0 {
                (self.before_number, before) = (Some(before_number.to_vec()), &rest[digits..]);
            }
        }
        for (kept, bytes) in [(&mut self.name, name), (&mut self.before, before), (&mut self.after, after.as_bytes())] {
            kept.clear();
            kept.extend_from_slice(bytes);
        }
        self.content = Some(content);
    }

    /// Drops the template, because the event may have changed more than counters.
    pub(super) fn forget(&mut self) {
        self.content = None;
    }

    /// Returns the number of retained bytes.
    pub(super) fn retained(&self) -> usize {
        let before_number = self.before_number.as_ref().map_or(0, Vec::capacity);
        self.name.capacity() + before_number + self.before.capacity() + self.after.capacity()
    }
}
