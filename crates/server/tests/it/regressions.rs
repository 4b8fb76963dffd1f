//! Regression tests: each failed before its fix.

use std::io::{Read as _, Write as _};

use sayso_api::client::{AskMode, CallOver, Client, PreviewDetail, PreviewOf, Submission};
use sayso_review::{
    Answer, ChangeStatus, FileAnswer, HunkId, Intent, Origin, Performer, Proposal, Rule, Ruling, WsPath,
};
use sayso_server::agent_registry::AgentRegistry;
use sayso_server::{EngineSocket, PortChoice, Server, StartError};
use serde_json::{Value, json};

use crate::agents::{WAYS, Way, assert_refused, call};
use crate::raw;
use crate::scene::{Running, Scene, TOKEN, ask, verdict, write};

/// Twenty lines. Changed lines that are far apart make separate hunks.
fn lines(changed: &[usize]) -> String {
    (1..=20).map(|line| format!("line {line}{}\n", if changed.contains(&line) { " changed" } else { "" })).collect()
}

/// Submits a write that the agent carries out.
async fn submit_write(client: &Client, path: &str, content: &str) -> sayso_api::client::ChangeDetails {
    let change = json!({ "operation": "write", "path": path, "new_content": content });
    let intent = Intent::ChangeFiles(Proposal::parse(change.to_string().as_bytes()).unwrap());
    let text = |text: &str| Some(text.to_owned());
    let origin = Origin { agent: text("scripted"), session: text("s"), turn: text("t"), call: text("c") };
    let performer = Performer::Agent;
    let submission =
        Submission { intent, origin, performer, deadline: None, schema: None, ask_mode: AskMode::ByPolicy };
    client.submit(submission, PreviewDetail::Omitted).await.unwrap()
}

/// A client that learns the verdict after the end of the call must not get a plan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_change_has_no_plan() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("a"), lines(&[])).unwrap();
    let server = scene.serve();
    let client = server.verdict_client();
    let record = submit_write(&client, "a", &lines(&[2, 19])).await.record;
    let path = WsPath::parse("a").unwrap();
    let hunks = FileAnswer::Hunks { hunks: [HunkId::whole(1)].into() };
    let answer = Answer::Files { files: [(path.clone(), hunks)].into(), reason: None };
    let decided = client.decide(record.change, verdict(&record, answer), None, PreviewDetail::Omitted).await.unwrap();
    assert_eq!((decided.record.status, decided.plan.len()), (ChangeStatus::Permitted, 1));
    let finished = client.finish_call(CallOver::new("s", "c")).await.unwrap();
    assert_eq!((finished.differing_files, finished.unchanged), (Vec::new(), vec![path]), "nothing was written");
    for details in [
        client.await_outcome(record.change, PreviewDetail::Omitted).await.unwrap(),
        client.get_change(record.change, PreviewDetail::Omitted, PreviewOf::Proposed).await.unwrap(),
    ] {
        assert!(matches!(details.record.status, ChangeStatus::Failed { .. }), "{:?}", details.record.status);
        assert_eq!(details.plan, [], "a failed change has no plan");
    }
}

/// `Finish` of a call without effect responded without a record, which clients reject.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finish_without_effect_returns_record() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("a"), "1\n").unwrap();
    let server = scene.serve();
    let client = server.verdict_client();
    // A call without permitted changes.
    let nothing = client.finish_call(CallOver::new("s", "no such call")).await.unwrap();
    assert!(nothing.record.steps.is_empty() && nothing.differing_files.is_empty());
    let record = submit_write(&client, "a", "2\n").await.record;
    client.decide(record.change, verdict(&record, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
    // A permitted change that the agent did not carry out.
    let nothing = client.finish(record.change, None).await.unwrap();
    assert!(nothing.record.steps.is_empty() && !nothing.unchanged.is_empty());
}

/// The secret, and the start of its base64 form in JSON.
const SECRET: [&str; 2] = ["swordfish", "c3dvcmRmaXNo"];

fn said(server: &Running, method: &str, body: &Value) -> String {
    let output = call(server, Way::Socket, method, &body.to_string(), &[]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An agent could read a forbidden file from the preview of a change that it proposed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_previews_hide_unreadable_files() {
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
    let client = server.verdict_client();
    let then = ask(&client, write("secret-then", "other\n")).await.record;
    client.decide(then.change, verdict(&then, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
    let now = ask(&client, write("secret-now", "other\n")).await.record;
    let link = ask(&client, write("link", "other\n")).await.record;
    let open = ask(&client, write("open", "nobody\n")).await.record;
    let later = submit_write(&client, "secret-later", "other\n").await.record;
    assert_eq!(later.status, ChangeStatus::Permitted);
    std::fs::write(scene.root().join("secret-later"), "other\n").unwrap();
    client.finish_call(CallOver::new("s", "c")).await.unwrap();
    let view = "PREVIEW_VIEW_FULL";
    let look = |change: u64| ("ReviewService/GetChange", json!({ "change": change.to_string(), "view": view }));
    let undo = json!({ "target": { "change": then.change.to_string() }, "view": view });
    // The last change is permitted and has a plan.
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
        assert!(text.contains(place) && shows(&text), "a person sees all contents: {method} {text}");
    }
    // From here on, child processes act for an agent.
    let registration = AgentRegistry::new(&scene.home()).register(None, &scene.journal()).unwrap();
    calls.push(("ReviewService/ReviewTurn", json!({ "session": "s", "turn": "t", "view": view })));
    for (method, body) in &calls {
        let text = said(&server, method, body);
        assert!(text.contains(place) && !shows(&text), "{method} {body}: {text}");
    }
    // Readable files are visible.
    let (method, body) = look(open.change);
    assert!(said(&server, method, &body).contains("everybody"));
    // The reason does not reveal the path of the configuration.
    let arguments = json!({ "path_a": "secret-now", "path_b": "open" }).to_string();
    for (method, body, rule) in [
        ("WorkspaceService/ReadFile", json!({ "path": "secret-now" }), "rule 1"),
        ("ToolService/RunTool", json!({ "name": "Diff", "argumentsJson": arguments }), "rule 3"),
    ] {
        let text = said(&server, method, &body);
        assert!(text.contains(rule) && !text.contains("config.toml"), "{method}: {text}");
    }
    registration.unregister();
}

/// `sayso gc` withdrew a change that an agent awaited over the protocol.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn collect_keeps_awaited_changes() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
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
    // The first heartbeat confirms the call.
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains("heartbeat") {
        let mut part = [0; 1024];
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&part[..read]);
    }
    assert_eq!(client.collect(0, None).await.unwrap().cancelled, [forgotten]);
    let stands = client.get_change(awaited, PreviewDetail::Omitted, PreviewOf::Proposed).await.unwrap().record;
    assert_eq!(stands.status, ChangeStatus::Pending);
    // Without an `Await` call, it is withdrawn as well.
    drop(stream);
    let cleaned = async {
        while client.collect(0, None).await.unwrap().cancelled != [awaited] {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    crate::scene::within("its end", cleaned).await;
}

/// An agent could withdraw the review of its own changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_cannot_withdraw_review() {
    let scene = Scene::new();
    let mut later = Rule::new(Ruling::Later);
    later.write = vec!["*".to_owned()];
    let server = scene.serve_under(vec![later]);
    let client = server.verdict_client();
    client.start_turn("s", "t").await.unwrap();
    assert_eq!(submit_write(&client, "a", "x\n").await.record.status, ChangeStatus::Permitted);
    std::fs::write(scene.root().join("a"), "x\n").unwrap();
    let review = client.end_turn("s", None).await.unwrap().unwrap();
    let status = async |change| {
        client.get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed).await.unwrap().record.status
    };
    let registration = AgentRegistry::new(&scene.home()).register(None, &scene.journal()).unwrap();
    let body = |change: u64| json!({ "change": change.to_string() }).to_string();
    for way in WAYS {
        assert_refused(&call(&server, way, "IntentService/Withdraw", &body(review), &[]), &format!("{way:?}"));
        assert_eq!(status(review).await, ChangeStatus::Pending);
    }
    // Its own proposal is withdrawn.
    let change = json!({ "changes": [{ "write": { "path": "b", "newContent": "x\n" } }] });
    let origin = json!({ "session": "its own" });
    let intent = json!({ "intent": { "changeFiles": change }, "origin": origin, "askMode": "ASK_MODE_ALWAYS" });
    let said: Value = serde_json::from_str(&said(&server, "IntentService/Submit", &intent)).unwrap();
    let own: u64 = said["details"]["change"]["change"].as_str().unwrap().parse().unwrap();
    assert_eq!(status(own).await, ChangeStatus::Pending);
    call(&server, Way::Socket, "IntentService/Withdraw", &body(own), &[]);
    assert_eq!(status(own).await, ChangeStatus::Cancelled);
    registration.unregister();
    call(&server, Way::Socket, "IntentService/Withdraw", &body(review), &[]);
    assert_eq!(status(review).await, ChangeStatus::Cancelled);
}

/// A failed start left a socket without a listener.
#[test]
fn start_with_taken_port_leaves_no_socket() {
    let scene = Scene::new();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut http = Scene::http();
    (http.address, http.port) = (taken.local_addr().unwrap(), PortChoice::Exactly);
    let error = Server::start(scene.options(), http).unwrap_err();
    assert!(matches!(error, StartError::Listen { .. }), "{error}");
    let socket = EngineSocket::new(&scene.journal());
    assert!(scene.journal().join("engine").exists(), "the start created the directory");
    assert!(!socket.path().exists());
    // The next start succeeds.
    scene.serve().end();
}
