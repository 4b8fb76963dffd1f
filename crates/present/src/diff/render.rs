//! Rows of a diff as styled text: line numbers, markers, syntax, changed words.

use std::ops::Range;

use sayso_api::diff::{DiffHunk, DiffSide, HighlightedRow, SyntaxToken};
use sayso_diff::{Counts, LineEnding, LineTerminator, RowKind};

use crate::escape::escape_unprintable;
use crate::span::{CodeStyle, LineChange, Style, StyledText, SyntaxClass};
use crate::syntax::LineClasses;

/// The heading above a file's hunks.
pub enum DiffTitle<'a> {
    /// Two files by their names.
    Files { old: &'a str, new: &'a str },
    /// A file of two trees, and the event that happened to it, such as `deleted`. The event may be empty.
    Tree { path: &'a str, event: &'a str },
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

/// Renders a heading with the counts of added and removed lines.
pub fn render_title(title: &DiffTitle<'_>, counts: Counts) -> StyledText {
    let mut text = StyledText::new();
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
    if counts.added + counts.removed > 0 {
        text.push(Style::Added, format!("  +{}", counts.added));
        text.push(Style::Removed, format!(" -{}", counts.removed));
    }
    text.plain("\n");
    text
}

/// Renders the rows of one file.
#[derive(Clone, Copy, Debug)]
pub struct RowRenderer {
    /// Width of a line number.
    digits: usize,
    /// `true` if all lines of both sides end with `\r\n`, so that `\r` need not be shown.
    all_crlf: bool,
    /// `true` if the two sides have different line endings, so that `\r` is a part of what changed.
    line_ending_changed: bool,
    long_lines: LongLines,
}

impl RowRenderer {
    /// Prepares to render a file by the facts about its sides.
    pub fn new(old: Option<DiffSide>, new: Option<DiffSide>, long_lines: LongLines) -> Self {
        let lines = |side: Option<DiffSide>| side.map_or(0, |side| side.lines);
        let is_crlf = |side: Option<DiffSide>| side.is_none_or(|side| side.format.line_ending == LineEnding::Crlf);
        let digits = lines(old).max(lines(new)).max(1).ilog10() as usize + 1;
        let line_ending_changed = old.zip(new).is_some_and(|(old, new)| {
            let endings = [old.format.line_ending, new.format.line_ending];
            endings[0] != endings[1] && !endings.contains(&LineEnding::None)
        });
        Self { digits, all_crlf: is_crlf(old) && is_crlf(new), line_ending_changed, long_lines }
    }

    /// Renders a hunk below its header. `name` follows the line numbers in the header; it may be empty.
    pub fn hunk(self, hunk: &DiffHunk, name: &str) -> StyledText {
        let mut text = self.header(&hunk.place.old_lines, &hunk.place.new_lines, name);
        text.append(self.rows(&hunk.rows));
        text
    }

    /// Renders the header of some lines of both sides, counted from 0.
    pub fn header(self, old: &Range<usize>, new: &Range<usize>, name: &str) -> StyledText {
        let range = |lines: &Range<usize>| match lines.len() {
            0 => format!("{},0", lines.start),
            1 => format!("{}", lines.start + 1),
            length => format!("{},{length}", lines.start + 1),
        };
        let blank = if name.is_empty() { "" } else { " " };
        let mut text = StyledText::new();
        text.line(Style::Accent, format!("@@ -{} +{} @@{blank}{name}", range(old), range(new)));
        text
    }

    /// Renders rows.
    pub fn rows(self, rows: &[HighlightedRow]) -> StyledText {
        let mut text = StyledText::new();
        for row in rows {
            self.row(&mut text, row);
        }
        text
    }

    fn row(self, text: &mut StyledText, highlighted: &HighlightedRow) {
        let row = &highlighted.row;
        let digits = self.digits;
        let (marker, change) = match row.kind {
            RowKind::Added => ('+', Some(LineChange::Added)),
            RowKind::Removed => ('-', Some(LineChange::Removed)),
            RowKind::Context => (' ', None),
            RowKind::Fold { .. } => return,
            RowKind::Note(_) => {
                let blank = " ".repeat(2 * digits + 2);
                return text.line(Style::Dim, format!("{blank}\\ No newline at end of file"));
            }
        };
        let number = |number: Option<usize>| number.map_or_else(String::new, |number| number.to_string());
        text.push(Style::Dim, format!("{:>digits$} {:>digits$} ", number(row.old_line), number(row.new_line)));
        text.push(change_style(change), format!("{marker} "));
        let (content, words) = (&row.content.text, &row.content.words);
        let is_whole = self.long_lines == LongLines::Whole || !words.is_empty();
        let (windows, omitted) = if change.is_some() && is_whole {
            (windows_around(content, words), String::new())
        } else {
            let (shown, omitted) = shorten(content);
            (whole(shown), omitted)
        };
        for (range, style) in
            pieces(content.len(), &classes(&highlighted.syntax, content.len()), words, &windows, change)
        {
            let Some(range) = intersect(&range, &windows) else { continue };
            if range.start > 0 && windows.iter().any(|window| window.start == range.start) {
                text.push(Style::Dim, "…");
            }
            // Tokens and words end between characters. If one did not, replacement characters are shown instead of a panic.
            let piece = match content.get(range.clone()) {
                Some(piece) => piece.into(),
                None => String::from_utf8_lossy(&content.as_bytes()[range]),
            };
            text.push(Style::Code(style), escape_unprintable(&piece));
        }
        // A carriage return matters only where the line changed.
        if change.is_some() && !self.all_crlf && row.content.terminator == LineTerminator::CrLf {
            let style = CodeStyle { change, is_changed_word: self.line_ending_changed, syntax: None };
            text.push(Style::Code(style), "␍");
        }
        let end = windows.last().map_or(0, |window| window.end);
        let omitted = if omitted.is_empty() && end < content.len() { "…".to_owned() } else { omitted };
        text.push(Style::Dim, omitted);
        if let Some(change) = change {
            text.push(Style::LineEnd(change), "");
        }
        text.plain("\n");
    }
}

/// The classes of a row's text. Text between tokens is plain.
fn classes(tokens: &[SyntaxToken], length: usize) -> LineClasses {
    let (mut classes, mut at) = (LineClasses::new(), 0);
    for SyntaxToken { range, class } in tokens {
        if at < range.start {
            classes.push((at..range.start, SyntaxClass::Text));
        }
        classes.push((range.clone(), (*class).into()));
        at = range.end;
    }
    if !tokens.is_empty() && at < length {
        classes.push((at..length, SyntaxClass::Text));
    }
    classes
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
