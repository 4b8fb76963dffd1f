//! Comparisons in this process, for contents that no engine knows: two files of the command line, and edited lines.

use sayso_api::diff::{DiffHunk, DiffSide, HighlightedRow, SyntaxToken};
use sayso_diff::{Diff, DiffRow, DiffRows, RowKind, RowLayout, RowOptions, SideFacts};

use super::highlight::{Highlight, sides};
use super::render::{LongLines, RowRenderer};
use crate::span::StyledText;
use crate::syntax::row_classes;

/// Syntax highlighting. A surface without colours saves its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Highlighting {
    On,
    Off,
}

/// A diff with the syntax of its lines.
pub struct LocalDiff<'a> {
    rows: DiffRows<&'a [u8]>,
    old: Option<Highlight<'a>>,
    new: Option<Highlight<'a>>,
}

impl<'a> LocalDiff<'a> {
    /// Prepares to read a diff. `name` tells the language.
    pub fn new(diff: &Diff<'a>, name: &str, context: usize, highlighting: Highlighting) -> Self {
        let texts = if highlighting == Highlighting::Off { None } else { sides(diff) };
        let start = |text: &'a str| Highlight::new(text, name);
        let (old, new) = texts.map_or((None, None), |(old, new)| (start(old), start(new)));
        Self { rows: DiffRows::of_diff(diff, RowOptions { context, whole_file: false }), old, new }
    }

    /// Returns the facts about the old and the new side.
    pub fn sides(&self) -> (Option<DiffSide>, Option<DiffSide>) {
        let side = |facts: &Option<SideFacts>| {
            facts.as_ref().map(|facts| DiffSide { format: facts.format, lines: facts.lines })
        };
        (side(&self.rows.facts().old), side(&self.rows.facts().new))
    }

    /// Returns the hunks in order.
    pub fn hunks(&mut self) -> impl Iterator<Item = DiffHunk> {
        let Self { rows, old, new } = self;
        (1..=rows.facts().hunks).filter_map(move |number| {
            let place = rows.hunk(number, RowLayout::Unified)?;
            let highlighted = rows.unified(place.rows.clone()).map(|row| {
                let syntax = tokens(&row, old, new);
                HighlightedRow { row, syntax }
            });
            Some(DiffHunk { rows: highlighted.collect(), place })
        })
    }

    /// Renders all hunks. `name` returns the text behind the line numbers of a hunk's header, by the number of the hunk.
    pub fn render(&mut self, long_lines: LongLines, name: impl Fn(usize) -> String) -> StyledText {
        let (old, new) = self.sides();
        let renderer = RowRenderer::new(old, new, long_lines);
        let mut text = StyledText::new();
        for hunk in self.hunks() {
            text.append(renderer.hunk(&hunk, &name(hunk.place.number)));
        }
        text
    }
}

fn tokens<'a>(row: &DiffRow, old: &mut Option<Highlight<'a>>, new: &mut Option<Highlight<'a>>) -> Vec<SyntaxToken> {
    // A context row has the text of the old side.
    let (side, line) = match row.kind {
        RowKind::Context | RowKind::Removed => (old, row.old_line),
        RowKind::Added => (new, row.new_line),
        RowKind::Fold { .. } | RowKind::Note(_) => return Vec::new(),
    };
    let classes = side.as_mut().zip(line).and_then(|(side, line)| side.line(line - 1)).unwrap_or_default();
    let token =
        |(range, class): (std::ops::Range<usize>, crate::span::SyntaxClass)| SyntaxToken { range, class: class.into() };
    row_classes(&classes, &row.content).into_iter().map(token).collect()
}
