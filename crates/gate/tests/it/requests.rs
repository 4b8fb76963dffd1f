//! Bodies of requests in the journal: pieces that were stored before are referred to, and stored after all where they are not.

use sayso_gate::{CutBody, Gate, Piece, RequestEntry, Silence, Stored};
use sayso_review::{BodyRecord, Event, Origin, PIECE, RequestEvent, RequestId, RequestSeen, RequestStep};

use crate::{Scene, rules};

fn seen(request: RequestId, body: CutBody) -> RequestEntry {
    let seen = RequestSeen {
        origin: Origin::default(),
        upstream: "anthropic".to_owned(),
        method: "POST".to_owned(),
        path: "/v1/messages".to_owned(),
        api: None,
        model: None,
        subagent: None,
        body: body.record(),
        encoding: None,
        headers: Vec::new(),
        replay_of: None,
        server: None,
    };
    let event = Event::Request(RequestEvent { request, step: RequestStep::Seen(Box::new(seen)) });
    RequestEntry { event, bodies: vec![body] }
}

fn read(gate: &Gate, request: RequestId) -> Vec<u8> {
    gate.read(|history| history.body(&history.request(request)?.seen.body)).unwrap()
}

#[test]
fn a_piece_that_should_be_stored_and_is_not_is_stored() {
    let scene = Scene::new(&[]);
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(Silence), 1).unwrap();
    let bytes: Vec<u8> = (0..3 * PIECE + 5).map(|at| (at / 7) as u8).collect();
    let mut body = CutBody::new(bytes.clone().into());
    assert_eq!(body.record(), BodyRecord::of(&bytes));
    gate.record_requests(&[seen(1, body.clone())], 1).unwrap();
    let before = |piece: &mut Piece| piece.stored = Stored::Before;
    body.pieces.iter_mut().for_each(before);
    gate.record_requests(&[seen(2, body.clone())], 2).unwrap();
    // A batch of which the journal knows nothing, whatever its pieces say.
    let mut other = CutBody::new(bytes.iter().map(|byte| byte ^ 0x55).collect::<Vec<u8>>().into());
    other.pieces.iter_mut().for_each(before);
    gate.record_requests(&[seen(3, body), seen(4, other.clone())], 3).unwrap();
    for request in 1..=3 {
        assert_eq!(read(&gate, request), bytes);
    }
    assert_eq!(read(&gate, 4), other.bytes.whole());
    assert_eq!(gate.last_request().unwrap(), 4);
}

#[test]
fn a_request_that_waited_and_of_which_nothing_else_is_on_record_stops_nobody() {
    let scene = Scene::new(&[]);
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(Silence), 1).unwrap();
    let paused = |request| {
        let step = RequestStep::Paused {
            why: sayso_review::PauseReason::EveryTurn,
            deadline: None,
            inherits: None,
            handover: None,
        };
        RequestEntry { event: Event::Request(RequestEvent { request, step }), bodies: Vec::new() }
    };
    gate.record_requests(&[paused(1), seen(2, CutBody::new(b"{}"[..].into())), paused(2)], 1).unwrap();
    let waited = gate.read(|history| history.paused_requests(10)).unwrap();
    assert_eq!(waited.iter().map(|record| record.request).collect::<Vec<_>>(), [2]);
}

#[test]
fn however_often_a_request_was_edited_its_end_is_known() {
    let scene = Scene::new(&[]);
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(Silence), 1).unwrap();
    let entry = |step| RequestEntry { event: Event::Request(RequestEvent { request: 1, step }), bodies: Vec::new() };
    let edited = |version| {
        entry(RequestStep::Edited { version, path: String::new(), edit: sayso_review::EditKind::Set, patch: None })
    };
    let mut entries = vec![seen(1, CutBody::new(b"{}"[..].into()))];
    entries.extend((1..=2_500).map(edited));
    entries.push(entry(RequestStep::Ended { why: sayso_review::RequestEnd::Canceled, edited: None }));
    gate.record_requests(&entries, 1).unwrap();
    let record = gate.read(|history| history.request(1)).unwrap();
    assert_eq!((record.edits, record.ended), (2_500, Some(sayso_review::RequestEnd::Canceled)));
}
