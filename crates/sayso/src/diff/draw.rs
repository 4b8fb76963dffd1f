//! A diff drawn for a person: numbers, markers, syntax, changed words.

use std::ops::Range;

use anstyle::Style;
use sayso_diff::{Diff, Encoding, Form, Hunk, LineEnding, LineKind, MarkedLine, Side};

use super::highlight::{self, Colour, Colours, Highlight};
use super::style::Styles;
use super::{Show, notes};
use crate::terminal::{Palette, Terminal};
use crate::visible::visible;

/// What stands above a file's hunks.
pub(crate) enum Title<'a> {
    /// Two files by their names.
    Files { old: &'a str, new: &'a str },
    /// A file of two trees, and what happened to it.
    Tree { path: &'a str, event: &'a str },
}

pub(crate) fn diff(diff: &Diff<'_>, title: &Title<'_>, name: &str, show: &Show) -> String {
    let mut drawing = Drawing::new(diff, name, show.terminal, LongLines::Shortened);
    drawing.title(diff, title);
    for note in notes(diff) {
        drawing.note(&note);
    }
    for hunk in diff.hunks(show.context) {
        drawing.hunk(&hunk, "");
    }
    drawing.text
}

/// The line that stands for a file that is not drawn.
pub(crate) fn title_only(terminal: Terminal, path: &str, event: &str) -> String {
    let styles = Styles::of(terminal);
    let mut text = String::new();
    styles.paint(&mut text, styles.title, &visible(path));
    styles.paint(&mut text, styles.number, &format!("  {event}"));
    text.push('\n');
    text
}

/// What to do with changed lines that nobody reads to their end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LongLines {
    /// Show how they begin.
    Shortened,
    /// Show all that changed: nobody can approve what they cannot see.
    Whole,
}

/// A diff on its way to be drawn, piece by piece.
pub(crate) struct Drawing<'a> {
    text: String,
    styles: Styles,
    terminal: Terminal,
    /// How many digits line numbers need.
    digits: usize,
    encodings: (Encoding, Encoding),
    /// Whether all lines of both sides end with `\r\n`, so that nobody needs to see it.
    all_crlf: bool,
    long_lines: LongLines,
    old: Option<Highlight<'a>>,
    new: Option<Highlight<'a>>,
}

impl<'a> Drawing<'a> {
    pub(crate) fn new(diff: &Diff<'a>, name: &str, terminal: Terminal, long_lines: LongLines) -> Self {
        let (old_lines, new_lines) = diff.line_counts();
        let start = |text: &'a str| Highlight::new(text, name, terminal.background);
        let sides = if terminal.palette == Palette::None { None } else { highlight::sides(diff) };
        let (old, new) = sides.map_or((None, None), |(old, new)| (start(old), start(new)));
        let encoding = |side| match side {
            Side::Absent => Encoding::Utf8,
            Side::Present(bytes) => Encoding::of(bytes),
        };
        let is_crlf = |form: Option<Form>| form.is_none_or(|form| form.line_ending == LineEnding::Crlf);
        let (old_form, new_form) = diff.forms();
        Self {
            text: String::new(),
            styles: Styles::of(terminal),
            terminal,
            long_lines,
            all_crlf: is_crlf(old_form) && is_crlf(new_form),
            digits: old_lines.max(new_lines).max(1).ilog10() as usize + 1,
            encodings: (encoding(diff.old_side()), encoding(diff.new_side())),
            old,
            new,
        }
    }

    /// What was drawn since the last time.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    pub(crate) fn title(&mut self, diff: &Diff<'_>, title: &Title<'_>) {
        let Self { text, styles, .. } = self;
        match title {
            Title::Files { old, new } => {
                styles.paint(text, styles.title, &format!("{} → {}", visible(old), visible(new)));
            }
            Title::Tree { path, event } => {
                styles.paint(text, styles.title, &visible(path));
                if !event.is_empty() {
                    styles.paint(text, styles.number, &format!("  {event}"));
                }
            }
        }
        let counts = diff.counts();
        if counts.added + counts.removed > 0 {
            styles.paint(text, styles.added.marker, &format!("  +{}", counts.added));
            styles.paint(text, styles.removed.marker, &format!(" -{}", counts.removed));
        }
        text.push('\n');
    }

    pub(crate) fn note(&mut self, note: &str) {
        self.styles.paint(&mut self.text, self.styles.note, &format!("note: {note}"));
        self.text.push('\n');
    }

    /// A hunk under its header; `name` follows the line numbers.
    pub(crate) fn hunk(&mut self, hunk: &Hunk<'_, '_>, name: &str) {
        let range = |block: &sayso_diff::Block| match block.lines() {
            0 => format!("{},0", block.start.line),
            1 => format!("{}", block.start.line + 1),
            lines => format!("{},{lines}", block.start.line + 1),
        };
        let blank = if name.is_empty() { "" } else { " " };
        let header = format!("@@ -{} +{} @@{blank}{name}", range(&hunk.old), range(&hunk.new));
        self.styles.paint(&mut self.text, self.styles.hunk, &header);
        self.text.push('\n');
        for line in hunk.marked_lines() {
            self.line(&line);
        }
    }

    fn line(&mut self, marked: &MarkedLine<'_>) {
        let line = &marked.line;
        let (highlight, number, encoding, marker) = match line.kind {
            LineKind::Add => (&mut self.new, line.new_number, self.encodings.1, '+'),
            LineKind::Remove => (&mut self.old, line.old_number, self.encodings.0, '-'),
            LineKind::Context => (&mut self.old, line.old_number, self.encodings.0, ' '),
        };
        let colours = highlight.as_mut().zip(number).and_then(|(highlight, number)| highlight.line(number - 1));
        let digits = self.digits;
        let number = |number: Option<usize>| number.map_or_else(String::new, |number| number.to_string());
        let gutter = format!("{:>digits$} {:>digits$} ", number(line.old_number), number(line.new_number));
        let Self { text, styles, terminal, .. } = self;
        let style = styles.line(line.kind);
        styles.paint(text, styles.number, &gutter);
        styles.paint(text, style.map_or(Style::new(), |style| style.marker), &format!("{marker} "));

        let decoded = encoding.decode(line.bytes);
        let finished = decoded.ends_with('\n');
        let content = decoded.strip_suffix('\n').unwrap_or(&decoded);
        // A carriage return matters where the line changed; around it, it is only noise.
        let is_noise = line.kind == LineKind::Context || self.all_crlf;
        let content = if is_noise { content.strip_suffix('\r').unwrap_or(content) } else { content };
        // Spans count bytes of the file: after decoding they fit UTF-8 only.
        let spans: &[Range<usize>] =
            if encoding == Encoding::Utf8 && decoded.len() == line.bytes.len() { &marked.spans } else { &[] };
        let (shown, left_out) = match line.kind {
            LineKind::Add | LineKind::Remove if self.long_lines == LongLines::Whole || !spans.is_empty() => {
                (around(content, spans), String::new())
            }
            _ => {
                let (shown, left_out) = shorten(content);
                (all_of(shown), left_out)
            }
        };
        let base = style.map_or(Style::new(), |style| style.line);
        let word = style.map_or(Style::new(), |style| style.word);
        for (range, style) in parts(content.len(), &colours.unwrap_or_default(), spans, &shown, |colour, marked| {
            let style = if marked { word } else { base };
            match colour {
                Some(Colour::Plain(_)) if style == Style::new() => style,
                Some(Colour::Plain(colour) | Colour::Special(colour)) => style.fg_color(Some(terminal.colour(colour))),
                None => style,
            }
        }) {
            let Some(range) = within(&range, &shown) else { continue };
            if range.start > 0 && shown.iter().any(|window| window.start == range.start) {
                styles.paint(text, styles.number, "…");
            }
            // Parts of syntax and of words both end between characters; were one not to, nothing is lost.
            let part = match content.get(range.clone()) {
                Some(part) => part.into(),
                None => String::from_utf8_lossy(&content.as_bytes()[range]),
            };
            styles.paint(text, style, &visible(&part));
        }
        let end = shown.last().map_or(0, |window| window.end);
        let left_out = if left_out.is_empty() && end < content.len() { "…".to_owned() } else { left_out };
        styles.paint(text, styles.number, &left_out);
        styles.fill(text, base);
        text.push('\n');
        if !finished {
            let blank = " ".repeat(2 * digits + 2);
            styles.paint(text, styles.number, &format!("{blank}\\ No newline at end of file"));
            text.push('\n');
        }
    }
}

/// A line longer than this is no longer read; drawing all of a minified file would bury everything else.
const LONGEST_SHOWN: usize = 2_000;

/// How much of a long line is shown on either side of what changed in it.
const AROUND: usize = 200;

/// The one part that a whole line is.
fn all_of(line: &str) -> Vec<Range<usize>> {
    std::iter::once(0..line.len()).collect()
}

/// The parts of a changed line to show: all of it or, of a long one of which only some words changed, those and what is around
/// them.
fn around(line: &str, spans: &[Range<usize>]) -> Vec<Range<usize>> {
    if line.len() <= LONGEST_SHOWN || spans.is_empty() {
        return all_of(line);
    }
    let mut windows: Vec<Range<usize>> = Vec::new();
    for span in spans {
        let start = line.floor_char_boundary(span.start.saturating_sub(AROUND));
        let end = line.ceil_char_boundary((span.end + AROUND).min(line.len()));
        match windows.last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => windows.push(start..end),
        }
    }
    windows
}

/// The start of a long line, and how much is not shown.
pub(crate) fn shorten(line: &str) -> (&str, String) {
    if line.len() <= LONGEST_SHOWN {
        return (line, String::new());
    }
    let (shown, rest) = line.split_at(line.floor_char_boundary(LONGEST_SHOWN));
    (shown, format!(" … {} more characters", rest.chars().count()))
}

/// The part of a range that is shown. Ranges are cut where windows begin and end.
fn within(range: &Range<usize>, shown: &[Range<usize>]) -> Option<Range<usize>> {
    let window = shown.iter().find(|window| window.start < range.end && range.start < window.end)?;
    Some(range.start.max(window.start)..range.end.min(window.end))
}

/// Cuts a line where its style changes.
fn parts(
    length: usize,
    colours: &Colours,
    spans: &[Range<usize>],
    shown: &[Range<usize>],
    style: impl Fn(Option<Colour>, bool) -> Style,
) -> Vec<(Range<usize>, Style)> {
    let mut cuts: Vec<usize> = vec![0, length];
    cuts.extend(shown.iter().flat_map(|window| [window.start, window.end]));
    cuts.extend(colours.iter().flat_map(|(range, _)| [range.start, range.end]));
    cuts.extend(spans.iter().flat_map(|span| [span.start, span.end]));
    cuts.retain(|&cut| cut <= length);
    cuts.sort_unstable();
    cuts.dedup();
    // Both lists are in order, so one pass over each is enough however long the line is.
    let (mut colours, mut spans) = (colours.iter().peekable(), spans.iter().peekable());
    let mut parts: Vec<(Range<usize>, Style)> = Vec::new();
    for cut in cuts.windows(2) {
        let (start, end) = (cut[0], cut[1]);
        while colours.next_if(|(range, _)| range.end <= start).is_some() {}
        while spans.next_if(|span| span.end <= start).is_some() {}
        let colour = colours.peek().filter(|(range, _)| range.contains(&start)).map(|(_, colour)| *colour);
        let style = style(colour, spans.peek().is_some_and(|span| span.contains(&start)));
        match parts.last_mut() {
            // Where a part is left out, two of the same style are not one.
            Some((range, last)) if *last == style && !shown.iter().any(|window| window.start == start) => {
                range.end = end;
            }
            _ => parts.push((start..end, style)),
        }
    }
    parts
}
