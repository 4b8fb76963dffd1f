//! Several who decide at once: one verdict counts, and the others are told.

use std::collections::BTreeMap;

use sayso_api::client::{Patience, Role, Shown, View, Watched};
use sayso_api::proto::oneof::event::Kind;
use sayso_gate::Process;
use sayso_review::{Answer, ChangeStatus, ErrorKind};

use crate::scene::{Scene, ask, no, verdict, within, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn of_two_reviewers_one_decides_and_the_other_is_told() {
    const ROUNDS: u64 = 40;
    let scene = Scene::new();
    let server = scene.serve();
    let (near, far, watcher) = (server.near(), server.far(), server.far());
    let watching = tokio::spawn(async move {
        let mut watch = watcher.watch(0, Role::Observer, Patience::Always);
        let (mut decided, mut ended) = (BTreeMap::<u64, u64>::new(), 0);
        while ended < ROUNDS {
            let Watched::Event(event) = watch.next().await.unwrap() else { continue };
            match event.kind {
                Some(Kind::Decided(event)) => *decided.entry(event.change).or_default() += 1,
                Some(Kind::Ended(_)) => ended += 1,
                _ => {}
            }
        }
        decided
    });
    for round in 0..ROUNDS {
        let (path, text) = (format!("f{round}"), format!("{round}\n"));
        let record = ask(&near, write(&path, &text)).await.record;
        let approve = verdict(&record, Answer::Approve);
        let deny = verdict(&record, no("not like this"));
        // Who of them comes by which way is not always the same.
        let (one, other) = if round % 2 == 0 { (&near, &far) } else { (&far, &near) };
        let (approved, denied) = tokio::join!(
            one.decide(record.change, approve, None, View::Nothing),
            other.decide(record.change, deny, None, View::Nothing)
        );
        let (told, expected) = match (approved, denied) {
            (Ok(won), Err(lost)) => {
                assert_eq!(won.record.status, ChangeStatus::Applied);
                assert_eq!(std::fs::read_to_string(scene.root().join(&path)).unwrap(), text);
                (lost, "applied")
            }
            (Err(lost), Ok(won)) => {
                assert_eq!(won.record.status, ChangeStatus::Denied);
                assert!(!scene.root().join(&path).exists());
                (lost, "denied")
            }
            both => panic!("round {round}: {both:?}"),
        };
        assert_eq!(told.kind(), ErrorKind::Conflict, "{told}");
        assert!(told.to_string().contains(expected), "{told} does not say that it is {expected}");
    }
    let decided = within("the last end", watching).await.unwrap();
    assert_eq!(decided.len() as u64, ROUNDS);
    assert!(decided.values().all(|count| *count == 1), "{decided:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_waits_for_any_more_cannot_be_approved() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.near();
    let record = ask(&client, write("a", "x\n")).await.record;
    let mut asker = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let Process { id, started } = Process::find(asker.id()).unwrap();
    let folder = scene.home().join("agents");
    std::fs::create_dir_all(&folder).unwrap();
    let note = format!("{}\n{}", record.change, scene.journal().display());
    std::fs::write(folder.join(format!("{id}-{started}-{}", record.change)), note).unwrap();
    asker.kill().unwrap();
    // It has ended, and nobody has asked what became of it.
    while Process::find(id).is_some() {
        tokio::task::yield_now().await;
    }
    let late = client.decide(record.change, verdict(&record, Answer::Approve), None, View::Nothing).await;
    assert!(late.is_err(), "{late:?}");
    let record = client.get_change(record.change, View::Nothing, Shown::Proposed).await.unwrap().record;
    assert_eq!(record.status, ChangeStatus::Cancelled);
    assert!(!scene.root().join("a").exists());
    asker.wait().unwrap();
}
