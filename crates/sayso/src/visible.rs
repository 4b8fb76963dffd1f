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
        // Marks and overrides of direction, joiners, the byte order mark, tags, variation selectors' supplement.
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'
        | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn nothing_reaches_the_terminal_that_is_not_text() {
        assert_eq!(visible("plain größe 🦀"), "plain größe 🦀");
        assert_eq!(visible("a\tb"), "a    b");
        assert_eq!(visible("\x1b[2J\r\u{7}"), "␛[2J␍␇");
        assert_eq!(visible("if\u{202E} x"), "if⟨U+202E⟩ x");
        assert_eq!(visible("\u{9b}31m"), "⟨U+009B⟩31m");
    }
}
