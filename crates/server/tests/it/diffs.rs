//! `GetDiff`: rows of every subject, pages, layouts, stale previews and withheld contents.

use std::io::Write as _;

use sayso_api::client::{Client, PreviewDetail, UpstreamUrls};
use sayso_api::proto::diff_file::NoDiffReason;
use sayso_api::proto::oneof::diff_subject::Subject;
use sayso_api::proto::{self, DiffLayout, diff_subject};
use sayso_api::request::{HeldFate, RequestQuery};
use sayso_diff::{ConflictRow, ConflictRowKind, DiffRow, Encoding, RowKind, SideBySideRow};
use sayso_review::{Answer, ChangeId, ErrorKind, RequestMode, Rule, Ruling, Target};
use sayso_server::agent_registry::AgentRegistry;
use serde_json::{Value, json};

use crate::agents::{WAYS, Way, assert_refused, call};
use crate::scene::{Dice, Scene, ask, verdict, write};

pub(crate) fn request(subject: impl Into<Option<Subject>>, path: &str) -> proto::GetDiffRequest {
    let subject = proto::DiffSubject { subject: subject.into(), ..Default::default() };
    proto::GetDiffRequest { subject: Some(subject).into(), path: path.to_owned(), ..Default::default() }
}

pub(crate) async fn get(client: &Client, request: proto::GetDiffRequest) -> proto::GetDiffResponse {
    client.get_diff(request).await.unwrap()
}

pub(crate) async fn approve(client: &Client, path: &str, content: &str) -> ChangeId {
    let record = ask(client, write(path, content)).await.record;
    client.decide(record.change, verdict(&record, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
    record.change
}

pub(crate) fn reversal(change: ChangeId) -> diff_subject::Reversal {
    let target = Some(proto::Target::from(&Target::Change { change })).into();
    diff_subject::Reversal { target, ..Default::default() }
}

/// Changed lines with their markers.
fn changed(response: &proto::GetDiffResponse) -> Vec<String> {
    let line = |row: &proto::DiffRow| {
        let marker = match row.kind.as_known().unwrap() {
            proto::diff_row::Kind::Added => '+',
            proto::diff_row::Kind::Removed => '-',
            _ => return None,
        };
        Some(format!("{marker}{}", row.content.as_option().unwrap().text))
    };
    response.rows.iter().filter_map(line).collect()
}

/// All rows of a file, read in pages of random size.
async fn paged(client: &Client, mut request: proto::GetDiffRequest, dice: &mut Dice) -> Vec<proto::GetDiffResponse> {
    let mut pages = Vec::new();
    loop {
        request.rows = u32::try_from(1 + dice.below(40)).unwrap();
        let page = get(client, request.clone()).await;
        let rows = page.rows.len() + page.side_by_side_rows.len() + page.conflict_rows.len();
        assert_eq!(page.from_row, request.from_row);
        request.from_row += rows as u64;
        request.preview_hash = Some(page.preview_hash.clone());
        let has_more = page.has_more;
        assert!(!has_more || rows > 0, "a page is not empty");
        pages.push(page);
        if !has_more {
            assert_eq!(pages[0].files[0].total_rows, Some(request.from_row));
            return pages;
        }
    }
}

fn encoding(format: &proto::TextFormat) -> Encoding {
    match format.encoding.as_known().unwrap() {
        proto::text_format::Encoding::Utf16Le => Encoding::Utf16Le,
        proto::text_format::Encoding::Utf16Be => Encoding::Utf16Be,
        proto::text_format::Encoding::Latin1 => Encoding::Latin1,
        _ => Encoding::Utf8,
    }
}

/// A random text of short lines, some with characters that are escaped.
fn text(dice: &mut Dice, break_: &str, wide: bool) -> String {
    let lines = dice.below(60);
    let words = ["one", "two ä", "\tthree", "f(4)", "", "\u{1}x", if wide { "\u{202E}five 🦀" } else { "five" }];
    let mut text = String::new();
    for line in 0..lines {
        text.push_str(words[dice.below(words.len() as u64) as usize]);
        if line + 1 < lines || dice.below(2) == 0 {
            text.push_str(break_);
        }
    }
    text
}

fn encoded(text: &str, encoding: usize) -> Vec<u8> {
    match encoding {
        0 => text.as_bytes().to_vec(),
        1 => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        2 => [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect(),
        3 => [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect(),
        _ => text.chars().map(|character| u8::try_from(character).unwrap()).collect(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_reproduce_bytes_in_both_layouts() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let (mut dice, seed) = Dice::seeded();
    let mut compared = 0;
    for round in 0..60 {
        let (name, format) = (format!("f{round}.rs"), round % 5);
        let break_ = if dice.below(2) == 0 { "\n" } else { "\r\n" };
        let (old, new) = (text(&mut dice, break_, format < 4), text(&mut dice, "\n", format < 4));
        let old = encoded(&old, format);
        std::fs::write(scene.root().join(&name), &old).unwrap();
        let change = approve(&client, &name, &new).await;
        let new = std::fs::read(scene.root().join(&name)).unwrap();
        let mut asked = request(Subject::AppliedChange(change), &name);
        asked.whole_file = true;
        let unified = paged(&client, asked.clone(), &mut dice).await;
        asked.layout = DiffLayout::SideBySide.into();
        let pairs = paged(&client, asked, &mut dice).await;

        let file = &unified[0].files[0];
        if file.no_diff_reason == NoDiffReason::Binary {
            // A short text with control characters looks binary.
            continue;
        }
        compared += usize::from(!unified[0].rows.is_empty());
        let side = |format: &proto::TextFormat| encoding(format);
        let old_encoding = file.old_format.as_option().map_or(Encoding::Utf8, side);
        let new_encoding = file.new_format.as_option().map_or(Encoding::Utf8, side);
        let rows: Vec<DiffRow> =
            unified.iter().flat_map(|page| page.rows.clone()).map(|row| row.try_into().unwrap()).collect();
        let (mut old_rows, mut new_rows) = (Vec::new(), Vec::new());
        for row in &rows {
            match row.kind {
                RowKind::Context => {
                    let bytes = row.content.source(old_encoding);
                    old_rows.extend_from_slice(&bytes);
                    new_rows.extend_from_slice(&bytes);
                }
                RowKind::Removed => old_rows.extend(row.content.source(old_encoding)),
                RowKind::Added => new_rows.extend(row.content.source(new_encoding)),
                RowKind::Note(_) => {}
                RowKind::Fold { .. } => panic!("the whole file has no folds"),
            }
        }
        assert_eq!((old_rows, new_rows), (old, new), "SAYSO_SEED={seed} round {round}");

        // Each row of one layout is in the other, with the same syntax.
        let key = |row: &proto::DiffRow| (row.old_line, row.new_line, row.kind.to_i32());
        let mut one: Vec<_> = unified.iter().flat_map(|page| page.rows.clone()).collect();
        let mut other = Vec::new();
        for row in pairs.iter().flat_map(|page| page.side_by_side_rows.clone()) {
            SideBySideRow::try_from(row.clone()).unwrap();
            other.extend([row.both, row.old, row.new].into_iter().filter_map(buffa_option));
        }
        one.sort_by_key(key);
        other.sort_by_key(key);
        assert_eq!(one, other, "SAYSO_SEED={seed} round {round}");
    }
    assert!(compared > 20, "SAYSO_SEED={seed}: {compared} files have rows");
}

fn buffa_option<T: Default, P: buffa::ProtoBox<T>>(field: buffa::MessageField<T, P>) -> Option<T> {
    field.into_option()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn diff_shows_change_and_its_reversals() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("a.rs"), "let a = 1;\nlet b = 2;\n").unwrap();
    let server = scene.serve();
    let client = server.verdict_client();
    let new = "let a = 1;\nlet b = 3;\n";
    let record = ask(&client, write("a.rs", new)).await.record;
    let forward = ["-let b = 2;", "+let b = 3;"];

    let list = get(&client, request(Subject::Change(record.change), "")).await;
    assert_eq!((list.total_files, list.added, list.removed), (1, 1, 1));
    assert_eq!(list.preview_hash, record.preview.to_string(), "a verdict quotes the same hash");
    assert_eq!((list.files[0].hunks, list.files[0].total_rows, list.rows.len()), (1, None, 0));
    let proposed = get(&client, request(Subject::Change(record.change), "a.rs")).await;
    assert_eq!(changed(&proposed), forward);
    assert_eq!((proposed.hunks[0].first_row, proposed.hunks[0].rows), (0, 3));
    let keyword = &proposed.rows[0].content.as_option().unwrap().syntax[0];
    assert_eq!((keyword.start, keyword.end), (0, 3));
    assert_eq!(keyword.class.as_known(), Some(proto::SyntaxClass::Keyword));
    let word = &proposed.rows[2].content.as_option().unwrap().words;
    assert_eq!((word[0].start, word[0].end), (8, 9));

    client.decide(record.change, verdict(&record, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
    let applied = get(&client, request(Subject::AppliedChange(record.change), "a.rs")).await;
    assert_eq!(changed(&applied), forward);
    let undo = get(&client, request(Subject::Undo(reversal(record.change).into()), "a.rs")).await;
    assert_eq!(changed(&undo), ["-let b = 3;", "+let b = 2;"]);
    let plan = client.plan_undo(Target::Change { change: record.change }, sayso_review::IfChanged::Refuse).await;
    assert_eq!(undo.preview_hash, plan.unwrap().preview.hash().to_string());
    client.undo(Target::Change { change: record.change }, sayso_review::IfChanged::Refuse, None).await.unwrap();
    let redo = get(&client, request(Subject::Redo(reversal(record.change).into()), "a.rs")).await;
    assert_eq!(changed(&redo), forward);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turn_diff_is_net_change() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("a"), "1\n2\n3\n").unwrap();
    let server = scene.serve();
    let client = server.verdict_client();
    for text in ["1\n2\n3\n4\n", "one\n2\n3\n4\n"] {
        let origin =
            sayso_review::Origin { session: Some("s".to_owned()), turn: Some("t".to_owned()), ..Default::default() };
        let mode = sayso_api::client::ProposeMode::Ask;
        let record = client.propose(write("a", text), origin, mode, PreviewDetail::Omitted).await.unwrap().record;
        client.decide(record.change, verdict(&record, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
    }
    let turn = proto::Turn { session: "s".to_owned(), turn: "t".to_owned(), ..Default::default() };
    let net = get(&client, request(Subject::Turn(Box::new(turn)), "a")).await;
    assert_eq!(changed(&net), ["-1", "+one", "+4"]);
    assert_eq!((net.total_files, net.added, net.removed), (1, 2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restore_diff_shows_snapshot() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("a"), "old\n").unwrap();
    let server = scene.serve();
    let client = server.verdict_client();
    let capture = json!({ "tier": "TIER_HOOK", "call": "c", "session": "s", "tool": "Edit", "argumentsJson": json!({ "file_path": "a", "old_string": "old", "new_string": "new" }).to_string() });
    let captured = call(&server, Way::Socket, "IntentService/Capture", &capture.to_string(), &[]);
    let captured: Value = serde_json::from_slice(&captured.stdout).unwrap();
    let snapshots = client.list_snapshots(None).await.unwrap();
    let Some(snapshot) = snapshots.first() else { panic!("no snapshot was captured: {captured}") };
    std::fs::write(scene.root().join("a"), "new\n").unwrap();
    let restored = get(&client, request(Subject::Restore(snapshot.snapshot.snapshot), "a")).await;
    assert_eq!(changed(&restored), ["-new", "+old"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflict_diff_has_three_columns() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("a"), "1\n2\n3\n4\n5\n").unwrap();
    let server = scene.serve();
    let client = server.verdict_client();
    let record = ask(&client, write("a", "1\nyours\n3\n4\n5\n")).await.record;
    std::fs::write(scene.root().join("a"), "1\ntheirs\n3\n4\n5 too\n").unwrap();
    let decided =
        client.decide(record.change, verdict(&record, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
    let merged = decided.merged_change.unwrap();
    for change in [record.change, merged] {
        let conflict = get(&client, request(Subject::Conflict(change), "a")).await;
        let rows: Vec<ConflictRow> = conflict.conflict_rows.iter().map(|row| row.clone().try_into().unwrap()).collect();
        let kinds: Vec<ConflictRowKind> = rows.iter().map(|row| row.kind).collect();
        assert_eq!(
            kinds,
            [
                ConflictRowKind::Context,
                ConflictRowKind::Conflict,
                ConflictRowKind::Context,
                ConflictRowKind::Context,
                ConflictRowKind::Theirs
            ]
        );
        let text = |content: &Option<sayso_diff::RowContent>| content.as_ref().unwrap().text.clone();
        assert_eq!([text(&rows[1].base), text(&rows[1].theirs), text(&rows[1].yours)], ["2", "theirs", "yours"]);
        assert_eq!((conflict.files[0].conflicts, conflict.files[0].total_rows), (1, Some(5)));
    }
    let mut unified = request(Subject::Conflict(merged), "a");
    unified.layout = DiffLayout::Unified.into();
    assert_eq!(client.get_diff(unified).await.unwrap_err().kind(), ErrorKind::InvalidArgs);
    let other = approve(&client, "b", "x\n").await;
    assert_eq!(
        client.get_diff(request(Subject::Conflict(other), "")).await.unwrap_err().kind(),
        ErrorKind::InvalidArgs
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_diff_is_for_persons_only() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    client.set_request_mode(None, Some(RequestMode::InterceptAlways), HeldFate::Resume).await.unwrap();
    let capability = client.open_endpoint(None, &UpstreamUrls::new()).await.unwrap().capability;
    let body = json!({ "model": "claude-sonnet-4-5", "max_tokens": 10, "system": "Be careful.",
        "tools": [{ "name": "Read", "description": "Reads.", "input_schema": { "type": "object" } }],
        "messages": [{ "role": "user", "content": "Hello" }] })
    .to_string();
    let mut connection = std::net::TcpStream::connect(server.address).unwrap();
    write!(
        connection,
        "POST /p/{capability}/anthropic/v1/messages HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    )
    .unwrap();
    let held = async || {
        let query = RequestQuery { held: true, ..RequestQuery::default() };
        client.list_requests(&query).await.unwrap().first().map(|request| request.record.request)
    };
    let number = loop {
        if let Some(number) = held().await {
            break number;
        }
        tokio::task::yield_now().await;
    };
    let edit = json!({ "request": number.to_string(), "append": "More" }).to_string();
    let edited = call(&server, Way::Socket, "RequestService/EditRequest", &edit, &[]);
    assert!(edited.status.success(), "{edited:?}");
    let list = get(&client, request(Subject::Request(number), "")).await;
    let path = list.files[0].path.clone();
    let added = get(&client, request(Subject::Request(number), &path)).await;
    assert!(changed(&added).iter().any(|line| line.contains("More")), "{added:?}");
    let registration = AgentRegistry::new(&scene.home()).register(None, &scene.journal()).unwrap();
    let asked = json!({ "subject": { "request": number.to_string() } }).to_string();
    for way in WAYS {
        assert_refused(&call(&server, way, "ReviewService/GetDiff", &asked, &[]), &format!("{way:?}"));
    }
    registration.unregister();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_preview_makes_page_stale() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("a"), "1\n2\n").unwrap();
    let server = scene.serve();
    let client = server.verdict_client();
    let record = ask(&client, write("a", "1\n3\n")).await.record;
    let mut asked = request(Subject::Change(record.change), "a");
    asked.preview_hash = Some(record.preview.to_string());
    get(&client, asked.clone()).await;
    std::fs::write(scene.root().join("a"), "0\n1\n2\n").unwrap();
    let error = client.get_diff(asked.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale, "{error}");
    asked.preview_hash = None;
    let fresh = get(&client, asked).await;
    assert_ne!(fresh.preview_hash, record.preview.to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_gets_no_withheld_contents() {
    const SECRET: &str = "swordfish";
    let scene = Scene::new();
    std::fs::write(scene.root().join("secret"), format!("{SECRET}\n")).unwrap();
    std::fs::write(scene.root().join("open"), "everybody\n").unwrap();
    let mut rule = Rule::new(Ruling::Ask);
    rule.read = vec!["secret".to_owned()];
    let server = scene.serve_under(vec![rule]);
    let client = server.verdict_client();
    let applied = approve(&client, "secret", "other\n").await;
    let pending = ask(&client, write("secret", &format!("{SECRET}2\n"))).await.record.change;
    let open = ask(&client, write("open", "nobody\n")).await.record.change;
    let get = |subject: Value| {
        let body = json!({ "subject": subject, "path": "secret" }).to_string();
        let output = call(&server, Way::Socket, "ReviewService/GetDiff", &body, &[]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let subjects = [
        json!({ "change": pending.to_string() }),
        json!({ "appliedChange": applied.to_string() }),
        json!({ "undo": { "target": { "change": applied.to_string() } } }),
    ];
    for subject in &subjects {
        assert!(get(subject.clone()).contains(SECRET), "a person sees contents: {subject}");
    }
    let registration = AgentRegistry::new(&scene.home()).register(None, &scene.journal()).unwrap();
    for subject in &subjects {
        let shown = get(subject.clone());
        assert!(shown.contains("NO_DIFF_REASON_WITHHELD") && !shown.contains(SECRET), "{subject}: {shown}");
    }
    let body = json!({ "subject": { "change": open.to_string() }, "path": "open" }).to_string();
    let output = call(&server, Way::Socket, "ReviewService/GetDiff", &body, &[]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("everybody"), "{output:?}");
    registration.unregister();
}

/// The events of a server, as a child process receives them within a second.
fn watched(server: &crate::scene::Running) -> String {
    let url = "http://localhost/sayso.v1.ReviewService/Watch";
    let mut child = std::process::Command::new("curl")
        .args(["-sS", "-m", "1", "-H", "content-type: application/connect+json", "--data-binary", "@-"])
        .args(["--abstract-unix-socket", &server.verdicts, url])
        .env_remove(sayso_server::agent_registry::MARK)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"\0\0\0\0\x02{}").unwrap();
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_gets_events_without_cards() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    ask(&client, write("a", "swordfish\n")).await;
    let shown = watched(&server);
    assert!(shown.contains("swordfish") && shown.contains("TYPE_ADD"), "{shown}");
    let registration = AgentRegistry::new(&scene.home()).register(None, &scene.journal()).unwrap();
    let shown = watched(&server);
    registration.unregister();
    assert!(shown.contains("proposed") && !shown.contains("swordfish"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_without_rows_states_reason() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("binary"), b"\0\x01\x02").unwrap();
    let server = scene.serve();
    let client = server.verdict_client();
    let rename = json!({ "operation": "rename", "path": "binary", "new_path": "moved" });
    let delete = json!({ "operation": "delete", "path": "binary" });
    for (proposal, path, reason) in
        [(rename, "moved", NoDiffReason::Unchanged), (delete, "binary", NoDiffReason::Binary)]
    {
        let proposed = sayso_api::client::Proposed::Text(proposal.to_string().into_bytes());
        let record = ask(&client, proposed).await.record;
        let diff = get(&client, request(Subject::Change(record.change), path)).await;
        assert_eq!(diff.files[0].no_diff_reason.as_known(), Some(reason), "{path}");
        assert_eq!((diff.rows.len(), diff.files[0].total_rows), (0, Some(0)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_diff_pages_have_bounded_size() {
    const LINES: usize = 100_000;
    let scene = Scene::new();
    let lines = |text: &str| (0..LINES).map(|line| format!("{text} {line}\n")).collect::<String>();
    std::fs::write(scene.root().join("a.rs"), lines("old")).unwrap();
    let server = scene.serve();
    let client = server.verdict_client();
    let record = ask(&client, write("a.rs", &lines("new"))).await.record;
    let mut asked = request(Subject::Change(record.change), "a.rs");
    asked.rows = 5_000;
    let (mut seen, mut pages) = (0, 0);
    loop {
        let page = get(&client, asked.clone()).await;
        assert!(page.rows.len() <= 5_000 && page.hunks.len() <= 1);
        assert!(page.rows.iter().all(|row| row.content.as_option().unwrap().syntax.is_empty()));
        assert_eq!((page.added, page.removed), (LINES as u64, LINES as u64));
        assert_eq!(page.files[0].total_rows, Some(2 * LINES as u64));
        for (offset, row) in page.rows.iter().enumerate() {
            let line = row.old_line.or(row.new_line).unwrap();
            assert_eq!(line, ((seen + offset) % LINES + 1) as u64);
        }
        seen += page.rows.len();
        pages += 1;
        asked.from_row = seen as u64;
        if !page.has_more {
            break;
        }
    }
    assert_eq!((seen, pages), (2 * LINES, 40));
}
