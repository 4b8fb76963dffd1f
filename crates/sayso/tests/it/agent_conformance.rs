//! The official Connect clients from npm run whole invocations of the built-in agent, and answer its requests to surfaces.

use sayso_testkit::model::{ModelServer, Turn};
use sayso_testkit::skip::skip;
use serde_json::{Value, json};

use crate::Scene;
use crate::conformance::official;
use crate::served::Served;

const TRANSPORTS: [&str; 4] =
    ["connect-node Connect 1.1 JSON", "connect-node gRPC 2", "connect-web Connect JSON", "connect-web gRPC-Web"];

/// Returns the payload of the first event of a kind.
fn payload<'e>(events: &'e Value, kind: &str) -> &'e Value {
    let found = events.as_array().unwrap().iter().find_map(|event| event.get(kind));
    found.unwrap_or_else(|| panic!("no {kind} in {events:#}"))
}

#[test]
fn official_clients_answer_agent_requests() {
    let place = match official() {
        Ok(place) => place,
        Err(missing) => return skip(format!("the official clients: {missing}")),
    };
    let scene = Scene::new(&[("notes.txt", b"from disk\n")]);
    scene.configure("[[rule]]\nrun = [\"echo\"]\nthen = \"allow\"\n");
    let turns = TRANSPORTS.iter().flat_map(|_| {
        [
            Turn::calls("Read", json!({"path": "notes.txt", "offset": 1, "limit": 200})),
            Turn::says("I read it."),
            Turn::calls("Exec", json!({"command": "echo hello", "in_user_terminal": true})),
            Turn::says("It ran."),
        ]
    });
    let model = ModelServer::start(turns);
    let engine = Served::start_with(&scene, &[("SAYSO_ANTHROPIC_UPSTREAM", &model.url())]);
    let server = json!({ "url": engine.text("url"), "login": scene.json(&["login", "--json"]).0["login"] });
    let input = json!({ "server": server, "transports": TRANSPORTS }).to_string();
    let output = place.run("agent.mjs", &[], input.as_bytes());
    let results: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), TRANSPORTS.len(), "{output:?}");
    for result in &results {
        let transport = &result["transport"];
        // The payloads of the seed's appendix, in the JSON of the protocol.
        let read = payload(&result["reads"], "requestFileRead");
        assert_eq!((&read["path"], &read["offset"], &read["limit"]), (&json!("notes.txt"), &json!(1), &json!(200)));
        assert!(read["requestId"].is_string() && read["reason"].is_string(), "{transport}: {read}");
        let shown = payload(&result["reads"], "toolResult")["text"].as_str().unwrap();
        assert!(shown.contains("from the editor"), "{transport}: {shown}");
        let command = payload(&result["runs"], "executeCommandRequest");
        assert_eq!((&command["command"], &command["reveal"]), (&json!("echo hello"), &json!(true)), "{transport}");
        let ran = payload(&result["runs"], "toolResult")["text"].as_str().unwrap();
        assert!(ran.contains("from the terminal") && ran.contains("Exit code: 0"), "{transport}: {ran}");
        for events in [&result["reads"], &result["runs"]] {
            assert_eq!(payload(events, "finished")["reason"], "REASON_COMPLETED", "{transport}");
        }
    }
}
