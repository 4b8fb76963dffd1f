//! Watching the event stream over failing connections.

use std::time::Duration;

use proptest::prelude::*;
use sayso_api::client::{RetryBudget, Role, Watch, Watched};
use sayso_review::{ErrorKind, EventBody};

use crate::client_engine::{FakeEngine, Line};

const RETRY_BUDGET: RetryBudget = RetryBudget::Limited(Duration::from_mins(1));

/// Reads events up to number `last` and returns their numbers.
async fn numbers(watch: &mut Watch, last: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    while watch.after() < last {
        if let Watched::Event(event) = watch.next().await.unwrap() {
            numbers.push(event.number);
        }
    }
    numbers
}

fn watched(lines: Vec<Line>, after: u64, last: u64) -> Vec<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let engine = FakeEngine::new(lines).with(|known| known.events = last);
        numbers(&mut engine.client().watch(after, Role::Observer, RETRY_BUDGET), last).await
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn lost_connections_keep_events_complete_and_ordered(
        sizes in prop::collection::vec(0_usize..1_500, 0..12),
        after in 0_u64..20,
    ) {
        let lines = sizes.into_iter().map(Line::ClosedAfter).collect();
        prop_assert_eq!(watched(lines, after, 40), (after + 1..=40).collect::<Vec<_>>());
    }
}

#[test]
fn connection_lost_at_any_byte_loses_no_event() {
    for bytes in 0..700 {
        assert_eq!(
            watched(vec![Line::ClosedAfter(bytes)], 3, 10),
            (4..=10).collect::<Vec<_>>(),
            "closed after {bytes}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn watch_continues_after_engine_restart() {
    let lines = [Line::Good, Line::Refused, Line::Refused, Line::Closed];
    let engine = FakeEngine::new(lines).with(|known| (known.events, known.stops_after) = (9, Some(5)));
    let mut watch = engine.client().watch(0, Role::Observer, RETRY_BUDGET);
    assert_eq!(numbers(&mut watch, 9).await, (1..=9).collect::<Vec<_>>());
    assert_eq!(engine.dials(), 5);
}

#[tokio::test(start_paused = true)]
async fn missing_engine_exhausts_retry_budget() {
    let engine = FakeEngine::new([Line::Refused; 100]);
    let before = tokio::time::Instant::now();
    let mut watch = engine.client().watch(0, Role::Observer, RetryBudget::Limited(Duration::from_secs(3)));
    let error = watch.next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(before.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn gap_in_event_numbers_is_error() {
    let engine = FakeEngine::new([]).with(|known| (known.events, known.gap) = (5, Some(3)));
    let mut watch = engine.client().watch(0, Role::Observer, RETRY_BUDGET);
    assert_eq!(numbers(&mut watch, 2).await, [1, 2]);
    let error = watch.next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.to_string().contains("event 4 follows event 2"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn replaced_journal_is_error() {
    let engine = FakeEngine::new([]).with(|known| known.events = 5);
    let error = engine.client().watch(8, Role::Observer, RETRY_BUDGET).next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.to_string().contains("the journal was replaced"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn cancelled_next_loses_no_event() {
    let engine = FakeEngine::new([]).with(|known| known.events = 3);
    let mut watch = engine.client().watch(0, Role::Observer, RETRY_BUDGET);
    assert_eq!(numbers(&mut watch, 3).await, [1, 2, 3]);
    // No event is due, so the timeout drops the future.
    assert!(tokio::time::timeout(Duration::from_secs(1), watch.next()).await.is_err());
    assert_eq!(watch.after(), 3);
    assert_eq!(engine.calls(), ["watch"]);
}

#[tokio::test(start_paused = true)]
async fn silent_stream_is_reopened() {
    let engine = FakeEngine::new([]).with(|known| known.events = 1);
    let mut watch = engine.client().watch(0, Role::Observer, RETRY_BUDGET);
    assert_eq!(numbers(&mut watch, 1).await, [1]);
    assert_eq!(watch.next().await.unwrap(), Watched::Heartbeat { last_event: 1 });
    assert_eq!(engine.calls(), ["watch", "watch"]);
}

#[tokio::test(start_paused = true)]
async fn unreadable_event_keeps_its_number() {
    let engine = FakeEngine::new([]).with(|known| (known.events, known.unreadable) = (3, Some(2)));
    let mut watch = engine.client().watch(1, Role::Observer, RETRY_BUDGET);
    assert_eq!(watch.next().await.unwrap(), Watched::Heartbeat { last_event: 3 });
    let Watched::Event(event) = watch.next().await.unwrap() else { panic!("event 2 is due") };
    let EventBody::Unknown(body) = &event.body else { panic!("{event:?}") };
    assert!(body["unreadable"].as_str().unwrap().contains("`ended.outcome`"), "{body}");
    assert_eq!(numbers(&mut watch, 3).await, [3]);
}
