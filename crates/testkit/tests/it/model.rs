//! The scripted model, asked by hand; the real agents ask it in the tests of `adapters`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use sayso_testkit::model::{ModelServer, SIDE_TEXT, Turn};
use serde_json::{Value, json};

/// Sends a request and returns the head and the body of the answer.
fn send(server: &ModelServer, head: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    write!(stream, "{head}\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn post(server: &ModelServer, path: &str, body: &Value) -> String {
    let (head, answer) = send(server, &format!("POST {path} HTTP/1.1"), &body.to_string());
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    answer
}

/// The events of a stream, each of which must carry its name twice.
fn events(stream: &str) -> Vec<Value> {
    let event = |text: &str| {
        let (name, data) = text.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
        data
    };
    stream.split_terminator("\n\n").map(event).collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    let mut names: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    names.dedup();
    names
}

fn joined(events: &[Value], name: &str, piece: impl Fn(&Value) -> &Value) -> String {
    let pieces: Vec<&str> =
        events.iter().filter(|event| event["type"] == name).map(|event| piece(event).as_str().unwrap()).collect();
    assert!(pieces.len() > 1, "it comes in several pieces");
    pieces.concat()
}

fn long_input() -> Value {
    json!({"file_path": "/w/a.txt", "content": "a line of some length, with ümläuts\n"})
}

#[test]
fn requests_with_tools_get_the_turns_in_order_and_others_use_none_up() {
    let server = ModelServer::start([Turn::says("one"), Turn::says("two")]);
    let ask = |tools: Value| post(&server, "/v1/messages?beta=true", &json!({"tools": tools, "messages": []}));
    assert!(ask(json!([{"name": "Write"}])).contains("one"));
    assert!(ask(json!([])).contains(SIDE_TEXT));
    assert_eq!(server.turns_left(), 1);
    assert!(ask(json!([{"name": "Write"}])).contains("two"));
    assert!(ask(json!([{"name": "Write"}])).contains(SIDE_TEXT), "beyond the script");
    assert_eq!((server.requests().len(), server.received().len()), (3, 4));
    assert_eq!(server.requests()[0]["tools"][0]["name"], "Write");
}

#[test]
fn a_stream_of_messages_has_its_events_in_order_and_the_input_in_pieces() {
    let server =
        ModelServer::start([Turn::says("a text that is longer than one piece").and_calls("Write", long_input())]);
    let body = json!({"stream": true, "tools": [{"name": "Write"}]});
    let events = events(&post(&server, "/v1/messages?beta=true", &body));
    assert_eq!(
        names(&events),
        [
            "message_start",
            "ping",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    let of = |index: u64| events.iter().filter(|event| event["index"] == index).cloned().collect::<Vec<_>>();
    assert_eq!(of(1)[0]["content_block"]["input"], json!({}), "a call starts empty");
    assert_eq!(
        joined(&of(0), "content_block_delta", |event| &event["delta"]["text"]),
        "a text that is longer than one piece"
    );
    let input = joined(&of(1), "content_block_delta", |event| &event["delta"]["partial_json"]);
    assert_eq!(serde_json::from_str::<Value>(&input).unwrap(), long_input());
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn a_stream_of_responses_has_its_events_in_order_and_patches_as_text() {
    let patch = "*** Begin Patch\n*** Add File: hello.txt\n+hello\n*** End Patch\n";
    let turn = Turn::calls("apply_patch", patch).and_calls("exec_command", json!({"cmd": "echo hello > hello.txt"}));
    let server = ModelServer::start([turn]);
    let events = events(&post(&server, "/v1/responses", &json!({"stream": true, "tools": [{"type": "custom"}]})));
    assert_eq!(
        names(&events),
        [
            "response.created",
            "response.output_item.added",
            "response.custom_tool_call_input.delta",
            "response.custom_tool_call_input.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
    assert_eq!(joined(&events, "response.custom_tool_call_input.delta", |event| &event["delta"]), patch);
    let arguments = joined(&events, "response.function_call_arguments.delta", |event| &event["delta"]);
    assert_eq!(serde_json::from_str::<Value>(&arguments).unwrap()["cmd"], "echo hello > hello.txt");
    let output = &events.last().unwrap()["response"]["output"];
    assert_eq!((&output[0]["type"], &output[1]["type"]), (&json!("custom_tool_call"), &json!("function_call")));
}

#[test]
fn what_agents_ask_besides_is_answered() {
    let server = ModelServer::start([]);
    let status = |head: &str| send(&server, head, "").0.lines().next().unwrap().to_owned();
    assert!(status("HEAD / HTTP/1.1").contains("200"));
    assert!(status("GET /api/hello HTTP/1.1").contains("200"));
    assert!(status("GET /v1/models?x=1 HTTP/1.1").contains("200"));
    assert!(status("GET /v1/responses HTTP/1.1\r\nconnection: Upgrade\r\nupgrade: websocket").contains("426"));
    assert!(status("GET /v1/unheard-of HTTP/1.1").contains("404"));
    let counted: Value =
        serde_json::from_str(&post(&server, "/v1/messages/count_tokens?beta=true", &json!({}))).unwrap();
    assert!(counted["input_tokens"].is_u64());
    assert_eq!(server.requests(), Vec::<Value>::new());
}

#[test]
fn a_body_in_chunks_is_read() {
    let server = ModelServer::start([Turn::says("one")]);
    let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    let head = "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    write!(stream, "{head}A\r\n{{\"tools\":[\r\n5\r\n{{}}]}}\r\n0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("one"), "{answer}");
    assert_eq!(server.requests(), [json!({"tools": [{}]})]);
}
