//! Previews survive the wire, and views limit their size.

use proptest::prelude::*;
use sayso_api::convert::{BadMessage, preview};
use sayso_api::proto::{self, PreviewView};
use sayso_review::{FileMode, FilePreview, FileState, Note, Operation, Placement, Preview, WsPath};

use crate::arbitrary;
use crate::round_trip::received;

proptest! {
    #[test]
    fn preview_round_trip_keeps_hash(shown in arbitrary::previews()) {
        for view in [PreviewView::Content, PreviewView::Full] {
            for message in received(preview(&shown, view)) {
                let arrived = Preview::try_from(message).unwrap();
                prop_assert_eq!(arrived.hash(), shown.hash());
                prop_assert_eq!(&arrived, &shown);
            }
        }
    }

    #[test]
    fn preview_message_equals_preview_object(shown in arbitrary::previews()) {
        let object = shown.object();
        for (view, has_diff) in [(PreviewView::Content, false), (PreviewView::Diff, true), (PreviewView::Full, true)] {
            let message = preview(&shown, view);
            prop_assert_eq!(message.files.len(), object.changes.len());
            for (file, change) in message.files.iter().zip(&object.changes) {
                prop_assert_eq!(file.added, change.added as u64);
                prop_assert_eq!(file.removed, change.removed as u64);
                prop_assert_eq!(file.binary, change.binary);
                prop_assert_eq!(file.settled, change.settled);
                let hunks: Vec<_> = file.hunks.iter().map(numbers).collect();
                if has_diff {
                    prop_assert_eq!(&file.unified_diff, &change.unified_diff);
                    let expected: Vec<_> = change
                        .hunks
                        .iter()
                        .map(|hunk| {
                            [hunk.id.hunk, hunk.parts, hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines]
                                .map(|number| number as u64)
                        })
                        .collect();
                    prop_assert_eq!(hunks, expected);
                } else {
                    prop_assert!(hunks.is_empty() && file.unified_diff.is_empty());
                }
                prop_assert_eq!(file.before_content.is_set(), view != PreviewView::Diff);
                prop_assert_eq!(file.after_content.is_set(), view != PreviewView::Diff);
            }
        }
    }
}

fn numbers(hunk: &proto::Hunk) -> [u64; 6] {
    [u64::from(hunk.number), u64::from(hunk.parts), hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines]
}

fn one_file() -> Preview {
    let path = WsPath::parse("a").unwrap();
    let file = FilePreview {
        location: path.clone(),
        path,
        operation: Operation::Update,
        before: FileState::file("1\n", FileMode::PLAIN),
        after: FileState::file("2\n", FileMode::PLAIN),
        notes: vec![Note::LockFile, Note::Merged],
        problem: None,
    };
    Preview::recorded(vec![(file, false)], Placement::Proposed)
}

fn read(message: proto::Preview) -> Result<Preview, BadMessage> {
    message.try_into()
}

#[test]
fn preview_without_contents_is_rejected() {
    let error = read(preview(&one_file(), PreviewView::Diff)).unwrap_err();
    assert_eq!(error.field, "files[0].before_content");
    assert!(error.reason.contains("CONTENT"), "{error}");
}

#[test]
fn content_that_differs_from_hash_is_rejected() {
    let mut message = preview(&one_file(), PreviewView::Content);
    message.files[0].after_content = buffa::MessageField::some((&FileState::file("3\n", FileMode::PLAIN)).into());
    assert_eq!(read(message).unwrap_err().field, "files[0].after_content");
}

#[test]
fn unknown_note_is_dropped() {
    let mut message = preview(&one_file(), PreviewView::Content);
    message.files[0].notes[0].details_json = r#"{"note":"haunted","by":"a ghost"}"#.to_owned();
    let arrived = read(message).unwrap();
    assert_eq!(arrived.files()[0].notes, [Note::Merged]);
    assert_eq!(arrived.hash(), one_file().hash());
}
