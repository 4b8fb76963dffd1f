//! Edits of a request stay for the rest of its turn.

use sayso_proxy::desk::{Edit, FromNowOn, Once};
use sayso_review::RequestMode;
use sayso_testkit::model::{ModelServer, Turn};
use sayso_wire::stream::Api;
use serde_json::{Value, json};

use crate::scene::{Scene, body, next_turn, now, said_at, settings, turn};

const SAID: &str = "Drop the table.";
const MEANT: &str = "Count the rows.";

/// The next request of the same turn: the model called a tool, which answered.
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
    scene.desk.arm(None, Once::Pause);
    let (id, sent) = scene.paused(scene.request(api, &turn(api, SAID))).await;
    scene.set(id, said_at(api), MEANT);
    let resumed = scene.desk.resume(id, sayso_proxy::desk::Expected::Any, now()).unwrap();
    assert_eq!(resumed.turn_edits, 1);
    let _ = body(sent.answer().await).await;
    scene
}

async fn send(scene: &Scene, api: Api, request: &Value) -> String {
    let _ = body(scene.send(scene.request(api, request)).await).await;
    String::from_utf8(scene.model.received().pop().unwrap().raw.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_is_made_again_until_the_next_prompt() {
    for api in Api::ALL {
        let scene = edited(api).await;
        let second = next_step(api, &turn(api, SAID));
        let got = send(&scene, api, &second).await;
        assert_eq!(got, second.to_string().replace(SAID, MEANT), "{api:?}");
        let record = scene.desk.record(2).unwrap();
        let made = record.saved.turn.unwrap();
        assert_eq!((made.from, made.applied.len(), made.dropped.len()), (1, 1, 0), "{api:?}");
        let next = next_turn(api, &second, "Go on.");
        assert_eq!(send(&scene, api, &next).await, next.to_string(), "{api:?}: another turn");
        // Nothing is left to look out for.
        scene.until("requests pass as they come", || scene.desk.is_quiet()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_is_shown_in_the_next_request_that_pauses() {
    let api = Api::AnthropicMessages;
    let scene = edited(api).await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let second = next_step(api, &turn(api, SAID));
    let (id, sent) = scene.paused(scene.request(api, &second)).await;
    let shown = scene.desk.look(id, |looked| looked.request.to_bytes().into_owned()).unwrap();
    assert_eq!(String::from_utf8(shown).unwrap(), second.to_string().replace(SAID, MEANT));
    // Taken back here, it is taken back for the rest of the turn.
    scene.desk.edit(id, &Edit::Reset, FromNowOn::No, now()).unwrap();
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    scene.desk.set_mode(None, Some(RequestMode::Off));
    let third = next_step(api, &second);
    assert_eq!(send(&scene, api, &third).await, third.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_whose_text_is_gone_is_dropped_and_said() {
    let api = Api::AnthropicMessages;
    let scene = edited(api).await;
    let compacted = turn(api, "A summary of all that was said.");
    assert_eq!(send(&scene, api, &compacted).await, compacted.to_string());
    let made = scene.desk.record(2).unwrap().saved.turn.unwrap();
    assert!(made.dropped[0].contains("no longer in the request"), "{made:?}");
    let back = next_step(api, &turn(api, SAID));
    assert_eq!(send(&scene, api, &back).await, back.to_string(), "it was dropped for good");
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_of_another_session_or_of_a_title_changes_nothing() {
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
async fn edit_stays_for_its_turn_at_the_next_engine() {
    let api = Api::AnthropicMessages;
    let scene = edited(api).await;
    scene.desk.settle();
    let scene = scene.again(settings()).await;
    let second = next_step(api, &turn(api, SAID));
    assert_eq!(send(&scene, api, &second).await, second.to_string().replace(SAID, MEANT));
}
