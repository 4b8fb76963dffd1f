//! Colours of a drawn diff.

use anstyle::{Reset, RgbColor, Style};
use sayso_diff::LineKind;

use crate::terminal::{Background, Palette, Terminal};

/// The styles of one terminal; all of them plain where it has no colours.
pub(crate) struct Styles {
    pub(crate) title: Style,
    pub(crate) note: Style,
    pub(crate) hunk: Style,
    pub(crate) number: Style,
    pub(crate) removed: LineStyle,
    pub(crate) added: LineStyle,
    coloured: bool,
}

/// The styles of a changed line.
pub(crate) struct LineStyle {
    /// The marker and the number.
    pub(crate) marker: Style,
    /// The background of the line.
    pub(crate) line: Style,
    /// The background of what changed within it.
    pub(crate) word: Style,
}

impl Styles {
    pub(crate) fn of(terminal: Terminal) -> Self {
        if terminal.palette == Palette::None {
            let plain = || LineStyle { marker: Style::new(), line: Style::new(), word: Style::new() };
            let [title, note, hunk, number] = [Style::new(); 4];
            return Self { title, note, hunk, number, removed: plain(), added: plain(), coloured: false };
        }
        let foreground = |red, green, blue| Style::new().fg_color(Some(terminal.colour(RgbColor(red, green, blue))));
        let background = |red, green, blue| Style::new().bg_color(Some(terminal.colour(RgbColor(red, green, blue))));
        let dark = terminal.background == Background::Dark;
        let (removed, added) = if dark {
            (
                LineStyle {
                    marker: foreground(255, 110, 110),
                    line: background(64, 16, 20),
                    word: background(135, 30, 40),
                },
                LineStyle {
                    marker: foreground(110, 220, 110),
                    line: background(12, 50, 20),
                    word: background(20, 120, 45),
                },
            )
        } else {
            (
                LineStyle {
                    marker: foreground(175, 0, 0),
                    line: background(255, 235, 233),
                    word: background(255, 190, 185),
                },
                LineStyle {
                    marker: foreground(0, 110, 0),
                    line: background(225, 250, 230),
                    word: background(160, 235, 175),
                },
            )
        };
        Self {
            title: Style::new().bold(),
            note: if dark { foreground(240, 190, 80) } else { foreground(150, 90, 0) },
            hunk: if dark { foreground(100, 170, 220) } else { foreground(0, 90, 160) },
            number: foreground(128, 128, 128),
            removed,
            added,
            coloured: true,
        }
    }

    pub(crate) fn line(&self, kind: LineKind) -> Option<&LineStyle> {
        match kind {
            LineKind::Add => Some(&self.added),
            LineKind::Remove => Some(&self.removed),
            LineKind::Context => None,
        }
    }

    /// Text in a style, and back to none.
    pub(crate) fn paint(&self, out: &mut String, style: Style, text: &str) {
        if self.coloured && style != Style::new() && !text.is_empty() {
            out.push_str(&format!("{style}{text}{Reset}"));
        } else {
            out.push_str(text);
        }
    }

    /// Fills the rest of the line with the background that is set, and ends the style.
    pub(crate) fn fill(&self, out: &mut String, style: Style) {
        if self.coloured && style != Style::new() {
            out.push_str(&format!("{style}\x1b[K{Reset}"));
        }
    }
}
