//! Interoperability with the official Python SDKs in both directions.
//!
//! `scripts/setup --sdk` installs them into a virtual environment in `~/.cache/sayso`. If that fails, the tests are
//! skipped with the reason.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sayso_testkit::skip::skip;
use sayso_wire::stream::{
    Api, CANCELED, FinishReason, HttpReply, ModelScript, ReplyError, ScriptBlock, ScriptEnding, ToolKind, Usage,
};
use sayso_wire::{ContentKind, NodeType, SectionKind};
use serde_json::{Value, json};

/// A request sent by an SDK.
#[derive(Clone, Debug)]
pub(crate) struct SdkRequest {
    pub(crate) api: Api,
    pub(crate) path: String,
    /// Headers with lower-case names.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// Returns the SDKs' requests with a system prompt, tools, an image and the results of two calls, streaming and not. An
/// error is the reason why the SDKs are unavailable.
pub(crate) fn requests() -> Result<Vec<SdkRequest>, String> {
    let text = |value: &Value| value.as_str().expect("the script writes text").to_owned();
    let request = |line: Value| SdkRequest {
        api: api(&text(&line["api"])),
        path: text(&line["path"]),
        headers: line["headers"].as_object().unwrap().iter().map(|(name, value)| (name.clone(), text(value))).collect(),
        body: text(&line["body"]),
    };
    Ok(run("requests", "")?.into_iter().map(request).collect())
}

const NAMES: [&str; 4] = ["anthropic", "chat", "responses", "gemini"];

fn api(name: &str) -> Api {
    Api::ALL[NAMES.iter().position(|known| *known == name).expect("a name of the script's")]
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the path of the interpreter that has the SDKs.
fn python() -> Result<PathBuf, String> {
    let output = Command::new(root().join("scripts/setup"))
        .arg("--sdk")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("scripts/setup does not run: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let python = said.lines().last().map(|directory| Path::new(directory).join("bin/python"));
    python
        .filter(|python| output.status.success() && python.is_file())
        .ok_or_else(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// Returns the lines that the script prints.
fn run(what: &str, input: &str) -> Result<Vec<Value>, String> {
    let mut child = Command::new(python()?)
        .arg("-B")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/sdk.py"))
        .arg(what)
        // Exclude keys and proxies of the current user.
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("an interpreter that is there runs");
    child.stdin.take().unwrap().write_all(input.as_bytes()).expect("the script reads all of it");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    Ok(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn call(id: &str, pieces: &[&str]) -> ScriptBlock {
    ScriptBlock::ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        kind: ToolKind::Function,
        pieces: pieces.iter().map(|&piece| piece.to_owned()).collect(),
        opaque: None,
    }
}

fn text(pieces: &[&str]) -> ScriptBlock {
    ScriptBlock::Text { pieces: pieces.iter().map(|&piece| piece.to_owned()).collect() }
}

/// A script with reasoning, text and two parallel calls.
fn script() -> ModelScript {
    let pieces = vec!["I have ".to_owned(), "to look.".to_owned()];
    ModelScript {
        id: "answer_1".to_owned(),
        model: "a-model".to_owned(),
        blocks: vec![
            ScriptBlock::Thinking { pieces, opaque: Some("c2lnbmVk".to_owned()) },
            text(&["Let me see", ": \"é\"\n", "😀"]),
            call("call_1", &["{\"pa", "th\":\"a \\\"b\\\"\"}"]),
            call("call_2", &["{}"]),
        ],
        usage: Usage { input: Some(100), output: Some(20), cache_read: Some(64), ..Usage::default() },
        ending: ScriptEnding::Finished(FinishReason::ToolUse),
    }
}

/// Encodes a stream with keep-alives before the first event and after each event.
fn kept_alive(api: Api, script: &ModelScript) -> String {
    let mut bytes = api.keep_alive().repeat(2);
    for event in api.encode_events(script) {
        bytes.extend(event);
        bytes.extend(api.keep_alive());
    }
    String::from_utf8(bytes).unwrap()
}

fn cases(api: Api) -> Value {
    let mut broken =
        api.encode(&ModelScript { blocks: vec![text(&["Half a"])], ending: ScriptEnding::ConnectionLost, ..script() });
    broken.extend(api.keep_alive());
    broken.extend(api.retryable_end(&ReplyError::Canceled));
    let HttpReply { status, headers, body } = api.error_reply(&ReplyError::Canceled);
    assert_eq!(status, 400, "the script answers with this");
    json!({
        "stream": kept_alive(api, &script()),
        "error": String::from_utf8(broken).unwrap(),
        "body": String::from_utf8(api.encode_body(&script())).unwrap(),
        "refusal": String::from_utf8(body).unwrap(),
        "refusal_headers": headers.into_iter().filter(|(name, _)| *name != "content-type").collect::<BTreeMap<_, _>>(),
    })
}

/// Returns the response that an SDK must produce from the script.
fn expected(api: Api) -> Value {
    let mut thinking = json!({"type": "thinking", "text": "I have to look."});
    if api != Api::OpenAiChat {
        thinking["signature"] = "c2lnbmVk".into();
    }
    json!([
        thinking,
        {"type": "text", "text": "Let me see: \"é\"\n😀"},
        {"type": "call", "id": "call_1", "name": "read", "arguments": {"path": "a \"b\""}},
        {"type": "call", "id": "call_2", "name": "read", "arguments": {}},
    ])
}

#[test]
fn sdks_read_encoded_responses() {
    let input: serde_json::Map<String, Value> =
        NAMES.iter().map(|name| ((*name).to_owned(), cases(api(name)))).collect();
    let lines = match run("answers", &Value::from(input).to_string()) {
        Ok(lines) => lines,
        Err(missing) => return skip(missing),
    };
    assert_eq!(lines.len(), 16, "four cases of four APIs");
    for line in lines {
        let api = api(line["api"].as_str().unwrap());
        let what = format!("{line:#}");
        match line["case"].as_str().unwrap() {
            "stream" | "body" => {
                assert_eq!(line["error"], Value::Null, "{what}");
                assert_eq!(line["blocks"], expected(api), "{what}");
                assert_eq!(line["usage"], json!({"input": 100, "output": 20, "cache_read": 64}), "{what}");
                let finish = ["tool_use", "tool_calls", "completed", "STOP"];
                assert_eq!(line["finish"], finish[Api::ALL.iter().position(|known| *known == api).unwrap()], "{what}");
            }
            "error" => {
                assert!(line["error"]["message"].as_str().unwrap_or_default().contains(CANCELED), "{what}");
                assert_eq!(line["blocks"], json!([{"type": "text", "text": "Half a"}]), "{what}");
            }
            "refusal" => {
                assert!(line["error"]["message"].as_str().unwrap_or_default().contains(CANCELED), "{what}");
                assert_eq!(line["requests"], 1, "it was not tried again: {what}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn sdk_requests_contain_requested_content() {
    let requests = match requests() {
        Ok(requests) => requests,
        Err(missing) => return skip(missing),
    };
    for api in Api::ALL {
        let of_api: Vec<&SdkRequest> = requests.iter().filter(|request| request.api == api).collect();
        assert_eq!(of_api.len(), 2, "streaming and not");
        for request in of_api {
            assert!(request.path.starts_with("/v1"), "{}", request.path);
            assert!(request.headers.iter().any(|(name, _)| name == "user-agent"));
            serde_json::from_str::<Value>(&request.body).unwrap();
            for part in ["Be brief.", "a.txt", "b.txt", "Reads a file.", "Go on.", "iVBORw0KGgo"] {
                assert!(request.body.contains(part), "{part} is not in {}", request.body);
            }
        }
    }
}

#[test]
fn sdk_requests_project_to_sections() {
    let requests = match requests() {
        Ok(requests) => requests,
        Err(missing) => return skip(missing),
    };
    assert_eq!(requests.len(), 8);
    for sent in requests {
        let head = sayso_wire::RequestHead { path: sent.path.clone(), headers: sent.headers.clone() };
        let request = sayso_wire::ModelRequest::new("r", head, sent.body.as_bytes());
        let name = format!("{:?} {}", sent.api, sent.path);
        assert_eq!(request.dialect().map(sayso_wire::dialect::Dialect::api), Some(sent.api), "{name}");
        assert!(request.problems().is_empty(), "{name}: {:?}", request.problems());
        assert!(request.identity().model.is_some(), "{name}");
        let kinds: std::collections::BTreeSet<_> = request.sections().map(|section| section.kind).collect();
        for kind in [SectionKind::System, SectionKind::User, SectionKind::Assistant, SectionKind::Tool] {
            assert!(kinds.contains(&kind), "{name} has no {kind:?}");
        }
        let nodes: std::collections::BTreeSet<_> = request.sections().map(|section| section.node).collect();
        for node in [NodeType::ToolCall, NodeType::ToolSchema, NodeType::RequestOption] {
            assert!(nodes.contains(&node) || node == NodeType::RequestOption, "{name} has no {node:?}");
        }
        assert!(request.sections().any(|section| section.content == ContentKind::Image), "{name} has no image");
        assert!(!request.sections().any(|section| section.node == NodeType::Raw), "{name}");
    }
}
