//! Real agents against the scripted model: each writes a file by a tool call and sends the result to the model.

use std::path::Path;
use std::process::Output;

use sayso_testkit::agents::{Agent, Home};
use sayso_testkit::model::{ModelServer, Received, Turn};
use sayso_testkit::skip::skip;
use sayso_wire::stream::Api;
use serde_json::json;

/// Path prefix like that of a proxy between an agent and its model.
const PREFIX: &str = "/p/abcdef/upstream";
const PROMPT: &str = "please write hello.txt";

/// Returns a turn that makes the agent write `hello\n`.
fn write_turn(agent: Agent, file: &Path) -> Turn {
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

/// Creates a home that configures the agent for a URL below the prefix.
fn home(agent: Agent, model: &ModelServer, workspace: &Path) -> Home {
    agent.home(&agent.base_url(&format!("{}{PREFIX}", model.url())), workspace)
}

/// Runs an agent. Returns `None`, and skips the test, if it is not installed.
fn run(agent: Agent, home: &Home, workspace: &Path) -> Option<Output> {
    match agent.command(home, workspace, PROMPT) {
        Ok(mut command) => Some(command.output().unwrap()),
        Err(missing) => {
            skip(missing);
            None
        }
    }
}

/// Runs an agent that writes a file, and returns the model's requests.
fn writes_a_file(agent: Agent, api: Api) -> Option<Vec<Received>> {
    let workspace = tempfile::tempdir().unwrap();
    let file = workspace.path().join("hello.txt");
    let model = ModelServer::start([write_turn(agent, &file), Turn::says("It is written.")]);
    let output = run(agent, &home(agent, &model, workspace.path()), workspace.path())?;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(model.turns_left(), 0, "{output:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "hello\n");
    assert!(String::from_utf8_lossy(&output.stdout).contains("It is written."), "{output:?}");
    let turns: Vec<Received> = model.received().into_iter().filter(Received::asks_for_a_turn).collect();
    assert_eq!(turns.len(), 2);
    for request in &turns {
        assert!(request.target.starts_with(PREFIX), "{}", request.target);
        assert_eq!(request.api(), Some(api));
        assert!(request.decoded.windows(PROMPT.len()).any(|part| part == PROMPT.as_bytes()));
    }
    assert_eq!(turns[0].tool_results(), []);
    let results = turns[1].tool_results();
    assert_eq!(results.len(), 1, "{results:?}");
    let call = if api == Api::AnthropicMessages { "toolu_1_0" } else { "call_1_0" };
    assert_eq!(results[0].call, call);
    Some(model.received())
}

#[test]
fn claude_code_writes_scripted_file() {
    let Some(received) = writes_a_file(Agent::Claude, Api::AnthropicMessages) else { return };
    assert!(received.iter().all(|request| request.method == "HEAD" || request.asks_for_a_turn()));
    assert!(received.last().unwrap().header("x-claude-code-session-id").is_some());
}

#[test]
fn codex_writes_scripted_file() {
    let Some(received) = writes_a_file(Agent::Codex, Api::OpenAiResponses) else { return };
    assert!(received.iter().all(Received::asks_for_a_turn), "neither a WebSocket nor a list of models");
}

#[test]
fn codex_falls_back_from_websocket_to_http() {
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
fn gemini_cli_writes_scripted_file() {
    let Some(received) = writes_a_file(Agent::Gemini, Api::Gemini) else { return };
    assert!(received.iter().all(Received::asks_for_a_turn));
}

#[test]
fn copilot_cli_writes_scripted_file() {
    let Some(received) = writes_a_file(Agent::Copilot, Api::OpenAiChat) else { return };
    assert!(received.iter().all(Received::asks_for_a_turn));
}

#[test]
fn opencode_writes_scripted_file_and_one_title() {
    let Some(received) = writes_a_file(Agent::Opencode, Api::OpenAiChat) else { return };
    // The title is requested beside the first turn. On a loaded machine, opencode may end before it sends that request.
    assert!(received.iter().filter(|request| !request.asks_for_a_turn()).count() <= 1);
}

#[test]
fn claude_code_subagent_sends_its_id() {
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
    let turns: Vec<Received> = model.received().into_iter().filter(Received::asks_for_a_turn).collect();
    assert_eq!(turns.iter().map(is_subagent).collect::<Vec<_>>(), [false, true, false]);
    assert!(turns[1].last_user_text().contains("be the subagent"));
    assert!(turns[2].tool_results()[0].text.contains("the subagent is done"), "{:?}", turns[2].tool_results());
    let session = |request: &Received| request.header("x-claude-code-session-id").map(str::to_owned);
    assert!(session(&turns[0]).is_some());
    assert_eq!(session(&turns[0]), session(&turns[1]));
}
