//! Kills of a watched engine that decides and writes: no event is lost and no verdict counts twice.

use std::collections::BTreeMap;
use std::time::Duration;

use sayso_api::client::{
    ChangeDetails, Client, PreviewDetail, PreviewOf, ProposeMode, Proposed, RetryBudget, Role, StatusDetail, Watched,
};
use sayso_review::{ChangeStatus, Event, EventBody, Origin};
use serde_json::json;

use crate::Scene;
use crate::served::{LONG, Served, approve};

/// Files of each change.
const FILES: usize = 12;

fn content(round: u64) -> String {
    format!("round {round}\n").repeat(200)
}

/// Proposes to write many files.
pub(crate) async fn propose(client: &Client, round: u64) -> ChangeDetails {
    let change = |number| json!({ "operation": "write", "path": path(number), "new_content": content(round) });
    let changes: Vec<_> = (0..FILES).map(change).collect();
    let text = Proposed::Text(json!({ "changes": changes }).to_string().into_bytes());
    client.propose(text, Origin::default(), ProposeMode::Ask, PreviewDetail::Omitted).await.unwrap()
}

fn path(number: usize) -> String {
    format!("d{}/f{number}", number % 3)
}

/// The round of each file; `None` for a missing file.
fn rounds(scene: &Scene) -> Vec<Option<String>> {
    (0..FILES).map(|number| std::fs::read_to_string(scene.path(&path(number))).ok()).collect()
}

/// `true` if all files are of a round.
pub(crate) fn is_whole(scene: &Scene, round: u64) -> bool {
    rounds(scene).iter().all(|found| found.as_deref() == Some(&content(round)))
}

/// `true` if all files are missing.
pub(crate) fn is_untouched(scene: &Scene) -> bool {
    rounds(scene).iter().all(Option::is_none)
}

/// Numbers that look random and are the same for the same seed, which is printed.
struct Dice(u64);

impl Dice {
    fn seeded() -> Self {
        let given = std::env::var("SAYSO_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
        println!("SAYSO_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn repeated_kills_lose_no_event_or_verdict() {
    const ROUNDS: u64 = 16;
    let mut dice = Dice::seeded();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let scene = Scene::new(&[]);
    let mut served = Served::start(&scene, &[]);
    let client = served.client(RetryBudget::Limited(LONG));
    // Watches through all of it, over as many connections and engines as it takes.
    let (ready, mut wait) = tokio::sync::mpsc::unbounded_channel();
    let watching = {
        let mut watch = served.client(RetryBudget::Unlimited).watch(0, Role::Observer, RetryBudget::Unlimited);
        runtime.spawn(async move {
            loop {
                if let Watched::Event(event) = watch.next().await.unwrap() {
                    ready.send(event).unwrap();
                }
            }
        })
    };
    let (mut applied, mut undone) = (None, 0);
    for round in 0..ROUNDS {
        let record = runtime.block_on(propose(&client, round)).record;
        let change = record.change;
        let deciding = approve(served.client(RetryBudget::Limited(LONG)), &record);
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_micros(dice.below(100_000)));
        } else {
            // In the middle of it: the first file is there, and most are not.
            let content = content(round);
            while !deciding.is_finished() && !rounds(&scene).iter().flatten().any(|found| *found == content) {}
        }
        served.kill();
        served = Served::start(&scene, &[]);
        let decided = deciding.join().unwrap().unwrap();
        let stands = runtime
            .block_on(client.get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed))
            .unwrap()
            .record
            .status;
        assert_eq!(decided.record.status, stands, "round {round}: whoever decided was told something else");
        if stands == ChangeStatus::Applied {
            applied = Some(round);
        } else {
            undone += 1;
        }
        let whole = applied.map_or_else(|| is_untouched(&scene), |round| is_whole(&scene, round));
        assert!(whole, "round {round}: {stands:?}, and the files are {:?}", rounds(&scene));
    }
    let last = runtime.block_on(client.status(StatusDetail::Counts)).unwrap().last_event;
    let (mut decided, mut recovered, mut next) = (BTreeMap::<u64, u64>::new(), 0, 1);
    while next <= last {
        let event = runtime.block_on(async { tokio::time::timeout(LONG, wait.recv()).await.unwrap().unwrap() });
        assert_eq!(event.number, next, "a gap or a duplicate");
        next += 1;
        match event.body {
            EventBody::Known(Event::Decided { change, .. }) => *decided.entry(change).or_default() += 1,
            EventBody::Known(Event::Recovered { .. }) => recovered += 1,
            _ => {}
        }
    }
    watching.abort();
    println!("{ROUNDS} kills, {recovered} of them within an apply, {undone} before it was applied, {last} events");
    assert!(recovered > 0, "no kill came while files were written");
    assert_eq!(decided.len() as u64, ROUNDS);
    assert!(decided.values().all(|count| *count == 1), "{decided:?}");
}

#[test]
fn stale_socket_and_note_are_ignored() {
    let scene = Scene::new(&[]);
    let first = Served::start(&scene, &[]);
    let (socket, old) = (first.text("socket").to_owned(), first.text("url").to_owned());
    first.kill();
    assert!(std::path::Path::new(&socket).exists(), "there is nothing to recognise");
    // A command finds no engine and does without.
    let status = scene.run(&["status"], b"");
    assert!(status.status.success(), "{status:?}");
    let second = Served::start(&scene, &[]);
    assert_eq!(second.said.get("already"), None);
    assert_eq!(second.text("socket"), socket);
    assert_ne!(second.text("token"), "");
    let note = std::fs::read_to_string(std::path::Path::new(&socket).with_file_name("server.json")).unwrap();
    assert!(note.contains(second.text("url")), "{note} still names {old}");
}
