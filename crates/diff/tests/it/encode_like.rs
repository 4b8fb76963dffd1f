//! Encoding text in the format of a file, by example; `laws` has the general rules.

use sayso_diff::{EncodedText, encode_like, plain_text};

/// Checks the text encoded in the format of a base.
fn check(base: &[u8], text: &str, expected: &[u8]) {
    let encoded = encode_like(base, text);
    assert_eq!(encoded.unrepresentable, [], "{text:?}");
    assert_eq!(
        encoded.bytes,
        expected,
        "{text:?} like {:?} is {:?}",
        String::from_utf8_lossy(base),
        String::from_utf8_lossy(&encoded.bytes)
    );
}

fn utf16le(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn utf16be(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

#[test]
fn plain_utf8_files_keep_the_text() {
    for base in [&b""[..], b"a\n", b"a\nb", b"no break", "grüße\n".as_bytes()] {
        for text in ["", "a\n", "x\r\ny\n", "\u{FEFF}a\n", "no end", "🦀\n"] {
            check(base, text, text.as_bytes());
        }
    }
}

#[test]
fn formatless_files_keep_the_text() {
    let noise: Vec<u8> = (0..300u32).map(|i| ((i * i * 7919) >> 5) as u8).collect();
    check(&noise, "a\n", b"a\n");
    check(b"a\0b\r\n", "a\n", b"a\n");
    // An incomplete surrogate pair and an incomplete code unit.
    let torn = [&utf16le("\u{FEFF}a\r\n")[..], b"\x00\xD8"].concat();
    check(&torn, "a\n", b"a\n");
    assert_eq!(plain_text(&torn), None);
    check(b"\xFF\xFEa\0b", "a\n", b"a\n");
}

#[test]
fn line_feeds_become_file_line_endings() {
    check(b"a\r\nb\r\n", "a\nB\nc\n", b"a\r\nB\r\nc\r\n");
    check(b"a\r\nb\r\n", "a\nb", b"a\r\nb");
    check(b"a\r\nb", "a\nb\n", b"a\r\nb\r\n");
    check(b"a\r\n", "", b"");
    check(b"a\r\n", "\n\nlone\rreturn\n", b"\r\n\r\nlone\rreturn\r\n");
    // An explicit `\r\n` is kept.
    check(b"a\r\n", "x\r\ny\nz\r\n", b"x\r\ny\r\nz\r\n");
    check("\u{FEFF}a\nb\n".as_bytes(), "a\r\nb\n", "\u{FEFF}a\r\nb\n".as_bytes());
}

#[test]
fn mixed_endings_are_kept_by_line() {
    let base = b"a\r\nb\nc\r\nd\n";
    check(base, "a\nb\nc\nd\n", base);
    check(base, "a\r\nb\r\nc\r\nd\r\n", base);
    // A replaced line keeps its ending.
    check(base, "A\nB\nC\nd\n", b"A\r\nB\nC\r\nd\n");
    // Additional lines take the ending of the preceding line.
    check(base, "a\nb\nC\nmore\nmuch more\nd\n", b"a\r\nb\nC\r\nmore\r\nmuch more\r\nd\n");
    check(base, "a\nnew\nb\nc\nd\nlast\n", b"a\r\nnew\r\nb\nc\r\nd\nlast\n");
    // The first line has no preceding line.
    check(base, "new\na\nb\nc\nd\n", b"new\r\na\r\nb\nc\r\nd\n");
    check(b"a\nb\r\n", "new\na\nb\n", b"new\na\nb\r\n");
    // An explicit `\r\n` is kept in a changed line.
    check(base, "a\nB\r\nc\nd\n", b"a\r\nB\r\nc\r\nd\n");
    check(base, "c\nd\n", b"c\r\nd\n");
}

#[test]
fn final_newline_follows_text() {
    check(b"a\nb\r\nc", "a\nb\nc\n", b"a\nb\r\nc\r\n");
    check(b"a\nb\r\nc\r\n", "a\nb\nc", b"a\nb\r\nc");
    check(b"a\r\nb\nc", "a\nb\nc", b"a\r\nb\nc");
    check(b"a\r\nb\nc", "a\nb\nx", b"a\r\nb\nx");
}

#[test]
fn byte_order_marks_are_kept_once() {
    let base = "\u{FEFF}a\n".as_bytes();
    check(base, "b\n", "\u{FEFF}b\n".as_bytes());
    check(base, "\u{FEFF}b\n", "\u{FEFF}b\n".as_bytes());
    check("\u{FEFF}".as_bytes(), "b\n", "\u{FEFF}b\n".as_bytes());
    check(b"a\r\n", "\u{FEFF}b\n", "\u{FEFF}b\r\n".as_bytes());
    check(&utf16le("\u{FEFF}a\n"), "\u{FEFF}b\n", &utf16le("\u{FEFF}b\n"));
    // The second mark is an ordinary character.
    let twice = "\u{FEFF}\u{FEFF}a\r\n".as_bytes();
    assert_eq!(plain_text(twice).unwrap(), "\u{FEFF}a\n");
    check(twice, "\u{FEFF}b\n", "\u{FEFF}\u{FEFF}b\r\n".as_bytes());
}

#[test]
fn utf16_stays_utf16() {
    for encode in [utf16le, utf16be] {
        check(&encode("\u{FEFF}a\r\nb\r\n"), "a\nnaïve 🦀\n", &encode("\u{FEFF}a\r\nnaïve 🦀\r\n"));
        check(&encode("\u{FEFF}a\nb\r\nc\n"), "a\nB\nc\n漢\n", &encode("\u{FEFF}a\nB\r\nc\n漢\n"));
        check(&encode("no mark here\r\n"), "none here\neither 🦀\n", &encode("none here\r\neither 🦀\r\n"));
        check(&encode("\u{FEFF}"), "a\n", &encode("\u{FEFF}a\n"));
        assert_eq!(plain_text(&encode("\u{FEFF}naïve 🦀\r\nb")).unwrap(), "naïve 🦀\nb");
    }
}

#[test]
fn latin1_is_kept_if_representable() {
    check(b"caf\xE9\r\n", "café\n5 €\n", b"caf\xE9\r\n5 \x80\r\n");
    check(b"caf\xE9\n\x81\n", "tea\n\u{81}\n", b"tea\n\x81\n");
    assert_eq!(plain_text(b"caf\xE9 \x80\r\n").unwrap(), "café €\n");
    assert_eq!(
        encode_like(b"caf\xE9\r\nb\r\n", "café\n漢 🦀 漢\n\u{80}\n"),
        EncodedText {
            bytes: "café\r\n漢 🦀 漢\r\n\u{80}\r\n".into(), unrepresentable: vec!['漢', '🦀', '\u{80}']
        }
    );
    assert_eq!(
        encode_like(b"\xE9\r\nb\nc\n", "é\nł\nc\n").bytes,
        "é\r\nł\nc\n".as_bytes(),
        "endings are kept all the same"
    );
}

#[test]
fn invalid_utf8_keeps_its_mark() {
    let base = b"\xEF\xBB\xBFa\xFF\r\n";
    assert_eq!(plain_text(base).unwrap(), "aÿ\n");
    check(base, "aÿ\nb\n", b"\xEF\xBB\xBFa\xFF\r\nb\r\n");
    assert_eq!(encode_like(base, "漢\n").bytes, "\u{FEFF}漢\r\n".as_bytes());
}

#[test]
fn second_carriage_return_belongs_to_line() {
    let base = b"a\r\r\nb\r\n";
    assert_eq!(plain_text(base).unwrap(), "a\r\nb\n");
    check(base, "a\r\nb\n", base);
    check(base, "a\r\nB\nc\r\n", b"a\r\r\nB\r\nc\r\n");
}

#[test]
fn plain_files_are_borrowed() {
    assert!(matches!(plain_text("grüße\n".as_bytes()), Some(std::borrow::Cow::Borrowed(_))));
    assert!(matches!(plain_text("\u{FEFF}a\n".as_bytes()), Some(std::borrow::Cow::Borrowed("a\n"))));
    assert_eq!(plain_text(b"").unwrap(), "");
    assert_eq!(plain_text(b"a\0b\n"), None);
}
