//! Server-sent events, cut out of bytes as they come.
//!
//! Line ends are `\n`, `\r\n` or `\r`. A `\r` at the end of a chunk waits for the next byte, which may be the other half of the line's
//! end, so that positions do not depend on where the network cut. What lies within one chunk is handed out as it lies there; only
//! what a chunk leaves unfinished is copied.

use std::ops::Range;

use memchr::memchr2;

/// The most bytes of one event that are kept while its end has not come; a longer one is skipped and reported.
pub const EVENT_LIMIT: usize = 16 << 20;

/// A buffer beyond this is given back once it is empty.
const KEPT_CAPACITY: usize = 64 << 10;
/// The most bytes of an event's name and id that are kept: real ones have a few dozen.
const NAME_LIMIT: usize = 1 << 10;

/// What a stream of server-sent events consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseItem<'a> {
    /// An event with data, or with a name alone.
    Event(SseEvent<'a>),
    /// A comment, without its colon.
    Comment(&'a [u8]),
    /// An empty line that ends nothing.
    Blank,
    /// An event that was skipped for its size.
    TooLong {
        /// How many bytes its lines had.
        bytes: u64,
    },
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// What `event:` said; empty if it was not there.
    pub name: &'a [u8],
    /// The lines of `data:`, with `\n` between them.
    pub data: &'a [u8],
    /// What `id:` said last in this event.
    pub id: Option<&'a [u8]>,
    /// What `retry:` said, in milliseconds.
    pub retry: Option<u64>,
}

/// Decodes server-sent events at any chunk boundary.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    /// Of all bytes fed so far.
    position: u64,
    /// The start of a line that the last chunk did not end.
    line: Vec<u8>,
    line_start: u64,
    /// Whether the last byte was a `\r` that may be half of a line's end.
    half_end: bool,
    first_line: bool,
    group: Group,
}

/// The event whose lines are coming in.
#[derive(Debug, Default)]
struct Group {
    start: Option<u64>,
    name: Vec<u8>,
    /// Its data so far, where it is not one line of the current chunk.
    data: Vec<u8>,
    has_data: bool,
    id: Option<Vec<u8>>,
    retry: Option<u64>,
    has_comment: bool,
    /// Bytes of lines that did not fit.
    dropped: u64,
    /// Whether the line that is coming in is too long already.
    dropping: bool,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::with_limit(EVENT_LIMIT)
    }
}

impl SseDecoder {
    /// One at the start of a stream that skips events with more than `limit` bytes of data.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            position: 0,
            line: Vec::new(),
            line_start: 0,
            half_end: false,
            first_line: true,
            group: Group::default(),
        }
    }

    /// Takes the next bytes and hands out what became known, with the range of bytes it came from.
    pub fn feed(&mut self, chunk: &[u8], out: &mut impl FnMut(Range<u64>, SseItem<'_>)) {
        // The one data line of the current event, as long as it lies in this chunk.
        let mut borrowed: Option<&[u8]> = None;
        let mut at = 0;
        if self.half_end && !chunk.is_empty() {
            self.half_end = false;
            at = usize::from(chunk[0] == b'\n');
            self.kept_line_ended(self.position + at as u64, out);
        }
        while let Some(found) = line_length(&chunk[at..]) {
            let end = at + found;
            let mut next = end + 1;
            if chunk[end] == b'\r' {
                match chunk.get(next) {
                    Some(b'\n') => next += 1,
                    Some(_) => {}
                    None => {
                        self.half_end = true;
                        self.keep(&chunk[at..end]);
                        at = next;
                        break;
                    }
                }
            }
            let after = self.position + next as u64;
            if self.line.is_empty() {
                self.line_ended(&chunk[at..end], after, &mut borrowed, out);
            } else {
                self.keep(&chunk[at..end]);
                self.kept_line_ended(after, out);
            }
            at = next;
        }
        self.keep(&chunk[at..]);
        self.position += chunk.len() as u64;
        if let Some(data) = borrowed {
            self.group.data.extend_from_slice(data);
        }
    }

    /// Hands out what the stream ended in the middle of.
    pub fn end(&mut self, out: &mut impl FnMut(Range<u64>, SseItem<'_>)) {
        self.half_end = false;
        if !self.line.is_empty() || self.group.dropping {
            self.kept_line_ended(self.position, out);
        }
        self.dispatch(self.position, None, out);
        self.group = Group::default();
    }

    /// How many bytes it holds on to.
    pub fn retained(&self) -> usize {
        let Group { name, data, id, .. } = &self.group;
        self.line.capacity() + name.capacity() + data.capacity() + id.as_ref().map_or(0, Vec::capacity)
    }

    /// Keeps the start of a line, unless that makes it too long.
    fn keep(&mut self, part: &[u8]) {
        if self.group.dropping {
            self.group.dropped += part.len() as u64;
        } else if self.line.len() + part.len() > self.limit {
            self.group.dropping = true;
            self.group.dropped += (self.line.len() + part.len()) as u64;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(part);
        }
    }

    /// Ends a line that did not lie in one chunk.
    fn kept_line_ended(&mut self, after: u64, out: &mut impl FnMut(Range<u64>, SseItem<'_>)) {
        let line = std::mem::take(&mut self.line);
        let mut borrowed = None;
        self.line_ended(&line, after, &mut borrowed, out);
        if let Some(data) = borrowed {
            self.group.data.extend_from_slice(data);
        }
        self.line = emptied(line);
    }

    fn line_ended<'c>(
        &mut self,
        line: &'c [u8],
        after: u64,
        borrowed: &mut Option<&'c [u8]>,
        out: &mut impl FnMut(Range<u64>, SseItem<'_>),
    ) {
        let start = std::mem::replace(&mut self.line_start, after);
        let group = &mut self.group;
        if std::mem::take(&mut group.dropping) || line.len() > self.limit {
            group.dropped += line.len() as u64;
            group.start.get_or_insert(start);
            return;
        }
        let mut line = line;
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            let data = data.strip_prefix(b" ").unwrap_or(data);
            group.start.get_or_insert(start);
            group.add_data(data, borrowed, self.limit);
        } else if line.is_empty() {
            let data = borrowed.take();
            self.dispatch(after, data, out);
            if self.group.start.is_none() && !self.group.has_comment {
                out(start..after, SseItem::Blank);
            }
            self.group.clear();
        } else if let Some(name) = line.strip_prefix(b"event:") {
            group.start.get_or_insert(start);
            group.called(name);
        } else if let Some(comment) = line.strip_prefix(b":") {
            group.has_comment = true;
            out(start..after, SseItem::Comment(comment));
        } else {
            group.start.get_or_insert(start);
            group.field(line, borrowed, self.limit);
        }
    }

    /// Hands out the event whose lines have come, if there is one.
    fn dispatch(&mut self, end: u64, borrowed: Option<&[u8]>, out: &mut impl FnMut(Range<u64>, SseItem<'_>)) {
        let Group { start: Some(start), name, data, has_data, id, retry, dropped, .. } = &self.group else { return };
        let item = if *dropped > 0 {
            SseItem::TooLong { bytes: *dropped }
        } else if *has_data || !name.is_empty() {
            SseItem::Event(SseEvent { name, data: borrowed.unwrap_or(data), id: id.as_deref(), retry: *retry })
        } else {
            return;
        };
        out(*start..end, item);
    }
}

impl Group {
    fn add_data<'c>(&mut self, line: &'c [u8], borrowed: &mut Option<&'c [u8]>, limit: usize) {
        if !self.has_data {
            self.has_data = true;
            *borrowed = Some(line);
            return;
        }
        if let Some(before) = borrowed.take() {
            self.data.extend_from_slice(before);
        }
        if self.data.len() + 1 + line.len() > limit || self.dropped > 0 {
            self.dropped += (self.data.len() + line.len()) as u64;
            self.data = Vec::new();
        } else {
            self.data.push(b'\n');
            self.data.extend_from_slice(line);
        }
    }

    fn called(&mut self, name: &[u8]) {
        let name = name.strip_prefix(b" ").unwrap_or(name);
        self.name.clear();
        self.name.extend_from_slice(&name[..name.len().min(NAME_LIMIT)]);
    }

    fn field<'c>(&mut self, line: &'c [u8], borrowed: &mut Option<&'c [u8]>, limit: usize) {
        let colon = memchr::memchr(b':', line);
        let (name, value) = colon.map_or((line, &b""[..]), |colon| (&line[..colon], &line[colon + 1..]));
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => self.called(value),
            b"data" => self.add_data(b"", borrowed, limit),
            b"id" if !value.contains(&0) => self.id = Some(value[..value.len().min(NAME_LIMIT)].to_vec()),
            b"retry" => self.retry = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()),
            _ => {}
        }
    }

    fn clear(&mut self) {
        let (mut name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        name.clear();
        *self = Self { name, data: emptied(data), ..Self::default() };
    }
}

/// Where the first line ends, if it does.
fn line_length(bytes: &[u8]) -> Option<usize> {
    // Every third line is empty, which is seen sooner than searched for.
    if bytes.first() == Some(&b'\n') { Some(0) } else { memchr2(b'\n', b'\r', bytes) }
}

/// The same buffer without its content, or a new one where it had grown large.
fn emptied(mut buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > KEPT_CAPACITY {
        return Vec::new();
    }
    buffer.clear();
    buffer
}
