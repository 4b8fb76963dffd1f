//! The cache of recent events, and wake-ups of subscribers.

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};

use sayso_gate::{Engine, GateError, History};
use sayso_journal::Reader;
use sayso_review::{Answer, Event, EventBody, Recorded};

use crate::{Scene, decide, propose};

const WRITE: &str = r#"{"operation": "write", "path": "a", "content": "new\n"}"#;

/// Waker that records its call.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// Returns the events that wake a subscriber while `work` runs.
fn heard(engine: &mut Engine, work: impl FnOnce(&mut Engine)) -> Vec<Event> {
    let last = engine.history().events(None, 0, 1_000).unwrap().len() as u64;
    let mut subscription = engine.subscribe(last);
    let woken = Arc::new(Woken::default());
    let waker = Arc::clone(&woken).into();
    let mut events = Vec::new();
    {
        let mut next = pin!(subscription.next());
        assert!(next.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        work(engine);
        assert!(woken.0.load(Ordering::Acquire), "nobody was told");
        match next.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(Ok(Some(event))) => events.push(event),
            other => panic!("{other:?}"),
        }
    }
    while let sayso_gate::NextEvent::Event(event) = subscription.try_next().unwrap() {
        events.push(event);
    }
    let known = |event: &Arc<Recorded>| match &event.body {
        EventBody::Known(event) => event.clone(),
        EventBody::Unknown(body) => panic!("{body}"),
    };
    events.iter().map(known).collect()
}

#[test]
fn subscription_delivers_verdict_and_end() {
    let scene = Scene::new(&[("a", b"old\n")]);
    let mut engine = scene.engine();
    let proposed = propose(&mut engine, WRITE);
    let events = heard(&mut engine, |engine| drop(decide(engine, &proposed, Answer::Approve)));
    assert!(matches!(&events[..], [Event::Decided { .. }, Event::Applying { .. }, Event::Ended { .. }]), "{events:?}");
}

#[test]
fn subscription_delivers_verdict_without_recorded_end() {
    let scene = Scene::new(&[("a", b"old\n")]);
    let mut engine = scene.engine();
    let proposed = propose(&mut engine, WRITE);
    scene.refuse_events_after(2);
    let events = heard(&mut engine, |engine| {
        let failed = engine.decide(&proposed, &proposed.verdict(Answer::Approve), 3);
        assert!(matches!(failed, Err(GateError::NotRecorded { .. })), "{failed:?}");
    });
    assert!(matches!(&events[..], [Event::Decided { .. }, Event::Applying { .. }]), "{events:?}");
    scene.refuse_no_events();
    // Counters of a failed batch are not cached.
    drop(engine);
    assert_eq!(scene.engine().history().status().unwrap().interrupted, None);
    assert_eq!(scene.read("a").unwrap(), b"new\n");
}

#[test]
fn cached_change_equals_journaled_change() {
    let scene = Scene::new(&[("a", b"old\n")]);
    let mut engine = scene.engine();
    let proposed = propose(&mut engine, WRITE);
    let same = |engine: &Engine| {
        let reader = Reader::open(&scene.state.path().join("journal")).unwrap();
        let (recorded, at_hand) = (History::new(&reader), engine.history());
        let record = recorded.change(proposed.change).unwrap();
        assert_eq!(at_hand.change(proposed.change).unwrap(), record);
        assert_eq!(at_hand.preview(&record).unwrap(), recorded.preview(&record).unwrap());
        assert_eq!(at_hand.status().unwrap(), recorded.status().unwrap());
    };
    same(&engine);
    decide(&mut engine, &proposed, Answer::Approve);
    same(&engine);
}

#[test]
fn collected_content_leaves_cache() {
    let scene = Scene::new(&[("a", b"old\n")]);
    let mut engine = scene.engine();
    let proposed = propose(&mut engine, WRITE);
    decide(&mut engine, &proposed, Answer::Approve);
    let record = engine.history().change(proposed.change).unwrap();
    engine.history().preview(&record).unwrap();
    engine.collect(Some(i64::MAX), None).unwrap();
    assert!(matches!(engine.history().preview(&record), Err(GateError::ContentGone(_))));
}
