//! The short form of a card, for a person.

use sayso_diff::{Diff, LineKind};
use sayso_tools::BinaryContent;
use serde_json::{Value, json};

use super::draw::shorten;
use super::notes;
use super::style::Styles;
use crate::terminal::Terminal;
use crate::visible::visible;

/// The card as data, with what a program should not have to find out by itself.
pub(crate) fn value(diff: &Diff<'_>, lines: usize, binary: BinaryContent) -> Value {
    let is_binary = diff.is_binary();
    let hidden = is_binary && binary == BinaryContent::Named;
    let mut value = json!(diff.inline(if hidden { 0 } else { lines }));
    if is_binary {
        value["binary"] = json!(true);
    }
    let notes = notes(diff);
    if !notes.is_empty() {
        value["notes"] = json!(notes);
    }
    value
}

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
        let (shown, left_out) = shorten(&line.text);
        let shown = if terminal.draws() { visible(shown) } else { shown.into() };
        styles.paint(&mut text, style, &format!("{marker}{shown}{left_out}"));
        text.push('\n');
    }
    if card.truncated {
        let more = card.more_lines();
        styles.paint(&mut text, styles.number, &format!("... {more} more line{}", if more == 1 { "" } else { "s" }));
        text.push('\n');
    }
    text
}
