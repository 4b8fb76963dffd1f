//! Concurrent threads. All subscriptions deliver the same events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use sayso_gate::{Gate, GateError, NextEvent, NoNotify, Submission};
use sayso_review::{Answer, ContentHash, Event, EventBody, Intent, Origin, Outcome, Proposal, Recorded, Ruling};

use crate::{Scene, rules, writing};

const CLIENTS: u64 = 6;
const FOLLOWERS: u64 = 4;
const ACTIONS: u64 = 40;
const FILES: u64 = 5;

/// Pseudo-random numbers with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Submits, decides, withdraws and ticks. Returns the number of accepted verdicts.
fn act(gate: &Gate, seed: u64, now: i64) -> usize {
    let mut random = Random(seed);
    let mut won = 0;
    for action in 0..ACTIONS {
        let waiting = gate.pending_changes().unwrap();
        let one = waiting.get(random.below(waiting.len().max(1) as u64) as usize).copied();
        match (random.below(10), one) {
            (0, _) => _ = gate.tick(now).unwrap(),
            (1, Some(change)) => expect_late(gate.withdraw(change, now)),
            (2..=5, Some(change)) => {
                let proposed = match gate.pending_change(change) {
                    Ok(proposed) => proposed,
                    Err(error) => {
                        assert!(matches!(error, GateError::WrongStatus { .. }), "{error}");
                        continue;
                    }
                };
                let answer = if random.below(3) == 0 { Answer::Deny { reason: None } } else { Answer::Approve };
                let reply = gate.decide(change, &proposed.verdict(answer), None, now);
                won += usize::from(reply.is_ok());
                expect_late(reply);
            }
            _ => {
                let kind = if random.below(3) == 0 { "allowed" } else { "asked" };
                let file = format!("{kind}-{}", random.below(FILES));
                let content = format!("{seed} wrote this at {action}\n");
                let change = serde_json::json!({ "operation": "write", "path": file, "content": content }).to_string();
                let intent = Intent::ChangeFiles(Proposal::parse(change.as_bytes()).unwrap());
                let origin = Origin { session: Some(format!("session {seed}")), ..Origin::default() };
                let deadline = (random.below(4) == 0).then_some(now);
                gate.submit(Submission { deadline, ..Submission::new(intent, origin) }, now - 1).unwrap();
            }
        }
    }
    won
}

/// Accepts only errors that concurrent threads can cause.
fn expect_late<T>(reply: Result<T, GateError>) {
    if let Err(error) = reply {
        assert!(matches!(error, GateError::WrongStatus { .. } | GateError::Verdict(_)), "{error}");
    }
}

/// Reads the stream to its end.
fn follow(gate: &Gate, after: u64, seed: u64) -> Vec<Arc<Recorded>> {
    let mut random = Random(seed);
    let mut follower = gate.subscribe(after);
    let mut events = Vec::new();
    loop {
        match follower.wait(Duration::from_mins(1)).unwrap() {
            NextEvent::Event(event) => events.push(event),
            NextEvent::Ended => return events,
            NextEvent::NotYet => panic!("nothing came for a minute after {}", follower.seen()),
        }
        for _ in 0..random.below(3) {
            thread::yield_now();
        }
    }
}

#[test]
fn concurrent_threads_produce_one_event_stream() {
    for seed in 0..3 {
        let scene = Scene::in_memory();
        let allowing = writing("allowed-*", Ruling::Allow);
        let gate = Gate::new(scene.engine(), rules(vec![allowing]), Box::new(NoNotify), 1).unwrap();
        let won = AtomicUsize::new(0);
        let stories: Vec<Vec<Arc<Recorded>>> = thread::scope(|scope| {
            let (gate, won) = (&gate, &won);
            let followers: Vec<_> =
                (0..FOLLOWERS).map(|follower| scope.spawn(move || follow(gate, follower * 3, follower))).collect();
            let client = |client: u64| scope.spawn(move || act(gate, seed * CLIENTS + client + 1, 100));
            let clients: Vec<_> = (0..CLIENTS).map(client).collect();
            for client in clients {
                won.fetch_add(client.join().unwrap(), Ordering::Relaxed);
            }
            // The stream ends although other handles to the engine exist.
            assert!(gate.clone().close().is_none());
            followers.into_iter().map(|follower| follower.join().unwrap()).collect()
        });
        let waiting = gate.pending_changes().unwrap();
        let whole = &stories[0];
        assert!(whole.iter().map(|event| event.number).eq(1..=whole.len() as u64), "a gap or a duplicate");
        for (follower, story) in stories.iter().enumerate() {
            assert!(story[..] == whole[follower * 3..], "follower {follower} read another story");
        }
        check(&scene, whole, won.into_inner(), &waiting);
    }
}

/// Compares the events with the tree and the pending changes.
fn check(scene: &Scene, story: &[Arc<Recorded>], won: usize, waiting: &[u64]) {
    let mut tree: BTreeMap<String, Option<ContentHash>> = BTreeMap::new();
    let mut open = BTreeMap::new();
    let mut verdicts = BTreeMap::new();
    let mut persons = 0;
    for event in story {
        let EventBody::Known(event) = &event.body else { panic!("an unknown event") };
        match event {
            Event::Proposed { change, .. } => assert!(open.insert(*change, None).is_none(), "{change} came twice"),
            Event::Decided { change, verdict, .. } => {
                assert!(verdicts.insert(*change, verdict.clone()).is_none(), "{change} was decided twice");
                assert!(open.contains_key(change), "{change} was decided after its end");
                persons += usize::from(verdict.by.is_person());
            }
            Event::Applying { change, record, .. } => {
                let answer = verdicts.get(change).map(|verdict| &verdict.answer);
                assert!(answer == Some(&Answer::Approve), "{change} was applied and not approved");
                open.insert(*change, Some(record.clone()));
            }
            Event::Ended { change, outcome, .. } => {
                let applied = open.remove(change).unwrap_or_else(|| panic!("{change} ended twice"));
                if let (Outcome::Applied, Some(record)) = (outcome, applied) {
                    for step in record.steps {
                        let before = tree.insert(step.path.to_string(), step.after.hash()).flatten();
                        assert!(before == step.before.hash(), "{change} was not made of what was there");
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!(persons, won, "each verdict that was taken is recorded, and no other");
    assert!(open.keys().eq(waiting), "what has not ended waits");
    assert!(!tree.is_empty(), "nothing happened");
    for (file, content) in &tree {
        assert!(
            scene.read(file).map(|bytes| ContentHash::of(&bytes)) == *content,
            "{file} is not what the events tell"
        );
    }
    let found = std::fs::read_dir(scene.root()).unwrap().count();
    assert_eq!(found, tree.len(), "a file that no event tells of");
}
