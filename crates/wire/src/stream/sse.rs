//! An incremental decoder for server-sent events.
//!
//! Lines end in `\n`, `\r\n` or `\r`. A `\r` at the end of a chunk is held until the next byte, which may belong to the
//! same line end. Positions therefore do not depend on chunk boundaries. Content within one chunk is borrowed; only an
//! unfinished rest is copied.

use std::ops::Range;

use memchr::memchr2;

/// Maximum number of buffered bytes of an event. A longer event is skipped and reported.
pub const EVENT_LIMIT: usize = 16 << 20;

/// Maximum capacity of an empty buffer that is kept for reuse.
const MAX_KEPT_CAPACITY: usize = 64 << 10;
/// Maximum length of an event's name and id, in bytes. Usual ones have a few dozen.
const MAX_NAME_BYTES: usize = 1 << 10;

/// An item of a stream of server-sent events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseItem<'a> {
    /// An event with data or a name.
    Event(SseEvent<'a>),
    /// A comment, without its colon.
    Comment(&'a [u8]),
    /// An empty line that ends no event.
    Blank,
    /// An event that exceeded the size limit.
    TooLong {
        /// Size of its lines in bytes.
        bytes: u64,
    },
}

/// A server-sent event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Value of `event:`; empty if missing.
    pub name: &'a [u8],
    /// Values of `data:`, joined by `\n`.
    pub data: &'a [u8],
    /// Last value of `id:` in this event.
    pub id: Option<&'a [u8]>,
    /// Value of `retry:`, in milliseconds.
    pub retry: Option<u64>,
}

/// Decodes server-sent events at any chunk boundary.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    /// Number of bytes received.
    position: u64,
    /// Start of a line that the last chunk did not end.
    line: Vec<u8>,
    line_start: u64,
    /// `true` if the last byte was a `\r`, which may be half of a line end.
    pending_carriage_return: bool,
    first_line: bool,
    pending: PendingEvent,
}

/// An event whose lines are being received.
#[derive(Debug, Default)]
struct PendingEvent {
    start: Option<u64>,
    name: Vec<u8>,
    /// Data so far, unless it is a single line of the current chunk.
    data: Vec<u8>,
    has_data: bool,
    id: Option<Vec<u8>>,
    retry: Option<u64>,
    has_comment: bool,
    /// Number of bytes in lines beyond the limit.
    dropped_bytes: u64,
    /// `true` if the current line exceeds the limit.
    line_too_long: bool,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::with_limit(EVENT_LIMIT)
    }
}

impl SseDecoder {
    /// Creates a decoder that skips events with more than `limit` bytes of data.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            position: 0,
            line: Vec::new(),
            line_start: 0,
            pending_carriage_return: false,
            first_line: true,
            pending: PendingEvent::default(),
        }
    }

    /// Decodes the next bytes and passes completed items with their byte ranges to `out`.
    pub fn feed(&mut self, chunk: &[u8], out: &mut impl FnMut(Range<u64>, SseItem<'_>)) {
        // The only data line of the current event, while it is within this chunk.
        let mut borrowed: Option<&[u8]> = None;
        let mut at = 0;
        if self.pending_carriage_return && !chunk.is_empty() {
            self.pending_carriage_return = false;
            at = usize::from(chunk[0] == b'\n');
            self.end_buffered_line(self.position + at as u64, out);
        }
        while let Some(found) = line_length(&chunk[at..]) {
            let end = at + found;
            let mut next = end + 1;
            if chunk[end] == b'\r' {
                match chunk.get(next) {
                    Some(b'\n') => next += 1,
                    Some(_) => {}
                    None => {
                        self.pending_carriage_return = true;
                        self.buffer_line(&chunk[at..end]);
                        at = next;
                        break;
                    }
                }
            }
            let after = self.position + next as u64;
            if self.line.is_empty() {
                self.end_line(&chunk[at..end], after, &mut borrowed, out);
            } else {
                self.buffer_line(&chunk[at..end]);
                self.end_buffered_line(after, out);
            }
            at = next;
        }
        self.buffer_line(&chunk[at..]);
        self.position += chunk.len() as u64;
        if let Some(data) = borrowed {
            self.pending.data.extend_from_slice(data);
        }
    }

    /// Ends the stream and passes the incomplete event to `out`.
    pub fn end(&mut self, out: &mut impl FnMut(Range<u64>, SseItem<'_>)) {
        self.pending_carriage_return = false;
        if !self.line.is_empty() || self.pending.line_too_long {
            self.end_buffered_line(self.position, out);
        }
        self.dispatch(self.position, None, out);
        self.pending = PendingEvent::default();
    }

    /// Returns the number of retained bytes.
    pub fn retained(&self) -> usize {
        let PendingEvent { name, data, id, .. } = &self.pending;
        self.line.capacity() + name.capacity() + data.capacity() + id.as_ref().map_or(0, Vec::capacity)
    }

    /// Buffers the start of a line, unless it exceeds the limit.
    fn buffer_line(&mut self, part: &[u8]) {
        if self.pending.line_too_long {
            self.pending.dropped_bytes += part.len() as u64;
        } else if self.line.len() + part.len() > self.limit {
            self.pending.line_too_long = true;
            self.pending.dropped_bytes += (self.line.len() + part.len()) as u64;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(part);
        }
    }

    /// Ends a line that began in an earlier chunk.
    fn end_buffered_line(&mut self, after: u64, out: &mut impl FnMut(Range<u64>, SseItem<'_>)) {
        let line = std::mem::take(&mut self.line);
        let mut borrowed = None;
        self.end_line(&line, after, &mut borrowed, out);
        if let Some(data) = borrowed {
            self.pending.data.extend_from_slice(data);
        }
        self.line = recycled(line);
    }

    fn end_line<'c>(
        &mut self,
        line: &'c [u8],
        after: u64,
        borrowed: &mut Option<&'c [u8]>,
        out: &mut impl FnMut(Range<u64>, SseItem<'_>),
    ) {
        let start = std::mem::replace(&mut self.line_start, after);
        let pending = &mut self.pending;
        if std::mem::take(&mut pending.line_too_long) || line.len() > self.limit {
            pending.dropped_bytes += line.len() as u64;
            pending.start.get_or_insert(start);
            return;
        }
        let mut line = line;
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            let data = data.strip_prefix(b" ").unwrap_or(data);
            pending.start.get_or_insert(start);
            pending.add_data(data, borrowed, self.limit);
        } else if line.is_empty() {
            let data = borrowed.take();
            self.dispatch(after, data, out);
            if self.pending.start.is_none() && !self.pending.has_comment {
                out(start..after, SseItem::Blank);
            }
            self.pending.clear();
        } else if let Some(name) = line.strip_prefix(b"event:") {
            pending.start.get_or_insert(start);
            pending.set_name(name);
        } else if let Some(comment) = line.strip_prefix(b":") {
            pending.has_comment = true;
            out(start..after, SseItem::Comment(comment));
        } else {
            pending.start.get_or_insert(start);
            pending.field(line, borrowed, self.limit);
        }
    }

    /// Passes the current event to `out`, if there is one.
    fn dispatch(&mut self, end: u64, borrowed: Option<&[u8]>, out: &mut impl FnMut(Range<u64>, SseItem<'_>)) {
        let PendingEvent { start: Some(start), name, data, has_data, id, retry, dropped_bytes, .. } = &self.pending
        else {
            return;
        };
        let item = if *dropped_bytes > 0 {
            SseItem::TooLong { bytes: *dropped_bytes }
        } else if *has_data || !name.is_empty() {
            SseItem::Event(SseEvent { name, data: borrowed.unwrap_or(data), id: id.as_deref(), retry: *retry })
        } else {
            return;
        };
        out(*start..end, item);
    }
}

impl PendingEvent {
    fn add_data<'c>(&mut self, line: &'c [u8], borrowed: &mut Option<&'c [u8]>, limit: usize) {
        if !self.has_data {
            self.has_data = true;
            *borrowed = Some(line);
            return;
        }
        if let Some(before) = borrowed.take() {
            self.data.extend_from_slice(before);
        }
        if self.data.len() + 1 + line.len() > limit || self.dropped_bytes > 0 {
            self.dropped_bytes += (self.data.len() + line.len()) as u64;
            self.data = Vec::new();
        } else {
            self.data.push(b'\n');
            self.data.extend_from_slice(line);
        }
    }

    fn set_name(&mut self, name: &[u8]) {
        let name = name.strip_prefix(b" ").unwrap_or(name);
        self.name.clear();
        self.name.extend_from_slice(&name[..name.len().min(MAX_NAME_BYTES)]);
    }

    fn field<'c>(&mut self, line: &'c [u8], borrowed: &mut Option<&'c [u8]>, limit: usize) {
        let colon = memchr::memchr(b':', line);
        let (name, value) = colon.map_or((line, &b""[..]), |colon| (&line[..colon], &line[colon + 1..]));
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => self.set_name(value),
            b"data" => self.add_data(b"", borrowed, limit),
            b"id" if !value.contains(&0) => self.id = Some(value[..value.len().min(MAX_NAME_BYTES)].to_vec()),
            b"retry" => self.retry = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()),
            _ => {}
        }
    }

    fn clear(&mut self) {
        let (mut name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        name.clear();
        *self = Self { name, data: recycled(data), ..Self::default() };
    }
}

/// Returns the length of the first line, if it is complete.
fn line_length(bytes: &[u8]) -> Option<usize> {
    // Every third line is empty, which needs no search.
    if bytes.first() == Some(&b'\n') { Some(0) } else { memchr2(b'\n', b'\r', bytes) }
}

/// Returns the emptied buffer, or a new one if its capacity exceeds the limit.
fn recycled(mut buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > MAX_KEPT_CAPACITY {
        return Vec::new();
    }
    buffer.clear();
    buffer
}
