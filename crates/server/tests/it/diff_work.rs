//! Amounts of work behind the pages of a diff.

use sayso_api::client::{Client, PreviewDetail};
use sayso_api::proto::oneof::diff_subject::Subject;
use sayso_api::proto::{self, DiffLayout, diff_subject};
use sayso_review::{Answer, Rule, Ruling, Target};

use crate::diffs::{approve, get, request, reversal};
use crate::scene::{Running, Scene, ask, verdict, write};

fn lines(word: &str, count: usize) -> String {
    (0..count).map(|line| format!("{word} {line}\n")).collect()
}

/// Reads all pages of a file. Returns their number.
async fn read_all(client: &Client, mut asked: proto::GetDiffRequest) -> usize {
    let mut pages = 0;
    loop {
        let page = get(client, asked.clone()).await;
        asked.from_row += (page.rows.len() + page.side_by_side_rows.len()) as u64;
        pages += 1;
        if !page.has_more {
            return pages;
        }
    }
}

/// Lists a subject's files, and reads all pages of each in pages of 100 rows. Returns the number of calls.
async fn read_subject(server: &Running, subject: impl Into<Option<Subject>>) -> usize {
    let client = server.verdict_client();
    let asked = request(subject, "");
    let list = get(&client, asked.clone()).await;
    let mut pages = 1;
    for file in &list.files {
        let hash = Some(list.preview_hash.clone());
        let asked = proto::GetDiffRequest { path: file.path.clone(), rows: 100, preview_hash: hash, ..asked.clone() };
        pages += read_all(&client, asked).await;
    }
    pages
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plan_is_computed_once_for_all_pages() {
    let scene = Scene::new();
    let later = vec![Rule { write: vec!["later/**".to_owned()], ..Rule::new(Ruling::Later) }];
    let server = scene.serve_under(later);
    let client = server.verdict_client();
    let change = approve(&client, "a", &lines("new", 1_000)).await;
    let undo = || Subject::Undo(Box::new(reversal(change)));
    let plans = || server.work.counts().diff_plans;
    let mut computed = plans();
    let mut expect = |what: &str, amount: u64| {
        assert_eq!(plans() - computed, amount, "{what}");
        computed = plans();
    };
    assert_eq!(read_subject(&server, undo()).await, 11);
    expect("one undo plan for 11 calls", 1);
    // A page without a hash uses the plan of the same journal position, unless it is the first one.
    let page = proto::GetDiffRequest { from_row: 200, rows: 100, ..request(undo(), "a") };
    get(&client, page.clone()).await;
    expect("a later page", 0);
    get(&client, proto::GetDiffRequest { from_row: 0, ..page.clone() }).await;
    expect("a first page looks at the tree", 1);
    approve(&client, "b", "text\n").await;
    get(&client, page).await;
    expect("another journal position", 1);

    let target = Some(proto::Target::from(&Target::Change { change })).into();
    client.undo(Target::Change { change }, sayso_review::IfChanged::Refuse, None).await.unwrap();
    let redo = diff_subject::Reversal { target, ..Default::default() };
    assert_eq!(read_subject(&server, Subject::Redo(Box::new(redo))).await, 11);
    expect("one redo plan for 11 calls", 1);

    let origin = sayso_review::Origin {
        session: Some("s".to_owned()),
        turn: Some("t".to_owned()),
        ..sayso_review::Origin::default()
    };
    let mode = sayso_api::client::ProposeMode::Record;
    for name in ["later/a", "later/b"] {
        let proposed = write(name, &lines("new", 500));
        client.propose(proposed, origin.clone(), mode, PreviewDetail::Omitted).await.unwrap();
    }
    let turn = proto::Turn { session: "s".to_owned(), turn: "t".to_owned(), ..Default::default() };
    assert_eq!(read_subject(&server, Subject::Turn(Box::new(turn))).await, 11);
    expect("one net change for the pages of two files", 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_plan_makes_quoted_hash_stale() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let change = approve(&client, "a", &lines("new", 300)).await;
    let asked = request(Subject::Undo(Box::new(reversal(change))), "");
    let list = get(&client, asked.clone()).await;
    let quoted = proto::GetDiffRequest { path: "a".to_owned(), preview_hash: Some("0".repeat(64)), ..asked.clone() };
    let error = client.get_diff(quoted).await.unwrap_err();
    assert_eq!(error.kind(), sayso_review::ErrorKind::Stale, "{error}");
    // The plan with the listed hash stays readable while the listed files are read.
    approve(&client, "b", "text\n").await;
    let page = proto::GetDiffRequest {
        path: "a".to_owned(),
        from_row: 100,
        preview_hash: Some(list.preview_hash.clone()),
        ..asked
    };
    assert_eq!(get(&client, page).await.preview_hash, list.preview_hash);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_file_is_compared_once_for_all_pages() {
    const LINES: usize = 100_000;
    const PAGES: usize = 1_000;
    let scene = Scene::new();
    std::fs::write(scene.root().join("a.rs"), lines("old", LINES)).unwrap();
    let server = scene.serve();
    let client = server.verdict_client();
    let record = ask(&client, write("a.rs", &lines("new", LINES))).await.record;
    let subject = || Subject::Change(record.change);
    let before = server.work.counts();
    let asked = proto::GetDiffRequest { rows: (2 * LINES / PAGES) as u32, ..request(subject(), "a.rs") };
    assert_eq!(read_all(&client, asked.clone()).await, PAGES);
    let unified = server.work.counts();
    assert_eq!(unified.comparisons - before.comparisons, 1, "1,000 pages in order need one comparison");
    assert_eq!(unified.diff_plans, before.diff_plans);
    let side_by_side = proto::GetDiffRequest { layout: DiffLayout::SideBySide.into(), ..asked.clone() };
    assert_eq!(read_all(&client, side_by_side).await, PAGES / 2);
    assert_eq!(server.work.counts().comparisons, unified.comparisons, "both layouts share the rows");
    let from_the_end = proto::GetDiffRequest { from_row: 2 * LINES as u64 - 5, ..asked };
    assert_eq!(get(&client, from_the_end).await.rows.len(), 5);
    assert_eq!(server.work.counts().comparisons, unified.comparisons);
    client.decide(record.change, verdict(&record, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
}
