//! Calls over connections that break: which are made again, and which are not.

use sayso_api::client::{ClientError, Extent, Fate, Patience, Reach, Role, Shown, View, Watched};
use sayso_review::{Answer, ChangeStatus, ContentHash, Decider, ErrorKind, IfChanged, Target, Verdict};

use crate::client_engine::{FakeEngine, Line, engine_that_waits};

fn approval(preview: ContentHash) -> Verdict {
    Verdict { preview, answer: Answer::Approve, comments: Vec::new(), by: Decider::Person }
}

#[tokio::test(start_paused = true)]
async fn calls_share_a_connection() {
    let engine = FakeEngine::new([]);
    let client = engine.client();
    for _ in 0..5 {
        assert_eq!(client.status(Extent::Counts).await.unwrap().pending, 3);
    }
    assert_eq!((engine.dials(), engine.calls().len()), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn an_error_leaves_the_connection_usable() {
    let engine = FakeEngine::new([]);
    let client = engine.client();
    let error = client.list_sessions(1).await.unwrap_err();
    assert!(matches!(error, ClientError::Remote(_)), "{error:?}");
    client.status(Extent::Counts).await.unwrap();
    assert_eq!(engine.dials(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_sent_again_whatever_it_is() {
    let (engine, _) = engine_that_waits([Line::Refused, Line::Closed, Line::Refused]);
    engine.client().undo(Target::Last, IfChanged::Refuse, None).await.unwrap();
    assert_eq!((engine.dials(), engine.calls()), (4, vec!["undo"]));
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_written_whole_was_done_by_nobody_and_is_sent_again() {
    // An engine that ends leaves connections behind that it never took up.
    for bytes in [0, 1, 20, 100] {
        let (engine, _) = engine_that_waits([Line::FullAfter(bytes)]);
        engine.client().undo(Target::Last, IfChanged::Refuse, None).await.unwrap();
        assert_eq!((engine.dials(), engine.calls()), (2, vec!["undo"]), "after {bytes} bytes");
    }
    // The second call on a connection that served the first.
    let (engine, _) = engine_that_waits([Line::FullAfter(200)]);
    let client = engine.client();
    for _ in 0..3 {
        client.undo(Target::Last, IfChanged::Refuse, None).await.unwrap();
    }
    assert_eq!((engine.dials(), engine.calls()), (2, vec!["undo"; 3]));
}

#[tokio::test(start_paused = true)]
async fn what_was_written_and_not_read_was_done_by_nobody_and_is_sent_again() {
    let (engine, _) = engine_that_waits([Line::Unread, Line::Unread]);
    engine.client().undo(Target::Last, IfChanged::Refuse, None).await.unwrap();
    assert_eq!((engine.dials(), engine.calls()), (3, vec!["undo"]));
}

/// What the rule above rests on.
#[test]
#[expect(clippy::disallowed_methods, reason = "what the system does with sockets is what is tested")]
fn a_socket_is_reset_where_something_was_not_read_and_closed_where_all_was() {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::os::unix::net::{UnixListener, UnixStream};
    let folder = tempfile::tempdir().unwrap();
    for (name, read) in [("never taken up", None), ("not read", Some(0)), ("read in part", Some(3)), ("read", Some(5))]
    {
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
async fn what_does_nothing_is_asked_again_after_a_cut() {
    let engine = FakeEngine::new([Line::Swallowed, Line::CutAfter(1), Line::CutAfter(60)]);
    assert_eq!(engine.client().status(Extent::Counts).await.unwrap().pending, 3);
    assert_eq!(engine.calls(), ["status"; 3]);
}

#[tokio::test(start_paused = true)]
async fn what_changes_things_is_not_done_twice() {
    let (engine, _) = engine_that_waits([Line::CutAfter(1)]);
    let error = engine.client().undo(Target::Last, IfChanged::Refuse, None).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { fate: Fate::Unknown, .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.hint().unwrap().contains("sayso log"));
    assert_eq!(engine.calls(), ["undo"]);
}

#[tokio::test(start_paused = true)]
async fn a_verdict_that_arrived_counts_although_its_answer_did_not() {
    let (engine, hash) = engine_that_waits([Line::CutAfter(1)]);
    let progress = engine.client().decide(7, approval(hash), None, View::Nothing).await.unwrap();
    assert_eq!(progress.record.status, ChangeStatus::Applied);
    assert_eq!(engine.calls(), ["decide", "get_change"]);
}

#[tokio::test(start_paused = true)]
async fn a_verdict_that_did_not_arrive_is_given_again() {
    let (engine, hash) = engine_that_waits([Line::Swallowed]);
    let progress = engine.client().decide(7, approval(hash), None, View::Nothing).await.unwrap();
    assert_eq!(progress.record.status, ChangeStatus::Applied);
    assert_eq!(engine.calls(), ["get_change", "decide"]);
}

#[tokio::test(start_paused = true)]
async fn a_verdict_that_somebody_elses_came_before_is_a_conflict() {
    let (engine, hash) = engine_that_waits([Line::Swallowed]);
    let engine = engine.with(|known| {
        let record = known.record.as_mut().unwrap();
        record.status = ChangeStatus::Denied;
        record.verdict = Some(Verdict { answer: Answer::Deny { reason: None }, ..approval(hash) });
    });
    let error = engine.client().decide(7, approval(hash), None, View::Nothing).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("denied"), "{error}");
    assert_eq!(engine.calls(), ["get_change"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_an_outcome_goes_on_after_cuts() {
    let lines = [Line::CutAfter(150), Line::Refused, Line::CutAfter(1), Line::Swallowed];
    let (engine, _) = engine_that_waits(lines);
    let progress = engine.client().await_outcome(7, View::Content).await.unwrap();
    assert_eq!(progress.record.change, 7);
    assert_eq!(engine.dials(), 5);
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_has_to_be_what_waits() {
    let (engine, _) = engine_that_waits([]);
    engine.client().get_change(7, View::Content, Shown::Proposed).await.unwrap();
    let engine = engine.with(|known| known.record.as_mut().unwrap().preview = ContentHash::of(b"something else"));
    let error = engine.client().get_change(7, View::Content, Shown::Proposed).await.unwrap_err();
    assert!(matches!(error, ClientError::BadMessage { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn the_token_is_shown_over_networks_only() {
    for (reach, token) in [(Reach::Local, None), (Reach::Network, Some("Bearer t0ken".to_owned()))] {
        let engine = FakeEngine { reach, ..FakeEngine::new([]) };
        engine.client().status(Extent::Counts).await.unwrap();
        assert_eq!(engine.known.lock().unwrap().tokens, [token]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_closed_meanwhile_costs_nothing() {
    // Enough for one answer and not for two.
    let (engine, _) = engine_that_waits([Line::CutAfter(400)]);
    let client = engine.client();
    let mut answered = 0;
    while engine.dials() < 2 {
        client.status(Extent::Counts).await.unwrap();
        answered += 1;
    }
    assert!(answered > 1, "the first connection was good for a while");
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_call_can_be_made_by_a_task_of_its_own() {
    let (engine, hash) = engine_that_waits([]);
    let client = engine.client();
    let one = client.clone();
    let status = tokio::spawn(async move { one.status(Extent::Counts).await });
    assert_eq!(status.await.unwrap().unwrap().pending, 3);
    let one = client.clone();
    let awaited = tokio::spawn(async move { one.await_outcome(7, View::Content).await });
    assert_eq!(awaited.await.unwrap().unwrap().record.change, 7);
    let one = client.clone();
    let watched = tokio::spawn(async move { one.watch(0, Role::Observer, Patience::Always).next().await });
    assert_eq!(watched.await.unwrap().unwrap(), Watched::Heartbeat { last: 0 });
    let decided = tokio::spawn(async move { client.decide(7, approval(hash), None, View::Nothing).await });
    assert_eq!(decided.await.unwrap().unwrap().record.status, ChangeStatus::Applied);
}
