//! Many clients at once.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command as ProcessCommand, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use sayso_gate::{
    Announce, Announced, Announcement, Client, Decided, Gate, GateError, Next, Process, Reply, Silence, Submitted,
};
use sayso_review::{
    Answer, Command, Event, EventBody, FromNowOn, Intent, Origin, Proposal, Recorded, RuleScope, Ruling, Verdict,
};

use crate::{Scene, rules};

#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<Announcement>>>);

impl Announce for Heard {
    fn announce(&self, announcement: &Announcement) {
        self.0.lock().unwrap().push(*announcement);
    }
}

fn gate(scene: &Scene) -> Gate {
    Gate::new(scene.engine(), rules(Vec::new()), Box::new(Silence), 1).unwrap()
}

fn submit(path: &str, text: &str) -> Command {
    let change = serde_json::json!({ "operation": "write", "path": path, "content": text }).to_string();
    let intent = Intent::ChangeFiles(Proposal::parse(change.as_bytes()).unwrap());
    let origin = Origin { session: Some("s".to_owned()), ..Origin::default() };
    Command::Submit { intent, origin, performer: sayso_review::Performer::Gate, deadline: None, schema: None }
}

fn asked(gate: &Gate, path: &str, text: &str) -> (u64, Verdict) {
    match gate.command(Client::Person, submit(path, text), 2).unwrap() {
        Reply::Submitted(Submitted::Waiting(proposed)) => (proposed.change, proposed.approval()),
        other => panic!("{other:?}"),
    }
}

fn decide(change: u64, verdict: &Verdict) -> Command {
    Command::Decide { change, verdict: verdict.clone(), from_now_on: None }
}

#[test]
fn of_many_verdicts_at_once_one_wins_and_the_others_are_told() {
    let scene = Scene::new(&[]);
    let gate = gate(&scene);
    let (change, approval) = asked(&gate, "a", "1\n");
    let denial = Verdict { answer: Answer::Deny { reason: None }, ..approval.clone() };
    let results: Vec<_> = thread::scope(|scope| {
        let verdicts = [&approval, &denial, &approval, &denial];
        let threads = verdicts.map(|verdict| {
            let gate = &gate;
            scope.spawn(move || gate.command(Client::Person, decide(change, verdict), 3))
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for late in results.iter().filter_map(|result| result.as_ref().err()) {
        assert!(late.to_string().starts_with("change 1 cannot be decided: it is "), "{late}");
    }
    let applied = results.iter().any(
        |result| matches!(result, Ok(Reply::Decided { decided, .. }) if matches!(**decided, Decided::Applied { .. })),
    );
    assert_eq!(scene.read("a").is_some(), applied);
}

#[test]
fn a_follower_gets_every_event_from_any_number_on() {
    let scene = Scene::in_memory();
    let gate = gate(&scene);
    // More than are kept at hand, so that the first ones are read from the journal.
    for number in 0..1_500 {
        asked(&gate, &format!("f{number}"), "1\n");
    }
    for after in [0, 1, 700, 1_499, 1_500] {
        let mut follower = gate.subscribe(after);
        let mut numbers = Vec::new();
        while let Next::Event(event) = follower.try_next().unwrap() {
            numbers.push(event.number);
        }
        assert_eq!(numbers, (after + 1..=1_500).collect::<Vec<u64>>(), "after {after}");
    }
}

/// More than are kept at hand.
const EVENTS: u64 = 1_200;

#[test]
fn followers_see_what_happens_while_they_read_without_gap_or_duplicate() {
    let scene = Scene::in_memory();
    let gate = gate(&scene);
    thread::scope(|scope| {
        for after in [0, 0, 3] {
            let gate = &gate;
            scope.spawn(move || {
                let mut follower = gate.subscribe(after);
                for expected in after + 1..=EVENTS {
                    match follower.wait(Duration::from_mins(1)).unwrap() {
                        Next::Event(event) => assert_eq!(event.number, expected),
                        other => panic!("{other:?} instead of {expected}"),
                    }
                }
            });
        }
        for number in 0..EVENTS {
            asked(&gate, &format!("f{number}"), "1\n");
        }
    });
    // One that never reads costs nothing and is not waited for.
    let mut slow = gate.subscribe(0);
    drop(gate.close().expect("nobody else uses it"));
    assert!(matches!(slow.try_next().unwrap(), Next::Event(event) if event.number == 1));
}

#[test]
fn a_follower_hears_when_the_engine_stops() {
    let scene = Scene::new(&[]);
    let gate = gate(&scene);
    asked(&gate, "a", "1\n");
    let mut follower = gate.subscribe(0);
    gate.close();
    assert!(matches!(follower.wait(Duration::from_mins(1)).unwrap(), Next::Event(_)));
    assert_eq!(follower.wait(Duration::from_mins(1)).unwrap(), Next::Ended);
}

#[test]
fn an_agents_descendant_cannot_decide() {
    let scene = Scene::new(&[]);
    let gate = gate(&scene);
    let (change, approval) = asked(&gate, "a", "1\n");
    let mut agent = ProcessCommand::new("sh")
        .args(["-c", "sleep 600 & echo $!; wait"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let child: u32 = line.trim().parse().unwrap();
    gate.agent_started(Process::find(agent.id()).unwrap());
    for process in [agent.id(), child] {
        for command in [
            decide(change, &approval),
            Command::Undo { target: sayso_review::Target::Last, if_changed: sayso_review::IfChanged::Refuse },
        ] {
            let refused = gate.command(Client::Process(process), command, 3).unwrap_err();
            assert!(matches!(refused, GateError::AgentDecides { .. }), "{refused}");
        }
    }
    assert!(gate.command(Client::Process(child), submit("b", "2\n"), 3).is_ok(), "it may ask");
    assert!(scene.read("a").is_none());
    let us = std::process::id();
    assert!(gate.command(Client::Process(us), decide(change, &approval), 4).is_ok(), "somebody else may decide");
    let _ =
        rustix::process::kill_process_group(rustix::process::Pid::from_child(&agent), rustix::process::Signal::KILL);
    agent.wait().unwrap();
}

#[test]
fn nobody_passes_for_a_rule() {
    let scene = Scene::new(&[]);
    let gate = gate(&scene);
    let (change, approval) = asked(&gate, "a", "1\n");
    let by = sayso_review::Decider::Policy { rule: "made up".to_owned() };
    let forged = Verdict { by, ..approval };
    assert!(gate.command(Client::Person, decide(change, &forged), 3).is_err());
    assert!(scene.read("a").is_none());
}

#[test]
fn what_waits_is_announced_only_while_nobody_looks() {
    let scene = Scene::new(&[]);
    let heard = Heard::default();
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(heard.clone()), 1).unwrap();
    asked(&gate, "a", "1\n");
    let surface = gate.attach();
    asked(&gate, "b", "1\n");
    drop(surface);
    asked(&gate, "c", "1\n");
    let heard = heard.0.lock().unwrap();
    let came = heard.iter().map(|one| (one.changes, one.came)).collect::<Vec<_>>();
    assert_eq!(came, [(1, Announced::Change(1)), (3, Announced::Change(3))]);
    assert_eq!(heard[1].to_string(), "sayso: 3 decisions wait for you");
    assert!(heard[0].for_terminal().starts_with('\x07'));
}

#[test]
fn a_request_that_waits_is_announced_with_what_else_does() {
    let scene = Scene::new(&[]);
    let heard = Heard::default();
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(heard.clone()), 1).unwrap();
    gate.requests_wait(1);
    gate.announce_request(7);
    asked(&gate, "a", "1\n");
    gate.requests_wait(2);
    gate.announce_request(8);
    let surface = gate.attach();
    gate.announce_request(9);
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
    assert_eq!(heard[2].came, Announced::Request(8));
}

#[test]
fn from_now_on_becomes_a_rule_of_the_session_or_is_handed_back() {
    let scene = Scene::new(&[]);
    let gate = gate(&scene);
    let (change, approval) = asked(&gate, "a", "1\n");
    let scope = RuleScope::Session;
    let from_now_on = Some(FromNowOn { scope, ruling: Ruling::Allow });
    let command = Command::Decide { change, verdict: approval, from_now_on };
    assert!(matches!(gate.command(Client::Person, command, 3).unwrap(), Reply::Decided { keep: None, .. }));
    let again = gate.command(Client::Person, submit("a", "2\n"), 4).unwrap();
    assert!(matches!(again, Reply::Submitted(Submitted::Decided { .. })), "{again:?}");
    assert_eq!(scene.read("a").unwrap(), b"2\n");
    let (change, approval) = asked(&gate, "b", "1\n");
    let from_now_on = Some(FromNowOn { scope: RuleScope::Always, ruling: Ruling::Allow });
    let command = Command::Decide { change, verdict: approval, from_now_on };
    assert!(matches!(gate.command(Client::Person, command, 5).unwrap(), Reply::Decided { keep: Some(_), .. }));
    let mut follower = gate.subscribe(0);
    let mut added = 0;
    while let Next::Event(event) = follower.try_next().unwrap() {
        let Recorded { body: EventBody::Known(event), .. } = &*event else { panic!("unknown") };
        added += usize::from(matches!(event, Event::RuleAdded { .. }));
    }
    assert_eq!(added, 1);
}

#[test]
fn a_process_that_has_ended_does_not_run_but_is_known_until_somebody_asks_what_became_of_it() {
    let mut child = ProcessCommand::new("sleep").arg("1000").spawn().unwrap();
    let process = Process::find(child.id()).unwrap();
    child.kill().unwrap();
    // It ends when the system gets to it; until it is asked about, its number stays its own.
    while Process::find(child.id()).is_some() {
        thread::yield_now();
    }
    assert_eq!(Process::known(child.id()), Some(process));
    child.wait().unwrap();
    assert_eq!(Process::known(child.id()), None);
}
