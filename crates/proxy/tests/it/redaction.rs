//! Credentials in bodies: forwarded exactly, masked in everything that is recorded.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use http_body_util::Full;
use sayso_proxy::interceptor::{ApplyScope, Edit, EditTarget};
use sayso_proxy::{ReplayError, ReplayForm};
use sayso_review::{BodyRecord, ErrorKind, RequestMode, RequestRecord};
use sayso_testkit::model::{ModelServer, Turn};
use sayso_wire::Scope;
use sayso_wire::stream::{Api, collect};
use serde_json::{Value, json};

use crate::scene::{EngineEnd, Scene, body, next_turn, now, settings, text_path, turn};

const API: Api = Api::AnthropicMessages;
const TOKEN: &str = "mcp-7f3kQ9-Lm2x";
const TOKEN_AT: &str = "mcp_servers[0].authorization_token";

/// A token in the format of an issuer, assembled so that secret scanners do not report this file.
fn shaped() -> String {
    format!("ghp_{}", "Q7zK2mWxB4tNj5Rd8Yp3".repeat(2))
}

fn secrets() -> [String; 4] {
    [TOKEN.to_owned(), shaped()["ghp_".len()..].to_owned(), "hunter2-hunter2".to_owned(), "k-33-api-44".to_owned()]
}

/// A turn with a credential of each kind.
fn with_credentials(api: Api) -> Value {
    let mut request = turn(api, &format!("Use {} for it.", shaped()));
    request["mcp_servers"] = json!([{"type": "url", "url": "https://x.example", "authorization_token": TOKEN}]);
    request["metadata"] = json!({"nested": json!({"db": {"password": "hunter2-hunter2"}}).to_string()});
    request["extra_headers"] = json!({"X-Api-Key": "k-33-api-44"});
    request
}

fn masked(text: &str) -> String {
    secrets().iter().fold(text.to_owned(), |text, secret| text.replace(secret, &"*".repeat(secret.len())))
}

fn recorded(scene: &Scene, record: &BodyRecord) -> String {
    String::from_utf8(scene.gate.read(|history| history.body(record)).unwrap()).unwrap()
}

/// Everything that is stored: the events, all bodies, and the bytes of all files.
fn everything(scene: &Scene) -> String {
    let records = scene.interceptor.records(None, None, 1_000).unwrap();
    let events = scene.gate.read(|history| history.events(None, 0, 10_000)).unwrap();
    let mut all = serde_json::to_string(&events).unwrap();
    for record in &records {
        for body in bodies(record) {
            all.push_str(&recorded(scene, body));
        }
    }
    files(scene.state(), &mut all);
    all
}

fn bodies(record: &RequestRecord) -> impl Iterator<Item = &BodyRecord> {
    let handover = record.handover.as_ref();
    [
        Some(&record.received.body),
        record.sent.as_ref(),
        record.edited.as_ref(),
        record.patch.as_ref(),
        record.answer.as_ref().map(|answer| &answer.body),
        handover.and_then(|handover| handover.patch.as_ref()),
        handover.and_then(|handover| handover.with_overrides.as_ref()),
    ]
    .into_iter()
    .flatten()
}

fn files(folder: &Path, all: &mut String) {
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        if file.file_type().unwrap().is_dir() {
            files(&file.path(), all);
        } else {
            let _ = write!(all, "{}", String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()));
        }
    }
}

fn assert_no_secret(scene: &Scene) {
    let all = everything(scene);
    for secret in secrets() {
        assert!(!all.contains(&secret), "{secret} is stored");
    }
}

async fn scene(mode: RequestMode) -> Scene {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.interceptor.set_mode(None, Some(mode));
    scene
}

/// Sends a request, and resumes it if it is held.
async fn pass(scene: &Scene, mode: RequestMode, request: http::Request<Full<bytes::Bytes>>) {
    let answer = if mode == RequestMode::Off {
        scene.send(request).await
    } else {
        let (id, sent) = scene.paused(request).await;
        scene.resume(id);
        sent.answer().await
    };
    assert_eq!(answer.status(), 200);
    let _ = body(answer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_sent_exactly_and_recorded_masked() {
    for api in Api::ALL {
        for mode in [RequestMode::Off, RequestMode::InterceptAlways] {
            let scene = scene(mode).await;
            let mut request = with_credentials(api);
            for number in 1..4 {
                pass(&scene, mode, scene.request(api, &request)).await;
                let exact = request.to_string();
                let received = scene.model.received().pop().unwrap();
                assert_eq!(received.raw, exact.as_bytes(), "{api:?} {mode:?}");
                let record = scene.interceptor.record(number).unwrap().received.body;
                assert_eq!(recorded(&scene, &record), masked(&exact), "{api:?} {mode:?} {number}");
                assert_eq!(record.redacted, 4);
                let mut names: Vec<&str> = record.redactions.iter().map(|one| one.name.as_str()).collect();
                names.sort_unstable();
                assert_eq!(names, ["X-Api-Key", "authorization_token", "github_token", "password"]);
                request = next_turn(api, &request, "And then?");
            }
            assert_no_secret(&scene);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_in_a_compressed_body_are_masked() {
    for mode in [RequestMode::Off, RequestMode::InterceptAlways] {
        let scene = scene(mode).await;
        let exact = with_credentials(API).to_string();
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(exact.as_bytes()).unwrap();
        let packed = packer.finish().unwrap();
        let mut request = scene.request(API, &Value::Null);
        request.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
        *request.body_mut() = Full::from(packed.clone());
        pass(&scene, mode, request).await;
        assert_eq!(scene.model.received()[0].raw, packed);
        assert_eq!(recorded(&scene, &scene.interceptor.record(1).unwrap().received.body), masked(&exact));
        assert_no_secret(&scene);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_credential_is_sent_exactly_and_recorded_masked() {
    let scene = scene(RequestMode::InterceptAlways).await;
    let mut request = with_credentials(API);
    request["mcp_servers"][0]["authorization_token"] = json!("the old one");
    let (id, sent) = scene.paused(scene.request(API, &request)).await;
    scene.set(id, TOKEN_AT, TOKEN);
    scene.set(id, text_path(API), &format!("Say {}.", shaped()));
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    let received = scene.model.received()[0].body.clone();
    assert_eq!(received["mcp_servers"][0]["authorization_token"], TOKEN);
    assert_eq!(received["messages"][0]["content"][0]["text"], format!("Say {}.", shaped()));
    let record = scene.interceptor.record(id).unwrap();
    assert_eq!(recorded(&scene, record.sent.as_ref().unwrap()), masked(&received.to_string()));
    assert_eq!(record.patch.as_ref().unwrap().redacted, 2);
    assert_no_secret(&scene);
    assert!(!everything(&scene).contains("the old one"));
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_after_restart_needs_masked_values() {
    let scene = scene(RequestMode::Off).await;
    let request = with_credentials(API);
    pass(&scene, RequestMode::Off, scene.request(API, &request)).await;
    for which in [ReplayForm::AsReceived, ReplayForm::AsSent] {
        let replayed = scene.proxy.replay(1, which).await.unwrap();
        assert_eq!(replayed.status, 200);
        assert_eq!(scene.model.received().pop().unwrap().raw, request.to_string().as_bytes());
    }
    assert_no_secret(&scene);
    let scene = scene.again(settings()).await;
    let sent = scene.model.received().len();
    let error = scene.proxy.replay(1, ReplayForm::AsSent).await.unwrap_err();
    assert!(matches!(&error, ReplayError::Redacted { request: 1, .. }), "{error}");
    assert!(error.to_string().contains(TOKEN_AT), "{error}");
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert!(error.hint().unwrap().contains("let the agent send the request again"));
    assert_eq!(scene.model.received().len(), sent, "nothing was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_with_a_credential_is_not_handed_over() {
    for ends in [EngineEnd::Stopped, EngineEnd::Killed] {
        let scene = scene(RequestMode::InterceptAlways).await;
        let request = with_credentials(API);
        let (first, _sent) = scene.paused(scene.request(API, &request)).await;
        scene.set(first, TOKEN_AT, "another-token-1");
        let scene = scene.again_after(ends, settings()).await;
        let (second, sent) = scene.paused(scene.request(API, &request)).await;
        assert_eq!(scene.interceptor.record(second).unwrap().inherits, Some(first), "{ends:?}");
        let saved = scene.interceptor.edit_status(second).unwrap().1;
        assert!(
            saved.skipped.iter().any(|edit| edit
                .reason
                .as_deref()
                .unwrap_or_default()
                .contains("`authorization_token`")),
            "{saved:?}"
        );
        scene.resume(second);
        let _ = body(sent.answer().await).await;
        assert_eq!(scene.model.received()[0].raw, request.to_string().as_bytes(), "as it came, without fillers");
        assert!(!everything(&scene).contains("another-token-1"));
        let error = scene.proxy.replay(first, ReplayForm::AsSent).await.unwrap_err();
        assert!(matches!(error, ReplayError::Redacted { .. }), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_with_a_credential_is_saved_in_no_file() {
    let scene = scene(RequestMode::InterceptAlways).await;
    let (id, sent) = scene.paused(scene.request(API, &with_credentials(API))).await;
    let said = format!("Say {}.", shaped());
    let edit = Edit::Set { at: EditTarget::Path(text_path(API).to_owned()), value: said.clone() };
    let error = scene.interceptor.edit(id, &edit, ApplyScope::FromNowOn(Scope::Workspace), now()).unwrap_err();
    assert!(error.to_string().contains("contains a credential"), "{error}");
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    // The edit stays in memory for the rest of the turn.
    let (id, sent) = scene.paused(scene.request(API, &with_credentials(API))).await;
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert_eq!(scene.model.received()[1].body["messages"][0]["content"][0]["text"], said);
    assert_no_secret(&scene);
}

#[tokio::test(flavor = "multi_thread")]
async fn credential_in_an_answer_is_passed_on_and_recorded_masked() {
    for api in Api::ALL {
        for stream in [true, false] {
            let call = Turn::calls("Bash", json!({"command": shaped(), "password": "hunter2-hunter2"}));
            let scene = Scene::new(settings(), ModelServer::start([Turn::says(&shaped()), call])).await;
            let mut request = turn(api, "hi");
            if api != Api::Gemini {
                request["stream"] = Value::Bool(stream);
            }
            for number in 1..3 {
                let answer = body(scene.send(scene.request(api, &request)).await).await;
                let record = scene.interceptor.record(number).unwrap().answer.unwrap();
                let kept = recorded(&scene, &record.body);
                assert_eq!(kept.len(), answer.len());
                assert!(record.body.redacted > 0, "{api:?} {stream} {answer}");
                // The concatenated deltas contain no credential either.
                let said = format!("{:?}", collect::from_stream(api, kept.as_bytes()).blocks);
                assert_eq!(said, masked(&said));
                assert!(format!("{:?}", collect::from_stream(api, answer.as_bytes()).blocks) != said || !stream);
            }
            assert_no_secret(&scene);
        }
    }
}
