//! Syntax of the shown lines of a diff.

use sayso_diff::{Diff, Side};

use crate::syntax::{Language, LineClasses, LineParser, MAX_LINE_BYTES};

/// Lines parsed before the first shown one. They are enough to know the syntax there, except within a longer comment.
const WARM_UP_LINES: usize = 200;
/// Lines of a file that are parsed in total. The rest is shown without syntax.
const MAX_LINES: usize = 10_000;

/// Highlights the shown lines of one side, in order. Each line's syntax depends on the lines before it.
pub(super) struct Highlight<'t> {
    text: &'t str,
    line: usize,
    lines_left: usize,
    language: Language,
    parser: LineParser,
}

impl<'t> Highlight<'t> {
    /// Starts on a text, if its name or first line tells its language.
    pub(super) fn new(text: &'t str, name: &str) -> Option<Self> {
        let language = Language::detect(name, text)?;
        Some(Self { text, line: 0, lines_left: MAX_LINES, language, parser: LineParser::new(language) })
    }

    /// Returns the classes of a line by its 0-based number. Numbers have to rise from call to call.
    pub(super) fn line(&mut self, number: usize) -> Option<LineClasses> {
        if number > self.line + WARM_UP_LINES {
            while self.line + WARM_UP_LINES < number {
                self.text = self.text.split_once('\n').map_or("", |(_, rest)| rest);
                self.line += 1;
            }
            self.parser = LineParser::new(self.language);
        }
        while !self.text.is_empty() && self.lines_left > 0 {
            self.lines_left -= 1;
            let end = self.text.find('\n').map_or(self.text.len(), |at| at + 1);
            let (line, rest) = self.text.split_at(end);
            if line.len() > MAX_LINE_BYTES {
                return None;
            }
            let classes = self.parser.line(line)?;
            self.text = rest;
            self.line += 1;
            if self.line == number + 1 {
                return Some(classes);
            }
        }
        None
    }
}

/// The two sides of a diff as text; `None` if one is not UTF-8 or holds NUL. Only UTF-8 has the same bytes in the diff's lines.
pub(super) fn sides<'a>(diff: &Diff<'a>) -> Option<(&'a str, &'a str)> {
    let text = |side| match side {
        Side::Absent => Some(""),
        Side::Present(bytes) => std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')),
    };
    Some((text(diff.old_side())?, text(diff.new_side())?))
}
