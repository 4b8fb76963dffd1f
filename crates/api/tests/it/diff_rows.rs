//! Rows of diffs survive the conversion to a message, the binary encoding and JSON.

use std::fmt::Debug;

use buffa::Message;
use proptest::collection::vec;
use proptest::prelude::*;
use sayso_api::convert::BadMessage;
use sayso_api::proto;
use sayso_diff::{ConflictRow, ConflictRows, DiffRow, DiffRows, RowContent, RowOptions, SideBySideRow};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::round_trip::received;

fn round_trips<'a, M, T>(value: &'a T)
where
    M: Message + Serialize + DeserializeOwned + From<&'a T>,
    T: TryFrom<M, Error = BadMessage> + PartialEq + Debug,
{
    for message in received(M::from(value)) {
        assert_eq!(T::try_from(message).as_ref(), Ok(value));
    }
}

/// Lines of every line ending, some with characters that are escaped or bytes that are none.
fn contents() -> impl Strategy<Value = Vec<u8>> {
    let line: [&[u8]; 8] =
        [b"a\n", b"b\r\n", b"\n", b"a b c\n", "\u{202E}\u{1F980}\n".as_bytes(), b"\x01\xff\n", b"\xc3\n", b"open"];
    vec(prop::sample::select(line.to_vec()), 0..30).prop_map(|lines| lines.concat())
}

fn options() -> impl Strategy<Value = RowOptions> {
    (0..4_usize, any::<bool>()).prop_map(|(context, whole_file)| RowOptions { context, whole_file })
}

proptest! {
    #[test]
    fn diff_rows_round_trip(old in prop::option::of(contents()), new in contents(), options in options()) {
        let rows = DiffRows::new(old, Some(new), options);
        rows.unified(0..usize::MAX).for_each(|row| round_trips::<proto::DiffRow, DiffRow>(&row));
        rows.side_by_side(0..usize::MAX).for_each(|row| round_trips::<proto::SideBySideRow, SideBySideRow>(&row));
    }

    #[test]
    fn conflict_rows_round_trip(
        base in contents(),
        theirs in contents(),
        yours in contents(),
        options in options(),
    ) {
        let rows = ConflictRows::new(Some(base), Some(theirs), Some(yours), options);
        rows.rows(0..usize::MAX).for_each(|row| round_trips::<proto::ConflictRow, ConflictRow>(&row));
    }
}

#[test]
fn span_outside_of_text_is_rejected() {
    for (start, end) in [(0, 3), (2, 1), (0, 1)] {
        let span = proto::TextSpan { start, end, ..Default::default() };
        let content = proto::LineContent { text: "ä".to_owned(), words: vec![span], ..Default::default() };
        let error = RowContent::try_from(content).unwrap_err();
        assert_eq!(error.field, "words[0]");
    }
}

#[test]
fn row_without_kind_is_rejected() {
    assert_eq!(DiffRow::try_from(proto::DiffRow::default()).unwrap_err().field, "kind");
    assert_eq!(ConflictRow::try_from(proto::ConflictRow::default()).unwrap_err().field, "kind");
    assert_eq!(SideBySideRow::try_from(proto::SideBySideRow::default()).unwrap_err().field, "both");
}
