//! Tests of the scanner against `serde_json`.
use super::*;

fn string(text: &str) -> Option<Cow<'_, str>> {
    JsonCursor { text, at: 0 }.string().ok().flatten()
}

fn valid(text: &str) -> bool {
    let mut scan = JsonCursor { text, at: 0 };
    scan.skip().is_ok() && {
        scan.skip_space();
        scan.at == text.len()
    }
}

#[test]
fn skip_checks_structure() {
    for text in ["{}", "[]", r#"{"a":[1,{"b":null},"]"],"c":-1.5e3}"#, " [ true , false ] ", r#""\"""#, "[[],{}]"] {
        assert!(valid(text), "{text}");
    }
    for text in
        ["", "{", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "[1}", "{\"a\":1,}", "\"", "\"\\", "nul", "[1 2]", "]"]
    {
        assert!(!valid(text), "{text}");
    }
    assert!(valid(&("[".repeat(128) + &"]".repeat(128))));
    assert!(!valid(&("[".repeat(129) + &"]".repeat(129))));
}

#[test]
fn quote_is_found_at_any_offset() {
    for length in 0..70 {
        for at in 0..=length {
            let mut bytes = vec![0xA2; length];
            assert_eq!(quote_or_backslash(&bytes), None);
            bytes.extend_from_slice(b"\"\\\"");
            assert_eq!(quote_or_backslash(&bytes), Some(length));
            bytes[at] = b'\\';
            assert_eq!(quote_or_backslash(&bytes), Some(at));
        }
    }
}

#[test]
fn strings_match_serde() {
    for text in [r#""""#, r#""plain""#, r#""a\nb\t\"\\\/\b\f\r""#, r#""\u00e9\ud83d\ude00x""#, "\"é\\u00e9é\""] {
        assert_eq!(string(text).map(Cow::into_owned), serde_json::from_str(text).ok(), "{text}");
    }
    assert!(matches!(string("\"plain\""), Some(Cow::Borrowed("plain"))));
    assert_eq!(string(r#""\ud83dx""#).as_deref(), Some("\u{FFFD}x"));
    assert_eq!(string(r#""\ud83d\u0041""#).as_deref(), Some("\u{FFFD}A"));
    for text in [r#""\u12"#, r#""\u12""#, r#""\x""#, r#""\"#, "1"] {
        assert_eq!(string(text), None, "{text}");
    }
}
