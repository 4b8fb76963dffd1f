//! The parser for unified diffs.

use std::borrow::Cow;

use super::{FilePatch, Patch, PatchHunk, PatchLine, Problem, ProblemKind};
use crate::hunk::LineKind;
use crate::lines::LineBreak;

pub(super) fn parse(text: &[u8]) -> Patch<'_> {
    let mut lines = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let end = LineBreak::Byte.line_end(text, at);
        lines.push(&text[at..end]);
        at = end;
    }
    Parser { lines, at: 0, patch: Patch::default() }.run()
}

struct Parser<'a> {
    lines: Vec<&'a [u8]>,
    at: usize,
    patch: Patch<'a>,
}

impl<'a> Parser<'a> {
    fn run(mut self) -> Patch<'a> {
        while let Some(&line) = self.lines.get(self.at) {
            if line.starts_with(b"diff --git ") {
                self.git_header(line);
            } else if line.starts_with(b"--- ") && self.line_at(1).starts_with(b"+++ ") {
                self.patch.files.push(FilePatch::default());
                self.file_header(line);
            } else if line.starts_with(b"@@") {
                self.hunk(line);
            } else if line.starts_with(b"GIT binary patch") || is_binary_sentence(line) {
                self.not_understood(ProblemKind::Binary);
            } else if line.starts_with(b"+++ ") {
                self.not_understood(ProblemKind::NoFileHeader);
            } else {
                // Other text between files is a comment, as in `patch`.
                self.at += 1;
            }
        }
        self.patch
    }

    fn line_at(&self, offset: usize) -> &'a [u8] {
        self.lines.get(self.at + offset).copied().unwrap_or_default()
    }

    fn problem(&mut self, kind: ProblemKind) {
        self.patch.problems.push(Problem { line: self.at + 1, kind });
    }

    /// Skips a line of the last file that was not understood, and reports it.
    fn not_understood(&mut self, kind: ProblemKind) {
        self.problem(kind);
        if let Some(file) = self.patch.files.last_mut() {
            file.incomplete = true;
        }
        self.at += 1;
    }

    fn git_header(&mut self, line: &'a [u8]) {
        let mut file = FilePatch::default();
        if let Some((old, new)) = git_names(trim_break(&line[b"diff --git ".len()..])) {
            (file.old_path, file.new_path) = (old, new);
        }
        self.at += 1;
        while let Some(&line) = self.lines.get(self.at) {
            let starts = |words: &[&[u8]]| words.iter().any(|word| line.starts_with(word));
            if !starts(&[b"old mode ", b"new mode ", b"new file mode ", b"deleted file mode ", b"index "])
                && !starts(&[b"rename ", b"copy ", b"similarity index ", b"dissimilarity index "])
            {
                break;
            }
            let line = trim_break(line);
            let name = |word: &[u8], side: &[u8]| line.strip_prefix(word).map(|path| [side, &name(path)].concat());
            // Git writes these names without the prefix of the other names.
            if let Some(from) = name(b"rename from ", b"a/").or_else(|| name(b"copy from ", b"a/")) {
                file.old_path = from;
            } else if let Some(to) = name(b"rename to ", b"b/").or_else(|| name(b"copy to ", b"b/")) {
                file.new_path = to;
            } else if line.starts_with(b"new file mode ") {
                file.old_path = b"/dev/null".to_vec();
            } else if line.starts_with(b"deleted file mode ") {
                file.new_path = b"/dev/null".to_vec();
            }
            file.extended.push(line);
            self.at += 1;
        }
        self.patch.files.push(file);
        let next = self.line_at(0);
        if next.starts_with(b"--- ") && self.line_at(1).starts_with(b"+++ ") {
            self.file_header(next);
        }
    }

    /// Parses the two lines that name the last file.
    fn file_header(&mut self, line: &'a [u8]) {
        let new = self.line_at(1);
        if let Some(file) = self.patch.files.last_mut() {
            file.old_path = name(trim_break(&line[4..]));
            file.new_path = name(trim_break(&new[4..]));
        }
        self.at += 2;
    }

    /// `true` if the header of another file starts here. Within an incomplete hunk, removed and added lines may
    /// resemble a header, but are hardly followed by a hunk.
    fn starts_file(&self, complete: bool) -> bool {
        let looks_like = self.line_at(0).starts_with(b"--- ") && self.line_at(1).starts_with(b"+++ ");
        looks_like && (complete || self.line_at(2).starts_with(b"@@ -"))
    }

    fn hunk(&mut self, header: &'a [u8]) {
        let header_at = self.at;
        let Some(Header { old, new, section }) = Header::parse(header) else {
            self.not_understood(ProblemKind::BadHunkHeader);
            return;
        };
        if self.patch.files.is_empty() {
            self.problem(ProblemKind::NoFileHeader);
            self.patch.files.push(FilePatch::default());
        }
        self.at += 1;
        let mut lines: Vec<PatchLine<'a>> = Vec::new();
        let mut found = (0, 0);
        while let Some(&line) = self.lines.get(self.at) {
            let complete = found.0 >= old.count && found.1 >= new.count;
            let (kind, bytes) = match line[0] {
                b'\\' => {
                    // An empty line without its break is not a line.
                    if let Some(last) = lines.pop_if(|last| *last.bytes == *b"\n") {
                        found.0 -= usize::from(last.kind != LineKind::Add);
                        found.1 -= usize::from(last.kind != LineKind::Remove);
                    } else if let Some(last) = lines.last_mut() {
                        let without = last.bytes.strip_suffix(b"\n").map(<[u8]>::to_vec);
                        last.bytes = without.map_or_else(|| std::mem::take(&mut last.bytes), Cow::Owned);
                    }
                    self.at += 1;
                    continue;
                }
                b'-' if self.starts_file(complete) => break,
                // The signature at the end of `git format-patch` output.
                b'-' if complete && trim_break(line) == b"-- " => break,
                b'+' => (LineKind::Add, &line[1..]),
                b'-' => (LineKind::Remove, &line[1..]),
                b' ' => (LineKind::Context, &line[1..]),
                // Some programs strip the blank that marks an empty context line.
                b'\n' | b'\r' if !complete => (LineKind::Context, line),
                _ => break,
            };
            found.0 += usize::from(kind != LineKind::Add);
            found.1 += usize::from(kind != LineKind::Remove);
            // Only the last line of the patch can lack a break, and a following `\` line would state that it is
            // intended.
            let bytes = if bytes.ends_with(b"\n") { Cow::Borrowed(bytes) } else { Cow::Owned([bytes, b"\n"].concat()) };
            lines.push(PatchLine { kind, bytes });
            self.at += 1;
        }
        // Models miscount, so the lines take precedence.
        let promised = (old.count, new.count);
        if promised != found {
            self.patch
                .problems
                .push(Problem { line: header_at + 1, kind: ProblemKind::WrongCounts { promised, found } });
        }
        if let Some(file) = self.patch.files.last_mut() {
            let number = file.hunks.len() + 1;
            file.hunks.push(PatchHunk { number, old_start: old.start, new_start: new.start, section, lines });
        }
    }
}

struct Header<'a> {
    old: Range,
    new: Range,
    section: &'a [u8],
}

struct Range {
    start: usize,
    count: usize,
}

impl<'a> Header<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let rest = trim_break(line).strip_prefix(b"@@ -")?;
        let (old, rest) = split_once(rest, b" +")?;
        let (new, section) = split_once(rest, b" @@")?;
        Some(Self { old: Range::parse(old)?, new: Range::parse(new)?, section: section.trim_ascii_start() })
    }
}

impl Range {
    fn parse(text: &[u8]) -> Option<Self> {
        let number = |digits: &[u8]| -> Option<usize> {
            let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            // A number near the maximum would overflow sums of lines.
            let number = plain.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()?;
            u32::try_from(number).is_ok().then_some(number)
        };
        match split_once(text, b",") {
            Some((start, count)) => Some(Self { start: number(start)?, count: number(count)? }),
            None => Some(Self { start: number(text)?, count: 1 }),
        }
    }
}

fn split_once<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(text, separator)?;
    Some((&text[..at], &text[at + separator.len()..]))
}

fn is_binary_sentence(line: &[u8]) -> bool {
    line.starts_with(b"Binary files ") && trim_break(line).ends_with(b" differ")
}

fn trim_line_feed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

fn trim_break(line: &[u8]) -> &[u8] {
    let line = trim_line_feed(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Parses a name in a header: quoted, or up to a tab.
fn name(text: &[u8]) -> Vec<u8> {
    if let Some((name, _)) = unquote(text) {
        return name;
    }
    text.split(|&byte| byte == b'\t').next().unwrap_or_default().to_vec()
}

/// Splits the two names of a `diff --git` line, if they are unambiguous.
fn git_names(text: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    if let Some((old, rest)) = unquote(text) {
        return Some((old, name(rest.strip_prefix(b" ")?)));
    }
    if let Some(at) = memchr::memmem::find(text, b" \"") {
        return Some((text[..at].to_vec(), name(&text[at + 1..])));
    }
    // Unquoted names with blanks: a/x and b/x have the same length, so the separator is in the middle.
    let middle = text.len() / 2;
    (text.get(middle) == Some(&b' ')).then(|| (text[..middle].to_vec(), text[middle + 1..].to_vec()))
}

/// Parses a name in git's quotes, and returns the rest.
pub(super) fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut name = Vec::new();
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((name, rest)),
            b'\\' => {
                let (&escape, after) = rest.split_first()?;
                rest = after;
                name.push(match escape {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'a' => 7,
                    b'b' => 8,
                    b'f' => 12,
                    b'v' => 11,
                    b'0'..=b'3' => {
                        let digits = [escape, *rest.first()?, *rest.get(1)?];
                        rest = &rest[2..];
                        u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?
                    }
                    other => other,
                });
            }
            _ => name.push(byte),
        }
    }
}
