//! Requests to models are for persons: whoever speaks for an agent neither reads nor resumes one, and opens no entrance.

use sayso_api::proto;
use sayso_server::agents::Notes;
use serde_json::Value;

use crate::agents::{WAYS, assert_refused, call};
use crate::scene::Scene;

/// Every call of the service, with something that would be understood.
const CALLS: [(&str, &str); 19] = [
    ("ListRequests", "{}"),
    ("ShowRequest", r#"{"request":"1"}"#),
    ("GetRequestBody", r#"{"request":"1"}"#),
    ("EditRequest", r#"{"request":"1","append":"x"}"#),
    ("DiffRequest", r#"{"request":"1"}"#),
    ("ResumeRequest", r#"{"request":"1"}"#),
    ("CancelRequest", r#"{"request":"1"}"#),
    ("GetModes", "{}"),
    ("SetMode", r#"{"mode":"REQUEST_MODE_OFF","waiting":"WAITING_REQUESTS_RESUME"}"#),
    ("PauseNext", "{}"),
    ("CaptureNext", "{}"),
    ("ListOverrides", "{}"),
    ("SaveOverrides", r#"{"request":"1"}"#),
    ("RemoveOverrides", r#"{"scope":"OVERRIDE_SCOPE_GLOBAL"}"#),
    ("ListSubagents", "{}"),
    ("ReplayRequest", r#"{"request":"1"}"#),
    ("OpenEntrance", "{}"),
    ("LastingEntrance", "{}"),
    ("CloseEntrance", r#"{"capability":"x"}"#),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_uses_no_call_of_the_request_service() {
    let scene = Scene::new();
    let server = scene.serve();
    let known = sayso_api_methods();
    let named: Vec<&str> = CALLS.iter().map(|(name, _)| *name).collect();
    assert_eq!(named, known, "every call is tried");
    let registered = Notes::new(&scene.home()).register(None, &scene.journal()).unwrap();
    for (name, body) in CALLS {
        for way in WAYS {
            let output = call(&server, way, &format!("RequestService/{name}"), body, &[]);
            assert_refused(&output, &format!("{name} {way:?}"));
        }
    }
    registered.finished();
    // Nothing of it has happened, and a person may do all of it.
    let modes = server.near().request_modes(proto::GetModesRequest::default()).await.unwrap();
    assert_eq!(modes.all.as_option().map(|all| all.pause_next || all.capture_next), Some(false));
}

/// The calls that the protocol has, in its order.
fn sayso_api_methods() -> Vec<String> {
    let text = include_str!("../../../../proto/sayso/v1/request_service.proto");
    let calls = text.lines().filter_map(|line| line.trim().strip_prefix("rpc ")?.split('(').next());
    calls.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_understood_names_the_field() {
    let scene = Scene::new();
    let server = scene.serve();
    for (name, body, field) in [
        ("SetMode", "{}", "mode"),
        ("SetMode", r#"{"mode":"REQUEST_MODE_OFF"}"#, "waiting"),
        ("RemoveOverrides", "{}", "scope"),
        ("RemoveOverrides", r#"{"scope":"OVERRIDE_SCOPE_SESSION"}"#, "session"),
        ("EditRequest", r#"{"request":"1"}"#, "edit"),
        ("EditRequest", r#"{"request":"1","delete":{"section":"x"}}"#, "delete.section"),
        ("EditRequest", r#"{"request":"1","set":{"value":"x"}}"#, "set.at"),
    ] {
        let output = call(&server, WAYS[0], &format!("RequestService/{name}"), body, &[]);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["code"], "invalid_argument", "{name} {body}: {said}");
        let message = said["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("`{field}` of the message")), "{name} {body}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entrance_is_opened_for_a_run_and_closed_with_it() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.near();
    let request = proto::OpenEntranceRequest { agent: Some("claude".to_owned()), ..Default::default() };
    let opened = client.open_entrance(request).await.unwrap().entrance.into_option().unwrap();
    assert_eq!(opened.url, Some(format!("http://{}/p/{}", server.address, opened.capability)));
    assert!(opened.capability.starts_with(&opened.run));
    let lasting = proto::LastingEntranceRequest { agent: Some("claude".to_owned()), ..Default::default() };
    let first = client.lasting_entrance(lasting.clone()).await.unwrap().entrance.into_option().unwrap();
    let again = client.lasting_entrance(lasting).await.unwrap().entrance.into_option().unwrap();
    assert_eq!(first.capability, again.capability);
    for (capability, closed) in [(&opened.capability, true), (&opened.capability, false), (&first.capability, false)] {
        let request = proto::CloseEntranceRequest { capability: capability.clone(), ..Default::default() };
        assert_eq!(client.close_entrance(request).await.unwrap().closed, closed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_there_is_not_is_told_from_one_that_does_not_wait() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.near();
    let error = client.show_request(proto::ShowRequestRequest { request: 7, ..Default::default() }).await.unwrap_err();
    assert!(error.to_string().contains('7'), "{error}");
    assert_eq!(error.hint(), Some("`sayso request list` lists them"));
    let resumed = client.resume_request(proto::ResumeRequestRequest { request: 7, ..Default::default() }).await;
    assert_eq!(resumed.unwrap_err().to_string(), error.to_string());
}
