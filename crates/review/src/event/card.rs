//! The first lines of a file's diff, which a surface shows without a further call.

use sayso_diff::{Diff, INLINE_LINES, LineKind, RowContent};
use serde::{Deserialize, Serialize};

/// Longest text of a card's line in bytes.
const MAX_LINE_BYTES: usize = 400;

/// The inline form of a file's diff. Unchanged lines around a change: one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InlineCard {
    /// At most ten lines.
    pub lines: Vec<CardLine>,
    /// `true` if there are more lines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Number of lines in all, context included.
    pub total_lines: usize,
}

/// A line of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardLine {
    #[serde(rename = "type")]
    pub kind: CardLineKind,
    /// Without line break. Unprintable characters are escaped. The end of a long line is cut off and replaced by `…`.
    pub text: String,
}

/// Role of a card's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CardLineKind {
    Add,
    Remove,
    Context,
}

impl InlineCard {
    /// Returns the card of a diff. `None` if a side is binary, or if no line changed.
    pub fn of(diff: &Diff<'_>) -> Option<Self> {
        if diff.changes().is_empty() || diff.is_binary() {
            return None;
        }
        let inline = diff.inline(INLINE_LINES);
        let line = |line: &sayso_diff::InlineLine| CardLine { kind: line.kind.into(), text: shown(&line.text) };
        Some(Self {
            lines: inline.lines.iter().map(line).collect(),
            truncated: inline.truncated,
            total_lines: inline.total_lines,
        })
    }
}

impl From<LineKind> for CardLineKind {
    fn from(kind: LineKind) -> Self {
        match kind {
            LineKind::Add => Self::Add,
            LineKind::Remove => Self::Remove,
            LineKind::Context => Self::Context,
        }
    }
}

/// Escapes a line without its `\r`, and cuts it.
fn shown(line: &str) -> String {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let start = &line[..line.floor_char_boundary(MAX_LINE_BYTES)];
    let mut text = RowContent::of_text(start).text;
    let is_cut = start.len() < line.len() || text.len() > MAX_LINE_BYTES;
    text.truncate(text.floor_char_boundary(MAX_LINE_BYTES));
    if is_cut {
        text.push('…');
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests panic to fail")]
mod tests {
    use super::*;

    fn card(old: &str, new: &str) -> Option<InlineCard> {
        InlineCard::of(&Diff::new(old.as_bytes(), new.as_bytes()))
    }

    #[test]
    fn card_has_ten_lines_and_true_total() {
        let new: String = (0..100).map(|number| format!("{number}\n")).collect();
        let card = card("", &new).unwrap();
        assert_eq!((card.lines.len(), card.truncated, card.total_lines), (10, true, 100));
        assert_eq!(card.lines[0], CardLine { kind: CardLineKind::Add, text: "0".to_owned() });
    }

    #[test]
    fn card_line_is_escaped_and_bounded() {
        let one = card("a\n", "a\u{202E}\r\n").unwrap();
        assert_eq!(one.lines[1].text, "a⟨U+202E⟩");
        let long = card("", &"\u{202E}ä".repeat(1_000_000)).unwrap();
        assert!(long.lines[0].text.len() <= MAX_LINE_BYTES + '…'.len_utf8());
        assert!(long.lines[0].text.ends_with('…'));
    }

    #[test]
    fn binary_or_equal_content_has_no_card() {
        assert_eq!(card("a\n", "a\n"), None);
        assert_eq!(card("\0\u{1}", "\0\u{2}"), None);
    }
}
