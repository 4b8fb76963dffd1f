//! Laws of the lenient shell parser.

use sayso_review::{Certainty, Script};

/// Checks parsing of any text as a script.
pub fn shell_laws(text: &str) {
    let script = Script::parse(text);
    assert_eq!(script, Script::parse(text), "the same text is read the same way");
    for (index, command) in script.commands.iter().enumerate() {
        assert!(command.shell < script.shells.len(), "every shell is known");
        assert!(command.fed_by.is_none_or(|first| first <= index), "what feeds a command stands before it");
        assert!(
            !command.words.is_empty()
                || !command.assignments.is_empty()
                || !command.redirects.is_empty()
                || text.replace('\0', "").contains("<<"),
            "a command is not empty"
        );
        let words = command.words.iter().chain(&command.assignments);
        for word in words.filter(|word| word.certainty == Certainty::Literal) {
            assert!(!word.text.contains('\0'), "no word can hold a NUL");
        }
    }
    for start in 0..script.shells.len() {
        let mut shell = start;
        for _ in 0..=script.shells.len() {
            if script.shells[shell] == shell {
                break;
            }
            shell = script.shells[shell];
        }
        assert_eq!(shell, 0, "every shell was started by the first");
        if start > 200 {
            break;
        }
    }
    // A command appended to the script is found, unless the parser reports uncertainty.
    if script.uncertainties.is_empty() {
        let more = Script::parse(&format!("{text}\n sayso-marker"));
        let is_marker = |word: &sayso_review::Word| word.text == "sayso-marker";
        let found = more.commands.iter().any(|command| command.words.first().is_some_and(is_marker));
        assert!(
            found || !more.uncertainties.is_empty() || text.ends_with('\\'),
            "the command after the script is found"
        );
    }
    let json = serde_json::to_vec(&script).expect("it has a JSON form");
    assert_eq!(serde_json::from_slice::<Script>(&json).expect("it can be read again"), script);
}

/// Checks that quoted words parse to the original words.
pub fn shell_quoting_laws(words: &[String], ways: u64) {
    let words: Vec<String> = words.iter().map(|word| word.replace('\0', "")).collect();
    let quoted: Vec<String> =
        words.iter().enumerate().map(|(index, word)| quoted_word(word, ways.rotate_left(index as u32 * 7))).collect();
    let text = format!("printf '%s\\0' {}", quoted.join(" "));
    let script = Script::parse(&text);
    let [command] = script.commands.as_slice() else { panic!("one command: {text}: {script:?}") };
    let found: Vec<Option<&str>> = command.words.iter().skip(2).map(sayso_review::Word::as_literal).collect();
    assert_eq!(found, words.iter().map(|word| Some(word.as_str())).collect::<Vec<_>>(), "{text}");
}

/// Quotes a word in pieces of three characters. The bits of `ways` select the quoting of each piece.
pub fn quoted_word(word: &str, ways: u64) -> String {
    let mut quoted = String::new();
    let characters: Vec<char> = word.chars().collect();
    for (index, piece) in characters.chunks(3).enumerate() {
        let piece: String = piece.iter().collect();
        match ways.rotate_right(index as u32 * 2) % 4 {
            0 => quoted.push_str(&format!("'{}'", piece.replace('\'', "'\\''"))),
            1 => {
                quoted.push('"');
                for character in piece.chars() {
                    if "\"$`\\".contains(character) {
                        quoted.push('\\');
                    }
                    quoted.push(character);
                }
                quoted.push('"');
            }
            2 => {
                for character in piece.chars() {
                    match character {
                        '\n' => quoted.push_str("'\n'"),
                        'a'..='z' | '0'..='9' => quoted.push(character),
                        _ => quoted.extend(['\\', character]),
                    }
                }
            }
            _ => {
                quoted.push_str("$'");
                for character in piece.chars() {
                    match character {
                        '\'' | '\\' => quoted.extend(['\\', character]),
                        '\n' => quoted.push_str("\\n"),
                        ' '..='~' => quoted.push_str(&format!("\\x{:02x}", u32::from(character))),
                        _ => quoted.push(character),
                    }
                }
                quoted.push('\'');
            }
        }
    }
    if quoted.is_empty() { "''".to_owned() } else { quoted }
}
