//! Laws of text encoded in the format of an existing file.

use sayso_diff::{Encoding, Kind, TextFormat, encode_like, plain_text};

/// Checks encoding of any text in the format of any file.
pub fn like_laws(base: &[u8], text: &str) {
    let form = TextFormat::of(base);
    let encoded = encode_like(base, text);
    let Some(plain) = plain_text(base) else {
        assert!(form.kind == Kind::Binary || is_wide(form), "only noise and torn UTF-16 have no text");
        assert_eq!(encoded.bytes, text.as_bytes(), "a base without a text format is not imitated");
        return;
    };
    let same = encode_like(base, &*plain);
    assert_eq!(same.bytes, base, "the text of a file is that file");
    assert_eq!(same.unrepresentable, []);
    if base.is_empty() {
        return assert_eq!(encoded.bytes, text.as_bytes(), "an empty file has no format");
    }
    for character in &encoded.unrepresentable {
        assert!(form.encoding == Encoding::Latin1 && text.contains(*character), "{character:?} is lacking");
    }
    let mark = mark(form);
    assert_eq!(encoded.bytes[..mark], base[..mark], "the mark stays");
    let encoding = if encoded.unrepresentable.is_empty() { form.encoding } else { Encoding::Utf8 };
    let written = encoding.decode(&encoded.bytes[mark..]);
    // A second byte order mark, or a line that ends in `\r` before its break, is ambiguous: it may belong to text or format.
    let twice = form.bom && plain.starts_with('\u{FEFF}');
    if !twice && !plain.contains("\r\n") {
        let given = if form.bom { text.strip_prefix('\u{FEFF}').unwrap_or(text) } else { text };
        assert_eq!(normalised(&written), normalised(given), "what is written is what was sent");
        let after = TextFormat::of(&encoded.bytes);
        // UTF-16 without a mark and Latin-1 may not be detected again.
        if (after.kind, after.encoding, after.bom) == (form.kind, encoding, form.bom) {
            assert_eq!(plain_text(&encoded.bytes).as_deref(), Some(&*normalised(given)), "and what is read again");
        }
    }
}

/// Checks that editing one line changes no other line. `number` is taken modulo the number of lines.
pub fn one_line_laws(base: &[u8], number: usize, content: &str) {
    let (form, Some(plain)) = (TextFormat::of(base), plain_text(base)) else { return };
    let mut lines: Vec<&str> = plain.split_inclusive('\n').collect();
    let Some(number) = number.checked_rem(lines.len()) else { return };
    // These characters would change the byte order mark or the line breaks.
    if content.contains(['\u{FEFF}', '\r', '\n']) {
        return;
    }
    let edited = if lines[number].ends_with('\n') { format!("{content}\n") } else { content.to_owned() };
    lines[number] = &edited;
    let encoded = encode_like(base, lines.concat());
    if !encoded.unrepresentable.is_empty() {
        return;
    }
    let mark = mark(form);
    let decode = |bytes: &[u8]| form.encoding.decode(bytes).into_owned();
    let (old, new) = (decode(&base[mark..]), decode(&encoded.bytes[mark..]));
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    assert_eq!(new[..number], old[..number], "no line before it changes");
    assert_eq!(new.get(number + 1..).unwrap_or_default(), &old[number + 1..], "no line after it changes");
    let line_break = |line: &str| line.len() - line.trim_end_matches(['\r', '\n']).len();
    if !old[number].ends_with("\r\r\n") && old[number].ends_with('\n') {
        assert_eq!(line_break(new[number]), line_break(old[number]), "the line ending stays");
    }
}

fn normalised(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn is_wide(form: TextFormat) -> bool {
    matches!(form.encoding, Encoding::Utf16Le | Encoding::Utf16Be)
}

fn mark(form: TextFormat) -> usize {
    match (form.bom, is_wide(form)) {
        (false, _) => 0,
        (true, true) => 2,
        (true, false) => 3,
    }
}
