//! Request bodies in the journal. Known chunks are referenced, and stored if they are missing.

use sayso_gate::{Chunk, ChunkPresence, ChunkedBody, Gate, NoNotify, RequestEntry};
use sayso_review::{BodyRecord, CHUNK_SIZE, Event, Origin, RequestEvent, RequestId, RequestReceived, RequestStep};

use crate::{Scene, rules};

fn seen(request: RequestId, body: ChunkedBody) -> RequestEntry {
    let seen = RequestReceived {
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
    let event = Event::Request(RequestEvent { request, step: RequestStep::Received(Box::new(seen)) });
    RequestEntry { event, bodies: vec![body] }
}

fn read(gate: &Gate, request: RequestId) -> Vec<u8> {
    gate.read(|history| history.body(&history.request(request)?.received.body)).unwrap()
}

#[test]
fn missing_known_chunk_is_stored() {
    let scene = Scene::new(&[]);
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(NoNotify), 1).unwrap();
    let bytes: Vec<u8> = (0..3 * CHUNK_SIZE + 5).map(|at| (at / 7) as u8).collect();
    let mut body = ChunkedBody::new(bytes.clone().into());
    assert_eq!(body.record(), BodyRecord::of(&bytes));
    gate.record_requests(&[seen(1, body.clone())], 1).unwrap();
    let before = |piece: &mut Chunk| piece.presence = ChunkPresence::Known;
    body.chunks.iter_mut().for_each(before);
    gate.record_requests(&[seen(2, body.clone())], 2).unwrap();
    // The journal has no chunk of this body, although all are marked as known.
    let mut other = ChunkedBody::new(bytes.iter().map(|byte| byte ^ 0x55).collect::<Vec<u8>>().into());
    other.chunks.iter_mut().for_each(before);
    gate.record_requests(&[seen(3, body), seen(4, other.clone())], 3).unwrap();
    for request in 1..=3 {
        assert_eq!(read(&gate, request), bytes);
    }
    assert_eq!(read(&gate, 4), other.bytes.to_bytes());
    assert_eq!(gate.last_request().unwrap(), 4);
}

#[test]
fn paused_request_without_record_is_skipped() {
    let scene = Scene::new(&[]);
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(NoNotify), 1).unwrap();
    let paused = |request| {
        let step = RequestStep::Paused {
            pause: sayso_review::PauseReason::EveryTurn,
            deadline: None,
            inherits: None,
            handover: None,
        };
        RequestEntry { event: Event::Request(RequestEvent { request, step }), bodies: Vec::new() }
    };
    gate.record_requests(&[paused(1), seen(2, ChunkedBody::new(b"{}"[..].into())), paused(2)], 1).unwrap();
    let waited = gate.read(|history| history.paused_requests(10)).unwrap();
    assert_eq!(waited.iter().map(|record| record.request).collect::<Vec<_>>(), [2]);
}

#[test]
fn request_end_is_read_after_many_edits() {
    let scene = Scene::new(&[]);
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(NoNotify), 1).unwrap();
    let entry = |step| RequestEntry { event: Event::Request(RequestEvent { request: 1, step }), bodies: Vec::new() };
    let edited = |version| {
        entry(RequestStep::Edited { version, path: String::new(), edit: sayso_review::EditKind::Set, patch: None })
    };
    let mut entries = vec![seen(1, ChunkedBody::new(b"{}"[..].into()))];
    entries.extend((1..=2_500).map(edited));
    entries.push(entry(RequestStep::Ended { end: sayso_review::RequestEnd::Canceled, edited: None }));
    gate.record_requests(&entries, 1).unwrap();
    let record = gate.read(|history| history.request(1)).unwrap();
    assert_eq!((record.edits, record.ended), (2_500, Some(sayso_review::RequestEnd::Canceled)));
}
