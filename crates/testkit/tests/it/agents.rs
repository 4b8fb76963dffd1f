//! The real agents against the scripted model: each writes a file when the model says so, and tells it how that went.

use std::path::Path;
use std::process::Output;

use sayso_testkit::agents::{Agent, Home};
use sayso_testkit::model::{ModelServer, Received, Turn};
use sayso_testkit::skip::skip;
use sayso_wire::stream::Api;
use serde_json::json;

/// Where a server may be mounted that stands between an agent and its model.
const PREFIX: &str = "/p/abcdef/upstream";
const PROMPT: &str = "please write hello.txt";

/// The call with which an agent writes `hello\n`.
fn write(agent: Agent, file: &Path) -> Turn {
    match agent {
        Agent::Claude => Turn::calls("Write", json!({"file_path": file, "content": "hello\n"})),
        Agent::Codex => {
            let patch = format!("*** Begin Patch\n*** Add File: {}\n+hello\n*** End Patch\n", file.display());
            Turn::calls("apply_patch", patch)
        }
        Agent::Gemini => Turn::calls("write_file", json!({"file_path": file, "content": "hello\n"})),
        Agent::Copilot => Turn::calls("create", json!({"path": file, "file_text": "hello\n"})),
        Agent::Opencode => Turn::calls("write", json!({"filePath": file, "content": "hello\n"})),
    }
}

/// A home for an agent beneath the prefix.
fn home(agent: Agent, model: &ModelServer, workspace: &Path) -> Home {
    agent.home(&agent.base_url(&format!("{}{PREFIX}", model.url())), workspace)
}

/// Runs an agent; nothing where there is none.
fn run(agent: Agent, home: &Home, workspace: &Path) -> Option<Output> {
    match agent.command(home, workspace, PROMPT) {
        Ok(mut command) => Some(command.output().unwrap()),
        Err(missing) => {
            skip(missing);
            None
        }
    }
}

/// Lets an agent write a file, and returns what the model was asked.
fn writes_a_file(agent: Agent, api: Api) -> Option<Vec<Received>> {
    let workspace = tempfile::tempdir().unwrap();
    let file = workspace.path().join("hello.txt");
    let model = ModelServer::start([write(agent, &file), Turn::says("It is written.")]);
    let output = run(agent, &home(agent, &model, workspace.path()), workspace.path())?;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(model.turns_left(), 0, "{output:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "hello\n");
    assert!(String::from_utf8_lossy(&output.stdout).contains("It is written."), "{output:?}");
    let asked: Vec<Received> = model.received().into_iter().filter(Received::asks_for_a_turn).collect();
    assert_eq!(asked.len(), 2);
    for request in &asked {
        assert!(request.target.starts_with(PREFIX), "{}", request.target);
        assert_eq!(request.api(), Some(api));
        assert!(request.decoded.windows(PROMPT.len()).any(|part| part == PROMPT.as_bytes()));
    }
    assert_eq!(asked[0].tool_results(), []);
    let results = asked[1].tool_results();
    assert_eq!(results.len(), 1, "{results:?}");
    let call = if api == Api::AnthropicMessages { "toolu_1_0" } else { "call_1_0" };
    assert_eq!(results[0].call, call);
    Some(model.received())
}

#[test]
fn claude_code_writes_what_the_model_says() {
    let Some(received) = writes_a_file(Agent::Claude, Api::AnthropicMessages) else { return };
    assert!(received.iter().all(|request| request.method == "HEAD" || request.asks_for_a_turn()));
    assert!(received.last().unwrap().header("x-claude-code-session-id").is_some());
}

#[test]
fn codex_writes_what_the_model_says() {
    let Some(received) = writes_a_file(Agent::Codex, Api::OpenAiResponses) else { return };
    assert!(received.iter().all(Received::asks_for_a_turn), "neither a WebSocket nor a list of models");
}

#[test]
fn codex_falls_back_from_a_websocket_to_http_at_once() {
    let workspace = tempfile::tempdir().unwrap();
    let model = ModelServer::start([Turn::says("over HTTP")]);
    let home = home(Agent::Codex, &model, workspace.path());
    home.prefer_websockets();
    let Some(output) = run(Agent::Codex, &home, workspace.path()) else { return };
    assert!(output.status.success(), "{output:?}");
    let order: Vec<bool> = model.received().iter().map(Received::is_upgrade).collect();
    assert_eq!(order, [true, false]);
}

#[test]
fn gemini_cli_writes_what_the_model_says() {
    let Some(received) = writes_a_file(Agent::Gemini, Api::Gemini) else { return };
    assert!(received.iter().all(Received::asks_for_a_turn));
}

#[test]
fn copilot_cli_writes_what_the_model_says() {
    let Some(received) = writes_a_file(Agent::Copilot, Api::OpenAiChat) else { return };
    assert!(received.iter().all(Received::asks_for_a_turn));
}

#[test]
fn opencode_writes_what_the_model_says_and_asks_for_a_title_without_tools() {
    let Some(received) = writes_a_file(Agent::Opencode, Api::OpenAiChat) else { return };
    assert_eq!(received.iter().filter(|request| !request.asks_for_a_turn()).count(), 1);
}

#[test]
fn a_subagent_of_claude_code_says_that_it_is_one() {
    let workspace = tempfile::tempdir().unwrap();
    let model = ModelServer::start([]);
    let call = json!({"description": "look", "prompt": "be the subagent", "subagent_type": "general-purpose"});
    model.once(Received::asks_for_a_turn, Turn::calls("Agent", call));
    let is_subagent = |request: &Received| request.header("x-claude-code-agent-id").is_some();
    model.when(is_subagent, Turn::says("the subagent is done"));
    model.then(Turn::says("It is done."));
    let home = home(Agent::Claude, &model, workspace.path());
    let Some(output) = run(Agent::Claude, &home, workspace.path()) else { return };
    assert!(output.status.success(), "{output:?}");
    let asked: Vec<Received> = model.received().into_iter().filter(Received::asks_for_a_turn).collect();
    assert_eq!(asked.iter().map(is_subagent).collect::<Vec<_>>(), [false, true, false]);
    assert!(asked[1].last_user_text().contains("be the subagent"));
    assert!(asked[2].tool_results()[0].text.contains("the subagent is done"), "{:?}", asked[2].tool_results());
    let session = |request: &Received| request.header("x-claude-code-session-id").map(str::to_owned);
    assert!(session(&asked[0]).is_some());
    assert_eq!(session(&asked[0]), session(&asked[1]));
}
