//! Conversations of the five real agents, decoded from their traffic with a scripted model: ten prompts, a compaction and a subagent.
//!
//! The snapshots contain every block. Texts that differ between runs are replaced: paths, dates, times and ids.

use std::collections::BTreeMap;
use std::path::Path;

use sayso_api::client::{Client, UpstreamUrls};
use sayso_api::proto;
use sayso_api::proto::conversation_block::Kind;
use sayso_api::request::RequestQuery;
use sayso_testkit::agents::{Agent, Home};
use sayso_testkit::model::{self, ModelServer, Received, Turn};
use sayso_testkit::skip::skip;
use sayso_wire::stream::{FinishReason, ModelScript, ScriptBlock, ScriptEnding, Usage};
use serde_json::{Value, json};

use crate::scene::Scene;

const DELEGATE: &str = "Delegate the search.";
const SUBAGENT_PROMPT: &str = "Search the notes for the number two.";
const SUBAGENT_TEXT: &str = "The number two is in line 2.";
/// Gemini CLI asks for two summaries after each prompt.
const MAX_COMPACTIONS: usize = 24;
const CHUNK_ID: &str = "Chunk ID: ";
/// Longest text of a block in a snapshot, in characters.
const MAX_DRAWN_CHARS: usize = 160;

/// The prompts, in order. An empty one stands for a command that compacts the history.
const PROMPTS: [&str; 11] = [
    "Read the notes.",
    "Think about them.",
    "Say something.",
    "",
    "Go on after the summary.",
    DELEGATE,
    "Say something else.",
    "Write an eighth answer.",
    "Write a ninth answer.",
    "Read them again.",
    "Goodbye.",
];

/// An agent with its model and an engine between them.
struct Conversing {
    agent: Agent,
    client: Client,
    model: ModelServer,
    home: Home,
    workspace: tempfile::TempDir,
    server: crate::scene::Running,
}

impl Conversing {
    async fn start(agent: Agent, scene: &Scene) -> Option<Self> {
        if let Err(missing) = agent.program() {
            skip(missing);
            return None;
        }
        let model = ModelServer::start([]);
        let server = scene.serve();
        let client = server.verdict_client();
        let upstream = match agent {
            Agent::Claude => "anthropic",
            Agent::Gemini => "gemini",
            Agent::Codex | Agent::Copilot | Agent::Opencode => "openai",
        };
        let url = if upstream == "openai" { format!("{}/v1", model.url()) } else { model.url() };
        let upstreams = UpstreamUrls::from([(upstream.to_owned(), url)]);
        let endpoint = client.open_endpoint(Some(agent.name()), &upstreams).await.unwrap();
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("notes.txt"), "one\ntwo\n").unwrap();
        let home = agent.home(&format!("{}/{upstream}", endpoint.url.unwrap()), workspace.path());
        Some(Self { agent, client, model, home, workspace, server })
    }

    /// Runs the agent with a prompt, in the same session as before.
    fn prompt(&self, prompt: &str, is_first: bool) {
        let (home, workspace) = (&self.home, self.workspace.path());
        let command = if is_first {
            self.agent.command(home, workspace, prompt)
        } else {
            self.agent.command_to_continue(home, workspace, prompt)
        };
        let output = command.unwrap().output().unwrap();
        assert!(output.status.success(), "{prompt}: {output:?}");
        assert_eq!(self.model.turns_left(), 0, "{prompt}: {output:?}");
    }

    /// Scripts the responses to a prompt.
    fn script(&self, prompt: &str) {
        match prompt {
            "Read the notes." | "Read them again." => {
                self.model.then(self.shell_call().after_thinking("The notes are in a file.", self.signature()));
                self.model.then(Turn::says(&answer(prompt)));
            }
            DELEGATE => self.script_delegation(),
            // A response that reports many tokens makes some agents compact their history.
            "Say something." | "Say something else." if self.compacts_by_size() => {
                self.model.then(large(self.agent, &answer(prompt)));
            }
            prompt => self.model.then(Turn::says(&answer(prompt))),
        }
    }

    fn compacts_by_size(&self) -> bool {
        matches!(self.agent, Agent::Codex | Agent::Opencode)
    }

    fn signature(&self) -> Option<&'static str> {
        // Chat Completions has no signatures.
        matches!(self.agent, Agent::Claude | Agent::Codex | Agent::Gemini).then_some("c2lnbmF0dXJl")
    }

    /// A call of the agent's shell tool.
    fn shell_call(&self) -> Turn {
        let command = "cat notes.txt";
        match self.agent {
            Agent::Claude => Turn::calls("Bash", json!({"command": command, "description": "Read the notes"})),
            Agent::Codex => Turn::calls("exec_command", json!({"cmd": command})),
            Agent::Gemini => Turn::calls("run_shell_command", json!({"command": command})),
            Agent::Copilot | Agent::Opencode => {
                Turn::calls("bash", json!({"command": command, "description": "Read the notes"}))
            }
        }
    }

    fn script_delegation(&self) {
        let prompt = SUBAGENT_PROMPT;
        let call = match self.agent {
            Agent::Claude => {
                let input = json!({"description": "search", "prompt": prompt, "subagent_type": "general-purpose"});
                model::Answer::from(Turn::calls("Agent", input))
            }
            Agent::Codex => spawn_agent(prompt),
            Agent::Gemini => Turn::calls("invoke_agent", json!({"agent_name": "generalist", "prompt": prompt})).into(),
            Agent::Copilot => {
                let kind = json!({"name": "searcher", "description": "search", "prompt": prompt,
                    "agent_type": "general-purpose", "mode": "sync"});
                Turn::calls("task", kind).into()
            }
            Agent::Opencode => {
                let input = json!({"description": "search", "prompt": prompt, "subagent_type": "general"});
                Turn::calls("task", input).into()
            }
        };
        // The subagent runs at the same time as the main agent, so its response is chosen by its request.
        let agent = self.agent;
        let is_subagent = move |request: &Received| match agent {
            Agent::Claude => request.header("x-claude-code-agent-id").is_some(),
            Agent::Codex => request.header("x-openai-subagent").is_some(),
            Agent::Opencode => request.header("x-parent-session-id").is_some(),
            Agent::Copilot => request.header("x-interaction-type") == Some("conversation-subagent"),
            Agent::Gemini => request.asks_for_a_turn() && request.last_user_text() == SUBAGENT_PROMPT,
        };
        let result = match agent {
            Agent::Gemini => Turn::calls("complete_task", json!({"result": {"response": SUBAGENT_TEXT}})),
            _ => Turn::says(SUBAGENT_TEXT),
        };
        self.model.once(is_subagent, result);
        self.model.then(call);
        if agent == Agent::Codex {
            self.model.then(wait_agent());
        }
        self.model.then(Turn::says(&answer(DELEGATE)));
    }

    /// The blocks of all sessions, oldest session first.
    async fn sessions(&self) -> Vec<Vec<proto::ConversationBlock>> {
        let query = RequestQuery { limit: 1_000, ..RequestQuery::default() };
        let requests = self.client.list_requests(&query).await.unwrap();
        let mut sessions: Vec<String> = Vec::new();
        for request in requests.iter().rev() {
            let session = request.record.received.origin.session.clone().unwrap_or_default();
            if !session.is_empty() && !sessions.contains(&session) {
                sessions.push(session);
            }
        }
        let mut conversations = Vec::new();
        for session in sessions {
            let blocks = self.client.conversation(&session, 0, 1_000, None).await.unwrap().blocks;
            if !blocks.is_empty() {
                conversations.push(blocks.iter().map(proto::ConversationBlock::from).collect());
            }
        }
        conversations
    }
}

/// `true` for a request for a summary of the history, which is no turn of the conversation.
fn is_compaction(request: &Received) -> bool {
    let text = format!("{}\n{}", request.system_text(), request.last_user_text());
    let words = ["context summarization agent", "<state_snapshot>", "CONTEXT CHECKPOINT COMPACTION"];
    request.api().is_some() && request.tools().is_empty() && words.iter().any(|words| text.contains(words))
}

fn answer(prompt: &str) -> String {
    format!("Answer to “{prompt}”")
}

/// A response with a text that reports many tokens.
fn large(agent: Agent, text: &str) -> ModelScript {
    let id = if agent == Agent::Codex { "resp_large" } else { "chatcmpl-large" };
    ModelScript {
        id: id.to_owned(),
        model: "scripted-1".to_owned(),
        blocks: vec![ScriptBlock::Text { pieces: vec![text.to_owned()] }],
        usage: Usage { input: Some(50_000), output: Some(10), ..Usage::default() },
        ending: ScriptEnding::Finished(FinishReason::EndTurn),
    }
}

/// A call of a tool in Codex's namespace for subagents.
fn codex_call(id: &str, name: &str, arguments: &Value) -> model::Answer {
    let item = json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "namespace": "collaboration",
        "name": name, "arguments": arguments.to_string(), "status": "completed"});
    let response = |status: &str, output: Value| {
        json!({"id": format!("resp_{id}"), "object": "response", "status": status, "model": "gpt-5.5", "output": output,
            "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
                "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20}})
    };
    let events = [
        json!({"type": "response.created", "response": response("in_progress", json!([]))}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response("completed", json!([item]))}),
    ];
    model::Answer::stream(events.map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())))
}

fn spawn_agent(prompt: &str) -> model::Answer {
    codex_call("call_spawn", "spawn_agent", &json!({"message": prompt, "task_name": "searcher"}))
}

fn wait_agent() -> model::Answer {
    codex_call("call_wait", "wait_agent", &json!({"timeout_ms": 60_000}))
}

/// Replaces what differs between runs: ids, dates, times and paths.
fn stable(text: &str, workspace: &Path, home: &Path) -> String {
    let mut text = text.replace(workspace.to_str().unwrap(), "/workspace").replace(home.to_str().unwrap(), "/home");
    // Six random digits and letters of Codex, perhaps letters only.
    if let Some((_, rest)) = text.split_once(CHUNK_ID) {
        let id: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        text = text.replace(&format!("{CHUNK_ID}{id}"), &format!("{CHUNK_ID}#"));
    }
    let mut stable = String::new();
    for word in text.split_inclusive(|character: char| !(character.is_alphanumeric() || "-_:.+".contains(character))) {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        let is_number = digits >= 3 || (digits > 0 && word.contains([':', '.']));
        stable.push_str(&if is_number { mask(word) } else { word.to_owned() });
    }
    stable
}

/// Replaces a word that has digits, and keeps its last character if that is a separator.
fn mask(word: &str) -> String {
    let end = word.chars().last().filter(|last| !last.is_alphanumeric());
    format!("#{}", end.map(String::from).unwrap_or_default())
}

/// Draws the blocks of each session in order, those of subagents last: a subagent runs beside its parent, so the order between the
/// two differs between runs.
fn draw(sessions: &[Vec<proto::ConversationBlock>], workspace: &Path, home: &Path) -> String {
    let mut drawn = String::new();
    for (index, blocks) in sessions.iter().enumerate() {
        drawn.push_str(&format!("session {}\n", index + 1));
        let (subagents, main): (Vec<_>, Vec<_>) = blocks.iter().partition(|block| block.from_subagent);
        for block in main.into_iter().chain(subagents) {
            let kind = format!("{:?}", block.kind.as_known().unwrap());
            let kind = kind.strip_prefix("KIND_").unwrap_or(&kind).to_lowercase();
            let tool = block.tool.as_ref().map(|tool| format!(" {tool}")).unwrap_or_default();
            let speaker = if block.from_subagent { " (subagent)" } else { "" };
            let text = stable(&block.text, workspace, home).replace('\n', "⏎");
            let mut shown: String = text.chars().take(MAX_DRAWN_CHARS).collect();
            if shown != text {
                shown.push('…');
            }
            drawn.push_str(&format!("  {kind}{tool}{speaker}: {shown}\n"));
        }
    }
    drawn
}

/// Checks that texts of one kind occur once each and in this order in a session, and that none is missing.
fn assert_in_order(sessions: &[Vec<proto::ConversationBlock>], kind: Kind, expected: &[String]) {
    let mut missing: Vec<&String> = expected.iter().collect();
    for session in sessions {
        let blocks = session.iter().filter(|block| block.kind.as_known() == Some(kind));
        // opencode puts a prompt of several words in quotation marks.
        let texts = blocks.map(|block| block.text.trim_matches('"'));
        let places: Vec<usize> = texts.filter_map(|text| expected.iter().position(|known| known == text)).collect();
        assert!(places.is_sorted_by(|one, next| one < next), "{kind:?}: {places:?}");
        missing.retain(|text| !places.iter().any(|place| expected[*place] == **text));
    }
    assert!(missing.is_empty(), "{kind:?}: {missing:?}");
}

/// Checks that each call has one result at most, after the call.
fn assert_paired(sessions: &[Vec<proto::ConversationBlock>]) {
    for session in sessions {
        let mut calls: BTreeMap<&str, bool> = BTreeMap::new();
        for block in session.iter().filter(|block| block.call.is_some()) {
            let call = block.call.as_deref().unwrap();
            match block.kind.as_known().unwrap() {
                Kind::ToolCall => assert_eq!(calls.insert(call, false), None, "{call} was called twice"),
                Kind::ToolResult => {
                    assert_eq!(calls.insert(call, true), Some(false), "{call} has no call or two results");
                }
                kind => panic!("{kind:?}"),
            }
        }
    }
}

async fn conversation_of(agent: Agent) -> Option<String> {
    let scene = Scene::new();
    let conversing = Conversing::start(agent, &scene).await?;
    conversing.home.configure_for_long_sessions(agent);
    // A summary differs from the ones before, as a real one does.
    for number in 1..=MAX_COMPACTIONS {
        conversing
            .model
            .once(is_compaction, Turn::says(&format!("Summary {}: the notes have two lines.", "I".repeat(number))));
    }
    let mut prompts = Vec::new();
    for prompt in PROMPTS {
        let is_first = prompts.is_empty();
        if prompt.is_empty() {
            // The others compact their history by themselves.
            let command = match agent {
                Agent::Claude | Agent::Copilot => "/compact",
                Agent::Codex | Agent::Gemini | Agent::Opencode => continue,
            };
            conversing.model.then(Turn::says("Summary: the notes have two lines."));
            conversing.prompt(command, is_first);
            continue;
        }
        conversing.script(prompt);
        conversing.prompt(prompt, is_first);
        prompts.push(prompt.to_owned());
    }
    let sessions = conversing.sessions().await;
    let drawn = draw(&sessions, conversing.workspace.path(), conversing.home.path());
    println!("{drawn}");
    let answers: Vec<String> = prompts.iter().map(|prompt| answer(prompt)).collect();
    assert_in_order(&sessions, Kind::AssistantText, &answers);
    assert_in_order(&sessions, Kind::Prompt, &prompts);
    assert_paired(&sessions);
    if agent != Agent::Gemini {
        // Gemini CLI names no sessions: a compaction looks like a new one, which begins with the kept history.
        let all: Vec<String> = sessions.iter().flatten().map(|block| block.text.clone()).collect();
        for answer in &answers {
            assert_eq!(all.iter().filter(|text| *text == answer).count(), 1, "{answer}");
        }
    }
    conversing.server.end();
    Some(drawn)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversation_of_claude_code_is_complete() {
    let Some(drawn) = conversation_of(Agent::Claude).await else { return };
    insta::assert_snapshot!(drawn);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversation_of_codex_is_complete() {
    let Some(drawn) = conversation_of(Agent::Codex).await else { return };
    insta::assert_snapshot!(drawn);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversation_of_gemini_cli_is_complete() {
    let Some(drawn) = conversation_of(Agent::Gemini).await else { return };
    insta::assert_snapshot!(drawn);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversation_of_copilot_cli_is_complete() {
    let Some(drawn) = conversation_of(Agent::Copilot).await else { return };
    insta::assert_snapshot!(drawn);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversation_of_opencode_is_complete() {
    let Some(drawn) = conversation_of(Agent::Opencode).await else { return };
    insta::assert_snapshot!(drawn);
}
