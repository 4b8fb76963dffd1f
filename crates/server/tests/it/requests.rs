//! `RequestService` serves persons only, and names invalid fields.

use sayso_api::client::UpstreamUrls;
use sayso_api::request::DetailQuery;
use sayso_server::agent_registry::AgentRegistry;
use serde_json::Value;

use crate::agents::{WAYS, assert_refused, call};
use crate::scene::Scene;

/// Every method with a valid message, in the order of the proto file.
const CALLS: [(&str, &str); 20] = [
    ("ListRequests", "{}"),
    ("ShowRequest", r#"{"request":"1"}"#),
    ("GetRequestBody", r#"{"request":"1"}"#),
    ("EditRequest", r#"{"request":"1","append":"x"}"#),
    ("DiffRequest", r#"{"request":"1"}"#),
    ("ResumeRequest", r#"{"request":"1"}"#),
    ("CancelRequest", r#"{"request":"1"}"#),
    ("GetModes", "{}"),
    ("SetMode", r#"{"mode":"REQUEST_MODE_OFF","held_requests":"HELD_REQUESTS_RESUME"}"#),
    ("PauseNext", "{}"),
    ("CaptureNext", "{}"),
    ("ListOverrides", "{}"),
    ("SaveOverrides", r#"{"request":"1"}"#),
    ("RemoveOverrides", r#"{"scope":"OVERRIDE_SCOPE_GLOBAL"}"#),
    ("ListSubagents", "{}"),
    ("ReplayRequest", r#"{"request":"1"}"#),
    ("GetCost", "{}"),
    ("OpenEndpoint", "{}"),
    ("GetPersistentEndpoint", "{}"),
    ("CloseEndpoint", r#"{"capability":"x"}"#),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_cannot_call_request_service() {
    let scene = Scene::new();
    let server = scene.serve();
    let known = protocol_methods();
    let named: Vec<&str> = CALLS.iter().map(|(name, _)| *name).collect();
    assert_eq!(named, known, "the table lists every method");
    let registration = AgentRegistry::new(&scene.home()).register(None, &scene.journal()).unwrap();
    for (name, body) in CALLS {
        for way in WAYS {
            let output = call(&server, way, &format!("RequestService/{name}"), body, &[]);
            assert_refused(&output, &format!("{name} {way:?}"));
        }
    }
    registration.unregister();
    // No call took effect, and a person may make them.
    let modes = server.verdict_client().request_modes().await.unwrap();
    assert!(!modes.default_state.pause_next && !modes.default_state.capture_next, "{modes:?}");
}

/// Methods of the proto file, in its order.
fn protocol_methods() -> Vec<String> {
    let text = include_str!("../../../../proto/sayso/v1/request_service.proto");
    let calls = text.lines().filter_map(|line| line.trim().strip_prefix("rpc ")?.split('(').next());
    calls.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_request_field_is_named_in_error() {
    let scene = Scene::new();
    let server = scene.serve();
    for (name, body, field) in [
        ("SetMode", "{}", "mode"),
        ("SetMode", r#"{"mode":"REQUEST_MODE_OFF"}"#, "held_requests"),
        ("RemoveOverrides", "{}", "scope"),
        ("RemoveOverrides", r#"{"scope":"OVERRIDE_SCOPE_SESSION"}"#, "session"),
        ("EditRequest", r#"{"request":"1"}"#, "edit"),
        ("EditRequest", r#"{"request":"1","delete":{"section":"x"}}"#, "delete.section"),
        ("EditRequest", r#"{"request":"1","set":{"value":"x"}}"#, "set.target"),
    ] {
        let output = call(&server, WAYS[0], &format!("RequestService/{name}"), body, &[]);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["code"], "invalid_argument", "{name} {body}: {said}");
        let message = said["message"].as_str().unwrap();
        assert!(
            message.starts_with(&format!("cannot read field `{field}` of the message")),
            "{name} {body}: {message}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoint_opens_and_closes_with_run() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let upstreams = UpstreamUrls::new();
    let opened = client.open_endpoint(Some("claude"), &upstreams).await.unwrap();
    assert_eq!(opened.url, Some(format!("http://{}/p/{}", server.address, opened.capability)));
    assert!(opened.capability.starts_with(&opened.run));
    let first = client.persistent_endpoint(Some("claude"), &upstreams).await.unwrap();
    let again = client.persistent_endpoint(Some("claude"), &upstreams).await.unwrap();
    assert_eq!(first.capability, again.capability);
    for (capability, closed) in [(&opened.capability, true), (&opened.capability, false), (&first.capability, false)] {
        assert_eq!(client.close_endpoint(capability).await.unwrap(), closed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_request_differs_from_unheld_one() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let error = client.show_request(7, &DetailQuery::default()).await.unwrap_err();
    assert!(error.to_string().contains('7'), "{error}");
    assert_eq!(error.hint(), Some("`sayso request list` lists them"));
    let resumed = client.resume_request(7, None).await;
    assert_eq!(resumed.unwrap_err().to_string(), error.to_string());
}
