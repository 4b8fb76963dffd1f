//! Compatibility of recorded events.

use sayso_review::{
    Answer, ApplyRecord, Cause, ContentHash, Decider, Event, EventBody, FileRecord, Fingerprint, FreeReason, Note,
    Operation, Origin, Outcome, Performer, Recorded, RefreshReason, Rule, Ruling, RulingRecord, Snapshot, Subject,
    Tier, Uncaptured, Verdict,
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
        card: None,
    };
    let verdict =
        Verdict { preview: hash, answer: Answer::Approve, comments: Vec::new(), message: None, by: Decider::PERSON };
    let (origin, cause) = (Origin::default(), Cause::Undo { changes: vec![1], paths: vec![path("a")] });
    let session = || "s".to_owned();
    let record = ApplyRecord { token: String::new(), steps: Vec::new(), directories: Vec::new(), emptied: Vec::new() };
    let uncaptured = Uncaptured { path: "x".to_owned(), reason: "large".to_owned() };
    let snapshot = Snapshot {
        snapshot: 1,
        path: path("a"),
        location: path("a"),
        state: Fingerprint::Absent,
        tool: "Write".to_owned(),
        tier: Tier::Answer,
        call: None,
        session: Some(session()),
    };
    vec![
        Event::Proposed {
            change: 2,
            origin,
            cause,
            files: vec![file.clone()],
            preview: hash,
            subject: Subject::Files,
            ruling: Some(RulingRecord {
                ruling: Ruling::Later,
                rule: "r".to_owned(),
                reason: None,
                outside: Vec::new(),
            }),
            performer: Performer::Agent,
            intent: Some(hash),
            deadline: Some(9),
            predecessors: vec![1],
        },
        Event::Refreshed {
            change: 2,
            files: vec![file],
            preview: hash,
            reason: RefreshReason::PredecessorDropped { predecessor: 1 },
        },
        Event::Decided { change: 2, verdict, agent_message: "done".to_owned() },
        Event::Ended {
            change: 2,
            outcome: Outcome::Stale { files: vec![path("a")] },
            agent_message: Some("stale".to_owned()),
        },
        Event::Ended { change: 2, outcome: Outcome::Applied, agent_message: None },
        Event::Undone { change: 1, by: 2, paths: Vec::new() },
        Event::Permitted { change: 2, expected: Vec::new(), outside: Vec::new(), editor: None },
        Event::Observed { change: 2, record, differing_files: vec![path("a")], uncaptured: vec![uncaptured] },
        Event::Reviewed { change: 1, by: 2 },
        Event::SessionStarted { session: session(), agent: Some("a".to_owned()), location: None, parent: None },
        Event::SessionResumed { session: session() },
        Event::SessionEnded { session: session() },
        Event::TurnStarted { session: session(), turn: "1".to_owned() },
        Event::TurnEnded { session: session(), turn: "1".to_owned() },
        Event::RuleAdded { session: session(), rule: Rule::new(Ruling::Deny) },
        Event::MessageQueued { session: session(), change: Some(2), call: None, text: "t".to_owned() },
        Event::MessageDelivered { session: session(), change: Some(2), message: 3 },
        Event::Delivered { session: session(), through: 4 },
        Event::SnapshotCaptured(snapshot),
        Event::SnapshotCorrelated { snapshot: 1, call: "c".to_owned(), session: Some(session()) },
        Event::SnapshotsFreed { snapshots: vec![1], reason: FreeReason::Replaced },
        Event::Recovered { change: 2, finished: false, skipped_files: Vec::new(), rescued_files: Vec::new() },
    ]
}

#[test]
fn events_survive_serialization() {
    for event in events() {
        let bytes = serde_json::to_vec(&event).unwrap();
        assert_eq!(EventBody::decode(&bytes), EventBody::Known(event));
    }
}

#[test]
fn unknown_fields_are_ignored() {
    for event in events() {
        let mut value = serde_json::to_value(&event).unwrap();
        value["added_later"] = json!({ "x": [1] });
        assert_eq!(EventBody::decode(value.to_string().as_bytes()), EventBody::Known(event));
    }
}

#[test]
fn unknown_note_is_dropped() {
    let mut value = serde_json::to_value(&events()[0]).unwrap();
    value["files"][0]["notes"] = json!([{ "note": "of_a_later_version" }, { "note": "ci" }]);
    assert_eq!(EventBody::decode(value.to_string().as_bytes()), EventBody::Known(events()[0].clone()));
}

#[test]
fn unknown_event_is_kept_as_data() {
    let later = json!({ "event": "of_a_later_version", "change": 3, "more": [1, { "a": null }] });
    let body = EventBody::decode(later.to_string().as_bytes());
    assert_eq!(body, EventBody::Unknown(later.clone()));
    let recorded = Recorded { number: 7, time: 8, body };
    let written = serde_json::to_value(&recorded).unwrap();
    assert_eq!((&written["number"], &written["more"]), (&json!(7), &later["more"]));
    assert_eq!(serde_json::from_value::<Recorded>(written).unwrap(), recorded);
}

#[test]
fn invalid_event_is_kept_as_text() {
    for bytes in [&b"\xFF\x00"[..], b"", b"[1]", b"\"text\""] {
        let body = EventBody::decode(bytes);
        assert!(matches!(&body, EventBody::Unknown(value) if value["unreadable"].is_string()), "{body:?}");
        assert!(serde_json::to_string(&Recorded { number: 1, time: 2, body }).is_ok());
    }
}

#[test]
fn omitted_fields_get_defaults() {
    let hash = ContentHash::of(b"x");
    let old = json!({ "event": "proposed", "change": 1, "origin": {}, "cause": { "cause": "undo", "changes": [1] }, "files": [],
        "preview": hash });
    let EventBody::Known(Event::Proposed { subject, performer, ruling: None, deadline: None, .. }) =
        EventBody::decode(old.to_string().as_bytes())
    else {
        panic!("cannot decode")
    };
    assert_eq!((subject, performer), (Subject::Files, Performer::Gate));
    for old in [
        json!({ "event": "ended", "change": 1, "outcome": { "outcome": "ran" } }),
        json!({ "event": "undone", "change": 1, "by": 2 }),
    ] {
        assert!(matches!(EventBody::decode(old.to_string().as_bytes()), EventBody::Known(_)), "{old}");
    }
}
