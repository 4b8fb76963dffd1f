//! The APIs' official Python libraries read what we write, and send what our dialects have to read.
//!
//! `scripts/setup --sdk` puts them into a virtual environment in `~/.cache/sayso`. Where it cannot, a test is skipped with the reason.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sayso_testkit::skip::skip;
use sayso_wire::stream::{Api, CANCELED, Ending, Finish, HttpReply, Refusal, Script, ScriptBlock, ToolKind, Usage};
use sayso_wire::{ContentKind, NodeType, SectionKind};
use serde_json::{Value, json};

/// A request that a library sent.
#[derive(Clone, Debug)]
pub(crate) struct SdkRequest {
    pub(crate) api: Api,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// What the libraries send when asked with a system prompt, tools, an image and the results of two calls, streaming and not; or why
/// they cannot be asked.
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

/// The interpreter that has the libraries.
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

/// The lines that the script prints.
fn run(what: &str, input: &str) -> Result<Vec<Value>, String> {
    let mut child = Command::new(python()?)
        .arg("-B")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/sdk.py"))
        .arg(what)
        // Neither keys nor proxies of whoever runs the tests.
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

/// Thinks, speaks, and calls two tools at once.
fn script() -> Script {
    let pieces = vec!["I have ".to_owned(), "to look.".to_owned()];
    Script {
        id: "answer_1".to_owned(),
        model: "a-model".to_owned(),
        blocks: vec![
            ScriptBlock::Thinking { pieces, opaque: Some("c2lnbmVk".to_owned()) },
            text(&["Let me see", ": \"é\"\n", "😀"]),
            call("call_1", &["{\"pa", "th\":\"a \\\"b\\\"\"}"]),
            call("call_2", &["{}"]),
        ],
        usage: Usage { input: Some(100), output: Some(20), cache_read: Some(64), ..Usage::default() },
        ending: Ending::Finished(Finish::ToolUse),
    }
}

/// A stream with keep-alives before the first event and after each.
fn kept_alive(api: Api, script: &Script) -> String {
    let mut bytes = api.keep_alive().repeat(2);
    for event in api.encode_events(script) {
        bytes.extend(event);
        bytes.extend(api.keep_alive());
    }
    String::from_utf8(bytes).unwrap()
}

fn cases(api: Api) -> Value {
    let mut broken = api.encode(&Script { blocks: vec![text(&["Half a"])], ending: Ending::Cut, ..script() });
    broken.extend(api.keep_alive());
    broken.extend(api.break_off(&Refusal::Canceled));
    let HttpReply { status, headers, body } = api.refuse(&Refusal::Canceled);
    assert_eq!(status, 400, "the script answers with this");
    json!({
        "stream": kept_alive(api, &script()),
        "error": String::from_utf8(broken).unwrap(),
        "body": String::from_utf8(api.encode_body(&script())).unwrap(),
        "refusal": String::from_utf8(body).unwrap(),
        "refusal_headers": headers.into_iter().filter(|(name, _)| *name != "content-type").collect::<BTreeMap<_, _>>(),
    })
}

/// What a library has to make of the script.
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
fn the_official_libraries_read_what_is_written() {
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
fn the_official_libraries_send_requests_with_all_that_was_asked_for() {
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
fn what_the_libraries_send_is_seen_in_sections() {
    let requests = match requests() {
        Ok(requests) => requests,
        Err(missing) => return skip(missing),
    };
    assert_eq!(requests.len(), 8);
    for sent in requests {
        let head = sayso_wire::Head { path: sent.path.clone(), headers: sent.headers.clone() };
        let request = sayso_wire::ModelRequest::new("r", head, sent.body.as_bytes());
        let name = format!("{:?} {}", sent.api, sent.path);
        assert_eq!(request.dialect().map(sayso_wire::dialect::Dialect::api), Some(sent.api), "{name}");
        assert!(request.problems().is_empty(), "{name}: {:?}", request.problems());
        assert!(request.marks().model.is_some(), "{name}");
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
