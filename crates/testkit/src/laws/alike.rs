//! The laws of text written in the form of a file.

use sayso_diff::{Encoding, Form, Kind, like, plain_text};

/// The laws of writing any text as any file would hold it.
pub fn like_laws(base: &[u8], text: &str) {
    let form = Form::of(base);
    let alike = like(base, text);
    let Some(plain) = plain_text(base) else {
        assert!(form.kind == Kind::Binary || is_wide(form), "only noise and torn UTF-16 have no text");
        assert_eq!(alike.bytes, text.as_bytes(), "what has no form is not followed");
        return;
    };
    let same = like(base, &*plain);
    assert_eq!(same.bytes, base, "the text of a file is that file");
    assert_eq!(same.unrepresentable, []);
    if base.is_empty() {
        return assert_eq!(alike.bytes, text.as_bytes(), "nothing has no form");
    }
    for character in &alike.unrepresentable {
        assert!(form.encoding == Encoding::Latin1 && text.contains(*character), "{character:?} is lacking");
    }
    let mark = mark(form);
    assert_eq!(alike.bytes[..mark], base[..mark], "the mark stays");
    let encoding = if alike.unrepresentable.is_empty() { form.encoding } else { Encoding::Utf8 };
    let written = encoding.decode(&alike.bytes[mark..]);
    // A second mark, or a line that ends in `\r` and a break, takes away what tells the text's own from the base's.
    let twice = form.bom && plain.starts_with('\u{FEFF}');
    if !twice && !plain.contains("\r\n") {
        let given = if form.bom { text.strip_prefix('\u{FEFF}').unwrap_or(text) } else { text };
        assert_eq!(normalised(&written), normalised(given), "what is written is what was sent");
        let after = Form::of(&alike.bytes);
        // UTF-16 without a mark may not be recognised any more, nor may Latin-1.
        if (after.kind, after.encoding, after.bom) == (form.kind, encoding, form.bom) {
            assert_eq!(plain_text(&alike.bytes).as_deref(), Some(&*normalised(given)), "and what is read again");
        }
    }
}

/// The law of editing one line: no other changes. `content` stands in for the content of the line of that number, modulo lines.
pub fn one_line_laws(base: &[u8], number: usize, content: &str) {
    let (form, Some(plain)) = (Form::of(base), plain_text(base)) else { return };
    let mut lines: Vec<&str> = plain.split_inclusive('\n').collect();
    let Some(number) = number.checked_rem(lines.len()) else { return };
    // These would take the place of the mark and of the break.
    if content.contains(['\u{FEFF}', '\r', '\n']) {
        return;
    }
    let edited = if lines[number].ends_with('\n') { format!("{content}\n") } else { content.to_owned() };
    lines[number] = &edited;
    let alike = like(base, lines.concat());
    if !alike.unrepresentable.is_empty() {
        return;
    }
    let mark = mark(form);
    let decode = |bytes: &[u8]| form.encoding.decode(bytes).into_owned();
    let (old, new) = (decode(&base[mark..]), decode(&alike.bytes[mark..]));
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    assert_eq!(new[..number], old[..number], "no line before it changes");
    assert_eq!(new.get(number + 1..).unwrap_or_default(), &old[number + 1..], "no line after it changes");
    let line_break = |line: &str| line.len() - line.trim_end_matches(['\r', '\n']).len();
    if !old[number].ends_with("\r\r\n") && old[number].ends_with('\n') {
        assert_eq!(line_break(new[number]), line_break(old[number]), "nor does the way it ends");
    }
}

fn normalised(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn is_wide(form: Form) -> bool {
    matches!(form.encoding, Encoding::Utf16Le | Encoding::Utf16Be)
}

fn mark(form: Form) -> usize {
    match (form.bom, is_wide(form)) {
        (false, _) => 0,
        (true, true) => 2,
        (true, false) => 3,
    }
}
