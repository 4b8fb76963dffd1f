//! A diff as styled text: line numbers, markers, syntax, changed words.

use std::ops::Range;

use sayso_diff::{Block, Diff, Encoding, Hunk, LineEnding, LineKind, MarkedLine, Side, TextFormat};

use super::highlight::{self, Highlight};
use crate::escape::escape_unprintable;
use crate::span::{CodeStyle, LineChange, Style, StyledText};
use crate::syntax::LineClasses;

/// The heading above a file's hunks.
pub enum DiffTitle<'a> {
    /// Two files by their names.
    Files { old: &'a str, new: &'a str },
    /// A file of two trees, and the event that happened to it, such as `deleted`. The event may be empty.
    Tree { path: &'a str, event: &'a str },
}

/// Syntax highlighting. A surface without colours saves its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Highlighting {
    On,
    Off,
}

/// The treatment of changed lines that are too long to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongLines {
    /// Show their beginning.
    Shortened,
    /// Show all that changed. Required for approval, which must cover the whole change.
    Whole,
}

/// Returns the line for a file whose content is not shown.
pub fn title_line(path: &str, event: &str) -> StyledText {
    let mut text = StyledText::new();
    text.push(Style::Title, escape_unprintable(path));
    text.push(Style::Dim, format!("  {event}"));
    text.plain("\n");
    text
}

/// Renders a diff piece by piece. Hunks have to come in the file's order, because syntax is parsed from the top.
pub struct DiffRenderer<'a> {
    text: StyledText,
    /// Width of a line number.
    digits: usize,
    encodings: (Encoding, Encoding),
    /// `true` if all lines of both sides end with `\r\n`, so that `\r` need not be shown.
    all_crlf: bool,
    long_lines: LongLines,
    old: Option<Highlight<'a>>,
    new: Option<Highlight<'a>>,
}

impl<'a> DiffRenderer<'a> {
    /// Prepares to render a diff. `name` tells the language.
    pub fn new(diff: &Diff<'a>, name: &str, highlighting: Highlighting, long_lines: LongLines) -> Self {
        let (old_lines, new_lines) = diff.line_counts();
        let start = |text: &'a str| Highlight::new(text, name);
        let sides = if highlighting == Highlighting::Off { None } else { highlight::sides(diff) };
        let (old, new) = sides.map_or((None, None), |(old, new)| (start(old), start(new)));
        let encoding = |side| match side {
            Side::Absent => Encoding::Utf8,
            Side::Present(bytes) => Encoding::of(bytes),
        };
        let is_crlf = |form: Option<TextFormat>| form.is_none_or(|form| form.line_ending == LineEnding::Crlf);
        let (old_form, new_form) = diff.formats();
        Self {
            text: StyledText::new(),
            long_lines,
            all_crlf: is_crlf(old_form) && is_crlf(new_form),
            digits: old_lines.max(new_lines).max(1).ilog10() as usize + 1,
            encodings: (encoding(diff.old_side()), encoding(diff.new_side())),
            old,
            new,
        }
    }

    /// Returns the text rendered since the last call.
    pub fn take(&mut self) -> StyledText {
        std::mem::take(&mut self.text)
    }

    /// Renders a heading with the counts of added and removed lines.
    pub fn title(&mut self, diff: &Diff<'_>, title: &DiffTitle<'_>) {
        let text = &mut self.text;
        match title {
            DiffTitle::Files { old, new } => {
                text.push(Style::Title, format!("{} → {}", escape_unprintable(old), escape_unprintable(new)));
            }
            DiffTitle::Tree { path, event } => {
                text.push(Style::Title, escape_unprintable(path));
                if !event.is_empty() {
                    text.push(Style::Dim, format!("  {event}"));
                }
            }
        }
        let counts = diff.counts();
        if counts.added + counts.removed > 0 {
            text.push(Style::Added, format!("  +{}", counts.added));
            text.push(Style::Removed, format!(" -{}", counts.removed));
        }
        text.plain("\n");
    }

    /// Renders a note about the file.
    pub fn note(&mut self, note: &str) {
        self.text.line(Style::Note, format!("note: {note}"));
    }

    /// Renders a hunk below its header. `name` follows the line numbers in the header; it may be empty.
    pub fn hunk(&mut self, hunk: &Hunk<'_, '_>, name: &str) {
        let range = |block: &Block| match block.lines() {
            0 => format!("{},0", block.start.line),
            1 => format!("{}", block.start.line + 1),
            lines => format!("{},{lines}", block.start.line + 1),
        };
        let blank = if name.is_empty() { "" } else { " " };
        self.text.line(Style::Accent, format!("@@ -{} +{} @@{blank}{name}", range(&hunk.old), range(&hunk.new)));
        for line in hunk.marked_lines() {
            self.line(&line);
        }
    }

    fn line(&mut self, marked: &MarkedLine<'_>) {
        let line = &marked.line;
        let (highlight, number, encoding, marker, change) = match line.kind {
            LineKind::Add => (&mut self.new, line.new_number, self.encodings.1, '+', Some(LineChange::Added)),
            LineKind::Remove => (&mut self.old, line.old_number, self.encodings.0, '-', Some(LineChange::Removed)),
            LineKind::Context => (&mut self.old, line.old_number, self.encodings.0, ' ', None),
        };
        let classes = highlight.as_mut().zip(number).and_then(|(highlight, number)| highlight.line(number - 1));
        let digits = self.digits;
        let number = |number: Option<usize>| number.map_or_else(String::new, |number| number.to_string());
        let gutter = format!("{:>digits$} {:>digits$} ", number(line.old_number), number(line.new_number));
        self.text.push(Style::Dim, gutter);
        self.text.push(change_style(change), format!("{marker} "));

        let decoded = encoding.decode(line.bytes);
        let has_newline = decoded.ends_with('\n');
        let content = decoded.strip_suffix('\n').unwrap_or(&decoded);
        // A carriage return matters only where the line changed.
        let hides_return = line.kind == LineKind::Context || self.all_crlf;
        let content = if hides_return { content.strip_suffix('\r').unwrap_or(content) } else { content };
        // Word spans count bytes of the file. After decoding they fit UTF-8 only.
        let words: &[Range<usize>] =
            if encoding == Encoding::Utf8 && decoded.len() == line.bytes.len() { &marked.spans } else { &[] };
        let (windows, omitted) = match line.kind {
            LineKind::Add | LineKind::Remove if self.long_lines == LongLines::Whole || !words.is_empty() => {
                (windows_around(content, words), String::new())
            }
            _ => {
                let (shown, omitted) = shorten(content);
                (whole(shown), omitted)
            }
        };
        for (range, style) in pieces(content.len(), &classes.unwrap_or_default(), words, &windows, change) {
            let Some(range) = intersect(&range, &windows) else { continue };
            if range.start > 0 && windows.iter().any(|window| window.start == range.start) {
                self.text.push(Style::Dim, "…");
            }
            // Tokens and words end between characters. If one did not, replacement characters are shown instead of a panic.
            let piece = match content.get(range.clone()) {
                Some(piece) => piece.into(),
                None => String::from_utf8_lossy(&content.as_bytes()[range]),
            };
            self.text.push(Style::Code(style), escape_unprintable(&piece));
        }
        let end = windows.last().map_or(0, |window| window.end);
        let omitted = if omitted.is_empty() && end < content.len() { "…".to_owned() } else { omitted };
        self.text.push(Style::Dim, omitted);
        if let Some(change) = change {
            self.text.push(Style::LineEnd(change), "");
        }
        self.text.plain("\n");
        if !has_newline {
            let blank = " ".repeat(2 * digits + 2);
            self.text.line(Style::Dim, format!("{blank}\\ No newline at end of file"));
        }
    }
}

/// The style of a changed line's marker.
pub(crate) fn change_style(change: Option<LineChange>) -> Style {
    match change {
        Some(LineChange::Added) => Style::Added,
        Some(LineChange::Removed) => Style::Removed,
        None => Style::Plain,
    }
}

/// Bytes of a line that are shown. All of a minified file would bury everything else.
const MAX_SHOWN_BYTES: usize = 2_000;

/// Bytes of a long line that are shown on either side of a changed word.
const WORD_CONTEXT_BYTES: usize = 200;

/// One window over a whole line.
fn whole(line: &str) -> Vec<Range<usize>> {
    std::iter::once(0..line.len()).collect()
}

/// Returns the windows of a changed line to show: the whole line or, if it is long and only words changed, their surroundings.
fn windows_around(line: &str, words: &[Range<usize>]) -> Vec<Range<usize>> {
    if line.len() <= MAX_SHOWN_BYTES || words.is_empty() {
        return whole(line);
    }
    let mut windows: Vec<Range<usize>> = Vec::new();
    for word in words {
        let start = line.floor_char_boundary(word.start.saturating_sub(WORD_CONTEXT_BYTES));
        let end = line.ceil_char_boundary((word.end + WORD_CONTEXT_BYTES).min(line.len()));
        match windows.last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => windows.push(start..end),
        }
    }
    windows
}

/// Splits off the end of a long line. The second value says how much is missing; it is empty for a short line.
pub(super) fn shorten(line: &str) -> (&str, String) {
    if line.len() <= MAX_SHOWN_BYTES {
        return (line, String::new());
    }
    let (shown, rest) = line.split_at(line.floor_char_boundary(MAX_SHOWN_BYTES));
    (shown, format!(" … {} more characters", rest.chars().count()))
}

/// The part of a range that is within a window. [`pieces`] cuts at the edges of windows, so that one window is enough.
fn intersect(range: &Range<usize>, windows: &[Range<usize>]) -> Option<Range<usize>> {
    let window = windows.iter().find(|window| window.start < range.end && range.start < window.end)?;
    Some(range.start.max(window.start)..range.end.min(window.end))
}

/// Cuts a line where its style changes or a window begins or ends.
fn pieces(
    length: usize,
    classes: &LineClasses,
    words: &[Range<usize>],
    windows: &[Range<usize>],
    change: Option<LineChange>,
) -> Vec<(Range<usize>, CodeStyle)> {
    let mut cuts: Vec<usize> = vec![0, length];
    cuts.extend(windows.iter().flat_map(|window| [window.start, window.end]));
    cuts.extend(classes.iter().flat_map(|(range, _)| [range.start, range.end]));
    cuts.extend(words.iter().flat_map(|word| [word.start, word.end]));
    cuts.retain(|&cut| cut <= length);
    cuts.sort_unstable();
    cuts.dedup();
    // Both lists are sorted, so that one pass over each is enough for a line of any length.
    let (mut classes, mut words) = (classes.iter().peekable(), words.iter().peekable());
    let mut pieces: Vec<(Range<usize>, CodeStyle)> = Vec::new();
    for cut in cuts.windows(2) {
        let (start, end) = (cut[0], cut[1]);
        while classes.next_if(|(range, _)| range.end <= start).is_some() {}
        while words.next_if(|word| word.end <= start).is_some() {}
        let syntax = classes.peek().filter(|(range, _)| range.contains(&start)).map(|(_, class)| *class);
        let is_changed_word = words.peek().is_some_and(|word| word.contains(&start));
        let style = CodeStyle { change, is_changed_word, syntax };
        match pieces.last_mut() {
            // A window's start separates pieces, because an ellipsis comes between them.
            Some((range, last)) if *last == style && !windows.iter().any(|window| window.start == start) => {
                range.end = end;
            }
            _ => pieces.push((start..end, style)),
        }
    }
    pieces
}
