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
