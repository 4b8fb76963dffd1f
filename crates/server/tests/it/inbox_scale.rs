//! An inbox of 10,000 items with 1,000 watchers: amounts of work, not times.

use std::collections::BTreeMap;

use futures::future::join_all;
use sayso_api::client::{Client, InboxWatch, PreviewDetail, ProposeMode, RetryBudget, StatusDetail};
use sayso_api::inbox::InboxUpdate;
use sayso_review::{Answer, ChangeRecord, Origin};

use crate::scene::{Running, Scene, verdict, within, write};

const ITEMS: u64 = 10_000;
const WATCHERS: usize = 1_000;
/// Watchers of all sessions. The others follow the session with the latest items.
const FULL_WATCHERS: usize = 8;
const LATEST: u64 = 20;

async fn propose(client: &Client, name: u64, session: &str) -> ChangeRecord {
    let origin = Origin { session: Some(session.to_owned()), ..Origin::default() };
    let proposed = write(&format!("f{name}"), "text\n");
    client.propose(proposed, origin, ProposeMode::Ask, PreviewDetail::Omitted).await.unwrap().record
}

/// Proposes changes, several at a time.
async fn fill(server: &Running, names: std::ops::Range<u64>, session: &str) {
    const LANES: u64 = 8;
    let lane = async |lane: u64| {
        let client = server.verdict_client();
        for name in names.clone().filter(|name| name % LANES == lane) {
            propose(&client, name, session).await;
        }
    };
    join_all((0..LANES).map(lane)).await;
}

/// Follows an inbox until the list is complete. No difference comes before.
async fn list(watch: &mut InboxWatch, items: usize) {
    let update = watch.next().await.unwrap();
    assert_eq!(update, InboxUpdate::Listed);
    assert_eq!(watch.list().items().len(), items);
}

/// Follows a listed inbox until it has so many items. Returns how often each key was set.
async fn follow(watch: &mut InboxWatch, items: usize) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    while watch.list().items().len() != items {
        match watch.next().await.unwrap() {
            InboxUpdate::Set { key } => *seen.entry(key).or_default() += 1,
            InboxUpdate::Removed { .. } | InboxUpdate::Unchanged => {}
            InboxUpdate::Listed => panic!("the list is sent once"),
        }
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_does_not_grow_with_watchers() {
    let scene = Scene::new();
    let server = scene.serve();
    fill(&server, 0..ITEMS, "many").await;
    let client = server.verdict_client();
    let mut watches: Vec<InboxWatch> = (0..WATCHERS)
        .map(|number| {
            let session = (number >= FULL_WATCHERS).then_some("latest");
            // A connection of its own for each.
            server.verdict_client().watch_inbox(session, RetryBudget::Unlimited)
        })
        .collect();
    let before = server.work.counts();
    let listed = watches.iter_mut().enumerate().map(|(number, watch)| {
        let items = if number < FULL_WATCHERS { ITEMS as usize } else { 0 };
        list(watch, items)
    });
    within("the lists", join_all(listed)).await;
    let joined = server.work.counts();
    // 10 pages of 1,000 items for all sessions, and one page for the session without items. The first page of a list is encoded again
    // if it was not among the latest pages.
    assert_eq!(joined.inbox_messages - before.inbox_messages, 10 + 1);
    assert_eq!(joined.inbox_events, client.status(StatusDetail::Counts).await.unwrap().last_event - skipped(&before));
    assert_eq!(joined.inbox_lists, 1);

    fill(&server, ITEMS..ITEMS + LATEST, "latest").await;
    let latest = LATEST as usize;
    let followed = watches.iter_mut().enumerate().map(|(number, watch)| {
        let items = if number < FULL_WATCHERS { ITEMS as usize + latest } else { latest };
        follow(watch, items)
    });
    for seen in within("the latest items", join_all(followed)).await {
        assert_eq!(seen.len(), latest, "{seen:?}");
        assert!(seen.values().all(|times| *times == 1), "{seen:?}");
    }
    let after = server.work.counts();
    assert_eq!(after.inbox_events - joined.inbox_events, LATEST, "each event is folded once");
    assert_eq!(after.inbox_messages - joined.inbox_messages, LATEST, "each difference is encoded once");
    // Watchers hold the list that they sent last: here all hold the current one.
    assert!(after.inbox_lists <= 2, "{after:?}");
}

/// Events before the inbox was first read, which loads what is pending and folds no events.
fn skipped(before: &sayso_server::WorkCounts) -> u64 {
    assert_eq!(before.inbox_events, 0, "nobody has read the inbox");
    ITEMS
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_watchers_hold_one_list_each_at_most() {
    const STALLED: usize = 30;
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let mut records = Vec::new();
    for name in 0..50 {
        records.push(propose(&client, name, "s").await);
    }
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        let mut watch = server.verdict_client().watch_inbox(None, RetryBudget::Unlimited);
        list(&mut watch, 50).await;
        stalled.push(watch);
    }
    let mut reader = server.verdict_client().watch_inbox(None, RetryBudget::Unlimited);
    list(&mut reader, 50).await;
    for record in &records[..49] {
        client.decide(record.change, verdict(record, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
    }
    within("the end", follow(&mut reader, 1)).await;
    let lists = server.work.counts().inbox_lists;
    assert!(lists <= STALLED as u64 + 2, "{lists} lists");
    // A watcher that was stalled catches up.
    for watch in &mut stalled {
        within("the end", follow(watch, 1)).await;
    }
    assert_eq!(server.work.counts().inbox_lists, 1);
}
