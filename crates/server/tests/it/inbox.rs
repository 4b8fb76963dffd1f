//! The inbox, marks, surfaces and the wait for a decision.

use sayso_api::client::{Client, InboxWatch, PreviewDetail, PreviewOf, RetryBudget, Role, StatusDetail, Watched};
use sayso_api::inbox::InboxUpdate;
use sayso_api::proto::oneof::inbox_item::Subject;
use sayso_review::{
    Answer, ChangeStatus, Decider, ErrorKind, RememberAs, Rule, RuleScope, Ruling, SeenMarks, Surface, SurfaceKind,
    WsPath,
};

use crate::scene::{Scene, ask, no, verdict, within, write};

fn keys(watch: &InboxWatch) -> Vec<String> {
    watch.list().items().iter().map(|item| item.key.clone()).collect()
}

async fn marks(client: &Client, change: u64) -> SeenMarks {
    client.get_change(change, PreviewDetail::Contents, PreviewOf::Proposed).await.unwrap().seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn inbox_watch_follows_pending_changes() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let first = ask(&client, write("a.txt", "text\n")).await.record;
    let mut watch = client.watch_inbox(None, RetryBudget::Unlimited);
    assert_eq!(within("the list", watch.next()).await.unwrap(), InboxUpdate::Listed);
    assert_eq!(keys(&watch), ["change:1"]);
    let item = &watch.list().items()[0];
    assert_eq!((item.summary.as_str(), item.files, item.added), ("a.txt (new, +1)", 1, 1));
    assert!(
        matches!(&item.subject, Some(Subject::Change(subject)) if subject.preview_hash == first.preview.to_string())
    );

    ask(&client, write("b.txt", "text\n")).await;
    let key = "change:2".to_owned();
    assert_eq!(within("the second change", watch.next()).await.unwrap(), InboxUpdate::Set { key });
    client.decide(1, verdict(&first, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
    let key = "change:1".to_owned();
    assert_eq!(within("the end of the first", watch.next()).await.unwrap(), InboxUpdate::Removed { key });
    assert_eq!(keys(&watch), ["change:2"]);
    let listed = client.list_inbox(None).await.unwrap();
    assert_eq!(listed.items(), watch.list().items());
    assert!(client.list_inbox(Some("other")).await.unwrap().items().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn inbox_turn_has_one_item_until_reviewed() {
    let scene = Scene::new();
    let server = scene.serve_under(vec![Rule { write: vec!["**".to_owned()], ..Rule::new(Ruling::Later) }]);
    let client = server.verdict_client();
    let origin = sayso_review::Origin {
        session: Some("s".to_owned()),
        turn: Some("t".to_owned()),
        ..sayso_review::Origin::default()
    };
    for name in ["a.txt", "b.txt"] {
        let mode = sayso_api::client::ProposeMode::Record;
        client.propose(write(name, "text\n"), origin.clone(), mode, PreviewDetail::Omitted).await.unwrap();
    }
    let list = client.list_inbox(Some("s")).await.unwrap();
    let [item] = list.items() else { panic!("{list:?}") };
    assert_eq!((item.key.as_str(), item.files, item.added), ("turn:s/t", 2, 2));
    assert_eq!(item.summary, "review of 1, 2: a.txt (new, +1), b.txt (new, +1)");

    let review = client.review_turn("s", "t", PreviewDetail::Omitted).await.unwrap().unwrap().record;
    let list = client.list_inbox(None).await.unwrap();
    let [item] = list.items() else { panic!("{list:?}") };
    assert!(matches!(&item.subject, Some(Subject::Turn(turn)) if turn.review == Some(review.change)));
    client.decide(review.change, verdict(&review, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
    assert!(client.list_inbox(None).await.unwrap().items().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn await_change_decided_elsewhere_returns_details() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let record = ask(&client, write("a.txt", "text\n")).await.record;
    let waiting = tokio::spawn({
        let client = server.proposal_client();
        async move { client.await_change(1, PreviewDetail::Omitted).await }
    });
    client.decide(1, verdict(&record, no("not now")), None, PreviewDetail::Omitted).await.unwrap();
    let details = within("the decision", waiting).await.unwrap().unwrap();
    assert_eq!(details.record.status, ChangeStatus::Denied);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn surface_of_peer_is_reported_and_recorded() {
    let scene = Scene::new();
    let server = scene.serve();
    let observer = server.proposal_client();
    let mut watch = observer.watch(0, Role::Observer, RetryBudget::Unlimited);
    within("the first message", watch.next()).await.unwrap();
    assert!(observer.list_surfaces().await.unwrap().is_empty());

    let surface = Surface::new(SurfaceKind::Editor, "laptop");
    let editor = server.verdict_client().with_surface(surface.clone());
    let mut attached = editor.watch(0, Role::Surface, RetryBudget::Unlimited);
    within("the editor's first message", attached.next()).await.unwrap();
    let Watched::SurfaceAttached(peer) = within("the attachment", watch.next()).await.unwrap() else { panic!() };
    assert_eq!(peer.surface, surface);
    assert_eq!(observer.list_surfaces().await.unwrap(), std::slice::from_ref(&peer));

    let record = ask(&editor, write("a.txt", "text\n")).await.record;
    let decided = editor.decide(1, verdict(&record, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
    assert_eq!(decided.record.verdict.unwrap().by, Decider::Person { surface: Some(surface) });

    drop((attached, editor));
    loop {
        if let Watched::SurfaceDetached(gone) = within("the detachment", watch.next()).await.unwrap() {
            assert_eq!(gone, peer);
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn seen_marks_end_with_their_preview() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("a.txt"), "one\ntwo\n").unwrap();
    let server = scene.serve();
    let client = server.verdict_client();
    ask(&client, write("a.txt", "one\nthree\n")).await;
    let path = WsPath::parse("a.txt").unwrap();
    let seen = client.mark_seen(1, &path, &[1]).await.unwrap();
    assert_eq!(seen.files[&path].iter().copied().collect::<Vec<_>>(), [1]);
    let events = client.status(StatusDetail::Counts).await.unwrap().last_event;
    assert_eq!(client.mark_seen(1, &path, &[1]).await.unwrap(), seen);
    assert_eq!(client.status(StatusDetail::Counts).await.unwrap().last_event, events, "a known mark is not recorded");
    assert_eq!(marks(&client, 1).await, seen);
    assert_eq!(client.list_inbox(None).await.unwrap().items()[0].seen[0].hunks, [1]);

    std::fs::write(scene.root().join("a.txt"), "zero\none\ntwo\n").unwrap();
    assert!(marks(&client, 1).await.is_empty());
    assert!(client.list_inbox(None).await.unwrap().items()[0].seen.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn impossible_mark_is_rejected() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    ask(&client, write("a.txt", "text\n")).await;
    let path = |text| WsPath::parse(text).unwrap();
    for (file, hunks) in [("a.txt", [0]), ("a.txt", [9]), ("b.txt", [1])] {
        let error = client.mark_seen(1, &path(file), &hunks).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgs, "{error}");
    }
    let error = server.proposal_client().mark_seen(1, &path("a.txt"), &[1]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ToolDenied, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn read_number_never_decreases() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    ask(&client, write("a.txt", "text\n")).await;
    assert_eq!(client.status(StatusDetail::Counts).await.unwrap().read_through, 0);
    assert_eq!(client.mark_read(1).await.unwrap(), 1);
    assert_eq!(client.mark_read(0).await.unwrap(), 1);
    assert_eq!(client.status(StatusDetail::Counts).await.unwrap().read_through, 1);
    assert_eq!(client.mark_read(99).await.unwrap(), 2, "the mark itself is the last event");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn rule_suggestion_lists_covered_decisions() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    for (name, answer) in [("a.txt", Answer::Approve), ("a.txt", no("no")), ("b.txt", Answer::Approve)] {
        let record = ask(&client, write(name, &format!("{answer:?}\n"))).await.record;
        client.decide(record.change, verdict(&record, answer), None, PreviewDetail::Omitted).await.unwrap();
    }
    let pending = ask(&client, write("a.txt", "text\n")).await.record.change;
    let remember = RememberAs { scope: RuleScope::Always, ruling: Ruling::Allow };
    let suggested = client.suggest_rule(pending, remember).await.unwrap();
    assert_eq!(suggested.inspected, 3);
    let covered: Vec<(u64, bool, bool)> =
        suggested.covered.iter().map(|decision| (decision.change, decision.approved, decision.by_person)).collect();
    assert_eq!(covered, [(2, false, true), (1, true, true)]);
    assert!(suggested.explanation.contains("a.txt"), "{}", suggested.explanation);
}
