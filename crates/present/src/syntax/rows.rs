//! Classes of the rows of a diff.

use sayso_api::proto;
use sayso_diff::{EscapedOriginal, RowContent};

use super::LineClasses;
use crate::span::SyntaxClass;

/// Moves the classes of a line onto the text of its row, where characters may be escaped. Leaves out text without a class.
pub fn row_classes(line: &LineClasses, content: &RowContent) -> LineClasses {
    let moved = |(range, class): &(std::ops::Range<usize>, SyntaxClass)| {
        let range = position(range.start, content)..position(range.end, content);
        (*class != SyntaxClass::Text && !range.is_empty()).then_some((range, *class))
    };
    line.iter().filter_map(moved).collect()
}

/// The place of a byte of the line in the row's text. Bytes of an escaped character have the place of the escape.
fn position(byte: usize, content: &RowContent) -> usize {
    // Lengths of the line and of the text before the place.
    let (mut line, mut text) = (0, 0);
    for escape in &content.escapes {
        let start = line + (escape.span.start - text);
        if byte <= start {
            break;
        }
        let length = match &escape.original {
            EscapedOriginal::Text(characters) => characters.len(),
            EscapedOriginal::Bytes(bytes) => bytes.len(),
        };
        if byte < start + length {
            return escape.span.start;
        }
        (line, text) = (start + length, escape.span.end);
    }
    (text + (byte - line)).min(content.text.len())
}

impl From<SyntaxClass> for proto::SyntaxClass {
    fn from(class: SyntaxClass) -> Self {
        match class {
            SyntaxClass::Text => Self::Unspecified,
            SyntaxClass::Keyword => Self::Keyword,
            SyntaxClass::Type => Self::Type,
            SyntaxClass::Function => Self::Function,
            SyntaxClass::String => Self::String,
            SyntaxClass::Escape => Self::Escape,
            SyntaxClass::Number => Self::Number,
            SyntaxClass::Constant => Self::Constant,
            SyntaxClass::Comment => Self::Comment,
            SyntaxClass::Operator => Self::Operator,
            SyntaxClass::Punctuation => Self::Punctuation,
            SyntaxClass::Variable => Self::Variable,
            SyntaxClass::Attribute => Self::Attribute,
            SyntaxClass::Tag => Self::Tag,
        }
    }
}

/// The class of an unknown, newer value is plain text.
impl From<proto::SyntaxClass> for SyntaxClass {
    fn from(class: proto::SyntaxClass) -> Self {
        match class {
            proto::SyntaxClass::Unspecified => Self::Text,
            proto::SyntaxClass::Keyword => Self::Keyword,
            proto::SyntaxClass::Type => Self::Type,
            proto::SyntaxClass::Function => Self::Function,
            proto::SyntaxClass::String => Self::String,
            proto::SyntaxClass::Escape => Self::Escape,
            proto::SyntaxClass::Number => Self::Number,
            proto::SyntaxClass::Constant => Self::Constant,
            proto::SyntaxClass::Comment => Self::Comment,
            proto::SyntaxClass::Operator => Self::Operator,
            proto::SyntaxClass::Punctuation => Self::Punctuation,
            proto::SyntaxClass::Variable => Self::Variable,
            proto::SyntaxClass::Attribute => Self::Attribute,
            proto::SyntaxClass::Tag => Self::Tag,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use sayso_diff::{DiffRows, RowOptions};

    use super::super::{Language, LineParser};
    use super::*;

    #[test]
    fn classes_move_over_escaped_characters() {
        let line = "let a\u{200B} = \"\u{1}\u{2}x\"; // \u{202E}note\r\n";
        let classes = LineParser::new(Language::detect("a.rs", "").unwrap()).line(line).unwrap();
        let rows = DiffRows::new(None, Some(line.as_bytes()), RowOptions::default());
        let content = rows.unified(0..1).next().unwrap().content;
        let tokens: Vec<(&str, SyntaxClass)> =
            row_classes(&classes, &content).into_iter().map(|(range, class)| (&content.text[range], class)).collect();
        assert!(tokens.contains(&("let", SyntaxClass::Keyword)), "{tokens:?}");
        assert!(tokens.contains(&("\"␁␂x\"", SyntaxClass::String)), "{tokens:?}");
        assert_eq!(tokens.last(), Some(&("// ⟨U+202E⟩note", SyntaxClass::Comment)), "{tokens:?}");
    }
}
