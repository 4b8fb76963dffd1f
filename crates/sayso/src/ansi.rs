//! Styled text as ANSI codes. The classes of `present` become colours here, for a dark and a light background.

use anstyle::{Reset, RgbColor, Style as AnsiStyle};
use sayso_present::diff::Highlighting;
use sayso_present::span::{CodeStyle, LineChange, Style, StyledText, SyntaxClass};

use crate::terminal::{Background, Palette, Terminal};

/// The start of a line's rest: erases to the edge of the window in the present background.
const ERASE_LINE: &str = "\x1b[K";

/// Paints text for a terminal. Without colours, text stays as it is.
pub(crate) fn paint(text: &StyledText, terminal: Terminal) -> String {
    if terminal.palette == Palette::None {
        return text.to_plain();
    }
    let theme = Theme::of(terminal);
    let mut painted = String::new();
    for span in text.spans().iter().filter(|span| span.style != Style::MarkerLine) {
        let style = theme.style(span.style);
        let text = if matches!(span.style, Style::LineEnd(_)) { ERASE_LINE } else { &span.text };
        if style == AnsiStyle::new() {
            painted.push_str(text);
        } else {
            painted.push_str(&format!("{style}{text}{Reset}"));
        }
    }
    painted
}

/// Syntax is highlighted only where colours are shown, because the definitions take time to load.
pub(crate) fn highlighting(terminal: Terminal) -> Highlighting {
    if terminal.palette == Palette::None { Highlighting::Off } else { Highlighting::On }
}

/// The colours of one background.
struct Theme {
    terminal: Terminal,
    note: RgbColor,
    accent: RgbColor,
    removed: LineColours,
    added: LineColours,
    syntax: SyntaxColours,
}

/// The colours of a changed line.
struct LineColours {
    marker: RgbColor,
    background: RgbColor,
    /// Behind the words that differ.
    word_background: RgbColor,
}

/// The colours of One Half, which has a dark and a light variant.
struct SyntaxColours {
    text: RgbColor,
    comment: RgbColor,
    keyword: RgbColor,
    variable: RgbColor,
    function: RgbColor,
    constant: RgbColor,
    string: RgbColor,
    escape: RgbColor,
}

const DIM: RgbColor = RgbColor(128, 128, 128);

impl Theme {
    fn of(terminal: Terminal) -> Self {
        match terminal.background {
            Background::Dark => Self {
                terminal,
                note: RgbColor(240, 190, 80),
                accent: RgbColor(100, 170, 220),
                removed: LineColours {
                    marker: RgbColor(255, 110, 110),
                    background: RgbColor(64, 16, 20),
                    word_background: RgbColor(135, 30, 40),
                },
                added: LineColours {
                    marker: RgbColor(110, 220, 110),
                    background: RgbColor(12, 50, 20),
                    word_background: RgbColor(20, 120, 45),
                },
                syntax: SyntaxColours {
                    text: RgbColor(0xdc, 0xdf, 0xe4),
                    comment: RgbColor(0x5c, 0x63, 0x70),
                    keyword: RgbColor(0xc6, 0x78, 0xdd),
                    variable: RgbColor(0xe0, 0x6c, 0x75),
                    function: RgbColor(0x61, 0xaf, 0xef),
                    constant: RgbColor(0xe5, 0xc0, 0x7b),
                    string: RgbColor(0x98, 0xc3, 0x79),
                    escape: RgbColor(0x56, 0xb6, 0xc2),
                },
            },
            Background::Light => Self {
                terminal,
                note: RgbColor(150, 90, 0),
                accent: RgbColor(0, 90, 160),
                removed: LineColours {
                    marker: RgbColor(175, 0, 0),
                    background: RgbColor(255, 235, 233),
                    word_background: RgbColor(255, 190, 185),
                },
                added: LineColours {
                    marker: RgbColor(0, 110, 0),
                    background: RgbColor(225, 250, 230),
                    word_background: RgbColor(160, 235, 175),
                },
                syntax: SyntaxColours {
                    text: RgbColor(0x38, 0x3a, 0x42),
                    comment: RgbColor(0xa0, 0xa1, 0xa7),
                    keyword: RgbColor(0xa6, 0x26, 0xa4),
                    variable: RgbColor(0xe4, 0x56, 0x49),
                    function: RgbColor(0x01, 0x84, 0xbc),
                    constant: RgbColor(0xc1, 0x84, 0x01),
                    string: RgbColor(0x50, 0xa1, 0x4f),
                    escape: RgbColor(0x09, 0x97, 0xb3),
                },
            },
        }
    }

    fn style(&self, style: Style) -> AnsiStyle {
        let plain = AnsiStyle::new();
        match style {
            Style::Plain | Style::MarkerLine => plain,
            Style::Title => plain.bold(),
            Style::Dim => self.foreground(DIM),
            Style::Accent => self.foreground(self.accent),
            Style::Prompt => self.foreground(self.accent).bold(),
            Style::Note => self.foreground(self.note),
            Style::Added => self.foreground(self.added.marker),
            Style::Removed => self.foreground(self.removed.marker),
            Style::Uncertain => self.foreground(self.removed.marker).underline(),
            Style::Critical => self.foreground(self.removed.marker).bold(),
            Style::LineEnd(change) => self.background(plain, self.line(change).background),
            Style::Code(code) => self.code(code),
        }
    }

    fn code(&self, CodeStyle { change, is_changed_word, syntax }: CodeStyle) -> AnsiStyle {
        let Some(change) = change else {
            // On the terminal's own background, its own text colour is the best one.
            let is_plain = |class: &SyntaxClass| self.syntax.colour(*class) == self.syntax.text;
            let class = syntax.filter(|class| !is_plain(class));
            return class.map_or(AnsiStyle::new(), |class| self.foreground(self.syntax.colour(class)));
        };
        let line = self.line(change);
        let background = if is_changed_word { line.word_background } else { line.background };
        let style = syntax.map_or(AnsiStyle::new(), |class| self.foreground(self.syntax.colour(class)));
        self.background(style, background)
    }

    fn line(&self, change: LineChange) -> &LineColours {
        match change {
            LineChange::Added => &self.added,
            LineChange::Removed => &self.removed,
        }
    }

    fn foreground(&self, colour: RgbColor) -> AnsiStyle {
        AnsiStyle::new().fg_color(Some(self.terminal.colour(colour)))
    }

    fn background(&self, style: AnsiStyle, colour: RgbColor) -> AnsiStyle {
        style.bg_color(Some(self.terminal.colour(colour)))
    }
}

impl SyntaxColours {
    fn colour(&self, class: SyntaxClass) -> RgbColor {
        match class {
            SyntaxClass::Text | SyntaxClass::Punctuation => self.text,
            SyntaxClass::Comment => self.comment,
            SyntaxClass::Keyword | SyntaxClass::Operator => self.keyword,
            SyntaxClass::Variable | SyntaxClass::Tag => self.variable,
            SyntaxClass::Function => self.function,
            SyntaxClass::Type | SyntaxClass::Constant | SyntaxClass::Number | SyntaxClass::Attribute => self.constant,
            SyntaxClass::String => self.string,
            SyntaxClass::Escape => self.escape,
        }
    }
}
