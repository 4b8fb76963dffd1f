//! Scripts in YAML, played over real connections.

use sayso_scripted_model::{Delivery, ModelServer, Script};
use sayso_wire::stream::collect::{BlockContent, from_body, from_stream};
use sayso_wire::stream::{Api, FinishReason};
use serde_json::{Value, json};

use super::client::{Http, post, request, send};

const PATHS: [&str; 4] =
    ["/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1beta/models/x:streamGenerateContent?alt=sse"];

fn play(script: &str) -> ModelServer {
    let script = Script::parse(script, "test.yaml").unwrap_or_else(|error| panic!("{error}: {}", error.hint()));
    ModelServer::play(([127, 0, 0, 1], 0).into(), script).unwrap()
}

/// Returns a request with a tool and the result of an earlier call.
fn with_result(api: Api, result: &str, stream: bool) -> Value {
    match api {
        Api::AnthropicMessages => json!({"stream": stream, "tools": [{"name": "Edit"}], "messages": [
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": result}]}]}),
        Api::OpenAiChat => json!({"stream": stream, "tools": [{"type": "function", "function": {"name": "Edit"}}],
            "messages": [{"role": "tool", "tool_call_id": "c", "content": result}]}),
        Api::OpenAiResponses => json!({"stream": stream, "tools": [{"type": "function", "name": "Edit"}],
            "input": [{"type": "function_call_output", "call_id": "c", "output": result}]}),
        Api::Gemini => json!({"tools": [{"functionDeclarations": [{"name": "Edit"}]}], "contents": [
            {"role": "user", "parts": [{"functionResponse": {"name": "Edit", "response": {"output": result}}}]}]}),
    }
}

#[tokio::test]
async fn script_reacts_to_denial_in_every_api() {
    let script = r"
rules:
  - when: {result: 'denied.*too long'}
    times: 1
    answer:
      thinking: It was too long.
      text: I make it shorter.
      calls:
        - tool: Edit
          input: {file_path: notes.txt, old_string: a, new_string: '{{result}}'}
      usage: {input: 120, output: 7, cache_read: 90}
turns:
  - text: Hello
";
    for (api, path) in Api::ALL.into_iter().zip(PATHS) {
        let server = play(script);
        let denied = with_result(api, "user denied: too long", true);
        let (status, stream) = post(&server, path, &denied).await;
        let answer = from_stream(api, &stream);
        assert_eq!((status, &answer.problems, &answer.error), (200, &Vec::new(), &None), "{path}");
        let calls: Vec<&String> = answer
            .blocks
            .iter()
            .filter_map(|block| match &block.content {
                BlockContent::ToolCall { arguments, .. } => Some(arguments),
                _ => None,
            })
            .collect();
        assert!(calls.len() == 1 && calls[0].contains("user denied: too long"), "{path}: {answer:?}");
        assert_eq!(answer.usage.output, Some(7), "{path}");
        let (_, stream) = post(&server, path, &denied).await;
        let text = format!("{:?}", from_stream(api, &stream).blocks);
        assert!(text.contains("Hello"), "{path}: the rule answers once, and then the turns go on: {text}");
    }
}

#[tokio::test]
async fn unmet_expectation_names_its_line() {
    let server = play("turns:\n  - text: first\n  - expect: {result: '^ok$', tool: Edit}\n    text: second\n");
    let ask = async |result: &str| {
        let (status, body) = post(&server, PATHS[0], &with_result(Api::AnthropicMessages, result, false)).await;
        (status, String::from_utf8(body).unwrap())
    };
    assert!(ask("anything").await.1.contains("first"));
    let (status, body) = ask("failed").await;
    assert_eq!(status, 400);
    assert!(body.contains("test.yaml:3") && body.contains("the last tool result is `failed`"), "{body}");
    assert_eq!(server.mismatches().len(), 1);
    assert!(ask("ok").await.1.contains("second"), "the turn stays the next one");
}

#[tokio::test]
async fn errors_and_faults_are_played_in_order() {
    let server = play(
        "turns:
  - error: {status: 429, message: slow down, retry_after: 3}
  - error: {status: 529, message: overloaded}
  - {text: broken off, cut_after_bytes: 40}
  - hang_up: true
  - raw: {status: 502, content_type: text/html, body: '<h1>bad gateway</h1>'}
  - {text: half, fails: {status: 500, message: gone}}
  - {text: at the limit, finish: max_tokens, headers: {x-request-id: r1}}
",
    );
    let body = with_result(Api::AnthropicMessages, "", true);
    let ask = async || send(&server, Http::One, request(&server, "POST", PATHS[0], &body)).await;
    let limited = ask().await.unwrap().response;
    assert_eq!((limited.status().as_u16(), &limited.headers()["retry-after"]), (429, &"3".parse().unwrap()));
    assert_eq!(ask().await.unwrap().response.status().as_u16(), 529);
    let mut cut = ask().await.unwrap();
    let mut bytes = 0;
    let broke = loop {
        match cut.next().await {
            Some(Ok(chunk)) => bytes += chunk.len(),
            Some(Err(_)) => break true,
            None => break false,
        }
    };
    assert_eq!((bytes, broke), (40, true));
    assert_eq!(server.received()[2].delivery(), Delivery::Cut);
    assert!(ask().await.is_err(), "closed without a status");
    assert_eq!(ask().await.unwrap().response.status().as_u16(), 502);
    let failed = from_stream(Api::AnthropicMessages, &ask().await.unwrap().rest().await.unwrap());
    assert!(failed.error.is_some(), "{failed:?}");
    let last = ask().await.unwrap();
    assert_eq!(last.response.headers()["x-request-id"], "r1");
    let last = from_stream(Api::AnthropicMessages, &last.rest().await.unwrap());
    assert_eq!(last.finish.map(|(_, reason)| reason), Some(FinishReason::MaxTokens));
}

#[tokio::test]
async fn held_events_are_released_over_http() {
    let server = play("turns:\n  - {text: one two three, step: true}\n");
    let body = with_result(Api::AnthropicMessages, "", true);
    let mut answer = send(&server, Http::One, request(&server, "POST", PATHS[0], &body)).await.unwrap();
    for count in 1..=2 {
        assert_eq!(post(&server, "/_script/step", &Value::Null).await.0, 200);
        assert!(answer.next().await.unwrap().is_ok());
        assert_eq!(server.received()[0].chunks(), count);
    }
    assert_eq!(post(&server, "/_script/step?count=zero", &Value::Null).await.0, 400);
    assert_eq!(post(&server, "/_script/open", &Value::Null).await.0, 200);
    assert!(String::from_utf8(answer.rest().await.unwrap()).unwrap().contains("message_stop"));
    let listed = send(&server, Http::One, request(&server, "GET", "/_script/requests", &Value::Null)).await.unwrap();
    let listed: Value = serde_json::from_slice(&listed.rest().await.unwrap()).unwrap();
    assert_eq!((&listed[0]["path"], &listed[0]["delivery"]), (&json!("/v1/messages"), &json!("complete")));
    assert_eq!(server.received().len(), 1, "requests to the server itself are not recorded");
}

#[tokio::test]
async fn conditions_select_by_each_part() {
    let server = play(
        "rules:
  - {when: {tools: false}, answer: {text: title}}
  - {when: {system: 'You are terse'}, answer: {text: by system}}
  - {when: {user: '^stop'}, answer: {text: by user}}
  - {when: {headers: {x-session: '7'}}, answer: {text: by header}}
  - {when: {model: opus}, answer: {text: by model}}
  - {when: {body: 'needle'}, answer: {text: by body}}
  - {when: {api: gemini}, answer: {text: by api}}
  - {when: {request: 8}, answer: {text: by number}}
otherwise: {text: 'otherwise {{model}}'}
",
    );
    let tools = json!([{"name": "Edit"}]);
    let mut asked = Vec::new();
    for body in [
        json!({"messages": []}),
        json!({"tools": tools, "system": [{"type": "text", "text": "You are terse."}]}),
        json!({"tools": tools, "messages": [{"role": "user", "content": "stop it"}]}),
        json!({"tools": tools, "model": "opus-4"}),
        json!({"tools": tools, "metadata": "needle"}),
        json!({"tools": tools, "model": "m"}),
        json!({"tools": tools}),
        json!({"tools": tools}),
        json!({"tools": tools}),
    ] {
        let (_, answer) = post(&server, PATHS[0], &body).await;
        let answer = from_body(Api::AnthropicMessages, &answer).unwrap();
        let BlockContent::Text(text) = &answer.blocks[0].content else { panic!("{answer:?}") };
        asked.push(text.clone());
    }
    let expected = [
        "title",
        "by system",
        "by user",
        "by model",
        "by body",
        "otherwise m",
        "otherwise scripted",
        "otherwise scripted",
        "by number",
    ];
    assert_eq!(asked, expected);
    let mut message = request(&server, "POST", PATHS[0], &json!({"tools": tools}));
    message.headers_mut().insert("X-Session", "7".parse().unwrap());
    let answer = send(&server, Http::One, message).await.unwrap().rest().await.unwrap();
    assert!(String::from_utf8(answer).unwrap().contains("by header"));
    let (_, answer) = post(&server, PATHS[3], &with_result(Api::Gemini, "", true)).await;
    assert!(String::from_utf8(answer).unwrap().contains("by api"));
}

#[test]
fn script_error_names_file_line_and_remedy() {
    for (script, place, message, hint) in [
        ("turns:\n  - txt: x\n", "s.yaml:2:", "unknown field `txt`", "spelling"),
        (
            "turns:\n  - text: x\n    calls:\n      - input: {}\n",
            "s.yaml:4:",
            "missing field `tool`",
            "add the missing key",
        ),
        ("turns:\n  - text: [\n", "s.yaml:", "", "correct the YAML"),
        (
            "rules:\n  - when: {result: '('}\n    answer: {text: x}\n",
            "s.yaml:2:",
            "`(` is not a regular expression",
            "escape",
        ),
        ("turns:\n  - text: a\n  - error: {status: 429}\n    text: x\n", "s.yaml:3:", "several kinds", "keep one of"),
        ("turns:\n  - error: {status: 200}\n", "s.yaml:2:", "`status: 200`", "400 to 599"),
        ("turns:\n  - {}\n", "s.yaml:2:", "no content", "add `text`"),
        ("turns:\n  - calls: [{tool: A, input: 3}]\n", "s.yaml:2:", "the call of `A`", "`input: {key: value}`"),
        ("turns:\n  - {text: a, repeat: 0}\n", "s.yaml:2:", "`repeat: 0`", "from 1"),
        ("turns:\n  - {text: a, step: true, every_ms: 5}\n", "s.yaml:2:", "`step` and `every_ms`", "keep one"),
        ("turns:\n  - {text: a, every_ms: 99999999}\n", "s.yaml:2:", "longer than", "`step: true`"),
        ("turns:\n  - {text: a, headers: {'x y': z}}\n", "s.yaml:2:", "not a header", "letters"),
        ("rules:\n  - {when: {}, times: 0, answer: {text: a}}\n", "s.yaml:2:", "`times: 0`", "from 1"),
        ("rules:\n  - {when: {}, answer: {text: a, repeat: 2}}\n", "s.yaml:2:", "belong to turns", "`times`"),
        ("", "s.yaml", "", ""),
        ("turns: []\n", "s.yaml: ", "no answer", "add `turns:`"),
    ] {
        let error = Script::parse(script, "s.yaml").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(place) && text.contains(message), "{script}\n{text}");
        assert!(error.hint().contains(hint), "{script}\n{text}\n{}", error.hint());
    }
    let large = format!("turns:\n  - text: {}\n", "x".repeat(5 << 20));
    assert!(Script::parse(&large, "s.yaml").unwrap_err().to_string().contains("4 MiB"));
}
