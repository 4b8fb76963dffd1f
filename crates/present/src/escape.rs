//! Escaping of untrusted text, so that it cannot control a terminal or mislead its reader.

use std::borrow::Cow;

/// Columns of a drawn tab. A terminal's own tab stops do not fit behind line numbers.
const TAB_WIDTH: usize = 4;

/// Replaces control characters and characters that reorder or hide text by visible ones. A tab becomes blanks.
pub fn escape_unprintable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\t' => escaped.push_str(&" ".repeat(TAB_WIDTH)),
            // The Unicode block of control pictures follows the order of the characters.
            '\0'..='\x1F' => escaped.push(char::from_u32(0x2400 + character as u32).unwrap_or('?')),
            '\x7F' => escaped.push('\u{2421}'),
            hidden if is_unprintable(hidden) => {
                escaped.push_str(&format!("⟨U+{:04X}⟩", hidden as u32));
            }
            plain => escaped.push(plain),
        }
    }
    Cow::Owned(escaped)
}

fn is_unprintable(character: char) -> bool {
    matches!(character,
        '\0'..='\x1F' | '\x7F'..='\u{9F}'
        // Soft hyphen, direction marks and overrides, joiners, line and paragraph separators, byte order mark, annotation marks,
        // tags, supplement of variation selectors.
        | '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{FFF9}'..='\u{FFFB}'
        | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// Escapes unprintable characters of a JSON text as `\u202e`. The value stays the same; line breaks between values stay.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let hidden = |character: char| character != '\n' && is_unprintable(character);
    if !json.chars().any(hidden) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if hidden(character) {
            // JSON writes a character outside the first plane as a surrogate pair.
            character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}")));
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Quotes a word for a POSIX shell, if it needs quotes.
pub fn quote_for_shell(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-./=:,@%+".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_json_keeps_its_value() {
        let value = serde_json::json!({ "text": "a\u{9b}\u{202E}\u{2028}\u{E0001}\u{7f}b\n" });
        let printed = format!("{value:#}");
        let escaped = escape_json(&printed);
        assert!(escaped.contains(r"a\u009b\u202e\u2028\udb40\udc01\u007fb\n"), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).ok(), Some(value));
    }

    #[test]
    fn control_and_bidi_characters_are_escaped() {
        assert_eq!(escape_unprintable("plain größe 🦀"), "plain größe 🦀");
        assert_eq!(escape_unprintable("a\tb"), "a    b");
        assert_eq!(escape_unprintable("\x1b[2J\r\u{7}"), "␛[2J␍␇");
        assert_eq!(escape_unprintable("if\u{202E} x"), "if⟨U+202E⟩ x");
        assert_eq!(escape_unprintable("\u{9b}31m"), "⟨U+009B⟩31m");
        assert_eq!(escape_unprintable("a\u{2028}b\u{2029}c\u{61C}"), "a⟨U+2028⟩b⟨U+2029⟩c⟨U+061C⟩");
    }

    #[test]
    fn shell_words_are_quoted_when_needed() {
        assert_eq!(quote_for_shell("https://x.example/v1"), "https://x.example/v1");
        assert_eq!(quote_for_shell("a: it's $HOME"), r"'a: it'\''s $HOME'");
        assert_eq!(quote_for_shell(""), "''");
    }
}
