//! Syntax colours. The definitions are large, so they are loaded when the first file needs them and not before.

use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

use anstyle::RgbColor;
use sayso_diff::Diff;
use syntect::highlighting::{HighlightIterator, HighlightState, Highlighter, Theme};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};
use two_face::theme::{EmbeddedLazyThemeSet, EmbeddedThemeName};

use crate::terminal::Background;

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);
static THEMES: LazyLock<EmbeddedLazyThemeSet> = LazyLock::new(two_face::theme::extra);

/// A line longer than this is data, and parsing it would be felt.
const LONGEST_LINE: usize = 4096;
/// How many lines before the one to show are parsed at most: enough to know the syntax there, save in a longer comment.
const WARM_UP: usize = 200;
/// How many lines of a file are parsed in all. The rest is shown without syntax, which nobody reads line by line anyway.
const MOST_LINES: usize = 10_000;

/// Coloured parts of a line.
pub(crate) type Colours = Vec<(Range<usize>, Colour)>;

/// What syntax has to say about a part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// The colour of what is nothing in particular. Needed on a background of our own; elsewhere the terminal's is better.
    Plain(RgbColor),
    Special(RgbColor),
}

/// Goes through the lines of a side that are shown, and some before them, since syntax depends on what came before.
pub(crate) struct Highlight<'t> {
    text: &'t str,
    line: usize,
    lines_left: usize,
    syntax: &'static SyntaxReference,
    parse: ParseState,
    state: HighlightState,
    highlighter: Highlighter<'static>,
    plain: syntect::highlighting::Color,
}

impl<'t> Highlight<'t> {
    /// Starts on a text, if its name or first line tells its language.
    pub(crate) fn new(text: &'t str, name: &str, background: Background) -> Option<Self> {
        let syntax = syntax(name, text)?;
        let highlighter = Highlighter::new(theme(background));
        let state = HighlightState::new(&highlighter, ScopeStack::new());
        let plain = highlighter.get_default().foreground;
        let parse = ParseState::new(syntax);
        Some(Self { text, line: 0, lines_left: MOST_LINES, syntax, parse, state, highlighter, plain })
    }

    /// The colours of a line by its 0-based number; lines have to be asked for in order.
    pub(crate) fn line(&mut self, number: usize) -> Option<Colours> {
        if number > self.line + WARM_UP {
            while self.line + WARM_UP < number {
                self.text = self.text.split_once('\n').map_or("", |(_, rest)| rest);
                self.line += 1;
            }
            self.parse = ParseState::new(self.syntax);
            self.state = HighlightState::new(&self.highlighter, ScopeStack::new());
        }
        while !self.text.is_empty() && self.lines_left > 0 {
            self.lines_left -= 1;
            let end = self.text.find('\n').map_or(self.text.len(), |at| at + 1);
            let (line, rest) = self.text.split_at(end);
            if line.len() > LONGEST_LINE {
                return None;
            }
            let operations = self.parse.parse_line(line, &SYNTAXES).ok()?;
            let mut at = 0;
            let colours = HighlightIterator::new(&mut self.state, &operations, line, &self.highlighter)
                .map(|(style, text)| {
                    let range = at..at + text.len();
                    at = range.end;
                    let colour = RgbColor(style.foreground.r, style.foreground.g, style.foreground.b);
                    let is_plain = style.foreground == self.plain;
                    (range, if is_plain { Colour::Plain(colour) } else { Colour::Special(colour) })
                })
                .collect();
            self.text = rest;
            self.line += 1;
            if self.line == number + 1 {
                return Some(colours);
            }
        }
        None
    }
}

fn syntax(name: &str, text: &str) -> Option<&'static SyntaxReference> {
    let path = Path::new(name);
    let extension = path.extension().and_then(|extension| extension.to_str());
    let file_name = path.file_name().and_then(|name| name.to_str());
    let found = extension
        .and_then(|extension| SYNTAXES.find_syntax_by_extension(extension))
        .or_else(|| file_name.and_then(|name| SYNTAXES.find_syntax_by_extension(name)))
        .or_else(|| SYNTAXES.find_syntax_by_first_line(text.lines().next().unwrap_or_default()))?;
    (found.name != "Plain Text").then_some(found)
}

fn theme(background: Background) -> &'static Theme {
    THEMES.get(match background {
        Background::Dark => EmbeddedThemeName::OneHalfDark,
        Background::Light => EmbeddedThemeName::OneHalfLight,
    })
}

/// The two sides of a diff as text, if it is worth and possible to highlight them: their lines have to have the bytes they
/// have in the diff, so only UTF-8 will do.
pub(crate) fn sides<'a>(diff: &Diff<'a>) -> Option<(&'a str, &'a str)> {
    let text = |side| match side {
        sayso_diff::Side::Absent => Some(""),
        sayso_diff::Side::Present(bytes) => std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')),
    };
    Some((text(diff.old_side())?, text(diff.new_side())?))
}
