//! What a review of the server found: each test failed before it was fixed.

use std::io::{Read as _, Write as _};

use sayso_api::client::{CallOver, Client, Consent, Shown, Submission, View};
use sayso_review::{
    Answer, ChangeStatus, FileAnswer, HunkId, Intent, Origin, Performer, Proposal, Rule, Ruling, WsPath,
};
use sayso_server::agents::Notes;
use sayso_server::{EnginePlace, PortChoice, Server, StartError};
use serde_json::{Value, json};

use crate::agents::{WAYS, Way, assert_refused, call};
use crate::raw;
use crate::scene::{Running, Scene, TOKEN, ask, verdict, write};

/// Twenty lines, some of them changed: two hunks, if they are far enough from each other.
fn lines(changed: &[usize]) -> String {
    (1..=20).map(|line| format!("line {line}{}\n", if changed.contains(&line) { " changed" } else { "" })).collect()
}

/// Wants to write a file by itself, in a session and a turn.
async fn wants(client: &Client, path: &str, content: &str) -> sayso_api::client::Progress {
    let change = json!({ "operation": "write", "path": path, "new_content": content });
    let intent = Intent::ChangeFiles(Proposal::parse(change.to_string().as_bytes()).unwrap());
    let text = |text: &str| Some(text.to_owned());
    let origin = Origin { agent: text("scripted"), session: text("s"), turn: text("t"), call: text("c") };
    let performer = Performer::Agent;
    let submission = Submission { intent, origin, performer, deadline: None, schema: None, consent: Consent::Policy };
    client.submit(submission, View::Nothing).await.unwrap()
}

/// A client that hears of the verdict only after the call has ended gets no plan and no approval.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_approved_is_told_also_when_it_is_already_over() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("a"), lines(&[])).unwrap();
    let server = scene.serve();
    let client = server.near();
    let record = wants(&client, "a", &lines(&[2, 19])).await.record;
    let path = WsPath::parse("a").unwrap();
    let hunks = FileAnswer::Hunks { hunks: [HunkId::whole(1)].into() };
    let answer = Answer::Files { files: [(path.clone(), hunks)].into(), reason: None };
    let decided = client.decide(record.change, verdict(&record, answer), None, View::Nothing).await.unwrap();
    assert_eq!((decided.record.status, decided.plan.len()), (ChangeStatus::Permitted, 1));
    let finished = client.finish_call(CallOver::new("s", "c")).await.unwrap();
    assert_eq!((finished.differs, finished.unchanged), (Vec::new(), vec![path]), "nothing was written");
    for told in [
        client.await_outcome(record.change, View::Nothing).await.unwrap(),
        client.get_change(record.change, View::Nothing, Shown::Proposed).await.unwrap(),
    ] {
        assert!(matches!(told.record.status, ChangeStatus::Failed { .. }), "{:?}", told.record.status);
        assert_eq!(told.plan, [], "what was not made is no longer to be made");
    }
}

/// A `Finish` where nothing was done answered without a record, which no client understands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_finished_has_a_record_even_if_nothing_was_done() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("a"), "1\n").unwrap();
    let server = scene.serve();
    let client = server.near();
    // Nothing was permitted in this call.
    let nothing = client.finish_call(CallOver::new("s", "no such call")).await.unwrap();
    assert!(nothing.record.steps.is_empty() && nothing.differs.is_empty());
    let record = wants(&client, "a", "2\n").await.record;
    client.decide(record.change, verdict(&record, Answer::Approve), None, View::Nothing).await.unwrap();
    // The agent never did it.
    let nothing = client.finish(record.change, None).await.unwrap();
    assert!(nothing.record.steps.is_empty() && !nothing.unchanged.is_empty());
}

/// The secret and its beginning in base64, as JSON has bytes.
const SECRET: [&str; 2] = ["swordfish", "c3dvcmRmaXNo"];

fn said(server: &Running, method: &str, body: &Value) -> String {
    let output = call(server, Way::Socket, method, &body.to_string(), &[]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What an agent may not read, it read from the preview of a change that it proposed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_may_not_read_is_shown_to_it_by_no_preview() {
    let scene = Scene::new();
    for name in ["secret-then", "secret-now", "secret-later"] {
        std::fs::write(scene.root().join(name), format!("{}\n", SECRET[0])).unwrap();
    }
    std::fs::write(scene.root().join("open"), "everybody\n").unwrap();
    std::os::unix::fs::symlink("secret-now", scene.root().join("link")).unwrap();
    let (mut reading, mut later) = (Rule::new(Ruling::Ask), Rule::new(Ruling::Later));
    (reading.read, later.write) = (vec!["secret-*".to_owned()], vec!["secret-later".to_owned()]);
    let mut tool = Rule::new(Ruling::Ask);
    tool.tool = vec!["Diff".to_owned()];
    let server = scene.serve_under(vec![reading, later, tool]);
    let client = server.near();
    let then = ask(&client, write("secret-then", "other\n")).await.record;
    client.decide(then.change, verdict(&then, Answer::Approve), None, View::Nothing).await.unwrap();
    let now = ask(&client, write("secret-now", "other\n")).await.record;
    let link = ask(&client, write("link", "other\n")).await.record;
    let open = ask(&client, write("open", "nobody\n")).await.record;
    let later = wants(&client, "secret-later", "other\n").await.record;
    assert_eq!(later.status, ChangeStatus::Permitted);
    std::fs::write(scene.root().join("secret-later"), "other\n").unwrap();
    client.finish_call(CallOver::new("s", "c")).await.unwrap();
    let view = "PREVIEW_VIEW_FULL";
    let look = |change: u64| ("ReviewService/GetChange", json!({ "change": change.to_string(), "view": view }));
    let undo = json!({ "target": { "change": then.change.to_string() }, "view": view });
    // The last was let go ahead, and comes with a plan.
    let mut calls = vec![look(then.change), look(now.change), look(link.change), look(later.change)];
    calls.push(("ReviewService/GetChange", json!({ "change": later.change.to_string() })));
    calls.push(("ReviewService/ListPending", json!({ "view": view })));
    calls.push(("ReviewService/PlanUndo", undo));
    for path in ["secret-now", "link"] {
        let change = json!({ "changes": [{ "write": { "path": path, "newContent": "mine\n" } }] });
        for mode in ["MODE_PREVIEW", "MODE_ASK"] {
            calls.push(("ReviewService/Propose", json!({ "proposal": change, "mode": mode, "view": view })));
        }
        calls.push(("IntentService/Submit", json!({ "intent": { "changeFiles": change }, "view": view })));
    }
    let shows = |text: &str| SECRET.iter().any(|secret| text.contains(secret));
    let place = "\"location\":\"secret-";
    for (method, body) in &calls {
        let text = said(&server, method, body);
        assert!(text.contains(place) && shows(&text), "a person sees what they decide about: {method} {text}");
    }
    // From here on, whatever this process starts speaks for an agent.
    let registered = Notes::new(&scene.home()).register(None, &scene.journal()).unwrap();
    calls.push(("ReviewService/ReviewTurn", json!({ "session": "s", "turn": "t", "view": view })));
    for (method, body) in &calls {
        let text = said(&server, method, body);
        assert!(text.contains(place) && !shows(&text), "{method} {body}: {text}");
    }
    // What it may read, it sees.
    let (method, body) = look(open.change);
    assert!(said(&server, method, &body).contains("everybody"));
    // Why it may not is told without where the user's configuration is.
    let arguments = json!({ "path_a": "secret-now", "path_b": "open" }).to_string();
    for (method, body, rule) in [
        ("WorkspaceService/ReadFile", json!({ "path": "secret-now" }), "rule 1"),
        ("ToolService/RunTool", json!({ "name": "Diff", "argumentsJson": arguments }), "rule 3"),
    ] {
        let text = said(&server, method, &body);
        assert!(text.contains(rule) && !text.contains("config.toml"), "{method}: {text}");
    }
    registered.finished();
}

/// `sayso gc` withdrew what an agent was waiting for over the protocol.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_awaits_is_not_withdrawn_when_cleaning_up() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.near();
    let awaited = ask(&client, write("awaited", "x\n")).await.record.change;
    let forgotten = ask(&client, write("forgotten", "x\n")).await.record.change;
    let body = json!({ "change": awaited.to_string() }).to_string();
    let mut stream = raw::connect(server.address);
    write!(
        stream,
        "POST /sayso.v1.IntentService/Await HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/connect+json\r\ncontent-length: {}\r\n\r\n",
        body.len() + 5
    )
    .unwrap();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    stream.write_all(&[&[0], &length[..], body.as_bytes()].concat()).unwrap();
    // It is said at once that they are heard.
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains("heartbeat") {
        let mut part = [0; 1024];
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&part[..read]);
    }
    assert_eq!(client.collect(0, None).await.unwrap().cancelled, [forgotten]);
    let stands = client.get_change(awaited, View::Nothing, Shown::Proposed).await.unwrap().record;
    assert_eq!(stands.status, ChangeStatus::Pending);
    // Once nobody waits any more, it goes as well.
    drop(stream);
    let cleaned = async {
        while client.collect(0, None).await.unwrap().cancelled != [awaited] {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    crate::scene::within("its end", cleaned).await;
}

/// An agent withdrew the review of what it had done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_review_is_withdrawn_by_a_person_only() {
    let scene = Scene::new();
    let mut later = Rule::new(Ruling::Later);
    later.write = vec!["*".to_owned()];
    let server = scene.serve_under(vec![later]);
    let client = server.near();
    client.start_turn("s", "t").await.unwrap();
    assert_eq!(wants(&client, "a", "x\n").await.record.status, ChangeStatus::Permitted);
    std::fs::write(scene.root().join("a"), "x\n").unwrap();
    let review = client.end_turn("s", None).await.unwrap().unwrap();
    let status = async |change| client.get_change(change, View::Nothing, Shown::Proposed).await.unwrap().record.status;
    let registered = Notes::new(&scene.home()).register(None, &scene.journal()).unwrap();
    let body = |change: u64| json!({ "change": change.to_string() }).to_string();
    for way in WAYS {
        assert_refused(&call(&server, way, "IntentService/Withdraw", &body(review), &[]), &format!("{way:?}"));
        assert_eq!(status(review).await, ChangeStatus::Pending);
    }
    // What it proposed itself is its own to withdraw.
    let change = json!({ "changes": [{ "write": { "path": "b", "newContent": "x\n" } }] });
    let origin = json!({ "session": "its own" });
    let intent = json!({ "intent": { "changeFiles": change }, "origin": origin, "ask": true });
    let said: Value = serde_json::from_str(&said(&server, "IntentService/Submit", &intent)).unwrap();
    let own: u64 = said["progress"]["change"]["change"].as_str().unwrap().parse().unwrap();
    assert_eq!(status(own).await, ChangeStatus::Pending);
    call(&server, Way::Socket, "IntentService/Withdraw", &body(own), &[]);
    assert_eq!(status(own).await, ChangeStatus::Cancelled);
    registered.finished();
    call(&server, Way::Socket, "IntentService/Withdraw", &body(review), &[]);
    assert_eq!(status(review).await, ChangeStatus::Cancelled);
}

/// A start that found its port taken left a socket behind at which nobody answers.
#[test]
fn a_start_whose_port_is_taken_leaves_no_socket() {
    let scene = Scene::new();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut http = Scene::http();
    (http.address, http.port) = (taken.local_addr().unwrap(), PortChoice::Exactly);
    let error = Server::start(scene.options(), http).unwrap_err();
    assert!(matches!(error, StartError::Listen { .. }), "{error}");
    let place = EnginePlace::new(&scene.journal());
    assert!(scene.journal().join("engine").exists(), "it came as far as that");
    assert!(!place.socket().exists());
    // And the next one is not held up.
    scene.serve().end();
}
