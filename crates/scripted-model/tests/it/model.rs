//! Content of the scripted model's answers, requested by a plain HTTP client. `agents` runs real agents against it.

use std::io::{Read as _, Write as _};

use bytes::Bytes;
use http_body_util::Full;
use sayso_testkit::model::{Answer, ModelServer, Received, SIDE_TEXT, ToolResult, Turn};
use sayso_wire::stream::collect::{BlockContent, from_body, from_stream};
use sayso_wire::stream::{Api, FinishReason, ModelScript, ScriptBlock, ScriptEnding, Usage};
use serde_json::{Value, json};

use super::client::{Http, post, request, send};

/// Returns pairs of paths, for a streamed and a whole answer.
fn routes(api: Api) -> Vec<(&'static str, &'static str)> {
    match api {
        Api::AnthropicMessages => vec![
            ("/v1/messages?beta=true", "/v1/messages"),
            ("/p/abcdef/anthropic/v1/messages", "/p/abcdef/anthropic/v1/messages?beta=true"),
        ],
        Api::OpenAiChat => vec![("/v1/chat/completions", "/chat/completions")],
        Api::OpenAiResponses => vec![("/v1/responses", "/responses")],
        Api::Gemini => vec![
            ("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", "/v1beta/models/x:generateContent"),
            ("/v1/models/gemini-2.5-pro:streamGenerateContent?alt=sse", "/p/a/v1/models/x:generateContent"),
        ],
    }
}

/// Returns a request with one tool in the format of an API.
fn with_a_tool(api: Api, stream: &Value) -> Value {
    match api {
        Api::AnthropicMessages => json!({"stream": stream, "tools": [{"name": "write"}], "messages": []}),
        Api::OpenAiChat => {
            json!({"stream": stream, "tools": [{"type": "function", "function": {"name": "write"}}], "messages": []})
        }
        Api::OpenAiResponses => {
            json!({"stream": stream, "tools": [{"type": "function", "name": "write"}], "input": []})
        }
        Api::Gemini => json!({"tools": [{"functionDeclarations": [{"name": "write"}]}], "contents": []}),
    }
}

fn long_input() -> Value {
    json!({"file_path": "/w/a.txt", "content": "a line of some length, with ümläuts\n"})
}

#[tokio::test]
async fn requests_with_tools_consume_turns_in_order() {
    let server = ModelServer::start([Turn::says("one"), Turn::says("two")]);
    let ask = async |tools: Value| {
        let body = json!({"tools": tools, "messages": []});
        let (status, body) = post(&server, "/v1/messages?beta=true", &body).await;
        assert_eq!(status, 200);
        String::from_utf8(body).unwrap()
    };
    assert!(ask(json!([{"name": "Write"}])).await.contains("one"));
    assert!(ask(json!([])).await.contains(SIDE_TEXT));
    assert_eq!(server.turns_left(), 1);
    assert!(ask(json!([{"name": "Write"}])).await.contains("two"));
    assert!(ask(json!([{"name": "Write"}])).await.contains(SIDE_TEXT), "after the end of the script");
    assert_eq!((server.requests().len(), server.received().len()), (3, 4));
    assert_eq!(server.requests()[0]["tools"][0]["name"], "Write");
}

#[tokio::test]
async fn turn_is_rendered_in_every_api() {
    for api in Api::ALL {
        for (streaming, plain) in routes(api) {
            let turn = Turn::says("a text that is longer than one piece").and_calls("write", long_input());
            let server = ModelServer::start([turn.clone(), turn]);
            let (_, stream) = post(&server, streaming, &with_a_tool(api, &true.into())).await;
            let (_, body) = post(&server, plain, &with_a_tool(api, &false.into())).await;
            assert_eq!(server.turns_left(), 0, "{streaming} {plain}");
            for (number, answer) in [(1, from_stream(api, &stream)), (2, from_body(api, &body).unwrap())] {
                assert_eq!((&answer.problems, &answer.error), (&Vec::new(), &None));
                let BlockContent::Text(text) = &answer.blocks[0].content else { panic!("{answer:?}") };
                assert_eq!(text, "a text that is longer than one piece");
                let BlockContent::ToolCall { id, name, arguments, .. } = &answer.blocks[1].content else {
                    panic!("{answer:?}")
                };
                let prefix = if api == Api::AnthropicMessages { "toolu" } else { "call" };
                assert_eq!((id, name.as_str()), (&format!("{prefix}_{number}_0"), "write"));
                assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), long_input());
            }
        }
    }
}

#[tokio::test]
async fn free_form_tool_and_thought_are_rendered() {
    let patch = "*** Begin Patch\n*** Add File: hello.txt\n+hello\n*** End Patch\n";
    let turn = Turn::calls("apply_patch", patch).after_thinking("hm", Some("sealed"));
    let server = ModelServer::start([turn]);
    let api = Api::OpenAiResponses;
    let (_, stream) = post(&server, "/v1/responses", &with_a_tool(api, &true.into())).await;
    let events = String::from_utf8(stream).unwrap();
    for part in ["custom_tool_call", "\"encrypted_content\":\"sealed\"", "Begin Patch", "response.completed"] {
        assert!(events.contains(part), "{events}");
    }
}

#[tokio::test]
async fn script_is_sent_verbatim() {
    let script = ModelScript {
        id: "msg_own".to_owned(),
        model: "claude-own".to_owned(),
        blocks: vec![ScriptBlock::Text { pieces: vec!["a".to_owned(), "b".to_owned()] }],
        usage: Usage { input: Some(7), output: Some(3), ..Usage::default() },
        ending: ScriptEnding::Finished(FinishReason::MaxTokens),
    };
    let server = ModelServer::start([]);
    server.when(|_| true, script.clone());
    let (_, stream) = post(&server, "/v1/messages", &json!({"stream": true})).await;
    assert_eq!(stream, Api::AnthropicMessages.encode(&script));
}

#[tokio::test]
async fn auxiliary_endpoints_are_answered() {
    let server = ModelServer::start([]);
    let status = async |method: &str, path: &str, upgrade: &str| {
        let mut message = request(&server, method, path, &Value::Null);
        if !upgrade.is_empty() {
            message.headers_mut().insert("connection", "Upgrade".parse().unwrap());
            message.headers_mut().insert("upgrade", upgrade.parse().unwrap());
        }
        send(&server, Http::One, message).await.unwrap().response.status().as_u16()
    };
    assert_eq!(status("HEAD", "/", "").await, 200);
    assert_eq!(status("HEAD", "/api/hello", "").await, 200);
    assert_eq!(status("GET", "/api/hello", "").await, 200);
    assert_eq!(status("GET", "/v1/models?x=1", "").await, 200);
    assert_eq!(status("GET", "/v1/unheard-of", "").await, 404);
    assert_eq!(status("GET", "/v1/responses", "websocket").await, 426);
    server.when(Received::is_upgrade, Answer::status(404, ""));
    assert_eq!(status("GET", "/v1/responses", "websocket").await, 404);
    assert_eq!(server.hits(Received::is_upgrade), 2);
    for (path, key) in [
        ("/v1/messages/count_tokens?beta=true", "input_tokens"),
        ("/v1beta/models/gemini-2.5-pro:countTokens", "totalTokens"),
        ("/v1/responses/input_tokens", "input_tokens"),
    ] {
        let (_, body) = post(&server, path, &json!({"tools": [{}]})).await;
        assert!(serde_json::from_slice::<Value>(&body).unwrap()[key].is_u64(), "{path}");
    }
    assert_eq!(server.requests(), Vec::<Value>::new());
}

#[tokio::test]
async fn compressed_request_is_recorded_raw_and_decoded() {
    let server = ModelServer::start([]);
    let plain = b"{ \"tools\" : [ { } ] }".to_vec();
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&plain).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = zstd::encode_all(&*plain, 0).unwrap();
    // Compressed by Node.
    let brotli = vec![
        0xb, 0xa, 0x80, 0x7b, 0x20, 0x22, 0x74, 0x6f, 0x6f, 0x6c, 0x73, 0x22, 0x20, 0x3a, 0x20, 0x5b, 0x20, 0x7b, 0x20,
        0x7d, 0x20, 0x5d, 0x20, 0x7d, 0x3,
    ];
    for version in [Http::One, Http::Two] {
        for (encoding, body) in [("identity", &plain), ("gzip", &gzip), ("zstd", &zstd), ("br", &brotli)] {
            let mut message = request(&server, "POST", "/a/v1/messages?x=%20y", &Value::Null).map(|_| ());
            message.headers_mut().insert("content-encoding", encoding.parse().unwrap());
            message.headers_mut().append("X-Twice", "1".parse().unwrap());
            message.headers_mut().append("X-Twice", "2".parse().unwrap());
            let message = message.map(|()| Full::new(Bytes::copy_from_slice(body)));
            send(&server, version, message).await.unwrap().rest().await.unwrap();
            let received = server.received().pop().unwrap();
            assert_eq!((received.method.as_str(), received.target.as_str()), ("POST", "/a/v1/messages?x=%20y"));
            assert_eq!(
                received.version,
                if version == Http::One { http::Version::HTTP_11 } else { http::Version::HTTP_2 }
            );
            assert_eq!((&received.raw[..], &received.decoded[..]), (&body[..], &plain[..]), "{encoding}");
            assert_eq!(received.body, json!({"tools": [{}]}));
            let twice = received.headers.iter().filter(|(name, _)| name == "x-twice");
            assert_eq!(twice.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["1", "2"]);
        }
    }
}

#[test]
fn chunked_body_is_read() {
    let server = ModelServer::start([Turn::says("one")]);
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    let head = "POST /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    write!(stream, "{head}A\r\n{{\"tools\":[\r\n4\r\n{{}}]}}\r\n0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("one"), "{answer}");
    assert_eq!(server.requests(), [json!({"tools": [{}]})]);
}

#[tokio::test]
async fn rules_match_requests_by_predicate() {
    let server = ModelServer::start([Turn::says("in order")]);
    server.once(|received| received.last_user_text().contains("busy"), Answer::error(529, "overloaded"));
    server.when(|received| received.tools() == ["subagent"], Turn::says("for the subagent"));
    server.when(|received| received.api() == Some(Api::Gemini), Turn::says("for Gemini"));
    let ask = async |path: &str, body: Value| {
        let (status, body) = post(&server, path, &body).await;
        (status, String::from_utf8(body).unwrap())
    };
    let busy = json!({"tools": [{"name": "x"}], "messages": [{"role": "user", "content": [{"type": "text", "text": "busy"}]}]});
    let (status, body) = ask("/v1/messages", busy.clone()).await;
    assert_eq!((status, body.contains("overloaded_error")), (529, true));
    assert!(ask("/v1/messages", busy).await.1.contains("in order"), "a rule for one request is used up");
    for _ in 0..2 {
        assert!(ask("/v1/messages", json!({"tools": [{"name": "subagent"}]})).await.1.contains("for the subagent"));
    }
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]});
    assert!(ask("/v1beta/models/x:generateContent", contents).await.1.contains("for Gemini"));
    assert_eq!(server.received().last().unwrap().last_user_text(), "hello");
    server.then(Answer::error(429, "slow down").header("retry-after", "3"));
    let message = request(&server, "POST", "/v1/chat/completions", &json!({"tools": [{}]}));
    let answer = send(&server, Http::Two, message).await.unwrap().response;
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"3".parse().unwrap()));
}

#[tokio::test]
async fn tool_results_are_parsed_in_every_api() {
    let server = ModelServer::start([]);
    for (path, body) in [
        (
            "/v1/messages",
            json!({"messages": [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "done"}]}]}]}),
        ),
        ("/v1/chat/completions", json!({"messages": [{"role": "tool", "tool_call_id": "c", "content": "done"}]})),
        ("/v1/responses", json!({"input": [{"type": "custom_tool_call_output", "call_id": "c", "output": "done"}]})),
        (
            "/v1beta/models/x:generateContent",
            json!({"contents": [{"role": "user", "parts": [
            {"functionResponse": {"id": "c", "name": "n", "response": "done"}}]}]}),
        ),
    ] {
        post(&server, path, &body).await;
        let results = server.received().pop().unwrap().tool_results();
        assert_eq!(results, [ToolResult { call: "c".to_owned(), text: "done".to_owned() }], "{path}");
    }
}
