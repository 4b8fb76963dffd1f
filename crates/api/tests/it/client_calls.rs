//! Retries of calls over failing connections.

use sayso_api::client::{
    ClientError, PreviewDetail, PreviewOf, Reach, RetryBudget, Role, SideEffect, StatusDetail, Watched,
};
use sayso_review::{Answer, ChangeStatus, ContentHash, Decider, ErrorKind, IfChanged, Target, Verdict};

use crate::client_engine::{FakeEngine, Line, engine_with_pending};

fn approval(preview: ContentHash) -> Verdict {
    Verdict { preview, answer: Answer::Approve, comments: Vec::new(), message: None, by: Decider::PERSON }
}

#[tokio::test(start_paused = true)]
async fn sequential_calls_share_connection() {
    let engine = FakeEngine::new([]);
    let client = engine.client();
    for _ in 0..5 {
        assert_eq!(client.status(StatusDetail::Counts).await.unwrap().pending, 3);
    }
    assert_eq!((engine.dials(), engine.calls().len()), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn connection_is_usable_after_error() {
    let engine = FakeEngine::new([]);
    let client = engine.client();
    let error = client.list_sessions(1).await.unwrap_err();
    assert!(matches!(error, ClientError::Remote(_)), "{error:?}");
    client.status(StatusDetail::Counts).await.unwrap();
    assert_eq!(engine.dials(), 1);
}

#[tokio::test(start_paused = true)]
async fn unsent_call_is_retried() {
    let (engine, _) = engine_with_pending([Line::Refused, Line::Closed, Line::Refused]);
    engine.client().undo(Target::Last, IfChanged::Refuse, None).await.unwrap();
    assert_eq!((engine.dials(), engine.calls()), (4, vec!["undo"]));
}

#[tokio::test(start_paused = true)]
async fn partially_written_call_is_retried() {
    // A stopping engine leaves connections that it never accepted.
    for bytes in [0, 1, 20, 100] {
        let (engine, _) = engine_with_pending([Line::FullAfter(bytes)]);
        engine.client().undo(Target::Last, IfChanged::Refuse, None).await.unwrap();
        assert_eq!((engine.dials(), engine.calls()), (2, vec!["undo"]), "after {bytes} bytes");
    }
    // The second call on a connection that served the first.
    let (engine, _) = engine_with_pending([Line::FullAfter(200)]);
    let client = engine.client();
    for _ in 0..3 {
        client.undo(Target::Last, IfChanged::Refuse, None).await.unwrap();
    }
    assert_eq!((engine.dials(), engine.calls()), (2, vec!["undo"; 3]));
}

#[tokio::test(start_paused = true)]
async fn unread_call_is_retried() {
    let (engine, _) = engine_with_pending([Line::Unread, Line::Unread]);
    engine.client().undo(Target::Last, IfChanged::Refuse, None).await.unwrap();
    assert_eq!((engine.dials(), engine.calls()), (3, vec!["undo"]));
}

/// The kernel behaviour on which the detection of unread calls relies.
#[test]
#[expect(clippy::disallowed_methods, reason = "tests the kernel's sockets")]
fn socket_closed_with_unread_bytes_is_reset() {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::os::unix::net::{UnixListener, UnixStream};
    let folder = tempfile::tempdir().unwrap();
    for (name, read) in [("not accepted", None), ("not read", Some(0)), ("read in part", Some(3)), ("read", Some(5))] {
        let path = folder.path().join(name);
        let listener = UnixListener::bind(&path).unwrap();
        let mut ours = UnixStream::connect(&path).unwrap();
        ours.write_all(b"12345").unwrap();
        if let Some(count) = read {
            let mut theirs = listener.accept().unwrap().0;
            theirs.read_exact(&mut vec![0; count]).unwrap();
        }
        drop(listener);
        let ended = ours.read(&mut [0; 8]).map_err(|error| error.kind());
        assert_eq!(ended, if read == Some(5) { Ok(0) } else { Err(ErrorKind::ConnectionReset) }, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn idempotent_call_is_retried_after_lost_connection() {
    let engine = FakeEngine::new([Line::Swallowed, Line::ClosedAfter(1), Line::ClosedAfter(60)]);
    assert_eq!(engine.client().status(StatusDetail::Counts).await.unwrap().pending, 3);
    assert_eq!(engine.calls(), ["status"; 3]);
}

#[tokio::test(start_paused = true)]
async fn mutating_call_is_not_repeated() {
    let (engine, _) = engine_with_pending([Line::ClosedAfter(1)]);
    let error = engine.client().undo(Target::Last, IfChanged::Refuse, None).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { side_effect: SideEffect::Unknown, .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.hint().unwrap().contains("sayso log"));
    assert_eq!(engine.calls(), ["undo"]);
}

#[tokio::test(start_paused = true)]
async fn verdict_with_lost_response_counts() {
    let (engine, hash) = engine_with_pending([Line::ClosedAfter(1)]);
    let details = engine.client().decide(7, approval(hash), None, PreviewDetail::Omitted).await.unwrap();
    assert_eq!(details.record.status, ChangeStatus::Applied);
    assert_eq!(engine.calls(), ["decide", "get_change"]);
}

#[tokio::test(start_paused = true)]
async fn undelivered_verdict_is_sent_again() {
    let (engine, hash) = engine_with_pending([Line::Swallowed]);
    let details = engine.client().decide(7, approval(hash), None, PreviewDetail::Omitted).await.unwrap();
    assert_eq!(details.record.status, ChangeStatus::Applied);
    assert_eq!(engine.calls(), ["get_change", "decide"]);
}

#[tokio::test(start_paused = true)]
async fn verdict_after_another_verdict_is_conflict() {
    let (engine, hash) = engine_with_pending([Line::Swallowed]);
    let engine = engine.with(|known| {
        let record = known.record.as_mut().unwrap();
        record.status = ChangeStatus::Denied;
        record.verdict = Some(Verdict { answer: Answer::Deny { reason: None }, ..approval(hash) });
    });
    let error = engine.client().decide(7, approval(hash), None, PreviewDetail::Omitted).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("denied"), "{error}");
    assert_eq!(engine.calls(), ["get_change"]);
}

#[tokio::test(start_paused = true)]
async fn await_outcome_survives_lost_connections() {
    let lines = [Line::ClosedAfter(150), Line::Refused, Line::ClosedAfter(1), Line::Swallowed];
    let (engine, _) = engine_with_pending(lines);
    let details = engine.client().await_outcome(7, PreviewDetail::Contents).await.unwrap();
    assert_eq!(details.record.change, 7);
    assert_eq!(engine.dials(), 5);
}

#[tokio::test(start_paused = true)]
async fn preview_must_match_pending_change() {
    let (engine, _) = engine_with_pending([]);
    engine.client().get_change(7, PreviewDetail::Contents, PreviewOf::Proposed).await.unwrap();
    let engine = engine.with(|known| known.record.as_mut().unwrap().preview = ContentHash::of(b"other content"));
    let error = engine.client().get_change(7, PreviewDetail::Contents, PreviewOf::Proposed).await.unwrap_err();
    assert!(matches!(error, ClientError::BadMessage { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn token_is_sent_over_networks_only() {
    for (reach, token) in [(Reach::Local, None), (Reach::Network, Some("Bearer t0ken".to_owned()))] {
        let engine = FakeEngine { reach, ..FakeEngine::new([]) };
        engine.client().status(StatusDetail::Counts).await.unwrap();
        assert_eq!(engine.known.lock().unwrap().tokens, [token]);
    }
}

#[tokio::test(start_paused = true)]
async fn idle_connection_closed_by_engine_is_replaced() {
    // Enough bytes for one response and too few for two.
    let (engine, _) = engine_with_pending([Line::ClosedAfter(400)]);
    let client = engine.client();
    let mut answered = 0;
    while engine.dials() < 2 {
        client.status(StatusDetail::Counts).await.unwrap();
        answered += 1;
    }
    assert!(answered > 1, "the first connection served a call");
}

#[tokio::test(start_paused = true)]
async fn call_futures_are_send() {
    let (engine, hash) = engine_with_pending([]);
    let client = engine.client();
    let one = client.clone();
    let status = tokio::spawn(async move { one.status(StatusDetail::Counts).await });
    assert_eq!(status.await.unwrap().unwrap().pending, 3);
    let one = client.clone();
    let awaited = tokio::spawn(async move { one.await_outcome(7, PreviewDetail::Contents).await });
    assert_eq!(awaited.await.unwrap().unwrap().record.change, 7);
    let one = client.clone();
    let watched = tokio::spawn(async move { one.watch(0, Role::Observer, RetryBudget::Unlimited).next().await });
    assert_eq!(watched.await.unwrap().unwrap(), Watched::Heartbeat { last_event: 0 });
    let decided = tokio::spawn(async move { client.decide(7, approval(hash), None, PreviewDetail::Omitted).await });
    assert_eq!(decided.await.unwrap().unwrap().record.status, ChangeStatus::Applied);
}
