//! The short form of a card, for a person.

use sayso_diff::{Diff, LineKind};

use super::style::Styles;
use super::visible::visible;
use crate::terminal::Terminal;

pub(crate) fn text(diff: &Diff<'_>, lines: usize, terminal: Terminal) -> String {
    let styles = Styles::of(terminal);
    let card = diff.inline(lines);
    let mut text = String::new();
    for line in &card.lines {
        let marker = match line.kind {
            LineKind::Add => "+ ",
            LineKind::Remove => "- ",
            LineKind::Context => "  ",
        };
        let style = styles.line(line.kind).map_or(styles.number, |style| style.marker);
        let shown = if terminal.draws() { visible(&line.text) } else { line.text.as_str().into() };
        styles.paint(&mut text, style, &format!("{marker}{shown}"));
        text.push('\n');
    }
    if card.truncated {
        let more = card.more_lines();
        styles.paint(&mut text, styles.number, &format!("... {more} more line{}", if more == 1 { "" } else { "s" }));
        text.push('\n');
    }
    text
}
