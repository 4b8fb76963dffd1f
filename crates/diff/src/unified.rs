//! The unified format, as read by `git apply` and `patch`.

use crate::change::Block;
use crate::diff::Diff;
use crate::engine::Text;
use crate::hunk::Hunk;
use crate::lines::LineBreak;
use crate::text_format::Encoding;

/// Options of a unified diff.
#[derive(Clone, Copy, Debug)]
pub struct UnifiedOptions<'a> {
    /// Number of unchanged lines around each change.
    pub context: usize,
    /// Label after `---`; see [`path_label`] for file names.
    pub old_label: &'a str,
    /// Label after `+++`.
    pub new_label: &'a str,
    pub rendering: Rendering,
    /// Maximum size in bytes; the text is truncated after the last line that fits.
    pub limit: Option<usize>,
}

/// The encoding of the lines in a unified diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rendering {
    /// Original bytes, so that the patch can be applied. UTF-16 is decoded anyway, because no tool can apply it.
    Exact,
    /// Decoded to UTF-8.
    Readable,
}

/// A unified diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unified {
    /// Both sides are equal.
    NoChanges,
    /// The sides differ.
    Changes {
        /// File header and hunks. There are no hunks if an empty file is created or deleted.
        text: Vec<u8>,
        /// `true` if the limit truncated the text.
        truncated: bool,
    },
}

impl Unified {
    /// Returns the text; empty without changes.
    pub fn into_text(self) -> Vec<u8> {
        match self {
            Self::NoChanges => Vec::new(),
            Self::Changes { text, .. } => text,
        }
    }
}

/// Removes line breaks from a label, which could forge a line of the diff.
pub fn one_line(label: &str) -> String {
    label.replace(['\n', '\r'], " ")
}

/// The label of an absent file.
pub const NO_FILE: &str = "/dev/null";

/// Formats a file name for `---` and `+++`: quoted as in git if it has unusual characters, and followed by a tab if it
/// has blanks, so that `patch` reads it completely.
pub fn path_label(prefix: &str, path: &[u8]) -> String {
    let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\' && byte != 0x7F;
    let text = std::str::from_utf8(path).ok().filter(|text| text.bytes().all(plain));
    let Some(text) = text else {
        let mut quoted = format!("\"{prefix}");
        for chunk in path.utf8_chunks() {
            quote(chunk.valid(), &mut quoted);
            for byte in chunk.invalid() {
                quoted.push_str(&format!("\\{byte:03o}"));
            }
        }
        quoted.push('"');
        return quoted;
    };
    let tab = if text.contains(' ') { "\t" } else { "" };
    format!("{prefix}{text}{tab}")
}

fn quote(text: &str, quoted: &mut String) {
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            control if control.is_ascii_control() => {
                quoted.push_str(&format!("\\{:03o}", u32::from(control)));
            }
            other => quoted.push(other),
        }
    }
}

impl Diff<'_> {
    /// Formats the diff.
    pub fn unified(&self, options: &UnifiedOptions<'_>) -> Unified {
        if self.is_unchanged() {
            return Unified::NoChanges;
        }
        let mut writer = Writer {
            text: Vec::new(),
            limit: options.limit.unwrap_or(usize::MAX),
            old: LineWriter::new(self.old, options.rendering),
            new: LineWriter::new(self.new, options.rendering),
        };
        let truncated = writer.write(self, options).is_err();
        Unified::Changes { text: writer.text, truncated }
    }
}

/// The size limit is reached.
struct Full;

struct Writer<'a> {
    text: Vec<u8>,
    limit: usize,
    old: LineWriter<'a>,
    new: LineWriter<'a>,
}

impl Writer<'_> {
    fn write(&mut self, diff: &Diff<'_>, options: &UnifiedOptions<'_>) -> Result<(), Full> {
        self.header(b"--- ", options.old_label)?;
        self.header(b"+++ ", options.new_label)?;
        for hunk in diff.hunks(options.context) {
            self.hunk(&hunk)?;
        }
        Ok(())
    }

    fn header(&mut self, marker: &[u8], label: &str) -> Result<(), Full> {
        self.line(&[marker, one_line(label).as_bytes(), b"\n"].concat())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Full> {
        if self.text.len() + line.len() > self.limit {
            return Err(Full);
        }
        self.text.extend_from_slice(line);
        Ok(())
    }

    fn hunk(&mut self, hunk: &Hunk<'_, '_>) -> Result<(), Full> {
        let mut header = Vec::with_capacity(48);
        header.extend_from_slice(b"@@ -");
        range(&mut header, &hunk.old);
        header.extend_from_slice(b" +");
        range(&mut header, &hunk.new);
        header.extend_from_slice(b" @@\n");
        self.line(&header)?;
        let Self { text, limit, old, new } = self;
        let mut at = hunk.old.start.offset;
        for change in hunk.changes() {
            old.write(text, *limit, b' ', at, change.old.start.offset)?;
            old.write(text, *limit, b'-', change.old.start.offset, change.old.end.offset)?;
            new.write(text, *limit, b'+', change.new.start.offset, change.new.end.offset)?;
            at = change.old.end.offset;
        }
        old.write(text, *limit, b' ', at, hunk.old.end.offset)
    }
}

/// Formats `start,count`. A count of 1 is omitted; with a count of 0 the start is the preceding line.
fn range(out: &mut Vec<u8>, block: &Block) {
    let lines = block.lines();
    decimal(out, block.start.line + usize::from(lines > 0));
    if lines != 1 {
        out.push(b',');
        decimal(out, lines);
    }
}

fn decimal(out: &mut Vec<u8>, mut number: usize) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

const NO_NEWLINE: &[u8] = b"\n\\ No newline at end of file\n";

struct LineWriter<'a> {
    text: Text<'a>,
    /// Encoding for decoding the lines; `None` to write the original bytes.
    decode: Option<Encoding>,
}

impl<'a> LineWriter<'a> {
    fn new(text: Text<'a>, rendering: Rendering) -> Self {
        let decode = match (text.line_break, rendering) {
            (LineBreak::Byte, Rendering::Exact) => None,
            _ => Some(text.encoding()).filter(|encoding| *encoding != Encoding::Utf8),
        };
        Self { text, decode }
    }

    /// Writes whole lines with their marker.
    fn write(&self, out: &mut Vec<u8>, limit: usize, marker: u8, start: usize, end: usize) -> Result<(), Full> {
        let Text { bytes, line_break } = self.text;
        let mut at = start;
        if let (LineBreak::Byte, None) = (line_break, self.decode) {
            for line_feed in memchr::memchr_iter(b'\n', &bytes[start..end]) {
                let next = start + line_feed + 1;
                push_line(out, limit, marker, &bytes[at..next])?;
                at = next;
            }
        }
        // Handles decoded lines, and a last line without a break.
        while at < end {
            let next = line_break.line_end(bytes, at);
            let line = &bytes[at..next];
            match self.decode {
                None => push_line(out, limit, marker, line)?,
                Some(encoding) => push_line(out, limit, marker, encoding.decode(line).as_bytes())?,
            }
            at = next;
        }
        Ok(())
    }
}

#[inline]
fn push_line(out: &mut Vec<u8>, limit: usize, marker: u8, line: &[u8]) -> Result<(), Full> {
    let end: &[u8] = if line.last() == Some(&b'\n') { b"" } else { NO_NEWLINE };
    let length = 1 + line.len() + end.len();
    if out.len() + length > limit {
        return Err(Full);
    }
    out.reserve(length);
    out.push(marker);
    out.extend_from_slice(line);
    out.extend_from_slice(end);
    Ok(())
}
