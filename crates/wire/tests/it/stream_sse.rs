//! Server-sent events at any chunk boundary.

use proptest::prelude::*;
use sayso_wire::stream::{SseDecoder, SseItem};

/// Renders the items of a stream with their ranges.
fn items(bytes: &[u8], chunk: usize, limit: usize) -> Vec<String> {
    let mut items = Vec::new();
    let mut decoder = SseDecoder::with_limit(limit);
    let mut take = |range: std::ops::Range<u64>, item: SseItem<'_>| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        items.push(match item {
            SseItem::Event(event) => {
                let id = event.id.map(text).map(|id| format!(" id={id}")).unwrap_or_default();
                let retry = event.retry.map(|retry| format!(" retry={retry}")).unwrap_or_default();
                format!("{range:?} {}={:?}{id}{retry}", text(event.name), text(event.data))
            }
            SseItem::Comment(comment) => format!("{range:?} :{}", text(comment)),
            SseItem::Blank => format!("{range:?} blank"),
            SseItem::TooLong { bytes } => format!("{range:?} too long: {bytes}"),
        });
    };
    for chunk in bytes.chunks(chunk.max(1)) {
        decoder.feed(chunk, &mut take);
    }
    decoder.end(&mut take);
    items
}

#[test]
fn fields_comments_and_lines_follow_standard() {
    for (text, expected) in [
        ("data: a\n\n", vec![r#"0..9 ="a""#]),
        ("data:a\ndata:  b\ndata\n\n", vec![r#"0..22 ="a\n b\n""#]),
        ("event: x\nid: 7\nretry: 20\ndata: a\n\n", vec![r#"0..34 x="a" id=7 retry=20"#]),
        ("event: x\n\n", vec![r#"0..10 x="""#]),
        ("\u{feff}data: a\r\n\r\n", vec![r#"0..14 ="a""#]),
        ("data: \u{feff}a\n\n", vec![r#"0..12 ="\u{feff}a""#]),
        (":one\n\n:two\ndata: a\n\n", vec!["0..5 :one", "6..11 :two", r#"11..20 ="a""#]),
        ("\n\r\ndata: a", vec!["0..1 blank", "1..3 blank", r#"3..10 ="a""#]),
        ("data: a\rdata: b\r\rdata: c", vec![r#"0..17 ="a\nb""#, r#"17..24 ="c""#]),
        ("other: x\nretry: soon\n\ndata: a\n\n", vec![r#"22..31 ="a""#]),
        ("event: x\nevent: y\ndata: a\n\ndata: b\n\n", vec![r#"0..27 y="a""#, r#"27..36 ="b""#]),
        ("data\n\n", vec![r#"0..6 ="""#]),
    ] {
        for chunk in 1..=text.len() {
            assert_eq!(items(text.as_bytes(), chunk, 100), expected, "{text:?} in chunks of {chunk}");
        }
    }
}

#[test]
fn oversized_event_is_skipped() {
    let long = "x".repeat(50);
    for text in [
        format!("data: {long}\n\ndata: a\n\n"),
        format!("data: {}\ndata: {}\n\ndata: a\n\n", &long[..20], &long[..20]),
        format!("data: a\ndata: {long}\ndata: b\n\ndata: a\n\n"),
        format!("{long}\n\ndata: a\n\n"),
    ] {
        let whole = items(text.as_bytes(), text.len(), 30);
        assert_eq!(whole.len(), 2, "{whole:?}");
        assert!(whole[0].contains("too long: "), "{whole:?}");
        assert!(whole[1].ends_with(r#"="a""#), "{whole:?}");
        for chunk in 1..text.len() {
            assert_eq!(items(text.as_bytes(), chunk, 30), whole);
        }
    }
}

#[test]
fn endless_line_is_not_buffered() {
    let mut decoder = SseDecoder::with_limit(1 << 16);
    let mut none = |_: std::ops::Range<u64>, item: SseItem<'_>| panic!("{item:?}");
    for _ in 0..1000 {
        decoder.feed(&[b'x'; 4096], &mut none);
        assert!(decoder.retained() <= 1 << 17);
    }
    assert_eq!(decoder.retained(), 0);
    let mut found = Vec::new();
    decoder.end(&mut |range, item| found.push((range, matches!(item, SseItem::TooLong { bytes: 4_096_000 }))));
    assert_eq!(found, [(0..4_096_000, true)]);
}

#[test]
fn large_buffer_is_released() {
    let mut decoder = SseDecoder::default();
    let text = format!("data: {}\n\n", "x".repeat(5 << 20));
    for chunk in text.as_bytes().chunks(10_000) {
        decoder.feed(chunk, &mut |_, _| {});
    }
    assert!(decoder.retained() < 128 << 10, "{}", decoder.retained());
}

proptest! {
    #[test]
    fn chunk_boundaries_do_not_matter(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("data: "), Just("data"), Just(":"), Just("\n"), Just("\r"), Just("\r\n"), Just("event: e"), Just("id: 1"),
                Just("x"), Just("\u{feff}"), Just(" "), Just("retry:1"), Just("long long long long"),
            ], 0..30),
        sizes in proptest::collection::vec(1_usize..9, 1..20),
        limit in 5_usize..40,
    ) {
        let text = parts.concat();
        let whole = items(text.as_bytes(), text.len(), limit);
        for size in sizes {
            prop_assert_eq!(&items(text.as_bytes(), size, limit), &whole);
        }
    }
}
