//! Concurrent clients of one engine.

use std::process::Command as ProcessCommand;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use sayso_gate::{
    DecisionResult, Gate, NextEvent, NoNotify, Notification, NotificationSubject, Notify, Process, Submission,
};
use sayso_review::{
    Answer, Event, EventBody, Intent, Origin, Proposal, Recorded, RememberAs, RuleScope, Ruling, Verdict,
};

use crate::{Scene, decided, rules, waiting};

#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<Notification>>>);

impl Notify for Heard {
    fn notify(&self, announcement: &Notification) {
        self.0.lock().unwrap().push(*announcement);
    }
}

fn gate(scene: &Scene) -> Gate {
    Gate::new(scene.engine(), rules(Vec::new()), Box::new(NoNotify), 1).unwrap()
}

fn write(path: &str, text: &str) -> Submission {
    let change = serde_json::json!({ "operation": "write", "path": path, "content": text }).to_string();
    let intent = Intent::ChangeFiles(Proposal::parse(change.as_bytes()).unwrap());
    Submission::new(intent, Origin { session: Some("s".to_owned()), ..Origin::default() })
}

/// Submits a change that no rule decides. Returns its number and an approval.
fn submit_pending(gate: &Gate, path: &str, text: &str) -> (u64, Verdict) {
    let proposed = waiting(gate.submit(write(path, text), 2).unwrap());
    (proposed.change, proposed.approval())
}

#[test]
fn first_of_concurrent_verdicts_wins() {
    let scene = Scene::new(&[]);
    let gate = gate(&scene);
    let (change, approval) = submit_pending(&gate, "a", "1\n");
    let denial = Verdict { answer: Answer::Deny { reason: None }, ..approval.clone() };
    let results: Vec<_> = thread::scope(|scope| {
        let verdicts = [&approval, &denial, &approval, &denial];
        let threads = verdicts.map(|verdict| {
            let gate = &gate;
            scope.spawn(move || gate.decide(change, verdict, None, 3))
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for late in results.iter().filter_map(|result| result.as_ref().err()) {
        assert!(late.to_string().starts_with("change 1 cannot be decided: it is "), "{late}");
    }
    let applied = results
        .iter()
        .any(|result| matches!(result, Ok(decided) if matches!(decided.result, DecisionResult::Applied { .. })));
    assert_eq!(scene.read("a").is_some(), applied);
}

#[test]
fn subscription_delivers_events_from_any_number() {
    let scene = Scene::in_memory();
    let gate = gate(&scene);
    // More than are cached, so that the first ones are read from the journal.
    for number in 0..1_500 {
        submit_pending(&gate, &format!("f{number}"), "1\n");
    }
    for after in [0, 1, 700, 1_499, 1_500] {
        let mut follower = gate.subscribe(after);
        let mut numbers = Vec::new();
        while let NextEvent::Event(event) = follower.try_next().unwrap() {
            numbers.push(event.number);
        }
        assert_eq!(numbers, (after + 1..=1_500).collect::<Vec<u64>>(), "after {after}");
    }
}

/// More than the cache of recent events.
const EVENTS: u64 = 1_200;

#[test]
fn concurrent_subscriptions_have_no_gaps() {
    let scene = Scene::in_memory();
    let gate = gate(&scene);
    thread::scope(|scope| {
        for after in [0, 0, 3] {
            let gate = &gate;
            scope.spawn(move || {
                let mut follower = gate.subscribe(after);
                for expected in after + 1..=EVENTS {
                    match follower.wait(Duration::from_mins(1)).unwrap() {
                        NextEvent::Event(event) => assert_eq!(event.number, expected),
                        other => panic!("{other:?} instead of {expected}"),
                    }
                }
            });
        }
        for number in 0..EVENTS {
            submit_pending(&gate, &format!("f{number}"), "1\n");
        }
    });
    // A subscription that never reads does not block the engine.
    let mut slow = gate.subscribe(0);
    drop(gate.close().expect("nobody else uses it"));
    assert!(matches!(slow.try_next().unwrap(), NextEvent::Event(event) if event.number == 1));
}

#[test]
fn subscription_ends_with_engine() {
    let scene = Scene::new(&[]);
    let gate = gate(&scene);
    submit_pending(&gate, "a", "1\n");
    let mut follower = gate.subscribe(0);
    gate.close();
    assert!(matches!(follower.wait(Duration::from_mins(1)).unwrap(), NextEvent::Event(_)));
    assert_eq!(follower.wait(Duration::from_mins(1)).unwrap(), NextEvent::Ended);
}

#[test]
fn client_verdict_in_name_of_rule_fails() {
    let scene = Scene::new(&[]);
    let gate = gate(&scene);
    let (change, approval) = submit_pending(&gate, "a", "1\n");
    let by = sayso_review::Decider::Policy { rule: "made up".to_owned() };
    let forged = Verdict { by, ..approval };
    assert!(gate.decide(change, &forged, None, 3).is_err());
    assert!(scene.read("a").is_none());
}

#[test]
fn notification_needs_no_attached_surface() {
    let scene = Scene::new(&[]);
    let heard = Heard::default();
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(heard.clone()), 1).unwrap();
    submit_pending(&gate, "a", "1\n");
    let surface = gate.attach();
    submit_pending(&gate, "b", "1\n");
    drop(surface);
    submit_pending(&gate, "c", "1\n");
    let heard = heard.0.lock().unwrap();
    let came = heard.iter().map(|one| (one.changes, one.subject)).collect::<Vec<_>>();
    assert_eq!(came, [(1, NotificationSubject::Change(1)), (3, NotificationSubject::Change(3))]);
    assert_eq!(heard[1].to_string(), "sayso: 3 decisions wait for you");
    assert!(heard[0].for_terminal().starts_with('\x07'));
}

#[test]
fn request_notification_counts_pending_changes() {
    let scene = Scene::new(&[]);
    let heard = Heard::default();
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(heard.clone()), 1).unwrap();
    gate.set_paused_requests(1);
    gate.notify_request(7);
    submit_pending(&gate, "a", "1\n");
    gate.set_paused_requests(2);
    gate.notify_request(8);
    let surface = gate.attach();
    gate.notify_request(9);
    drop(surface);
    let heard = heard.0.lock().unwrap();
    let said: Vec<String> = heard.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "sayso: 1 request waits for you",
            "sayso: 1 decision and 1 request wait for you",
            "sayso: 1 decision and 2 requests wait for you",
        ]
    );
    assert_eq!(heard[2].subject, NotificationSubject::Request(8));
}

#[test]
fn remembered_verdict_becomes_rule() {
    let scene = Scene::new(&[]);
    let gate = gate(&scene);
    let (change, approval) = submit_pending(&gate, "a", "1\n");
    let remember = Some(RememberAs { scope: RuleScope::Session, ruling: Ruling::Allow });
    assert!(gate.decide(change, &approval, remember, 3).unwrap().permanent_rule.is_none());
    decided(gate.submit(write("a", "2\n"), 4).unwrap());
    assert_eq!(scene.read("a").unwrap(), b"2\n");
    let (change, approval) = submit_pending(&gate, "b", "1\n");
    let remember = Some(RememberAs { scope: RuleScope::Always, ruling: Ruling::Allow });
    assert!(gate.decide(change, &approval, remember, 5).unwrap().permanent_rule.is_some());
    let mut follower = gate.subscribe(0);
    let mut added = 0;
    while let NextEvent::Event(event) = follower.try_next().unwrap() {
        let Recorded { body: EventBody::Known(event), .. } = &*event else { panic!("unknown") };
        added += usize::from(matches!(event, Event::RuleAdded { .. }));
    }
    assert_eq!(added, 1);
}

#[test]
fn zombie_process_is_known_but_not_running() {
    let mut child = ProcessCommand::new("sleep").arg("1000").spawn().unwrap();
    let process = Process::find_running(child.id()).unwrap();
    child.kill().unwrap();
    // The process ends asynchronously. Its number stays reserved until it is reaped.
    while Process::find_running(child.id()).is_some() {
        thread::yield_now();
    }
    assert_eq!(Process::find(child.id()), Some(process));
    child.wait().unwrap();
    assert_eq!(Process::find(child.id()), None);
}
