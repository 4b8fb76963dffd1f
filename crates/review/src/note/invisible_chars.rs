//! Detects characters that are invisible or reorder the visible text.
//!
//! Such a character can make a line do something other than it seems to. Single characters that a script requires are
//! allowed in their proper place: composed emoji, Persian and Indic joiners, ideographic variants.

/// Returns the suspicious characters of a line without its line break, each once, as `U+202E`.
pub(super) fn hidden(line: &str) -> Vec<String> {
    let mut found: Vec<char> = Vec::new();
    // Fast path for ASCII lines.
    if line.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
        return Vec::new();
    }
    let mut before: Option<char> = None;
    let mut in_flag = false;
    for (at, character) in line.char_indices() {
        let after = line[at + character.len_utf8()..].chars().next();
        in_flag = match character {
            '\u{1F3F4}' => is_flag(&line[at..]),
            '\u{E0020}'..='\u{E007F}' => in_flag,
            _ => false,
        };
        if is_invisible(character) && !in_flag && !is_needed(before, character, after) && !found.contains(&character) {
            found.push(character);
        }
        // A skin tone and an emoji presentation selector belong to the preceding symbol.
        let belongs = matches!(character, '\u{1F3FB}'..='\u{1F3FF}' | '\u{FE0F}') && before.is_some_and(is_pictograph);
        if !(belongs && after == Some('\u{200D}')) {
            before = Some(character);
        }
    }
    found.into_iter().map(|character| format!("U+{:04X}", character as u32)).collect()
}

fn is_invisible(character: char) -> bool {
    matches!(character,
        // Controls. A form feed is common in old sources; a carriage return within a line hides the text before it.
        '\0'..='\x08' | '\x0B' | '\r' | '\x0E'..='\x1F' | '\x7F'..='\u{9F}'
        // Soft hyphen, grapheme joiner, fillers and inherent vowels.
        | '\u{AD}' | '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{3164}' | '\u{FFA0}'
        // Directional marks, embeddings, overrides and isolates; zero-width spaces and joiners; line separators.
        | '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'
        // Variation selectors, annotations, musical formats, tags.
        | '\u{180B}'..='\u{180F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// `true` if the neighbouring characters require this invisible one.
fn is_needed(before: Option<char>, character: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    match character {
        '\u{200D}' if is_pictograph(before) => after.is_some_and(is_pictograph),
        // After a virama, a joiner selects the form of the consonant, also at the end of a word.
        '\u{200D}' if is_virama(before) => true,
        '\u{200C}' | '\u{200D}' => is_joining(before) && after.is_some_and(is_joining),
        '\u{FE0E}' | '\u{FE0F}' if before.is_ascii() => {
            matches!(before, '0'..='9' | '#' | '*') && after == Some('\u{20E3}')
        }
        // One selector chooses a variant; a second one may carry hidden data.
        '\u{FE0E}' | '\u{FE0F}' => is_pictograph(before),
        '\u{FE00}'..='\u{FE0D}' => matches!(before, '\u{2200}'..='\u{2AFF}') || is_ideograph(before),
        '\u{E0100}'..='\u{E01EF}' => is_ideograph(before),
        '\u{180B}'..='\u{180F}' => matches!(before, '\u{1820}'..='\u{18AA}'),
        _ => false,
    }
}

/// `true` for a regional flag: a black flag followed by a few tag letters and the end tag.
fn is_flag(text: &str) -> bool {
    let mut tags = text.chars().skip(1).take(8).skip_while(|tag| matches!(tag, '\u{E0030}'..='\u{E007A}'));
    tags.next() == Some('\u{E007F}')
}

fn is_pictograph(character: char) -> bool {
    matches!(character,
        '\u{A9}' | '\u{AE}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21FF}'
        | '\u{2300}'..='\u{23FF}' | '\u{24C2}' | '\u{25A0}'..='\u{27BF}' | '\u{2900}'..='\u{297F}'
        | '\u{2B00}'..='\u{2BFF}' | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}' | '\u{1F000}'..='\u{1FAFF}')
}

/// `true` for letters of scripts in which joiners affect spelling, such as Arabic, Syriac, Mongolian and Indic scripts.
fn is_joining(character: char) -> bool {
    matches!(character,
        '\u{620}'..='\u{6FF}' | '\u{700}'..='\u{7FF}' | '\u{840}'..='\u{8FF}' | '\u{900}'..='\u{DFF}'
        | '\u{F00}'..='\u{109F}' | '\u{1780}'..='\u{17B3}' | '\u{17B6}'..='\u{17FF}' | '\u{1820}'..='\u{18AA}'
        | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}')
}

fn is_virama(character: char) -> bool {
    matches!(
        character,
        '\u{94D}'
            | '\u{9CD}'
            | '\u{A4D}'
            | '\u{ACD}'
            | '\u{B4D}'
            | '\u{BCD}'
            | '\u{C4D}'
            | '\u{CCD}'
            | '\u{D4D}'
            | '\u{DCA}'
    )
}

fn is_ideograph(character: char) -> bool {
    matches!(character,
        '\u{3001}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF01}'..='\u{FF60}' | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::hidden;

    fn check(line: &str, expected: &[&str]) {
        assert_eq!(hidden(line), expected, "{}", line.escape_unicode());
    }

    #[test]
    fn invisible_characters_are_reported() {
        check("if (isAdmin\u{202E}\u{2066}) { // \u{202E}", &["U+202E", "U+2066"]);
        check("pass\u{200B}word", &["U+200B"]);
        check("a\u{200D}b", &["U+200D"]);
        check("\u{200C}x", &["U+200C"]);
        check("pass\u{AD}word", &["U+00AD"]);
        check("const \u{3164} = 1", &["U+3164"]);
        check("x\u{E0069}\u{E0067}", &["U+E0069", "U+E0067"]);
        check("x\u{FE0F}", &["U+FE0F"]);
        check("let\u{2028}x", &["U+2028"]);
        check("rm -rf /\r# ls", &["U+000D"]);
        check("\x1b[8m", &["U+001B"]);
        check("שלום\u{200F}", &["U+200F"]);
        check("a\u{FEFF}b", &["U+FEFF"]);
        // Selectors behind an emoji and tags behind a flag can carry hidden data.
        check("😀\u{FE01}\u{E0101}", &["U+FE01", "U+E0101"]);
        check("😀\u{FE0F}\u{FE0F}", &["U+FE0F"]);
        check("🏴\u{E0068}\u{E0069}", &["U+E0068", "U+E0069"]);
        check("🏴x\u{E0068}\u{E007F}", &["U+E0068", "U+E007F"]);
        check("👩\u{200D}x", &["U+200D"]);
        check("👩\u{200D}", &["U+200D"]);
    }

    #[test]
    fn scripts_and_emoji_are_allowed() {
        for line in [
            "",
            "plain\ttext ~",
            "größe, naïve, £",
            "👩\u{200D}💻 👩🏽\u{200D}🚀 👁\u{FE0F}\u{200D}🗨\u{FE0F} 🏳\u{FE0F}\u{200D}🌈 ❤\u{FE0F}\u{200D}🔥",
            "✔\u{FE0F} ☎\u{FE0E} 1\u{FE0F}\u{20E3} ©\u{FE0F}",
            "🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
            "السلام عليكم",
            "שלום עולם",
            "می\u{200C}خواهم",
            "क्\u{200D}ष",
            "പ്രവീണ്\u{200D} A",
            "葛\u{E0100}城",
            "日本語 中文 한국어",
            "page\u{C}break",
        ] {
            check(line, &[]);
        }
    }
}
