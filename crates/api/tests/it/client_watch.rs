//! A watch over connections that break.

use std::time::Duration;

use proptest::prelude::*;
use sayso_api::client::{Patience, Role, Watch, Watched};
use sayso_review::ErrorKind;

use crate::client_engine::{FakeEngine, Line};

const PATIENCE: Patience = Patience::For(Duration::from_mins(1));

/// The numbers of events up to one.
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
        numbers(&mut engine.client().watch(after, Role::Observer, PATIENCE), last).await
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn wherever_it_is_cut_every_event_comes_once_and_in_order(
        cuts in prop::collection::vec(0_usize..1_500, 0..12),
        after in 0_u64..20,
    ) {
        let lines = cuts.into_iter().map(Line::CutAfter).collect();
        prop_assert_eq!(watched(lines, after, 40), (after + 1..=40).collect::<Vec<_>>());
    }
}

#[test]
fn a_cut_at_every_byte_of_a_stream_is_survived() {
    for bytes in 0..700 {
        assert_eq!(watched(vec![Line::CutAfter(bytes)], 3, 10), (4..=10).collect::<Vec<_>>(), "cut after {bytes}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_stops_is_waited_for() {
    let lines = [Line::Good, Line::Refused, Line::Refused, Line::Closed];
    let engine = FakeEngine::new(lines).with(|known| (known.events, known.stops_after) = (9, Some(5)));
    let mut watch = engine.client().watch(0, Role::Observer, PATIENCE);
    assert_eq!(numbers(&mut watch, 9).await, (1..=9).collect::<Vec<_>>());
    assert_eq!(engine.dials(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_does_not_come_back_is_not_waited_for_longer_than_said() {
    let engine = FakeEngine::new([Line::Refused; 100]);
    let before = tokio::time::Instant::now();
    let mut watch = engine.client().watch(0, Role::Observer, Patience::For(Duration::from_secs(3)));
    let error = watch.next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(before.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_gap_is_an_error() {
    let engine = FakeEngine::new([]).with(|known| (known.events, known.gap) = (5, Some(3)));
    let mut watch = engine.client().watch(0, Role::Observer, PATIENCE);
    assert_eq!(numbers(&mut watch, 2).await, [1, 2]);
    let error = watch.next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.to_string().contains("event 4 came after event 2"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn another_history_is_an_error() {
    let engine = FakeEngine::new([]).with(|known| known.events = 5);
    let error = engine.client().watch(8, Role::Observer, PATIENCE).next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.to_string().contains("another history"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_listening_for_a_while_misses_nothing() {
    let engine = FakeEngine::new([]).with(|known| known.events = 3);
    let mut watch = engine.client().watch(0, Role::Observer, PATIENCE);
    assert_eq!(numbers(&mut watch, 3).await, [1, 2, 3]);
    // Nothing comes, and whoever waits turns to something else.
    assert!(tokio::time::timeout(Duration::from_secs(1), watch.next()).await.is_err());
    assert_eq!(watch.after(), 3);
    assert_eq!(engine.calls(), ["watch"]);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_falls_silent_is_left() {
    let engine = FakeEngine::new([]).with(|known| known.events = 1);
    let mut watch = engine.client().watch(0, Role::Observer, PATIENCE);
    assert_eq!(numbers(&mut watch, 1).await, [1]);
    assert_eq!(watch.next().await.unwrap(), Watched::Heartbeat { last: 1 });
    assert_eq!(engine.calls(), ["watch", "watch"]);
}
