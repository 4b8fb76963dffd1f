//! Events outlive the program that wrote them.

use sayso_review::{
    Answer, Cause, ContentHash, Decider, Event, EventBody, FileRecord, Fingerprint, Note, Operation, Origin, Outcome,
    Recorded, Verdict,
};
use serde_json::json;

use crate::path;

fn events() -> Vec<Event> {
    let hash = ContentHash::of(b"x");
    let file = FileRecord {
        path: path("a"),
        location: path("a"),
        operation: Operation::Rename { from: path("b") },
        before: Fingerprint::Absent,
        after: Fingerprint::Link { target: "c".to_owned() },
        added: 1,
        removed: 0,
        notes: vec![Note::Ci],
        problem: None,
        settled: true,
    };
    let verdict = Verdict { preview: hash, answer: Answer::Approve, comments: Vec::new(), by: Decider::Person };
    let (origin, cause) = (Origin::default(), Cause::Undo { of: vec![1] });
    vec![
        Event::Proposed { change: 2, origin, cause, files: vec![file], preview: hash },
        Event::Decided { change: 2, verdict, told: "done".to_owned() },
        Event::Ended { change: 2, outcome: Outcome::Stale { files: vec![path("a")] }, told: Some("stale".to_owned()) },
        Event::Ended { change: 2, outcome: Outcome::Applied, told: None },
        Event::Undone { change: 1, by: 2 },
        Event::Recovered { change: 2, finished: false, left_alone: Vec::new(), saved: Vec::new() },
    ]
}

#[test]
fn what_is_recorded_can_be_read_again() {
    for event in events() {
        let bytes = serde_json::to_vec(&event).unwrap();
        assert_eq!(EventBody::decode(&bytes), EventBody::Known(event));
    }
}

#[test]
fn what_a_later_version_adds_is_ignored() {
    for event in events() {
        let mut value = serde_json::to_value(&event).unwrap();
        value["added_later"] = json!({ "x": [1] });
        assert_eq!(EventBody::decode(value.to_string().as_bytes()), EventBody::Known(event));
    }
}

#[test]
fn a_note_of_a_later_version_does_not_hide_the_change() {
    let mut value = serde_json::to_value(&events()[0]).unwrap();
    value["files"][0]["notes"] = json!([{ "note": "of_a_later_version" }, { "note": "ci" }]);
    assert_eq!(EventBody::decode(value.to_string().as_bytes()), EventBody::Known(events()[0].clone()));
}

#[test]
fn an_event_of_an_unknown_kind_stays_as_it_is() {
    let later = json!({ "event": "of_a_later_version", "change": 3, "more": [1, { "a": null }] });
    let body = EventBody::decode(later.to_string().as_bytes());
    assert_eq!(body, EventBody::Unknown(later.clone()));
    let recorded = Recorded { number: 7, time: 8, body };
    let written = serde_json::to_value(&recorded).unwrap();
    assert_eq!((&written["number"], &written["more"]), (&json!(7), &later["more"]));
    assert_eq!(serde_json::from_value::<Recorded>(written).unwrap(), recorded);
}

#[test]
fn what_is_no_event_can_still_be_shown() {
    for bytes in [&b"\xFF\x00"[..], b"", b"[1]", b"\"text\""] {
        let body = EventBody::decode(bytes);
        assert!(matches!(&body, EventBody::Unknown(value) if value["unreadable"].is_string()), "{body:?}");
        assert!(serde_json::to_string(&Recorded { number: 1, time: 2, body }).is_ok());
    }
}
