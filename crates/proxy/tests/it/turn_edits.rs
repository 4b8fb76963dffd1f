//! Edits that stay for the rest of a turn.

use sayso_proxy::interceptor::{ApplyScope, Edit, OneShot};
use sayso_review::RequestMode;
use sayso_testkit::model::{ModelServer, Turn};
use sayso_wire::stream::Api;
use serde_json::{Value, json};

use crate::scene::{Scene, body, next_turn, now, settings, text_path, turn};

const SAID: &str = "Drop the table.";
const MEANT: &str = "Count the rows.";

/// The next request of the same turn, with a tool call and its result.
fn next_step(api: Api, before: &Value) -> Value {
    let mut body = before.clone();
    let (name, items) = match api {
        Api::AnthropicMessages => (
            "messages",
            vec![
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "file"},
                    {"type": "text", "text": "a reminder of the agent"}]}),
            ],
        ),
        Api::OpenAiChat => (
            "messages",
            vec![
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": "t1", "type": "function",
                    "function": {"name": "Read", "arguments": "{}"}}]}),
                json!({"role": "tool", "tool_call_id": "t1", "content": "file"}),
            ],
        ),
        Api::OpenAiResponses => (
            "input",
            vec![
                json!({"type": "function_call", "call_id": "t1", "name": "Read", "arguments": "{}"}),
                json!({"type": "function_call_output", "call_id": "t1", "output": "file"}),
            ],
        ),
        Api::Gemini => (
            "contents",
            vec![
                json!({"role": "model", "parts": [{"functionCall": {"name": "Read", "args": {}}}]}),
                json!({"role": "user", "parts": [{"functionResponse": {"name": "Read", "response": {"output": "file"}}}]}),
            ],
        ),
    };
    body[name].as_array_mut().unwrap().extend(items);
    body
}

/// A scene in which the first request of a turn was edited and resumed.
async fn edited(api: Api) -> Scene {
    let scene = Scene::new(settings(), ModelServer::start([(); 8].map(|()| Turn::says("ok")))).await;
    scene.interceptor.arm(None, OneShot::Pause);
    let (id, sent) = scene.paused(scene.request(api, &turn(api, SAID))).await;
    scene.set(id, text_path(api), MEANT);
    let resumed = scene.interceptor.resume(id, sayso_proxy::interceptor::ExpectedRevision::Any, now()).unwrap();
    assert_eq!(resumed.turn_edits, 1);
    let _ = body(sent.answer().await).await;
    scene
}

async fn send(scene: &Scene, api: Api, request: &Value) -> String {
    let _ = body(scene.send(scene.request(api, request)).await).await;
    String::from_utf8(scene.model.received().pop().unwrap().raw.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_is_reapplied_until_next_prompt() {
    for api in Api::ALL {
        let scene = edited(api).await;
        let second = next_step(api, &turn(api, SAID));
        let got = send(&scene, api, &second).await;
        assert_eq!(got, second.to_string().replace(SAID, MEANT), "{api:?}");
        let record = scene.interceptor.record(2).unwrap();
        let made = record.overrides.turn.unwrap();
        assert_eq!((made.from, made.applied.len(), made.dropped.len()), (1, 1, 0), "{api:?}");
        let next = next_turn(api, &second, "Go on.");
        assert_eq!(send(&scene, api, &next).await, next.to_string(), "{api:?}: another turn");
        // No state concerns further requests.
        scene.until("requests pass as they come", || scene.interceptor.is_passthrough()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_appears_in_next_held_request() {
    let api = Api::AnthropicMessages;
    let scene = edited(api).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let second = next_step(api, &turn(api, SAID));
    let (id, sent) = scene.paused(scene.request(api, &second)).await;
    let shown = scene.interceptor.view(id, |looked| looked.request.to_bytes().into_owned()).unwrap();
    assert_eq!(String::from_utf8(shown).unwrap(), second.to_string().replace(SAID, MEANT));
    // Undoing it here ends it for the rest of the turn.
    scene.interceptor.edit(id, &Edit::Reset, ApplyScope::ThisRequest, now()).unwrap();
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    scene.interceptor.set_mode(None, Some(RequestMode::Off));
    let third = next_step(api, &second);
    assert_eq!(send(&scene, api, &third).await, third.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_without_its_text_is_dropped() {
    let api = Api::AnthropicMessages;
    let scene = edited(api).await;
    let compacted = turn(api, "A summary of all that was said.");
    assert_eq!(send(&scene, api, &compacted).await, compacted.to_string());
    let made = scene.interceptor.record(2).unwrap().overrides.turn.unwrap();
    assert!(made.dropped[0].reason.as_deref().unwrap().contains("no longer in the request"), "{made:?}");
    let back = next_step(api, &turn(api, SAID));
    assert_eq!(send(&scene, api, &back).await, back.to_string(), "it was dropped for good");
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_edit_skips_other_session_and_title() {
    let api = Api::AnthropicMessages;
    let scene = edited(api).await;
    let second = next_step(api, &turn(api, SAID));
    let _ = body(scene.send(scene.request_of("s2", api, &second)).await).await;
    assert_eq!(scene.model.received().pop().unwrap().raw, second.to_string().as_bytes());
    let mut title = turn(api, SAID);
    title.as_object_mut().unwrap().remove("tools");
    assert_eq!(send(&scene, api, &title).await, title.to_string());
    assert!(send(&scene, api, &second).await.contains(MEANT));
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_edit_survives_restart() {
    let api = Api::AnthropicMessages;
    let scene = edited(api).await;
    scene.interceptor.flush();
    let scene = scene.again(settings()).await;
    let second = next_step(api, &turn(api, SAID));
    assert_eq!(send(&scene, api, &second).await, second.to_string().replace(SAID, MEANT));
}
