//! Concurrent verdicts: the first one counts, later ones are conflicts.

use std::collections::BTreeMap;

use sayso_api::client::{PreviewDetail, PreviewOf, RetryBudget, Role, Watched};
use sayso_gate::Process;
use sayso_review::{Answer, ChangeStatus, ErrorKind, Event, EventBody};

use crate::scene::{Scene, ask, no, verdict, within, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn second_verdict_is_rejected_as_conflict() {
    const ROUNDS: u64 = 40;
    let scene = Scene::new();
    let server = scene.serve();
    let (local, remote, watcher) = (server.verdict_client(), server.tcp_client(), server.tcp_client());
    let watching = tokio::spawn(async move {
        let mut watch = watcher.watch(0, Role::Observer, RetryBudget::Unlimited);
        let (mut decided, mut ended) = (BTreeMap::<u64, u64>::new(), 0);
        while ended < ROUNDS {
            let Watched::Event(event) = watch.next().await.unwrap() else { continue };
            match event.body {
                EventBody::Known(Event::Decided { change, .. }) => *decided.entry(change).or_default() += 1,
                EventBody::Known(Event::Ended { .. }) => ended += 1,
                _ => {}
            }
        }
        decided
    });
    for round in 0..ROUNDS {
        let (path, text) = (format!("f{round}"), format!("{round}\n"));
        let record = ask(&local, write(&path, &text)).await.record;
        let approve = verdict(&record, Answer::Approve);
        let deny = verdict(&record, no("not like this"));
        // Alternates the channels of approval and denial.
        let (one, other) = if round % 2 == 0 { (&local, &remote) } else { (&remote, &local) };
        let (approved, denied) = tokio::join!(
            one.decide(record.change, approve, None, PreviewDetail::Omitted),
            other.decide(record.change, deny, None, PreviewDetail::Omitted)
        );
        let (error, expected) = match (approved, denied) {
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
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.to_string().contains(expected), "{error}: expected {expected}");
    }
    let decided = within("the last end", watching).await.unwrap();
    assert_eq!(decided.len() as u64, ROUNDS);
    assert!(decided.values().all(|count| *count == 1), "{decided:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abandoned_change_cannot_be_approved() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let record = ask(&client, write("a", "x\n")).await.record;
    let mut asker = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let Process { id, started } = Process::find_running(asker.id()).unwrap();
    let folder = scene.home().join("agents");
    std::fs::create_dir_all(&folder).unwrap();
    let note = format!("{}\n{}", record.change, scene.journal().display());
    std::fs::write(folder.join(format!("{id}-{started}-{}", record.change)), note).unwrap();
    asker.kill().unwrap();
    // The process has exited, and the engine has not noticed yet.
    while Process::find_running(id).is_some() {
        tokio::task::yield_now().await;
    }
    let late = client.decide(record.change, verdict(&record, Answer::Approve), None, PreviewDetail::Omitted).await;
    assert!(late.is_err(), "{late:?}");
    let record = client.get_change(record.change, PreviewDetail::Omitted, PreviewOf::Proposed).await.unwrap().record;
    assert_eq!(record.status, ChangeStatus::Cancelled);
    assert!(!scene.root().join("a").exists());
    asker.wait().unwrap();
}
