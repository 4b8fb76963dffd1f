//! The payloads of the event contracts of seed 003, as the real server sends and accepts them over Connect with JSON.
//!
//! The snapshot is the contract: field names, values and what is absent. Ids and times are replaced.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use sayso_testkit::model::{ModelServer, Turn};
use serde_json::{Map, Value, json};

use crate::agent_actions::approve;
use crate::scene::{Running, Scene};

const FILE: &str = "src/main.ts";

fn curl(engine: &Running, method: &str, content_type: &str) -> Child {
    let mut command = Command::new("curl");
    command
        .args(["-sS", "-N", "-m", "60", "--data-binary", "@-", "-H", &format!("content-type: {content_type}")])
        .args(["-H", &format!("authorization: Bearer {}", engine.login)])
        .arg(format!("http://{}/sayso.v1.AgentService/{method}", engine.address));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Calls a method and returns its response.
fn call(engine: &Running, method: &str, body: &Value) -> Value {
    let mut curl = curl(engine, method, "application/json");
    curl.stdin.take().unwrap().write_all(body.to_string().as_bytes()).unwrap();
    let output = curl.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The events of an invocation.
struct Events {
    curl: Child,
    output: ChildStdout,
}

impl Events {
    fn invoke(engine: &Running, session: &str, prompt: &str) -> Self {
        let body = json!({ "session": session, "prompt": prompt }).to_string();
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let mut curl = curl(engine, "Invoke", "application/connect+json");
        curl.stdin.take().unwrap().write_all(&[&[0], &length[..], body.as_bytes()].concat()).unwrap();
        let output = curl.stdout.take().unwrap();
        Self { curl, output }
    }

    /// Reads up to the next event with this member.
    fn until(&mut self, member: &str) -> Value {
        loop {
            let mut head = [0; 5];
            self.output.read_exact(&mut head).unwrap_or_else(|error| panic!("no `{member}`: {error}"));
            let mut message = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize];
            self.output.read_exact(&mut message).unwrap();
            assert_eq!(head[0], 0, "no `{member}`: {}", String::from_utf8_lossy(&message));
            let message: Value = serde_json::from_slice(&message).unwrap();
            if let Some(found) = message["event"].get(member) {
                return found.clone();
            }
        }
    }

    fn end(mut self) {
        self.until("finished");
        std::io::copy(&mut self.output, &mut std::io::sink()).unwrap();
        assert!(self.curl.wait().unwrap().success());
    }
}

fn start(engine: &Running, scenario: &str) -> String {
    let settings =
        json!({"model": "test", "dialect": "anthropic-messages", "upstream": "anthropic", "scenario": scenario});
    let started = call(engine, "StartSession", &json!({ "settings": settings }));
    started["session"]["session"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
}

/// Replaces ids and times.
fn stable(mut payload: Value) -> Value {
    for (name, stable) in [("requestId", "REQUEST"), ("request_id", "REQUEST"), ("deadlineMs", "TIME")] {
        if let Some(value) = payload.get_mut(name) {
            *value = json!(stable);
        }
    }
    payload
}

/// Submits an answer as in the seed, and returns it with the response.
fn submit(engine: &Running, session: &str, member: &str, answer: Value) -> Value {
    let event = Map::from_iter([(member.to_owned(), answer.clone())]);
    let response = call(engine, "SubmitClientEvent", &json!({ "session": session, "event": event }));
    json!({ "event": stable(answer), "response": response })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn payloads_match_event_contracts() {
    let update = json!({"path": FILE, "operation": "update", "new_content": "let one = 1;\n"});
    let model = ModelServer::start([
        Turn::calls("Read", json!({"path": FILE, "offset": 1, "limit": 200})),
        Turn::calls("ProposeChanges", json!({ "changes": [update] })),
        Turn::says("Proposed."),
        Turn::calls("Exec", json!({"command": "npm install", "description": "install", "in_user_terminal": true})),
        Turn::says("Sent."),
    ]);
    let scene = Scene::new();
    std::fs::create_dir(scene.root().join("src")).unwrap();
    std::fs::write(scene.root().join(FILE), "let one = 0;\n").unwrap();
    let engine = scene.serve_with_model(model.url());

    let session = start(&engine, "EDITOR_CODE");
    let mut events = Events::invoke(&engine, &session, "Fix it");
    let read = events.until("requestFileRead");
    let answer =
        json!({"request_id": read["requestId"], "path": FILE, "content": "let one = 0;\n", "encoding": "utf-8"});
    let read_response = submit(&engine, &session, "file_read_response", answer);
    let proposed = events.until("proposedChanges");
    events.end();
    // The tool result as the model gets it.
    let result = model.received().pop().unwrap().tool_results().pop().unwrap();
    let result: Value = serde_json::from_str(&result.text).unwrap();

    let session = start(&engine, "CODE");
    let mut events = Events::invoke(&engine, &session, "Install");
    let change = loop {
        if let Some(change) = events.until("status")["change"].as_str() {
            break change.parse().unwrap();
        }
    };
    approve(&engine.verdict_client(), change).await;
    let command = events.until("executeCommandRequest");
    let answer = json!({"request_id": command["requestId"], "terminal_id": "vscode-terminal-1", "status": "SENT"});
    let command_response = submit(&engine, &session, "command_dispatch_response", answer);
    events.end();

    let payloads = json!({
        "ProposeChanges result": result,
        "ProposedChanges": proposed,
        "RequestFileRead": stable(read),
        "FileReadResponse": read_response,
        "ExecuteCommandRequest": stable(command),
        "CommandDispatchResponse": command_response,
    });
    insta::assert_snapshot!("agent_payloads", serde_json::to_string_pretty(&payloads).unwrap());
}
