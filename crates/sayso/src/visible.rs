//! Text that cannot play tricks on a terminal or on its reader.

use std::borrow::Cow;

/// How wide a tab is drawn, since terminals' own stops do not fit behind line numbers.
const TAB: usize = 4;

/// Makes control characters and characters that reorder or hide text visible; a tab becomes blanks.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(needs_care) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\t' => shown.push_str(&" ".repeat(TAB)),
            // The Unicode block of control pictures follows the order of the characters.
            '\0'..='\x1F' => shown.push(char::from_u32(0x2400 + character as u32).unwrap_or('?')),
            '\x7F' => shown.push('\u{2421}'),
            hidden if needs_care(hidden) => {
                shown.push_str(&format!("⟨U+{:04X}⟩", hidden as u32));
            }
            plain => shown.push(plain),
        }
    }
    Cow::Owned(shown)
}

fn needs_care(character: char) -> bool {
    matches!(character,
        '\0'..='\x1F' | '\x7F'..='\u{9F}'
        // The soft hyphen, marks and overrides of direction, joiners, line and paragraph separators, the byte order mark, marks of
        // annotations, tags, variation selectors' supplement.
        | '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{FFF9}'..='\u{FFFB}'
        | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// JSON as it can be printed: what would not be seen is escaped as `\u202e`, so that the value stays the same.
pub(crate) fn visible_json(json: &str) -> Cow<'_, str> {
    let hidden = |character: char| character != '\n' && needs_care(character);
    if !json.chars().any(hidden) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if hidden(character) {
            // Outside the first plane, JSON writes a character as two.
            character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::{visible, visible_json};

    #[test]
    fn json_with_hidden_characters_stays_the_same_value() {
        let value = serde_json::json!({ "text": "a\u{9b}\u{202E}\u{2028}\u{E0001}\u{7f}b\n" });
        let printed = format!("{value:#}");
        let shown = visible_json(&printed);
        assert!(shown.contains(r"a\u009b\u202e\u2028\udb40\udc01\u007fb\n"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).ok(), Some(value));
    }

    #[test]
    fn nothing_reaches_the_terminal_that_is_not_text() {
        assert_eq!(visible("plain größe 🦀"), "plain größe 🦀");
        assert_eq!(visible("a\tb"), "a    b");
        assert_eq!(visible("\x1b[2J\r\u{7}"), "␛[2J␍␇");
        assert_eq!(visible("if\u{202E} x"), "if⟨U+202E⟩ x");
        assert_eq!(visible("\u{9b}31m"), "⟨U+009B⟩31m");
        assert_eq!(visible("a\u{2028}b\u{2029}c\u{61C}"), "a⟨U+2028⟩b⟨U+2029⟩c⟨U+061C⟩");
    }
}
