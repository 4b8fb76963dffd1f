//! Serialized form of a [`ScanIndex`].
//!
//! Numbers are stored as differences from the entry before, and paths without their shared prefix: some 50 bytes per
//! entry, of which 32 are the content's hash. Damaged bytes decode to `None`. That costs a full scan and never yields a
//! wrong index.

use sayso_review::ContentHash;

use super::index::{Coverage, IndexEntry, ScanIndex, Span, StatTrust, Stored};
use super::signature::{Moment, Signature};

/// Magic bytes with the version of the format.
const MARK: &[u8] = b"sayso tree 1\n";
const HASH_BYTES: usize = 32;
/// Maximum decoded text size, since shared prefixes let few bytes expand to very many.
const MOST_TEXT: usize = 1 << 30;

/// Flags in the byte with an entry's kind.
const RACY: u8 = 0b0100;
const LEAVING: u8 = 0b1000;

const START: Signature = Signature {
    size: 0,
    modified: Moment::from_nanoseconds(0),
    changed: Moment::from_nanoseconds(0),
    inode: 0,
    device: 0,
    mode: 0,
};

impl ScanIndex {
    /// Serializes the index.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 * (self.entries.len() + self.directories.len()) + 64);
        bytes.extend_from_slice(MARK);
        bytes.extend_from_slice(&[0; HASH_BYTES]);
        let mut writer = Writer { bytes, path: "", last: START };
        writer.number(self.entries.len() as u64);
        for entry in &self.entries {
            writer.entry(self, entry);
        }
        for list in [&self.directories, &self.unseen] {
            writer.path = "";
            writer.number(list.len() as u64);
            for span in list {
                writer.path(self.text(*span));
            }
        }
        writer.path = "";
        writer.path(self.stopped.map_or("", |stop| self.text(stop)));
        let mut bytes = writer.bytes;
        let (head, body) = bytes.split_at_mut(MARK.len() + HASH_BYTES);
        if let Some(sum) = head.get_mut(MARK.len()..) {
            sum.copy_from_slice(ContentHash::of(body).as_bytes());
        }
        bytes
    }

    /// Deserializes an index; `None` if it is damaged or of another version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let body = bytes.strip_prefix(MARK).and_then(<[u8]>::split_first_chunk::<HASH_BYTES>);
        let body = body.filter(|(sum, body)| ContentHash::of(body).as_bytes() == *sum).map(|(_, body)| body);
        Reader { rest: body?, text: Vec::new(), last: START }.known()
    }
}

struct Writer<'k> {
    bytes: Vec<u8>,
    /// Previous path.
    path: &'k str,
    /// Previous signature.
    last: Signature,
}

impl<'k> Writer<'k> {
    /// Writes a variable-length number, seven bits per byte, lowest first.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Writes a signed difference in zigzag encoding.
    fn difference(&mut self, to: u64, from: u64) {
        let signed = to.wrapping_sub(from).cast_signed();
        self.number(((signed << 1) ^ (signed >> 63)).cast_unsigned());
    }

    fn path(&mut self, path: &'k str) {
        let shared = self.path.bytes().zip(path.bytes()).take_while(|(old, new)| old == new).count();
        self.number(shared as u64);
        self.number((path.len() - shared) as u64);
        self.bytes.extend_from_slice(path.as_bytes().get(shared..).unwrap_or_default());
        self.path = path;
    }

    fn entry(&mut self, known: &'k ScanIndex, entry: &IndexEntry) {
        self.path(known.text(entry.path));
        let trust = match entry.trust {
            StatTrust::Sure => 0,
            StatTrust::Racy => RACY,
        };
        let stored = match entry.stored {
            Stored::Content(_) => 0,
            Stored::Link(_) => 1,
            Stored::Missing => 2,
            Stored::Special => 3,
        };
        let coverage = match entry.coverage {
            Coverage::Tracked => 0,
            Coverage::LastTime => LEAVING,
        };
        self.bytes.push(coverage | trust | stored);
        let (now, last) = (entry.signature, self.last);
        self.number(now.size);
        self.difference(nanoseconds(now.modified), nanoseconds(last.modified));
        self.difference(nanoseconds(now.changed), nanoseconds(now.modified));
        self.difference(now.inode, last.inode);
        self.difference(now.device, last.device);
        self.difference(now.mode.into(), last.mode.into());
        self.last = now;
        match entry.stored {
            Stored::Content(hash) => self.bytes.extend_from_slice(hash.as_bytes()),
            Stored::Link(target) => {
                let target = known.text(target);
                self.number(target.len() as u64);
                self.bytes.extend_from_slice(target.as_bytes());
            }
            Stored::Missing | Stored::Special => {}
        }
    }
}

fn nanoseconds(moment: Moment) -> u64 {
    moment.nanoseconds().cast_unsigned()
}

struct Reader<'b> {
    rest: &'b [u8],
    text: Vec<u8>,
    last: Signature,
}

impl<'b> Reader<'b> {
    fn known(mut self) -> Option<ScanIndex> {
        let count = self.count()?;
        let mut entries: Vec<IndexEntry> = Vec::with_capacity(count);
        let mut before = None;
        for _ in 0..count {
            let entry = self.entry(before)?;
            before = Some(entry.path);
            entries.push(entry);
        }
        let directories = self.paths()?;
        let unseen = self.paths()?;
        let stop = self.path(None)?;
        if !self.rest.is_empty() {
            return None;
        }
        let text = String::from_utf8(self.text).ok()?;
        let stopped = (stop.start < stop.end).then_some(stop);
        let known = ScanIndex { text, entries, directories, unseen, stopped };
        known.is_in_order().then_some(known)
    }

    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a number of items, each of which has at least two bytes.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.rest.len() / 2).then_some(count)
    }

    fn difference(&mut self, from: u64) -> Option<u64> {
        let number = self.number()?;
        Some(from.wrapping_add((number >> 1) ^ (number & 1).wrapping_neg()))
    }

    fn path(&mut self, before: Option<Span>) -> Option<Span> {
        let shared = usize::try_from(self.number()?).ok()?;
        let own = usize::try_from(self.number()?).ok()?;
        let own = self.take(own)?;
        let start = self.text.len();
        let (from, length) = before.map_or((0, 0), |span| (span.start, span.end - span.start));
        if shared > length || start + shared + own.len() > MOST_TEXT {
            return None;
        }
        self.text.extend_from_within(from..from + shared);
        self.text.extend_from_slice(own);
        self.span(start)
    }

    /// Returns the span of the text since `start`, if it is UTF-8.
    fn span(&self, start: usize) -> Option<Span> {
        std::str::from_utf8(self.text.get(start..)?).ok()?;
        Some(Span { start, end: self.text.len() })
    }

    fn paths(&mut self) -> Option<Vec<Span>> {
        let count = self.count()?;
        let mut paths: Vec<Span> = Vec::with_capacity(count);
        for _ in 0..count {
            paths.push(self.path(paths.last().copied())?);
        }
        Some(paths)
    }

    fn entry(&mut self, before: Option<Span>) -> Option<IndexEntry> {
        let path = self.path(before)?;
        let kind = self.byte()?;
        let last = self.last;
        let size = self.number()?;
        let modified = self.difference(nanoseconds(last.modified))?;
        let changed = self.difference(modified)?;
        let [modified, changed] = [modified, changed].map(|time| Moment::from_nanoseconds(time.cast_signed()));
        let inode = self.difference(last.inode)?;
        let device = self.difference(last.device)?;
        let mode = u32::try_from(self.difference(last.mode.into())?).ok()?;
        let signature = Signature { size, modified, changed, inode, device, mode };
        self.last = signature;
        let trust = if kind & RACY == 0 { StatTrust::Sure } else { StatTrust::Racy };
        let coverage = if kind & LEAVING == 0 { Coverage::Tracked } else { Coverage::LastTime };
        let stored = match kind & !(RACY | LEAVING) {
            0 => Stored::Content(ContentHash::from_bytes(*self.take(HASH_BYTES)?.first_chunk()?)),
            1 => {
                let length = usize::try_from(self.number()?).ok()?;
                let target = self.take(length)?;
                let start = self.text.len();
                self.text.extend_from_slice(target);
                Stored::Link(self.span(start)?)
            }
            2 => Stored::Missing,
            3 => Stored::Special,
            _ => return None,
        };
        Some(IndexEntry { path, signature, trust, coverage, stored })
    }
}

impl ScanIndex {
    /// `true` if all lists are sorted, on which lookups rely.
    fn is_in_order(&self) -> bool {
        rises(self.entries.iter().map(|entry| self.text(entry.path)))
            && [&self.directories, &self.unseen].iter().all(|list| rises(list.iter().map(|span| self.text(*span))))
    }
}

/// `true` if the texts are valid paths in ascending order. A trailing slash is permitted.
fn rises<'k>(mut paths: impl Iterator<Item = &'k str>) -> bool {
    let plain = |path: &str| {
        let path = path.strip_suffix('/').unwrap_or(path);
        !path.contains('\0') && path.split('/').all(|name| !matches!(name, "" | "." | ".."))
    };
    let mut last = "";
    paths.all(|path| plain(path) && std::mem::replace(&mut last, path) < path)
}
